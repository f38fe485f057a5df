//! Progress of a call, for a client that asks for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use altair_sandbox::Stream;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::visible::line;

/// Interval of progress notifications.
const EVERY: Duration = Duration::from_millis(500);
/// Bytes of a line of output to keep.
const LINE_MAX: usize = 200;

/// What a call does at the moment. Copies share it.
#[derive(Debug, Clone, Default)]
pub struct Doing(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    asks: bool,
    stream: Option<Stream>,
    current: Vec<u8>,
    last: Vec<u8>,
}

impl Doing {
    /// Whether a person is asked.
    pub fn asks(&self, asks: bool) {
        self.lock().asks = asks;
    }

    /// Notes what a run writes.
    pub fn output(&self, stream: Stream, chunk: &[u8]) {
        let state = &mut *self.lock();
        if state.stream != Some(stream) {
            state.end_line();
            state.stream = Some(stream);
        }
        for (at, part) in chunk.split(|byte| *byte == b'\n').enumerate() {
            if at > 0 {
                state.end_line();
            }
            let room = LINE_MAX.saturating_sub(state.current.len());
            state
                .current
                .extend_from_slice(&part[..part.len().min(room)]);
        }
    }

    fn message(&self, seconds: f64) -> String {
        let state = self.lock();
        if state.asks {
            return format!("waiting for a person's answer for {seconds:.1} s");
        }
        let output = match state.current.trim_ascii() {
            [] => state.last.trim_ascii(),
            current => current,
        };
        match output {
            [] => format!("running for {seconds:.1} s"),
            output => format!(
                "running for {seconds:.1} s: {}",
                line(&String::from_utf8_lossy(output))
            ),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn end_line(&mut self) {
        if !self.current.trim_ascii().is_empty() {
            std::mem::swap(&mut self.last, &mut self.current);
        }
        self.current.clear();
    }
}

/// Sends progress notifications to a client until this is dropped. The first comes after an
/// interval: a short call has none.
pub struct Progress(JoinHandle<()>);

impl Progress {
    /// Begins.
    pub fn tell(peer: Peer<RoleServer>, token: ProgressToken, doing: Doing) -> Self {
        let began = Instant::now();
        let mut every = interval_at(began + EVERY, EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self(tokio::spawn(async move {
            loop {
                every.tick().await;
                let seconds = began.elapsed().as_secs_f64();
                let told = ProgressNotificationParam::new(token.clone(), seconds)
                    .with_message(doing.message(seconds));
                // Ignored: a client that does not accept notifications still gets the result.
                if peer.notify_progress(told).await.is_err() {
                    return;
                }
            }
        }))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_the_last_line_that_says_something() {
        let doing = Doing::default();
        assert_eq!(doing.message(1.0), "running for 1.0 s");
        for (stream, chunk, said) in [
            (Stream::Stdout, "one", "one"),
            (Stream::Stdout, " and\ntwo\n\n", "two"),
            (Stream::Stdout, "thr", "thr"),
            (Stream::Stderr, "Warning\n", "Warning"),
            (Stream::Stdout, "  \x1b[1m\u{202e}\n", "\\u{1b}[1m\\u{202e}"),
        ] {
            doing.output(stream, chunk.as_bytes());
            assert_eq!(doing.message(1.0), format!("running for 1.0 s: {said}"));
        }
        doing.output(Stream::Stdout, "x".repeat(100_000).as_bytes());
        assert!(doing.message(1.0).len() < LINE_MAX + 50);
        doing.asks(true);
        assert_eq!(
            doing.message(2.0),
            "waiting for a person's answer for 2.0 s"
        );
    }
}
