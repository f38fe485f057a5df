//! The guards by name: which there are, which a run insists on, what became of each.

use std::collections::BTreeMap;

use altair_sandbox::{GuardState, Guards};
use serde::{Deserialize, Serialize};

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

/// The guards that stay in an unsafe run, and that cannot be left out.
pub const ALWAYS_ON: &[&str] = &["process", "deadline"];

/// How a guard that is on is reported.
pub const IN_FORCE: &str = "in force";

/// How the state of a guard that does less than it should begins.
const DEGRADED: &str = "degraded to ";

/// How the state of a guard that is not there begins.
const MISSING: &str = "missing: ";

/// The guard that is PHP's own: a run that requires it by name may do without the kernel's.
pub(crate) const INI: &str = "ini";

/// A guard that the child may not boot without.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insisted {
    /// Its name.
    pub guard: String,
    /// Whether it has to be in force as a whole, and not only as far as the kernel goes.
    pub fully: bool,
}

impl Insisted {
    /// Whether a state of the guard, as [`describe`] gives it, is enough.
    #[must_use]
    pub fn is_met_by(&self, state: &str) -> bool {
        state == IN_FORCE || !self.fully && !state.starts_with(MISSING)
    }
}

/// Which guards a run takes, and which it insists on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    required: Vec<String>,
    omitted: Vec<String>,
}

impl Selection {
    /// Without the guards `required` nothing runs; those of `omitted` are left out, for tests of
    /// one guard at a time. Names of [`GUARDS`].
    #[must_use]
    pub fn new(required: Vec<String>, omitted: Vec<String>) -> Self {
        Self { required, omitted }
    }

    /// Whether a guard is to be taken.
    #[must_use]
    pub fn takes(&self, guard: &str, request: &EvalRequest) -> bool {
        ALWAYS_ON.contains(&guard)
            || !request.unconfined && !self.omitted.iter().any(|name| name == guard)
    }

    /// Checks that the guards that a run insists on are not lifted from the start.
    ///
    /// # Errors
    ///
    /// [`EvalError::Launch`], naming the guard.
    pub(crate) fn check(&self, request: &EvalRequest) -> Result<(), EvalError> {
        for name in self.required.iter().chain(&self.omitted) {
            if !GUARDS.contains(&name.as_str()) {
                return Err(EvalError::Launch(format!(
                    "There is no guard `{name}`: the guards are {}.",
                    GUARDS.join(", ")
                )));
            }
        }
        for name in &self.omitted {
            if ALWAYS_ON.contains(&name.as_str()) {
                return Err(EvalError::Launch(format!(
                    "The guard `{name}` cannot be left out (altair_eval.omit)."
                )));
            }
        }
        for name in &self.required {
            if request.unconfined && !ALWAYS_ON.contains(&name.as_str()) {
                return Err(EvalError::Launch(format!(
                    "The guard `{name}` is required, but an unsafe run lifts it."
                )));
            }
            if self.omitted.contains(name) {
                return Err(EvalError::Launch(format!(
                    "The guard `{name}` is required, but left out (altair_eval.omit)."
                )));
            }
        }
        Ok(())
    }

    /// Whether a run may go on without a guard, as far as that guard alone decides.
    fn insists_on(&self, guard: &str) -> bool {
        self.required.iter().any(|name| name == guard)
    }

    /// Whether PHP's own switches are enough for the caller.
    fn is_content_with_ini(&self) -> bool {
        self.insists_on(INI)
    }

    /// The names of the final guards without which the child must not boot.
    pub(crate) fn insisted_final(&self, request: &EvalRequest, has_view: bool) -> Vec<Insisted> {
        if request.unconfined {
            return Vec::new();
        }
        let ini = self.is_content_with_ini();
        // Without a private root Landlock is all that guards the files.
        [("landlock", !has_view && !ini), ("seccomp", !ini)]
            .into_iter()
            .map(|(guard, needed)| (guard, self.insists_on(guard), needed))
            .filter(|(_, fully, needed)| *fully || *needed)
            // Who leaves a guard out does not insist on it.
            .filter(|(guard, ..)| !self.omitted.iter().any(|name| name == guard))
            .map(|(guard, fully, _)| Insisted {
                guard: guard.to_owned(),
                fully,
            })
            .collect()
    }

    /// Checks the states of the guards that the host itself has put on.
    ///
    /// # Errors
    ///
    /// [`EvalError::Launch`] for a guard that is required and less than in force.
    pub(crate) fn check_states(&self, states: &BTreeMap<String, String>) -> Result<(), EvalError> {
        for name in &self.required {
            match states.get(name).map(String::as_str) {
                None | Some(IN_FORCE | PENDING) => {}
                Some(state) => return Err(unmet(name, state)),
            }
        }
        Ok(())
    }
}

/// The guards that a child itself takes, and tells of.
const OF_CHILD: &[&str] = &[INI, "landlock", "seccomp"];
/// Those of which it tells where they are less than in force.
const LESS_OF_CHILD: &[&str] = &["limits", "filesystem"];

/// Whether what a child says of a guard is one of the things that it can know.
pub(crate) fn is_of_child(name: &str, state: &str) -> bool {
    let is_less = state.starts_with(DEGRADED) || state.starts_with(MISSING);
    OF_CHILD.contains(&name) && (state == IN_FORCE || is_less)
        || LESS_OF_CHILD.contains(&name) && is_less
}

/// A guard that nothing may run without is not in force.
pub(crate) fn unmet(name: &str, state: &str) -> EvalError {
    EvalError::Launch(format!(
        "Nothing was run: the guard `{name}` is needed and {}. `altair doctor` says how to get it; `--require=ini` accepts a run that PHP alone guards.",
        match state.strip_prefix(MISSING) {
            Some(because) => format!("is missing ({because})"),
            None => format!("is {state}"),
        }
    ))
}

/// The state of a guard that the child takes, until it says what became of it.
const PENDING: &str = "missing: the child did not come to take it";

/// The state of every guard as the host knows it before the run.
pub(crate) fn states(
    sandbox: &Guards,
    selection: &Selection,
    request: &EvalRequest,
) -> BTreeMap<String, String> {
    GUARDS
        .iter()
        .map(|name| {
            let state = if request.unconfined && !ALWAYS_ON.contains(name) {
                "lifted: the run is unsafe".to_owned()
            } else if !selection.takes(name, request) {
                "missing: left out (altair_eval.omit)".to_owned()
            } else {
                match (*name, sandbox.get(name)) {
                    (_, Some(state)) => describe(state),
                    ("ini" | "landlock" | "seccomp", None) => PENDING.to_owned(),
                    (_, None) => IN_FORCE.to_owned(),
                }
            };
            ((*name).to_owned(), state)
        })
        .collect()
}

/// A state in words: `in force`, `degraded to …`, `missing: …`.
#[must_use]
pub fn describe(state: &GuardState) -> String {
    match state {
        GuardState::InForce => IN_FORCE.to_owned(),
        GuardState::Degraded { to } => format!("{DEGRADED}{to}"),
        GuardState::Missing { because } => format!("{MISSING}{because}"),
    }
}
