//! A process that would outlive its run.

use std::fs::File;
use std::ops::ControlFlow;

use super::{Attempt, ends, is_alive, pid};
use crate::doctor::scratch_project::{Scratch, literal};
use crate::doctor::trial_runs::{Lab, Setting, Trial};

/// Has a run start a process, and checks it during the run and after its end.
pub(super) fn outlive(tried: &str, lab: &Lab, setting: Setting) -> Result<Attempt, String> {
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let seen = scratch.project().join("seen");
    let snippet = format!(
        "echo exec('{START}'), \"\\n\"; while (!file_exists({})) {{ clearstatcache(); usleep(1000); }} return 1;",
        literal(&seen)
    );
    let mut started = None;
    lab.watch(&Trial::new(setting, &scratch, snippet), &mut |line| {
        started = pid(line).filter(|pid| is_alive(*pid));
        // Without the file the run would continue until its deadline.
        match File::create(&seen) {
            Ok(_) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    })?;
    Ok(match started {
        Some(pid) => Attempt::new(
            tried,
            !ends(pid),
            ("it is still there", "it is gone with the run"),
        ),
        None => Attempt::impossible(tried, "PHP started none"),
    })
}

/// Shell code that starts a background process and prints its number.
const START: &str = "sleep 600 >/dev/null 2>&1 </dev/null & echo $!";
