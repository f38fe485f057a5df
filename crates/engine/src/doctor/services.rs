//! The services of a project, as an evaluation without `services` of its own would have them.

use std::path::Path;
use std::time::{Duration, Instant};

use altair_sandbox::Place;

use super::report::ServiceReport;
use crate::known::Known;
use crate::request::reason;
use crate::services::resolve;

/// How long names are looked up.
const PATIENCE: Duration = Duration::from_secs(5);

/// The services of the project at `root`.
///
/// # Errors
/// What is wrong with what the project declares, in a sentence.
pub(super) fn of(root: &Path) -> Result<Vec<ServiceReport>, String> {
    let environment: Vec<_> = std::env::vars_os().collect();
    let root = Place::find(root).map_err(|e| {
        format!(
            "The project {} cannot be looked at: {}.",
            root.display(),
            reason(&e)
        )
    })?;
    let found = Known::of(&environment, &root, PATIENCE).services.found()?;
    let until = Instant::now() + PATIENCE;
    Ok(found
        .into_iter()
        .map(|found| {
            let resolved = resolve(std::slice::from_ref(&found.service), true, until);
            let (addresses, problem) = match resolved {
                Ok(services) => {
                    let missing = services.paths().find(|path| !path.exists());
                    (
                        services.addresses(),
                        missing.map(|_| "there is no such socket now".to_owned()),
                    )
                }
                Err(problem) => (Vec::new(), Some(problem)),
            };
            ServiceReport {
                service: found.service.to_string(),
                from: found.from.to_string(),
                addresses,
                problem,
            }
        })
        .collect())
}
