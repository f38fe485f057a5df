//! Warm starts: templates that have booted an application and fork a child for each request.

mod boot;
mod booted_template;
mod key;
mod pool;
mod shared_state;
mod spares;
mod template_start;
mod wait;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use altair_sandbox::{Captured, Ended, Stream};

use crate::blocked::Refused;
use crate::bounds::OUTPUT_LIMIT;
use crate::child_messages::ChildMessages;
use crate::cold_start::NewChild;
use crate::guards::GuardStates;
use crate::observer::Observer;
use crate::origin::Origin;
use crate::redaction::Variable;
use crate::result::FileChanges;

pub(crate) use key::Key;
pub use pool::{Listed, Pool};
pub(crate) use spares::Underway;

/// How long a boot may take, even if the call that began it reaches its deadline earlier.
pub(crate) const BOOT_LIMIT: Duration = Duration::from_secs(60);

/// The maximum number of templates in the pool of one evaluator: each holds the memory of a booted
/// application.
const TEMPLATES_MAX: usize = 8;

/// The traces of boot that each run shows as if it had booted itself.
#[derive(Debug, Default)]
pub(crate) struct Boot {
    pub stdout: Captured,
    pub stderr: Captured,
    pub refused: Refused,
    pub changes: Option<FileChanges>,
    /// Variables left by boot that may hold secrets.
    pub variables: Vec<Variable>,
    /// When the template's own code began, as in [`ChildMessages::entered_ns`].
    pub entered_ns: Option<u64>,
    pub boot_us: u64,
}

impl Boot {
    /// Shows an observer the output of boot.
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

    /// Prepends boot's output to the run's; `in_time`: boot was part of the call.
    pub(crate) fn precede(&self, ended: &mut Ended, heard: &mut ChildMessages, in_time: bool) {
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

/// What a pool returns for a request.
pub(crate) enum Acquired {
    /// A child that is waiting for its task.
    Child(Box<NewChild>, Origin, Arc<Boot>),
    /// The boot has ended without a template, and that is the answer.
    Ended(Box<Failed>),
    /// Nothing yet: the first request of its kind starts cold, since many hosts make no other. Its
    /// template [`boots after it`](Pool::boot_after).
    FirstCall,
    /// Nothing: start cold, for this reason if there is one to report.
    Nothing(Origin),
}

impl std::fmt::Debug for Acquired {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Acquired").finish_non_exhaustive()
    }
}

/// A boot that produced no template.
#[derive(Debug)]
pub(crate) struct Failed {
    pub ended: Ended,
    pub heard: ChildMessages,
    pub guards: GuardStates,
    pub changes: Option<FileChanges>,
    /// A message in addition to the outcome's.
    pub message: Option<String>,
}
