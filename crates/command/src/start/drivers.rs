//! Starts a command under a program of the system's.

use std::ffi::OsStr;
use std::time::Instant;

use altair_sandbox::{Launch, Policy, Role, RunAs};

use super::Started;
use crate::command::{Command, Stdin};
use crate::drivers::bubblewrap::Bubblewrap;
use crate::drivers::container::{self, Container, Engine};
use crate::drivers::{Invocation, Order, firejail};
use crate::run::{Cleanup, Running};
use crate::{CommandError, Driver, PolicyPaths, WorkDir, binary, work_dir, writable_mounts};

impl Command {
    pub(super) fn start_driver(self) -> Result<Started, CommandError> {
        let started = Instant::now();
        let driver = self.sandbox.driver;
        let program = binary::find(driver, self.sandbox.binary.as_deref(), &self.started_with)?;
        let name = driver.program().map_or("driver", |(name, _)| name);
        let failed = || CommandError::Start(format!("Failed to start {name}"));
        let program = program.ok_or_else(failed)?;
        let work_dir = WorkDir::create(&self.policy.base_dir, driver)?;
        let paths = PolicyPaths::resolve(&self.policy, driver);
        let env = self.own_environment(None);
        let mounts = writable_mounts().unwrap_or_default();
        let order = Order {
            program: &program,
            argv: &self.argv,
            env: &env,
            work_dir: work_dir.path(),
            seen_at: &work_dir::seen_at(driver, work_dir.path(), &paths),
            policy: &self.policy,
            paths: &paths,
            mounts: &mounts,
            has_input: !matches!(self.stdin, Stdin::Empty),
        };
        let Invocation {
            program,
            args,
            env,
            cwd,
            limits,
            cleanup,
        } = self.invocation(&order).map_err(|_| failed())?;
        let (stdio, input) = Self::stdio(self.sandbox.driver, self.stdin, self.terminal)?;
        let cleanup = cleanup.map(|args| Cleanup {
            program: program.clone(),
            args,
            env: env.clone(),
        });
        let launch = Launch {
            program,
            name: None,
            args,
            env,
            cwd,
            channel: None,
            stdio,
            policy: Policy {
                limits,
                ..Policy::unconfined()
            },
            role: Role::Command,
        };
        let child = launch.spawn().map_err(|_| failed())?;
        let running = Running {
            cleanup,
            _work_dir: Some(work_dir),
            ..Running::new(child, input, started)
        };
        Ok(running.into())
    }

    /// The command line for a driver's program.
    fn invocation(&self, order: &Order<'_>) -> std::io::Result<Invocation> {
        let engine = match self.sandbox.driver {
            Driver::Bubblewrap => return Ok(Bubblewrap::inspect(order.program)?.invocation(order)),
            Driver::Firejail => {
                return Ok(firejail::invocation(order, firejail::home().as_deref()));
            }
            Driver::Podman => Engine::Podman,
            Driver::Docker | Driver::Host | Driver::Native => Engine::Docker,
        };
        let image = self
            .sandbox
            .image
            .as_deref()
            .unwrap_or(container::DEFAULT_IMAGE);
        let caller = RunAs {
            uid: nix::unistd::geteuid().as_raw(),
            gid: nix::unistd::getegid().as_raw(),
        };
        let container = Container {
            engine,
            image: OsStr::new(image),
            client_env: &self.environment,
            caller: if caller.uid == 0 {
                work_dir::NOBODY
            } else {
                caller
            },
        };
        Ok(container.invocation(order))
    }
}
