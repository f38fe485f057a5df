//! The directories for temporary files of a template and its forks, where nothing can be mounted.
//!
//! Code that boots keeps the path of that directory, so it has to lead each process to a directory
//! of its own: it is [`TEMP_PATH`], the path of a descriptor. The template's directory and those of
//! its forks are in one parent, which the host makes. Landlock lets a fork write to its own alone.
//!
//! What boot leaves in the template's directory is copied for each fork, up to [`COPY_BYTES_MAX`].
//! Beside them is one for what boot makes once for all forks, which they may only read
//! ([`shared_directory`]).

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::sys::stat::{Mode, fstat, fstatat, mkdirat};
use nix::unistd::{Pid, UnlinkatFlags, unlinkat};

use crate::error::{Failure, Step};
use crate::process::CHANNEL;
use crate::view::remove_entries;
use crate::{Place, RunAs, raw_descriptors, system_calls, with_files_of};

/// The descriptor of the directory in a template and in its forks: the first after the channel.
pub(crate) const DESCRIPTOR: RawFd = CHANNEL + 1;
/// The path of the directory for temporary files in a template and in its forks.
pub const TEMP_PATH: &str = "/proc/self/fd/4";
const _: () = assert!(DESCRIPTOR == 4);

/// The name of the template's directory in their parent.
const FIRST: &CStr = c"boot";
/// The name of the directory that all of them may read.
const SHARED: &CStr = c"shared";

/// The most bytes that are copied for a fork; the same as for a directory in memory.
const COPY_BYTES_MAX: u64 = 64 << 20;
/// The most files and directories that are copied for a fork.
const COPY_ENTRIES_MAX: usize = 10_000;
/// The deepest directory that is copied.
const COPY_DEPTH_MAX: usize = 64;

/// How long removing a fork's directory may take, as its user.
const PATIENCE: Duration = Duration::from_secs(10);

const OWNER_ONLY: Mode = Mode::S_IRWXU;
const POINT: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
const LIST: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// The path of the template's directory below their parent.
#[must_use]
pub fn first_directory(parent: &Path) -> PathBuf {
    parent.join(OsStr::from_bytes(FIRST.to_bytes()))
}

/// Whether a template's directories are where it made them. Programs that clear away old files
/// remove them, and then no fork can have one beside them.
#[must_use]
pub fn are_first_directories_there(parent: &Place) -> bool {
    let is_there = |name| {
        let found = fstatat(parent.descriptor(), name, AtFlags::AT_SYMLINK_NOFOLLOW);
        found != Err(Errno::ENOENT)
    };
    is_there(FIRST) && is_there(SHARED)
}

/// The path of the directory below their parent that the template may write, and its forks may read.
#[must_use]
pub fn shared_directory(parent: &Path) -> PathBuf {
    parent.join(OsStr::from_bytes(SHARED.to_bytes()))
}

/// Makes the directory of the calling process, a template, and opens it as [`TEMP_PATH`]; and the
/// one that its forks may read. Nothing else may have been opened before.
///
/// # Errors
/// Those of mkdir(2) and open(2); `EBUSY` if the descriptor is in use.
pub fn make_first_directory(parent: &Path) -> io::Result<()> {
    let parent = openat(AT_FDCWD, parent, POINT, Mode::empty())?;
    mkdirat(&parent, FIRST, OWNER_ONLY)?;
    mkdirat(&parent, SHARED, OWNER_ONLY)?;
    let directory = openat(&parent, FIRST, POINT, Mode::empty())?;
    drop(parent);
    match raw_descriptors::lift(directory.into_raw_fd(), DESCRIPTOR)? {
        DESCRIPTOR => Ok(()),
        other => {
            raw_descriptors::close(other);
            Err(Errno::EBUSY.into())
        }
    }
}

/// Makes the directory of the calling process, a fork, with a copy of what is in the template's.
/// [`TEMP_PATH`] then leads to it.
pub(crate) fn make_own_directory() -> Result<(), Failure> {
    let failed = |e| Step::TempDirectory.failed(e);
    let (first, own) = open_both().map_err(failed)?;
    let mut room = Room::default();
    copy_entries(&first, &own, 0, &mut room).map_err(failed)?;
    drop(first);
    raw_descriptors::put(own.as_raw_fd(), DESCRIPTOR, true).map_err(failed)
}

/// Opens the template's directory, and a new one beside it.
fn open_both() -> nix::Result<(OwnedFd, OwnedFd)> {
    let first = openat(
        AT_FDCWD,
        TEMP_PATH,
        LIST & !OFlag::O_NOFOLLOW,
        Mode::empty(),
    )?;
    let path = beside(Pid::this());
    mkdirat(&first, path.as_c_str(), OWNER_ONLY)?;
    let own = openat(&first, path.as_c_str(), POINT, Mode::empty())?;
    Ok((first, own))
}

/// The path of a fork's directory from the template's.
fn beside(fork: Pid) -> CString {
    CString::new(format!("../{}", name(fork))).unwrap_or_default()
}

/// The name of a fork's directory.
fn name(fork: Pid) -> String {
    format!("run-{fork}")
}

/// What may still be copied.
struct Room {
    bytes: u64,
    entries: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            bytes: COPY_BYTES_MAX,
            entries: COPY_ENTRIES_MAX,
        }
    }
}

/// Whether what a template has left in its directory can be copied for each of its forks. `user`: the
/// owner, if the host has more rights.
///
/// # Errors
/// What the system reports; `TimedOut`.
pub fn can_be_copied(parent: &Place, user: Option<RunAs>) -> io::Result<bool> {
    let parent = parent.clone();
    let measure = move || {
        let first = openat(parent.descriptor(), FIRST, LIST, Mode::empty())?;
        let mut room = Room::default();
        match measure(&first, 0, &mut room) {
            Ok(()) => Ok(true),
            Err(Errno::EFBIG) => Ok(false),
            Err(errno) => Err(io::Error::from(errno)),
        }
    };
    match crate::other_user(user) {
        None => measure(),
        other => with_files_of(other, PATIENCE, measure)?,
    }
}

/// Subtracts the entries of a directory from the room for them.
fn measure(directory: &OwnedFd, depth: usize, room: &mut Room) -> nix::Result<()> {
    for (name, kind) in entries(directory)? {
        room.entries = room.entries.checked_sub(1).ok_or(Errno::EFBIG)?;
        match kind {
            Some(Type::Directory) if depth < COPY_DEPTH_MAX => {
                let below = openat(directory, name.as_os_str(), LIST, Mode::empty())?;
                measure(&below, depth + 1, room)?;
            }
            Some(Type::Directory) => return Err(Errno::EFBIG),
            _ => {
                let stat = fstatat(directory, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW)?;
                let bytes = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
                room.bytes = room.bytes.checked_sub(bytes).ok_or(Errno::EFBIG)?;
            }
        }
    }
    Ok(())
}

/// Copies the entries of a directory. Others than files and directories are left out:
/// the filter lets boot make none.
fn copy_entries(from: &OwnedFd, to: &OwnedFd, depth: usize, room: &mut Room) -> nix::Result<()> {
    for (name, kind) in entries(from)? {
        room.entries = room.entries.checked_sub(1).ok_or(Errno::EFBIG)?;
        match kind {
            Some(Type::Directory) if depth < COPY_DEPTH_MAX => {
                let below = openat(from, name.as_os_str(), LIST, Mode::empty())?;
                let mode = Mode::from_bits_truncate(fstat(&below)?.st_mode);
                mkdirat(to, name.as_os_str(), mode | OWNER_ONLY)?;
                let made = openat(to, name.as_os_str(), POINT, Mode::empty())?;
                copy_entries(&below, &made, depth + 1, room)?;
            }
            Some(Type::Directory) => return Err(Errno::EFBIG),
            Some(Type::File) => copy_file(from, to, &name, room)?,
            Some(_) | None => {}
        }
    }
    Ok(())
}

fn entries(directory: &OwnedFd) -> nix::Result<Vec<(OsString, Option<Type>)>> {
    let mut dir = Dir::openat(directory, ".", LIST, Mode::empty())?;
    let mut found = Vec::new();
    for entry in dir.iter() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            found.push((OsString::from_vec(name.to_vec()), entry.file_type()));
        }
        if found.len() > COPY_ENTRIES_MAX {
            return Err(Errno::EFBIG);
        }
    }
    Ok(found)
}

fn copy_file(from: &OwnedFd, to: &OwnedFd, name: &OsStr, room: &mut Room) -> nix::Result<()> {
    let reading = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let source = openat(from, name, reading, Mode::empty())?;
    let mode = Mode::from_bits_truncate(fstat(&source)?.st_mode);
    let writing = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let target = openat(to, name, writing, mode)?;
    let mut source = std::fs::File::from(source).take(room.bytes + 1);
    let mut target = std::fs::File::from(target);
    let copied = io::copy(&mut source, &mut target)
        .map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))?;
    room.bytes = room.bytes.checked_sub(copied).ok_or(Errno::EFBIG)?;
    Ok(())
}

/// Removes the directory of a fork that has ended. `user`: the owner, if the host has more rights;
/// everything in it is that user's.
pub fn remove_fork_directory(parent: &Place, fork: i32, user: Option<RunAs>) {
    let name = name(Pid::from_raw(fork));
    let parent = parent.clone();
    let remove = move || {
        if let Ok(own) = openat(parent.descriptor(), name.as_str(), LIST, Mode::empty()) {
            let _ = system_calls::open_up(own.as_fd());
            remove_entries(&own);
            let _ = unlinkat(parent.descriptor(), name.as_str(), UnlinkatFlags::RemoveDir);
        }
    };
    match crate::other_user(user) {
        None => remove(),
        other => drop(with_files_of(other, PATIENCE, remove)),
    }
}
