//! Guards `filesystem` and `landlock`: files outside of the project, and the project itself.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::{Attempt, holds, ran, returned};
use crate::EvalResult;
use crate::doctor::scratch_project::{Scratch, literal};
use crate::doctor::trial_runs::{Lab, Setting, Trial};

const READ: (&str, &str) = ("read", "not read");
const WRITTEN: (&str, &str) = ("written", "not written");

pub(super) fn attack_view(lab: &Lab, setting: Setting) -> Result<Vec<Attempt>, String> {
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let result = run(lab, setting, &scratch)?;
    let mode = scratch
        .secret_file()
        .metadata()
        .map(|file| file.permissions().mode());
    Ok(vec![
        read_outside(&result, &scratch),
        Attempt::new(
            "change the mode of a file outside of the project",
            mode.is_ok_and(|mode| mode & 0o777 == CHANGED_MODE),
            ("changed", "not changed"),
        ),
        Attempt::new(
            "write into the project for good",
            holds(&scratch.project().join("new"), scratch.token()),
            ("written", "nothing of it is there afterwards"),
        ),
    ])
}

pub(super) fn attack_landlock(lab: &Lab, setting: Setting) -> Result<Vec<Attempt>, String> {
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let result = run(lab, setting, &scratch)?;
    Ok(vec![
        read_outside(&result, &scratch),
        Attempt::new(
            "write a file outside of the project",
            holds(&scratch.outside().join("new"), scratch.token()),
            WRITTEN,
        ),
        Attempt::new(
            "write into the project",
            holds(&scratch.project().join("new"), scratch.token()),
            WRITTEN,
        ),
    ])
}

const CHANGED_MODE: u32 = 0o640;

/// Reads the secret by its name and through a link in the project, and writes and changes what it
/// can.
fn run(lab: &Lab, setting: Setting, scratch: &Scratch) -> Result<EvalResult, String> {
    let link = scratch.project().join("link");
    symlink(scratch.secret_file(), &link).map_err(|e| e.to_string())?;
    let snippet = format!(
        "$read = [@file_get_contents({secret}), @file_get_contents({link})];
        @file_put_contents({outside}, '{token}');
        @file_put_contents({inside}, '{token}');
        @chmod({secret}, {CHANGED_MODE});
        return $read;",
        secret = literal(&scratch.secret_file()),
        link = literal(&link),
        outside = literal(&scratch.outside().join("new")),
        inside = literal(&scratch.project().join("new")),
        token = scratch.token(),
    );
    ran(lab.run(&Trial::new(setting, scratch, snippet))?)
}

fn read_outside(result: &EvalResult, scratch: &Scratch) -> Attempt {
    Attempt::new(
        "read a file outside of the project",
        returned(result, scratch.token()),
        READ,
    )
}
