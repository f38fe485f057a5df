//! What a session asks of a runtime: lines to run, texts to judge and to complete.

use std::time::{Duration, Instant};

use altair_sandbox::Ended;

use super::ear::{SoftEnd, UNWINDING};
use super::{Asked, Runtime, encoded};
use crate::EvalError;
use crate::blocked::{Context, Refused};
use crate::channel::{Left, Order, Report};
use crate::observer::Observer;
use crate::result::{Location, Phase};
use crate::shell::{Completion, Judgement};

/// How long a text may take to be judged or completed.
const ASIDE: Duration = Duration::from_secs(2);

/// A line that has ended.
pub(crate) struct LineRun {
    /// How.
    pub end: LineEnd,
    /// Whether the observer has asked for that.
    pub by_observer: bool,
    /// Where it was when it was asked to end.
    pub stopped: Option<(Phase, Option<Location>, u64)>,
    /// What was refused to it.
    pub refused: Refused,
}

/// How a line has ended.
pub(crate) enum LineEnd {
    /// The session goes on.
    Ran {
        /// What it says of the line.
        report: Box<Report>,
        /// Whether it was asked to end and did.
        was_stopped: bool,
        /// The names of the session's variables.
        variables: Vec<String>,
    },
    /// The process has ended with it.
    Ended(Box<Ended>, Option<Box<Report>>),
    /// There is no process.
    Gone,
}

impl Runtime {
    /// Runs a line of a session. At its deadline, and when the observer asks for it, its code
    /// unwinds; a process that does not unwind is ended.
    ///
    /// # Errors
    ///
    /// If the order cannot be made.
    pub(crate) fn line(
        &mut self,
        text: &[u8],
        observer: &mut dyn Observer,
    ) -> Result<LineRun, EvalError> {
        let packets = encoded(&Order::Line(text.len() as u64), Box::new(text.to_vec()))?;
        let before = std::mem::take(&mut self.heard.messages.refused);
        self.heard.messages.stopped = None;
        self.heard.messages.report = None;
        self.heard.begin(0);
        let mut soft = SoftEnd::at(Instant::now() + self.timeout);
        let asked = self.ask(
            packets.into(),
            self.timeout + UNWINDING,
            Some(&mut soft),
            observer,
        );
        let end = match asked {
            Asked::Left(Left::Ran {
                report,
                was_stopped,
                variables,
            }) => LineEnd::Ran {
                report: Box::new(report),
                was_stopped: was_stopped && soft.was_asked(),
                variables,
            },
            Asked::Ended(ended) => {
                let report = self.heard.messages.report.take().map(Box::new);
                LineEnd::Ended(ended, report)
            }
            Asked::Left(_) | Asked::Unusable => LineEnd::Gone,
        };
        let refused = self.heard.messages.refused.clone();
        self.heard.messages.refused = before.and(&refused);
        Ok(LineRun {
            end,
            by_observer: soft.by_observer,
            stopped: self.heard.messages.stopped.take(),
            refused,
        })
    }

    /// Whether a text is a whole snippet.
    ///
    /// # Errors
    ///
    /// If the session does not say.
    pub(crate) fn judge(
        &mut self,
        text: &[u8],
        observer: &mut dyn Observer,
    ) -> Result<Judgement, EvalError> {
        match self.aside(&Order::Judge(text.len() as u64), text, observer)? {
            Left::Judged(judgement) => Ok(judgement),
            _ => Err(no_answer()),
        }
    }

    /// What may stand at the end of a text.
    ///
    /// # Errors
    ///
    /// If the session does not say.
    pub(crate) fn complete(
        &mut self,
        text: &[u8],
        observer: &mut dyn Observer,
    ) -> Result<Completion, EvalError> {
        match self.aside(&Order::Complete(text.len() as u64), text, observer)? {
            Left::Completed(completion) if completion.from <= text.len() => Ok(completion),
            _ => Err(no_answer()),
        }
    }

    fn aside(
        &mut self,
        order: &Order,
        text: &[u8],
        observer: &mut dyn Observer,
    ) -> Result<Left, EvalError> {
        let packets = encoded(order, Box::new(text.to_vec()))?;
        self.heard.begin(0);
        match self.ask(packets.into(), ASIDE, None, observer) {
            Asked::Left(left) => Ok(left),
            Asked::Ended(_) | Asked::Unusable => Err(no_answer()),
        }
    }

    /// The files that its code has loaded since they were last asked for.
    pub(crate) fn take_loaded(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.heard.loaded)
    }

    /// Variables left by boot that may hold secrets.
    pub(crate) fn variables_of_boot(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let own = self.heard.messages.variables.iter();
        own.chain(&self.boot.variables).cloned().collect()
    }

    /// What the wording of refusals depends on.
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }
}

fn no_answer() -> EvalError {
    EvalError::Launch("The session gave no answer.".into())
}
