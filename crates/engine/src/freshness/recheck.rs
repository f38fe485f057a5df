//! Checks whether what a tree holds has changed.

use nix::errno::Errno;
use nix::sys::inotify::AddWatchFlags;

use super::stat::Stat;
use super::tree::{DirId, Node, Place, Tree, target};
use super::watch::{Event, Target};
use super::{Changed, What};

/// What follows from an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing of interest.
    Nothing,
    /// Events were lost: everything has to be compared.
    Lost,
}

impl Tree {
    /// The places whose changes the kernel does not report.
    pub(super) fn untold(&self) -> Vec<Place> {
        let told = |dir: DirId| self.dirs[dir].watched == Some(true);
        self.places()
            .filter(|place| {
                !told(place.dir)
                    || self.entry(place).is_some_and(|entry| match entry.node {
                        Node::Directory(id) => self.dirs[id].listed && !told(id),
                        Node::Other => entry.content && !entry.watched,
                        Node::Absent | Node::Link(_) => false,
                    })
            })
            .collect()
    }

    /// Compares everything with what is there now.
    ///
    /// # Errors
    /// [`Changed`]: the first difference.
    pub(super) fn compare_all(&self) -> Result<(), Changed> {
        self.places().try_for_each(|place| self.compare(&place))
    }

    /// Compares what is at `place` with what is there now.
    ///
    /// # Errors
    /// [`Changed`] if it differs, or if the kernel does not report it.
    pub(super) fn compare(&self, place: &Place) -> Result<(), Changed> {
        let Some(entry) = self.entry(place) else {
            return Ok(());
        };
        let path = self.path(place);
        let what = match (&entry.stat, Stat::of(&path)) {
            (_, Err(errno)) => What::Unknown(errno),
            (None, Ok(None)) => return Ok(()),
            (None, Ok(Some(_))) => What::Appeared,
            (Some(_), Ok(None)) => What::Gone,
            (Some(then), Ok(Some(now))) => {
                let same = match &entry.node {
                    Node::Absent => false,
                    Node::Directory(id) => {
                        then.same_directory(&now)
                            && (!self.dirs[*id].listed || then.same_times(&now))
                    }
                    Node::Link(leads) => *then == now && target(&path)? == *leads,
                    Node::Other if entry.content => *then == now,
                    Node::Other => then.kind() == now.kind(),
                };
                if same {
                    return Ok(());
                }
                What::Different
            }
        };
        Err(Changed::new(path, what))
    }

    /// Evaluates an event.
    ///
    /// # Errors
    /// [`Changed`] if it reports a change of what was looked at.
    pub(super) fn hear(&self, event: &Event) -> Result<Told, Changed> {
        if event.about.contains(AddWatchFlags::IN_Q_OVERFLOW) || event.targets.is_empty() {
            return Ok(Told::Lost);
        }
        for target in &event.targets {
            match target {
                Target::Directory(dir) | Target::Way(dir) | Target::Listed(dir) => {
                    self.hear_directory(*dir, event)?;
                }
                Target::File(dir, name) => {
                    let place = Place {
                        dir: *dir,
                        name: name.clone(),
                    };
                    // A write within one tick of the clock may leave the times unchanged.
                    let written = AddWatchFlags::IN_MODIFY | UNWATCHED;
                    if event.about.intersects(written) {
                        return Err(Changed::new(self.path(&place), What::Different));
                    }
                    self.compare(&place)?;
                }
            }
        }
        Ok(Told::Nothing)
    }

    fn hear_directory(&self, dir: DirId, event: &Event) -> Result<(), Changed> {
        let found = &self.dirs[dir];
        let Some(name) = &event.name else {
            let gone = AddWatchFlags::IN_DELETE_SELF | AddWatchFlags::IN_MOVE_SELF | UNWATCHED;
            if event.about.intersects(gone) {
                return Err(Changed::new(self.path(&found.place), What::Gone));
            }
            return self.compare(&found.place);
        };
        let place = Place {
            dir,
            name: name.clone(),
        };
        let come = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO;
        let go = AddWatchFlags::IN_DELETE | AddWatchFlags::IN_MOVED_FROM;
        if !event.about.intersects(come | go) {
            return self.compare(&place);
        }
        if !found.listed && !found.entries.contains_key(name) {
            return Ok(());
        }
        let what = if event.about.intersects(come) {
            What::Appeared
        } else {
            What::Gone
        };
        Err(Changed::new(self.path(&place), what))
    }

    /// Evaluates all pending events.
    ///
    /// # Errors
    /// [`Changed`], as [`Tree::hear`].
    pub(super) fn hear_all(&self) -> Result<Told, Changed> {
        let mut told = Told::Nothing;
        loop {
            let events = self.watcher.events().map_err(unheard)?;
            if events.is_empty() {
                return Ok(told);
            }
            for event in &events {
                if self.hear(event)? == Told::Lost {
                    told = Told::Lost;
                }
            }
        }
    }
}

/// The watch itself was removed, with its file system.
const UNWATCHED: AddWatchFlags = AddWatchFlags::IN_UNMOUNT.union(AddWatchFlags::IN_IGNORED);

fn unheard(errno: Errno) -> Changed {
    Changed::new(Vec::new(), What::Unknown(errno))
}
