//! What a policy means for each driver that is another program: a command line.

use std::ffi::OsString;
use std::path::PathBuf;

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
    /// A command that removes what outlives the driver's program, run after each command that did
    /// not end by itself: program and arguments.
    pub cleanup: Option<(PathBuf, Vec<OsString>)>,
}
