//! What has to be made in the private root, worked out in the host: the process that makes it may
//! not allocate.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};

use super::renewal::{
    COVER, LAYER, Mounts, NEW_TEMP, OLD_TEMP, Part, RUN, Renewal, SEALED, WritesRenewed, file,
    kept, lower,
};
use super::tree::{Entry, Tree, bytes};
use super::{Project, View, Writes};
use crate::SpawnError;

/// Files that one layer, or the directory for temporary files, may hold for each MiB of its size:
/// a file costs the kernel about 1 KiB beside its content.
const FILES_A_MIB: u64 = 256;

/// A view in the form of system calls.
pub(crate) struct Prepared {
    pub(super) entries: Vec<Entry>,
    pub(super) root_options: CString,
    pub(super) temp_options: CString,
    /// What is kept backstage.
    pub(super) stash: Vec<Stashed>,
    /// The project, as it is mounted first.
    pub(super) mounts: Mounts,
    /// The user and group to map, where a user namespace is needed.
    pub(crate) user_namespace: Option<IdMaps>,
    /// What the host needs to tell what happened in the layers.
    pub(crate) layers: Option<Layers>,
    /// What a fork of the process mounts afresh.
    pub(crate) renewal: Renewal,
}

/// Something that is kept backstage: a mount of the host's, or an empty directory.
pub(super) struct Stashed {
    /// Where it is outside; `None`: there is nothing to mount.
    pub source: Option<CString>,
    /// Its name there.
    pub name: CString,
    pub directory: bool,
    pub writable: bool,
    /// With all that is mounted below it.
    pub whole: bool,
}

/// The contents of `/proc/self/uid_map` and `gid_map`.
pub(crate) struct IdMaps {
    pub(super) uid: CString,
    pub(super) gid: CString,
}

impl IdMaps {
    /// One user and one group, each as itself.
    pub(crate) fn of(uid: u32, gid: u32) -> Result<Self, SpawnError> {
        Ok(Self {
            uid: c_string(OsStr::new(&format!("{uid} {uid} 1\n")))?,
            gid: c_string(OsStr::new(&format!("{gid} {gid} 1\n")))?,
        })
    }
}

/// The layers of a run, for the host.
#[derive(Debug, Clone)]
pub(crate) struct Layers {
    /// The project.
    pub root: PathBuf,
    /// What is under each layer, relative to the project; the first is the project itself.
    pub mounts: Vec<PathBuf>,
    /// The name of the sealed directory.
    pub sealed: Option<OsString>,
    /// The attribute by which a directory of the layer hides the one below it.
    pub opaque: &'static CStr,
}

impl Prepared {
    /// Works out what has to be made.
    pub(crate) fn new(view: &View, user_namespace: Option<IdMaps>) -> Result<Self, SpawnError> {
        let project = &view.project;
        let mut tree = Tree::new(&project.root, &view.temp.path);
        for (path, content) in &view.files {
            tree.make_file(path, content);
        }
        for path in &view.readable {
            tree.show(path);
        }
        for path in &view.devices {
            tree.show_device(path);
        }
        tree.make_way(bytes(&project.root));
        let entries = tree.entries()?;
        let mut plan = Plan {
            renewal: Renewal {
                project: bytes_of(&project.root),
                writes: WritesRenewed::Bind,
                files: Vec::new(),
                sealed: None,
                temp: bytes_of(&view.temp.path),
                temp_options: memory_options(view.temp.bytes, "1777"),
                kept: Vec::new(),
            },
            stash: Vec::new(),
            layers: None,
        };
        match &project.writes {
            Writes::Refused => plan.bind(project, false)?,
            Writes::Real => {
                make_sealed(project)?;
                plan.bind(project, true)?;
                plan.seal(project)?;
            }
            Writes::Layer { bytes, on_disk } => {
                plan.layer(
                    project,
                    *bytes,
                    on_disk.as_deref(),
                    user_namespace.is_some(),
                )?;
                plan.seal(project)?;
            }
        }
        plan.keep(&entries, &view.temp.path)?;
        let Plan {
            renewal,
            stash,
            layers,
        } = plan;
        // A file or directory for each, and some to spare.
        let inodes = entries.len() + stash.len() + 64;
        let contents: usize = view.files.iter().map(|(_, content)| content.len()).sum();
        let kib = 1024 + contents.div_ceil(1024) + 4 * view.files.len();
        let root_options = format!("mode=0755,size={kib}k,nr_inodes={inodes}");
        Ok(Self {
            entries,
            root_options: c_string(OsStr::new(&root_options))?,
            temp_options: c_string(OsStr::from_bytes(&renewal.temp_options))?,
            mounts: renewal.mounts(LAYER, &[])?,
            stash,
            user_namespace,
            layers,
            renewal,
        })
    }
}

/// What the project needs, as it is put together.
struct Plan {
    renewal: Renewal,
    stash: Vec<Stashed>,
    layers: Option<Layers>,
}

impl Plan {
    fn stash(&mut self, source: Option<&Path>, name: String, kind: Kind) -> Result<(), SpawnError> {
        let source = source.map(|path| c_string(path.as_os_str())).transpose()?;
        self.stash.push(Stashed {
            source,
            name: c_string(OsStr::new(&name))?,
            directory: kind != Kind::File,
            writable: kind == Kind::Store || kind == (Kind::Tree { writable: true }),
            whole: matches!(kind, Kind::Tree { .. }),
        });
        Ok(())
    }

    fn bind(&mut self, project: &Project, writable: bool) -> Result<(), SpawnError> {
        self.stash(Some(&project.root), lower(0), Kind::Tree { writable })
    }

    fn seal(&mut self, project: &Project) -> Result<(), SpawnError> {
        let Some(name) = &project.sealed else {
            return Ok(());
        };
        let path = project.root.join(name);
        let there = is_directory(&path).then_some(path.as_path());
        self.renewal.sealed = Some(name.as_bytes().to_vec());
        self.stash(there, SEALED.into(), Kind::Directory)
    }

    /// The layers over the project and over what is mounted below it.
    fn layer(
        &mut self,
        project: &Project,
        layer_bytes: u64,
        on_disk: Option<&Path>,
        user_xattr: bool,
    ) -> Result<(), SpawnError> {
        let (below, files) = mounts_below(&project.root);
        let mut parts = Vec::new();
        for (index, path) in [&project.root].into_iter().chain(&below).enumerate() {
            let facts = path.metadata().map_err(|source| SpawnError::Host {
                what: "the project cannot be looked at",
                source,
            })?;
            // What stands in the lower one under this name and is no directory is hidden by it.
            let make = match &project.sealed {
                Some(name) if index == 0 && !is_directory(&path.join(name)) => {
                    Some(name.as_bytes().to_vec())
                }
                _ => None,
            };
            parts.push(Part {
                below: bytes_of(path.strip_prefix(&project.root).unwrap_or(path)),
                mode: facts.mode() & 0o7777,
                uid: facts.uid(),
                gid: facts.gid(),
                make,
            });
            self.stash(Some(path), lower(index), Kind::Directory)?;
        }
        for (index, path) in files.iter().enumerate() {
            let below = path.strip_prefix(&project.root).unwrap_or(path);
            self.renewal.files.push(bytes_of(below));
            self.stash(Some(path), file(index), Kind::File)?;
        }
        match on_disk {
            Some(directory) => self.stash(Some(directory), LAYER.into(), Kind::Store)?,
            None => self.stash(None, LAYER.into(), Kind::Store)?,
        }
        self.layers = Some(Layers {
            root: project.root.clone(),
            mounts: parts
                .iter()
                .map(|part| PathBuf::from(OsString::from_vec(part.below.clone())))
                .collect(),
            sealed: project.sealed.clone(),
            // The other one is any attribute, for the process to set as it likes
            // (Documentation/filesystems/overlayfs.rst).
            opaque: if user_xattr {
                c"user.overlay.opaque"
            } else {
                c"trusted.overlay.opaque"
            },
        });
        self.renewal.writes = WritesRenewed::Layer {
            options: on_disk
                .is_none()
                .then(|| memory_options(layer_bytes, "0700")),
            parts,
            user_xattr,
        };
        Ok(())
    }

    /// What a new directory for temporary files would hide, and what it is mounted from then.
    fn keep(&mut self, entries: &[Entry], temp: &Path) -> Result<(), SpawnError> {
        for entry in entries {
            let Entry::Bind {
                source, directory, ..
            } = entry
            else {
                continue;
            };
            let path = Path::new(OsStr::from_bytes(source.to_bytes()));
            if path.starts_with(temp) {
                let index = self.renewal.kept.len();
                self.renewal.kept.push(source.to_bytes().to_vec());
                let whole = Kind::Tree { writable: false };
                let kind = if *directory { whole } else { Kind::File };
                self.stash(Some(path), kept(index), kind)?;
            }
        }
        let cover = COVER.to_string_lossy();
        for name in [RUN, NEW_TEMP, OLD_TEMP, &cover] {
            self.stash(None, name.into(), Kind::Directory)?;
        }
        Ok(())
    }
}

/// What is stashed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    /// A directory with all that is mounted below it.
    Tree {
        writable: bool,
    },
    /// Where a layer's files are.
    Store,
}

pub(super) fn c_string(text: &OsStr) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| SpawnError::NulByte {
        what: format!("the path {}", text.display()),
    })
}

/// An absolute path as one relative to the private root.
pub(super) fn inside(path: &Path) -> Result<CString, SpawnError> {
    c_string(path.strip_prefix("/").unwrap_or(path).as_os_str())
}

fn memory_options(bytes: u64, mode: &str) -> Vec<u8> {
    let files = (bytes >> 20).saturating_mul(FILES_A_MIB).max(FILES_A_MIB);
    format!("size={bytes},nr_inodes={files},mode={mode}").into_bytes()
}

fn bytes_of(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

/// Whether there is a directory, not a link to one.
fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|meta| meta.is_dir())
}

/// Makes the sealed directory, so that it can be mounted read-only.
fn make_sealed(project: &Project) -> Result<(), SpawnError> {
    let Some(name) = &project.sealed else {
        return Ok(());
    };
    let path = project.root.join(name);
    let failed = |source| SpawnError::Sealed {
        path: path.clone(),
        source,
    };
    match std::fs::DirBuilder::new().mode(0o775).create(&path) {
        // As the audit log has it: the project's owner's.
        Ok(()) => project
            .root
            .metadata()
            .and_then(|root| chown(&path, Some(root.uid()), Some(root.gid())))
            .or_else(|e| match e.kind() {
                io::ErrorKind::PermissionDenied => Ok(()),
                _ => Err(e),
            })
            .map_err(failed),
        Err(_) if is_directory(&path) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            Err(failed(io::ErrorKind::NotADirectory.into()))
        }
        Err(e) => Err(failed(e)),
    }
}

/// Directories on which something is mounted below `root`, each before what is below it, and
/// files.
fn mounts_below(root: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
    // A thread may have a mount namespace of its own; the process will have a copy of that one.
    let Ok(text) = std::fs::read("/proc/thread-self/mountinfo") else {
        return (Vec::new(), Vec::new());
    };
    let found: BTreeSet<PathBuf> = text
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(unescape)
        .filter(|path| path != root && path.starts_with(root))
        .collect();
    found.into_iter().partition(|path| path.is_dir())
}

/// Undoes the octal escapes of `/proc/self/mountinfo`: space, tab, newline and backslash.
fn unescape(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'\\'
            && let Some((digits, after)) = tail.split_at_checked(3)
            && let Some(value) = std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 8).ok())
        {
            path.push(value);
            rest = after;
        } else {
            path.push(byte);
        }
    }
    PathBuf::from(OsString::from_vec(path))
}
