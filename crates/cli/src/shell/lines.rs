//! Runs lines, and says what became of them and of their session.

use std::io;
use std::ops::ControlFlow;

use altair_engine::shell::{Answer, Booted, Standing};
use altair_engine::{EvalError, Observer};
use altair_sandbox::{CaughtSignals, Stream};
use nix::libc::SIGINT;

use super::{Setting, Shared, commands::Command, told};
use crate::escape;
use crate::failure::{Failure, reason};
use crate::human;
use crate::progress::Progress;

/// Who may end a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CtrlC {
    /// It ends the line that runs.
    EndsLine,
    /// It ends the whole program, as usual.
    EndsAll,
}

/// Runs lines in a session.
pub struct Lines<'a> {
    session: &'a Shared,
    setting: &'a Setting,
    ctrl_c: CtrlC,
}

/// What there is to show.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// The answer, as `altair eval` shows it.
    pub text: String,
    /// What became of the session, a sentence each.
    pub notices: Vec<String>,
}

impl<'a> Lines<'a> {
    /// Lines of this session.
    pub fn of(session: &'a Shared, setting: &'a Setting, ctrl_c: CtrlC) -> Self {
        Self {
            session,
            setting,
            ctrl_c,
        }
    }

    /// Boots, and anew if it was booted. What is shown is why it failed, if it did.
    ///
    /// # Errors
    ///
    /// If nothing could be booted.
    pub fn boot(&mut self) -> Result<Option<String>, Failure> {
        let session = self.session;
        match self.observed(|observer| session.borrow_mut().restart(observer))? {
            Ok(Booted::Ready) => Ok(None),
            Ok(Booted::Failed(result)) => Ok(Some(human::render(&result, self.setting.theme))),
            Err(error) => Err(Failure::new(error.to_string())),
        }
    }

    /// Runs a line.
    ///
    /// # Errors
    ///
    /// If nothing was run.
    pub fn run(&mut self, code: &[u8]) -> Result<Answer, Failure> {
        let session = self.session;
        match self.observed(|observer| session.borrow_mut().line(code, observer))? {
            // It was ended before it had begun.
            Err(EvalError::Interrupted) => Ok(Answer {
                result: None,
                standing: Standing::Kept,
            }),
            ran => ran.map_err(|error| Failure::new(error.to_string())),
        }
    }

    /// An answer for people.
    pub fn show(&mut self, answer: &Answer) -> Shown {
        let theme = self.setting.theme;
        let text = match &answer.result {
            Some(result) => human::render(result, theme),
            None if answer.standing == Standing::Kept => {
                format!("{} The line was ended.\n", theme.bad("✗"))
            }
            // It was ended the hard way, or there was nothing any more that it could run in.
            None => format!("{} The line did not run to its end.\n", theme.bad("✗")),
        };
        let notices = told::standing(&answer.standing).into_iter().collect();
        Shown { text, notices }
    }

    /// Files that have changed since they were loaded, in a sentence.
    pub fn changed_files(&mut self) -> Option<String> {
        let changed = self.session.borrow_mut().changed_files();
        told::changed_files(&changed, &self.setting.root)
    }

    /// What there is to show of a command; `history` are the last lines, if they are known.
    ///
    /// # Errors
    ///
    /// If the session cannot say.
    pub fn command(
        &mut self,
        command: Command,
        history: Option<&[&str]>,
    ) -> Result<String, Failure> {
        let failed = |error: EvalError| Failure::new(error.to_string());
        let theme = self.setting.theme;
        Ok(match command {
            Command::Help => super::commands::help(),
            Command::Restart => match self.boot()? {
                None => theme.dim("booted anew; no variables are left") + "\n",
                Some(why) => why,
            },
            Command::Changes => {
                let changes = self.session.borrow_mut().changes().map_err(failed)?;
                told::changes(changes.as_ref(), self.setting.writes, theme)
            }
            Command::Blocked => {
                let blocked = self.session.borrow_mut().blocked().map_err(failed)?;
                told::blocked(&blocked, theme)
            }
            Command::History => match history {
                Some(lines) => told::history(lines),
                None => "  no history is kept without a terminal\n".into(),
            },
            // Nobody asks: it leaves before.
            Command::Quit => String::new(),
        })
    }

    /// Does something that takes its time, with a progress line and an ear for Ctrl-C.
    fn observed<T>(
        &self,
        doing: impl FnOnce(&mut dyn Observer) -> Result<T, EvalError>,
    ) -> Result<Result<T, EvalError>, Failure> {
        let caught = match self.ctrl_c {
            CtrlC::EndsAll => None,
            CtrlC::EndsLine => Some(caught()?),
        };
        // One that ended the line before came for that one.
        if caught.is_some() {
            let _ = CaughtSignals::take(&[SIGINT]);
        }
        let mut observer = Waiting {
            progress: Progress::on_stderr(self.setting.deadline),
            is_endable: caught.is_some(),
        };
        Ok(doing(&mut observer))
    }
}

/// Ctrl-C is caught until this is dropped.
///
/// # Errors
///
/// If the system refuses it.
pub fn caught() -> Result<CaughtSignals, Failure> {
    CaughtSignals::catch(&[SIGINT])
        .map_err(|error| Failure::new(format!("signals cannot be caught: {}", reason(&error))))
}

/// A sentence of the shell's own, in a line.
pub fn sentence(text: &str, setting: &Setting) -> String {
    format!("  {}\n", setting.theme.notice(&escape::line(text)))
}

/// Waits for a line to end.
struct Waiting {
    progress: Progress<io::Stderr>,
    is_endable: bool,
}

impl Observer for Waiting {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        self.progress.output(stream, chunk)
    }

    fn listens(&self) -> bool {
        self.progress.listens()
    }

    fn tick(&mut self) -> ControlFlow<()> {
        self.progress.tick()?;
        if self.is_endable && CaughtSignals::take(&[SIGINT]).is_some() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
