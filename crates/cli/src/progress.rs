//! A progress line on an interactive standard error during a long run.

use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use altair_engine::Observer;
use altair_sandbox::Stream;

/// A shorter run shows no line: it would only flash.
const QUIET: Duration = Duration::from_secs(1);
/// Time between two updates.
const INTERVAL: Duration = Duration::from_millis(100);
/// Moves to the start of the line and erases it: ECMA-48 `EL` with parameter 2.
pub const ERASE: &str = "\r\x1b[2K";

/// Shows a run's duration and its limit; erases itself when dropped.
pub struct Progress<W: Write> {
    terminal: Option<W>,
    started: Instant,
    deadline: Duration,
    drawn: Option<Instant>,
}

impl Progress<io::Stderr> {
    /// On standard error, for a run of at most `deadline`; silent if that is no terminal.
    pub fn on_stderr(deadline: Duration) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let stderr = io::stderr();
        Self::new((stderr.is_terminal() && !dumb).then_some(stderr), deadline)
    }
}

impl<W: Write> Progress<W> {
    fn new(terminal: Option<W>, deadline: Duration) -> Self {
        Self {
            terminal,
            started: Instant::now(),
            deadline,
            drawn: None,
        }
    }

    fn draw(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.started);
        let due = self
            .drawn
            .is_none_or(|last| now.saturating_duration_since(last) >= INTERVAL);
        let Some(terminal) = self.terminal.as_mut() else {
            return;
        };
        if elapsed < QUIET || !due {
            return;
        }
        self.drawn = Some(now);
        // Ignored: a closed terminal does not end the run.
        let _ = write!(
            terminal,
            "{ERASE}running: {:.1} s of {:.1} s",
            elapsed.as_secs_f64(),
            self.deadline.as_secs_f64()
        )
        .and_then(|()| terminal.flush());
    }
}

impl<W: Write> Observer for Progress<W> {
    fn listens(&self) -> bool {
        false
    }

    fn output(&mut self, _stream: Stream, _chunk: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn tick(&mut self) -> ControlFlow<()> {
        self.draw(Instant::now());
        ControlFlow::Continue(())
    }
}

impl<W: Write> Drop for Progress<W> {
    fn drop(&mut self) {
        if let (Some(terminal), Some(_)) = (self.terminal.as_mut(), self.drawn) {
            // As in `draw`.
            let _ = write!(terminal, "{ERASE}").and_then(|()| terminal.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_run_shows_nothing() {
        let mut terminal = Vec::new();
        let mut progress = Progress::new(Some(&mut terminal), Duration::from_secs(5));
        progress.draw(progress.started + Duration::from_millis(999));
        drop(progress);
        assert_eq!(terminal, b"");
    }

    #[test]
    fn a_long_run_shows_its_time_and_cleans_up() {
        let mut terminal = Vec::new();
        let mut progress = Progress::new(Some(&mut terminal), Duration::from_secs(5));
        let started = progress.started;
        progress.draw(started + Duration::from_millis(1200));
        progress.draw(started + Duration::from_millis(1210));
        drop(progress);
        assert_eq!(
            String::from_utf8_lossy(&terminal),
            "\r\x1b[2Krunning: 1.2 s of 5.0 s\r\x1b[2K"
        );
    }

    #[test]
    fn without_a_terminal_nothing_is_drawn() {
        let mut progress: Progress<Vec<u8>> = Progress::new(None, Duration::from_secs(5));
        progress.draw(progress.started + Duration::from_secs(3));
        assert_eq!(progress.drawn, None);
    }
}
