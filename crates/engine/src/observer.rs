//! Observes an evaluation while it runs.

use std::ops::ControlFlow;

use altair_sandbox::Stream;

use crate::EvalResult;

/// Observes an evaluation while it runs.
pub trait Observer {
    /// Called once by the process that makes the run, before it may have effects. `Break` ends it before
    /// it has any. Where a fork was ready for it ([`Delegated::of`](crate::Delegated::of)), it has begun
    /// just before. Not called where the run is made [elsewhere](crate::Elsewhere).
    fn begins(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    /// A chunk of output, as it was written. `Break` ends the run.
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()>;
    /// Returns whether the output is read while it is written.
    fn listens(&self) -> bool {
        true
    }
    /// Called after every wake-up and at least every 100 ms. `Break` ends the run.
    fn tick(&mut self) -> ControlFlow<()>;
    /// Called with the result of a run that this process has made, before anything is made for the
    /// next one: that would compete with whoever waits for the result.
    fn answered(&mut self, _: &EvalResult) {}
}

/// An [`Observer`] that only waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn listens(&self) -> bool {
        false
    }

    fn output(&mut self, _: Stream, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn tick(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
