//! The environment that this process was started with, before any code of the application: what
//! `putenv()` does later decides about no program.

use std::ffi::OsString;
use std::sync::{PoisonError, RwLock};

use altair_engine::{Environment, variable};

/// The process that was looked at, and its environment.
static KNOWN: RwLock<Option<(u32, Environment)>> = RwLock::new(None);

/// Looks at the environment, unless it was looked at in this process.
///
/// At the module's start, and again when a request starts in another process: workers of php-fpm are
/// forks of the process that has started the module, and then get the `env[…]` of their pool. The
/// engine undoes `putenv()` at the end of each request, so a request never starts with what an earlier
/// one has put there.
pub fn remember() {
    let process = std::process::id();
    let is_known = || {
        let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().is_some_and(|(of, _)| *of == process)
    };
    if !is_known() {
        let now = std::env::vars_os().collect();
        *KNOWN.write().unwrap_or_else(PoisonError::into_inner) = Some((process, now));
    }
}

/// All variables.
pub fn environment() -> Environment {
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    let known = known.as_ref();
    known.map_or_else(|| [].into(), |(_, environment)| environment.clone())
}

/// The value of a variable.
pub fn value(name: &str) -> Option<OsString> {
    variable(&environment(), name).map(OsString::from)
}
