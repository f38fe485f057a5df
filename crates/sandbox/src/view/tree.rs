//! What stands where in the private root, put together from what may be read.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::plan::{c_string, inside};
use crate::{Inode, Shown, SpawnError};

/// Symbolic links that are followed on the way to one file, as the kernel does it
/// (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// The mode of the private root's own directories.
pub(super) const DIRECTORY_MODE: u32 = 0o755;

/// One thing to make in the private root. Paths `at` are relative to it.
pub(super) enum Entry {
    Directory {
        at: CString,
    },
    /// A file with a content of its own.
    File {
        at: CString,
        content: Vec<u8>,
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
        /// Which file it has to be.
        inode: Option<Inode>,
    },
}

/// What stands at a path of the private root.
#[derive(Debug, PartialEq, Eq)]
enum Node {
    Directory,
    Link(PathBuf),
    File(Vec<u8>),
    Bind {
        directory: bool,
        device: bool,
        inode: Option<Inode>,
    },
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
pub(super) struct Tree<'a> {
    nodes: BTreeMap<Vec<u8>, Node>,
    /// What is mounted later, over whatever is there.
    project: &'a [u8],
    temp: &'a [u8],
}

/// A path as its bytes, without a slash at the end.
pub(super) fn bytes(path: &Path) -> &[u8] {
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
    pub(super) fn new(project: &'a Path, temp: &'a Path) -> Self {
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
            (_, Some(Node::Link(_) | Node::File(_) | Node::Bind { .. })) => return,
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

    /// Makes a file, in the place of what is outside under its path. What is shown later stays
    /// behind it.
    pub(super) fn make_file(&mut self, path: &Path, content: &[u8]) {
        let path = bytes(path);
        for dir in ancestors(path) {
            self.nodes.entry(dir.to_vec()).or_insert(Node::Directory);
        }
        self.put(path, Node::File(content.to_vec()));
    }

    /// Makes the directories down to `path`, which something else is mounted on.
    pub(super) fn make_way(&mut self, path: &[u8]) {
        for dir in ancestors(path).chain([path]) {
            self.nodes.entry(dir.to_vec()).or_insert(Node::Directory);
        }
    }

    pub(super) fn show(&mut self, shown: &Shown) {
        self.walk(shown.path(), false, shown.inode());
    }

    pub(super) fn show_device(&mut self, path: &Path) {
        self.walk(path, true, None);
    }

    /// Shows what `path` leads to, by way of the same links as outside. Where that has to be a file
    /// that was found before, another one is not shown.
    fn walk(&mut self, path: &Path, device: bool, inode: Option<Inode>) {
        // On the way to what was found before: made when it is seen that it leads there.
        let mut way: Vec<(Vec<u8>, Node)> = Vec::new();
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
                match inode {
                    Some(_) => way.push((current.clone(), Node::Link(target))),
                    None => self.put(&current, Node::Link(target)),
                }
                current.truncate(start);
            } else if rest.is_empty() {
                let found = Inode {
                    dev: meta.dev(),
                    ino: meta.ino(),
                };
                let directory = meta.is_dir();
                if inode.is_none_or(|inode| inode == found) {
                    for (path, node) in way {
                        self.put(&path, node);
                    }
                    let node = Node::Bind {
                        directory,
                        device,
                        inode,
                    };
                    self.put(&current, node);
                }
                return;
            } else if meta.is_dir() {
                match inode {
                    Some(_) => way.push((current.clone(), Node::Directory)),
                    None => self.put(&current, Node::Directory),
                }
            } else {
                return;
            }
        }
    }

    /// The entries, each after the directory that it is in.
    pub(super) fn entries(self) -> Result<Vec<Entry>, SpawnError> {
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
                Node::File(content) => Entry::File {
                    at,
                    content: content.clone(),
                },
                Node::Bind {
                    directory,
                    device,
                    inode,
                } => Entry::Bind {
                    source: c_string(source)?,
                    at,
                    directory: *directory,
                    device: *device,
                    inode: *inode,
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
