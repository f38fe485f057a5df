//! Tracks whether what a template was made from has changed: no answer comes from old code.
//!
//! Each host file that a boot looked at gets a watch ([`watch`]), is then looked up again
//! ([`path_resolution`], [`tree`]) and compared with what the boot saw ([`verdict`]). From then on
//! the kernel reports changes; files whose changes it does not report are compared before each use
//! ([`recheck`]).

mod path_resolution;
mod recheck;
mod stat;
#[cfg(test)]
mod tests;
mod tree;
mod verdict;
mod visible_files;
mod watch;

use std::collections::HashSet;
use std::fmt;

use altair_sandbox::{Look, Way};
use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;

use path_resolution::{Resolved, Scope, Walk};
use recheck::Told;
use tree::{Place, Tree};
use visible_files::{Area, Sight};

pub(crate) use stat::is_on_this_machine;
pub(crate) use verdict::is_settled;

/// What a template was made from.
#[derive(Clone, Debug, Default)]
pub(crate) struct MadeFrom {
    /// What its boot looked at.
    pub looks: Vec<Look>,
    /// Absolute paths that its boot itself created, changed or removed.
    pub written: Vec<Vec<u8>>,
    /// What PHP read before recording could begin.
    pub started: Vec<Started>,
    /// [`now_ns`] at the launch.
    pub launched_ns: i64,
    /// Absolute paths below which it saw the host's files; `/` for all. Looks elsewhere, and in
    /// `/proc`, `/sys` and `/dev`, are ignored.
    pub visible: Vec<Vec<u8>>,
    /// Absolute paths below a visible one, below which it saw private files.
    pub private: Vec<Vec<u8>>,
    /// Whether it saw the attributes of the host's files elsewhere, too, which it could not read:
    /// behind Landlock, which does not govern stat(2).
    pub names_elsewhere: bool,
}

/// A file or a directory that PHP read at its start: its binary, libraries, extensions, ini files.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    /// Absolute.
    pub path: Vec<u8>,
    /// [`Way::Listed`] for a directory of ini files.
    pub way: Way,
}

/// The clock of file timestamps, minus one of its ticks: a change from now on has this timestamp or
/// a later one. Nanoseconds since 1970.
pub(crate) fn now_ns() -> i64 {
    clock_gettime(ClockId::CLOCK_REALTIME_COARSE).map_or(0, |now| {
        now.tv_sec().saturating_mul(1_000_000_000) + now.tv_nsec() - verdict::tick_ns()
    })
}

/// Something that a template was made from has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Changed {
    /// The path; empty if unknown.
    pub path: Vec<u8>,
    pub what: What,
}

/// How something has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It did not exist before.
    Appeared,
    /// It no longer exists.
    Gone,
    Different,
    /// It is as it was seen, but was changed so shortly before (or by the boot itself, or at any
    /// time since the launch) that a further change would not show. The template is valid for the
    /// call that made it, and for no other.
    Racy,
    /// The kernel gives an error instead.
    Unknown(Errno),
    /// This is a fork of the host: only the host may read the kernel's events.
    Fork,
}

/// How changes are detected.
#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Means {
    /// Files and directories with a watch.
    pub watched: usize,
    /// Names that are compared before each use.
    pub polled: usize,
}

/// Detects changes of what a template was made from.
#[derive(Debug)]
pub(crate) struct Freshness {
    tree: Tree,
    polled: Vec<Place>,
    owner: Pid,
    /// The first change found; it is final.
    stale: Option<Changed>,
}

impl Freshness {
    /// Sets the watches, then compares what the template saw with what is there.
    ///
    /// # Errors
    /// [`Changed`]: a difference; [`What::Racy`] only if there is no other.
    pub(crate) fn stand(made_from: &MadeFrom) -> Result<Self, Changed> {
        Self::stand_with(made_from, usize::MAX)
    }

    /// The same with at most `watches` watches; 0 for polling alone.
    fn stand_with(made_from: &MadeFrom, watches: usize) -> Result<Self, Changed> {
        let elsewhere = match made_from.names_elsewhere {
            true => Sight::Names,
            false => Sight::Own,
        };
        let area = Area::new(&made_from.visible, &made_from.private, elsewhere)?;
        let mut tree = Tree::new(area, watches)?;
        let own = own(&made_from.written);
        let launched_ns = made_from.launched_ns;
        let mut racy = None;
        let looks = made_from.looks.iter().map(Seen::Look);
        let started = made_from.started.iter().map(Seen::Started);
        for seen in looks.chain(started) {
            let compared = match seen {
                Seen::Look(look) => compare_look(&mut tree, look, launched_ns, &own),
                Seen::Started(started) => compare_started(&mut tree, started, launched_ns),
            };
            match compared {
                Err(changed) if changed.what == What::Racy => {
                    racy.get_or_insert(changed);
                }
                other => other?,
            }
        }
        if let Some(changed) = racy {
            return Err(changed);
        }
        Ok(Self {
            polled: tree.untold(),
            tree,
            owner: Pid::this(),
            stale: None,
        })
    }

    /// Checks that nothing has changed. Call it after a use was requested and before it is made.
    ///
    /// # Errors
    /// [`Changed`]; from then on always the same.
    pub(crate) fn check(&mut self) -> Result<(), Changed> {
        if Pid::this() != self.owner {
            return Err(Changed::new(Vec::new(), What::Fork));
        }
        if let Some(changed) = &self.stale {
            return Err(changed.clone());
        }
        let compared = self.look_again();
        self.stale = compared.clone().err();
        compared
    }

    fn look_again(&self) -> Result<(), Changed> {
        let ready = self.tree.watcher.ready();
        let told = if ready.events {
            self.tree.hear_all()?
        } else {
            Told::Nothing
        };
        // A mount hides what is below it, and the watches stay on the hidden files. If nothing
        // differs, including device and inode, the watches are on the right files.
        if ready.mounts || told == Told::Lost {
            return self.tree.compare_all();
        }
        self.polled
            .iter()
            .try_for_each(|place| self.tree.compare(place))
    }

    /// How changes are detected.
    #[cfg(test)]
    fn means(&self) -> Means {
        Means {
            watched: self.tree.watcher.watches(),
            polled: self.polled.len(),
        }
    }
}

enum Seen<'a> {
    Look(&'a Look),
    Started(&'a Started),
}

fn compare_look(
    tree: &mut Tree,
    look: &Look,
    launched_ns: i64,
    own: &HashSet<&[u8]>,
) -> Result<(), Changed> {
    let how = Walk {
        follow: !look.link,
        file: verdict::at_file(look),
        scope: Scope::Visible,
    };
    let mut way = look.way;
    let now = match tree.walk(&look.path, &how)? {
        Resolved::PassedOver => return Ok(()),
        Resolved::Nothing(_) => None,
        Resolved::At(place) => match tree.entry(&place) {
            Some(entry) if matches!(entry.sight, Sight::Own | Sight::Way) => return Ok(()),
            // It could not list a directory there, and the times of one matter to nobody.
            Some(entry) if entry.sight == Sight::Names && entry.is_directory() => {
                way = Way::Passed;
                entry.stat
            }
            Some(entry) if way == Way::Passed => entry.stat,
            _ => tree.mind(&place)?,
        },
    };
    let look = &Look {
        way,
        ..look.clone()
    };
    match verdict::differs(look, now.as_ref(), launched_ns) {
        None => Ok(()),
        // The boot or another process changed it; which of them is unknown.
        Some(_) if own.contains(look.path.as_slice()) => {
            Err(Changed::new(look.path.clone(), What::Racy))
        }
        Some(what) => Err(Changed::new(look.path.clone(), what)),
    }
}

fn compare_started(tree: &mut Tree, started: &Started, launched_ns: i64) -> Result<(), Changed> {
    let how = Walk {
        follow: true,
        file: started.way == Way::Read,
        scope: Scope::UnchangedSince(launched_ns),
    };
    // If it does not exist: the directory that lacks it has not changed since the launch.
    if let Resolved::At(place) = tree.walk(&started.path, &how)? {
        let now = tree.mind(&place)?;
        if now.is_some_and(|now| now.ctime_ns >= launched_ns) {
            return Err(Changed::new(started.path.clone(), What::Racy));
        }
    }
    Ok(())
}

/// The written paths, and the directories that they are in.
fn own(written: &[Vec<u8>]) -> HashSet<&[u8]> {
    let parent = |path: &'_ [u8]| path.iter().rposition(|byte| *byte == b'/');
    written
        .iter()
        .flat_map(|path| {
            let dir = parent(path).map_or(&[] as &[u8], |end| &path[..end]);
            [path.as_slice(), dir]
        })
        .collect()
}

impl Changed {
    fn new(path: Vec<u8>, what: What) -> Self {
        Self { path, what }
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = String::from_utf8_lossy(&self.path);
        match self.what {
            What::Appeared => write!(f, "{path} exists now"),
            What::Gone => write!(f, "{path} no longer exists"),
            What::Different => write!(f, "{path} has changed"),
            What::Racy => write!(f, "{path} was changed while it was read"),
            What::Unknown(errno) => write!(f, "{path} cannot be looked at: {errno}"),
            What::Fork => f.write_str("the template belongs to another process"),
        }
    }
}
