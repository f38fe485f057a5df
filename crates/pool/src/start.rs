//! Starts a pool, or finds out that none may be started.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::address::Address;
use crate::title;

/// The option of `altair pool` that makes it serve in the directory that is its value.
pub const SERVE: &str = "--serve";
/// The option of `altair pool` that starts one that serves there, and ends.
pub const START: &str = "--start";
/// The variable that names a log for a pool.
const LOG: &str = "ALTAIR_POOL_LOG";

/// Has `program` start a pool at an address, and waits until it has: some milliseconds. It gets the
/// environment that the host was started with, and none that names code for its loader or a log since.
pub(crate) fn start(program: &Path, address: &Address, environment: &[(OsString, OsString)]) {
    // What goes wrong is not this host's affair: it evaluates by itself.
    let _ = Command::new(program)
        .args([OsStr::new("pool"), OsStr::new(START)])
        .arg(address.path())
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
}

/// Starts a process of the running program that serves in a directory and has nothing of its
/// starter's: environment, streams, other descriptors.
///
/// # Errors
/// What keeps the program from being started.
pub fn spawn(directory: &Path) -> std::io::Result<()> {
    let program = std::env::current_exe()?;
    altair_sandbox::close_all_on_exec()?;
    let log = std::env::var_os(LOG).filter(|path| !path.is_empty());
    let log = log.and_then(|path| {
        std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .ok()
    });
    Command::new(program)
        .args([
            OsStr::new("pool"),
            OsStr::new(SERVE),
            directory.as_os_str(),
            OsStr::new(title::ROOM),
        ])
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log.map_or_else(Stdio::null, Stdio::from))
        .spawn()
        .map(drop)
}

/// The program `altair` beside a file, or on a search path.
pub(crate) fn program(beside: Option<&Path>, search_path: Option<&OsStr>) -> Option<PathBuf> {
    let beside = beside.and_then(Path::parent).map(|dir| dir.join("altair"));
    let searched = search_path.into_iter().flat_map(std::env::split_paths);
    let searched = searched.filter(|dir| dir.is_absolute());
    beside
        .into_iter()
        .chain(searched.map(|dir| dir.join("altair")))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}
