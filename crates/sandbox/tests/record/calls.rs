//! Every call that names a path.

use std::ffi::{CString, c_char, c_int, c_long};
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use altair_sandbox::{Record, Way};
use libc::*;

use crate::support::*;

/// A call with a path, and perhaps with a directory to start at.
enum By {
    Path(fn(Text) -> c_long),
    Start(fn(c_int, Text) -> c_long),
}
use By::{Path as P, Start as S};

impl By {
    /// Passes the call to `with` in every form that names `name` in `root`: by its full path, and
    /// relative to a descriptor.
    fn each(&self, root: &Path, name: &str, mut with: impl FnMut(&dyn Fn() -> c_long)) {
        let (whole, short) = (c(&root.join(name)), CString::new(name).unwrap());
        match self {
            By::Path(call) => with(&|| call(whole.as_ptr())),
            By::Start(call) => {
                with(&|| call(AT_FDCWD, whole.as_ptr()));
                with(&|| {
                    let start = File::open(root).unwrap();
                    call(start.as_raw_fd(), short.as_ptr())
                });
            }
        }
    }
}

/// The result of a call, and its record.
fn answer(call: &dyn Fn() -> c_long) -> (c_long, Record) {
    let mut answer = 0;
    let record = record(|| answer = call());
    (answer, record)
}

/// One line per call that looks: whether it follows links, and what it shows of a file and of a
/// directory.
#[rustfmt::skip]
const LOOKS: &[(&str, By, bool, Way, Way)] = {
    use Way::{Passed, Read};
    &[
        ("open", P(|p| opened(sys!(SYS_open, p, O_RDONLY))), true, Read, Passed),
        ("openat", S(|d, p| opened(sys!(SYS_openat, d, p, O_RDONLY))), true, Read, Passed),
        ("openat2", S(|d, p| opened(sys!(SYS_openat2, d, p, (&raw const HOW), 24_usize))), true, Read, Passed),
        ("O_PATH", P(|p| opened(sys!(SYS_open, p, O_PATH | O_NOFOLLOW))), false, Read, Passed),
        ("uselib", P(|p| sys!(SYS_uselib, p)), true, Read, Passed),
        ("stat", P(|p| sys!(SYS_stat, p, room())), true, Read, Read),
        ("lstat", P(|p| sys!(SYS_lstat, p, room())), false, Read, Passed),
        ("newfstatat", S(|d, p| sys!(SYS_newfstatat, d, p, room(), 0)), true, Read, Read),
        ("newfstatat, link", S(|d, p| sys!(SYS_newfstatat, d, p, room(), AT_SYMLINK_NOFOLLOW)), false, Read, Passed),
        ("statx", S(|d, p| sys!(SYS_statx, d, p, 0, STATX_ALL, room())), true, Read, Read),
        ("statx, link", S(|d, p| sys!(SYS_statx, d, p, AT_SYMLINK_NOFOLLOW, STATX_ALL, room())), false, Read, Passed),
        ("file_getattr", S(|d, p| sys!(468, d, p, room(), 24_usize, 0)), true, Read, Read),
        ("statfs", P(|p| sys!(SYS_statfs, p, room())), true, Read, Passed),
        ("access", P(|p| sys!(SYS_access, p, R_OK)), true, Read, Passed),
        ("faccessat", S(|d, p| sys!(SYS_faccessat, d, p, R_OK)), true, Read, Passed),
        ("faccessat2", S(|d, p| sys!(SYS_faccessat2, d, p, R_OK, AT_SYMLINK_NOFOLLOW)), false, Read, Passed),
        ("readlink", P(|p| sys!(SYS_readlink, p, room(), 4096_usize)), false, Read, Passed),
        ("readlinkat", S(|d, p| sys!(SYS_readlinkat, d, p, room(), 4096_usize)), false, Read, Passed),
        ("name_to_handle_at", S(|d, p| sys!(SYS_name_to_handle_at, d, p, room(), room(), 0)), false, Read, Passed),
        ("getxattr", P(|p| sys!(SYS_getxattr, p, ATTRIBUTE, room(), 9_usize)), true, Read, Read),
        ("lgetxattr", P(|p| sys!(SYS_lgetxattr, p, ATTRIBUTE, room(), 9_usize)), false, Read, Passed),
        ("getxattrat", S(|d, p| sys!(464, d, p, 0, ATTRIBUTE, room(), 16_usize)), true, Read, Read),
        ("listxattr", P(|p| sys!(SYS_listxattr, p, room(), 9_usize)), true, Read, Read),
        ("llistxattr", P(|p| sys!(SYS_llistxattr, p, room(), 9_usize)), false, Read, Passed),
        ("listxattrat", S(|d, p| sys!(465, d, p, 0, room(), 9_usize)), true, Read, Read),
        ("inotify_add_watch", P(|p| {
            let queue = sys!(SYS_inotify_init1, 0);
            let result = sys!(SYS_inotify_add_watch, queue, p, IN_MODIFY);
            opened(queue);
            result
        }), true, Read, Read),
        ("chdir", P(|p| sys!(SYS_chdir, p)), true, Read, Passed),
        ("link", P(|p| sys!(SYS_link, p, c"/nowhere/else".as_ptr())), false, Read, Passed),
        ("linkat", S(|d, p| sys!(SYS_linkat, d, p, AT_FDCWD, c"/nowhere/else".as_ptr(), 0)), false, Read, Passed),
    ]
};

static HOW: [u64; 3] = [0, 0, 0];
const ATTRIBUTE: *const c_char = c"user.altair".as_ptr();

#[test]
fn each_call_that_looks_is_recorded_with_what_was_there() {
    alone(|root| {
        fs::write(root.join("file"), "content").unwrap();
        fs::create_dir(root.join("directory")).unwrap();
        symlink("file", root.join("link")).unwrap();
        for (call, by, follows, of_file, of_directory) in LOOKS {
            for (name, way) in [
                ("file", of_file),
                ("directory", of_directory),
                ("link", of_file),
            ] {
                let path = root.join(name);
                let metadata = if *follows {
                    fs::metadata(&path)
                } else {
                    fs::symlink_metadata(&path)
                };
                by.each(root, name, |act| {
                    let (_, record) = answer(act);
                    let look = look(&record, &path);
                    let found = identity(metadata.as_ref().unwrap());
                    assert_eq!(look.found, Some(found), "{call} {name}");
                    assert_eq!((look.way, look.link), (*way, !follows), "{call} {name}");
                    assert!(record.written.is_empty(), "{call} {name}");
                    assert_eq!(record.unseen, [], "{call} {name}");
                });
            }
            for name in ["absent", "absent/too", "file/below"] {
                by.each(root, name, |act| {
                    let (result, record) = answer(act);
                    assert_eq!(result, -1, "{call} {name}");
                    assert_eq!(look(&record, &root.join(name)).found, None, "{call} {name}");
                });
            }
        }
    });
}

/// One line per call that changes `name`, which is a file before, or does not exist.
#[rustfmt::skip]
const CHANGES: &[(&str, By, bool)] = &[
    ("open", P(|p| opened(sys!(SYS_open, p, O_WRONLY))), true),
    ("open to append", P(|p| opened(sys!(SYS_open, p, O_RDWR | O_APPEND))), true),
    ("open to make", P(|p| opened(sys!(SYS_open, p, O_CREAT, 0o600))), false),
    ("open to truncate", P(|p| opened(sys!(SYS_open, p, O_TRUNC))), true),
    ("openat", S(|d, p| opened(sys!(SYS_openat, d, p, O_CREAT | O_EXCL | O_WRONLY, 0o600))), false),
    ("openat2", S(|d, p| {
        let how = [(O_CREAT | O_WRONLY) as u64, 0o600, 0];
        opened(sys!(SYS_openat2, d, p, &raw const how, 24_usize))
    }), false),
    ("creat", P(|p| opened(sys!(SYS_creat, p, 0o600))), false),
    ("truncate", P(|p| sys!(SYS_truncate, p, 1)), true),
    ("mkdir", P(|p| sys!(SYS_mkdir, p, 0o700)), false),
    ("mkdirat", S(|d, p| sys!(SYS_mkdirat, d, p, 0o700)), false),
    ("mknod", P(|p| sys!(SYS_mknod, p, S_IFIFO | 0o600, 0)), false),
    ("mknodat", S(|d, p| sys!(SYS_mknodat, d, p, S_IFIFO | 0o600, 0)), false),
    ("rename to", P(|p| sys!(SYS_rename, c"other".as_ptr(), p)), true),
    ("rename from", P(|p| sys!(SYS_rename, p, c"moved".as_ptr())), true),
    ("renameat", S(|d, p| sys!(SYS_renameat, d, p, AT_FDCWD, c"moved".as_ptr())), true),
    ("renameat to", S(|d, p| sys!(SYS_renameat, AT_FDCWD, c"other".as_ptr(), d, p)), false),
    ("renameat2", S(|d, p| sys!(SYS_renameat2, d, p, AT_FDCWD, c"other".as_ptr(), RENAME_EXCHANGE)), true),
    ("renameat2 to", S(|d, p| sys!(SYS_renameat2, AT_FDCWD, c"other".as_ptr(), d, p, 0)), false),
    ("link", P(|p| sys!(SYS_link, c"other".as_ptr(), p)), false),
    ("linkat", S(|d, p| sys!(SYS_linkat, AT_FDCWD, c"other".as_ptr(), d, p, 0)), false),
    ("symlink", P(|p| sys!(SYS_symlink, c"other".as_ptr(), p)), false),
    ("symlinkat", S(|d, p| sys!(SYS_symlinkat, c"other".as_ptr(), d, p)), false),
    ("unlink", P(|p| sys!(SYS_unlink, p)), true),
    ("unlinkat", S(|d, p| sys!(SYS_unlinkat, d, p, 0)), true),
    ("chmod", P(|p| sys!(SYS_chmod, p, 0o600)), true),
    ("fchmodat", S(|d, p| sys!(SYS_fchmodat, d, p, 0o600)), true),
    ("fchmodat2", S(|d, p| sys!(452, d, p, 0o600, 0)), true),
    ("chown", P(|p| sys!(SYS_chown, p, -1, -1)), true),
    ("lchown", P(|p| sys!(SYS_lchown, p, -1, -1)), true),
    ("fchownat", S(|d, p| sys!(SYS_fchownat, d, p, -1, -1, 0)), true),
    ("utime", P(|p| sys!(SYS_utime, p, NO)), true),
    ("utimes", P(|p| sys!(SYS_utimes, p, NO)), true),
    ("utimensat", S(|d, p| sys!(SYS_utimensat, d, p, NO, 0)), true),
    ("futimesat", S(|d, p| sys!(SYS_futimesat, d, p, NO)), true),
    ("setxattr", P(|p| sys!(SYS_setxattr, p, ATTRIBUTE, ATTRIBUTE, 4_usize, 0)), true),
    ("lsetxattr", P(|p| sys!(SYS_lsetxattr, p, ATTRIBUTE, ATTRIBUTE, 4_usize, 0)), true),
    ("setxattrat", S(|d, p| {
        let value = [ATTRIBUTE as u64, 4];
        sys!(463, d, p, 0, ATTRIBUTE, &raw const value, 16_usize)
    }), true),
    ("removexattr", P(|p| sys!(SYS_removexattr, p, ATTRIBUTE)), true),
    ("lremovexattr", P(|p| sys!(SYS_lremovexattr, p, ATTRIBUTE)), true),
    ("removexattrat", S(|d, p| sys!(466, d, p, 0, ATTRIBUTE)), true),
    ("file_setattr", S(|d, p| sys!(469, d, p, room(), 24_usize, 0)), true),
];

#[test]
fn each_call_that_changes_is_recorded_with_what_was_there_before() {
    alone(|root| {
        std::env::set_current_dir(root).unwrap();
        let (path, parent) = (root.join("name"), root.to_owned());
        let bytes = path.as_os_str().as_bytes();
        let metadata = || fs::symlink_metadata(&path).ok().as_ref().map(identity);
        let directory = || identity(&fs::metadata(root).unwrap());
        for (call, by, there) in CHANGES {
            by.each(root, "name", |act| {
                let _ = fs::remove_file(&path);
                let _ = fs::remove_dir(&path);
                fs::write("other", "").unwrap();
                if *there {
                    fs::write(&path, "content").unwrap();
                    let path = c(&path);
                    sys!(
                        SYS_setxattr,
                        path.as_ptr(),
                        ATTRIBUTE,
                        ATTRIBUTE,
                        4_usize,
                        0
                    );
                }
                // So that a change within the same tick of the clock is visible.
                let root = File::open(root).unwrap();
                root.set_modified(std::time::UNIX_EPOCH).unwrap();
                let (was, directory_was) = (metadata(), directory());
                assert_eq!(was.is_some(), *there, "{call}");
                let (result, record) = answer(act);
                let first = record.looks.iter().find(|look| look.path == bytes);
                assert_eq!(first.unwrap().found, was, "{call}");
                if directory() != directory_was {
                    assert_eq!(look(&record, &parent).found, Some(directory_was), "{call}");
                }
                if result < 0 {
                    // The kernel lacks the call, or the file system lacks such attributes.
                    let optional = call.contains("attr") || *call == "fchmodat2";
                    assert!(optional, "{call}: {result}");
                } else {
                    assert!(record.written.iter().any(|path| path == bytes), "{call}");
                }
            });
        }
    });
}
