//! The guards by name: which there are, which a run insists on, what became of each.

use std::collections::BTreeMap;

use altair_sandbox::{Child, GuardState};

use crate::{EvalError, EvalRequest};

/// The guards by name, outermost first: the keys of `diagnostics.guards` and what `--require` takes.
pub const GUARDS: &[&str] = &[
    "process",
    "environment",
    "ini",
    "limits",
    "privileges",
    "filesystem",
    "landlock",
    "seccomp",
    "deadline",
];

/// The guards that this version does not have yet.
pub const NOT_BUILT: &[&str] = &["filesystem", "landlock", "seccomp"];

/// The guards that stay in an unsafe run.
const ALWAYS_ON: &[&str] = &["process", "deadline"];

/// Checks that the guards that a run insists on are to be had.
pub(crate) fn check_required(required: &[String], request: &EvalRequest) -> Result<(), EvalError> {
    for name in required {
        if !GUARDS.contains(&name.as_str()) {
            return Err(EvalError::Launch(format!(
                "There is no guard `{name}`: the guards are {}.",
                GUARDS.join(", ")
            )));
        }
        if NOT_BUILT.contains(&name.as_str()) {
            return Err(EvalError::Launch(format!(
                "The guard `{name}` is required, but this version does not have it."
            )));
        }
        if request.unconfined && !ALWAYS_ON.contains(&name.as_str()) {
            return Err(EvalError::Launch(format!(
                "The guard `{name}` is required, but an unsafe run lifts it."
            )));
        }
    }
    Ok(())
}

/// The state of every guard as the host knows it before the run.
pub(crate) fn states(child: &Child, request: &EvalRequest) -> BTreeMap<String, String> {
    let lifted = "lifted: the run is unsafe";
    let sandbox = child.guards();
    GUARDS
        .iter()
        .map(|name| {
            let state = match sandbox.get(name) {
                _ if request.unconfined && !ALWAYS_ON.contains(name) => lifted.to_owned(),
                _ if NOT_BUILT.contains(name) => {
                    "missing: this version does not have it".to_owned()
                }
                Some(GuardState::Degraded { to }) => format!("degraded to {to}"),
                Some(GuardState::Missing { because }) => format!("missing: {because}"),
                Some(GuardState::InForce) => IN_FORCE.to_owned(),
                None if *name == "ini" => "missing: boot was not over".to_owned(),
                None => IN_FORCE.to_owned(),
            };
            ((*name).to_owned(), state)
        })
        .collect()
}

/// How a guard that is on is reported.
pub const IN_FORCE: &str = "in force";
