//! Passes a command's output on as it comes.

use std::io::{self, Write};
use std::ops::ControlFlow;

use altair_engine::Observer;
use altair_sandbox::Stream;

/// Passes output on.
pub struct Streaming {
    passes_on: bool,
    is_unread: bool,
}

impl Streaming {
    /// `passes_on`: otherwise it only waits.
    pub fn new(passes_on: bool) -> Self {
        Self {
            passes_on,
            is_unread: false,
        }
    }

    /// Whether the reader of a stream has closed it.
    pub fn is_unread(&self) -> bool {
        self.is_unread
    }
}

impl Observer for Streaming {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        if !self.passes_on {
            return ControlFlow::Continue(());
        }
        let written = match stream {
            Stream::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(chunk).and_then(|()| stdout.flush())
            }
            Stream::Stderr => io::stderr().lock().write_all(chunk),
        };
        // Like a program in a pipeline: it ends when nobody reads it.
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => {
                self.is_unread = true;
                ControlFlow::Break(())
            }
        }
    }

    fn listens(&self) -> bool {
        self.passes_on
    }

    fn tick(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
