//! Colours, or none.

use owo_colors::{OwoColorize, Style};

/// How text is set off. Everything passes through here, so that plain output has no escapes at all.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    color: bool,
}

impl Theme {
    /// A theme with colours, or a plain one.
    pub fn new(color: bool) -> Self {
        Self { color }
    }

    /// A success.
    pub fn good(self, text: &str) -> String {
        self.paint(text, Style::new().green().bold())
    }

    /// A failure.
    pub fn bad(self, text: &str) -> String {
        self.paint(text, Style::new().red().bold())
    }

    /// What matters less.
    pub fn dim(self, text: &str) -> String {
        self.paint(text, Style::new().dimmed())
    }

    /// A name: a key, a property.
    pub fn name(self, text: &str) -> String {
        self.paint(text, Style::new().cyan())
    }

    /// Something to act on.
    pub fn notice(self, text: &str) -> String {
        self.paint(text, Style::new().yellow())
    }

    fn paint(self, text: &str, style: Style) -> String {
        if self.color {
            text.style(style).to_string()
        } else {
            text.to_owned()
        }
    }
}
