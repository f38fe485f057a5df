//! Examines a project: its services, as an evaluation without `services` of its own gets them, its
//! weak secrets, and what runs in it do not get of the environment.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use altair_sandbox::Place;

use super::abilities;
use super::listeners;
use super::report::{AllowedReport, Report, ServiceReport, WithheldReport};
use super::trial_runs::Lab;
use crate::allowed::{Allow, Allowed, AllowedError, Source, allowed_for, line};
use crate::environment::{OtherUser, Receiver};
use crate::error::reason;
use crate::owner::run_as;
use crate::project_environment::ProjectEnvironment;
use crate::redaction;
use crate::services::{self, Declared, DeclaredService, resolve};
use crate::surroundings::Surroundings;

/// Where the user's own services are shown to come from.
const FILE: &str = "what the user allows (altair allow)";

/// What the user allows a project, by file.
fn allowed_by_file(root: &Path) -> Result<Vec<AllowedReport>, AllowedError> {
    let mut reports = Vec::new();
    for source in Source::all() {
        let options = source.options(root)?;
        if !options.is_empty() {
            let file = source.path().to_owned();
            reports.push(AllowedReport { file, options });
        }
    }
    Ok(reports)
}

/// Timeout for reading the project's files, for name lookups, and for the connections tried.
const PATIENCE: Duration = Duration::from_secs(5);

/// Examines the project at `root`.
///
/// # Errors
/// What is wrong with the project's declarations, in a sentence.
pub(super) fn look(root: &Path, lab: Option<&Lab>, report: &mut Report) -> Result<(), String> {
    let Surroundings {
        environment,
        set_later,
        ..
    } = Surroundings::here(None);
    let unseen = |e: std::io::Error| {
        format!(
            "The project {} cannot be looked at: {}.",
            root.display(),
            reason(&e)
        )
    };
    let place = Place::find(root).map_err(unseen)?;
    report.allowed = allowed_by_file(place.path()).map_err(|error| error.to_string())?;
    let user = run_as(&place);
    let allowed = allowed_for(place.path()).map_err(|e| e.to_string())?;
    let receiver = Receiver {
        passed: allowed.env.clone(),
        other: OtherUser::in_project(&place, user),
        ..Receiver::default()
    };
    let known = ProjectEnvironment::of(&environment, &set_later, receiver, &place, PATIENCE)
        .map_err(unseen)?;
    report.withheld = known
        .given
        .withheld
        .iter()
        .map(|(name, why)| {
            let name = name.to_string_lossy().into_owned();
            WithheldReport {
                lift: why.can_be_passed().then(|| format!("--env={name}")),
                why: why.reason(),
                name,
            }
        })
        .collect();
    let weak = redaction::weak(&known.secrets.variables).into_iter();
    report.warnings.extend(weak.map(|name| {
        format!(
            "The secret in {name} is a word, a known default or too short: it protects nothing, and in answers it is replaced only where it stands as a password."
        )
    }));
    let found = with_allowed(known.services.found()?, &allowed)?;
    let until = Instant::now() + PATIENCE;
    report.services = found
        .iter()
        .map(|found| service(found, &place, until))
        .collect();
    if let Some(lab) = lab {
        let declared: Vec<Declared> = found.iter().map(DeclaredService::declared).collect();
        let until = Instant::now() + PATIENCE;
        abilities::connect(lab, &declared, &mut report.services, until);
    }
    Ok(())
}

/// Services as a project declares them, and those of the user's file.
fn with_allowed(
    declared: Vec<DeclaredService>,
    allowed: &Allowed,
) -> Result<Vec<DeclaredService>, String> {
    let from_of = |one: &Declared| {
        let known = declared.iter().find(|known| known.declared() == *one);
        known.map_or_else(|| FILE.into(), |known| Arc::clone(&known.from))
    };
    let all = declared.iter().map(DeclaredService::declared).collect();
    let all = services::with_allowed(all, allowed)?.into_iter();
    Ok(all
        .map(|one| DeclaredService {
            from: from_of(&one),
            service: one.service,
            by: one.by,
        })
        .collect())
}

/// A service as a run would have it.
fn service(found: &DeclaredService, root: &Place, until: Instant) -> ServiceReport {
    let user = run_as(root);
    let at = services::Place {
        root: Some(root.path()),
        user,
    };
    let mut report = ServiceReport {
        service: found.service.to_string(),
        from: found.from.to_string(),
        by: found.by,
        listeners: Vec::new(),
        addresses: Vec::new(),
        reached: None,
        problem: None,
        allow: None,
    };
    match resolve(&[found.declared()], true, at, until) {
        Ok(services) => {
            report.addresses = services.addresses().iter().map(|one| one.address).collect();
            let missing = services.paths().any(|path| !path.exists());
            report.problem = missing.then(|| "this socket does not exist now".to_owned());
            let (listeners, refused) = listeners::of(&services, user);
            report.listeners = listeners;
            if let Some(why) = refused {
                report.problem = Some(why);
                report.allow = Some(line(root.path(), &Allow::Service(&report.service)));
            }
        }
        Err(problem) => report.problem = Some(problem),
    }
    report
}
