//! Why a layer was not applied.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

/// Why the changes in a layer were not applied. Paths are absolute.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// Someone else has changed a path that the process changed too. Nothing was applied.
    #[error(
        "{} has changed since the command began, so nothing was applied: run the command again on what is there now",
        Shown(path)
    )]
    Changed {
        /// What has changed.
        path: PathBuf,
    },
    /// The process left a device, which is not applied. Nothing was.
    #[error(
        "{} is a device in the layer, so nothing was applied: only files, directories, links and pipes are",
        Shown(path)
    )]
    Device {
        /// Where it would be.
        path: PathBuf,
    },
    /// The layer is larger or deeper than what is applied. Nothing was.
    #[error(
        "the layer has {limit} at {}, so nothing was applied: let the command change less",
        Shown(path)
    )]
    TooMuch {
        /// Where the limit was reached.
        path: PathBuf,
        /// What it has: `more than … entries`.
        limit: String,
    },
    /// The layer could not be looked at in time. Nothing was applied.
    #[error(
        "what the command changed below {} could not be looked at in time, so nothing was applied: let the command change less",
        Shown(path)
    )]
    TooLong {
        /// The directory under the layer.
        path: PathBuf,
    },
    /// An error on the way. Everything is as it was.
    #[error(
        "the changes could not be applied, and everything is as it was before: {attempt} {}: {source}",
        Shown(path)
    )]
    NotApplied {
        /// What was attempted: `cannot write`.
        attempt: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// An error on the way, and another one when what was there should be restored.
    #[error(
        "the changes could not be applied ({cause}), and not everything could be restored: cannot restore {}: {source}; what is missing is in {}: move it back from there",
        Shown(path),
        Listed(saved)
    )]
    NotRestored {
        /// Why they could not be applied.
        cause: Box<Self>,
        /// The first path that could not be restored.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
        /// The directories that hold what was there.
        saved: Vec<PathBuf>,
    },
    /// Everything is applied, but what was there before could not be removed.
    #[error(
        "the changes were applied, but what was there before is still in {}: remove it",
        Listed(saved)
    )]
    NotTidied {
        /// The directories that hold it.
        saved: Vec<PathBuf>,
    },
    /// The file system does not answer. What has been written is undone as soon as it does.
    #[error(
        "the changes could not be applied: the file system of {} has not answered in time; what had been written is undone once it does",
        Shown(path)
    )]
    TimedOut {
        /// The directory under the layer.
        path: PathBuf,
    },
    /// The host cannot act as the process's user. Nothing was applied.
    #[error(
        "nothing was applied: cannot act as the owner of {}: {source}",
        Shown(path)
    )]
    User {
        /// The directory under the layer.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl ApplyError {
    pub(super) fn changed(path: &Path) -> Self {
        Self::Changed { path: path.into() }
    }
}

/// Names the attempt and the path of a failed call.
pub(super) fn failed(attempt: &'static str, path: &Path) -> impl FnOnce(Errno) -> ApplyError {
    move |errno| ApplyError::NotApplied {
        attempt,
        path: path.into(),
        source: errno.into(),
    }
}

/// The error number of a failed call of the standard library.
pub(super) fn number(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

/// A path in a message. Names in a layer are hostile: they must not begin a line of their own, nor
/// reach a terminal.
struct Shown<'a>(&'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string_lossy();
        f.write_str(&text.replace(|c: char| c.is_control(), "?"))
    }
}

struct Listed<'a>(&'a [PathBuf]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, path) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{}", Shown(path))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_message_cannot_begin_a_line() {
        let error = ApplyError::changed(Path::new("/app/a\nall is well\x1b[2J"));
        let text = error.to_string();
        assert!(
            text.starts_with("/app/a?all is well?[2J has changed"),
            "{text}"
        );
    }
}
