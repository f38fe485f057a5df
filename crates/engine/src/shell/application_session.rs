//! A session of an application, in an isolated PHP.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use altair_sandbox::{Captured, Ended, Status, Stream, with_files_of};

use super::{Answer, Booted, Completion, Judgement, Session, Standing};
use crate::began::Began;
use crate::bounds::{AFTERWARDS, OUTPUT_LIMIT};
use crate::child_messages::ChildMessages;
use crate::guards::GuardStates;
use crate::observer::{Observer, Silent};
use crate::origin::Origin;
use crate::redaction::output::{KnownSecrets, Redactor};
use crate::runtime::{LineEnd, LineRun, Runtime};
use crate::verdict::Evidence;
use crate::{Blocked, EvalError, EvalRequest, EvalResult, Evaluator, FileChanges};

/// How long the look at loaded files may take.
const LOOK_MAX: Duration = Duration::from_millis(100);

/// A session of the application of a request.
#[derive(Debug)]
pub struct ApplicationSession {
    evaluator: Evaluator,
    request: EvalRequest,
    live: Option<Live>,
}

/// A session that has booted.
#[derive(Debug)]
struct Live {
    runtime: Runtime,
    /// The secrets that are kept out of answers; `None` if none are.
    secrets: Option<KnownSecrets>,
    /// The names of its variables.
    variables: Vec<String>,
    /// The files that it has loaded, as they were then.
    files: HashMap<PathBuf, Option<Stamp>>,
    /// The guards, until an answer has told of them.
    guards: Option<GuardStates>,
}

/// What tells a file from its later version.
type Stamp = (u64, u64, i64, i64);

impl ApplicationSession {
    /// A session that has not booted yet. The request's snippet is not run.
    #[must_use]
    pub fn new(evaluator: Evaluator, request: EvalRequest) -> Self {
        let request = EvalRequest {
            snippet: Vec::new(),
            ..request
        };
        Self {
            evaluator,
            request,
            live: None,
        }
    }

    fn live(&mut self) -> Result<&mut Live, EvalError> {
        let live = self.live.as_mut();
        live.ok_or_else(|| EvalError::Launch("The application has not booted.".into()))
    }
}

impl Session for ApplicationSession {
    fn restart(&mut self, observer: &mut dyn Observer) -> Result<Booted, EvalError> {
        self.live = None;
        let (started, secrets) = self.evaluator.start_session(&self.request, observer)?;
        let runtime = match started {
            Ok(runtime) => runtime,
            Err(result) => return Ok(Booted::Failed(result)),
        };
        let mut live = Live {
            guards: Some(runtime.guards().clone()),
            runtime,
            secrets,
            variables: Vec::new(),
            files: HashMap::new(),
        };
        // The session begins with it, and tells of what boot has loaded.
        let _ = live.runtime.judge(b"", &mut Silent);
        live.note_loaded();
        self.live = Some(live);
        Ok(Booted::Ready)
    }

    fn line(&mut self, code: &[u8], observer: &mut dyn Observer) -> Result<Answer, EvalError> {
        if self.live.is_none()
            && let Booted::Failed(result) = self.restart(observer)?
        {
            return Ok(Answer {
                result: Some(*result),
                standing: Standing::Kept,
            });
        }
        let live = self.live()?;
        let (result, ended) = live.line(code, observer)?;
        let standing = match ended {
            AfterLine::GoesOn => Standing::Kept,
            AfterLine::Over(status) => {
                self.live = None;
                Standing::Over { status }
            }
            AfterLine::Gone { why, lost } => {
                self.live = None;
                // If it does not boot any more, the next line says why.
                let _ = self.restart(&mut Silent)?;
                Standing::Restarted { lost, why }
            }
        };
        Ok(Answer { result, standing })
    }

    fn judge(&mut self, text: &[u8]) -> Result<Judgement, EvalError> {
        self.live()?.runtime.judge(text, &mut Silent)
    }

    fn complete(&mut self, text: &[u8]) -> Result<Completion, EvalError> {
        self.live()?.runtime.complete(text, &mut Silent)
    }

    fn changes(&mut self) -> Result<Option<FileChanges>, EvalError> {
        if self.request.allow_writes {
            return Ok(None);
        }
        Ok(Some(
            self.live()?.runtime.file_changes().unwrap_or_default(),
        ))
    }

    fn blocked(&mut self) -> Result<Vec<Blocked>, EvalError> {
        Ok(self.live()?.runtime.blocked())
    }

    fn changed_files(&mut self) -> Vec<PathBuf> {
        self.live
            .as_mut()
            .map_or_else(Vec::new, Live::changed_files)
    }
}

/// What became of a session with a line.
enum AfterLine {
    GoesOn,
    /// The line called `exit` with this status.
    Over(i32),
    /// Its process has ended.
    Gone {
        why: String,
        lost: Vec<String>,
    },
}

impl Live {
    /// Runs a line. No result: the observer has ended it, or the process was gone before.
    fn line(
        &mut self,
        code: &[u8],
        observer: &mut dyn Observer,
    ) -> Result<(Option<EvalResult>, AfterLine), EvalError> {
        let began = Began::now();
        let left = self.runtime.variables_of_boot();
        let mut redactor = Redactor::new(observer, self.secrets.clone());
        let mut printed = Printed::of(&mut redactor);
        let _ = printed.redactor.boot_is_over(&left);
        let run = self.runtime.line(code, &mut printed)?;
        let Printed { stdout, stderr, .. } = printed;
        self.note_loaded();
        let evidence = |ended: Ended, heard: ChildMessages, guards| Evidence {
            ended: Ended {
                stdout,
                stderr,
                layer: None,
                ..ended
            },
            heard,
            guards,
            file_changes: None,
            context: self.runtime.context().clone(),
            started_ns: began.ns,
            elapsed: began.at.elapsed(),
            ended_at: Instant::now(),
            origin: Origin::Warm,
            message: None,
        };
        let LineRun {
            end,
            by_observer,
            stopped,
            refused,
        } = run;
        let mut heard = ChildMessages {
            stopped,
            refused,
            // As of a child that was ready when the line came.
            ready: Some((0, Vec::new())),
            ready_at: Some(began.at),
            ..ChildMessages::default()
        };
        let (evidence, after) = match end {
            LineEnd::Ran {
                report,
                was_stopped,
                variables,
            } => {
                let status = report.ending.exit_code();
                let is_exit = matches!(report.ending, crate::channel::Ending::Exited(_));
                heard.report = Some(*report);
                self.variables = variables;
                let after = match is_exit && !was_stopped {
                    true => AfterLine::Over(status),
                    false => AfterLine::GoesOn,
                };
                let guards = self.guards.take().unwrap_or_default();
                (
                    evidence(ended_by(status, was_stopped), heard, guards),
                    after,
                )
            }
            LineEnd::Ended(ended, report) => {
                let why = self.runtime.unusable().unwrap_or_default();
                let lost = std::mem::take(&mut self.variables);
                heard.report = report.map(|report| *report);
                let guards = GuardStates::new();
                (
                    evidence(*ended, heard, guards),
                    AfterLine::Gone { why, lost },
                )
            }
            LineEnd::Gone => {
                // The line was written for what the session held: it does not run without it.
                let why = self.runtime.unusable();
                let why = why.unwrap_or_else(|| "it gave no answer".into());
                let lost = std::mem::take(&mut self.variables);
                return Ok((None, AfterLine::Gone { why, lost }));
            }
        };
        let until = Instant::now() + AFTERWARDS;
        let result = redactor.finish(&left, evidence.into_result(), until);
        Ok(((!by_observer).then_some(result), after))
    }

    /// Looks at files that the session says it has loaded.
    fn note_loaded(&mut self) {
        let paths: Vec<PathBuf> = self
            .runtime
            .take_loaded()
            .iter()
            .map(|path| PathBuf::from(std::ffi::OsStr::from_bytes(path)))
            .filter(|path| path.is_absolute() && !self.files.contains_key(path))
            .collect();
        self.files.extend(self.stamps(paths));
    }

    /// The files that have changed since they were looked at last.
    fn changed_files(&mut self) -> Vec<PathBuf> {
        let now = self.stamps(self.files.keys().cloned().collect());
        let mut changed = Vec::new();
        for (path, stamp) in now {
            if self.files.get(&path).is_some_and(|known| *known != stamp) {
                changed.push(path.clone());
                self.files.insert(path, stamp);
            }
        }
        changed.sort_unstable();
        changed
    }

    /// How files are now; `None` for one that is not there. The session names them, so they are
    /// looked at as its user.
    fn stamps(&self, paths: Vec<PathBuf>) -> Vec<(PathBuf, Option<Stamp>)> {
        let look = move || {
            let stamps = paths.into_iter().map(|path| {
                let stamp = path.metadata().ok().map(|meta| {
                    let changed = meta.mtime_nsec();
                    (meta.ino(), meta.size(), meta.mtime(), changed)
                });
                (path, stamp)
            });
            stamps.collect()
        };
        with_files_of(self.runtime.context().user, LOOK_MAX, look).unwrap_or_default()
    }
}

/// The end of a line after which its process goes on, as if it had ended with it.
fn ended_by(status: i32, timed_out: bool) -> Ended {
    Ended {
        status: Status::Exited(status),
        timed_out,
        idled: false,
        interrupted: false,
        undelivered: false,
        stdout: Captured::default(),
        stderr: Captured::default(),
        layer: None,
        elapsed: Duration::ZERO,
    }
}

/// What a line has printed, passed on as it comes.
struct Printed<'r, 'o> {
    redactor: &'r mut Redactor<'o>,
    stdout: Captured,
    stderr: Captured,
}

impl<'r, 'o> Printed<'r, 'o> {
    fn of(redactor: &'r mut Redactor<'o>) -> Self {
        Self {
            redactor,
            stdout: Captured::default(),
            stderr: Captured::default(),
        }
    }
}

impl Observer for Printed<'_, '_> {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        let kept = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let room = OUTPUT_LIMIT.saturating_sub(kept.head.len());
        kept.head
            .extend_from_slice(chunk.get(..room).unwrap_or(chunk));
        kept.total += chunk.len() as u64;
        self.redactor.output(stream, chunk)
    }

    fn tick(&mut self) -> ControlFlow<()> {
        self.redactor.tick()
    }
}
