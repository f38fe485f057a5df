//! The lines that a user has typed, in a file of the user's. Several sessions add to it at once.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;

use altair_engine::redaction::mask_code;

use crate::failure::reason;

/// How much of a file is read, and kept when it has grown too long.
const KEPT_BYTES: u64 = 1 << 20;
/// How long a file may grow.
const MAX_BYTES: u64 = 2 * KEPT_BYTES;

/// A file with an entry a line.
pub struct HistoryFile {
    /// `None` if nobody knows where the user's files are.
    path: Option<PathBuf>,
}

impl HistoryFile {
    /// The user's: below `XDG_STATE_HOME`, which is `~/.local/state` by default (XDG Base Directory Specification).
    pub fn of_user() -> Self {
        let absolute = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let state = absolute("XDG_STATE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        Self {
            path: state.map(|state| state.join("altair/shell_history")),
        }
    }

    #[cfg(test)]
    pub fn at(path: PathBuf) -> Self {
        Self { path: Some(path) }
    }

    /// The entries, the newest at the end.
    ///
    /// # Errors
    ///
    /// Why none are kept, as a clause.
    pub fn load(&self) -> Result<Vec<String>, String> {
        self.with(|file| {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(KEPT_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(KEPT_BYTES).read_to_end(&mut bytes)?;
            // What was cut off at its beginning is no entry.
            if length > KEPT_BYTES {
                let begin = bytes
                    .iter()
                    .position(|b| *b == b'\n')
                    .map_or(0, |at| at + 1);
                bytes.drain(..begin);
            }
            if length > MAX_BYTES {
                // In place, so that other sessions go on with the same file.
                file.set_len(0)?;
                file.write_all(&bytes)?;
            }
            let text = String::from_utf8_lossy(&bytes);
            Ok(text.lines().map(unescaped).collect())
        })
    }

    /// Adds an entry, without what looks like a secret.
    ///
    /// # Errors
    ///
    /// Why none are kept, as a clause.
    pub fn append(&self, entry: &str) -> Result<(), String> {
        let line = escaped(&mask_code(entry)) + "\n";
        self.with(|file| file.write_all(line.as_bytes()))
    }

    /// Does something with the file while no other session does.
    fn with<T>(&self, doing: impl FnOnce(&mut File) -> io::Result<T>) -> Result<T, String> {
        let Some(path) = &self.path else {
            return Err("neither XDG_STATE_HOME nor HOME is set".into());
        };
        let failed = |error: io::Error| format!("{}: {}", path.display(), reason(&error));
        let mut file = self.open(path).map_err(failed)?;
        file.lock().map_err(failed)?;
        doing(&mut file).map_err(failed)
    }

    fn open(&self, path: &std::path::Path) -> io::Result<File> {
        if let Some(directory) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory)?;
        }
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        let metadata = file.metadata()?;
        // A named pipe, for instance, would be waited for.
        if !metadata.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(file)
    }
}

/// An entry in one line.
fn escaped(entry: &str) -> String {
    entry.replace('\\', r"\\").replace('\n', r"\n")
}

/// What [`escaped`] was given.
fn unescaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    out
}
