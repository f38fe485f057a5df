//! The calls that name a file by its path, as data (`arch/x86/entry/syscalls/syscall_64.tbl`,
//! `scripts/syscall.tbl`).

use nix::libc::*;

use super::sight::Sight;
use crate::syscall_numbers::{
    SYS_fchmodat2, SYS_file_getattr, SYS_file_setattr, SYS_getxattrat, SYS_listxattrat,
    SYS_removexattrat, SYS_setxattrat,
};

/// One path of a call.
#[derive(Debug)]
pub(super) struct PathCall {
    pub number: c_long,
    /// The index of the path argument.
    pub path: usize,
    /// The index of the directory that a relative path starts at; `None`: the working directory.
    pub directory: Option<usize>,
    /// Whether a symbolic link at the end of the path is followed.
    pub links: Links,
    pub what: What,
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Links {
    Follow,
    Stay,
    /// Not followed if the argument has the bit.
    StayIf(usize, c_int),
    /// Followed only if the argument has the bit.
    FollowIf(usize, c_int),
}

/// What a call does with a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Does(Sight),
    /// Opens it with the flags in this argument.
    Opens(usize),
    /// Opens it with the flags in the structure that this argument points to (openat2(2)).
    OpensAsTold(usize),
}

/// One line per path: the call, the index of the path argument, that of the directory (`-`: none),
/// whether links are followed, what the call does.
macro_rules! paths {
    ($($number:ident $path:literal $directory:tt $links:expr, $what:expr;)*) => {
        &[$(PathCall {
            number: $number,
            path: $path,
            directory: paths!(@directory $directory),
            links: $links,
            what: $what,
        }),*]
    };
    (@directory -) => { None };
    (@directory $argument:literal) => { Some($argument) };
}

use Links::{Follow, FollowIf, Stay, StayIf};
use What::{Does, Opens, OpensAsTold};

/// The calls that name a path on every architecture. The lines of a call with two paths are
/// adjacent.
pub(super) const CALLS: &[PathCall] = paths! {
    SYS_openat 1 0 StayIf(2, O_NOFOLLOW), Opens(2);
    SYS_openat2 1 0 Follow, OpensAsTold(2);
    SYS_truncate 0 - Follow, Does(Sight::Written);

    SYS_newfstatat 1 0 StayIf(3, AT_SYMLINK_NOFOLLOW), Does(Sight::Metadata);
    SYS_statx 1 0 StayIf(2, AT_SYMLINK_NOFOLLOW), Does(Sight::Metadata);
    SYS_file_getattr 1 0 StayIf(4, AT_SYMLINK_NOFOLLOW), Does(Sight::Metadata);
    SYS_statfs 0 - Follow, Does(Sight::Presence);
    SYS_faccessat 1 0 Follow, Does(Sight::Presence);
    SYS_faccessat2 1 0 StayIf(3, AT_SYMLINK_NOFOLLOW), Does(Sight::Presence);
    SYS_readlinkat 1 0 Stay, Does(Sight::Presence);
    SYS_name_to_handle_at 1 0 FollowIf(4, AT_SYMLINK_FOLLOW), Does(Sight::Presence);
    SYS_inotify_add_watch 1 - Follow, Does(Sight::Metadata);
    SYS_chdir 0 - Follow, Does(Sight::Entered);

    SYS_getxattr 0 - Follow, Does(Sight::Metadata);
    SYS_lgetxattr 0 - Stay, Does(Sight::Metadata);
    SYS_getxattrat 1 0 StayIf(2, AT_SYMLINK_NOFOLLOW), Does(Sight::Metadata);
    SYS_listxattr 0 - Follow, Does(Sight::Metadata);
    SYS_llistxattr 0 - Stay, Does(Sight::Metadata);
    SYS_listxattrat 1 0 StayIf(2, AT_SYMLINK_NOFOLLOW), Does(Sight::Metadata);

    SYS_mkdirat 1 0 Stay, Does(Sight::Made);
    SYS_mknodat 1 0 Stay, Does(Sight::Made);
    SYS_symlinkat 2 1 Stay, Does(Sight::Linked);
    SYS_linkat 1 0 FollowIf(4, AT_SYMLINK_FOLLOW), Does(Sight::Presence);
    SYS_linkat 3 2 Stay, Does(Sight::Made);
    SYS_renameat 1 0 Stay, Does(Sight::Moved);
    SYS_renameat 3 2 Stay, Does(Sight::Moved);
    SYS_renameat2 1 0 Stay, Does(Sight::Moved);
    SYS_renameat2 3 2 Stay, Does(Sight::Moved);
    SYS_unlinkat 1 0 Stay, Does(Sight::Removed);

    SYS_fchmodat 1 0 Follow, Does(Sight::Touched);
    SYS_fchmodat2 1 0 StayIf(3, AT_SYMLINK_NOFOLLOW), Does(Sight::Touched);
    SYS_fchownat 1 0 StayIf(4, AT_SYMLINK_NOFOLLOW), Does(Sight::Touched);
    SYS_utimensat 1 0 StayIf(3, AT_SYMLINK_NOFOLLOW), Does(Sight::Touched);
    SYS_setxattr 0 - Follow, Does(Sight::Touched);
    SYS_lsetxattr 0 - Stay, Does(Sight::Touched);
    SYS_setxattrat 1 0 StayIf(2, AT_SYMLINK_NOFOLLOW), Does(Sight::Touched);
    SYS_removexattr 0 - Follow, Does(Sight::Touched);
    SYS_lremovexattr 0 - Stay, Does(Sight::Touched);
    SYS_removexattrat 1 0 StayIf(2, AT_SYMLINK_NOFOLLOW), Does(Sight::Touched);
    SYS_file_setattr 1 0 StayIf(4, AT_SYMLINK_NOFOLLOW), Does(Sight::Touched);
};

/// The same for calls of x86-64 that newer architectures never had.
#[cfg(target_arch = "x86_64")]
const LEGACY: &[PathCall] = paths! {
    SYS_open 0 - StayIf(1, O_NOFOLLOW), Opens(1);
    SYS_creat 0 - Follow, Does(Sight::Written);
    SYS_uselib 0 - Follow, Does(Sight::Presence);
    SYS_stat 0 - Follow, Does(Sight::Metadata);
    SYS_lstat 0 - Stay, Does(Sight::Metadata);
    SYS_access 0 - Follow, Does(Sight::Presence);
    SYS_readlink 0 - Stay, Does(Sight::Presence);
    SYS_mkdir 0 - Stay, Does(Sight::Made);
    SYS_mknod 0 - Stay, Does(Sight::Made);
    SYS_symlink 1 - Stay, Does(Sight::Linked);
    SYS_link 0 - Stay, Does(Sight::Presence);
    SYS_link 1 - Stay, Does(Sight::Made);
    SYS_rename 0 - Stay, Does(Sight::Moved);
    SYS_rename 1 - Stay, Does(Sight::Moved);
    SYS_unlink 0 - Stay, Does(Sight::Removed);
    SYS_rmdir 0 - Stay, Does(Sight::Removed);
    SYS_chmod 0 - Follow, Does(Sight::Touched);
    SYS_chown 0 - Follow, Does(Sight::Touched);
    SYS_lchown 0 - Stay, Does(Sight::Touched);
    SYS_utime 0 - Follow, Does(Sight::Touched);
    SYS_utimes 0 - Follow, Does(Sight::Touched);
    SYS_futimesat 1 0 Follow, Does(Sight::Touched);
};
/// None.
#[cfg(not(target_arch = "x86_64"))]
const LEGACY: &[PathCall] = &[];

/// Calls that make a process without flags.
#[cfg(target_arch = "x86_64")]
pub(super) const FORKS: &[c_long] = &[SYS_fork, SYS_vfork];
/// None.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const FORKS: &[c_long] = &[];

/// Calls that list the directory of a descriptor.
#[cfg(target_arch = "x86_64")]
pub(super) const LISTS: &[c_long] = &[SYS_getdents, SYS_getdents64];
/// The same.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const LISTS: &[c_long] = &[SYS_getdents64];

/// Calls that change what a path means, or read something that no path names: if one of them
/// succeeds, no list of paths describes what was looked at.
pub(super) const OPAQUE: &[c_long] = &[
    SYS_chroot,
    SYS_pivot_root,
    SYS_mount,
    SYS_umount2,
    SYS_move_mount,
    SYS_open_tree,
    SYS_mount_setattr,
    SYS_setns,
    SYS_open_by_handle_at,
    SYS_io_uring_setup,
];

/// Whether the recorder knows how a call uses paths.
#[cfg(test)]
pub(crate) fn is_known(number: c_long) -> bool {
    OPAQUE.contains(&number) || all().any(|call| call.number == number)
}

/// Every line.
#[cfg(test)]
fn all() -> impl Iterator<Item = &'static PathCall> {
    CALLS.iter().chain(LEGACY)
}

/// One more than the highest number of a call.
const NUMBERS: usize = 512;

/// The first line of each call in [`CALLS`] and then [`LEGACY`], plus one; 0: the call names no
/// path.
static FIRST: [u8; NUMBERS] = {
    let mut first = [0; NUMBERS];
    let mut line = CALLS.len() + LEGACY.len();
    while line > 0 {
        let call = if line > CALLS.len() {
            &LEGACY[line - CALLS.len() - 1]
        } else {
            &CALLS[line - 1]
        };
        first[call.number as usize] = line as u8;
        line -= 1;
    }
    first
};

/// The paths of a call, at most two.
#[inline]
pub(super) fn paths_of(number: usize) -> &'static [PathCall] {
    let first = FIRST.get(number).copied().map(usize::from);
    let Some(line) = first.and_then(|line| line.checked_sub(1)) else {
        return &[];
    };
    let lines = match line.checked_sub(CALLS.len()) {
        Some(line) => LEGACY.get(line..),
        None => CALLS.get(line..),
    };
    let lines = lines.unwrap_or(&[]);
    let two = lines
        .get(1)
        .is_some_and(|next| next.number as usize == number);
    lines.get(..1 + usize::from(two)).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_found_by_its_number() {
        for call in all() {
            let found = paths_of(call.number as usize);
            assert!(found.iter().any(|line| line.path == call.path), "{call:?}");
            assert!(found.iter().all(|line| line.number == call.number));
            let same = all().filter(|line| line.number == call.number);
            assert_eq!(same.count(), found.len(), "{call:?}");
        }
        assert!(paths_of(SYS_read as usize).is_empty());
        assert!(paths_of(usize::MAX).is_empty());
    }
}
