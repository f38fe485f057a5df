//! What a file has besides its content: owner, mode, modification time and extended attributes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, UtimensatFlags, fstat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, fchownat};

use super::{calls, lists};
use crate::system_calls;

/// Refers to what has a name, also to a link (open(2), `O_PATH`).
const POINT: OFlag = OFlag::O_PATH
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// Set-user-ID and set-group-ID. A confined process must not leave programs that run as its user,
/// or group, for others.
pub(super) const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;

/// Attributes of anybody's own. A file system that has none says nothing about what the process
/// wants.
const OF_USERS: &[u8] = b"user.";
/// Those of overlayfs are marks of the layer, and would mislead a later one.
const OVERLAY: &[u8] = b"user.overlay.";
/// Access control lists (acl(5)). They give rights to others, so none is taken from a layer: what
/// a file has below stays.
const LISTS: &[u8] = b"system.posix_acl_";
/// The list that decides about access, and the one that is passed on to what is made in a directory.
const ACCESS_LIST: &CStr = c"system.posix_acl_access";

type Attributes = BTreeMap<CString, Vec<u8>>;

/// What a file has besides its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    uid: u32,
    gid: u32,
    mode: u32,
    /// `None`: as it comes.
    pub(super) modified: Option<TimeSpec>,
    attributes: Attributes,
}

/// Whether the files of a file system can have attributes of users.
pub(super) fn has_user_attributes(directory: BorrowedFd<'_>) -> bool {
    calls::attribute(directory, c"user.altair") != Err(Errno::EOPNOTSUPP)
}

/// The kind of a file.
pub(super) fn kind(stat: &FileStat) -> u32 {
    stat.st_mode & libc::S_IFMT
}

/// The time of the last modification (inode(7), mtime).
pub(super) fn modified(stat: &FileStat) -> TimeSpec {
    TimeSpec::new(stat.st_mtime, stat.st_mtime_nsec)
}

/// A time since the epoch; `None` before it.
fn since_epoch(time: TimeSpec) -> Option<Duration> {
    let seconds = u64::try_from(time.tv_sec()).ok()?;
    let nanoseconds = u32::try_from(time.tv_nsec()).unwrap_or(0);
    Some(Duration::new(seconds, nanoseconds))
}

/// Whether a modification was made at or after `since`.
pub(super) fn is_since(modified: Option<TimeSpec>, since: Duration) -> bool {
    let modified = modified.and_then(since_epoch);
    modified.is_some_and(|at| at >= since)
}

/// The attributes of a file: users' own, and access control lists.
fn attributes(file: BorrowedFd<'_>, stat: &FileStat) -> nix::Result<Attributes> {
    let mut attributes = Attributes::new();
    // Others have none of these kinds.
    if !matches!(kind(stat), libc::S_IFREG | libc::S_IFDIR) {
        return Ok(attributes);
    }
    let names = match calls::attribute_names(file) {
        Err(Errno::EOPNOTSUPP) => Vec::new(),
        names => names?,
    };
    for name in names {
        if is_of_users(&name) || is_list(&name) {
            let value = calls::attribute(file, &name)?;
            attributes.insert(name, value);
        }
    }
    Ok(attributes)
}

fn is_of_users(name: &CStr) -> bool {
    let name = name.to_bytes();
    name.starts_with(OF_USERS) && !name.starts_with(OVERLAY)
}

fn is_list(name: &CStr) -> bool {
    name.to_bytes().starts_with(LISTS)
}

/// What a layer's file replaces, and where it comes to be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Over<'a> {
    /// The file of the same kind that it replaces.
    pub below: Option<&'a Metadata>,
    /// Whether the layer's files can have attributes of users.
    pub has_attributes: bool,
    /// Whether the directory that it is in passes its group on to directories in it (inode(7),
    /// set-group-ID).
    pub passes_group_on: bool,
}

impl Metadata {
    /// That of a file, which may be open with `O_PATH`.
    pub(super) fn of(file: BorrowedFd<'_>) -> nix::Result<Self> {
        let stat = fstat(file)?;
        Ok(Self::new(&stat, attributes(file, &stat)?))
    }

    fn new(stat: &FileStat, attributes: Attributes) -> Self {
        Self {
            uid: stat.st_uid,
            gid: stat.st_gid,
            mode: stat.st_mode & !libc::S_IFMT,
            modified: Some(modified(stat)),
            attributes,
        }
    }

    /// That of a file of which `stat` tells: opening it may have changed its mode.
    pub(super) fn as_told(file: BorrowedFd<'_>, stat: &FileStat) -> nix::Result<Self> {
        Ok(Self::new(stat, attributes(file, stat)?))
    }

    /// What a file of the layer, which has this, shall have. Neither set-ID bits nor access control
    /// lists come from a layer: they give rights to others.
    pub(super) fn wanted(&self, of_kind: u32, over: Over<'_>) -> Self {
        let mut wanted = self.clone();
        let below = over.below.map(|below| &below.attributes);
        wanted
            .attributes
            .retain(|name, _| over.has_attributes && is_of_users(name));
        for (name, value) in below.into_iter().flatten() {
            if is_list(name) || !over.has_attributes {
                wanted.attributes.insert(name.clone(), value.clone());
            }
        }
        if self.has_another_list(&wanted)
            && let Some(list) = self.attributes.get(ACCESS_LIST)
        {
            // With a list, the mode has the bounds of all its entries in the place of the group's
            // own rights.
            let group = u32::from(lists::rights_of_group(list)) << 3;
            wanted.mode &= !libc::S_IRWXG | group;
        }
        let kept = match of_kind == libc::S_IFDIR {
            true => {
                let inherited = if over.passes_group_on {
                    libc::S_ISGID
                } else {
                    0
                };
                over.below.map_or(0, |below| below.mode) | inherited
            }
            false => 0,
        };
        wanted.mode &= !SET_ID | kept;
        wanted
    }

    /// Whether this has access control lists that are not those of `other`, apart from the rights
    /// that the mode decides about.
    pub(super) fn has_another_list(&self, other: &Self) -> bool {
        let mut lists = self.attributes.iter().filter(|(name, _)| is_list(name));
        lists.any(|(name, value)| match other.attributes.get(name) {
            None => true,
            Some(theirs) if name.as_c_str() == ACCESS_LIST => !lists::are_same(value, theirs),
            Some(theirs) => value != theirs,
        })
    }

    /// Whether this lacks an access control list that `other` has.
    pub(super) fn lacks_list(&self, other: &Self) -> bool {
        let mut theirs = other.attributes.keys().filter(|name| is_list(name));
        theirs.any(|name| !self.attributes.contains_key(name))
    }

    /// The names of users' attributes that one of two has and the other has not, or has otherwise.
    pub(super) fn other_attributes(&self, other: Option<&Self>) -> Vec<String> {
        let none = Attributes::new();
        let theirs = other.map_or(&none, |other| &other.attributes);
        let names: BTreeSet<_> = self.attributes.keys().chain(theirs.keys()).collect();
        names
            .into_iter()
            .filter(|name| is_of_users(name) && self.attributes.get(*name) != theirs.get(*name))
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }

    /// The permission bits with set-ID bits and the sticky one.
    pub(super) fn mode(&self) -> u32 {
        self.mode
    }

    /// User and group.
    pub(super) fn owner(&self) -> (u32, u32) {
        (self.uid, self.gid)
    }

    /// Whether what is made in a directory that has this gets its group.
    pub(super) fn passes_group_on(&self) -> bool {
        self.mode & libc::S_ISGID != 0
    }

    /// Keeps the set-ID bits that a file had all along. Its content must be the same.
    pub(super) fn with_set_id_of(mut self, stat: &FileStat, before: &Self) -> Self {
        if kind(stat) == libc::S_IFREG {
            self.mode |= stat.st_mode & before.mode & SET_ID;
        }
        self
    }

    /// Leaves owner and extended attributes as they are in `before`.
    pub(super) fn with_owner_and_attributes_of(mut self, before: &Self) -> Self {
        (self.uid, self.gid) = (before.uid, before.gid);
        self.attributes.clone_from(&before.attributes);
        self
    }

    /// With another mode.
    pub(super) fn with_mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// With all rights for the owner.
    pub(super) fn open_to_owner(&self) -> Self {
        self.clone().with_mode(self.mode | libc::S_IRWXU)
    }

    /// Whether two differ in more than the modification time.
    pub(super) fn differs(&self, other: &Self) -> bool {
        let untimed = |one: &Self| (one.uid, one.gid, one.mode);
        untimed(self) != untimed(other) || self.attributes != other.attributes
    }

    /// Whether two have the same owner.
    pub(super) fn has_owner_of(&self, other: &Self) -> bool {
        (self.uid, self.gid) == (other.uid, other.gid)
    }

    /// Gives a file all of this.
    ///
    /// # Errors
    /// What the system reports; `EPERM` if it may not have this owner. The modification time of a
    /// file that belongs to somebody else cannot be set, and stays as it is.
    pub(super) fn set(&self, directory: BorrowedFd<'_>, name: &OsStr) -> nix::Result<()> {
        let file = openat(directory, name, POINT, Mode::empty())?;
        let stat = fstat(&file)?;
        // Some file systems have one owner for all files.
        if (stat.st_uid, stat.st_gid) != (self.uid, self.gid) {
            let uid = (stat.st_uid != self.uid).then(|| Uid::from_raw(self.uid));
            let gid = (stat.st_gid != self.gid).then(|| Gid::from_raw(self.gid));
            fchownat(&file, "", uid, gid, AtFlags::AT_EMPTY_PATH)?;
        }
        self.set_attributes(&file)?;
        // Last the mode, which may forbid the others.
        self.set_time(directory, name)?;
        let stat = fstat(&file)?;
        if kind(&stat) != libc::S_IFLNK && stat.st_mode & !libc::S_IFMT != self.mode {
            system_calls::change_mode(file.as_fd(), self.mode)?;
        }
        Ok(())
    }

    fn set_attributes(&self, file: &OwnedFd) -> nix::Result<()> {
        match self.try_to_set_attributes(file) {
            // The owner's own rights are needed, even to read them.
            Err(Errno::EACCES) => {
                system_calls::open_up(file.as_fd())?;
                self.try_to_set_attributes(file)
            }
            set => set,
        }
    }

    fn try_to_set_attributes(&self, file: &OwnedFd) -> nix::Result<()> {
        let before = attributes(file.as_fd(), &fstat(file)?)?;
        for name in before.keys() {
            if !self.attributes.contains_key(name) {
                calls::remove_attribute(file.as_fd(), name)?;
            }
        }
        for (name, value) in &self.attributes {
            if before.get(name) == Some(value) {
                continue;
            }
            match calls::set_attribute(file.as_fd(), name, value) {
                // The file system has none of its kind.
                Err(Errno::EOPNOTSUPP) => {}
                set => set?,
            }
        }
        Ok(())
    }

    /// Sets the modification time.
    pub(super) fn set_time(&self, directory: BorrowedFd<'_>, name: &OsStr) -> nix::Result<()> {
        match self.modified {
            Some(modified) => set_time(directory, name, &modified),
            None => Ok(()),
        }
    }
}

/// Sets the modification time of a file, if it may be set.
pub(super) fn set_time(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    modified: &TimeSpec,
) -> nix::Result<()> {
    let no_follow = UtimensatFlags::NoFollowSymlink;
    match utimensat(directory, name, &TimeSpec::UTIME_OMIT, modified, no_follow) {
        Err(Errno::EPERM) => Ok(()),
        set => set,
    }
}
