//! Guard `environment`: keeps keys and variables for loaders out of the run.

use super::{Attempt, ran, returned};
use crate::doctor::scratch_project::Scratch;
use crate::doctor::trial_runs::{Lab, Setting, Trial};

pub(super) fn attack(lab: &Lab, setting: Setting) -> Result<Vec<Attempt>, String> {
    let scratch = Scratch::new().map_err(|e| e.to_string())?;
    let (key, loader) = scratch.token().split_at(scratch.token().len() / 2);
    let snippet = "return [getenv('AWS_SECRET_ACCESS_KEY'), getenv('LD_ALTAIR_DOCTOR')];";
    let variables = [("AWS_SECRET_ACCESS_KEY", key), ("LD_ALTAIR_DOCTOR", loader)];
    let mut trial = Trial::new(setting, &scratch, snippet.into());
    trial.variables = &variables;
    let result = ran(lab.run(&trial)?)?;
    let words = ("read", "it is not there");
    Ok(vec![
        Attempt::new(
            "read a cloud key from the environment",
            returned(&result, key),
            words,
        ),
        Attempt::new(
            "get a variable for the loader (LD_…) into the environment",
            returned(&result, loader),
            words,
        ),
    ])
}
