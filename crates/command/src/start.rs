//! Starts a command under its driver.

mod drivers;
mod host;
mod native;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use altair_engine::environment::OtherUser;
use altair_engine::php_binary;
use altair_sandbox::{Input, Pseudoterminal, RunAs, Stdio};

use crate::command::{Command, Stdin};
use crate::run::Running;
use crate::work_dir::NOBODY;
use crate::{CommandError, Driver, Outcome, environment, stdin};

/// Where programs are looked for if the command has no `PATH`, as the C library does (confstr(3),
/// `_CS_PATH`) and with the local programs besides.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A command that runs, or the outcome of one that did not start.
pub(crate) enum Started {
    Running(Box<Running>),
    Not(Box<Outcome>),
}

impl Command {
    /// Starts it under its driver.
    pub(crate) fn start(self) -> Result<Started, CommandError> {
        match self.sandbox.driver {
            Driver::Host => self.start_on_host(),
            Driver::Native => self.start_native(false),
            Driver::Docker | Driver::Podman | Driver::Firejail | Driver::Bubblewrap => {
                self.start_driver()
            }
        }
    }

    /// The command's own environment. `user`: the one that it runs as; `None`: the caller's.
    ///
    /// To nobody, who owns no project, it is what the caller has it inherit.
    fn own_environment(&self, user: Option<RunAs>) -> Vec<(OsString, OsString)> {
        let user = user.filter(|user| *user != NOBODY);
        environment(&self.policy, &self.environment, OtherUser::of(user))
    }

    /// The streams of the process, and what the host feeds it.
    fn stdio(
        driver: Driver,
        stdin: Stdin,
        terminal: Option<Pseudoterminal>,
    ) -> Result<(Stdio, Option<Input>), CommandError> {
        if let Some(terminal) = terminal {
            return Ok((Stdio::Terminal(terminal), None));
        }
        let (input, feed) = match stdin {
            Stdin::Empty => (None, None),
            Stdin::Descriptor(descriptor) => (Some(stdin::given(descriptor, driver)?), None),
            Stdin::Bytes(bytes) => {
                let (feed, theirs) = Input::new(bytes).map_err(stdin::failed)?;
                (Some(theirs), Some(feed))
            }
        };
        Ok((Stdio::Captured { input }, feed))
    }
}

impl From<Running> for Started {
    fn from(running: Running) -> Self {
        Self::Running(Box::new(running))
    }
}

fn not_started(code: i32, why: String, started: Instant) -> Started {
    Started::Not(Box::new(Outcome::not_started(code, why, started.elapsed())))
}

/// Where programs are looked for: the command's `PATH`, otherwise the caller's, otherwise the usual
/// directories.
fn search_path(own: &[(OsString, OsString)], caller: &[(OsString, OsString)]) -> OsString {
    let path = |list: &[(OsString, OsString)]| {
        let found = list.iter().find(|(name, _)| name == "PATH");
        found
            .map(|(_, value)| value.clone())
            .filter(|value| !value.is_empty())
    };
    path(own)
        .or_else(|| path(caller))
        .unwrap_or_else(|| DEFAULT_PATH.into())
}

/// The program that a name stands for: a path, which may be relative to the working directory, or
/// the first of its name on `path`.
fn find(name: &OsStr, path: &OsStr, cwd: &Path) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Some(cwd.join(name));
    }
    php_binary::find(name, Some(path)).ok()
}
