//! Gives the fuzz targets in `fuzz/` access to internals. Absent from all other builds.

use std::path::PathBuf;
use std::sync::Arc;

use crate::dotenv::{self, Names};
use crate::readable_paths::linked_packages;
use crate::redaction::masking::{Grammar, masked};
use crate::redaction::{Secrets, Variable};

/// The number of variables in a `.env` file.
#[must_use]
pub fn dotenv(text: &[u8]) -> usize {
    let mut room = 64 << 10;
    let entries = dotenv::entries(text, &Names::new(), &Names::new(), &mut room);
    entries.len()
}

/// Paths of packages in Composer's `installed.json`.
#[must_use]
pub fn linked(installed: &[u8]) -> Vec<PathBuf> {
    linked_packages(installed)
}

/// Masks what looks like a secret in a text of PHP or prose; at most `max` bytes.
#[must_use]
pub fn mask(text: &str, is_php: bool, max: usize) -> String {
    let grammar = match is_php {
        true => Grammar::Php,
        false => Grammar::Prose,
    };
    masked(text, grammar, max)
}

/// The secrets of one variable.
#[must_use]
pub fn secrets(name: &[u8], value: &[u8]) -> Option<Arc<Secrets>> {
    let variable: Variable = (name.to_vec(), value.to_vec());
    Secrets::of(&[variable])
}
