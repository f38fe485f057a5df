//! The audit log as a file that other processes write, replace and truncate.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::lines::Lines;
use crate::failure::{Failure, reason};

/// Opens the log; `None` if there is none yet.
///
/// # Errors
///
/// If it is no regular file or cannot be read. The engine appends only to regular files, too: a
/// link, a FIFO or a directory in its place was not made by it.
pub fn open(path: &Path) -> Result<Option<File>, Failure> {
    // Nonblocking: opening a FIFO would wait for a writer.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path)
    {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // open(2): O_NOFOLLOW fails with ELOOP for a link.
        Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32) => {
            return Err(irregular(path));
        }
        Err(error) => return Err(unreadable(path, &error)),
    };
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(Some(file)),
        Ok(_) => Err(irregular(path)),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// The failure to read the log.
pub fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!(
        "cannot read the audit log {}: {}",
        path.display(),
        reason(error)
    ))
}

fn irregular(path: &Path) -> Failure {
    let shown = path.display();
    Failure::new(format!(
        "the audit log {shown} is not a regular file; move it out of the way"
    ))
}

/// A log that is read while it grows.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    offset: u64,
    lines: Lines,
}

impl Open {
    fn at(file: File, offset: u64) -> Self {
        Self {
            file,
            offset,
            lines: Lines::default(),
        }
    }

    /// Reads what was added since the last call.
    fn read(&mut self, mut line: impl FnMut(&[u8])) -> io::Result<()> {
        let mut buffer = [0; 64 * 1024];
        loop {
            match self.file.read_at(&mut buffer, self.offset) {
                Ok(0) => return Ok(()),
                Ok(read) => {
                    self.offset = self.offset.saturating_add(u64::try_from(read).unwrap_or(0));
                    self.lines.push(&buffer[..read], &mut line);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Follower {
    /// Follows the log at `path` from `position`: the open file and an offset in it. `None`: from
    /// the start of a file that may appear later.
    pub fn new(path: PathBuf, position: Option<(File, u64)>) -> Self {
        Self {
            path,
            open: position.map(|(file, offset)| Open::at(file, offset)),
        }
    }

    /// Calls `line` with every line that was completed since the last call.
    ///
    /// If the log was truncated or replaced, reads the rest of the old one and then the new one
    /// from its start.
    ///
    /// # Errors
    ///
    /// If the log cannot be read.
    pub fn poll(&mut self, mut line: impl FnMut(&[u8])) -> Result<(), Failure> {
        let broken = |error: io::Error| unreadable(&self.path, &error);
        if let Some(open) = &mut self.open {
            let now = open.file.metadata().map_err(broken)?;
            if now.len() < open.offset {
                *open = Open::at(open.file.try_clone().map_err(broken)?, 0);
            }
            open.read(&mut line).map_err(broken)?;
            if is_at(&self.path, &now) {
                return Ok(());
            }
        }
        // While no new file takes its place, a removed log may still grow.
        if let Some(file) = open(&self.path)? {
            if let Some(old) = &mut self.open {
                // A line may have been added between the last read and the replacement.
                old.read(&mut line).map_err(broken)?;
            }
            let mut fresh = Open::at(file, 0);
            fresh.read(&mut line).map_err(broken)?;
            self.open = Some(fresh);
        }
        Ok(())
    }
}

/// Whether the file at `path` is still the one that `metadata` belongs to.
fn is_at(path: &Path, metadata: &Metadata) -> bool {
    path.symlink_metadata()
        .is_ok_and(|there| there.dev() == metadata.dev() && there.ino() == metadata.ino())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::io::Write;

    use super::*;

    fn polled(follower: &mut Follower) -> Vec<String> {
        let mut found = Vec::new();
        follower
            .poll(|line| found.push(String::from_utf8_lossy(line).into_owned()))
            .unwrap();
        found
    }

    fn append(path: &Path, text: &str) {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn a_line_is_given_when_it_is_whole_and_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut follower = Follower::new(path.clone(), None);
        assert!(polled(&mut follower).is_empty());
        append(&path, "one\ntw");
        assert_eq!(polled(&mut follower), ["one"]);
        append(&path, "o\n");
        assert_eq!(polled(&mut follower), ["two"]);
        assert!(polled(&mut follower).is_empty());
    }

    #[test]
    fn a_truncated_log_is_read_from_its_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        append(&path, "one\ntwo\ntorn");
        let mut follower = Follower::new(path.clone(), None);
        assert_eq!(polled(&mut follower), ["one", "two"]);
        fs::write(&path, "three\n").unwrap();
        assert_eq!(polled(&mut follower), ["three"]);
    }

    #[test]
    fn a_rotated_log_is_read_to_its_end_and_then_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        append(&path, "one\n");
        let mut follower = Follower::new(path.clone(), None);
        assert_eq!(polled(&mut follower), ["one"]);

        let rotated = directory.path().join("log.1");
        fs::rename(&path, &rotated).unwrap();
        append(&rotated, "late\n");
        assert_eq!(polled(&mut follower), ["late"]);
        append(&rotated, "last\n");
        append(&path, "new\n");
        assert_eq!(polled(&mut follower), ["last", "new"]);
        append(&path, "newer\n");
        assert_eq!(polled(&mut follower), ["newer"]);
    }

    #[test]
    fn what_is_no_regular_file_is_refused_without_waiting() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        for path in [fifo.as_path(), link.as_path(), directory.path()] {
            let failure = open(path).unwrap_err();
            assert!(
                format!("{failure:?}").contains("not a regular file"),
                "{failure:?}"
            );
        }
    }
}
