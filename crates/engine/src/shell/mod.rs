//! What a session of an application is to whoever shows it: lines in, answers out. Plain types, and the trait between
//! the two sides.

mod application_session;

use std::path::PathBuf;

use altair_sandbox::bounded::at_most;
use serde::{Deserialize, Serialize};

use crate::{Blocked, EvalError, EvalResult, FileChanges, Observer};

pub use application_session::ApplicationSession;

/// The most names that a completion has.
pub const NAMES_MAX: usize = 500;

/// An application that is booted and confined, and keeps its variables from line to line.
pub trait Session {
    /// Boots, and anew if it was booted: what the session held is lost. Called once before everything else.
    ///
    /// # Errors
    ///
    /// If no process could be started, or if `observer` ended the boot.
    fn restart(&mut self, observer: &mut dyn Observer) -> Result<Booted, EvalError>;

    /// Runs one line, which may have any number of lines of text. After a boot that failed it boots again first.
    ///
    /// # Errors
    ///
    /// If nothing was run. How the line itself ended is part of the answer.
    fn line(&mut self, code: &[u8], observer: &mut dyn Observer) -> Result<Answer, EvalError>;

    /// Whether `text` is a whole snippet, by PHP's own parser. Runs nothing of it.
    ///
    /// # Errors
    ///
    /// If the session cannot say.
    fn judge(&mut self, text: &[u8]) -> Result<Judgement, EvalError>;

    /// What may stand at the end of `text`. Runs no code of the application.
    ///
    /// # Errors
    ///
    /// If the session cannot say.
    fn complete(&mut self, text: &[u8]) -> Result<Completion, EvalError>;

    /// What was written so far; `None` if writes are real, as then nothing is kept apart.
    ///
    /// # Errors
    ///
    /// If the session cannot say.
    fn changes(&mut self) -> Result<Option<FileChanges>, EvalError>;

    /// What was refused so far, in order, each thing once.
    ///
    /// # Errors
    ///
    /// If the session cannot say.
    fn blocked(&mut self) -> Result<Vec<Blocked>, EvalError>;

    /// Files that the session has loaded and that have changed since, absolute. Each change is told once.
    fn changed_files(&mut self) -> Vec<PathBuf>;
}

/// How a boot ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Booted {
    /// Lines may come.
    Ready,
    /// The application could not be booted; why is told as an evaluation tells it.
    Failed(Box<EvalResult>),
}

/// What a line gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// As of an evaluation of the line; `None` if the observer ended it, or if the session was gone before it and the
    /// line was not run.
    pub result: Option<EvalResult>,
    /// What became of the session.
    pub standing: Standing,
}

impl Answer {
    /// Whether the line ran cleanly to its end.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.result.as_ref().is_some_and(EvalResult::ok)
    }
}

/// What became of a session with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It goes on with what the line has made, also where a fatal error has ended the line.
    Kept,
    /// The session had to begin anew.
    Restarted {
        /// The names of the variables that are lost, without `$`.
        lost: Vec<String>,
        /// The cause, as a clause: `the deadline passed`.
        why: String,
    },
    /// The line called `exit`: nothing goes on.
    Over {
        /// The status it gave.
        status: i32,
    },
}

/// Whether a text is a snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Judgement {
    /// It can be run. A parse error counts as whole, too: running it shows it.
    Whole,
    /// More is needed: a bracket, a string or a statement is open.
    Unfinished,
}

/// What may stand at the end of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The byte of the text from which each name replaces the rest.
    pub from: usize,
    /// The names, best first.
    #[serde(deserialize_with = "at_most::<NAMES_MAX, _, _>")]
    pub names: Vec<Name>,
}

/// A name that exists in the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// As it is to stand in the text; a variable begins with `$`.
    pub text: String,
    /// What it names.
    pub kind: NameKind,
}

/// What a name is the name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NameKind {
    /// A variable.
    Variable,
    /// A function.
    Function,
    /// A class, an interface, a trait or an enum.
    Class,
    /// A method.
    Method,
    /// A property.
    Property,
    /// A constant, also of a class, or an enum's case.
    Constant,
    /// An entry of the container.
    ContainerId,
}
