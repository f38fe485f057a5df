//! Which variables of its host's environment a run or a command gets, and which are withheld.
//!
//! The rule, in order ([`Receiver::withholds`]):
//! 1. what steers a loader or is a cloud key never passes;
//! 2. what the user has named passes ([`Receiver::passed`]);
//! 3. what is a terminal's or a session's, and credentials of the caller's, pass only if the project's
//!    `.env` files name them;
//! 4. a run of another user than the host's, or of code that others can change in a project of root's,
//!    gets a short list, and in a container what the container's first process has with the same value.
//!    Its owner reads what its processes have (`/proc/<pid>/environ`), and what the application sends.
//!    That the project names a variable is no reason here: the owner of the project would ask for what
//!    the host alone has.

mod container;
mod names;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use altair_sandbox::{Place, RunAs, other_user};
use nix::unistd::{Uid, User, geteuid};

use crate::EvalError;
use crate::owner::others_have_code_in;
pub use names::{
    CLOUD_KEYS, CODE, CREDENTIALS, FOR_ANOTHER_USER, HOME, LOADERS, SESSION, TERMINAL,
};

/// Name and value.
pub type Variable = (OsString, OsString);

/// Why a variable of the host's is withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withheld {
    /// It steers a loader, an allocator or an interpreter ([`LOADERS`]).
    Loader,
    /// It is a key that no run gets ([`CLOUD_KEYS`]).
    CloudKey,
    /// It is a terminal's or a session's ([`TERMINAL`], [`SESSION`]).
    Session,
    /// It is a credential of the caller's ([`CREDENTIALS`]).
    Credential,
    /// It is the host's, and the run another user's, or of code that others can change.
    Hosts,
}

/// Who gets variables of the host's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Receiver {
    /// The names that the user has it get all the same.
    pub passed: Vec<String>,
    /// Whether it is at the user's terminal: a command.
    pub has_terminal: bool,
    /// If it is another user than the host.
    pub other: Option<OtherUser>,
}

/// Another user than the host's, or one whose code the host's executes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OtherUser {
    /// Its home, by the user database.
    home: Option<OsString>,
    /// What the first process of the container has.
    container: Vec<Variable>,
}

impl OtherUser {
    /// Another user, if this is one than the host's.
    #[must_use]
    pub fn of(user: Option<RunAs>) -> Option<Self> {
        let uid = Uid::from_raw(other_user(user)?.uid);
        // As root with another group it is root still.
        (uid != geteuid()).then(|| Self::with_home_of(uid))
    }

    /// Who gets a part of the host's environment in a project, whose runs are executed as `user`: code
    /// that others have put into a project of root's is theirs, though root executes it.
    #[must_use]
    pub(crate) fn in_project(root: &Place, user: Option<RunAs>) -> Option<Self> {
        let is_root = user.is_some_and(|user| user.uid == 0) && geteuid().is_root();
        let is_others = || is_root && others_have_code_in(root);
        Self::of(user).or_else(|| is_others().then(|| Self::with_home_of(geteuid())))
    }

    fn with_home_of(user: Uid) -> Self {
        let home = User::from_uid(user).ok().flatten();
        Self {
            home: home.map(|user| user.dir.into_os_string()),
            container: container::variables(),
        }
    }
}

/// What a run or command gets, and what it does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filtered {
    /// The variables that it gets.
    pub variables: Vec<Variable>,
    /// The names of those that the host has and it does not get, and why.
    pub withheld: Vec<(OsString, Withheld)>,
}

impl Withheld {
    /// Why, in words for the user.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Loader => "what steers a loader, an allocator or an interpreter",
            Self::CloudKey => "a cloud key",
            Self::Session => "of a terminal or a session",
            Self::Credential => "a credential of an agent, a forge, a registry or a deployment",
            Self::Hosts => {
                "the host's own; runs here are another user's, or of code that others can change"
            }
        }
    }

    /// Whether the user can pass it all the same.
    #[must_use]
    pub fn can_be_passed(self) -> bool {
        match self {
            Self::Loader | Self::CloudKey => false,
            Self::Session | Self::Credential | Self::Hosts => true,
        }
    }
}

/// Names of variables that a project's files have.
pub type Names = HashSet<Vec<u8>>;

impl Receiver {
    /// Divides a host's environment. `named`: what the project's `.env` files name.
    #[must_use]
    pub fn filter(&self, environment: &[Variable], named: &Names) -> Filtered {
        let mut given = Filtered::default();
        for (name, value) in environment {
            match self.withholds(name, value, named) {
                None => given.variables.push((name.clone(), value.clone())),
                Some(why) => given.withheld.push((name.clone(), why)),
            }
        }
        if let Some(home) = self.other.as_ref().and_then(|other| other.home.as_ref())
            && !self.passes(OsStr::new(HOME))
        {
            given.withheld.retain(|(name, _)| name != HOME);
            given.variables.push((HOME.into(), home.clone()));
        }
        given
    }

    /// Why it does not get a variable of the host's; `None` if it gets it.
    #[must_use]
    pub fn withholds(&self, name: &OsStr, value: &OsStr, named: &Names) -> Option<Withheld> {
        if let Some(never) = never(name) {
            return Some(never);
        }
        if self.passes(name) {
            return None;
        }
        if !named.contains(name.as_bytes()) {
            let is_of_terminal = !self.has_terminal && names::is_of(TERMINAL, name);
            if is_of_terminal || names::is_of(SESSION, name) {
                return Some(Withheld::Session);
            }
            if names::is_of_in_any_case(CREDENTIALS, name) {
                return Some(Withheld::Credential);
            }
        }
        let other = self.other.as_ref()?;
        let is_for_all = names::is_of(FOR_ANOTHER_USER, name)
            || self.has_terminal && names::is_of(TERMINAL, name);
        let is_containers = name != HOME && container::has(&other.container, name, value);
        (!is_for_all && !is_containers).then_some(Withheld::Hosts)
    }

    fn passes(&self, name: &OsStr) -> bool {
        self.passed.iter().any(|passed| name == passed.as_str())
    }
}

/// Why nobody gets a variable, whoever asks for it.
#[must_use]
pub fn never(name: &OsStr) -> Option<Withheld> {
    if names::is_of_in_any_case(LOADERS, name) {
        Some(Withheld::Loader)
    } else if names::is_of_in_any_case(CLOUD_KEYS, name) {
        Some(Withheld::CloudKey)
    } else {
        None
    }
}

/// Whether a variable names code that libraries load ([`CODE`]).
pub(crate) fn names_code(name: &OsStr) -> bool {
    names::is_of(CODE, name)
}

/// Puts the variables that name code ([`CODE`]) back to what they were at the start.
pub(crate) fn restore_code(environment: &mut Vec<Variable>, start: &[Variable]) {
    environment.retain(|(name, _)| !names_code(name));
    let of_start = start.iter();
    environment.extend(of_start.filter(|(name, _)| names_code(name)).cloned());
}

/// Checks the names that the user has a run get.
///
/// # Errors
/// [`EvalError::InvalidRequest`] for what is no name, and for one that no run gets.
pub fn check(passed: &[String]) -> Result<(), EvalError> {
    let invalid = |why: String| Err(EvalError::InvalidRequest(why));
    for name in passed {
        if name.is_empty() || name.contains(['=', '\0']) {
            let shown = name.escape_default();
            return invalid(format!(
                "\"{shown}\" cannot be the name of a variable: name one of the environment, without its value (--env=NAME)."
            ));
        }
        let why = match never(OsStr::new(name)) {
            None => continue,
            Some(Withheld::CloudKey) => {
                "it is a cloud key: put it into the project's .env, which the application reads by itself"
            }
            Some(_) => {
                "it steers a loader, an allocator or an interpreter: leave it out, or make an unsafe run"
            }
        };
        return invalid(format!(
            "The variable {name} cannot be passed to a confined run: {why}."
        ));
    }
    Ok(())
}
