//! Guard `privileges`: no capability, and no way to gain one.

use std::ops::ControlFlow;
use std::os::unix::fs::{PermissionsExt, chown};

use super::{Attempt, pid, ran, returned};
use crate::doctor::scratch_project::{Scratch, literal};
use crate::doctor::trial_runs::{Lab, Setting, Trial};

/// A user other than root, to own a file: the usual number of `nobody`.
const NOBODY: u32 = 65_534;

pub(super) fn attack(lab: &Lab, setting: Setting) -> Result<Vec<Attempt>, String> {
    let mut attempts = vec![ways(lab, setting)?];
    if nix::unistd::geteuid().is_root() {
        attempts.push(others_file(lab, setting)?);
    }
    Ok(attempts)
}

/// Checks what the kernel reports about a process of a run.
fn ways(lab: &Lab, setting: Setting) -> Result<Attempt, String> {
    let tried = "keep a capability, or a way to one through a set-uid program";
    if let Some(why) = altair_sandbox::why_unseen() {
        return Ok(Attempt::impossible(tried, why));
    }
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let mut status = None;
    let snippet = "echo getmypid(), \"\\n\"; sleep(60);".into();
    lab.watch(&Trial::new(setting, &scratch, snippet), &mut |line| {
        status =
            pid(line).and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/status")).ok());
        ControlFlow::Break(())
    })?;
    let Some(status) = status else {
        return Ok(Attempt::impossible(
            tried,
            "the run's process is not visible in /proc",
        ));
    };
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .map_or("", str::trim)
    };
    let capabilities = ["CapInh", "CapPrm", "CapEff", "CapAmb"]
        .iter()
        .any(|set| field(set).chars().any(|digit| digit != '0'));
    let ways = field("NoNewPrivs") != "1";
    Ok(Attempt::new(
        tried,
        capabilities || ways,
        match (capabilities, ways) {
            (true, true) => ("it has capabilities, and programs may add to them", ""),
            (true, false) => ("it has capabilities", ""),
            (false, true) => ("programs may add to its privileges", ""),
            (false, false) => ("", "it has none, and no_new_privs is set"),
        },
    ))
}

/// Root in the child is root in name only.
fn others_file(lab: &Lab, setting: Setting) -> Result<Attempt, String> {
    let tried = "read a file of another user, as root";
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let file = scratch.secret_file();
    let private = std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600))
        .and_then(|()| chown(&file, Some(NOBODY), Some(NOBODY)));
    if private.is_err() {
        return Ok(Attempt::impossible(
            tried,
            "this root cannot give files away",
        ));
    }
    let snippet = format!("return (string) @file_get_contents({});", literal(&file));
    let result = ran(lab.run(&Trial::new(setting, &scratch, snippet))?)?;
    Ok(Attempt::new(
        tried,
        returned(&result, scratch.token()),
        ("read", "not read"),
    ))
}
