//! What a policy means for each driver that is another program: a command line.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use altair_sandbox::Limits;

use crate::{CommandError, Driver, ExecutionPolicy, WorkDir};

/// How to start a driver's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The driver's program.
    pub program: PathBuf,
    /// Its arguments, the command's among them.
    pub args: Vec<OsString>,
    /// The whole environment of the driver's program.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Limits of the driver's program.
    pub limits: Limits,
    /// A command that removes what outlives the driver's program, run after each command that did
    /// not end by itself: program and arguments.
    pub cleanup: Option<(PathBuf, Vec<OsString>)>,
}

/// What an invocation is made from.
pub struct Request<'a> {
    pub driver: Driver,
    pub program: &'a Path,
    pub image: Option<&'a str>,
    pub policy: &'a ExecutionPolicy,
    pub work_dir: &'a WorkDir,
    pub argv: &'a [OsString],
    pub has_stdin: bool,
    pub environment: &'a [(OsString, OsString)],
}

pub fn invocation(_: &Request<'_>) -> Result<Invocation, CommandError> {
    Err(CommandError::Start("soon".into()))
}
