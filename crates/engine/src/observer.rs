//! Observes an evaluation while it runs.

use std::ops::ControlFlow;

use altair_sandbox::Stream;

/// Observes an evaluation while it runs.
pub trait Observer {
    /// Called once, before the run may have effects. `Break` ends it before it has any.
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
