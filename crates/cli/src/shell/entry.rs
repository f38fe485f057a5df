//! What was typed: PHP, or something for the shell itself.

use super::commands::Command;

/// Something that was typed, from its first character on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Nothing.
    Blank,
    /// The wish to leave.
    Leave,
    /// A command.
    Command(Command),
    /// A command that does not exist.
    Unknown(String),
    /// PHP.
    Snippet,
}

impl Entry {
    /// What `text` is.
    pub fn of(text: &[u8]) -> Self {
        let text = text.trim_ascii();
        if text.is_empty() {
            return Self::Blank;
        }
        if text.starts_with(b":") {
            let name = String::from_utf8_lossy(text);
            return match Command::named(&name) {
                Some(Command::Quit) => Self::Leave,
                Some(command) => Self::Command(command),
                None => Self::Unknown(name.into_owned()),
            };
        }
        // `quit` is no PHP but a constant that nobody has; with anything behind it, it is.
        let word = text.strip_suffix(b";").unwrap_or(text).trim_ascii_end();
        if word.eq_ignore_ascii_case(b"exit") || word.eq_ignore_ascii_case(b"quit") {
            return Self::Leave;
        }
        Self::Snippet
    }
}
