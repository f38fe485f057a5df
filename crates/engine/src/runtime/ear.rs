//! What a host hears from an isolated PHP while it serves it.

use std::ops::ControlFlow;

use altair_sandbox::{Refusal, Stream};

use crate::channel::{Left, Message, MessageReader};
use crate::child_messages::{ChildMessages, thread_names};
use crate::observer::Observer;

/// What was heard so far.
#[derive(Debug)]
pub(super) struct Heard {
    reader: MessageReader,
    pub messages: ChildMessages,
    /// How the order under way has ended.
    pub left: Option<Left>,
    /// The value that comes back, as far as it has.
    value: Vec<u8>,
    value_max: usize,
    is_overlong: bool,
    awaited: Awaited,
    process: Option<i32>,
    /// The names of its other threads, if it has any before its guards are on.
    pub threads: Option<Vec<String>>,
}

/// What the host waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// That it is ready.
    Ready,
    /// That it has done what it was asked.
    Left,
}

impl Heard {
    pub(super) fn new(reader: MessageReader, awaited: Awaited, process: Option<i32>) -> Self {
        Self {
            reader,
            messages: ChildMessages::default(),
            left: None,
            value: Vec::new(),
            value_max: 0,
            is_overlong: false,
            awaited,
            process,
            threads: None,
        }
    }

    /// An order is about to be given, whose value may have at most so many bytes.
    pub(super) fn begin(&mut self, value_max_bytes: u64) {
        self.left = None;
        self.value = Vec::new();
        self.value_max = usize::try_from(value_max_bytes).unwrap_or(usize::MAX);
        self.is_overlong = false;
        self.awaited = Awaited::Left;
    }

    pub(super) fn is_overlong(&self) -> bool {
        self.is_overlong
    }

    pub(super) fn take_value(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.value)
    }

    /// Keeps a part of a value. A runtime may send what it likes; more than is taken is dropped.
    fn keep(&mut self, part: &[u8]) {
        let fits = self.value.len().saturating_add(part.len()) <= self.value_max;
        if self.awaited != Awaited::Left || self.left.is_some() || self.is_overlong {
            return;
        }
        if fits {
            self.value.extend_from_slice(part);
        } else {
            self.is_overlong = true;
            self.value = Vec::new();
        }
    }
}

/// Hears a runtime, and shows an observer its output.
pub(super) struct Ear<'h> {
    heard: &'h mut Heard,
    observer: &'h mut dyn Observer,
}

impl<'h> Ear<'h> {
    pub(super) fn new(heard: &'h mut Heard, observer: &'h mut dyn Observer) -> Self {
        Self { heard, observer }
    }
}

impl altair_sandbox::Observer for Ear<'_> {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        self.observer.output(stream, chunk)
    }

    fn packet(&mut self, packet: &[u8]) {
        let heard = &mut *self.heard;
        if let Some(part) = heard.reader.part(packet) {
            heard.keep(part);
            return;
        }
        match heard.reader.push(packet) {
            Some(Message::Left(left)) => {
                if heard.messages.ready.is_some() && heard.awaited == Awaited::Left {
                    heard.left.get_or_insert(left);
                }
            }
            message => heard.messages.take(message, packet),
        }
        if heard.messages.has_threads && heard.threads.is_none() {
            heard.threads = Some(heard.process.map(thread_names).unwrap_or_default());
        }
    }

    fn refused(&mut self, refusal: Refusal) {
        self.heard.messages.refused.call(refusal);
    }

    fn tick(&mut self) -> ControlFlow<()> {
        match &self.heard.threads {
            Some(_) => ControlFlow::Break(()),
            None => self.observer.tick(),
        }
    }

    fn is_ready(&self) -> bool {
        match self.heard.awaited {
            Awaited::Ready => self.heard.messages.ready.is_some(),
            Awaited::Left => self.heard.left.is_some(),
        }
    }
}
