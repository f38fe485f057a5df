//! What a host hears from an isolated PHP while it serves it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use altair_sandbox::{Refusal, Stream};

use crate::bounds::stop_signal;
use crate::channel::{Left, Message, MessageReader};
use crate::child_messages::{ChildMessages, thread_names};
use crate::observer::Observer;

/// Loaded files to keep until somebody takes them.
const LOADED_KEPT: usize = 20_000;

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
    /// Files that its code has loaded, until somebody takes them.
    pub loaded: Vec<Vec<u8>>,
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
            loaded: Vec::new(),
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

    /// Keeps the names of loaded files, as many as it cares for.
    fn loaded(&mut self, files: Vec<Vec<u8>>) {
        let room = LOADED_KEPT.saturating_sub(self.loaded.len());
        let is_path = |file: &Vec<u8>| file.len() < nix::libc::PATH_MAX as usize;
        self.loaded
            .extend(files.into_iter().filter(is_path).take(room));
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

/// How long code may take to unwind after it was asked to, before its process is ended.
pub(super) const UNWINDING: Duration = Duration::from_millis(500);

/// What ends an order before it ends the process: a signal has its code unwind.
#[derive(Debug)]
pub(super) struct SoftEnd {
    deadline: Instant,
    /// When the code was asked to end.
    asked: Option<Instant>,
    /// The signal is still to be sent.
    is_due: bool,
    /// The observer has asked for it, not the deadline.
    pub by_observer: bool,
}

impl SoftEnd {
    pub(super) fn at(deadline: Instant) -> Self {
        Self {
            deadline,
            asked: None,
            is_due: false,
            by_observer: false,
        }
    }

    /// Whether the code was asked to end.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.is_some()
    }

    fn ask(&mut self, by_observer: bool) {
        if self.asked.is_none() {
            self.asked = Some(Instant::now());
            self.is_due = true;
            self.by_observer = by_observer;
        }
    }

    /// Looks at the clock. `Break`: the code had its time to unwind.
    fn look(&mut self) -> ControlFlow<()> {
        if Instant::now() >= self.deadline {
            self.ask(false);
        }
        let has_had_its_time = |asked: Instant| asked.elapsed() > UNWINDING;
        match self.by_observer && self.asked.is_some_and(has_had_its_time) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Hears a runtime, and shows an observer its output.
pub(super) struct Ear<'h> {
    heard: &'h mut Heard,
    observer: &'h mut dyn Observer,
    soft: Option<&'h mut SoftEnd>,
}

impl<'h> Ear<'h> {
    pub(super) fn new(heard: &'h mut Heard, observer: &'h mut dyn Observer) -> Self {
        Self {
            heard,
            observer,
            soft: None,
        }
    }

    /// The same, and ends the order before the process.
    pub(super) fn ending_softly(mut self, soft: Option<&'h mut SoftEnd>) -> Self {
        self.soft = soft;
        self
    }

    /// What the observer wants.
    fn heed(&mut self, flow: ControlFlow<()>) -> ControlFlow<()> {
        match &mut self.soft {
            None => flow,
            Some(soft) => {
                if flow.is_break() {
                    soft.ask(true);
                }
                soft.look()
            }
        }
    }
}

impl altair_sandbox::Observer for Ear<'_> {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        let flow = self.observer.output(stream, chunk);
        self.heed(flow)
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
            Some(Message::Loaded(files)) => heard.loaded(files),
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
            None => {
                let flow = self.observer.tick();
                self.heed(flow)
            }
        }
    }

    fn signal(&mut self) -> Option<i32> {
        let soft = self.soft.as_mut()?;
        std::mem::take(&mut soft.is_due).then(stop_signal)
    }

    fn is_ready(&self) -> bool {
        match self.heard.awaited {
            Awaited::Ready => self.heard.messages.ready.is_some(),
            Awaited::Left => self.heard.left.is_some(),
        }
    }
}
