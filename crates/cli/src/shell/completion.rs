//! What Tab offers.

use altair_engine::shell::{Completion, Name, NameKind};

use super::commands::Command;
use crate::escape;

/// The most names that are offered at once. More would not be read.
pub const OFFERED: usize = 500;
/// What Tab types where nothing is to be completed: a step of PER Coding Style.
const INDENT: &str = "    ";

/// Something that may be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// What is typed.
    pub text: String,
    /// How it is listed.
    pub shown: String,
}

impl Offer {
    fn as_it_is(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            shown: text.to_owned(),
        }
    }

    fn of(name: Name) -> Self {
        let shown = match name.kind {
            NameKind::Function | NameKind::Method => format!("{}()", name.text),
            NameKind::ContainerId => format!("{} (container)", name.text),
            NameKind::Variable | NameKind::Class | NameKind::Property | NameKind::Constant => {
                name.text.clone()
            }
        };
        Self {
            text: name.text,
            shown,
        }
    }
}

/// What may be typed at the end of `text`, and from which byte on it replaces the rest. `ask` asks the session.
pub fn offers(text: &str, ask: impl FnOnce(&[u8]) -> Option<Completion>) -> (usize, Vec<Offer>) {
    let (before, line) = text.rsplit_once('\n').unwrap_or(("", text));
    if !before.is_empty() && line.trim_ascii().is_empty() {
        return (text.len(), vec![Offer::as_it_is(INDENT)]);
    }
    let typed = text.trim_ascii_start();
    if typed.starts_with(':') {
        let names = Command::ALL.map(Command::name).into_iter();
        let known = names.filter(|name| name.starts_with(typed));
        return (
            text.len() - typed.len(),
            known.map(Offer::as_it_is).collect(),
        );
    }
    let Some(Completion { from, names }) = ask(text.as_bytes()) else {
        return (text.len(), Vec::new());
    };
    if !text.is_char_boundary(from) {
        return (text.len(), Vec::new());
    }
    // Names come from the application, which can call a variable anything: nothing of it reaches the terminal raw.
    let plain = names
        .into_iter()
        .filter(|name| escape::line(&name.text) == name.text);
    (from, plain.take(OFFERED).map(Offer::of).collect())
}
