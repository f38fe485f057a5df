//! Guard `limits`: the kernel's caps.

use super::{Attempt, why};
use crate::Outcome;
use crate::confinement::{DESCRIPTORS, HARD_CAP_HEADROOM_BYTES};
use crate::doctor::scratch_project::Scratch;
use crate::doctor::trial_runs::{Lab, Setting, Trial};

pub(super) fn attack(lab: &Lab, setting: Setting) -> Result<Vec<Attempt>, String> {
    Ok(vec![memory(lab, setting)?, descriptors(lab, setting)?])
}

/// Without the guard `ini` there is no `memory_limit`: only the kernel's cap is left.
fn memory(lab: &Lab, setting: Setting) -> Result<Attempt, String> {
    let tried = "take more memory than the hard cap";
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let mut trial = Trial::new(setting, &scratch, String::new());
    // The smallest limit keeps the attack small.
    trial.request = trial.request.with_memory_limit_mb(0);
    let cap = (u64::from(trial.request.memory_limit_mb()) << 20) + HARD_CAP_HEADROOM_BYTES;
    let size = cap + (16 << 20);
    trial.request.snippet = format!("return strlen(str_repeat('x', {size}));").into();
    let result = lab.run(&trial)?;
    Ok(match result.diagnostics.outcome {
        Outcome::Returned => Attempt::new(tried, true, ("taken", "")),
        // PHP exits at once if it gets no memory, and does not always report that.
        Outcome::OutOfMemory | Outcome::Fatal | Outcome::NoReport => {
            Attempt::new(tried, false, ("", "refused"))
        }
        _ => Attempt::impossible(tried, why(&result)),
    })
}

fn descriptors(lab: &Lab, setting: Setting) -> Result<Attempt, String> {
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let snippet = format!(
        "for ($all = []; count($all) < {DESCRIPTORS} && $file = @fopen('/dev/null', 'r');) {{ $all[] = $file; }}
        return count($all);"
    );
    let result = super::ran(lab.run(&Trial::new(setting, &scratch, snippet))?)?;
    let opened = result
        .result
        .as_ref()
        .and_then(|value| value.get("value")?.as_u64())
        .unwrap_or_default();
    Ok(Attempt::new(
        "open more files at a time than allowed",
        opened >= DESCRIPTORS,
        ("opened", "refused"),
    ))
}
