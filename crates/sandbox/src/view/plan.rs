//! What has to be made in the private root, worked out in the host: the process that makes it may
//! not allocate.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Component, Path, PathBuf};

use super::{Project, View, Writes};
use crate::SpawnError;

/// Symbolic links that are followed on the way to one file, as the kernel does it
/// (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// Files that one layer, or the directory for temporary files, may hold for each MiB of its size:
/// a file costs the kernel about 1 KiB beside its content.
const FILES_A_MIB: u64 = 256;

/// Modes of the private root's own directories.
const DIRECTORY_MODE: u32 = 0o755;

/// One thing to make in the private root. Paths `at` are relative to it.
pub(super) enum Entry {
    Directory {
        at: CString,
    },
    /// The directory for temporary files, on what is there.
    Temp {
        at: CString,
    },
    Link {
        at: CString,
        target: CString,
    },
    /// A bind mount of a file or a directory with all below, read-only.
    Bind {
        source: CString,
        at: CString,
        directory: bool,
        device: bool,
    },
}

/// How the project is mounted.
pub(super) enum Mount {
    /// As it is, read-only or not, with everything that is mounted below it.
    Bind { writable: bool },
    /// Each of these under a layer of its own; the first is the project itself, the others are
    /// mounted below it.
    Layers(Vec<LayerMount>),
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
    pub(super) project_source: CString,
    pub(super) project_at: CString,
    pub(super) project: Mount,
    pub(super) store: Option<Store>,
    /// Files on which something is mounted below a project that is under a layer.
    pub(super) files: Vec<(CString, CString)>,
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
        let (below, files) = match project.writes {
            Writes::Layer { .. } => mounts_below(&project.root),
            // Shown with the project.
            Writes::Refused | Writes::Real => (Vec::new(), Vec::new()),
        };
        let (mount, layers) = layers(project, &below, user_namespace.is_some())?;
        let seals = match project.writes {
            Writes::Refused => None,
            Writes::Layer { .. } => project.sealed.as_ref(),
            Writes::Real => {
                make_sealed(project)?;
                project.sealed.as_ref()
            }
        };
        let entries = tree.entries()?;
        // A file or directory for each, and some for what the layer needs for a moment.
        let root_options = format!("mode=0755,size=1m,nr_inodes={}", entries.len() + 64);
        Ok(Self {
            entries,
            root_options: c_string(OsStr::new(&root_options))?,
            temp_options: memory_options(view.temp.bytes, "1777")?,
            project_source: c_string(project.root.as_os_str())?,
            project_at: inside(&project.root)?,
            project: mount,
            store: store(&project.writes)?,
            files: files
                .iter()
                .map(|path| Ok((c_string(path.as_os_str())?, inside(path)?)))
                .collect::<Result<_, SpawnError>>()?,
            sealed: seals
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

fn c_string(text: &OsStr) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| SpawnError::NulByte {
        what: format!("the path {}", text.display()),
    })
}

/// An absolute path as one relative to the private root.
fn inside(path: &Path) -> Result<CString, SpawnError> {
    c_string(path.strip_prefix("/").unwrap_or(path).as_os_str())
}

fn memory_options(bytes: u64, mode: &str) -> Result<CString, SpawnError> {
    let files = (bytes >> 20).saturating_mul(FILES_A_MIB).max(FILES_A_MIB);
    c_string(OsStr::new(&format!(
        "size={bytes},nr_inodes={files},mode={mode}"
    )))
}

fn store(writes: &Writes) -> Result<Option<Store>, SpawnError> {
    Ok(match writes {
        Writes::Layer {
            on_disk: Some(dir), ..
        } => Some(Store::Disk(c_string(dir.as_os_str())?)),
        Writes::Layer { bytes, .. } => Some(Store::Memory(memory_options(*bytes, "0700")?)),
        Writes::Refused | Writes::Real => None,
    })
}

fn layers(
    project: &Project,
    below: &[PathBuf],
    in_user_namespace: bool,
) -> Result<(Mount, Option<Layers>), SpawnError> {
    match project.writes {
        Writes::Refused => return Ok((Mount::Bind { writable: false }, None)),
        Writes::Real => return Ok((Mount::Bind { writable: true }, None)),
        Writes::Layer { .. } => {}
    }
    let mut mounts = Vec::new();
    for (index, path) in [&project.root].into_iter().chain(below).enumerate() {
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
        mounts.push(LayerMount {
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
    let relative = |path: &PathBuf| {
        path.strip_prefix(&project.root)
            .unwrap_or(path)
            .to_path_buf()
    };
    let layers = Layers {
        root: project.root.clone(),
        mounts: [&project.root]
            .into_iter()
            .chain(below)
            .map(relative)
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
    Ok((Mount::Layers(mounts), Some(layers)))
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

/// What stands at a path of the private root.
#[derive(Debug, PartialEq, Eq)]
enum Node {
    Directory,
    Link(PathBuf),
    Bind { directory: bool, device: bool },
}

impl Node {
    fn is_whole_directory(&self) -> bool {
        matches!(
            self,
            Self::Bind {
                directory: true,
                ..
            }
        )
    }
}

/// The private root as it is put together. Paths are plain bytes here, absolute and without `.`,
/// `..` and doubled slashes: to compare them as paths would be half of the host's work.
struct Tree<'a> {
    nodes: BTreeMap<Vec<u8>, Node>,
    /// What is mounted later, over whatever is there.
    project: &'a [u8],
    temp: &'a [u8],
}

/// A path as its bytes, without a slash at the end.
fn bytes(path: &Path) -> &[u8] {
    let mut bytes = path.as_os_str().as_bytes();
    while let Some(shorter) = bytes.strip_suffix(b"/") {
        bytes = shorter;
    }
    bytes
}

/// The directories that a path is in, from the outermost on, without `/`.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter()
        .enumerate()
        .skip(1)
        .filter(|(_, byte)| **byte == b'/')
        .filter_map(|(at, _)| path.get(..at))
}

/// Whether `path` is `directory` or below it.
fn is_in(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

impl<'a> Tree<'a> {
    fn new(project: &'a Path, temp: &'a Path) -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            project: bytes(project),
            temp: bytes(temp),
        };
        tree.make_way(tree.temp);
        tree
    }

    /// Whether one of the directories that a path is in is there as a whole.
    fn is_shown(&self, path: &[u8]) -> bool {
        ancestors(path).any(|dir| self.nodes.get(dir).is_some_and(Node::is_whole_directory))
    }

    /// Puts a node in place, unless what is there already shows as much or more.
    fn put(&mut self, path: &[u8], node: Node) {
        if path == self.temp || is_in(path, self.project) || self.is_shown(path) {
            return;
        }
        match (&node, self.nodes.get(path)) {
            (_, Some(Node::Link(_) | Node::Bind { .. })) => return,
            (Node::Directory, Some(Node::Directory)) => return,
            _ => {}
        }
        if node.is_whole_directory() {
            // What is below is shown with it, but for where something is mounted over it.
            let below = [path, b"/"].concat();
            let (project, temp) = (self.project, self.temp);
            let superseded: Vec<Vec<u8>> = self
                .nodes
                .range(below.clone()..)
                .take_while(|(other, _)| other.starts_with(&below))
                .filter(|(other, _)| !is_in(project, other) && !is_in(temp, other))
                .map(|(other, _)| other.clone())
                .collect();
            for other in superseded {
                self.nodes.remove(&other);
            }
        }
        self.nodes.insert(path.to_vec(), node);
    }

    /// Makes the directories down to `path`, which something else is mounted on.
    fn make_way(&mut self, path: &[u8]) {
        for dir in ancestors(path).chain([path]) {
            self.nodes.entry(dir.to_vec()).or_insert(Node::Directory);
        }
    }

    fn show(&mut self, path: &Path) {
        self.walk(path, false);
    }

    fn show_device(&mut self, path: &Path) {
        self.walk(path, true);
    }

    /// Shows what `path` leads to, by way of the same links as outside.
    fn walk(&mut self, path: &Path, device: bool) {
        let mut rest: VecDeque<OsString> = normal_components(path);
        let mut current: Vec<u8> = Vec::new();
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            let parent = current.len();
            if name == ".." {
                let slash = current.iter().rposition(|byte| *byte == b'/');
                current.truncate(slash.unwrap_or(0));
                continue;
            }
            current.push(b'/');
            current.extend_from_slice(name.as_bytes());
            // On the way to something else already: a directory, and no link.
            if !rest.is_empty() && self.nodes.get(&current) == Some(&Node::Directory) {
                continue;
            }
            let next = Path::new(OsStr::from_bytes(&current));
            let Ok(meta) = next.symlink_metadata() else {
                return;
            };
            if meta.is_symlink() {
                links += 1;
                let Ok(target) = next.read_link() else { return };
                if links > LINKS_MAX {
                    return;
                }
                for name in normal_components(&target).into_iter().rev() {
                    rest.push_front(name);
                }
                let start = if target.is_absolute() { 0 } else { parent };
                self.put(&current, Node::Link(target));
                current.truncate(start);
            } else if rest.is_empty() {
                let directory = meta.is_dir();
                self.put(&current, Node::Bind { directory, device });
                return;
            } else if meta.is_dir() {
                self.put(&current, Node::Directory);
            } else {
                return;
            }
        }
    }

    /// The entries, each after the directory that it is in.
    fn entries(self) -> Result<Vec<Entry>, SpawnError> {
        let mut entries = Vec::with_capacity(self.nodes.len());
        for (path, node) in &self.nodes {
            let source = OsStr::from_bytes(path);
            let at = inside(Path::new(source))?;
            let is_temp = path == self.temp;
            // Below a directory that is there as a whole nothing is made, only mounted.
            if self.is_shown(path) {
                if is_temp {
                    entries.push(Entry::Temp { at });
                }
                continue;
            }
            if is_temp {
                entries.push(Entry::Directory { at: at.clone() });
                entries.push(Entry::Temp { at });
                continue;
            }
            entries.push(match node {
                Node::Directory => Entry::Directory { at },
                Node::Link(target) => Entry::Link {
                    at,
                    target: c_string(target.as_os_str())?,
                },
                Node::Bind { directory, device } => Entry::Bind {
                    source: c_string(source)?,
                    at,
                    directory: *directory,
                    device: *device,
                },
            });
        }
        Ok(entries)
    }
}

/// The names in a path, `..` among them.
fn normal_components(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

/// The mode of the private root's own directories.
pub(super) const fn directory_mode() -> u32 {
    DIRECTORY_MODE
}
