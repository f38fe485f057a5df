//! The marks of overlayfs in a layer (Documentation/filesystems/overlayfs.rst).
//!
//! What was copied from below has an `origin`: with `trusted.*` attributes the handle of the lower
//! file, with `user.*` ones only an empty mark. A file that was copied keeps it under another
//! name. Files with several names below have no mark, and with `user.*` attributes neither do
//! links and pipes, which cannot have any.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use nix::errno::Errno;
use nix::sys::stat::FileStat;

use super::below::{look, walk};
use super::calls;
use super::error::{ApplyError, failed};
use super::plan::Plan;
use super::work::way;
use super::{Context, Layers};
use crate::system_calls;

/// The version of a mark's format, and the byte that stands for it (`struct ovl_fb` in
/// fs/overlayfs/overlayfs.h).
const FORMAT: [u8; 2] = [0, 0xfb];
/// Where in it the handle's kind and the handle begin.
const KIND_AT: usize = 4;
const HANDLE_AT: usize = 21;

/// The names of the marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    opaque: &'static CStr,
    origin: &'static CStr,
}

/// Where something in a layer comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It has no mark.
    New,
    /// It was copied from below.
    Copied(Option<Handle>),
}

/// The kind and the bytes of a file handle.
pub(super) type Handle = (u8, Vec<u8>);

impl Marks {
    pub(super) fn of(layers: &Layers) -> Self {
        let is_of_user = layers.opaque.to_bytes().starts_with(b"user.");
        Self {
            opaque: layers.opaque,
            origin: match is_of_user {
                true => c"user.overlay.origin",
                false => c"trusted.overlay.origin",
            },
        }
    }

    /// Whether the files of a layer can have marks.
    pub(super) fn are_made(&self, upper: BorrowedFd<'_>) -> bool {
        calls::attribute(upper, self.origin) != Err(Errno::EOPNOTSUPP)
    }

    /// Whether a directory hides the entries of the lower one.
    pub(super) fn is_opaque(&self, directory: BorrowedFd<'_>) -> bool {
        system_calls::attribute_is(directory, self.opaque, b"y")
    }

    /// The origin of a file or directory, which may be open with `O_PATH`.
    pub(super) fn origin(&self, file: BorrowedFd<'_>) -> nix::Result<Origin> {
        let mark = match calls::attribute(file, self.origin) {
            Err(Errno::ENODATA | Errno::EOPNOTSUPP | Errno::EPERM) => return Ok(Origin::New),
            mark => mark?,
        };
        let is_known = mark.starts_with(&FORMAT);
        Ok(Origin::Copied(
            match (mark.get(KIND_AT), mark.get(HANDLE_AT..)) {
                (Some(kind), Some(handle)) if is_known => Some((*kind, handle.to_vec())),
                _ => None,
            },
        ))
    }
}

/// A copied file without a lower one of its name: the process has renamed it, or the lower one is
/// gone.
pub(super) struct Moved {
    pub part: usize,
    /// Absolute.
    pub path: PathBuf,
    pub handle: Option<Handle>,
    pub stat: FileStat,
}

/// What a renamed file can have been.
#[derive(PartialEq, Eq, Hash)]
enum Source {
    Handle(usize, Handle),
    /// Its size and modification time, which a copy has, too.
    Look(usize, i64, (i64, i64)),
}

impl Source {
    fn look(part: usize, stat: &FileStat) -> Self {
        Self::Look(part, stat.st_size, (stat.st_mtime, stat.st_mtime_nsec))
    }
}

/// Checks that each of `moved` was something else below, which the process has renamed, linked or
/// replaced.
pub(super) fn check(
    context: &Context<'_>,
    plan: &Plan,
    moved: Vec<Moved>,
) -> Result<(), ApplyError> {
    if moved.is_empty() {
        return Ok(());
    }
    let mut sources = HashSet::new();
    for operation in &plan.operations {
        let Some(seen) = operation.action.seen() else {
            continue;
        };
        let path = plan.path_of(operation);
        let Some(directory) = plan.directories.get(operation.directory) else {
            continue;
        };
        let parent = way(plan, operation.directory).map_err(failed("cannot look at", &path))?;
        let mut add = |at: (BorrowedFd<'_>, &OsStr), stat: &FileStat| {
            sources.insert(Source::look(directory.part, stat));
            if let Ok(handle) = calls::handle(at.0, at.1) {
                sources.insert(Source::Handle(directory.part, handle));
            }
        };
        let at = (parent.as_fd(), operation.name.as_os_str());
        let stat = look(at.0, at.1).map_err(|_| ApplyError::changed(&path))?;
        add(at, &stat);
        if seen.is_directory {
            walk(context, at, &path, 0, &mut |at, stat, _| {
                add(at, stat);
                Ok(())
            })?;
        }
    }
    for each in moved {
        let source = match each.handle {
            Some(handle) => Source::Handle(each.part, handle),
            None => Source::look(each.part, &each.stat),
        };
        if !sources.contains(&source) {
            return Err(ApplyError::changed(&each.path));
        }
    }
    Ok(())
}
