//! The messages of a child, as far as they are plausible.

use std::time::{Duration, Instant, SystemTime};

use crate::EvalError;
use crate::blocked::Refused;
use crate::channel::{Ending, Message, Report};
use crate::encode::shorten;
use crate::guards::{Insisted, ToldStates, shortened, unmet};
use crate::launch::Unloaded;
use crate::queries::CollectedQueries;
use crate::result::{Location, Phase};

/// Bytes to keep of a state that a child reports.
const STATE_MAX: usize = 1000;
/// Bytes to show of a child's reason.
const WHY_MAX: usize = 1000;
/// Threads to name.
const THREADS_SHOWN: usize = 16;

/// The time since the epoch.
fn now() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default()
}

/// The messages of a child, as far as they are plausible.
///
/// Until the child is ready, no part of the snippet has run: at worst the project's code forges
/// what is said about guards and boot. From then on native code may be speaking, and it can know
/// the run's secret. So only refusals, database statements, the meaning of class names, the position
/// at the deadline, and one ending are accepted.
#[derive(Debug, Default)]
pub(crate) struct ChildMessages {
    pub entered_ns: Option<u64>,
    pub ready: Option<(u64, ToldStates)>,
    /// When the host received `ready`.
    pub ready_at: Option<Instant>,
    /// When boot was over, by [`timestamp`](crate::file_changes::timestamp).
    pub boot_ended: Option<Duration>,
    pub stopped: Option<(Phase, Option<Location>, u64)>,
    pub report: Option<Report>,
    /// The states of the guards that the child applied before boot.
    pub guarded: Option<ToldStates>,
    /// The child has a second thread.
    pub has_threads: bool,
    /// What was refused.
    pub refused: Refused,
    pub unloaded: Option<Unloaded>,
    /// Why the child cannot do its work.
    pub unable: Option<String>,
    /// The statements it sends to databases, if they are to be reported.
    pub queries: Option<CollectedQueries>,
    /// Variables left by boot that may hold secrets.
    pub variables: Vec<(Vec<u8>, Vec<u8>)>,
    /// Short class names of the snippet and the classes that they mean.
    pub resolved: Vec<(String, String)>,
}

impl ChildMessages {
    /// Records a message, or a packet that is not one.
    pub(crate) fn take(&mut self, message: Option<Message>, packet: &[u8]) {
        match message {
            Some(Message::Refused(blocked)) => self.refused.by_child(blocked),
            Some(Message::Outside(outside)) => self.refused.outside(outside),
            Some(Message::Sought(names)) => self.refused.sought(names),
            Some(Message::Resolved(resolved))
                if self.ready.is_some() && self.resolved.is_empty() =>
            {
                self.resolved = resolved;
            }
            Some(Message::Queries(news)) => {
                if let Some(queries) = &mut self.queries {
                    queries.take(news);
                }
            }
            Some(Message::Stopped {
                phase,
                location,
                memory_peak_bytes,
            }) => self.stopped = Some((self.possible(phase), location, memory_peak_bytes)),
            Some(Message::Report(report)) if self.report.is_none() => {
                let ready = self.ready.is_some();
                let is_of_snippet = matches!(
                    report.ending,
                    Ending::Returned(_) | Ending::Threw(_) | Ending::Exited(_)
                );
                let is_of_boot = matches!(report.ending, Ending::BootFailed { .. });
                if ready && !is_of_boot || !ready && !is_of_snippet {
                    self.report = Some(Report {
                        phase: self.possible(report.phase),
                        ..report
                    });
                }
            }
            Some(message) if self.ready.is_none() => self.before_snippet(message),
            Some(_) => {}
            // Before the child's own code has begun, this may be the report of a PHP without the
            // extension; later it is noise.
            None if self.entered_ns.is_none() && self.ready.is_none() => {
                self.unloaded = serde_json::from_slice(packet).ok();
            }
            None => {}
        }
    }

    /// Records what a child says before it is ready, each thing once.
    fn before_snippet(&mut self, message: Message) {
        let own = |guards: ToldStates| {
            let own = guards.into_iter();
            own.filter(|(guard, state)| guard.may_child_say(state))
                .map(|(guard, state)| (guard, shortened(state, STATE_MAX)))
                .collect::<ToldStates>()
        };
        match message {
            Message::Entered { at_ns } => self.entered_ns = self.entered_ns.or(Some(at_ns)),
            Message::Guarded { guards } if self.guarded.is_none() => {
                self.guarded = Some(own(guards));
            }
            Message::Ready {
                boot_us,
                guards,
                entered_ns,
                boot_ended,
            } => {
                // States reported before the application ran cannot be replaced after boot.
                let mut guards = own(guards);
                let told = |guard| {
                    self.guarded
                        .iter()
                        .flatten()
                        .any(|(told, _)| *told == guard)
                };
                guards.retain(|(guard, _)| !told(*guard));
                // Boot has not ended the run, then, whatever the child reported before.
                self.report = None;
                self.ready = Some((boot_us, guards));
                self.ready_at = Some(Instant::now());
                self.boot_ended = Some(boot_ended.min(now()));
                self.entered_ns = self.entered_ns.or(entered_ns);
            }
            Message::Variables(variables) if self.variables.is_empty() => {
                self.variables = variables;
            }
            Message::Unable { why } => self.unable = Some(shorten(&why, WHY_MAX)),
            Message::SecondThread if self.guarded.is_none() => self.has_threads = true,
            // `Booted` is for the host of a template, which handles it itself.
            _ => {}
        }
    }

    /// Corrects a reported phase to one that can have been under way.
    fn possible(&self, said: Phase) -> Phase {
        match (&self.ready, said) {
            (None, _) => Phase::Boot,
            (Some(_), Phase::Boot) => Phase::Snippet,
            (Some(_), said) => said,
        }
    }

    /// Checks that the child has applied the required guards and has one thread. `threads` holds
    /// the names of its other threads, if it has any.
    ///
    /// # Errors
    ///
    /// [`EvalError::Launch`], naming the guard and what is wrong.
    pub(crate) fn check_guards(
        &self,
        insist: &[Insisted],
        threads: Option<&[String]>,
    ) -> Result<(), EvalError> {
        if let Some(names) = threads {
            return Err(EvalError::Launch(format!(
                "Nothing was run: the child has a second thread ({}) before its guards are on, and they would not cover it. An extension starts it: remove that extension from the child's ini files.",
                if names.is_empty() {
                    "its name could not be read".to_owned()
                } else {
                    names.join(", ")
                }
            )));
        }
        if self.guarded.is_none() && self.ready.is_none() {
            return Ok(()); // it has not come that far
        }
        let ready = self.ready.iter().flat_map(|(_, guards)| guards);
        let told = self.guarded.iter().flatten().chain(ready);
        for insisted in insist {
            let checked = insisted.check(told.clone());
            checked.map_err(|state| unmet(insisted.guard, &state))?;
        }
        Ok(())
    }
}

/// The names of all threads of a process except the first.
pub(crate) fn thread_names(pid: i32) -> Vec<String> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let own = pid.to_string();
    tasks
        .flatten()
        .filter(|task| task.file_name() != own.as_str())
        .take(THREADS_SHOWN)
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::guards::{Guard, GuardState};

    fn ready(guards: ToldStates) -> Message {
        Message::Ready {
            boot_us: 1,
            guards,
            entered_ns: None,
            boot_ended: Duration::ZERO,
        }
    }

    fn missing(because: &str) -> GuardState {
        GuardState::Missing {
            because: because.into(),
        }
    }

    fn reports(ending: Ending, phase: Phase) -> Message {
        Message::Report(Report {
            ending,
            phase,
            memory_peak_bytes: 0,
            snippet_us: Some(5),
            encode_us: None,
            hints: Vec::new(),
        })
    }

    fn heard(messages: Vec<Message>) -> ChildMessages {
        let mut heard = ChildMessages::default();
        for message in messages {
            heard.take(Some(message), b"");
        }
        heard
    }

    #[test]
    fn once_the_snippet_is_next_only_refusals_stops_and_one_ending_are_heard() {
        let returned = |text: &str| reports(Ending::Returned(text.into()), Phase::Snippet);
        let failed = Ending::BootFailed {
            message: String::new(),
            exception: None,
        };
        let heard = heard(vec![
            ready(vec![(Guard::Ini, GuardState::InForce)]),
            Message::Unable {
                why: "forged".into(),
            },
            Message::SecondThread,
            Message::Entered { at_ns: 1 },
            Message::Guarded {
                guards: vec![(Guard::Seccomp, missing("forged"))],
            },
            ready(vec![(Guard::Ini, missing("forged"))]),
            Message::Variables(vec![(b"APP_KEY".to_vec(), b"forged".to_vec())]),
            reports(failed, Phase::Boot),
            returned("1"),
            returned("2"),
            Message::Stopped {
                phase: Phase::Boot,
                location: None,
                memory_peak_bytes: 1,
            },
        ]);
        assert_eq!(heard.ready.unwrap().1, [(Guard::Ini, GuardState::InForce)]);
        assert!(heard.unable.is_none() && !heard.has_threads && heard.guarded.is_none());
        assert!(heard.entered_ns.is_none() && heard.variables.is_empty());
        let ending = heard.report.unwrap().ending;
        assert_eq!(ending, Ending::Returned("1".into()));
        assert_eq!(heard.stopped.unwrap().0, Phase::Snippet);
    }

    #[test]
    fn before_the_snippet_nothing_has_come_of_it() {
        let early = heard(vec![reports(Ending::Returned("1".into()), Phase::Snippet)]);
        assert!(early.report.is_none());
        let fatal = Ending::OutOfMemory {
            message: String::new(),
            location: None,
        };
        let early = heard(vec![reports(fatal, Phase::Encode)]);
        assert_eq!(early.report.unwrap().phase, Phase::Boot);
    }

    #[test]
    fn of_guards_a_child_says_what_it_can_know_and_before_boot_first() {
        let degraded = GuardState::Degraded {
            to: "something".into(),
        };
        let left_out = GuardState::LeftOut {
            because: "it likes to".into(),
        };
        let heard = heard(vec![
            Message::Guarded {
                guards: vec![
                    (Guard::Seccomp, GuardState::InForce),
                    (Guard::Filesystem, GuardState::InForce),
                    (Guard::Landlock, left_out),
                ],
            },
            ready(vec![
                (Guard::Seccomp, missing("forged")),
                (Guard::Privileges, GuardState::InForce),
                (Guard::Filesystem, degraded.clone()),
                (Guard::Ini, GuardState::InForce),
            ]),
        ]);
        assert_eq!(
            heard.guarded.unwrap(),
            [(Guard::Seccomp, GuardState::InForce)]
        );
        assert_eq!(
            heard.ready.unwrap().1,
            [
                (Guard::Filesystem, degraded),
                (Guard::Ini, GuardState::InForce)
            ]
        );
    }

    #[test]
    fn a_guard_that_nobody_has_told_of_is_not_in_force() {
        let insist = |guard, fully| vec![Insisted { guard, fully }];
        let silent = heard(vec![ready(vec![(Guard::Ini, GuardState::InForce)])]);
        let error = silent.check_guards(&insist(Guard::Seccomp, false), None);
        let said = error.unwrap_err().to_string();
        assert!(
            said.contains("`seccomp` is needed and is missing"),
            "{said}"
        );
        let told = |state| {
            heard(vec![
                Message::Guarded {
                    guards: vec![(Guard::Landlock, state)],
                },
                ready(Vec::new()),
            ])
        };
        let degraded = GuardState::Degraded {
            to: "a part".into(),
        };
        let landlock = |fully| insist(Guard::Landlock, fully);
        assert!(
            told(GuardState::InForce)
                .check_guards(&landlock(true), None)
                .is_ok()
        );
        assert!(
            told(degraded.clone())
                .check_guards(&landlock(false), None)
                .is_ok()
        );
        assert!(told(degraded).check_guards(&landlock(true), None).is_err());
        assert!(
            told(missing("no kernel"))
                .check_guards(&landlock(false), None)
                .is_err()
        );
    }
}
