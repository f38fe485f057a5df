//! Appends one line to the log: complete, in order with other writers, and to no other file.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use altair_sandbox::{Place, with_files_of};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat, mkdirat};
use nix::unistd::{Gid, Uid, fchown, geteuid};

use super::{AuditError, DIRECTORY, FILE};
use crate::error::reason;
use crate::owner::{FILE_PATIENCE, run_as};

/// Maximum wait for another writer's lock. A writer holds it for one `write`.
const LOCK_LIMIT: Duration = Duration::from_secs(2);
/// Interval between attempts to lock meanwhile: `flock(2)` has no timeout.
const LOCK_RETRY: Duration = Duration::from_millis(5);
/// How often the file may vanish between two calls before this is an error.
const VANISH_LIMIT: u32 = 16;

/// Group and others may enter: the web server and the shell are often two users of one group.
const DIRECTORY_MODE: Mode = Mode::from_bits_truncate(0o775);
const FILE_MODE: Mode = Mode::from_bits_truncate(0o664);

/// Appends `line`, which has no newline, to the log of the project at `root`.
pub(super) fn append(root: &Place, line: &str) -> Result<(), AuditError> {
    let log = super::path(root.path());
    let deadline = Instant::now() + LOCK_LIMIT;
    for _ in 0..VANISH_LIMIT {
        let (directory, heir) = open_directory(root)?;
        let file = open_file(&log, directory.as_fd(), heir)?;
        let mut file = lock(&log, file, deadline)?;
        let stat = fstat(&*file).map_err(|e| cannot_open(&log, e))?;
        // Removed during the wait for its lock: a line in it would be lost.
        if stat.st_nlink > 0 {
            return write_line(&mut file, line).map_err(|e| AuditError::Write {
                path: log.clone(),
                reason: reason(&e),
            });
        }
    }
    Err(AuditError::Open {
        path: log,
        reason: "it keeps being removed".to_owned(),
    })
}

/// New owner of what root creates in a project that root does not own: otherwise one audited run as
/// root would shut the project's owner out of the log.
type Heir = Option<(Uid, Gid)>;

/// Opens `<root>/.altair`, and creates it if it is missing.
fn open_directory(root: &Place) -> Result<(OwnedFd, Heir), AuditError> {
    let path = root.path().join(DIRECTORY);
    let refuse = |e: Errno| AuditError::Directory {
        path: path.clone(),
        reason: reason(&e.into()),
    };
    // A symbolic link gives ENOTDIR rather than ELOOP here, because of O_DIRECTORY: open(2).
    let refused = |e: Errno| match (e, kind_at(root.descriptor(), DIRECTORY)) {
        (Errno::ENOTDIR | Errno::ELOOP, Some(found)) => AuditError::InTheWay {
            path: path.clone(),
            found,
            wanted: "a directory",
        },
        _ => refuse(e),
    };
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;

    let owner = root.owner();
    let heir = (geteuid().is_root() && owner.uid != 0)
        .then(|| (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid)));

    let parent = root.descriptor();
    match openat(parent, DIRECTORY, flags | OFlag::O_NOFOLLOW, Mode::empty()) {
        Ok(directory) => return Ok((directory, heir)),
        Err(Errno::ENOENT) => {}
        Err(e) => return Err(refused(e)),
    }
    // If the host is root, creates it as the project's owner: the owner then owns it, and anything
    // that the owner puts in its place meanwhile keeps its ownership.
    let own = root.clone();
    let made = with_files_of(run_as(root), FILE_PATIENCE, move || {
        mkdirat(own.descriptor(), DIRECTORY, DIRECTORY_MODE)
    });
    match made.map_err(|e| AuditError::Directory {
        path: path.clone(),
        reason: reason(&e),
    })? {
        // EEXIST also on a read-only file system: the kernel looks up the name first.
        Ok(()) | Err(Errno::EEXIST) => {}
        Err(e) => return Err(refuse(e)),
    }
    openat(parent, DIRECTORY, flags | OFlag::O_NOFOLLOW, Mode::empty())
        .map(|directory| (directory, heir))
        .map_err(refused)
}

/// Opens or creates the log in `directory`; accepts only a regular file.
fn open_file(log: &Path, directory: BorrowedFd<'_>, heir: Heir) -> Result<File, AuditError> {
    // O_NONBLOCK: a FIFO or a device must not block the open.
    let flags =
        OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    for _ in 0..VANISH_LIMIT {
        // Two opens instead of one with O_CREAT alone: this tells whether the file is new, and
        // O_EXCL never creates the target of a dangling link.
        match openat(
            directory,
            FILE,
            flags | OFlag::O_CREAT | OFlag::O_EXCL,
            FILE_MODE,
        ) {
            Ok(file) => {
                hand_over(file.as_fd(), heir);
                return Ok(File::from(file));
            }
            Err(Errno::EEXIST) => {}
            Err(e) => return Err(cannot_open(log, e)),
        }
        match openat(directory, FILE, flags, Mode::empty()) {
            Ok(file) => {
                let stat = fstat(&file).map_err(|e| cannot_open(log, e))?;
                return if file_type(&stat) == SFlag::S_IFREG {
                    Ok(File::from(file))
                } else {
                    Err(in_the_way(log, kind_name(file_type(&stat))))
                };
            }
            Err(Errno::ENOENT) => {} // removed in between: make it
            Err(e) => {
                return Err(match kind_at(directory, FILE) {
                    Some(found) if found != REGULAR => in_the_way(log, found),
                    _ => cannot_open(log, e),
                });
            }
        }
    }
    Err(AuditError::Open {
        path: log.to_owned(),
        reason: "it keeps being removed".to_owned(),
    })
}

/// Locks `file` until it is dropped, or gives up at `deadline`.
fn lock(log: &Path, file: File, deadline: Instant) -> Result<Flock<File>, AuditError> {
    let mut file = file;
    loop {
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(locked) => return Ok(locked),
            Err((back, Errno::EWOULDBLOCK | Errno::EINTR)) => file = back,
            Err((_, e)) => return Err(cannot_open(log, e)),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let waited_ms = u64::try_from(LOCK_LIMIT.as_millis()).unwrap_or(u64::MAX);
            return Err(AuditError::Locked {
                path: log.to_owned(),
                waited_ms,
            });
        }
        thread::sleep(LOCK_RETRY.min(left));
    }
}

/// Writes `line` as a line of its own, in one `write`; all of it or none of it.
fn write_line(file: &mut File, line: &str) -> std::io::Result<()> {
    let length = file.metadata()?.len();
    let mut record = String::with_capacity(line.len() + 2);
    if is_torn(file, length)? {
        record.push('\n');
    }
    record.push_str(line);
    record.push('\n');

    let written = loop {
        match file.write(record.as_bytes()) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            outcome => break outcome?,
        }
    };
    if written < record.len() {
        // A full disk or a size limit. The lock is held, so no other writer has appended.
        file.set_len(length)?;
        return Err(std::io::Error::other(
            "only a part of the line could be written",
        ));
    }
    Ok(())
}

/// Whether the last writer died in the middle of its line.
fn is_torn(file: &File, length: u64) -> std::io::Result<bool> {
    let Some(last) = length.checked_sub(1) else {
        return Ok(false);
    };
    let mut byte = [0];
    file.read_exact_at(&mut byte, last)?;
    Ok(byte != *b"\n")
}

/// Gives a new file to the project's owner. Best effort: in a user namespace the owner may be
/// unmapped, and the log works without.
fn hand_over(made: BorrowedFd<'_>, heir: Heir) {
    if let Some((user, group)) = heir {
        let _ = fchown(made, Some(user), Some(group));
    }
}

fn cannot_open(log: &Path, errno: Errno) -> AuditError {
    AuditError::Open {
        path: log.to_owned(),
        reason: reason(&errno.into()),
    }
}

fn in_the_way(log: &Path, found: &'static str) -> AuditError {
    AuditError::InTheWay {
        path: log.to_owned(),
        found,
        wanted: REGULAR,
    }
}

const REGULAR: &str = "a regular file";

/// The kind of the file `name`; links are not followed.
fn kind_at(directory: BorrowedFd<'_>, name: &str) -> Option<&'static str> {
    let stat = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
    Some(kind_name(file_type(&stat)))
}

fn file_type(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

fn kind_name(kind: SFlag) -> &'static str {
    match kind {
        SFlag::S_IFREG => REGULAR,
        SFlag::S_IFDIR => "a directory",
        SFlag::S_IFLNK => "a symbolic link",
        SFlag::S_IFIFO => "a FIFO",
        SFlag::S_IFSOCK => "a socket",
        _ => "a device",
    }
}
