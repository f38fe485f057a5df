//! Handles the events of a run's supervision: output for the observer, packets of the child,
//! refused calls.

use std::ops::ControlFlow;

use altair_sandbox::{Refusal, Stream};

use crate::channel::MessageReader;
use crate::child_messages::{ChildMessages, thread_names};
use crate::observer::Observer;
use crate::redaction::output::Redactor;

/// Turns the sandbox's events into messages for the host and output for the observer.
pub(crate) struct Listener<'a, 'o> {
    pub redactor: &'a mut Redactor<'o>,
    /// The child's process id, as known to the host.
    pub process: Option<i32>,
    /// The names of its other threads, if it has any before its guards are on.
    pub threads: Option<Vec<String>>,
    pub reader: MessageReader,
    pub heard: ChildMessages,
    /// The observer ended the run when it was shown the output of boot.
    pub interrupted: bool,
}

impl altair_sandbox::Observer for Listener<'_, '_> {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        self.redactor.output(stream, chunk)
    }

    fn packet(&mut self, packet: &[u8]) {
        let was_ready = self.heard.ready.is_some();
        self.heard.take(self.reader.push(packet), packet);
        if !was_ready && self.heard.ready.is_some() {
            let shown = self.redactor.boot_is_over(&self.heard.variables);
            self.interrupted = shown.is_break();
        }
        if self.heard.has_threads && self.threads.is_none() {
            self.threads = Some(self.process.map(thread_names).unwrap_or_default());
        }
    }

    fn refused(&mut self, refusal: Refusal) {
        self.heard.refused.call(refusal);
    }

    fn has_heard_all(&self) -> bool {
        self.heard.report.is_some()
    }

    fn tick(&mut self) -> ControlFlow<()> {
        if self.threads.is_some() || self.interrupted {
            return ControlFlow::Break(());
        }
        self.redactor.tick()
    }
}
