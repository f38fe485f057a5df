//! Which of the host's files a template saw.

use std::collections::HashSet;

use super::Changed;
use super::path_resolution::{Resolved, Walk};
use super::tree::Tree;

/// What no template sees of the host, or what changes by itself.
const NEVER: [&[u8]; 3] = [b"/proc", b"/sys", b"/dev"];

/// Whether a template saw what the host has at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// Yes.
    Host,
    /// A directory or a link on the way to what it saw: it leads to the same place, but is the
    /// template's own.
    Way,
    /// Its attributes, but neither its content nor the names in it.
    Names,
    /// No.
    Own,
}

/// The visible part of the host's files. Its paths contain no links.
#[derive(Debug)]
pub(super) struct Area {
    visible: Vec<Vec<u8>>,
    private: Vec<Vec<u8>>,
    way: HashSet<Vec<u8>>,
    /// What is seen elsewhere.
    elsewhere: Sight,
}

impl Area {
    /// Everything.
    pub(super) fn all() -> Self {
        Self {
            visible: vec![Vec::new()],
            private: Vec::new(),
            way: HashSet::new(),
            elsewhere: Sight::Own,
        }
    }

    /// What is below `visible` and not below `private`; the longer of two matching prefixes
    /// decides. `elsewhere`: what is seen where neither matches.
    ///
    /// # Errors
    /// [`Changed`] if the kernel does not report what is on the way there.
    pub(super) fn new(
        visible: &[Vec<u8>],
        private: &[Vec<u8>],
        elsewhere: Sight,
    ) -> Result<Self, Changed> {
        let mut scratch = Tree::new(Self::all(), 0)?;
        let mut real = |path: &Vec<u8>| {
            scratch
                .walk(path, &Walk::everywhere())
                .map(|found| match found {
                    Resolved::At(place) | Resolved::Nothing(place) => scratch.path(&place),
                    Resolved::PassedOver => path.clone(),
                })
        };
        // "/" is the empty prefix.
        let trimmed = |path: Vec<u8>| path.strip_suffix(b"/").map(<[u8]>::to_vec).unwrap_or(path);
        let mut resolve = |paths: &[Vec<u8>]| {
            paths
                .iter()
                .map(|path| real(path).map(trimmed))
                .collect::<Result<Vec<_>, _>>()
        };
        let visible = resolve(visible)?;
        let private = resolve(private)?;
        Ok(Self {
            visible,
            private,
            way: scratch.places().map(|place| scratch.path(&place)).collect(),
            elsewhere,
        })
    }

    /// What a template saw at `path`, which has no link on the way.
    pub(super) fn sight(&self, path: &[u8]) -> Sight {
        let longest = |prefixes: &[Vec<u8>]| {
            prefixes
                .iter()
                .filter(|prefix| below(path, prefix))
                .map(|prefix| prefix.len() + 1)
                .max()
                .unwrap_or(0)
        };
        if NEVER.iter().any(|prefix| below(path, prefix)) {
            return Sight::Own;
        }
        let (visible, private) = (longest(&self.visible), longest(&self.private));
        if visible > private {
            Sight::Host
        } else if private == 0 && self.elsewhere == Sight::Names {
            Sight::Names
        } else if self.way.contains(path) {
            Sight::Way
        } else {
            Sight::Own
        }
    }

    /// Whether a template saw everything in the directory `path`, at any depth.
    pub(super) fn whole(&self, path: &[u8]) -> bool {
        self.sight(path) == Sight::Host
            && !self.private.iter().any(|prefix| below(prefix, path))
            && !NEVER.iter().any(|prefix| below(prefix, path))
    }
}

/// Whether `path` is `prefix`, which has no `/` at its end, or below it.
fn below(path: &[u8], prefix: &[u8]) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}
