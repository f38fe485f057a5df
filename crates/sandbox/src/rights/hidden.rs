//! What the kernel shows to everybody of a process that nobody of its user may look into, because it
//! has changed its user (prctl(2), `PR_SET_DUMPABLE`): its status and its cgroup, and, by what it
//! sees itself, where it is. Links to its namespaces and to its root directory the kernel shows to
//! nobody. What a process sends of them proves nothing: it may have it from somebody else.

use std::io::{self, Read};
use std::os::fd::{BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::fstatat;

use super::{
    Inspected, OWN, Rights, check_alive, differing_line, directory, file, label, text, umask, unit,
};

/// Bytes of the longest list that is compared: some 8,000 mounts.
const LIST_MAX_BYTES: u64 = 1 << 20;

/// Where a process is. It tells that as long as the process is there, since what a number is of exists
/// so long, and nothing else gets the number.
#[derive(Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// Its list of mounts (proc_pid_mountinfo(5)). A mount has an id of its own and is in one
    /// namespace; a place is told as seen from the process's root directory, and what is beyond that
    /// is left out. So where that root is a mount, another process with the same list has the same
    /// root, or one over which that mount was made later.
    mounts: Vec<u8>,
    /// Device and inode of a directory that each network namespace has of its own
    /// (`proc_net_ns_init` in fs/proc/proc_net.c).
    network: (u64, u64),
    /// How its user namespace maps the ids of users and groups. A process without capabilities can
    /// make only namespaces of one id (user_namespaces(7)).
    ids: [Vec<u8>; 2],
}

impl Surroundings {
    /// Those of the calling thread.
    ///
    /// # Errors
    /// If `/proc` does not tell, or if a process in another place could have the same.
    pub fn own() -> io::Result<Self> {
        let own = Self::of(&directory(OWN)?)?;
        own.check().map_err(io::Error::other)?;
        Ok(own)
    }

    /// Those of a process, whose directory is given.
    fn of(process: &OwnedFd) -> io::Result<Self> {
        let network = fstatat(process, "net/stat", AtFlags::empty())?;
        Ok(Self {
            mounts: list(process, "mountinfo")?,
            network: (network.st_dev, network.st_ino),
            ids: [list(process, "uid_map")?, list(process, "gid_map")?],
        })
    }

    /// Checks that another process with the same is in the same place.
    fn check(&self) -> Result<(), &'static str> {
        // The first id inside, the first one outside, and how many.
        let users = String::from_utf8_lossy(&self.ids[0]);
        let counts = users.lines().filter_map(|line| {
            let count = line.split_whitespace().nth(2)?;
            count.parse::<u64>().ok()
        });
        // Id, parent, device, root of the mount, and where it is.
        let mut mounts = self.mounts.split(|byte| *byte == b'\n');
        let is_root = |line: &[u8]| line.split(|byte| *byte == b' ').nth(4) == Some(b"/");
        if !mounts.any(is_root) {
            Err("the pool's root directory is no mount")
        } else if counts.fold(0, u64::saturating_add) < 2 {
            Err("the pool's user namespace has one user")
        } else {
            Ok(())
        }
    }
}

impl Inspected {
    /// In what a process that may not be inspected differs from this one's rights and place, in a
    /// word; and its umask. `None`: in nothing that everybody is shown. That is all that confines it
    /// but Landlock and its IPC namespace, and not its namespaces of names, cgroups and time. `place`
    /// is looked at again if something was mounted since.
    ///
    /// # Errors
    /// What keeps it from being known; `ESRCH` if the process has ended.
    pub fn difference_where_hidden(
        &self,
        own: &Rights,
        place: &mut Surroundings,
        pidfd: BorrowedFd<'_>,
    ) -> io::Result<(Option<&'static str>, Option<u32>)> {
        let status = text(&self.status)?;
        let lines = super::lines(&status);
        let has_none = |name| lines.iter().any(|line| is_zero(line, name));
        if !["CapPrm:", "CapInh:", "CapAmb:"].into_iter().all(has_none) {
            // It could leave where it is between two looks.
            return Err(io::Error::other("it has capabilities"));
        }
        let difference = if let Some(what) = differing_line(&own.lines, &lines) {
            Some(what)
        } else if !is_in_one_pid_namespace(&status) || !self.is_at(place)? {
            Some("namespaces or root directory")
        } else if own.label != label(|| self.directory.try_clone())? {
            Some("label")
        } else if own.cgroup != unit(&text(&self.cgroup)?) {
            Some("cgroup")
        } else {
            None
        };
        check_alive(pidfd)?;
        Ok((difference, umask(&status)))
    }

    /// Whether it is where this process is. `place` is that when it was looked at last.
    fn is_at(&self, place: &mut Surroundings) -> io::Result<bool> {
        while Surroundings::of(&self.directory)? != *place {
            // Something may have been mounted meanwhile.
            let now = Surroundings::own()?;
            if now == *place {
                return Ok(false);
            }
            *place = now;
        }
        Ok(true)
    }

    /// In what it differs from `own`, in a word, if it is a child of that process.
    ///
    /// # Errors
    /// If it is not; as for [`Inspected::rights`].
    pub fn difference_of_child(
        &self,
        parent: i32,
        own: &Rights,
    ) -> io::Result<Option<&'static str>> {
        let (rights, status) = self.rights_and_status()?;
        match is_child(&status, parent) {
            true => Ok(own.difference(&rights)),
            false => Err(io::Error::other("its witness is no child of it")),
        }
    }

    /// Whether a process is its parent.
    ///
    /// # Errors
    /// `ESRCH` if it has ended and was waited for.
    pub fn is_child_of(&self, parent: i32) -> io::Result<bool> {
        Ok(is_child(&text(&self.status)?, parent))
    }
}

fn is_child(status: &str, parent: i32) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.is_some_and(|told| told.trim().parse() == Ok(parent))
}

/// All of a list in `/proc`, of which the kernel gives a part at a time.
fn list(process: &OwnedFd, name: &str) -> io::Result<Vec<u8>> {
    let mut list = Vec::new();
    let most = LIST_MAX_BYTES + 1;
    file(process, name)?.take(most).read_to_end(&mut list)?;
    match (list.len() as u64) < most {
        true => Ok(list),
        false => Err(Errno::E2BIG.into()),
    }
}

/// Whether a line of a status has this name, and tells of no capability.
fn is_zero(line: &str, name: &str) -> bool {
    line.strip_prefix(name)
        .is_some_and(|set| u64::from_str_radix(set.trim(), 16) == Ok(0))
}

/// Whether a status tells one process id: a process has one in each pid namespace from that of the
/// `/proc` in which it is read to its own (proc_pid_status(5), `NSpid`).
fn is_in_one_pid_namespace(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line.is_some_and(|ids| ids.split_whitespace().count() == 1)
}
