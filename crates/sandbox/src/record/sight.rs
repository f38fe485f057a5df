//! What was seen of one path, as stored in the log.

use nix::libc::{S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, stat};

use super::{Identity, Way};

/// What a call did with a path, or with a directory's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Sight {
    /// Asked for its metadata.
    Metadata,
    /// Asked for its existence, file type and permissions; for a file, possibly more.
    Presence,
    /// Opened it, not for writing.
    Opened,
    /// Made it the working directory.
    Entered,
    /// Opened it for writing, or changed its content.
    Written,
    /// Changed its metadata.
    Touched,
    /// Made it.
    Made,
    /// Made it, as a symbolic link.
    Linked,
    /// Moved it, or something to it.
    Moved,
    /// Removed it.
    Removed,
    /// Listed the directory of this descriptor. There is no path.
    Listing,
    /// Made the directory of this descriptor the working directory. There is no path.
    EnteredByDescriptor,
}

impl Sight {
    /// Whether it changes what is at the path.
    #[inline]
    pub(super) fn changes(self) -> bool {
        self.is_own() || matches!(self, Self::Touched | Self::Linked)
    }

    /// Whether the process itself determines what is at and below the path afterwards.
    #[inline]
    pub(super) fn is_own(self) -> bool {
        matches!(
            self,
            Self::Written | Self::Made | Self::Moved | Self::Removed
        )
    }

    /// How much of a file this shows.
    pub(super) fn way(self, kind: u32, stays_at_links: bool) -> Way {
        match self {
            Self::Metadata if kind == S_IFDIR && stays_at_links => Way::Passed,
            Self::Metadata => Way::Read,
            // Success of the removal reveals whether it was empty.
            Self::Removed if kind == S_IFDIR => Way::Listed,
            // The times of a directory change with its names, those of a device with its use.
            _ if kind == S_IFREG || kind == S_IFLNK => Way::Read,
            _ => Way::Passed,
        }
    }
}

/// Identifies a directory while it exists: device and inode.
pub(super) type DirectoryId = (u64, u64);

/// What the kernel reported about a file.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct SeenFile {
    pub identity: Identity,
    pub id: DirectoryId,
}

impl SeenFile {
    #[inline]
    pub(super) fn new(stat: &stat) -> Self {
        let is_directory = stat.st_mode & S_IFMT == S_IFDIR;
        let of_file = |number: u64| if is_directory { 0 } else { number };
        Self {
            identity: Identity {
                mode: stat.st_mode,
                ino: of_file(stat.st_ino),
                size: of_file(stat.st_size.unsigned_abs()),
                mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
                ctime_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
            },
            id: (stat.st_dev, stat.st_ino),
        }
    }

    /// The file type bits of the mode.
    #[inline]
    pub(super) fn kind(&self) -> u32 {
        self.identity.mode & S_IFMT
    }
}

/// A time in nanoseconds since 1970.
#[inline]
pub(super) fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

/// One entry of the log; the path follows it, with a zero byte.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Entry {
    /// The time before the look, in nanoseconds since 1970.
    pub at_ns: i64,
    /// `None`: it did not exist.
    pub found: Option<SeenFile>,
    /// What a relative path starts at; `None`: the working directory.
    pub directory: Option<DirectoryId>,
    pub sight: Sight,
    /// A symbolic link at the end of the path was not followed.
    pub stays_at_links: bool,
    /// The call succeeded.
    pub done: bool,
}
