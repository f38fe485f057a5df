//! What is at a path now: the only place here that asks the kernel about files.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use altair_sandbox::Identity;
use nix::NixPath;
use nix::errno::Errno;
use nix::libc;
use nix::sys::statfs::{Statfs, fstatfs, statfs};

/// File systems that change only through this kernel, so that inotify(7) reports every change: the
/// `f_type` of statfs(2), from linux/magic.h and the file systems' own headers. Others (network,
/// FUSE with virtiofs, 9p, a hypervisor's shares, unknown ones) may change from elsewhere and are
/// polled.
const LOCAL: &[u64] = &[
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0x794C_7630, // overlay, for changes through it; others are undefined by its documentation
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // bcachefs
    0x7371_7368, // SquashFS
    0xE0F5_E1E2, // EROFS
    0x9660,      // ISO 9660
    0x3153_464A, // JFS
    0x2405_1905, // UBIFS
    0x4D44,      // FAT
    0x2011_BAB0, // exFAT
    0x7366_746E, // NTFS3
];

/// The attributes of a file, as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    /// The device's number, major and minor.
    dev: (u32, u32),
    ino: u64,
    /// Type and permission bits.
    pub mode: u32,
    /// Bytes.
    size: u64,
    /// Nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Nanoseconds since 1970.
    pub ctime_ns: i64,
}

impl Stat {
    /// What is at `path`; links are not followed. `None`: nothing reachable.
    ///
    /// # Errors
    /// An errno that does not tell whether something exists (`EIO`, `ESTALE`, ...).
    pub(super) fn of(path: &[u8]) -> Result<Option<Self>, Errno> {
        match statx(path) {
            Ok(found) => Ok(Some(found)),
            Err(
                Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EACCES | Errno::ENAMETOOLONG,
            ) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The type bits of the mode.
    pub(super) fn kind(&self) -> u32 {
        self.mode & libc::S_IFMT
    }

    pub(super) fn is_directory(&self) -> bool {
        self.kind() == libc::S_IFDIR
    }

    pub(super) fn is_link(&self) -> bool {
        self.kind() == libc::S_IFLNK
    }

    /// Whether both are the same directory, with the same rights. Its entries do not matter.
    pub(super) fn same_directory(&self, other: &Self) -> bool {
        (self.dev, self.ino, self.mode) == (other.dev, other.ino, other.mode)
    }

    /// Whether both have the same times of change.
    pub(super) fn same_times(&self, other: &Self) -> bool {
        (self.mtime_ns, self.ctime_ns) == (other.mtime_ns, other.ctime_ns)
    }

    /// In the form of a record.
    pub(super) fn identity(&self) -> Identity {
        let directory = self.is_directory();
        Identity {
            mode: self.mode,
            ino: if directory { 0 } else { self.ino },
            size: if directory { 0 } else { self.size },
            mtime_ns: self.mtime_ns,
            ctime_ns: self.ctime_ns,
        }
    }
}

/// Which devices are local, asked once each.
#[derive(Debug, Default)]
pub(super) struct Devices(HashMap<(u32, u32), bool>);

impl Devices {
    /// Whether inotify reports each change of `stat`, which is at `path`.
    pub(super) fn local(&mut self, stat: &Stat, path: &[u8]) -> bool {
        *self
            .0
            .entry(stat.dev)
            .or_insert_with(|| statfs(path).is_ok_and(|found| is_local(&found)))
    }
}

/// Whether a directory is on a file system of this machine, which answers at once: an overlay as soon
/// as what is below it.
pub(crate) fn is_on_this_machine(directory: &impl AsFd) -> bool {
    fstatfs(directory).is_ok_and(|found| is_local(&found))
}

fn is_local(found: &Statfs) -> bool {
    // The C library declares a signed or an unsigned word; the magic numbers have 32 bits.
    LOCAL.contains(&(found.filesystem_type().0 as u64 & 0xFFFF_FFFF))
}

/// statx(2) without following links, with a server's current attributes instead of those cached
/// here for some seconds (`AT_STATX_FORCE_SYNC`).
fn statx(path: &[u8]) -> Result<Stat, Errno> {
    const FLAGS: libc::c_int =
        libc::AT_SYMLINK_NOFOLLOW | libc::AT_NO_AUTOMOUNT | libc::AT_STATX_FORCE_SYNC;
    let mut found = MaybeUninit::<libc::statx>::zeroed();
    let done = path.with_nix_path(|path| {
        // SAFETY: the path ends with a NUL, and the buffer is a `statx`, writable for the call.
        unsafe {
            libc::statx(
                libc::AT_FDCWD,
                path.as_ptr(),
                FLAGS,
                libc::STATX_BASIC_STATS,
                found.as_mut_ptr(),
            )
        }
    })?;
    Errno::result(done)?;
    // SAFETY: zeroed before the call, which is a valid value of these plain numbers.
    let found = unsafe { found.assume_init() };
    Ok(Stat {
        dev: (found.stx_dev_major, found.stx_dev_minor),
        ino: found.stx_ino,
        mode: u32::from(found.stx_mode),
        size: found.stx_size,
        mtime_ns: nanoseconds(&found.stx_mtime),
        ctime_ns: nanoseconds(&found.stx_ctime),
    })
}

fn nanoseconds(time: &libc::statx_timestamp) -> i64 {
    time.tv_sec
        .saturating_mul(1_000_000_000)
        .saturating_add(i64::from(time.tv_nsec))
}
