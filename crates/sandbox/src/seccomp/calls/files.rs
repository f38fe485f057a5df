//! Files, directories and descriptors. The private root and Landlock determine which files.

use nix::libc::*;

use crate::seccomp::call::Answer::{Allow, AllowIf, Refuse};
use crate::seccomp::call::Kind::{Kernel, Link};
use crate::seccomp::call::Refuse::{AsAbsent, Quietly, Told};
use crate::seccomp::call::When::{Args, Attributes, Metadata, MetadataAnd, Opening};
use crate::seccomp::call::{self, Arg, Call, Rules, at_least, at_most, bits, calls, is, without};
use crate::syscall_numbers::{
    SYS_cachestat, SYS_fchmodat2, SYS_getxattrat, SYS_listxattrat, SYS_removexattrat,
    SYS_setxattrat,
};

/// The set-user-id and set-group-id bits: a program with them would run with its owner's rights
/// when another user of the machine starts it.
const SET_ID: u32 = S_ISUID | S_ISGID;

/// Permits making plain files and pipes: no devices, no sockets, no set-id bits.
const fn plain_or_pipe(mode: u8) -> [Arg; 3] {
    const MASK: u32 = S_IFMT | SET_ID;
    [
        bits(mode, MASK, S_IFREG),
        bits(mode, MASK, S_IFIFO),
        // mknod(2): no type means a plain file.
        bits(mode, MASK, 0),
    ]
}

const MKNODAT: Rules = {
    const MODES: [Arg; 3] = plain_or_pipe(2);
    &[&[MODES[0]], &[MODES[1]], &[MODES[2]]]
};

/// The ways to open a file: none makes a set-id file, and only what is opened to be written is
/// emptied. Before version 3, Landlock takes `O_TRUNC` alone for no writing. The access mode 3, with
/// which a file can be neither read nor written, is refused: Landlock takes it for no access at all, and
/// by ioctl(2) it controls terminals and devices (open(2), "Access mode 3").
const fn ways_to_open(flags: u8, mode: u8) -> [[Arg; 2]; 3] {
    const ACCESS: u32 = O_ACCMODE as u32;
    let plain = without(mode, SET_ID);
    [
        [plain, bits(flags, ACCESS | O_TRUNC as u32, O_RDONLY as u32)],
        [plain, bits(flags, ACCESS, O_WRONLY as u32)],
        [plain, bits(flags, ACCESS, O_RDWR as u32)],
    ]
}

const WAYS_OF_OPENAT: Rules = {
    const WAYS: [[Arg; 2]; 3] = ways_to_open(2, 3);
    &[&WAYS[0], &WAYS[1], &WAYS[2]]
};

const OPENAT: call::Opening = call::Opening {
    directory: Some(0),
    path: 1,
    flags: 2,
};

/// `fcntl`: other commands have signals sent to a process (`F_SETOWN`, `F_SETSIG`, `O_ASYNC`),
/// watch others' use of a file (`F_NOTIFY`, `F_SETLEASE`) or take kernel memory (`F_SETPIPE_SZ`;
/// `F_OFD_SETLK`, whose locks have no known owner and so cannot be counted).
const FCNTL: Rules = &[
    // F_DUPFD 0, F_GETFD 1, F_SETFD 2, F_GETFL 3.
    &[at_most(1, F_GETFL as u32)],
    &[is(1, F_SETFL as u32), without(2, O_ASYNC as u32)],
    // F_GETLK 5, F_SETLK 6, F_SETLKW 7.
    &[at_least(1, F_GETLK as u32), at_most(1, F_SETLKW as u32)],
    &[is(1, F_DUPFD_CLOEXEC as u32)],
    &[is(1, F_GETPIPE_SZ as u32)],
    &[is(1, F_GET_SEALS as u32)],
];

/// `posix_fadvise`: hints on future access, up to `POSIX_FADV_WILLNEED` 3, and `NOREUSE` 5. Not
/// `DONTNEED` 4, which drops a file from the machine's page cache.
const FADVISE: Rules = &[
    &[at_most(3, POSIX_FADV_WILLNEED as u32)],
    &[is(3, POSIX_FADV_NOREUSE as u32)],
];

/// On every architecture.
pub(super) const CALLS: &[Call] = calls! {
    SYS_read: Allow, "every program";
    SYS_write: Allow, "every program";
    SYS_readv: Allow, "streams, C libraries";
    SYS_writev: Allow, "streams, musl's standard output";
    SYS_pread64: Allow, "SQLite, loading libraries";
    SYS_pwrite64: Allow, "SQLite";
    SYS_preadv: Allow, "libraries that read in pieces";
    SYS_pwritev: Allow, "libraries that write in pieces";
    SYS_preadv2: AllowIf(Args(&[&[is(5, 0)]]), Quietly), "preadv() of newer C libraries; RWF_NOWAIT would reveal what others have read recently";
    SYS_pwritev2: AllowIf(Args(&[&[is(5, 0)]]), Quietly), "pwritev() of newer C libraries";
    SYS_lseek: Allow, "every program";
    SYS_openat: AllowIf(Opening(&OPENAT, WAYS_OF_OPENAT), Quietly), "every program";
    SYS_openat2: Refuse(AsAbsent), "the mode of a new file is in memory, which a filter cannot read";
    SYS_close: Allow, "every program";
    SYS_close_range: AllowIf(Args(&[&[without(2, CLOSE_RANGE_UNSHARE)]]), Quietly), "libraries that tidy up; a descriptor table per thread would multiply the descriptor limit";
    SYS_dup: Allow, "streams";
    SYS_dup3: Allow, "streams";
    SYS_fcntl: AllowIf(Args(FCNTL), Quietly), "flags, locks and copies of descriptors";
    SYS_flock: Allow, "flock(), LOCK_EX of file_put_contents()";
    SYS_ioctl: AllowIf(Args(super::requests::OF_EVALUATIONS), Quietly), "whether a stream is a terminal, how much can be read, non-blocking mode";
    SYS_fstat: Allow, "every program";
    SYS_newfstatat: Allow, "stat() of newer C libraries";
    SYS_statx: Allow, "stat() of some libraries";
    SYS_statfs: Allow, "disk_free_space()";
    SYS_fstatfs: Allow, "SQLite queries the file system";
    SYS_faccessat: Allow, "is_readable()";
    SYS_faccessat2: Allow, "is_readable() with newer C libraries";
    SYS_readlinkat: Allow, "realpath(), readlink()";
    SYS_getcwd: Allow, "getcwd()";
    SYS_chdir: Allow, "chdir()";
    SYS_fchdir: Allow, "libraries that walk directories";
    SYS_getdents64: Allow, "scandir()";
    SYS_mkdirat: Allow, "mkdir()";
    SYS_unlinkat: Allow, "unlink(), rmdir()";
    SYS_renameat: Allow, "rename()";
    SYS_renameat2: Allow, "rename() of newer C libraries";
    SYS_linkat: Refuse(Told(Link)), "a second name for a file would outlive the rules for the first";
    SYS_symlinkat: Refuse(Told(Link)), "a link in the project could mislead other programs";
    SYS_mknodat: AllowIf(Args(MKNODAT), Quietly), "posix_mkfifo(); no devices, no sockets";
    SYS_ftruncate: Allow, "ftruncate(), SQLite";
    SYS_fallocate: Allow, "SQLite, temporary files";
    SYS_fsync: Allow, "fsync(), SQLite";
    SYS_fdatasync: Allow, "fdatasync(), SQLite";
    SYS_sync_file_range: Allow, "databases";
    SYS_fadvise64: AllowIf(Args(FADVISE), Quietly), "libraries that read ahead; must not drop others' files from the page cache";
    SYS_readahead: Allow, "libraries that read ahead";
    SYS_umask: Allow, "umask(), tempnam()";
    SYS_getxattr: Allow, "reading extended attributes";
    SYS_lgetxattr: Allow, "reading extended attributes";
    SYS_fgetxattr: Allow, "reading extended attributes";
    SYS_listxattr: Allow, "reading extended attributes";
    SYS_llistxattr: Allow, "reading extended attributes";
    SYS_flistxattr: Allow, "reading extended attributes";
    SYS_getxattrat: Refuse(AsAbsent), "a newer form that nothing needs yet";
    SYS_listxattrat: Refuse(AsAbsent), "a newer form that nothing needs yet";
    SYS_sendfile: Allow, "stream_copy_to_stream() in libraries";
    SYS_copy_file_range: Allow, "copy()";
    SYS_pipe2: Allow, "event loops";
    SYS_ppoll: Allow, "stream_select() of libraries";
    SYS_pselect6: Allow, "stream_select()";
    SYS_epoll_create1: Allow, "event loops";
    SYS_epoll_ctl: Allow, "event loops";
    SYS_epoll_pwait: Allow, "event loops";
    SYS_epoll_pwait2: Allow, "event loops";
    SYS_eventfd2: Allow, "event loops, curl";
    SYS_io_setup: Refuse(AsAbsent), "kernel memory that no limit of the process counts";
    SYS_io_submit: Refuse(AsAbsent), "needs io_setup";
    SYS_io_getevents: Refuse(AsAbsent), "needs io_setup";
    SYS_io_cancel: Refuse(AsAbsent), "needs io_setup";
    SYS_io_destroy: Refuse(AsAbsent), "needs io_setup";
    SYS_cachestat: Refuse(AsAbsent), "reveals what others have read recently";
    SYS_inotify_init1: Refuse(Quietly), "would reveal what others do to files; Landlock does not govern it";
    SYS_inotify_add_watch: Refuse(Quietly), "needs inotify_init1";
    SYS_inotify_rm_watch: Refuse(Quietly), "needs inotify_init1";
    SYS_fanotify_init: Refuse(Told(Kernel)), "watches the files of others";
    SYS_fanotify_mark: Refuse(Told(Kernel)), "watches the files of others";
    SYS_name_to_handle_at: Refuse(Quietly), "file handles bypass path rules; only tools need them";
    SYS_open_by_handle_at: Refuse(Told(Kernel)), "opens a file bypassing path rules";
    SYS_splice: Refuse(Quietly), "moves pages between descriptors: a large attack surface, no use in PHP";
    SYS_tee: Refuse(Quietly), "as splice";
    SYS_vmsplice: Refuse(Quietly), "as splice";
    SYS_sync: Refuse(Quietly), "makes the whole machine write";
    SYS_syncfs: Refuse(Quietly), "makes a whole file system write";
};

/// Modes, owners, times and attributes: protected by a private root, not by Landlock. So is a size
/// that is set by path, before version 3.
pub(super) const METADATA: &[Call] = calls! {
    SYS_truncate: AllowIf(Metadata, Quietly), "C libraries' truncate()";
    SYS_fchmod: AllowIf(MetadataAnd(&[&[without(1, SET_ID)]]), Quietly), "chmod()";
    SYS_fchmodat: AllowIf(MetadataAnd(&[&[without(2, SET_ID)]]), Quietly), "chmod()";
    SYS_fchmodat2: AllowIf(MetadataAnd(&[&[without(2, SET_ID)]]), AsAbsent), "chmod() of newer C libraries, which can do without";
    SYS_fchown: AllowIf(Metadata, Quietly), "chown()";
    SYS_fchownat: AllowIf(Metadata, Quietly), "chown()";
    SYS_utimensat: AllowIf(Metadata, Quietly), "touch()";
    SYS_setxattr: AllowIf(Attributes, Quietly), "extended attributes; on real files, those of overlayfs would mislead later layers";
    SYS_lsetxattr: AllowIf(Attributes, Quietly), "extended attributes; on real files, those of overlayfs would mislead later layers";
    SYS_fsetxattr: AllowIf(Attributes, Quietly), "extended attributes; on real files, those of overlayfs would mislead later layers";
    SYS_removexattr: AllowIf(Metadata, Quietly), "extended attributes";
    SYS_lremovexattr: AllowIf(Metadata, Quietly), "extended attributes";
    SYS_fremovexattr: AllowIf(Metadata, Quietly), "extended attributes";
    SYS_setxattrat: Refuse(AsAbsent), "a newer form that nothing needs yet";
    SYS_removexattrat: Refuse(AsAbsent), "a newer form that nothing needs yet";
};

/// The calls of x86-64 that newer architectures never had.
#[cfg(target_arch = "x86_64")]
pub(super) const LEGACY: &[Call] = {
    const OPEN: crate::seccomp::call::Opening = crate::seccomp::call::Opening {
        directory: None,
        path: 0,
        flags: 1,
    };
    const WAYS_OF_OPEN: Rules = {
        const WAYS: [[Arg; 2]; 3] = ways_to_open(1, 2);
        &[&WAYS[0], &WAYS[1], &WAYS[2]]
    };
    const MKNOD: Rules = {
        const MODES: [Arg; 3] = plain_or_pipe(1);
        &[&[MODES[0]], &[MODES[1]], &[MODES[2]]]
    };
    calls! {
        SYS_open: AllowIf(Opening(&OPEN, WAYS_OF_OPEN), Quietly), "musl's open()";
        SYS_creat: AllowIf(Args(&[&[without(1, SET_ID)]]), Quietly), "C libraries' creat()";
        SYS_stat: Allow, "stat() of older C libraries";
        SYS_lstat: Allow, "lstat() of older C libraries";
        SYS_access: Allow, "is_readable() with most C libraries";
        SYS_readlink: Allow, "readlink()";
        SYS_getdents: Allow, "scandir() of older C libraries";
        SYS_mkdir: Allow, "mkdir()";
        SYS_rmdir: Allow, "rmdir()";
        SYS_unlink: Allow, "unlink()";
        SYS_rename: Allow, "rename()";
        SYS_link: Refuse(Told(Link)), "as linkat";
        SYS_symlink: Refuse(Told(Link)), "as symlinkat";
        SYS_mknod: AllowIf(Args(MKNOD), Quietly), "as mknodat";
        SYS_chmod: AllowIf(MetadataAnd(&[&[without(1, SET_ID)]]), Quietly), "chmod()";
        SYS_chown: AllowIf(Metadata, Quietly), "chown()";
        SYS_lchown: AllowIf(Metadata, Quietly), "lchown()";
        SYS_utime: AllowIf(Metadata, Quietly), "touch()";
        SYS_utimes: AllowIf(Metadata, Quietly), "touch()";
        SYS_futimesat: AllowIf(Metadata, Quietly), "C libraries' futimesat()";
        SYS_dup2: Allow, "streams";
        SYS_pipe: Allow, "event loops";
        SYS_poll: Allow, "stream_select(), sockets";
        SYS_select: Allow, "stream_select()";
        SYS_epoll_create: Allow, "event loops";
        SYS_epoll_wait: Allow, "event loops";
        SYS_eventfd: Allow, "event loops";
        SYS_inotify_init: Refuse(Quietly), "as inotify_init1";
    }
};
/// None.
#[cfg(not(target_arch = "x86_64"))]
pub(super) const LEGACY: &[Call] = &[];
