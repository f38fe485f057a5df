//! Why a line could not be written.

use std::path::PathBuf;

/// Why a line is missing in the audit log. Each message names the path and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The directory, or the project root above it, cannot be opened or created.
    #[error(
        "The audit log's directory {} cannot be used: {reason}. An unsafe run needs its log: \
         make the directory writable for this user, or run without unsafe.",
        path.display()
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The operating system's reason.
        reason: String,
    },
    /// Something else exists at the path of the directory or of the file. It is left unchanged.
    #[error(
        "{} is {found}, and the audit log needs {wanted} there: move it away, and the log is created again.",
        path.display()
    )]
    InTheWay {
        /// The place.
        path: PathBuf,
        /// What is there: `a symbolic link`.
        found: &'static str,
        /// What the log needs there: `a regular file`.
        wanted: &'static str,
    },
    /// The file cannot be opened, created or locked.
    #[error(
        "The audit log {} cannot be opened: {reason}. An unsafe run needs its log: make the \
         file writable for this user, or run without unsafe.",
        path.display()
    )]
    Open {
        /// The log.
        path: PathBuf,
        /// The operating system's reason.
        reason: String,
    },
    /// Another process held the lock for the whole time limit.
    #[error(
        "The audit log {} has been locked by another process for {waited_ms} ms: end that process, or \
         try again.",
        path.display()
    )]
    Locked {
        /// The log.
        path: PathBuf,
        /// How long the lock was waited for, in milliseconds.
        waited_ms: u64,
    },
    /// The line could not be written completely; the log is unchanged.
    #[error(
        "The audit log {} could not be written: {reason}. Make room on its disk, or lift the limit on \
         the size of files.",
        path.display()
    )]
    Write {
        /// The log.
        path: PathBuf,
        /// The operating system's reason.
        reason: String,
    },
    /// A line could not be encoded as JSON.
    #[error("A line of the audit log could not be encoded: {0}.")]
    Encode(#[from] serde_json::Error),
}
