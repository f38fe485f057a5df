//! The host's files as far as they were looked at: directories, the names looked up in them, and
//! what each name was. A path is resolved as the kernel does it (path_resolution(7)), and each
//! directory on the way is watched for the name that was looked up in it.

use std::collections::HashMap;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use nix::errno::Errno;

use super::stat::{Devices, Stat};
use super::visible_files::{Area, Sight};
use super::watch::{Target, Watcher};
use super::{Changed, What};

/// The directory whose only entry, with an empty name, is `/`. It makes `/` a name like any other.
const TOP: DirId = 0;
pub(super) const ROOT: DirId = 1;

/// A directory of a [`Tree`].
pub(super) type DirId = usize;

/// A name in a directory.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub dir: DirId,
    pub name: Vec<u8>,
}

/// What a name is.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Absent,
    Directory(DirId),
    /// Where it leads.
    Link(Vec<u8>),
    Other,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub node: Node,
    /// `None` exactly for [`Node::Absent`].
    pub stat: Option<Stat>,
    pub sight: Sight,
    /// [`Node::Other`]: not only its kind matters, but also its content.
    pub content: bool,
    /// [`Node::Other`]: there is a watch on its inode.
    pub watched: bool,
}

impl Entry {
    pub(super) fn is_directory(&self) -> bool {
        matches!(self.node, Node::Directory(_))
    }
}

#[derive(Debug)]
pub(super) struct Dir {
    /// Without a trailing `/` and without links.
    path: Vec<u8>,
    /// Where it is named.
    pub place: Place,
    pub entries: HashMap<Vec<u8>, Entry>,
    /// All of its names matter, and its times.
    pub listed: bool,
    /// `None`: not requested yet.
    pub watched: Option<bool>,
    /// Whether the template saw everything in it.
    whole: bool,
}

#[derive(Debug)]
pub(super) struct Tree {
    pub dirs: Vec<Dir>,
    pub watcher: Watcher,
    area: Area,
    devices: Devices,
    /// Bytes of [`ROOM`] that are left.
    room: usize,
}

/// Maximum bytes of a tree, estimated: the boot itself reports what it looked at.
const ROOM: usize = 48 << 20;
/// Bytes of a name, besides its path: an entry, a watch, for a directory a table.
const ENTRY_BYTES: usize = 600;

impl Tree {
    /// A tree with at most `watches` watches; the rest is polled.
    ///
    /// # Errors
    /// [`Changed`] if the kernel does not report what `/` is.
    pub(super) fn new(area: Area, watches: usize) -> Result<Self, Changed> {
        let top = Dir {
            path: Vec::new(),
            place: Place {
                dir: TOP,
                name: Vec::new(),
            },
            entries: HashMap::new(),
            listed: false,
            // The name of `/` cannot change.
            watched: Some(true),
            whole: false,
        };
        let mut tree = Self {
            dirs: vec![top],
            watcher: Watcher::new(watches),
            area,
            devices: Devices::default(),
            room: ROOM,
        };
        tree.enter(TOP, b"", false)?;
        Ok(tree)
    }

    /// Looks up `name` in `dir`, after setting the watches.
    pub(super) fn enter(&mut self, dir: DirId, name: &[u8], file: bool) -> Result<(), Changed> {
        let path = self.join(dir, name);
        self.pay(&path)?;
        let sight = self.sight(dir, name);
        self.watch_directory(dir);
        let mut watched = file && self.watch_file(dir, name);
        let stat = self.stat(&path)?;
        let node = match &stat {
            None => Node::Absent,
            Some(stat) if stat.is_directory() => Node::Directory(self.dirs.len()),
            Some(stat) if stat.is_link() => Node::Link(target(&path)?),
            Some(stat) => {
                // A mounted file may be on another file system than its directory.
                watched &= self.devices.local(stat, &path);
                Node::Other
            }
        };
        if let Node::Directory(_) = node {
            // "/" is the empty path.
            let path = path.strip_suffix(b"/").unwrap_or(&path).to_vec();
            self.dirs.push(Dir {
                whole: self.dirs[dir].whole || self.area.whole(&path),
                path,
                place: Place {
                    dir,
                    name: name.to_vec(),
                },
                entries: HashMap::new(),
                listed: false,
                watched: None,
            });
        }
        let entry = Entry {
            content: file && matches!(node, Node::Other),
            node,
            stat,
            sight,
            watched,
        };
        self.dirs[dir].entries.insert(name.to_vec(), entry);
        Ok(())
    }

    /// Subtracts the cost of a path from the remaining room.
    fn pay(&mut self, path: &[u8]) -> Result<(), Changed> {
        let cost = ENTRY_BYTES + path.len();
        match self.room.checked_sub(cost) {
            Some(room) => {
                self.room = room;
                Ok(())
            }
            None => Err(Changed::new(path.to_vec(), What::Unknown(Errno::E2BIG))),
        }
    }

    /// From now on everything at `place` matters: a file's content, the names in a directory.
    /// Returns its attributes, read after the watch was set.
    ///
    /// # Errors
    /// As [`Tree::walk`].
    pub(super) fn mind(&mut self, place: &Place) -> Result<Option<Stat>, Changed> {
        let Some(entry) = self.entry(place) else {
            return Ok(None);
        };
        let before = entry.stat;
        let mut watched = entry.watched;
        match entry.node {
            Node::Directory(id) if !self.dirs[id].listed => {
                let path = self.path(&self.dirs[id].place);
                let watched = self.local(id) && self.watcher.add(&path, Target::Listed(id));
                self.dirs[id].watched = Some(watched);
                self.dirs[id].listed = true;
            }
            Node::Other if !entry.content => watched = self.watch_file(place.dir, &place.name),
            _ => return Ok(before),
        }
        let path = self.path(place);
        let now = self.stat(&path)?;
        if let Some(now) = &now {
            watched &= self.devices.local(now, &path);
        }
        if now.map(|now| now.kind()) != before.map(|before| before.kind()) {
            return Err(Changed::new(path, What::Different));
        }
        if let Some(entry) = self.dirs[place.dir].entries.get_mut(&place.name) {
            entry.content = matches!(entry.node, Node::Other);
            entry.watched = watched;
            entry.stat = now;
        }
        Ok(now)
    }

    /// What was found at `place`.
    pub(super) fn entry(&self, place: &Place) -> Option<&Entry> {
        self.dirs[place.dir].entries.get(&place.name)
    }

    /// The path of a place.
    pub(super) fn path(&self, place: &Place) -> Vec<u8> {
        self.join(place.dir, &place.name)
    }

    /// All places that were looked at.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.dirs.iter().enumerate().flat_map(|(dir, found)| {
            found.entries.keys().map(move |name| Place {
                dir,
                name: name.clone(),
            })
        })
    }

    pub(super) fn join(&self, dir: DirId, name: &[u8]) -> Vec<u8> {
        [&self.dirs[dir].path, b"/".as_slice(), name].concat()
    }

    pub(super) fn sight(&self, dir: DirId, name: &[u8]) -> Sight {
        if self.dirs[dir].whole {
            Sight::Host
        } else {
            self.area.sight(&self.join(dir, name))
        }
    }

    fn stat(&self, path: &[u8]) -> Result<Option<Stat>, Changed> {
        Stat::of(path).map_err(|errno| Changed::new(path.to_vec(), What::Unknown(errno)))
    }

    /// Whether changes in the directory itself are reported.
    fn local(&mut self, dir: DirId) -> bool {
        let place = self.dirs[dir].place.clone();
        let path = self.path(&place);
        let stat = self.entry(&place).and_then(|entry| entry.stat);
        stat.is_some_and(|stat| self.devices.local(&stat, &path))
    }

    fn watch_directory(&mut self, dir: DirId) {
        if self.dirs[dir].watched.is_none() {
            let place = &self.dirs[dir].place;
            let path = self.path(place);
            let target = match self.entry(place).map(|entry| entry.sight) {
                Some(Sight::Host) => Target::Directory(dir),
                _ => Target::Way(dir),
            };
            let watched = self.local(dir) && self.watcher.add(&path, target);
            self.dirs[dir].watched = Some(watched);
        }
    }

    fn watch_file(&mut self, dir: DirId, name: &[u8]) -> bool {
        let path = self.join(dir, name);
        self.local(dir) && self.watcher.add(&path, Target::File(dir, name.to_vec()))
    }
}

/// Where the link at `path` leads.
pub(super) fn target(path: &[u8]) -> Result<Vec<u8>, Changed> {
    std::fs::read_link(Path::new(std::ffi::OsStr::from_bytes(path)))
        .map(|target| target.into_os_string().into_vec())
        .map_err(|_| Changed::new(path.to_vec(), What::Different))
}
