//! The guards: which exist, which a run requires, and the state of each.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

pub use altair_sandbox::GuardState;
use serde::{Deserialize, Serialize};

use crate::encode::shorten;
use crate::{EvalError, EvalRequest};

/// A mechanism that confines a run. [`Guard::ALL`] has the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// A process of its own, without the host's descriptors.
    Process,
    /// An environment without secrets and switches.
    Environment,
    /// PHP's own switches.
    Ini,
    /// Memory, CPU time, file size, descriptors.
    Limits,
    /// No privileges, and no way to gain any.
    Privileges,
    /// A private root and a throwaway layer over the project.
    Filesystem,
    /// Paths, ports, signals.
    Landlock,
    /// System calls.
    Seccomp,
    /// The end of the process and of everything that it has started.
    Deadline,
}

impl Guard {
    /// All guards, outermost first: the keys of `diagnostics.guards` and the values of `--require`.
    pub const ALL: [Self; 9] = [
        Self::Process,
        Self::Environment,
        Self::Ini,
        Self::Limits,
        Self::Privileges,
        Self::Filesystem,
        Self::Landlock,
        Self::Seccomp,
        Self::Deadline,
    ];

    /// The guard's name for people and in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Environment => "environment",
            Self::Ini => "ini",
            Self::Limits => "limits",
            Self::Privileges => "privileges",
            Self::Filesystem => "filesystem",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Deadline => "deadline",
        }
    }

    /// The names of all guards.
    #[must_use]
    pub fn names() -> [&'static str; 9] {
        Self::ALL.map(Self::name)
    }

    /// Returns whether the guard stays in an unsafe run and cannot be left out.
    #[must_use]
    pub const fn is_always_on(self) -> bool {
        matches!(self, Self::Process | Self::Deadline)
    }

    /// Returns whether the child itself applies the guard and reports its state.
    const fn is_of_child(self) -> bool {
        matches!(self, Self::Ini | Self::Landlock | Self::Seccomp)
    }

    /// Returns whether a child can know that the guard has this state.
    pub(crate) const fn may_child_say(self, state: &GuardState) -> bool {
        match (self, state) {
            (_, GuardState::LeftOut { .. }) => false,
            (Self::Ini | Self::Landlock | Self::Seccomp, _) => true,
            // The child knows about these only if it could not apply its own part.
            (Self::Limits | Self::Filesystem, state) => !matches!(state, GuardState::InForce),
            _ => false,
        }
    }
}

// A new variant needs its place in `ALL`.
const _: () = assert!(Guard::Deadline as usize + 1 == Guard::ALL.len());

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Guard {
    type Err = EvalError;

    /// Returns the guard of this name.
    ///
    /// # Errors
    /// [`EvalError::Launch`], naming the existing guards.
    fn from_str(name: &str) -> Result<Self, EvalError> {
        let found = Self::ALL.into_iter().find(|guard| guard.name() == name);
        found.ok_or_else(|| {
            EvalError::Launch(format!(
                "There is no guard `{name}`: the guards are {}.",
                Self::names().join(", ")
            ))
        })
    }
}

/// The state of each guard.
pub type GuardStates = BTreeMap<Guard, GuardState>;

/// States that one side reports to the other, each guard at most once.
pub type ToldStates = Vec<(Guard, GuardState)>;

/// A guard without which the child may not boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Insisted {
    /// The guard.
    pub guard: Guard,
    /// Whether it must be fully in force, and not only as far as the kernel supports it.
    pub fully: bool,
}

impl Insisted {
    /// Returns whether a state of the guard is enough.
    #[must_use]
    pub fn is_met_by(self, state: &GuardState) -> bool {
        match state {
            GuardState::InForce => true,
            GuardState::Degraded { .. } => !self.fully,
            GuardState::Missing { .. } | GuardState::LeftOut { .. } => false,
        }
    }

    /// Checks that the reported state of the guard is enough. An unreported guard is not in force.
    ///
    /// # Errors
    /// The state that is not enough.
    pub fn check<'s>(
        self,
        told: impl IntoIterator<Item = &'s (Guard, GuardState)>,
    ) -> Result<(), GuardState> {
        let told = told.into_iter().find(|(guard, _)| *guard == self.guard);
        match told {
            Some((_, state)) if self.is_met_by(state) => Ok(()),
            Some((_, state)) => Err(state.clone()),
            None => Err(not_taken()),
        }
    }
}

/// The state of a guard that the child applies, until the child reports it.
fn not_taken() -> GuardState {
    GuardState::Missing {
        because: "the child had not reported it when it ended".into(),
    }
}

/// Whether a host makes unsafe runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum UnsafeRuns {
    /// It does.
    #[default]
    May,
    /// It refuses them now.
    Refused,
    /// It never does: whoever administers it says so, and it cannot change that.
    Never,
}

impl UnsafeRuns {
    /// Returns whether a run may be unsafe.
    pub(crate) fn may(self) -> bool {
        self == Self::May
    }
}

/// Which guards a run takes, and which it requires.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Selection {
    required: Vec<Guard>,
    omitted: Vec<Guard>,
    /// PHP's own switches are enough where the kernel has no guard.
    accepts_ini: bool,
    /// Whether a run may lift them all.
    unsafe_runs: UnsafeRuns,
}

impl Selection {
    /// Nothing runs without the guards in `required`; if [`Guard::Ini`] is among them, PHP's own switches
    /// are enough where the kernel has no guard. Those in `omitted` are left out, for tests of one guard
    /// at a time.
    #[must_use]
    pub fn new(required: Vec<Guard>, omitted: Vec<Guard>) -> Self {
        Self {
            accepts_ini: required.contains(&Guard::Ini),
            required,
            omitted,
            unsafe_runs: UnsafeRuns::May,
        }
    }

    /// Requires more guards, and accepts nothing less for it.
    #[must_use]
    pub fn with_more_required(mut self, guards: Vec<Guard>) -> Self {
        self.required.extend(guards);
        self.required.sort_unstable();
        self.required.dedup();
        self
    }

    /// Whether runs may be unsafe, as they may by default.
    #[must_use]
    pub fn with_unsafe_runs(mut self, unsafe_runs: UnsafeRuns) -> Self {
        self.unsafe_runs = unsafe_runs;
        self
    }

    /// Returns whether runs may be unsafe.
    pub(crate) fn unsafe_runs(&self) -> UnsafeRuns {
        self.unsafe_runs
    }

    /// Returns whether a guard is to be taken.
    #[must_use]
    pub fn takes(&self, guard: Guard, request: &EvalRequest) -> bool {
        self.left_out(guard, request).is_none()
    }

    /// Returns whether all guards are to be taken.
    pub(crate) fn takes_all(&self, request: &EvalRequest) -> bool {
        Guard::ALL
            .into_iter()
            .all(|guard| self.takes(guard, request))
    }

    /// Returns whether the kernel's guards are all that is accepted.
    pub(crate) fn accepts_only_all(&self, request: &EvalRequest) -> bool {
        self.takes_all(request) && !self.accepts_ini
    }

    /// The state of a guard that is not to be taken; `None` if it is.
    fn left_out(&self, guard: Guard, request: &EvalRequest) -> Option<GuardState> {
        let because = match guard {
            _ if guard.is_always_on() => return None,
            _ if request.unconfined => "the run is unsafe",
            _ if self.omitted.contains(&guard) => "altair_eval.omit",
            _ => return None,
        };
        Some(GuardState::LeftOut {
            because: because.into(),
        })
    }

    /// Checks that no guard is both required and lifted from the start, and that the run may be
    /// unsafe if it is.
    ///
    /// # Errors
    ///
    /// [`EvalError::Launch`], naming the guard.
    pub(crate) fn check(&self, request: &EvalRequest) -> Result<(), EvalError> {
        if request.unconfined && !self.unsafe_runs.may() {
            return Err(EvalError::Launch(
                "No run may be unsafe here (altair_eval.unsafe=0).".into(),
            ));
        }
        if let Some(guard) = self.omitted.iter().find(|guard| guard.is_always_on()) {
            return Err(EvalError::Launch(format!(
                "The guard `{guard}` cannot be left out (altair_eval.omit)."
            )));
        }
        for guard in &self.required {
            if request.unconfined && !guard.is_always_on() {
                return Err(EvalError::Launch(format!(
                    "The guard `{guard}` is required, but an unsafe run lifts it."
                )));
            }
            if self.omitted.contains(guard) {
                return Err(EvalError::Launch(format!(
                    "The guard `{guard}` is required, but left out (altair_eval.omit)."
                )));
            }
        }
        Ok(())
    }

    /// The final guards without which the child must not boot.
    pub(crate) fn insisted_final(&self, request: &EvalRequest, has_view: bool) -> Vec<Insisted> {
        if request.unconfined {
            return Vec::new();
        }
        let kernel = !self.accepts_ini;
        // Without a private root real writes need all of both: Landlock governs truncate() only in
        // full, and only seccomp keeps modes and owners as they are.
        let fully = !has_view && request.allow_writes;
        // Without a private root only Landlock guards the files.
        let needed = [
            (Guard::Landlock, !has_view && kernel),
            (Guard::Seccomp, kernel),
        ];
        needed
            .into_iter()
            .map(|(guard, needed)| (needed, fully || self.required.contains(&guard), guard))
            .filter(|(needed, fully, _)| *needed || *fully)
            // A guard that is left out is not required.
            .filter(|(.., guard)| !self.omitted.contains(guard))
            .map(|(_, fully, guard)| Insisted { guard, fully })
            .collect()
    }

    /// Checks the states of the guards that the host itself applies.
    ///
    /// # Errors
    ///
    /// [`EvalError::Launch`] for a guard that is required and not fully in force.
    pub(crate) fn check_states(&self, states: &GuardStates) -> Result<(), EvalError> {
        let of_host = self.required.iter().filter(|guard| !guard.is_of_child());
        for guard in of_host {
            match states.get(guard) {
                Some(GuardState::InForce) => {}
                Some(state) => return Err(unmet(*guard, state)),
                None => return Err(unmet(*guard, &not_taken())),
            }
        }
        Ok(())
    }
}

/// The error for a required guard that is not in force.
pub(crate) fn unmet(guard: Guard, state: &GuardState) -> EvalError {
    EvalError::Launch(format!(
        "Nothing was run: the guard `{guard}` is needed and {}. `altair doctor` says how to get it; `--require=ini`, in PHP altair_eval.require=ini in php.ini, accepts a run that only PHP guards.",
        match state {
            GuardState::Missing { because } => format!("is missing ({because})"),
            GuardState::InForce | GuardState::Degraded { .. } | GuardState::LeftOut { .. } =>
                format!("is {state}"),
        }
    ))
}

/// A state reported by a child, cut to `max` bytes.
pub(crate) fn shortened(mut state: GuardState, max: usize) -> GuardState {
    if let Some(text) = state.text_mut() {
        *text = shorten(text, max);
    }
    state
}

/// The state of every guard as known to the host before the run.
pub(crate) fn states(
    sandbox: &altair_sandbox::Guards,
    selection: &Selection,
    request: &EvalRequest,
) -> GuardStates {
    let altair_sandbox::Guards {
        process,
        limits,
        privileges,
        filesystem,
        deadline,
        // The child takes its last guards itself.
        before_exec: _,
    } = sandbox;
    let state = |guard| match guard {
        Guard::Process => process.clone(),
        Guard::Limits => limits.clone(),
        Guard::Privileges => privileges.clone(),
        Guard::Filesystem => filesystem.clone(),
        Guard::Deadline => deadline.clone(),
        // The child was started with exactly this environment (`launch::plan`).
        Guard::Environment => GuardState::InForce,
        Guard::Ini | Guard::Landlock | Guard::Seccomp => not_taken(),
    };
    Guard::ALL
        .into_iter()
        .map(|guard| {
            let left_out = selection.left_out(guard, request);
            (guard, left_out.unwrap_or_else(|| state(guard)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insisted(selection: &Selection) -> Vec<(Guard, bool)> {
        let request = EvalRequest::new("1", "/srv");
        let insisted = selection.insisted_final(&request, false);
        insisted.iter().map(|one| (one.guard, one.fully)).collect()
    }

    #[test]
    fn more_guards_are_required_and_never_fewer() {
        let kernel = [(Guard::Landlock, false), (Guard::Seccomp, false)];
        let none = Selection::default();
        assert_eq!(insisted(&none), kernel);
        let accepting = Selection::new(vec![Guard::Ini], Vec::new());
        assert_eq!(insisted(&accepting), []);
        // It is required, and nothing else is given up for it.
        let adding = Selection::default().with_more_required(vec![Guard::Ini]);
        assert_eq!(insisted(&adding), kernel);
        let both = Selection::new(vec![Guard::Seccomp], Vec::new());
        let both = both.with_more_required(vec![Guard::Seccomp, Guard::Landlock]);
        assert_eq!(
            insisted(&both),
            [(Guard::Landlock, true), (Guard::Seccomp, true)]
        );
        assert_eq!(both.required.len(), 2);
    }
}
