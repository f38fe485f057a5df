//! Why what the user allows is not known.

use std::io;
use std::path::PathBuf;

use crate::error::reason;

/// An error in a file of what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum AllowedError {
    /// Somebody else could have written it.
    #[error("What {} allows does not count: {} {why}", file.display(), place.display())]
    Untrusted {
        /// The file.
        file: PathBuf,
        /// The file, or the directory on the way to it, that speaks against it.
        place: PathBuf,
        /// What speaks against it.
        why: Untrusted,
    },
    /// It cannot be read or written.
    #[error("{} cannot be used: {}. Make it a readable file, or remove it.", file.display(), reason(source))]
    Unusable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It does not say what it has to.
    #[error("{}{}: {message}. Correct it, or remove it and use `altair allow`.", file.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// The line, from 1, where it is known.
        line: Option<usize>,
        /// What is wrong.
        message: String,
    },
}

/// Why a file or directory is not the user's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Untrusted {
    /// A group or all users may write to it.
    #[error("can be written by others (mode {mode:03o}). Run `chmod go-w` on it.")]
    Writable {
        /// Its permission bits.
        mode: u32,
    },
    /// It belongs to somebody else.
    #[error("belongs to user {owner}. It has to belong to {}.", users(*user))]
    Foreign {
        /// Its owner's id.
        owner: u32,
        /// Whose it may be besides root.
        user: u32,
    },
    /// The file itself is a link.
    #[error("is a link. Put a regular file there.")]
    Link,
    /// The file is a directory, a device, a pipe or a socket.
    #[error("is not a regular file. Put one there.")]
    Kind,
}

fn users(user: u32) -> String {
    match user {
        0 => "root".to_owned(),
        user => format!("user {user}"),
    }
}
