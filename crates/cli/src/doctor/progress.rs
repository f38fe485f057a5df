//! A progress line on an interactive standard error during an examination.

use std::io::{self, IsTerminal, Write};

use altair_engine::doctor::Progress;

use crate::progress::ERASE;

/// Shows the examination's progress; erases itself when dropped.
pub struct Counter<W: Write> {
    terminal: Option<W>,
}

impl Counter<io::Stderr> {
    /// On standard error; silent if that is no terminal.
    pub fn on_stderr() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let stderr = io::stderr();
        Self::new((stderr.is_terminal() && !dumb).then_some(stderr))
    }
}

impl<W: Write> Counter<W> {
    fn new(terminal: Option<W>) -> Self {
        let mut counter = Self { terminal };
        counter.show("examining PHP and the kernel");
        counter
    }

    /// Shows how many guards have been attacked.
    pub fn draw(&mut self, progress: Progress) {
        self.show(&format!(
            "attacking the guards: {} of {}",
            progress.done, progress.all
        ));
    }

    fn show(&mut self, text: &str) {
        if let Some(terminal) = self.terminal.as_mut() {
            // Ignored: a closed terminal does not end the examination.
            let _ = write!(terminal, "{ERASE}{text}").and_then(|()| terminal.flush());
        }
    }
}

impl<W: Write> Drop for Counter<W> {
    fn drop(&mut self) {
        self.show("");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_and_cleans_up() {
        let mut terminal = Vec::new();
        let mut counter = Counter::new(Some(&mut terminal));
        counter.draw(Progress { done: 1, all: 9 });
        drop(counter);
        assert_eq!(
            String::from_utf8_lossy(&terminal),
            "\r\x1b[2Kexamining PHP and the kernel\
            \r\x1b[2Kattacking the guards: 1 of 9\
            \r\x1b[2K"
        );
    }

    #[test]
    fn without_a_terminal_nothing_is_drawn() {
        let mut counter: Counter<Vec<u8>> = Counter::new(None);
        counter.draw(Progress { done: 1, all: 9 });
        assert!(counter.terminal.is_none());
    }
}
