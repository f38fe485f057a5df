//! Decides how a run ended, from the kernel's status and the child's messages.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use altair_sandbox::{Captured, Ended, Status};
use serde_json::Value;

use crate::blocked::Context;
use crate::channel::{Ending, Report};
use crate::child_messages::ChildMessages;
use crate::encode::{STRING_MAX, TRUNCATED, read_exception, read_value, shorten};
use crate::exit_codes;
use crate::guards::GuardStates;
use crate::hints;
use crate::origin::Origin;
use crate::queries::QueryReport;
use crate::result::{
    Diagnostics, EvalResult, FileChanges, Location, Outcome, OutputTruncated, Phase, Timings,
};

/// How far the child's own times may deviate from the host's clock: a busy host notices the
/// beginning and the end of a snippet late by that much.
const CLOCK_SLACK: Duration = Duration::from_millis(10);
/// The same as a share of the time, if that is larger: afterwards the kernel tears the process
/// down.
const CLOCK_SLACK_SHARE: u32 = 20;

/// Everything known about a run that has ended.
pub(crate) struct Evidence {
    pub ended: Ended,
    pub heard: ChildMessages,
    pub guards: GuardStates,
    pub file_changes: Option<FileChanges>,
    pub context: Context,
    pub started_ns: u64,
    pub elapsed: Duration,
    /// When the host knew that it had ended.
    pub ended_at: Instant,
    pub origin: Origin,
    /// A message in addition to the outcome's.
    pub message: Option<String>,
}

/// Where the time went.
struct Times {
    start: Option<Duration>,
    boot: Option<Duration>,
    snippet: Option<Duration>,
    encode: Option<Duration>,
}

/// The part of a result in which the outcomes differ.
struct Verdict {
    outcome: Outcome,
    exit_code: i32,
    phase: Option<Phase>,
    result: Option<Value>,
    exception: Option<Value>,
    message: Option<String>,
    location: Option<Location>,
    hints: Vec<String>,
    signal: Option<i32>,
}

impl Verdict {
    fn new(outcome: Outcome, exit_code: i32) -> Self {
        Self {
            outcome,
            exit_code,
            phase: None,
            result: None,
            exception: None,
            message: None,
            location: None,
            hints: Vec::new(),
            signal: None,
        }
    }
}

/// Whether a run may have ended so because code was missing.
fn may_lack_code(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Threw | Outcome::Fatal | Outcome::BootFailed => true,
        Outcome::Returned
        | Outcome::Exited
        | Outcome::OutOfMemory
        | Outcome::TimedOut
        | Outcome::Signalled
        | Outcome::NoReport => false,
    }
}

impl Evidence {
    pub(crate) fn into_result(self) -> EvalResult {
        let verdict = self.verdict();
        let times = self.times();
        let has_failed = may_lack_code(verdict.outcome);
        let Evidence {
            ended,
            heard,
            mut guards,
            file_changes,
            context,
            elapsed,
            origin,
            message,
            started_ns,
            ..
        } = self;
        let report = heard.report.as_ref();
        // A child that has reported is not waiting for a statement's answer.
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let ended_ns = report
            .is_none()
            .then(|| started_ns.saturating_add(elapsed_ns));
        let asked = heard.queries.map(|told| told.asked(ended_ns, elapsed));
        let (queries, queries_more, database_changes) = match asked {
            Some(QueryReport {
                queries,
                more,
                changes,
            }) => (Some(queries), more, changes),
            None => (None, None, BTreeMap::new()),
        };
        let (_, child_guards) = heard.ready.unzip();
        let taken = heard.guarded.into_iter().chain(child_guards).flatten();
        guards.extend(taken);
        let memory_peak_bytes = match (report, &heard.stopped) {
            (Some(report), _) => report.memory_peak_bytes,
            (None, Some((_, _, peak))) => *peak,
            (None, None) => 0,
        };
        let duration_ms = match times.snippet {
            // Only the child knows how the time divides between the two, so their sum counts.
            Some(snippet) if verdict.outcome != Outcome::TimedOut => {
                let both = snippet + times.encode.unwrap_or_default();
                both.min(elapsed).as_millis()
            }
            _ => elapsed.as_millis(),
        };
        let duration_ms = u64::try_from(duration_ms).unwrap_or(u64::MAX);
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let timings_ms = Timings {
            start: times.start.map(ms),
            boot: times.boot.map(ms),
            snippet: times.snippet.map(ms),
            encode: times.encode.map(ms),
            total: ms(elapsed),
        };
        let (out_cut, stdout) = text(&ended.stdout);
        let (err_cut, stderr) = text(&ended.stderr);
        let output_truncated = (out_cut || err_cut).then_some(OutputTruncated {
            stdout: ended.stdout.total,
            stderr: ended.stderr.total,
        });
        EvalResult {
            result: verdict.result,
            stdout,
            stderr,
            exception: verdict.exception,
            duration_ms,
            memory_peak_bytes,
            exit_code: verdict.exit_code,
            timed_out: verdict.outcome == Outcome::TimedOut,
            diagnostics: Diagnostics {
                outcome: verdict.outcome,
                phase: verdict.phase,
                message: match (verdict.message, message) {
                    (Some(verdict), Some(message)) => Some(format!("{verdict} {message}")),
                    (verdict, message) => verdict.or(message),
                },
                location: verdict.location,
                hints: verdict.hints,
                signal: verdict.signal,
                timings_ms,
                start: origin.name().into(),
                start_reason: origin.reason(),
                pool: false,
                blocked: heard.refused.list(&context, has_failed),
                file_changes,
                queries,
                queries_more,
                database_changes,
                output_truncated,
                resolved: heard.resolved.into_iter().collect(),
                redacted: Vec::new(),
                guards,
            },
        }
    }

    /// The child's own times, corrected as far as they contradict the host's clock.
    fn times(&self) -> Times {
        let us = |us: u64| Duration::from_micros(us).min(self.elapsed);
        let start = self
            .heard
            .entered_ns
            .map(|at| Duration::from_nanos(at.saturating_sub(self.started_ns)).min(self.elapsed));
        let boot = self.heard.ready.as_ref().map(|(boot_us, _)| us(*boot_us));
        let report = self.heard.report.as_ref();
        let encode = report.and_then(|report| report.encode_us).map(us);
        let snippet = report.and_then(|report| report.snippet_us).map(us);
        let (Some(ready_at), Some(snippet)) = (self.heard.ready_at, snippet) else {
            return Times {
                start,
                boot,
                snippet,
                encode,
            };
        };
        // From ready to ended, including anything else the child did in between.
        let window = self.ended_at.saturating_duration_since(ready_at);
        let encode = encode.map(|encode| encode.min(window));
        let told = snippet + encode.unwrap_or_default();
        let slack = CLOCK_SLACK.max(window / CLOCK_SLACK_SHARE);
        Times {
            start,
            boot,
            snippet: Some(match told + slack >= window {
                true => snippet.min((window + slack).saturating_sub(encode.unwrap_or_default())),
                false => window.saturating_sub(encode.unwrap_or_default()),
            }),
            encode,
        }
    }

    /// Decides the outcome: the deadline comes first, then the kernel's status, then the child's
    /// report.
    fn verdict(&self) -> Verdict {
        if self.ended.timed_out {
            let (phase, location) = match &self.heard.stopped {
                Some((phase, location, _)) => (*phase, location.clone()),
                None => (self.phase(), None),
            };
            return Verdict {
                phase: Some(phase),
                location,
                message: Some("The deadline passed.".into()),
                ..Verdict::new(Outcome::TimedOut, exit_codes::TIMED_OUT)
            };
        }
        match self.ended.status {
            Status::Signalled(signal) => Verdict {
                phase: Some(self.phase()),
                signal: Some(signal),
                message: Some(format!("The child was ended by signal {signal}.")),
                ..Verdict::new(Outcome::Signalled, exit_codes::SIGNAL_BASE + signal)
            },
            Status::Exited(code) => match self
                .heard
                .report
                .as_ref()
                .and_then(|report| reported(report, code))
            {
                Some(verdict) => verdict,
                None => Verdict {
                    phase: Some(self.phase()),
                    message: Some("The child ended without a genuine report.".into()),
                    ..Verdict::new(Outcome::NoReport, if code == 0 { 1 } else { code })
                },
            },
        }
    }

    /// The phase under way, judging by the child's messages.
    fn phase(&self) -> Phase {
        match (&self.heard.report, &self.heard.ready) {
            (Some(report), _) => report.phase,
            (None, Some(_)) => Phase::Snippet,
            (None, None) => Phase::Boot,
        }
    }
}

/// The verdict of the child's report, if it matches the kernel's exit status; `None` if it does
/// not, or if the report holds what no encoder produces.
fn reported(report: &Report, code: i32) -> Option<Verdict> {
    let phase = Some(report.phase);
    let exit_code = report.ending.exit_code();
    let verdict = match &report.ending {
        Ending::Returned(value) => Verdict {
            result: Some(read_value(value)?),
            ..Verdict::new(Outcome::Returned, exit_code)
        },
        Ending::Threw(exception) => Verdict {
            phase,
            exception: Some(read_exception(exception)?),
            ..Verdict::new(Outcome::Threw, exit_code)
        },
        Ending::Exited(_) => Verdict {
            phase,
            ..Verdict::new(Outcome::Exited, exit_code)
        },
        Ending::Fatal { message, location } => Verdict {
            phase,
            message: Some(shorten(message, STRING_MAX)),
            location: Some(location.clone()),
            ..Verdict::new(Outcome::Fatal, exit_code)
        },
        Ending::OutOfMemory { message, location } => Verdict {
            phase,
            message: Some(shorten(message, STRING_MAX)),
            location: location.clone(),
            ..Verdict::new(Outcome::OutOfMemory, exit_code)
        },
        Ending::BootFailed { message, exception } => Verdict {
            phase: Some(Phase::Boot),
            message: Some(shorten(message, STRING_MAX)),
            exception: match exception {
                Some(exception) => Some(read_exception(exception)?),
                None => None,
            },
            ..Verdict::new(Outcome::BootFailed, exit_code)
        },
    };
    // If memory runs out beneath PHP, the process ends the way PHP's own allocator ends it.
    let is_exhausted = verdict.outcome == Outcome::OutOfMemory && code == exit_codes::EXHAUSTED;
    (verdict.exit_code == code || is_exhausted).then(|| Verdict {
        hints: hints::bounded(report.hints.clone()),
        ..verdict
    })
}

/// The head of a stream as text, and whether it was truncated.
pub(crate) fn text(stream: &Captured) -> (bool, String) {
    let cut = stream.total > stream.head.len() as u64;
    if !cut {
        return (false, String::from_utf8_lossy(&stream.head).into_owned());
    }
    // A character split by the cut is left out instead of shown as broken. It spans at most the
    // last three bytes: a lead byte and its continuation bytes.
    let tail = stream
        .head
        .iter()
        .rev()
        .take(3)
        .position(|byte| *byte >= 0xC0)
        .map_or(0, |at| at + 1);
    let (whole, tail) = stream.head.split_at(stream.head.len() - tail);
    let split =
        std::str::from_utf8(tail).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none());
    let text = String::from_utf8_lossy(if split { whole } else { &stream.head });
    (true, format!("{text}\n{TRUNCATED}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn captured(head: &[u8], total: u64) -> Captured {
        Captured {
            head: head.to_vec(),
            total,
        }
    }

    #[test]
    fn an_ending_counts_with_the_exit_status_that_goes_with_it() {
        let returned = Report {
            ending: Ending::Returned("1".into()),
            phase: Phase::Snippet,
            memory_peak_bytes: 0,
            snippet_us: Some(5),
            encode_us: None,
            hints: vec!["a\nb".into(); 2],
        };
        assert_eq!(reported(&returned, 0).unwrap().hints, ["a?b"]);
        assert!((1..=255).all(|code| reported(&returned, code).is_none()));
        let exited = Report {
            ending: Ending::Exited(3),
            ..returned
        };
        assert_eq!(reported(&exited, 3).unwrap().exit_code, 3);
        assert!(reported(&exited, 0).is_none());
    }

    #[test]
    fn a_character_that_the_cut_went_through_is_left_out() {
        assert_eq!(text(&captured("a\u{20ac}".as_bytes(), 4)).1, "a\u{20ac}");
        assert_eq!(text(&captured(b"a\xE2\x82", 4)).1, "a\n...(truncated)");
        assert_eq!(text(&captured(b"a\xF0\x9F\x98", 9)).1, "a\n...(truncated)");
        assert_eq!(
            text(&captured("a\u{20ac}".as_bytes(), 5)).1,
            "a\u{20ac}\n...(truncated)"
        );
    }

    #[test]
    fn invalid_bytes_are_replaced_and_never_dropped() {
        assert_eq!(text(&captured(b"a\xFFb", 3)).1, "a\u{fffd}b");
        assert_eq!(text(&captured(b"a\xE2\x82", 3)).1, "a\u{fffd}");
        assert_eq!(text(&captured(b"a\xFF", 9)).1, "a\u{fffd}\n...(truncated)");
    }

    proptest! {
        #[test]
        fn valid_text_stays_itself_wherever_it_is_cut(whole in ".{0,40}", at in 0_usize..160) {
            let at = at.min(whole.len());
            let (cut, shown) = text(&captured(&whole.as_bytes()[..at], whole.len() as u64));
            prop_assert_eq!(cut, at < whole.len());
            let head = &whole[..whole.floor_char_boundary(at)];
            let expected = if cut { format!("{head}\n{TRUNCATED}") } else { whole.clone() };
            prop_assert_eq!(shown, expected);
        }
    }
}
