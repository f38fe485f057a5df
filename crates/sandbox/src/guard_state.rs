//! Whether a guard is in force.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Policy, Taken, before_exec, limits, privileges, procfs, view};

/// What a guard does for one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuardState {
    /// It works fully.
    InForce,
    /// It does less than it should.
    Degraded {
        /// What remains of it, in words for the user.
        to: String,
    },
    /// It does nothing.
    Missing {
        /// Why, in words for the user.
        because: String,
    },
    /// It was not requested.
    LeftOut {
        /// What left it out, in words for the user.
        because: String,
    },
}

impl GuardState {
    /// The text of a state that has one.
    pub fn text_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::InForce => None,
            Self::Degraded { to: text }
            | Self::Missing { because: text }
            | Self::LeftOut { because: text } => Some(text),
        }
    }
}

impl fmt::Display for GuardState {
    /// `in force`, `degraded to …`, `missing: …`, `left out: …`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InForce => f.write_str("in force"),
            Self::Degraded { to } => write!(f, "degraded to {to}"),
            Self::Missing { because } => write!(f, "missing: {because}"),
            Self::LeftOut { because } => write!(f, "left out: {because}"),
        }
    }
}

/// The states of the guards that a process has before its program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guards {
    /// A process of its own, with no descriptor but those that it was given.
    pub process: GuardState,
    /// [`Policy::limits`].
    pub limits: GuardState,
    /// [`Policy::privileges`].
    pub privileges: GuardState,
    /// [`Policy::view`].
    pub filesystem: GuardState,
    /// The end of the process and of everything that it started.
    pub deadline: GuardState,
    /// [`Policy::before_exec`].
    pub before_exec: Taken,
}

/// The states of the guards of a process started with `policy`.
///
/// A requested guard that could not be taken is a [`SpawnError`](crate::SpawnError), so a running
/// process has what is listed here.
pub(crate) fn states(policy: &Policy) -> Guards {
    Guards {
        process: process(),
        limits: limits::state(&policy.limits),
        privileges: privileges::state(&policy.privileges),
        filesystem: view::state(policy.view.as_ref()),
        deadline: deadline(),
        before_exec: policy
            .before_exec
            .as_ref()
            .map(before_exec::states)
            .unwrap_or_default(),
    }
}

fn process() -> GuardState {
    match limits::why_a_core() {
        None => GuardState::InForce,
        Some(why) => GuardState::Degraded {
            to: format!("all but {why}"),
        },
    }
}

/// To end everything that a process started, the keeper lists its own children in `/proc`.
fn deadline() -> GuardState {
    match procfs::why_unseen() {
        None => GuardState::InForce,
        Some(why) => GuardState::Degraded {
            to: format!(
                "ends the process and its process group, but not what left that group: {why}"
            ),
        },
    }
}
