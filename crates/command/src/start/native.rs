//! Starts a command behind the kernel's guards.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;

use altair_sandbox::{Launch, Place, Pseudoterminal, Role, SpawnError, Stdio};

use super::{Started, find, not_started, search_path};
use crate::command::{Command, WorksIn};
use crate::layer::beginning;
use crate::level::{self, Level};
use crate::native::{self, Native, Workplace};
use crate::outcome::exit_codes;
use crate::run::{Running, deadline_after};
use crate::sight::Sight;
use crate::surroundings::Around;
use crate::{CommandError, Driver, ExecutionPolicy, PolicyPaths, WorkDir, work_dir};

impl Command {
    /// `on_disk`: the layer is on disk from the start, as where the kernel makes none in memory.
    pub(super) fn start_native(self, on_disk: bool) -> Result<Started, CommandError> {
        let started = Instant::now();
        let policy = &self.policy;
        let is_own = self.works_in == WorksIn::Own;
        let base = find_place(&match self.works_in {
            WorksIn::Own => work_dir::base_directory(&policy.base_dir)?,
            WorksIn::Base => work_dir::working_directory(&policy.base_dir)?,
        })?;
        let paths = PolicyPaths::resolve(policy, Driver::Native);
        let readable = places(&paths.readable);
        let writable = places(&paths.writable);
        if writable.iter().any(|place| place.path() == Path::new("/")) {
            return Err(CommandError::Invalid(
                "The driver native cannot make the whole root directory writable: name the directories."
                    .into(),
            ));
        }
        let layered = layered(policy, &writable)?;
        let user = native::run_as(&writable, &layered, (!is_own).then_some(&base));
        let until = deadline_after(started, policy.timeout_seconds);
        let services = native::services(policy, user, until)?;
        // Nothing is made in a working directory: it may be written only as far as the policy says.
        let made_in = match self.works_in {
            WorksIn::Own => policy.base_dir.clone(),
            WorksIn::Base => std::env::temp_dir(),
        };
        let make_own = || {
            WorkDir::create_for(&made_in, user).map_err(|error| match (self.works_in, error) {
                (WorksIn::Base, CommandError::Invalid(_)) => CommandError::Start(format!(
                    "The command needs a directory of its own, and none can be made in {}. Set TMPDIR to a directory that you may write.",
                    made_in.display()
                )),
                (_, error) => error,
            })
        };
        let is_shown = native::can_be_shown(base.path());
        let (workplace, work_dir) = if is_own {
            let dir = make_own()?;
            let at = work_dir::native_at(dir.path(), &[&readable, &writable, &layered]);
            (Workplace::own(dir.place().clone(), at), Some(dir))
        } else if !is_shown {
            // The command has its own there; nothing is mounted over it.
            let dir = make_own()?;
            let workplace = Workplace {
                place: dir.place().clone(),
                at: dir.path().to_owned(),
                cwd: base.path().to_owned(),
                is_own,
            };
            (workplace, Some(dir))
        } else {
            (Workplace::at(base.clone()), None)
        };
        let named = readable.iter().chain(&writable).chain(&layered);
        let named: Vec<&Path> = named.map(Place::path).collect();
        let mut surroundings = None;
        let hidden = match self.works_in {
            WorksIn::Own => native::secrets(user, &named),
            WorksIn::Base => {
                let variable = self.environment.iter().find(|(name, _)| name == "HOME");
                let variable = variable.map(|(_, value)| value.as_os_str());
                let base = is_shown.then(|| base.path());
                let written = writable.iter().chain(&layered);
                let written: Vec<&Path> = written.map(Place::path).collect();
                let found = Around::new(base, &named, &written, user, variable).look()?;
                surroundings.insert(found).hidden.clone()
            }
        };
        let native = Native {
            policy,
            workplace: &workplace,
            readable,
            writable,
            layered,
            services,
            user,
            has_terminal: self.terminal.is_some(),
            surroundings,
            hidden,
        };
        let sight = native.sight(&self.argv);
        let has_terminal = self.terminal.is_some();
        let env = self.own_environment(user);
        let path = search_path(&env, &self.environment);
        let Some((name, args)) = self.argv.split_first() else {
            return Err(CommandError::Invalid("The command is empty.".into()));
        };
        let since = (!native.layered.is_empty()).then(beginning);
        let (stdio, input) = Self::stdio(self.sandbox.driver, self.stdin, self.terminal)?;
        let mut stdio = Some(stdio);
        let mut store = None;
        let mut make = || {
            let dir = make_own()?;
            let place = dir.place().clone();
            store = Some(dir);
            Ok(place)
        };
        let mut level = match on_disk {
            true => Level::LayerOnDisk(make()?),
            false => Level::Full,
        };
        let mut why = String::new();
        loop {
            let cwd = native.starts_in(&level);
            let Some(program) = find(name, &path, &cwd) else {
                let why = format!("{}: command not found", name.display());
                return Ok(not_started(exit_codes::COMMAND_NOT_FOUND, why, started));
            };
            let given = stdio.as_ref().map(again).transpose()?;
            let (kernels, divided) = native.policy(&level);
            let launch = Launch {
                program: program.clone(),
                name: Some(name.clone()),
                args: args.to_vec(),
                env: native::with_directories(
                    env.clone(),
                    &native.temp(&level),
                    native.home(&level),
                ),
                cwd,
                channel: None,
                stdio: given.unwrap_or(Stdio::Captured { input: None }),
                policy: kernels,
                role: Role::Command,
            };
            let child = match launch.spawn() {
                Ok(child) => child,
                Err(
                    error @ (SpawnError::ProgramMissing { .. }
                    | SpawnError::InterpreterMissing { .. }),
                ) => {
                    let why = unseen(&error, &program, sight.as_ref());
                    return Ok(not_started(exit_codes::COMMAND_NOT_FOUND, why, started));
                }
                Err(
                    error @ (SpawnError::NotExecutable { .. } | SpawnError::NotAProgram { .. }),
                ) => {
                    let why = match sight.as_ref().is_some_and(|sight| !sight.sees(&program)) {
                        true => unseen(&error, &program, sight.as_ref()),
                        false => error.to_string(),
                    };
                    return Ok(not_started(exit_codes::NOT_EXECUTABLE, why, started));
                }
                Err(error) => {
                    let own = || match is_own {
                        true => Ok(workplace.place.clone()),
                        false => make(),
                    };
                    (level, why) = level::step_down(&level, &error, native.layers(), own)?;
                    native.check(&level)?;
                    if let Level::NoRoot(own) = &level {
                        native.link_toolchains(own);
                    }
                    continue;
                }
            };
            drop(stdio.take());
            let guards = level::lacking(child.guards(), &level, &why, &divided);
            let layered = native.layered.iter().map(|place| place.path().to_owned());
            let running = Running {
                since,
                layered: layered.collect(),
                guards,
                store,
                sight,
                has_terminal,
                _work_dir: work_dir,
                ..Running::new(child, input, started)
            };
            return Ok(running.into());
        }
    }
}

/// The streams for another attempt.
fn again(stdio: &Stdio) -> Result<Stdio, CommandError> {
    let copy = |descriptor: &OwnedFd| {
        let copied = descriptor.try_clone();
        copied.map_err(|error| CommandError::Start(format!("No descriptor is left: {error}")))
    };
    Ok(match stdio {
        Stdio::Captured { input } => Stdio::Captured {
            input: input.as_ref().map(copy).transpose()?,
        },
        Stdio::Terminal(terminal) => Stdio::Terminal(Pseudoterminal {
            host: copy(&terminal.host)?,
            process: copy(&terminal.process)?,
        }),
    })
}

/// Why a program that the host has cannot be executed in a private root.
fn unseen(error: &SpawnError, program: &Path, sight: Option<&Sight>) -> String {
    match program.exists() {
        true if sight.is_some_and(|sight| !sight.sees(program)) => format!(
            "{0}: the command may not read it; --read={0} lets it",
            program.display()
        ),
        true => format!(
            "{}: this policy does not show it, or the interpreter that it names. A readable path shows it.",
            program.display()
        ),
        false => error.to_string(),
    }
}

fn find_place(path: &Path) -> Result<Place, CommandError> {
    Place::find(path).map_err(|error| {
        CommandError::Start(format!("{} cannot be opened: {error}", path.display()))
    })
}

/// What is at paths; one that is gone by now is skipped.
fn places(paths: &[PathBuf]) -> Vec<Place> {
    paths
        .iter()
        .filter_map(|path| Place::find(path).ok())
        .collect()
}

/// The directories that get a layer, each only once.
fn layered(policy: &ExecutionPolicy, writable: &[Place]) -> Result<Vec<Place>, CommandError> {
    let mut layered: Vec<Place> = Vec::new();
    let invalid = |path: &Path, why: &str| {
        Err(CommandError::Invalid(format!(
            "{} cannot have a layer: {why}.",
            path.display()
        )))
    };
    for path in &policy.layers {
        let place = match Place::find(path) {
            Ok(place) if place.is_directory() => place,
            Ok(_) => return invalid(path, "it is not a directory"),
            Err(error) => return invalid(path, &error.to_string()),
        };
        if place.path() == Path::new("/") {
            return invalid(path, "the root directory would have to be copied");
        }
        if writable.contains(&place) {
            return invalid(path, "it is a writable path of the same policy");
        }
        layered.push(place);
    }
    // One inside another is part of that one's layer.
    layered.sort_by(|one, other| one.path().cmp(other.path()));
    layered.dedup_by(|next, kept| next.path().starts_with(kept.path()));
    Ok(layered)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::run::Listing;
    use crate::{Sandbox, Stdin};
    use altair_engine::Silent;
    use altair_engine::programs::Programs;

    #[test]
    fn a_layer_on_disk_can_be_applied_and_is_gone_afterwards() {
        let base = tempfile::tempdir().unwrap();
        let files = tempfile::tempdir().unwrap();
        let mut policy = ExecutionPolicy::in_dir(base.path());
        policy.layers = vec![files.path().to_owned()];
        let command = Command {
            sandbox: Sandbox {
                driver: Driver::Native,
                binary: None,
                image: None,
            },
            policy: policy.clone(),
            works_in: WorksIn::Own,
            argv: vec!["touch".into(), files.path().join("made").into_os_string()],
            stdin: Stdin::Empty,
            terminal: None,
            environment: Vec::new(),
            started_with: [].into(),
            programs: Programs::All,
            diff: false,
            listed: 100,
        };
        let Started::Running(running) = command.start_native(true).unwrap() else {
            panic!("not started");
        };

        let listing = Listing {
            diff: false,
            at_most: 100,
        };
        let outcome = running.finish(&policy, listing, &mut Silent, None).unwrap();

        assert_eq!(outcome.exit_code, 0, "{:?}", outcome.stderr);
        assert!(!files.path().join("made").exists());
        let layer = outcome.layer.unwrap();
        layer.apply().unwrap();
        assert!(files.path().join("made").exists());
        drop(layer);
        assert_eq!(base.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_made_in_a_working_directory() {
        use std::os::unix::fs::MetadataExt;
        let base = tempfile::tempdir().unwrap();
        let files = tempfile::tempdir().unwrap();
        let changed = || {
            let of = base.path().metadata().unwrap();
            (of.ctime(), of.ctime_nsec())
        };
        let before = changed();
        for on_disk in [false, true] {
            let mut policy = ExecutionPolicy::in_dir(base.path());
            policy.layers = vec![files.path().to_owned()];
            let command = Command {
                sandbox: Sandbox {
                    driver: Driver::Native,
                    binary: None,
                    image: None,
                },
                policy: policy.clone(),
                works_in: WorksIn::Base,
                argv: vec!["touch".into(), files.path().join("made").into_os_string()],
                stdin: Stdin::Empty,
                terminal: None,
                environment: Vec::new(),
                started_with: [].into(),
                programs: Programs::All,
                diff: false,
                listed: 100,
            };
            let Started::Running(running) = command.start_native(on_disk).unwrap() else {
                panic!("not started");
            };
            let listing = Listing {
                diff: false,
                at_most: 100,
            };
            let outcome = running.finish(&policy, listing, &mut Silent, None).unwrap();
            assert_eq!(outcome.exit_code, 0, "{:?}", outcome.stderr);
            assert_eq!(changed(), before);
        }
    }
}
