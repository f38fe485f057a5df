//! Files of a layer, opened although the process took its own rights to them away.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, openat};
use nix::libc;
use nix::sys::stat::{Mode, fchmod, fstat, fstatat};

use crate::system_calls;

const POINT: OFlag = OFlag::O_PATH
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);

/// An open file or directory. Its mode, if it had to be changed for that, is restored when this is
/// dropped: it is part of what the process left.
#[derive(Debug)]
pub(super) struct Opened {
    file: OwnedFd,
    before: Option<Mode>,
}

impl Opened {
    /// Opens a file or directory; a directory so that its entries can be accessed, too. `flags`
    /// must exclude that a link is followed.
    ///
    /// # Errors
    /// Those of open(2).
    pub(super) fn open(parent: BorrowedFd<'_>, name: &OsStr, flags: OFlag) -> nix::Result<Self> {
        match openat(parent, name, flags, Mode::empty()) {
            Err(Errno::EACCES) => Self::against_its_mode(parent, name, flags),
            opened => {
                let opened = Self {
                    file: opened?,
                    before: None,
                };
                if flags.contains(OFlag::O_DIRECTORY) {
                    return Ok(opened.searchable());
                }
                Ok(opened)
            }
        }
    }

    /// The descriptor alone. The mode stays as it has become.
    pub(super) fn keep(mut self) -> io::Result<OwnedFd> {
        self.before = None;
        self.file.try_clone()
    }

    fn against_its_mode(parent: BorrowedFd<'_>, name: &OsStr, flags: OFlag) -> nix::Result<Self> {
        let pointed = openat(parent, name, POINT, Mode::empty())?;
        let before = mode_of(pointed.as_fd())?;
        system_calls::open_up(pointed.as_fd()).map_err(|_| Errno::EACCES)?;
        match openat(parent, name, flags, Mode::empty()) {
            Ok(file) => Ok(Self {
                file,
                before: Some(before),
            }),
            Err(errno) => {
                let _ = system_calls::change_mode(pointed.as_fd(), before.bits());
                Err(errno)
            }
        }
    }

    /// A directory may be readable, but not searchable.
    fn searchable(mut self) -> Self {
        let found = fstatat(&self.file, ".", AtFlags::empty());
        if found == Err(Errno::EACCES)
            && let Ok(before) = mode_of(self.file.as_fd())
            && system_calls::open_up(self.file.as_fd()).is_ok()
        {
            self.before = Some(before);
        }
        self
    }
}

fn mode_of(file: BorrowedFd<'_>) -> nix::Result<Mode> {
    Ok(Mode::from_bits_truncate(
        fstat(file)?.st_mode & !libc::S_IFMT,
    ))
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            let _ = fchmod(&self.file, before);
        }
    }
}
