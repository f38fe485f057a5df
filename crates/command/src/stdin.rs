//! The descriptor that a command gets for its standard input.
//!
//! A descriptor gives more than the bytes that can be read from it. By that of a directory or a file its
//! owner can change mode, times and attributes, and reach what lies below; one that is open for writing
//! can be written; a socket can send elsewhere; a device takes requests. So a command that is confined
//! gets a pipe with the bytes instead, unless it was given a pipe.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};

use altair_sandbox::{input_from_file, input_from_stream};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::{SFlag, fstat, makedev};
use nix::sys::statfs::{FsType, fstatfs};

use crate::command::Stdin;
use crate::{CommandError, Driver};

/// The file system of pipes without a name (linux/magic.h, `PIPEFS_MAGIC`).
const PIPES: i64 = 0x5049_5045;

/// What a descriptor is, as far as it matters.
enum Kind {
    /// `/dev/null`.
    Nothing,
    /// A pipe without a name.
    Pipe,
    /// A file, which has a position.
    File,
    /// A terminal, on which also others read and write.
    Terminal,
    /// A socket, a device, a pipe with a name.
    Stream,
}

/// Looks at what is to be a command's standard input.
///
/// # Errors
/// If no program can read from it, in a sentence.
pub(crate) fn checked(stdin: Stdin) -> Result<Stdin, CommandError> {
    let Stdin::Descriptor(descriptor) = stdin else {
        return Ok(stdin);
    };
    Ok(match kind(&descriptor)? {
        Kind::Nothing => Stdin::Empty,
        Kind::Pipe | Kind::File | Kind::Terminal | Kind::Stream => Stdin::Descriptor(descriptor),
    })
}

/// The descriptor that a driver's command gets in place of this one.
///
/// # Errors
/// As [`checked`], and if there can be no pipe or no thread.
pub(crate) fn given(descriptor: OwnedFd, driver: Driver) -> Result<OwnedFd, CommandError> {
    let is_confined = driver != Driver::Host;
    let pipe = match kind(&descriptor)? {
        Kind::File if is_confined => input_from_file(File::from(descriptor)),
        Kind::Nothing | Kind::Stream if is_confined => input_from_stream(descriptor),
        // What is typed there later may be meant for another.
        Kind::Terminal => input_from_stream(descriptor),
        Kind::Nothing | Kind::Pipe | Kind::File | Kind::Stream => return Ok(descriptor),
    };
    pipe.map_err(failed)
}

/// The error where no pipe can be made.
pub(crate) fn failed(error: io::Error) -> CommandError {
    CommandError::Start(format!("No pipe could be made for standard input: {error}"))
}

/// Whether a program can read from a descriptor.
///
/// # Errors
/// [`CommandError::Invalid`]: why not, in a sentence.
pub fn check_input(descriptor: impl AsFd) -> Result<(), CommandError> {
    kind(&descriptor.as_fd()).map(drop)
}

fn kind(descriptor: &(impl AsFd + IsTerminal)) -> Result<Kind, CommandError> {
    let invalid = |what: &str| Err(CommandError::Invalid(what.to_owned()));
    let unknown = |errno| CommandError::Start(format!("Standard input is unusable: {errno}"));
    let flags = fcntl(descriptor, FcntlArg::F_GETFL).map_err(unknown)?;
    if OFlag::from_bits_retain(flags).contains(OFlag::O_PATH) {
        return invalid(
            "Standard input names a file and is not open (O_PATH): open the file to read it.",
        );
    }
    let stat = fstat(descriptor).map_err(unknown)?;
    Ok(
        match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFDIR => {
                return invalid("Standard input is a directory: give a file, a pipe or /dev/null.");
            }
            SFlag::S_IFREG => Kind::File,
            SFlag::S_IFIFO => {
                let system = fstatfs(descriptor).map_err(unknown)?.filesystem_type();
                match system == FsType(PIPES as _) {
                    true => Kind::Pipe,
                    false => Kind::Stream,
                }
            }
            // Linux's number for it (null(4)).
            SFlag::S_IFCHR if stat.st_rdev == makedev(1, 3) => Kind::Nothing,
            _ if descriptor.is_terminal() => Kind::Terminal,
            _ => Kind::Stream,
        },
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_no_program_reads_from_is_refused_with_every_driver() {
        let directory = tempfile::tempdir().unwrap();
        let path = OFlag::O_PATH | OFlag::O_CLOEXEC;
        for (flags, words) in [(OFlag::O_RDONLY, "is a directory"), (path, "O_PATH")] {
            for driver in [Driver::Host, Driver::Native, Driver::Docker] {
                let opened = || {
                    let none = nix::sys::stat::Mode::empty();
                    nix::fcntl::open(directory.path(), flags, none).unwrap()
                };
                let error = given(opened(), driver).unwrap_err();
                assert!(error.to_string().contains(words), "{error}");
                let error = checked(Stdin::Descriptor(opened())).unwrap_err();
                assert!(matches!(error, CommandError::Invalid(_)), "{error}");
            }
        }
    }

    #[test]
    fn only_an_unconfined_command_gets_a_file_itself() {
        let inode = |descriptor: &OwnedFd| fstat(descriptor).unwrap().st_ino;
        for driver in [Driver::Host, Driver::Native, Driver::Bubblewrap] {
            let file = OwnedFd::from(tempfile::tempfile().unwrap());
            let own = inode(&file);
            let is_itself = inode(&given(file, driver).unwrap()) == own;
            assert_eq!(is_itself, driver == Driver::Host);
        }
    }
}
