//! What a file of what is allowed says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::values;

/// A file's entries.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Content {
    #[serde(default)]
    project: BTreeMap<Root, Entry>,
}

/// A mistake in a file: the line, from 1, where it is known, and what is wrong.
pub(super) type Mistake = (Option<usize>, String);

impl Content {
    pub(super) fn parse(text: &str) -> Result<Self, Mistake> {
        toml_edit::de::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start));
            let line = before.map(|before| 1 + before.matches('\n').count());
            (
                line,
                error.message().trim_end_matches('.').replace('\n', ", "),
            )
        })
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (&Root, &Entry)> {
        self.project.iter()
    }

    pub(super) fn into_entries(self) -> impl Iterator<Item = (Root, Entry)> {
        self.project.into_iter()
    }
}

/// The roots that an entry is for, as in the file: an absolute path, or one that ends in `/` and
/// means everything below, too.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Root(String);

impl Root {
    /// Whether the entry is for a root, given as its real path.
    #[must_use]
    pub fn covers(&self, root: &Path) -> bool {
        match self.0.ends_with('/') {
            true => root.starts_with(&self.0),
            false => root == Path::new(&self.0),
        }
    }

    /// As in the file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Root {
    type Error = String;

    /// # Errors
    /// If it is not absolute, or contains `.`, `..` or `//`.
    fn try_from(key: String) -> Result<Self, String> {
        values::check_root(&key).map(|()| Self(key))
    }
}

/// What is allowed for the roots of one entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    #[serde(default)]
    services: Vec<Service>,
    #[serde(default)]
    env: Vec<Name>,
    #[serde(default)]
    read: Vec<Readable>,
    max_timeout_ms: Option<TimeoutMs>,
    max_memory_mb: Option<MemoryMb>,
}

impl Entry {
    /// [`Allowed::services`](super::Allowed::services).
    pub fn services(&self) -> impl Iterator<Item = String> {
        self.services.iter().map(|one| one.0.clone())
    }

    /// [`Allowed::env`](super::Allowed::env).
    pub fn env(&self) -> impl Iterator<Item = String> {
        self.env.iter().map(|one| one.0.clone())
    }

    /// [`Allowed::read`](super::Allowed::read).
    pub fn read(&self) -> impl Iterator<Item = PathBuf> {
        self.read.iter().map(|one| one.0.clone().into())
    }

    /// [`Allowed::max_timeout_ms`](super::Allowed::max_timeout_ms).
    #[must_use]
    pub fn max_timeout_ms(&self) -> Option<u64> {
        self.max_timeout_ms.map(|bound| bound.0)
    }

    /// [`Allowed::max_memory_mb`](super::Allowed::max_memory_mb).
    #[must_use]
    pub fn max_memory_mb(&self) -> Option<u64> {
        self.max_memory_mb.map(|bound| bound.0)
    }
}

// Each value is checked where it stands, so that a mistake has its line.

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Service(String);

impl TryFrom<String> for Service {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        values::check_service(&text).map(|()| Self(text))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Name(String);

impl TryFrom<String> for Name {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        values::check_env(&name).map(|()| Self(name))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
struct Readable(String);

impl TryFrom<String> for Readable {
    type Error = String;

    fn try_from(path: String) -> Result<Self, String> {
        values::check_read(&path).map(|()| Self(path))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
struct TimeoutMs(u64);

impl TryFrom<u64> for TimeoutMs {
    type Error = String;

    fn try_from(ms: u64) -> Result<Self, String> {
        values::check_timeout(ms).map(|()| Self(ms))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u64")]
struct MemoryMb(u64);

impl TryFrom<u64> for MemoryMb {
    type Error = String;

    fn try_from(mb: u64) -> Result<Self, String> {
        values::check_memory(mb).map(|()| Self(mb))
    }
}
