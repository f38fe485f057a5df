//! Examines a project: its services, as an evaluation without `services` of its own gets them, and
//! its weak secrets.

use std::path::Path;
use std::time::{Duration, Instant};

use altair_sandbox::Place;

use super::abilities;
use super::report::{Report, ServiceReport};
use super::trial_runs::Lab;
use crate::error::reason;
use crate::owner::run_as;
use crate::project_environment::ProjectEnvironment;
use crate::redaction;
use crate::services::resolve;

/// Timeout for reading the project's files, for name lookups, and for the connections tried.
const PATIENCE: Duration = Duration::from_secs(5);

/// Examines the project at `root`.
///
/// # Errors
/// What is wrong with the project's declarations, in a sentence.
pub(super) fn look(root: &Path, lab: Option<&Lab>, report: &mut Report) -> Result<(), String> {
    let environment: Vec<_> = std::env::vars_os().collect();
    let unseen = |e: std::io::Error| {
        format!(
            "The project {} cannot be looked at: {}.",
            root.display(),
            reason(&e)
        )
    };
    let place = Place::find(root).map_err(unseen)?;
    let user = run_as(&place);
    let known = ProjectEnvironment::of(&environment, &place, PATIENCE).map_err(unseen)?;
    let weak = redaction::weak(&known.secrets.variables).into_iter();
    report.warnings.extend(weak.map(|name| {
        format!(
            "The secret in {name} is a word, a known default or too short: it protects nothing, and in answers it is replaced only where it stands as a password."
        )
    }));
    let found = known.services.found()?;
    let until = Instant::now() + PATIENCE;
    report.services = found
        .into_iter()
        .map(|found| {
            let resolved = resolve(std::slice::from_ref(&found.service), true, user, until);
            let (addresses, problem) = match resolved {
                Ok(services) => {
                    let missing = services.paths().find(|path| !path.exists());
                    (
                        services.addresses(),
                        missing.map(|_| "this socket does not exist now".to_owned()),
                    )
                }
                Err(problem) => (Vec::new(), Some(problem)),
            };
            ServiceReport {
                service: found.service.to_string(),
                from: found.from.to_string(),
                addresses,
                reached: None,
                problem,
            }
        })
        .collect();
    if let Some(lab) = lab {
        abilities::connect(lab, &mut report.services, Instant::now() + PATIENCE);
    }
    Ok(())
}
