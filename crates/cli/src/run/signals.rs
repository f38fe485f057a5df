//! Passes signals on to the command.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::libc::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::SigId;

use crate::failure::{Failure, reason};

/// Signals that are passed on.
const PASSED_ON: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH];

/// What happens when the size of the terminal changes.
pub type Resizer = Box<dyn Fn() + Send + Sync>;

/// Signals that are caught until this is dropped.
pub struct Signals {
    caught: Vec<(i32, Arc<AtomicBool>)>,
    registered: Vec<SigId>,
    resizer: Option<Arc<Resizer>>,
}

impl Signals {
    /// Catches signals. With a `resizer`, a changed size is its matter.
    ///
    /// # Errors
    /// If the system refuses it.
    pub fn catch(resizer: Option<Resizer>) -> Result<Self, Failure> {
        let mut signals = Self {
            caught: Vec::new(),
            registered: Vec::new(),
            resizer: resizer.map(Arc::new),
        };
        for signal in PASSED_ON {
            let flag = Arc::new(AtomicBool::new(false));
            let id = signal_hook::flag::register(signal, Arc::clone(&flag)).map_err(|error| {
                Failure::new(format!("signals cannot be caught: {}", reason(&error)))
            })?;
            signals.caught.push((signal, flag));
            signals.registered.push(id);
        }
        Ok(signals)
    }

    /// Returns each caught signal once, for the command.
    pub fn forwarding(&self) -> altair_command::Signals {
        let caught = self.caught.clone();
        let resizer = self.resizer.clone();
        Box::new(move || {
            let found = caught
                .iter()
                .find(|(_, flag)| flag.swap(false, Ordering::Relaxed));
            let (signal, _) = found?;
            match (&resizer, *signal) {
                (Some(resize), SIGWINCH) => {
                    resize();
                    None
                }
                (_, signal) => Some(signal),
            }
        })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
