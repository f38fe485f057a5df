//! Starts a command where its caller is, without confinement.

use std::time::Instant;

use altair_sandbox::{Launch, Limits, Policy, Role, SpawnError, why_unseen};

use super::{Started, find, not_started, search_path};
use crate::command::{Command, WorksIn};
use crate::outcome::exit_codes;
use crate::run::Running;
use crate::{CommandError, Memory, work_dir};

impl Command {
    pub(super) fn start_on_host(self) -> Result<Started, CommandError> {
        let started = Instant::now();
        let env = self.own_environment(None);
        let cwd = match self.works_in {
            WorksIn::Own => work_dir::base_directory(&self.policy.base_dir)?,
            WorksIn::Base => work_dir::working_directory(&self.policy.base_dir)?,
        };
        let refused = |code: i32, why: &str| {
            not_started(
                code,
                format!("Failed to start host process: {why}"),
                started,
            )
        };
        let not_found = |why: &str| refused(exit_codes::COMMAND_NOT_FOUND, why);
        if let Some(why) = why_unseen() {
            return Err(CommandError::Start(format!(
                "Nothing was started: what the command starts could not be ended here, since {why}"
            )));
        }
        let Some((name, args)) = self.argv.split_first() else {
            return Ok(not_found("the command is empty"));
        };
        let path = search_path(&env, &self.environment);
        let Some(program) = find(name, &path, &cwd) else {
            return Ok(not_found(&format!("{} was not found", name.display())));
        };
        let memory = match self.policy.memory {
            Memory::Megabytes(_) => self.policy.memory.bytes(),
            Memory::Default | Memory::Unlimited => None,
        };
        let (stdio, input) = Self::stdio(self.sandbox.driver, self.stdin, self.terminal)?;
        let launch = Launch {
            program,
            name: Some(name.clone()),
            args: args.to_vec(),
            env,
            cwd,
            channel: None,
            stdio,
            policy: Policy {
                limits: Limits {
                    data_bytes: memory,
                    ..Limits::default()
                },
                ..Policy::unconfined()
            },
            role: Role::Command,
        };
        match launch.spawn() {
            Ok(child) => Ok(Running::new(child, input, started).into()),
            Err(error @ (SpawnError::NotExecutable { .. } | SpawnError::NotAProgram { .. })) => {
                Ok(refused(exit_codes::NOT_EXECUTABLE, &error.to_string()))
            }
            Err(error) => Ok(not_found(&error.to_string())),
        }
    }
}
