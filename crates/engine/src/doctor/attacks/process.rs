//! Guard `process`: no descriptor but its own, nothing left behind.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Command, Stdio};

use super::outlive::outlive;
use super::{Attempt, ran, returned};
use crate::doctor::scratch_project::Scratch;
use crate::doctor::trial_runs::{Lab, Setting, Trial};

const DESCRIPTOR: &str = "read from a descriptor that this command had open";
const READ: (&str, &str) = ("read", "there is no such descriptor");

pub(super) fn attack(lab: &Lab, setting: Setting) -> Result<Vec<Attempt>, String> {
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let descriptor = inheritable(&scratch)?;
    let trial = Trial::new(setting, &scratch, reading(&descriptor));
    let result = ran(lab.run(&trial)?)?;
    Ok(vec![
        Attempt::new(DESCRIPTOR, returned(&result, scratch.token()), READ),
        outlive("leave a process behind", lab, setting)?,
    ])
}

/// The guard cannot be left out of a run: an ordinary child of this process takes its place.
pub(super) fn without(lab: &Lab, _: Setting) -> Result<Vec<Attempt>, String> {
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let descriptor = inheritable(&scratch)?;
    let code = format!("echo (function () {{ {} }})();", reading(&descriptor));
    let output = Command::new(&lab.php)
        .args(["-n", "-r", &code])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| e.to_string())?;
    let read = output.stdout == scratch.token().as_bytes();
    Ok(vec![Attempt::new(DESCRIPTOR, read, READ)])
}

/// A descriptor of the secret file, inherited by every program that does not close it.
fn inheritable(scratch: &Scratch) -> Result<OwnedFd, String> {
    let file = File::open(scratch.secret_file()).map_err(|e| e.to_string())?;
    // The copy that dup(2) makes is not closed on exec.
    nix::unistd::dup(&file).map_err(|e| e.desc().to_owned())
}

/// PHP code that reads a descriptor without a path in `/proc`.
fn reading(descriptor: &OwnedFd) -> String {
    format!(
        "$file = @fopen('php://fd/{}', 'r'); return $file ? (string) stream_get_contents($file, 100, 0) : '';",
        descriptor.as_raw_fd()
    )
}
