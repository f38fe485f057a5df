//! What has to be made in the private root, worked out in the host: the process that makes it may
//! not allocate.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};

use super::tree::{Entry, Tree, bytes};
use super::{Project, View, Writes};
use crate::SpawnError;

/// Files that one layer, or the directory for temporary files, may hold for each MiB of its size:
/// a file costs the kernel about 1 KiB beside its content.
const FILES_A_MIB: u64 = 256;

/// How the project is mounted.
pub(super) enum Mount {
    /// As it is, read-only or not, with everything that is mounted below it.
    Bind {
        source: CString,
        at: CString,
        writable: bool,
    },
    /// Under a layer.
    Layers {
        store: Store,
        /// Each has a layer of its own; the first is the project itself, the others are mounted
        /// below it.
        parts: Vec<LayerMount>,
        /// Files that are mounted below it: source and place.
        files: Vec<(CString, CString)>,
    },
}

pub(super) struct LayerMount {
    pub source: CString,
    pub at: CString,
    /// In the layer's directory: `upper0`, `work0`, …
    pub upper: CString,
    pub work: CString,
    /// The data of mount(2).
    pub options: CString,
    /// Of the directory, which its upper directory has to show.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// A directory to make in the upper one.
    pub make: Option<CString>,
}

/// Where the layer's files are.
pub(super) enum Store {
    /// A file system in memory, with these options of mount(2).
    Memory(CString),
    /// A directory.
    Disk(CString),
}

/// A view in the form of system calls.
pub(crate) struct Prepared {
    pub(super) entries: Vec<Entry>,
    pub(super) root_options: CString,
    pub(super) temp_options: CString,
    pub(super) project: Mount,
    /// The sealed directory, in the private root.
    pub(super) sealed: Option<CString>,
    /// The user and group to map, where a user namespace is needed.
    pub(super) user_namespace: Option<IdMaps>,
    /// What the host needs to tell what happened in the layers.
    pub(crate) layers: Option<Layers>,
}

/// The contents of `/proc/self/uid_map` and `gid_map`.
pub(super) struct IdMaps {
    pub uid: CString,
    pub gid: CString,
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
    /// Works out what has to be made. `user_namespace`: the user and group of the process, where
    /// it has to make a user namespace first.
    pub(crate) fn new(view: &View, user_namespace: Option<(u32, u32)>) -> Result<Self, SpawnError> {
        let project = &view.project;
        let mut tree = Tree::new(&project.root, &view.temp.path);
        for path in &view.readable {
            tree.show(path);
        }
        for path in &view.devices {
            tree.show_device(path);
        }
        tree.make_way(bytes(&project.root));
        let bind = |writable| -> Result<_, SpawnError> {
            Ok(Mount::Bind {
                source: c_string(project.root.as_os_str())?,
                at: inside(&project.root)?,
                writable,
            })
        };
        let (mount, layers, sealed) = match &project.writes {
            Writes::Refused => (bind(false)?, None, None),
            Writes::Real => {
                make_sealed(project)?;
                (bind(true)?, None, project.sealed.as_ref())
            }
            Writes::Layer { bytes, on_disk } => {
                let store = match on_disk {
                    Some(dir) => Store::Disk(c_string(dir.as_os_str())?),
                    None => Store::Memory(memory_options(*bytes, "0700")?),
                };
                let (mount, layers) = layers(project, store, user_namespace.is_some())?;
                (mount, Some(layers), project.sealed.as_ref())
            }
        };
        let entries = tree.entries()?;
        // A file or directory for each, and some for what the layer needs for a moment.
        let root_options = format!("mode=0755,size=1m,nr_inodes={}", entries.len() + 64);
        Ok(Self {
            entries,
            root_options: c_string(OsStr::new(&root_options))?,
            temp_options: memory_options(view.temp.bytes, "1777")?,
            project: mount,
            sealed: sealed
                .map(|name| inside(&project.root.join(name)))
                .transpose()?,
            user_namespace: user_namespace
                .map(|(uid, gid)| -> Result<_, SpawnError> {
                    Ok(IdMaps {
                        uid: c_string(OsStr::new(&format!("{uid} {uid} 1\n")))?,
                        gid: c_string(OsStr::new(&format!("{gid} {gid} 1\n")))?,
                    })
                })
                .transpose()?,
            layers,
        })
    }
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

fn memory_options(bytes: u64, mode: &str) -> Result<CString, SpawnError> {
    let files = (bytes >> 20).saturating_mul(FILES_A_MIB).max(FILES_A_MIB);
    c_string(OsStr::new(&format!(
        "size={bytes},nr_inodes={files},mode={mode}"
    )))
}

/// The layers over the project and over what is mounted below it.
fn layers(
    project: &Project,
    store: Store,
    in_user_namespace: bool,
) -> Result<(Mount, Layers), SpawnError> {
    let (below, files) = mounts_below(&project.root);
    let layered: Vec<&PathBuf> = [&project.root].into_iter().chain(&below).collect();
    let mut parts = Vec::with_capacity(layered.len());
    for (index, path) in layered.iter().enumerate() {
        let facts = path.metadata().map_err(|source| SpawnError::Host {
            what: "the project cannot be looked at",
            source,
        })?;
        let (upper, work) = (format!("upper{index}"), format!("work{index}"));
        // Relative to the private root under construction, so that no character of a path can
        // be mistaken. The rest as overlayfs would otherwise choose by how it was built; with
        // `userxattr` it takes no other `redirect_dir` than `nofollow`.
        let user = if in_user_namespace { ",userxattr" } else { "" };
        let options = format!(
            "lowerdir=.lower,upperdir=.layer/{upper},workdir=.layer/{work},index=off,metacopy=off,redirect_dir=nofollow{user}"
        );
        // What stands in the lower one under this name and is no directory is hidden by it.
        let make = match &project.sealed {
            Some(name) if index == 0 && !is_directory(&path.join(name)) => Some(c_string(name)?),
            _ => None,
        };
        parts.push(LayerMount {
            source: c_string(path.as_os_str())?,
            at: inside(path)?,
            upper: c_string(OsStr::new(&upper))?,
            work: c_string(OsStr::new(&work))?,
            options: c_string(OsStr::new(&options))?,
            mode: facts.mode() & 0o7777,
            uid: facts.uid(),
            gid: facts.gid(),
            make,
        });
    }
    let layers = Layers {
        root: project.root.clone(),
        mounts: layered
            .iter()
            .map(|path| path.strip_prefix(&project.root).unwrap_or(path).to_owned())
            .collect(),
        sealed: project.sealed.clone(),
        // The other one is any attribute, for the process to set as it likes
        // (Documentation/filesystems/overlayfs.rst).
        opaque: if in_user_namespace {
            c"user.overlay.opaque"
        } else {
            c"trusted.overlay.opaque"
        },
    };
    let files = files
        .iter()
        .map(|path| Ok((c_string(path.as_os_str())?, inside(path)?)))
        .collect::<Result<_, SpawnError>>()?;
    let mount = Mount::Layers {
        store,
        parts,
        files,
    };
    Ok((mount, layers))
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
