//! Services declared outside of the request: in the project's `composer.json` and the application's
//! environment.

use std::path::{Component, Path};
use std::sync::Arc;

use serde::Serialize;

use super::variables::{self, Variables};
use super::{By, Declared, Service, declared};
use crate::encode::read_bounded;

/// Composer's project file.
const MANIFEST: &str = "composer.json";

/// Our part of its `extra`.
const OWN: &str = "altair-eval";

/// What a project declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Declarations {
    /// `extra.altair-eval.services`, if there is such a list; `Err` says what is wrong with it.
    pub manifest: Option<Result<Vec<Service>, String>>,
    /// Services found in the environment.
    pub environment: Vec<DeclaredService>,
    /// `extra.altair-eval.casters`, if there is such an entry: a file below the root; `Err` says what
    /// is wrong with it.
    pub casters: Option<Result<String, String>>,
}

/// A service that was found, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeclaredService {
    /// The service.
    #[serde(serialize_with = "as_text")]
    pub service: Service,
    /// Who declares it.
    pub by: By,
    /// Where it was found, without passwords: `DATABASE_URL=mysql://shop:***@db/shop (.env)`.
    #[serde(serialize_with = "as_str")]
    pub from: Arc<str>,
}

impl DeclaredService {
    /// The service, and who declares it.
    #[must_use]
    pub fn declared(&self) -> Declared {
        Declared {
            service: self.service.clone(),
            by: self.by,
        }
    }
}

fn as_str<S: serde::Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

fn as_text<S: serde::Serializer>(service: &Service, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(service)
}

impl Declarations {
    /// The file in the project root whose content [`Declarations::of`] takes.
    pub(crate) const FILE: &str = MANIFEST;

    /// What the content of `composer.json` and the environment declare.
    pub(crate) fn of(manifest: Option<&[u8]>, environment: &dyn Variables) -> Self {
        Self {
            manifest: manifest.and_then(of_manifest),
            environment: variables::services(environment),
            casters: manifest.and_then(casters),
        }
    }

    /// The services that apply if the request names none.
    ///
    /// # Errors
    /// What is wrong with the list of `composer.json`.
    pub(crate) fn services(&self) -> Result<Vec<Declared>, String> {
        Ok(match &self.manifest {
            Some(manifest) => By::Project.declares(manifest.clone()?),
            None => {
                let found = self.environment.iter();
                found.map(DeclaredService::declared).collect()
            }
        })
    }

    /// The same, with where each was found.
    pub(crate) fn found(&self) -> Result<Vec<DeclaredService>, String> {
        Ok(match &self.manifest {
            Some(manifest) => manifest
                .clone()?
                .into_iter()
                .map(|service| DeclaredService {
                    service,
                    by: By::Project,
                    from: format!("extra.altair-eval.services ({MANIFEST})").into(),
                })
                .collect(),
            None => self.environment.clone(),
        })
    }
}

/// `extra.altair-eval.casters`: the PHP file that shows the application's objects. What it says is
/// run in the child, behind the guards; a manifest that cannot be read says nothing of it.
fn casters(text: &[u8]) -> Option<Result<String, String>> {
    let manifest = read_bounded(text).ok()?;
    let file = manifest.get("extra")?.get(OWN)?.get("casters")?;
    let wrong = |why: &str| {
        Err(format!(
            "extra.altair-eval.casters in {MANIFEST} cannot be used: {why}."
        ))
    };
    let Some(file) = file.as_str() else {
        return Some(wrong(
            "it has to be the path of a PHP file, relative to the project",
        ));
    };
    let is_below = Path::new(file)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    Some(match file.is_empty() || file.contains('\0') || !is_below {
        true => wrong("the file has to be in the project"),
        false => Ok(file.to_owned()),
    })
}

/// `extra.altair-eval.services`.
fn of_manifest(text: &[u8]) -> Option<Result<Vec<Service>, String>> {
    let manifest = match read_bounded(text) {
        Ok(manifest) => manifest,
        // The unreadable part may be the list.
        Err(error) if text.windows(OWN.len()).any(|part| part == OWN.as_bytes()) => {
            return Some(Err(format!(
                "{MANIFEST} cannot be read, and may declare services: {error}."
            )));
        }
        Err(_) => return None,
    };
    let list = manifest.get("extra")?.get(OWN)?.get("services")?;
    let texts: Result<Vec<String>, _> = serde_json::from_value(list.clone());
    let services = texts
        .map_err(|_| "It has to be a list of strings.".to_owned())
        .and_then(|texts| declared(&texts));
    Some(
        services.map_err(|why| {
            format!("extra.altair-eval.services in {MANIFEST} cannot be used. {why}")
        }),
    )
}
