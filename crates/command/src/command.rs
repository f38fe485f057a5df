//! A command, everything that decides how it runs, and whether that makes sense.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use altair_engine::Environment;
use altair_engine::programs::{Programs, Unconfined};
use altair_sandbox::Pseudoterminal;

use crate::{CommandError, Driver, ExecutionPolicy, stdin, work_dir};

/// A driver, and what its constructor takes.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// The driver.
    pub driver: Driver,
    /// Its program, if another one than the usual.
    pub binary: Option<OsString>,
    /// The image of containers.
    pub image: Option<String>,
}

/// What a command reads from its standard input.
#[derive(Debug)]
pub enum Stdin {
    /// Nothing.
    Empty,
    /// These bytes.
    Bytes(Vec<u8>),
    /// What comes over this descriptor: a file, a pipe, a socket or a device. A confined command gets
    /// a pipe itself, and of anything else a pipe with its bytes.
    Descriptor(OwnedFd),
}

/// Where a command works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorksIn {
    /// A fresh directory below the policy's base directory, which is gone afterwards; with the
    /// driver `host`, the base directory itself.
    Own,
    /// The policy's base directory itself, as from a shell: under `native` the command is shown the
    /// repository around it, too, and a home without keys that is gone afterwards. Only for the
    /// drivers `host` and `native`.
    Base,
}

/// A command, and everything that decides how it runs.
#[derive(Debug)]
pub struct Command {
    /// What enforces the policy.
    pub sandbox: Sandbox,
    /// The policy.
    pub policy: ExecutionPolicy,
    /// Where it works.
    pub works_in: WorksIn,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Its standard input.
    pub stdin: Stdin,
    /// A terminal for all its standard streams, instead of `stdin`: only for `host` and `native`.
    pub terminal: Option<Pseudoterminal>,
    /// The caller's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The environment that the caller was started with, which says where the driver's program is.
    pub started_with: Environment,
    /// Which programs the caller may start.
    pub programs: Programs,
    /// Whether the changes in a layer are listed with diffs.
    pub diff: bool,
    /// How many changes in a layer are listed. Those in new directories may be more, and are counted;
    /// if the others are more, the layer cannot be applied.
    pub listed: usize,
}

/// Sends a command the signals that its caller got.
pub type Signals = Box<dyn FnMut() -> Option<i32> + Send>;

/// A command that is checked and can be run, on any thread.
#[derive(Debug)]
pub struct Prepared(pub(crate) Command);

impl Command {
    /// Checks it.
    ///
    /// # Errors
    /// [`CommandError::Invalid`]: what is wrong with the command or the policy, in a sentence.
    /// [`CommandError::Forbidden`]: the caller may not start the driver's program.
    pub fn prepare(mut self) -> Result<Prepared, CommandError> {
        let invalid = |what: &str| Err(CommandError::Invalid(what.to_owned()));
        if self.argv.is_empty() {
            return invalid("The command is empty: it needs at least a program.");
        }
        if self.argv.first().is_some_and(|program| program.is_empty()) {
            return invalid("The name of the program is empty.");
        }
        if let Some(index) = self
            .argv
            .iter()
            .position(|word| word.as_bytes().contains(&0))
        {
            return invalid(&format!(
                "Argument {index} of the command holds a NUL byte, which no argument can."
            ));
        }
        let driver = self.sandbox.driver;
        match driver {
            // Confined before it is executed.
            Driver::Native => {}
            Driver::Host
            | Driver::Docker
            | Driver::Podman
            | Driver::Firejail
            | Driver::Bubblewrap => self.programs.permit(Unconfined::Driver(driver.name()))?,
        }
        if driver != Driver::Native
            && !(self.policy.layers.is_empty() && self.policy.services.is_empty())
        {
            return invalid(&format!(
                "The driver {} supports neither layers nor services. Use native.",
                driver.name()
            ));
        }
        let is_text = |text: &OsString| text.to_str().is_some();
        let env = self.policy.env.iter();
        if driver == Driver::Docker
            && !(self.argv.iter().all(is_text)
                && env.flat_map(|(name, value)| [name, value]).all(is_text))
        {
            // Its client would put other characters in their place (JSON).
            return invalid("Docker can pass only UTF-8 on, in arguments and variables.");
        }
        if self.policy.env.iter().any(|(name, value)| {
            name.is_empty()
                || name.as_bytes().iter().any(|byte| b"=\0".contains(byte))
                || value.as_bytes().contains(&0)
        }) {
            return invalid(
                "A variable's name is empty or has an equals sign or a NUL byte, or its value has a NUL byte.",
            );
        }
        match self.works_in {
            WorksIn::Own => work_dir::base_directory(&self.policy.base_dir)?,
            WorksIn::Base => work_dir::working_directory(&self.policy.base_dir)?,
        };
        self.stdin = stdin::checked(self.stdin)?;
        Ok(Prepared(self))
    }
}
