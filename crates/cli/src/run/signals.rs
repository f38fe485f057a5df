//! Passes signals on to the command.

use std::sync::Arc;

use altair_sandbox::CaughtSignals;
use nix::libc::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};

use crate::failure::{Failure, reason};

/// Signals that are passed on.
const PASSED_ON: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH];

/// What happens when the size of the terminal changes.
pub type Resizer = Arc<dyn Fn() + Send + Sync>;

/// Signals that are caught until this is dropped.
pub struct Signals {
    _caught: CaughtSignals,
    resizer: Option<Resizer>,
}

impl Signals {
    /// Catches signals. With a `resizer`, a changed size is its matter.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn catch(resizer: Option<Resizer>) -> Result<Self, Failure> {
        let caught = CaughtSignals::catch(&PASSED_ON).map_err(|error| {
            Failure::new(format!("signals cannot be caught: {}", reason(&error)))
        })?;
        Ok(Self {
            _caught: caught,
            resizer,
        })
    }

    /// Returns each caught signal once, for the command.
    pub fn forwarding(&self) -> altair_command::Signals {
        let resizer = self.resizer.clone();
        Box::new(move || match (CaughtSignals::take(&PASSED_ON)?, &resizer) {
            (SIGWINCH, Some(resize)) => {
                resize();
                None
            }
            (signal, _) => Some(signal),
        })
    }
}
