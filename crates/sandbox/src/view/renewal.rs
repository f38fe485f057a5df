//! What is mounted for each process by itself: the project and the directory for temporary files.
//! It is mounted from what is kept backstage, so that a process of the same private root can mount
//! it afresh.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Serialize};

use super::plan::c_string;
use crate::{SpawnError, Step};

/// The directory in the private root where it is kept. Once all is mounted, something empty is
/// mounted over it, and nobody who could unmount that is left.
pub(super) const BACKSTAGE: &CStr = c"/.altair-backstage";

// Names in it.

/// An empty directory, to cover all.
pub(super) const COVER: &CStr = c".cover";
/// The files of the first layer.
pub(super) const LAYER: &str = ".layer";
/// The files of a fork's layer.
pub(super) const RUN: &str = ".run";
/// The files of a new directory for temporary files, and what was there before.
pub(super) const NEW_TEMP: &str = ".temp";
pub(super) const OLD_TEMP: &str = ".old";

/// A lower directory.
pub(super) fn lower(index: usize) -> String {
    format!(".lower{index}")
}

/// A file that is mounted below the project.
pub(super) fn file(index: usize) -> String {
    format!(".file{index}")
}

/// What is mounted below the directory for temporary files.
pub(super) fn kept(index: usize) -> String {
    format!(".kept{index}")
}

/// What is mounted for each process by itself, as data that the process gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    /// The project's path.
    pub(super) project: Vec<u8>,
    pub(super) writes: WritesRenewed,
    /// Files that are mounted below the project, relative to it.
    pub(super) files: Vec<Vec<u8>>,
    /// The name of the sealed directory.
    pub(super) sealed: Option<Vec<u8>>,
    /// The path of the directory for temporary files.
    pub(super) temp: Vec<u8>,
    /// The data of mount(2) for it.
    pub(super) temp_options: Vec<u8>,
    /// Paths below it at which something is mounted.
    pub(super) kept: Vec<Vec<u8>>,
}

/// How the project is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WritesRenewed {
    /// As it is.
    Bind,
    /// Under a layer.
    Layer {
        /// The data of mount(2) for a file system in memory that holds it; `None`: it is there.
        options: Option<Vec<u8>>,
        /// Each has a layer of its own; the first is the project itself, the others are mounted
        /// below it.
        parts: Vec<Part>,
        /// Whether overlayfs keeps its marks in attributes that need no privilege.
        user_xattr: bool,
    },
}

/// A directory that gets a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    /// Relative to the project.
    pub(super) below: Vec<u8>,
    /// Of the directory, which its upper directory has to show.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// A directory to make in the upper one.
    pub(super) make: Option<Vec<u8>>,
}

/// A [`Renewal`] in the form of system calls. Sources are relative to [`BACKSTAGE`], so that no
/// character of a path can be mistaken; places are absolute.
pub(super) struct Mounts {
    /// The project's place.
    pub(super) project: CString,
    pub(super) kind: MountKind,
    /// Files that are mounted below the project: source and place.
    pub(super) files: Vec<(CString, CString)>,
    /// The place of the sealed directory.
    pub(super) sealed: Option<CString>,
}

pub(super) enum MountKind {
    Bind {
        source: CString,
    },
    Layers {
        /// Where the layer's files are.
        store: CString,
        /// The data of mount(2) for a file system in memory there.
        options: Option<CString>,
        parts: Vec<LayerMount>,
        user_xattr: bool,
    },
}

pub(super) struct LayerMount {
    /// The lower directory, for where a layer cannot be had.
    pub(super) source: CString,
    pub(super) at: CString,
    pub(super) upper: CString,
    pub(super) work: CString,
    /// The data of mount(2).
    pub(super) options: CString,
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// A directory to make in the upper one.
    pub(super) make: Option<CString>,
}

impl Mounts {
    /// The step that mounts the project.
    pub(super) fn step(&self) -> Step {
        match self.kind {
            MountKind::Bind { .. } => Step::Project,
            MountKind::Layers { .. } => Step::ProjectLayer,
        }
    }
}

fn text(bytes: &[u8]) -> Result<CString, SpawnError> {
    c_string(OsStr::from_bytes(bytes))
}

impl Renewal {
    /// How many layers there are.
    pub(super) fn layers(&self) -> usize {
        match &self.writes {
            WritesRenewed::Bind => 0,
            WritesRenewed::Layer { parts, .. } => parts.len(),
        }
    }

    fn below(&self, path: &[u8]) -> Result<CString, SpawnError> {
        match path {
            [] => text(&self.project),
            path => text(&[&self.project, b"/".as_slice(), path].concat()),
        }
    }

    /// The mounts of a process whose layer's files are at `store`. `over`: for each part, whether
    /// what the first process wrote there lies between its layer and the project.
    pub(super) fn mounts(&self, store: &str, over: &[bool]) -> Result<Mounts, SpawnError> {
        let kind = match &self.writes {
            WritesRenewed::Bind => MountKind::Bind {
                source: text(lower(0).as_bytes())?,
            },
            WritesRenewed::Layer {
                options,
                parts,
                user_xattr,
            } => MountKind::Layers {
                store: text(store.as_bytes())?,
                options: options.as_deref().map(text).transpose()?,
                parts: parts
                    .iter()
                    .enumerate()
                    .map(|(index, part)| {
                        let over = over.get(index) == Some(&true);
                        self.layer(store, index, part, over, *user_xattr)
                    })
                    .collect::<Result<_, _>>()?,
                user_xattr: *user_xattr,
            },
        };
        let files = self.files.iter().enumerate();
        Ok(Mounts {
            project: text(&self.project)?,
            kind,
            files: files
                .map(|(index, path)| Ok((text(file(index).as_bytes())?, self.below(path)?)))
                .collect::<Result<_, SpawnError>>()?,
            sealed: self
                .sealed
                .as_deref()
                .map(|name| self.below(name))
                .transpose()?,
        })
    }

    fn layer(
        &self,
        store: &str,
        index: usize,
        part: &Part,
        over: bool,
        user_xattr: bool,
    ) -> Result<LayerMount, SpawnError> {
        let source = lower(index);
        let (upper, work) = (
            format!("{store}/upper{index}"),
            format!("{store}/work{index}"),
        );
        let first = if over {
            format!("{}:", upper_of_first(index))
        } else {
            String::new()
        };
        let user = if user_xattr { ",userxattr" } else { "" };
        // The rest as overlayfs would otherwise choose by how it was built; with `userxattr` it
        // takes no other `redirect_dir` than `nofollow`.
        let options = format!(
            "lowerdir={first}{source},upperdir={upper},workdir={work},index=off,metacopy=off,redirect_dir=nofollow{user}"
        );
        Ok(LayerMount {
            source: text(source.as_bytes())?,
            at: self.below(&part.below)?,
            upper: text(upper.as_bytes())?,
            work: text(work.as_bytes())?,
            options: text(options.as_bytes())?,
            mode: part.mode,
            uid: part.uid,
            gid: part.gid,
            make: part.make.as_deref().map(text).transpose()?,
        })
    }
}

/// Where the first process's writes to a part are.
pub(super) fn upper_of_first(index: usize) -> String {
    format!("{LAYER}/upper{index}")
}
