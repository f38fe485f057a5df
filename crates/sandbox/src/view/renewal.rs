//! What each process mounts for itself: the project and the directory for temporary files. The
//! sources are kept backstage, so that another process in the same private root can mount them
//! anew.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Serialize};

use super::plan::c_string;
use crate::{RunAs, SpawnError, Step};

/// The directory in the private root that holds the sources. Once everything is mounted, an empty
/// directory is mounted over it, and no process that could unmount that is left.
pub(super) const BACKSTAGE: &CStr = c"/.altair-backstage";

// Names in it.

/// An empty directory, mounted over others to hide them.
pub(super) const COVER: &CStr = c".cover";
/// The files of the first layer.
pub(super) const LAYER: &str = ".layer";
/// The files of a fork's layer.
pub(super) const RUN: &str = ".run";
/// The files of a new directory for temporary files, and of the previous one.
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

/// What each process mounts for itself, as data that is passed to the process.
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
    /// Mount points below it.
    pub(super) kept: Vec<Vec<u8>>,
}

/// How the project is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WritesRenewed {
    /// As it is.
    Bind,
    /// Under a layer.
    Layer {
        /// The data of mount(2) for a tmpfs that holds the layer; `None`: the layer is on disk.
        options: Option<Vec<u8>>,
        /// Each has its own layer; the first is the project itself, the others are mounted below
        /// it.
        parts: Vec<Part>,
        /// Whether overlayfs uses `user.*` attributes, which need no privilege.
        user_xattr: bool,
    },
}

/// A directory that gets a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    /// Relative to the project.
    pub(super) below: Vec<u8>,
    /// The directory's mode; its upper directory gets the same mode and owner.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// A directory to make in the upper one.
    pub(super) make: Option<Vec<u8>>,
}

/// A [`Renewal`] in the form of system calls. Sources are relative to [`BACKSTAGE`], so that they
/// contain no character that is special in mount options; mount points are absolute.
pub(super) struct Mounts {
    /// The project's mount point.
    pub(super) project: CString,
    pub(super) kind: MountKind,
    /// Files that are mounted below the project: source and mount point.
    pub(super) files: Vec<(CString, CString)>,
    /// The mount point of the sealed directory.
    pub(super) sealed: Option<CString>,
    /// As which user it is made where it does not exist, if that is not the process's present one:
    /// it is to belong to the project's owner.
    pub(super) sealed_as: Option<RunAs>,
    /// Further mounts, each after those above it.
    pub(super) further: Vec<Further>,
    /// Where the files of further layers are.
    pub(super) further_store: Option<Store>,
}

/// A further mount.
pub(super) enum Further {
    Bind {
        source: CString,
        at: CString,
    },
    Layer {
        layer: LayerMount,
        user_xattr: bool,
        /// Whether the directory may be mounted as it is if it can have no layer: a mount below one
        /// that has.
        can_do_without: bool,
    },
}

/// A directory that holds the files of layers.
pub(super) struct Store {
    pub(super) path: CString,
    /// The data of mount(2) for a tmpfs there.
    pub(super) options: Option<CString>,
    /// Whether the host gets the directory, to look for changes.
    pub(super) sent: bool,
}

pub(super) enum MountKind {
    Bind {
        source: CString,
    },
    Layers {
        store: Store,
        parts: Vec<LayerMount>,
        user_xattr: bool,
    },
}

pub(super) struct LayerMount {
    /// The lower directory, which is bind-mounted if the layer cannot be mounted.
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
        match (&self.kind, &self.further_store) {
            (MountKind::Bind { .. }, None) => Step::Project,
            (MountKind::Layers { .. }, _) | (_, Some(_)) => Step::ProjectLayer,
        }
    }
}

pub(super) fn text(bytes: &[u8]) -> Result<CString, SpawnError> {
    c_string(OsStr::from_bytes(bytes))
}

impl Renewal {
    /// Whether making the mounts of a fork names something below the project that is not covered
    /// afterwards, such as the directories above a mount there. Without a layer the sealed directory is
    /// one of them: its mount is gone as soon as somebody removes or replaces the directory (mount(2),
    /// "detached" mounts), and one that does not exist yet would be made before anybody writes.
    #[must_use]
    pub fn names_project(&self) -> bool {
        match self.layers() {
            0 => self.sealed.is_some() || !self.files.is_empty(),
            layers => layers > 1 || !self.files.is_empty(),
        }
    }

    /// The number of layers.
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
    /// the first process's writes lie between the layer and the project.
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
                store: Store {
                    path: text(store.as_bytes())?,
                    options: options.as_deref().map(text).transpose()?,
                    sent: true,
                },
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
            sealed_as: None,
            further: Vec::new(),
            further_store: None,
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
        let at = self.below(&part.below)?;
        LayerMount::new((store, index), lower(index), at, part, over, user_xattr)
    }
}

impl LayerMount {
    /// The layer of a part, mounted at `at`. Its files are in the directories number `index` of
    /// `store`; `source` is the lower directory's name.
    pub(super) fn new(
        (store, index): (&str, usize),
        source: String,
        at: CString,
        part: &Part,
        over: bool,
        user_xattr: bool,
    ) -> Result<Self, SpawnError> {
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
        // The defaults of the remaining options depend on the kernel's build; with `userxattr`,
        // `redirect_dir` must be `nofollow`.
        let options = format!(
            "lowerdir={first}{source},upperdir={upper},workdir={work},index=off,metacopy=off,redirect_dir=nofollow{user}"
        );
        Ok(Self {
            source: text(source.as_bytes())?,
            at,
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

/// The directory with the first process's writes to a part.
pub(super) fn upper_of_first(index: usize) -> String {
    format!("{LAYER}/upper{index}")
}
