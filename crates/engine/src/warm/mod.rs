//! Warm starts: templates that have booted an application, and fork a child for each request.

mod boot;
mod key;
mod made;
mod pool;
mod shared;
mod start;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use altair_sandbox::{Captured, Ended, Stream};

use crate::blocked::Refused;
use crate::evaluation::{OUTPUT_LIMIT, Observer};
use crate::guards::GuardStates;
use crate::heard::Heard;
use crate::known::Variable;
use crate::result::FileChanges;
use crate::start::Started;

pub use pool::Pool;

/// How long a boot may take, also when the call that began it has come to its deadline.
pub(crate) const BOOT_LIMIT: Duration = Duration::from_secs(60);

/// How long a template waits for a request before it ends, by default: longer than an agent thinks.
pub const IDLE: Duration = Duration::from_secs(5 * 60);

/// Templates that a pool keeps: each holds the memory of a booted application.
pub(crate) const TEMPLATES_MAX: usize = 8;

/// How a child was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Start {
    /// In a process of its own; why, where a template was asked for.
    Cold(Option<String>),
    /// As a fork of a template that was made for it.
    First,
    /// As a fork of a template.
    Warm,
    /// It boots the application itself, because of this.
    Booted(String),
}

impl Start {
    /// `diagnostics.start`.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Cold(_) => "cold",
            Self::First => "first",
            Self::Warm => "warm",
            Self::Booted(_) => "booted",
        }
    }

    /// `diagnostics.start_reason`.
    pub(crate) fn reason(self) -> Option<String> {
        match self {
            Self::Cold(reason) => reason,
            Self::Booted(reason) => Some(reason),
            Self::First | Self::Warm => None,
        }
    }
}

/// What boot has left for each run to show, as if it had booted itself.
#[derive(Debug, Default)]
pub(crate) struct Boot {
    pub stdout: Captured,
    pub stderr: Captured,
    pub refused: Refused,
    pub changes: Option<FileChanges>,
    /// What it has left of variables that may hold secrets.
    pub variables: Vec<Variable>,
    /// When the template's own code began, as [`Heard::entered_ns`].
    pub entered_ns: Option<u64>,
    pub boot_us: u64,
}

impl Boot {
    /// Shows an observer what boot has printed.
    pub(crate) fn replay(&self, observer: &mut dyn Observer) -> ControlFlow<()> {
        for (stream, captured) in [
            (Stream::Stdout, &self.stdout),
            (Stream::Stderr, &self.stderr),
        ] {
            if !captured.head.is_empty() {
                observer.output(stream, &captured.head)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Puts what boot has printed before what a run has; `in_time`: boot was part of the call.
    pub(crate) fn precede(&self, ended: &mut Ended, heard: &mut Heard, in_time: bool) {
        for (boot, run) in [
            (&self.stdout, &mut ended.stdout),
            (&self.stderr, &mut ended.stderr),
        ] {
            let mut head = boot.head.clone();
            head.append(&mut run.head);
            head.truncate(OUTPUT_LIMIT);
            *run = Captured {
                head,
                total: boot.total + run.total,
            };
        }
        if in_time {
            heard.entered_ns = self.entered_ns;
            if let Some((boot_us, _)) = &mut heard.ready {
                *boot_us += self.boot_us;
            }
        }
    }
}

/// What a pool has for a request.
pub(crate) enum Acquired {
    /// A child that waits for its task.
    Child(Box<Started>, Start, Arc<Boot>),
    /// The boot has ended otherwise, and that is the answer.
    Ended(Box<Failed>),
    /// Nothing: it is to be started cold, for this reason if there is one to tell.
    Nothing(Start),
}

/// A boot that has come to no template.
#[derive(Debug)]
pub(crate) struct Failed {
    pub ended: Ended,
    pub heard: Heard,
    pub guards: GuardStates,
    pub changes: Option<FileChanges>,
    /// What is to be said besides.
    pub message: Option<String>,
}
