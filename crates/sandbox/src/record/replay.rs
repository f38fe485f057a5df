//! Turns the log into a record: absolute paths, each once, without what the process made itself.

use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::collections::{HashMap, HashSet};

use nix::libc::{PATH_MAX, S_IFDIR, S_IFLNK};

use super::names::{Own, join, without_slash};
use super::sight::{DirectoryId, Entry, Sight};
use super::{Look, Record, Unseen, Way};

/// The state after some entries of the log.
#[derive(Debug, Default)]
pub(super) struct Replay {
    record: Record,
    /// The index of a path in `looks`. A symbolic link may have two: `true` for the link itself,
    /// `false` for its target.
    places: HashMap<(Vec<u8>, bool), usize>,
    /// The names of the directories that were opened or entered.
    directories: HashMap<DirectoryId, Vec<Vec<u8>>>,
    /// The names of the working directory.
    here: Vec<Vec<u8>>,
    written: HashSet<Vec<u8>>,
    own: Own,
    too_much: bool,
}

impl Replay {
    /// The state before the first entry, in this working directory.
    pub(super) fn new(start: Option<(Vec<u8>, DirectoryId)>) -> Self {
        let mut replay = Self::default();
        if let Some((path, id)) = start {
            replay.here.push(path.clone());
            replay.directories.insert(id, vec![path]);
        }
        replay
    }

    /// Processes one entry.
    pub(super) fn add(&mut self, entry: &Entry, path: &[u8]) {
        let starts = match entry.directory {
            _ if path.starts_with(b"/") => vec![Vec::new()],
            None => self.here.clone(),
            Some(id) => self.directories.get(&id).cloned().unwrap_or_default(),
        };
        // A descriptor opened before the recording, or received from another process.
        self.too_much |= starts.is_empty();
        match entry.sight {
            Sight::Listing => self.list(&starts),
            Sight::EnteredByDescriptor => self.here = starts,
            _ => {
                let paths = starts.iter().map(|start| join(start, path));
                let names: Vec<_> = paths.map(|path| self.see(entry, path)).collect();
                if entry.sight == Sight::Entered && entry.done {
                    self.here = names;
                }
            }
        }
    }

    /// The record, with what was noted outside the log.
    pub(super) fn record(mut self, noted: Vec<Unseen>) -> Record {
        self.record.unseen = noted;
        if self.too_much && !self.record.unseen.contains(&Unseen::TooMuch) {
            self.record.unseen.push(Unseen::TooMuch);
        }
        self.record
    }

    /// Processes an entry for one name of its file, and returns the name.
    fn see(&mut self, entry: &Entry, mut path: Vec<u8>) -> Vec<u8> {
        self.too_much |= path.len() >= PATH_MAX as usize;
        let kind = entry.found.map(|found| found.kind());
        let mut look = Look {
            way: entry.found.map_or(Way::Passed, |found| {
                entry.sight.way(found.kind(), entry.stays_at_links)
            }),
            link: entry.stays_at_links,
            found: entry.found.map(|found| found.identity),
            at_ns: entry.at_ns,
            path: Vec::new(),
        };
        // A trailing slash follows a link and requires a directory.
        if kind == Some(S_IFDIR) && path.ends_with(b"/") && path.len() > 1 {
            path = without_slash(path);
            look.link = false;
        }
        look.path.clone_from(&path);
        let was_own = self.own.has(&path);
        if !was_own {
            self.look(look, kind == Some(S_IFLNK));
        }
        if entry.done {
            self.did(entry, &path, was_own);
        }
        path
    }

    /// Adds a look.
    fn look(&mut self, look: Look, is_link: bool) {
        match self.places.entry((look.path.clone(), is_link)) {
            Vacant(place) => {
                place.insert(self.record.looks.len());
                self.record.looks.push(look);
            }
            Occupied(place) => {
                if let Some(first) = self.record.looks.get_mut(*place.get()) {
                    first.way = first.way.max(look.way);
                    first.link |= look.link;
                }
            }
        }
    }

    /// Processes the effect of a successful call.
    fn did(&mut self, entry: &Entry, path: &[u8], was_own: bool) {
        let directory = entry.found.filter(|found| found.kind() == S_IFDIR);
        if let (Sight::Opened | Sight::Entered, Some(found)) = (entry.sight, directory) {
            let names = self.directories.entry(found.id).or_default();
            if !names.iter().any(|name| name == path) {
                names.push(path.to_vec());
            }
        }
        // Files in a directory that it moved, or behind a link that it made, have no known path.
        self.too_much |= match entry.sight {
            Sight::Moved => directory.is_some() && !was_own,
            Sight::Linked => true,
            _ => false,
        };
        if entry.sight.changes() {
            let path = without_slash(path.to_vec());
            if self.written.insert(path.clone()) {
                self.record.written.push(path.clone());
            }
            if entry.sight.is_own() {
                self.own.add(path);
            }
        }
    }

    /// Records that a directory was listed.
    fn list(&mut self, names: &[Vec<u8>]) {
        for name in names {
            if self.own.has(name) {
                continue;
            }
            let place = self.places.get(&(name.clone(), false));
            match place.and_then(|place| self.record.looks.get_mut(*place)) {
                Some(look) => look.way = Way::Listed,
                None => self.too_much = true,
            }
        }
    }
}
