//! What a file has besides its content: owner, mode, modification time and extended attributes.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, UtimensatFlags, fstat, utimensat};
use nix::sys::time::TimeSpec;
use nix::unistd::{Gid, Uid, fchownat};

use super::calls;
use crate::system_calls;

/// Refers to what has a name, also to a link (open(2), `O_PATH`).
const POINT: OFlag = OFlag::O_PATH
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// Set-user-ID and set-group-ID. A confined process must not leave programs that run as its user,
/// or group, for others.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;

/// The extended attributes that are kept, by kind. A kind that the layer's file system does not
/// have says nothing about what the process wants.
const KINDS: [(&[u8], &CStr); 2] = [
    (b"user.", c"user.altair"),
    (b"system.posix_acl_", c"system.posix_acl_access"),
];
/// Those of overlayfs are marks of the layer, and would mislead a later one.
const OVERLAY: &[u8] = b"user.overlay.";

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

/// Whether the files of a file system can have all kinds of attributes that are kept.
pub(super) fn has_all_kinds(directory: BorrowedFd<'_>) -> bool {
    KINDS
        .iter()
        .all(|(_, probe)| calls::attribute(directory, probe) != Err(Errno::EOPNOTSUPP))
}

/// The kind of a file.
pub(super) fn kind(stat: &FileStat) -> u32 {
    stat.st_mode & libc::S_IFMT
}

/// The time of the last modification (inode(7), mtime).
pub(super) fn modified(stat: &FileStat) -> TimeSpec {
    TimeSpec::new(stat.st_mtime, stat.st_mtime_nsec)
}

/// Whether a modification was made at or after `since`.
pub(super) fn is_since(modified: Option<TimeSpec>, since: Duration) -> bool {
    modified.is_some_and(|time| {
        let at = (time.tv_sec(), time.tv_nsec());
        u64::try_from(at.0).is_ok_and(|seconds| {
            let nanoseconds = u32::try_from(at.1).unwrap_or(0);
            Duration::new(seconds, nanoseconds) >= since
        })
    })
}

/// The attributes of a file, and which kinds of them it can have.
fn attributes(file: BorrowedFd<'_>, stat: &FileStat) -> nix::Result<(Attributes, [bool; 2])> {
    // Others have none of these kinds.
    if !matches!(kind(stat), libc::S_IFREG | libc::S_IFDIR) {
        return Ok((Attributes::new(), [true; 2]));
    }
    let has = KINDS.map(|(_, probe)| calls::attribute(file, probe) != Err(Errno::EOPNOTSUPP));
    let names = match calls::attribute_names(file) {
        Err(Errno::EOPNOTSUPP) => Vec::new(),
        names => names?,
    };
    let mut attributes = Attributes::new();
    for name in names {
        let bytes = name.to_bytes();
        let is_kept = KINDS.iter().any(|(prefix, _)| bytes.starts_with(prefix));
        if is_kept && !bytes.starts_with(OVERLAY) {
            let value = calls::attribute(file, &name)?;
            attributes.insert(name, value);
        }
    }
    Ok((attributes, has))
}

impl Metadata {
    /// That of a file, which may be open with `O_PATH`.
    pub(super) fn of(file: BorrowedFd<'_>) -> nix::Result<Self> {
        let stat = fstat(file)?;
        Ok(Self::new(&stat, attributes(file, &stat)?.0))
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

    /// What a file of the layer, of which `stat` tells, shall have. `below`: the file of the same
    /// kind that it replaces.
    pub(super) fn wanted(
        file: BorrowedFd<'_>,
        stat: &FileStat,
        below: Option<&Self>,
    ) -> nix::Result<Self> {
        let (mut attributes, has) = attributes(file, stat)?;
        for (name, value) in below.iter().flat_map(|below| &below.attributes) {
            let is_kept = KINDS
                .iter()
                .zip(has)
                .any(|((prefix, _), has)| !has && name.to_bytes().starts_with(prefix));
            if is_kept {
                attributes.insert(name.clone(), value.clone());
            }
        }
        let mut wanted = Self::new(stat, attributes);
        if kind(stat) == libc::S_IFREG {
            wanted.mode &= !SET_ID;
        }
        Ok(wanted)
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
        let (before, has) = attributes(file.as_fd(), &fstat(file)?)?;
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
                Err(Errno::EOPNOTSUPP) if has.contains(&false) => {}
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
