//! Where services are declared, but for the request: the project's `composer.json` and the
//! application's environment.

use std::sync::Arc;

use altair_sandbox::bounded::at_most;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::variables::{self, Variables};
use super::{SERVICES_MAX, Service, declared};

/// Composer's file of a project.
const MANIFEST: &str = "composer.json";

/// Our part of its `extra`.
const OWN: &str = "altair-eval";

/// What a project declares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Declarations {
    /// `extra.altair-eval.services`, where there is such a list; or what is wrong with it.
    pub manifest: Option<Result<Vec<Service>, String>>,
    /// What the environment says.
    pub environment: Vec<Found>,
}

/// A service that was found, and where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Which.
    #[serde(serialize_with = "as_text")]
    pub service: Service,
    /// What it was found in, without passwords: `DATABASE_URL=mysql://shop:***@db/shop (.env)`.
    #[serde(serialize_with = "as_str")]
    pub from: Arc<str>,
}

fn as_str<S: serde::Serializer>(text: &Arc<str>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(text)
}

fn as_text<S: serde::Serializer>(service: &Service, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(service)
}

impl Declarations {
    /// The file whose content [`Declarations::of`] takes, below the root.
    pub(crate) const FILE: &str = MANIFEST;

    /// What the content of `composer.json` and the environment declare.
    pub(crate) fn of(manifest: Option<&[u8]>, environment: &Variables<'_>) -> Self {
        Self {
            manifest: manifest.and_then(of_manifest),
            environment: variables::services(environment),
        }
    }

    /// What holds where the request says nothing, and whether each has to be usable.
    ///
    /// # Errors
    /// What is wrong with the list of `composer.json`.
    pub(crate) fn services(&self) -> Result<Vec<Service>, String> {
        match &self.manifest {
            Some(manifest) => manifest.clone(),
            None => Ok(self
                .environment
                .iter()
                .map(|found| found.service.clone())
                .collect()),
        }
    }

    /// The same, with where each was found.
    pub(crate) fn found(&self) -> Result<Vec<Found>, String> {
        Ok(match &self.manifest {
            Some(manifest) => manifest
                .clone()?
                .into_iter()
                .map(|service| Found {
                    service,
                    from: format!("extra.altair-eval.services ({MANIFEST})").into(),
                })
                .collect(),
            None => self.environment.clone(),
        })
    }
}

/// As much of `composer.json` as is of interest, and of the list `T`.
#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct Manifest<T> {
    #[serde(default = "Extra::none")]
    extra: Extra<T>,
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct Extra<T> {
    #[serde(rename = "altair-eval", default = "Own::none")]
    own: Own<T>,
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct Own<T> {
    #[serde(default = "Option::default")]
    services: Option<T>,
}

impl<T> Extra<T> {
    fn none() -> Self {
        Self { own: Own::none() }
    }
}

impl<T> Own<T> {
    fn none() -> Self {
        Self { services: None }
    }
}

/// A list of texts; one that is longer than any that can be used is read no further.
#[derive(Deserialize)]
struct Texts(#[serde(deserialize_with = "at_most::<TEXTS_MAX, _, _>")] Vec<String>);
const TEXTS_MAX: usize = 2 * SERVICES_MAX;

/// `extra.altair-eval.services`.
fn of_manifest(text: &[u8]) -> Option<Result<Vec<Service>, String>> {
    // What is there at all, before what it is.
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(text) {
        // It may be the list that is not seen.
        return text
            .windows(OWN.len())
            .any(|part| part == OWN.as_bytes())
            .then(|| {
                Err(format!(
                    "{MANIFEST} cannot be read, and may declare services: {error}."
                ))
            });
    }
    let there: Manifest<IgnoredAny> = serde_json::from_slice(text).ok()?;
    there.extra.own.services?;
    let services = serde_json::from_slice::<Manifest<Texts>>(text)
        .map_err(|_| format!("It has to be a list of strings, of {TEXTS_MAX} at most."))
        .and_then(|manifest| match manifest.extra.own.services {
            Some(Texts(texts)) => declared(&texts),
            None => Ok(Vec::new()),
        });
    Some(
        services.map_err(|why| {
            format!("extra.altair-eval.services in {MANIFEST} cannot be used. {why}")
        }),
    )
}
