//! Runs a command from start to end in one call.

use std::ops::ControlFlow;
use std::time::Duration;

use crate::{Ended, Launch, Observer, SpawnError, Stream, Supervision};

/// Runs a command to its end, or to its deadline, and returns its status and output.
///
/// At the deadline, `timeout` after the start, it is killed at once with everything that it
/// started. `output_limit` is in bytes for each stream, as in [`Supervision::output_limit`].
///
/// # Errors
/// If it could not be started; see [`Launch::spawn`].
pub fn run(launch: Launch, timeout: Duration, output_limit: usize) -> Result<Ended, SpawnError> {
    let child = launch.spawn()?;
    let supervision = Supervision {
        deadline: Supervision::deadline_after(timeout),
        stop_signal: None,
        grace: Duration::ZERO,
        output_limit,
        outbox: Vec::new(),
        channel: None,
        idle: None,
        input: None,
        leaves_end: false,
        looks: Duration::ZERO,
    };
    Ok(child.supervise(supervision, &mut Indifferent))
}

/// Observes nothing.
struct Indifferent;

impl Observer for Indifferent {
    fn output(&mut self, _: Stream, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn packet(&mut self, _: &[u8]) {}

    fn tick(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
