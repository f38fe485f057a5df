//! Colours, if any.

use owo_colors::{OwoColorize, Style};

/// How text is highlighted. All output passes through here, so plain output has no escapes.
#[derive(Debug, Clone, Copy)]
pub struct Theme {
    color: bool,
}

impl Theme {
    /// Makes a theme with or without colours.
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

    /// An added line.
    pub fn added(self, text: &str) -> String {
        self.paint(text, Style::new().green())
    }

    /// A removed line.
    pub fn removed(self, text: &str) -> String {
        self.paint(text, Style::new().red())
    }

    /// Less important text.
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
