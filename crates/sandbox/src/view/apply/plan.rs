//! What is to be done.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::below::Seen;
use super::metadata::Metadata;
use crate::Inode;
use crate::view::opened::Opened;

/// A directory that has its own layer.
#[derive(Debug)]
pub(super) struct Part {
    /// Absolute, for messages.
    pub path: PathBuf,
    pub upper: Opened,
    pub lower: OwnedFd,
    /// Whether the layer's files can have attributes of users.
    pub has_attributes: bool,
}

/// A directory that is in the layer and below it, and whose entries show through.
#[derive(Debug)]
pub(super) struct Directory {
    pub part: usize,
    /// Relative to the part.
    pub path: PathBuf,
    pub inode: Inode,
    /// The mode below.
    pub mode: u32,
    pub wanted: Metadata,
    /// Whether it shall become different from what is below.
    pub adjusted: bool,
    /// Whether its entries change.
    pub has_entries: bool,
}

/// What happens to one name in a [`Directory`].
#[derive(Debug)]
pub(super) struct Operation {
    /// The index of the directory.
    pub directory: usize,
    pub name: OsString,
    pub action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// There is nothing of this name.
    Create,
    Replace(Seen),
    Delete(Seen),
    /// A file gets another content and keeps its other names.
    Write(Seen),
    /// Only the metadata changes.
    Adjust(Seen, Box<Metadata>),
}

impl Action {
    /// What is there before.
    pub(super) fn seen(&self) -> Option<&Seen> {
        match self {
            Self::Create => None,
            Self::Replace(seen)
            | Self::Delete(seen)
            | Self::Write(seen)
            | Self::Adjust(seen, _) => Some(seen),
        }
    }

    /// Whether it changes which entries a directory has.
    pub(super) fn is_entry(&self) -> bool {
        matches!(self, Self::Create | Self::Replace(_) | Self::Delete(_))
    }

    /// Whether something new comes from the layer.
    pub(super) fn has_content(&self) -> bool {
        matches!(self, Self::Create | Self::Replace(_) | Self::Write(_))
    }
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub parts: Vec<Part>,
    /// Each before those in it.
    pub directories: Vec<Directory>,
    pub operations: Vec<Operation>,
}

impl Plan {
    pub(super) fn is_empty(&self) -> bool {
        self.operations.is_empty() && !self.directories.iter().any(|each| each.adjusted)
    }

    /// The absolute path of a directory, for messages.
    pub(super) fn path_of_directory(&self, directory: usize) -> PathBuf {
        let found = self.directories.get(directory);
        let part = found.and_then(|found| self.parts.get(found.part));
        match (found, part) {
            (Some(found), _) if found.path.as_os_str().is_empty() => {
                part.map(|part| part.path.clone()).unwrap_or_default()
            }
            (Some(found), Some(part)) => part.path.join(&found.path),
            _ => PathBuf::new(),
        }
    }

    /// The absolute path of what an operation is about, for messages.
    pub(super) fn path_of(&self, operation: &Operation) -> PathBuf {
        self.path_of_directory(operation.directory)
            .join(&operation.name)
    }

    /// Notes that the entries of an operation's directory change.
    pub(super) fn mark_entry(&mut self, operation: usize) {
        let directory = self.operations.get(operation).map(|each| each.directory);
        if let Some(found) = directory.and_then(|directory| self.directories.get_mut(directory)) {
            found.has_entries = true;
        }
    }
}
