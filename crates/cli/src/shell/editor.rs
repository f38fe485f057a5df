//! The line editor: keys in, whole entries out.

use std::borrow::Cow;
use std::rc::Rc;

use altair_engine::shell::Judgement;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Behavior, ColorMode, CompletionType, Config, Context, Helper};

use super::Shared;
use super::completion::{self, Offer};
use super::entry::Entry;
use crate::failure::Failure;
use crate::human::Theme;
use crate::output;

/// What stands before each entry.
const PROMPT: &str = "php> ";
/// The most entries that Up goes back.
const REMEMBERED: usize = 10_000;

/// What came of a prompt.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed {
    /// A whole entry, of any number of lines.
    Entry(String),
    /// Ctrl-C: what was typed is forgotten.
    Nothing,
    /// Ctrl-D on an empty line, or the end of the terminal.
    End,
}

/// Reads entries from a terminal.
pub struct Editor {
    editor: rustyline::Editor<OfSession, MemHistory>,
    prompt: (String, String),
}

impl Editor {
    /// An editor that asks `session` what is whole and what names there are. While it exists, Ctrl-C ends nothing by
    /// itself.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be used.
    pub fn new(session: &Shared, theme: Theme) -> Result<Self, Failure> {
        let config = Config::builder()
            .max_history_size(REMEMBERED)
            .map_err(|error| unusable(&error))?
            .history_ignore_space(true)
            .completion_type(CompletionType::List)
            .completion_show_all_if_ambiguous(true)
            .color_mode(match output::takes_color() {
                true => ColorMode::Enabled,
                false => ColorMode::Disabled,
            })
            // Where standard output is not the terminal, the prompt does not belong there.
            .behavior(match output::is_terminal() {
                true => Behavior::Stdio,
                false => Behavior::PreferTerm,
            })
            .build();
        let history = MemHistory::with_config(&config);
        let mut editor =
            rustyline::Editor::with_history(config, history).map_err(|error| unusable(&error))?;
        editor.set_helper(Some(OfSession(Rc::clone(session))));
        Ok(Self {
            editor,
            prompt: (PROMPT.to_owned(), theme.dim(PROMPT)),
        })
    }

    /// Reads the next entry.
    ///
    /// # Errors
    ///
    /// If the terminal cannot be used.
    pub fn read(&mut self) -> Result<Typed, Failure> {
        match self.editor.readline(&self.prompt) {
            Ok(entry) => Ok(Typed::Entry(entry)),
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => Ok(Typed::Nothing),
            Err(ReadlineError::Eof) => Ok(Typed::End),
            Err(error) => Err(unusable(&error)),
        }
    }

    /// Adds an entry to what Up goes back to. Returns whether it is one to keep: not one that begins with a space, and
    /// not the same as the last.
    pub fn remember(&mut self, entry: &str) -> bool {
        // History in memory has no errors.
        self.editor.add_history_entry(entry).unwrap_or(false)
    }

    /// What Up goes back to, the newest at the end.
    pub fn remembered(&self) -> Vec<&str> {
        let history = self.editor.history().into_iter();
        history.map(String::as_str).collect()
    }
}

fn unusable(error: &ReadlineError) -> Failure {
    Failure::new(format!("the terminal cannot be used: {error}"))
}

/// Judges and completes by what the session says.
struct OfSession(Shared);

impl Helper for OfSession {}
impl Highlighter for OfSession {
    fn highlight_candidate<'c>(&self, candidate: &'c str, _: CompletionType) -> Cow<'c, str> {
        Cow::Borrowed(candidate)
    }
}
impl Hinter for OfSession {
    type Hint = String;
}

impl Validator for OfSession {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let text = context.input().as_bytes();
        let is_open = Entry::of(text) == Entry::Snippet
            && matches!(self.0.borrow_mut().judge(text), Ok(Judgement::Unfinished));
        Ok(match is_open {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for OfSession {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = line.get(..at).unwrap_or(line);
        let (from, offers) =
            completion::offers(typed, |text| self.0.borrow_mut().complete(text).ok());
        let pairs = offers.into_iter().map(|Offer { text, shown }| Pair {
            display: shown,
            replacement: text,
        });
        Ok((from, pairs.collect()))
    }
}
