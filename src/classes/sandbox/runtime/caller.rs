//! The caller of a runtime, while it waits.

use std::ops::ControlFlow;

use altair_engine::Observer;
use altair_sandbox::Stream;

use crate::zend::host::{self, Wants};
use crate::zend::runtime::write;

/// The caller of a runtime: its output layer, its standard error, its pending interrupts.
pub(super) struct Caller(pub(super) Result<(), Wants>);

impl Observer for Caller {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        match stream {
            Stream::Stdout => self.0 = write(chunk),
            Stream::Stderr => write_error(chunk),
        }
        match self.0 {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn tick(&mut self) -> ControlFlow<()> {
        if self.0.is_ok() {
            self.0 = host::interrupts();
        }
        match self.0 {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Writes to the process's standard error, as far as it takes it.
fn write_error(mut chunk: &[u8]) {
    use std::io::Write;
    let mut stderr = std::io::stderr();
    while !chunk.is_empty() {
        match stderr.write(chunk) {
            Ok(0) => return,
            Ok(count) => chunk = chunk.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
