//! The policy that options and a file describe.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use altair_command::{Driver, ExecutionPolicy, Memory, Outcome, ProjectOf};
use altair_engine::environment::never;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{RunArgs, services};
use crate::failure::{Failure, reason};
use crate::root::Root;

/// A driver, and the policy that it enforces.
#[derive(Debug)]
pub struct Policy {
    pub driver: Driver,
    pub policy: ExecutionPolicy,
}

/// A policy file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    driver: Option<String>,
    timeout: Option<u64>,
    idle_timeout: Option<u64>,
    memory: Option<String>,
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    layer: Vec<PathBuf>,
    service: Vec<String>,
    network: bool,
    env: BTreeMap<String, String>,
    inherit_env: Option<bool>,
}

impl File {
    /// Reads a policy file; its paths are relative to it.
    fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let failed = |why: String| Failure::new(format!("--policy={shown} cannot be used: {why}"));
        let text = std::fs::read(path).map_err(|error| failed(reason(&error)))?;
        let mut file: Self =
            serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
        for (key, seconds) in [
            ("timeout", file.timeout),
            ("idle_timeout", file.idle_timeout),
        ] {
            if seconds == Some(0) {
                return Err(failed(format!("{key} must be at least 1 second")));
            }
        }
        let directory = path.parent().unwrap_or(Path::new(""));
        let lists = [&mut file.read, &mut file.write, &mut file.layer];
        for path in lists.into_iter().flatten() {
            *path = directory.join(&*path);
        }
        Ok(file)
    }
}

impl Policy {
    /// The policy of the options, and of the file that they name.
    ///
    /// # Errors
    /// What is wrong with an option or the file.
    pub fn of(args: &RunArgs) -> Result<Self, Failure> {
        let file = match &args.policy {
            Some(path) => File::read(path)?,
            None => File::default(),
        };
        let File {
            driver,
            timeout,
            idle_timeout,
            memory,
            read,
            write,
            layer,
            service,
            network,
            env,
            inherit_env,
        } = file;
        let driver = match args.driver.as_ref().or(driver.as_ref()) {
            Some(name) => name
                .parse()
                .map_err(|error: altair_command::CommandError| Failure::new(error.to_string()))?,
            None => Driver::Native,
        };
        let cwd = std::env::current_dir().map_err(|error| {
            Failure::new(format!("the working directory is gone: {}", reason(&error)))
        })?;
        let joined = |file: Vec<PathBuf>, options: &[PathBuf]| -> Result<Vec<PathBuf>, Failure> {
            file.iter()
                .chain(options)
                .map(|path| existing(&cwd, path))
                .collect()
        };
        let mut readable_paths = joined(read, &args.read)?;
        let own_root = matches!(driver, Driver::Native | Driver::Host);
        if readable_paths.is_empty() && !own_root {
            // Where a driver shows paths elsewhere, or puts each in its command line, the working
            // directory is what is meant.
            readable_paths.push(cwd.clone());
        }
        let memory = match args.memory.as_ref().or(memory.as_ref()) {
            Some(text) => text
                .parse()
                .map_err(|error: altair_command::MemoryError| Failure::new(error.to_string()))?,
            None => Memory::Unlimited,
        };
        let mut variables: Vec<(OsString, OsString)> = env
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        for variable in &args.env {
            let (name, value) = named(variable)?;
            variables.retain(|(known, _)| *known != name);
            variables.push((name, value));
        }
        let named = services(service.iter().chain(&args.service).cloned().collect());
        let policy = ExecutionPolicy {
            timeout_seconds: args.timeout.or(timeout),
            idle_timeout_seconds: args.idle_timeout.or(idle_timeout),
            memory,
            readable_paths,
            writable_paths: joined(write, &args.write)?,
            layers: joined(layer, &args.layer)?,
            project: named.is_none().then(project).flatten(),
            services: named.unwrap_or_default(),
            env: variables,
            inherit_env: inherit_env.unwrap_or(true),
            network: network || args.network,
            ..ExecutionPolicy::in_dir(if own_root {
                cwd.clone()
            } else {
                std::env::temp_dir()
            })
        };
        Ok(Self { driver, policy })
    }
}

/// The project that the working directory is in, as for an evaluation; `None` if it is not the caller's own.
fn project() -> Option<ProjectOf> {
    let root = Root::of(None).ok()?;
    root.check_to_run().ok()?;
    Some(ProjectOf {
        root: root.path,
        is_found: root.is_found,
    })
}

/// A path that must exist: one that is misspelled would silently be left out.
fn existing(cwd: &Path, path: &Path) -> Result<PathBuf, Failure> {
    let whole = cwd.join(path);
    match whole.symlink_metadata() {
        Ok(_) => Ok(whole),
        Err(error) => Err(Failure::new(format!(
            "the path {} cannot be used: {}",
            path.display(),
            reason(&error)
        ))),
    }
}

/// The name and value of `--env`; the value that this process has if it gives only a name.
fn named(variable: &OsString) -> Result<(OsString, OsString), Failure> {
    let bytes = variable.as_bytes();
    let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let (name, value) = match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => (part(&bytes[..at]), Some(part(&bytes[at + 1..]))),
        None => (variable.clone(), std::env::var_os(variable)),
    };
    let shown = name.display();
    if let Some(why) = never(&name) {
        let why = why.reason();
        return Err(Failure::new(format!(
            "--env={shown} cannot be passed to a command: it is {why}; leave it out, or set it inside of the command (env NAME=value …)"
        )));
    }
    let value = value.filter(|_| !name.is_empty()).ok_or_else(|| {
        let shown = variable.display();
        Failure::new(format!(
            "--env={shown} is no variable of yours: write --env=NAME=value, or --env=NAME for one that you have"
        ))
    })?;
    Ok((name, value))
}

/// The outcome of a command for programs.
pub fn described(command: &[OsString], outcome: &Outcome, applied: bool) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut described = json!({
        "command": command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
        "exit_code": outcome.exit_code,
        "stdout": text(&outcome.stdout),
        "stderr": text(&outcome.stderr),
        "truncated_stdout": outcome.truncated_stdout,
        "truncated_stderr": outcome.truncated_stderr,
        "duration_ms": u64::try_from(outcome.duration.as_millis()).unwrap_or(u64::MAX),
        "timeout_reason": outcome.timeout.map(|reason| reason.name()),
        "blocked": outcome.blocked,
    });
    if let Some(object) = described.as_object_mut() {
        if !outcome.guards.is_empty() {
            let states = outcome.guards.iter();
            let states = states.map(|(name, state)| ((*name).to_owned(), state.to_string().into()));
            object.insert("guards".into(), Value::Object(states.collect()));
        }
        if let Some(changes) = &outcome.changes {
            object.insert("file_changes".into(), json!(changes));
            object.insert("applied".into(), applied.into());
        }
    }
    described
}
