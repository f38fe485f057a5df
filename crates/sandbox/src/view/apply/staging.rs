//! The staging directory: new contents before they are put in place, and what was there before.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat, readlinkat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, linkat, mkfifoat, symlinkat, unlinkat};

use super::below::{DIRECTORY, is_directory, look, names};
use super::error::{ApplyError, failed, number};
use super::metadata::{Metadata, Over, kind};
use super::plan::Part;
use super::shared::is_shared;
use super::survey::FILE;
use super::{Context, calls, contents};
use crate::Inode;
use crate::place::point_below;
use crate::system_calls;
use crate::view::opened::Opened;
use crate::view::remove::remove_entries;

const NEW_FILE: OFlag = OFlag::O_WRONLY
    .union(OFlag::O_CREAT)
    .union(OFlag::O_EXCL)
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// A directory of the same file system as what it is for. Only its owner may enter it.
pub(super) struct Staging {
    /// The index of the directory that it is in.
    pub directory: usize,
    /// Absolute, for messages.
    pub path: PathBuf,
    name: OsString,
    file: OwnedFd,
}

impl Staging {
    /// Makes one in a directory, whose index and path these are.
    pub(super) fn make(parent: BorrowedFd<'_>, directory: usize, path: &Path) -> nix::Result<Self> {
        let mut random = [0; 8];
        system_calls::random(&mut random)?;
        let name = OsString::from(format!(".altair-apply-{:016x}", u64::from_ne_bytes(random)));
        mkdirat(parent, name.as_os_str(), Mode::S_IRWXU)?;
        match enter(parent, &name) {
            Ok(file) => Ok(Self {
                directory,
                path: path.join(&name),
                name,
                file,
            }),
            Err(errno) => {
                let _ = unlinkat(parent, name.as_os_str(), UnlinkatFlags::RemoveDir);
                Err(errno)
            }
        }
    }

    /// Removes it with everything in it, or reports that it is still there.
    pub(super) fn remove(&self, parent: BorrowedFd<'_>) -> nix::Result<()> {
        remove_entries(&self.file);
        unlinkat(parent, self.name.as_os_str(), UnlinkatFlags::RemoveDir)
    }
}

impl AsFd for Staging {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Opens a directory that was just made, with an access control list of its own at most.
fn enter(parent: BorrowedFd<'_>, name: &OsStr) -> nix::Result<OwnedFd> {
    // The host may have any umask.
    let file = Opened::open(parent, name, DIRECTORY)?
        .keep()
        .map_err(|error| number(&error))?;
    // It would be passed on to everything in it.
    let inherited = c"system.posix_acl_default";
    match calls::remove_attribute(file.as_fd(), inherited) {
        Ok(()) | Err(Errno::ENODATA | Errno::EOPNOTSUPP) => Ok(file),
        Err(errno) => Err(errno),
    }
}

/// The name of what an operation puts in place, and of what it saves.
pub(super) fn new_name(operation: usize) -> OsString {
    format!("new{operation}").into()
}

pub(super) fn old_name(operation: usize) -> OsString {
    format!("old{operation}").into()
}

/// Copies files of the layer.
pub(super) struct Copier<'a> {
    context: &'a Context<'a>,
    /// Where the files with several names are, in their part's staging directory.
    links: HashMap<(usize, Inode), PathBuf>,
}

/// A file of the layer that is to be copied.
pub(super) struct Source<'a> {
    pub part: (usize, &'a Part),
    pub at: (BorrowedFd<'a>, &'a OsStr),
    /// Absolute, for messages.
    pub path: &'a Path,
    /// What it replaces.
    pub below: Option<&'a Metadata>,
    /// Whether the directory that it comes to be in passes its group on to directories.
    pub passes_group_on: bool,
}

impl Source<'_> {
    /// What a copy shall have besides its content.
    pub(super) fn wanted(&self, file: BorrowedFd<'_>, stat: &FileStat) -> nix::Result<Metadata> {
        let over = Over {
            below: self.below,
            has_attributes: self.part.1.has_attributes,
            passes_group_on: self.passes_group_on,
        };
        Ok(Metadata::as_told(file, stat)?.wanted(kind(stat), over))
    }
}

/// Where a copy goes.
pub(super) struct Target<'a> {
    pub staging: &'a Staging,
    pub at: (BorrowedFd<'a>, &'a OsStr),
    /// Relative to the staging directory.
    pub path: &'a Path,
}

impl<'a> Copier<'a> {
    pub(super) fn new(context: &'a Context<'a>) -> Self {
        Self {
            context,
            links: HashMap::new(),
        }
    }

    /// Copies a file, or a directory with everything in it. Returns what it shall have besides its
    /// content, once it is in place: a directory can only be renamed if its owner may write to it.
    pub(super) fn copy(
        &mut self,
        source: &Source<'_>,
        target: &Target<'_>,
    ) -> Result<Metadata, ApplyError> {
        self.context.go_on()?;
        let cannot_copy = |errno| failed("cannot copy", source.path)(errno);
        let stat = look(source.at.0, source.at.1).map_err(cannot_copy)?;
        let key = (source.part.0, Inode::of(&stat));
        if is_shared(&stat)
            && let Some(first) = self.links.get(&key)
        {
            link(target, first).map_err(cannot_copy)?;
            return metadata_of(source, &stat).map_err(cannot_copy);
        }
        let wanted = match is_directory(&stat) {
            true => return self.copy_directory(source, target, &stat),
            false => self.copy_single(source, target, &stat),
        };
        let wanted = wanted.map_err(|error| cannot_copy(number(&error)))?;
        wanted.set(target.at.0, target.at.1).map_err(cannot_copy)?;
        // Not before it has all that it shall have.
        if is_shared(&stat) {
            self.links.insert(key, target.path.to_owned());
        }
        Ok(wanted)
    }

    fn copy_single(
        &self,
        source: &Source<'_>,
        target: &Target<'_>,
        stat: &FileStat,
    ) -> io::Result<Metadata> {
        let (directory, name) = target.at;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        match kind(stat) {
            libc::S_IFREG => {
                let from = Opened::open(source.at.0, source.at.1, FILE)?;
                let to = openat(directory, name, NEW_FILE, mode)?;
                contents::copy(from.as_fd(), to.as_fd(), self.context.progress)?;
            }
            libc::S_IFLNK => {
                let leads_to = readlinkat(source.at.0, source.at.1)?;
                symlinkat(leads_to.as_os_str(), directory, name)?;
            }
            libc::S_IFIFO => mkfifoat(directory, name, mode)?,
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(metadata_of(source, stat)?)
    }

    fn copy_directory(
        &mut self,
        source: &Source<'_>,
        target: &Target<'_>,
        stat: &FileStat,
    ) -> Result<Metadata, ApplyError> {
        let cannot_copy = |errno| failed("cannot copy", source.path)(errno);
        let from = Opened::open(source.at.0, source.at.1, DIRECTORY).map_err(cannot_copy)?;
        let wanted = source.wanted(from.as_fd(), stat).map_err(cannot_copy)?;
        let (parent, name) = target.at;
        mkdirat(parent, name, Mode::S_IRWXU).map_err(cannot_copy)?;
        let to = enter(parent, name).map_err(cannot_copy)?;
        for name in names(from.as_fd()).map_err(cannot_copy)? {
            let path = source.path.join(&name);
            let stat = look(from.as_fd(), &name).map_err(failed("cannot look at", &path))?;
            // Whiteouts have nothing to hide here.
            if matches!(kind(&stat), libc::S_IFSOCK | libc::S_IFCHR | libc::S_IFBLK) {
                continue;
            }
            let source = Source {
                part: source.part,
                at: (from.as_fd(), &name),
                path: &path,
                below: None,
                passes_group_on: wanted.passes_group_on(),
            };
            let path = target.path.join(&name);
            let target = Target {
                staging: target.staging,
                at: (to.as_fd(), &name),
                path: &path,
            };
            let wanted = self.copy(&source, &target)?;
            if is_directory(&stat) {
                let cannot_copy = failed("cannot copy", source.path);
                wanted.set(to.as_fd(), &name).map_err(cannot_copy)?;
            }
        }
        wanted
            .open_to_owner()
            .set(parent, name)
            .map_err(cannot_copy)?;
        Ok(wanted)
    }
}

/// Gives a copy another name.
fn link(target: &Target<'_>, first: &Path) -> nix::Result<()> {
    let parent = first.parent().unwrap_or(Path::new(""));
    let name = first.file_name().ok_or(Errno::EINVAL)?;
    let directory = point_below(target.staging.as_fd(), parent)?;
    let (to, new) = target.at;
    linkat(&directory, name, to, new, AtFlags::empty())
}

fn metadata_of(source: &Source<'_>, stat: &FileStat) -> nix::Result<Metadata> {
    let flags = match kind(stat) {
        libc::S_IFREG => FILE,
        _ => OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC,
    };
    let file = Opened::open(source.at.0, source.at.1, flags)?;
    source.wanted(file.as_fd(), stat)
}
