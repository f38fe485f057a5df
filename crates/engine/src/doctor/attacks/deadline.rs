//! Guard `deadline`: ends a run that does not end by itself.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::{Attempt, ends, is_alive, pid};
use crate::Outcome;
use crate::doctor::scratch_project::Scratch;
use crate::doctor::trial_runs::{Lab, Setting, Trial};

/// Deadlines that are tried, in milliseconds: the second for a machine on which PHP does not start
/// within the first.
const DEADLINES_MS: [i64; 2] = [300, 5_000];

/// Shell code that starts a background process, in a session of its own if possible, and prints its
/// number.
const START: &str = "$(command -v setsid) sleep 600 >/dev/null 2>&1 </dev/null & echo $!";

/// Extra time for ending a run on a busy machine.
const SLACK: Duration = Duration::from_secs(5);

pub(super) fn attack(lab: &Lab, setting: Setting) -> Result<Vec<Attempt>, String> {
    let alone = format!(
        "echo exec('{START}'), \"\\n\", getmypid(), \"\\n\"; for (;;) {{ try {{ while (true); }} catch (Throwable) {{}} }}"
    );
    Ok(vec![
        endless(
            "run on for ever, and start a process that does, too",
            lab,
            setting,
            &alone,
        )?,
        endless(
            "run on for ever, with every guard on",
            lab,
            Setting::All,
            "echo getmypid(), \"\\n\"; while (true);",
        )?,
    ])
}

fn endless(tried: &str, lab: &Lab, setting: Setting, snippet: &str) -> Result<Attempt, String> {
    for deadline in DEADLINES_MS {
        let scratch = Scratch::new().map_err(|e| e.to_string())?;
        let mut trial = Trial::new(setting, &scratch, snippet.into());
        trial.request = trial.request.with_timeout_ms(deadline);
        let started = Instant::now();
        let mut running = Vec::new();
        let result = lab.watch(&trial, &mut |line| {
            running.extend(pid(line).filter(|pid| is_alive(*pid)));
            ControlFlow::Continue(())
        })?;
        if running.is_empty() {
            continue;
        }
        let took = started.elapsed();
        let in_time = took < Duration::from_millis(deadline.unsigned_abs()) + SLACK
            && result.is_some_and(|result| result.diagnostics.outcome == Outcome::TimedOut);
        // Checks all of them: none may be left.
        let gone = running.into_iter().filter(|pid| !ends(*pid)).count() == 0;
        return Ok(Attempt::new(
            tried,
            !(in_time && gone),
            (
                if gone {
                    "it ran on"
                } else {
                    "a process is still there"
                },
                &format!(
                    "ended at its deadline of {deadline} ms, after {} ms",
                    took.as_millis()
                ),
            ),
        ));
    }
    Ok(Attempt::impossible(tried, "PHP did not start in time"))
}
