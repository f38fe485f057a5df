//! The layout of the private root, built from what may be read.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::plan::{c_string, inside};
use crate::view::Home;
use crate::visible_path::{Link, follow};
use crate::{Inode, Place, RunAs, Shown, SpawnError};

/// The mode of the private root's own directories.
pub(super) const DIRECTORY_MODE: u32 = 0o755;

/// One entry to make in the private root. `at` is relative to the private root.
pub(super) enum Entry {
    Directory {
        at: CString,
        /// Whose it is; `None`: the process's that makes it.
        owner: Option<RunAs>,
    },
    /// A file with its own content.
    File {
        at: CString,
        content: Vec<u8>,
    },
    /// The directory for temporary files, mounted on an existing directory.
    Temp {
        at: CString,
    },
    /// The home, likewise.
    Home {
        at: CString,
    },
    Link {
        at: CString,
        target: CString,
    },
    /// A read-only bind mount of a file, or of a directory with everything below it.
    Bind {
        source: CString,
        at: CString,
        directory: bool,
        device: bool,
        /// The inode that the path must still lead to.
        inode: Option<Inode>,
    },
}

/// What is at a path of the private root.
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

/// The private root under construction. Paths are plain bytes, absolute and without `.`, `..` and
/// doubled slashes: comparing them as `Path`s would take half of the host's time.
pub(super) struct Tree<'a> {
    nodes: BTreeMap<Vec<u8>, Node>,
    /// Mounted later, on top of whatever is there.
    project: &'a [u8],
    further: &'a [&'a Place],
    temp: &'a [u8],
    home: Option<&'a Home>,
}

/// A path's bytes without trailing slashes.
pub(super) fn bytes(path: &Path) -> &[u8] {
    let mut bytes = path.as_os_str().as_bytes();
    while let Some(shorter) = bytes.strip_suffix(b"/") {
        bytes = shorter;
    }
    bytes
}

/// The ancestor directories of a path, outermost first, without `/`.
fn ancestors(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
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
    pub(super) fn new(
        project: &'a Path,
        further: &'a [&'a Place],
        temp: &'a Path,
        home: Option<&'a Home>,
    ) -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            project: bytes(project),
            further,
            temp: bytes(temp),
            home,
        };
        tree.make_way(tree.temp);
        if let Some(home) = home {
            tree.make_way(bytes(&home.path));
        }
        tree
    }

    /// Whether a path is the home.
    fn is_home(&self, path: &[u8]) -> bool {
        self.home.is_some_and(|home| path == bytes(&home.path))
    }

    /// Whether a path is the home or below it.
    fn is_in_home(&self, path: &[u8]) -> bool {
        self.home.is_some_and(|home| is_in(path, bytes(&home.path)))
    }

    /// Whether an ancestor directory of the path is shown as a whole; the home hides what those above
    /// it show.
    fn is_shown(&self, path: &[u8]) -> bool {
        ancestors(path)
            .rev()
            .take_while(|dir| !self.is_home(dir))
            .any(|dir| self.nodes.get(dir).is_some_and(Node::is_whole_directory))
    }

    /// Whether the project or something else is mounted at or above a path.
    fn is_mounted_later(&self, path: &[u8]) -> bool {
        let further = || self.further.iter().map(|place| bytes(place.path()));
        is_in(path, self.project) || further().any(|later| is_in(path, later))
    }

    /// Puts a node in place, unless an existing node already covers it.
    fn put(&mut self, path: &[u8], node: Node) {
        let is_fresh = path == self.temp || self.is_home(path);
        if is_fresh || self.is_mounted_later(path) || self.is_shown(path) {
            return;
        }
        match (&node, self.nodes.get(path)) {
            (_, Some(Node::Link(_) | Node::File(_) | Node::Bind { .. })) => return,
            (Node::Directory, Some(Node::Directory)) => return,
            _ => {}
        }
        if node.is_whole_directory() {
            // It shows everything below it; only mount points of later mounts stay.
            let below = [path, b"/"].concat();
            let (project, further, temp) = (self.project, self.further, self.temp);
            let superseded: Vec<Vec<u8>> = self
                .nodes
                .range(below.clone()..)
                .take_while(|(other, _)| other.starts_with(&below))
                .filter(|(other, _)| !is_in(project, other) && !is_in(temp, other))
                .filter(|(other, _)| !self.is_in_home(other) && !self.leads_home(other))
                .filter(|(other, _)| !further.iter().any(|one| is_in(bytes(one.path()), other)))
                .map(|(other, _)| other.clone())
                .collect();
            for other in superseded {
                self.nodes.remove(&other);
            }
        }
        self.nodes.insert(path.to_vec(), node);
    }

    /// Whether a path is a directory above the home.
    fn leads_home(&self, path: &[u8]) -> bool {
        self.home.is_some_and(|home| is_in(bytes(&home.path), path))
    }

    /// Makes a file that replaces the outside file of this path. It takes precedence over what is
    /// shown later.
    pub(super) fn make_file(&mut self, path: &Path, content: &[u8]) {
        let path = bytes(path);
        for dir in ancestors(path) {
            self.nodes.entry(dir.to_vec()).or_insert(Node::Directory);
        }
        self.put(path, Node::File(content.to_vec()));
    }

    /// Makes `path` and its ancestors as directories, for a later mount on `path`.
    pub(super) fn make_way(&mut self, path: &[u8]) {
        for dir in ancestors(path).chain([path]) {
            self.nodes.entry(dir.to_vec()).or_insert(Node::Directory);
        }
    }

    /// Makes a link of the process's own.
    pub(super) fn make_link(&mut self, path: &Path, target: &Path) {
        self.put_in_its_directory(bytes(path), Node::Link(target.to_owned()));
    }

    /// Makes a mount point for something that is mounted later.
    pub(super) fn make_point(&mut self, place: &Place) {
        let path = bytes(place.path());
        if place.is_directory() {
            return self.make_way(path);
        }
        for directory in ancestors(path) {
            self.nodes
                .entry(directory.to_vec())
                .or_insert(Node::Directory);
        }
        self.nodes
            .entry(path.to_vec())
            .or_insert(Node::File(Vec::new()));
    }

    pub(super) fn show(&mut self, shown: &Shown) {
        match shown.found_as() {
            Some(found) => {
                let place = &found.place;
                let node = Node::Bind {
                    directory: place.is_directory(),
                    device: false,
                    inode: Some(place.inode()),
                };
                self.put_with(&found.links, place.path(), node);
            }
            None => self.show_of_system(shown.path(), false),
        }
    }

    pub(super) fn show_device(&mut self, path: &Path) {
        self.show_of_system(path, true);
    }

    /// Shows what a path of the system leads to, if it exists.
    fn show_of_system(&mut self, path: &Path, device: bool) {
        let is_made = |path: &Path| self.nodes.get(bytes(path)) == Some(&Node::Directory);
        if let Some(way) = follow(path, is_made) {
            let node = Node::Bind {
                directory: way.metadata.is_dir(),
                device,
                inode: None,
            };
            self.put_with(&way.links, &way.end, node);
        }
    }

    /// Puts a node in place, with the links that lead to it and all their ancestor directories.
    fn put_with(&mut self, links: &[Link], path: &Path, node: Node) {
        for link in links {
            self.put_in_its_directory(bytes(&link.at), Node::Link(link.target.clone()));
        }
        self.put_in_its_directory(bytes(path), node);
    }

    fn put_in_its_directory(&mut self, path: &[u8], node: Node) {
        for directory in ancestors(path) {
            self.put(directory, Node::Directory);
        }
        self.put(path, node);
    }

    /// The entries, each after its parent directory.
    pub(super) fn entries(self) -> Result<Vec<Entry>, SpawnError> {
        let mut entries = Vec::with_capacity(self.nodes.len());
        for (path, node) in &self.nodes {
            let source = OsStr::from_bytes(path);
            let at = inside(Path::new(source))?;
            let is_temp = path == self.temp;
            let is_home = self.is_home(path);
            // Below a directory that is shown as a whole, nothing is made, only mounted.
            if self.is_shown(path) {
                if is_temp {
                    entries.push(Entry::Temp { at });
                } else if is_home {
                    entries.push(Entry::Home { at });
                }
                continue;
            }
            let owner = self.home.map(|home| home.owner);
            let owner = owner.filter(|_| self.is_in_home(path));
            if is_temp || is_home {
                entries.push(Entry::Directory {
                    at: at.clone(),
                    owner,
                });
                entries.push(match is_temp {
                    true => Entry::Temp { at },
                    false => Entry::Home { at },
                });
                continue;
            }
            entries.push(match node {
                Node::Directory => Entry::Directory { at, owner },
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
