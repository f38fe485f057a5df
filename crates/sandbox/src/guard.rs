//! Whether a guard is in force.

use std::collections::BTreeMap;

use crate::{Policy, limits, privileges, procfs, view};

/// What a guard does for one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardState {
    /// It does all that it exists for.
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
}

/// Each guard of this crate by name: `process`, `limits`, `privileges`, `filesystem`,
/// `deadline`.
pub type Guards = BTreeMap<&'static str, GuardState>;

/// The guards of a process that was started with `policy`.
///
/// A guard that the policy asks for and that could not be taken is a
/// [`SpawnError`](crate::SpawnError), so a process that runs has what is listed here.
pub(crate) fn states(policy: &Policy) -> Guards {
    BTreeMap::from([
        ("process", process()),
        ("limits", limits::state(&policy.limits)),
        ("privileges", privileges::state(&policy.privileges)),
        ("filesystem", view::state(policy.view.as_ref())),
        ("deadline", deadline()),
    ])
}

fn process() -> GuardState {
    match limits::why_a_core() {
        None => GuardState::InForce,
        Some(why) => GuardState::Degraded {
            to: format!("all but {why}"),
        },
    }
}

/// To end all that a process started, the keeper reads its own children from `/proc`.
fn deadline() -> GuardState {
    if procfs::is_mounted() {
        GuardState::InForce
    } else {
        GuardState::Degraded {
            to: "ends the process and its process group, but not what left that group: \
                 /proc is not mounted"
                .into(),
        }
    }
}
