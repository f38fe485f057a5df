//! Joins and normalizes paths, and tells which ones are the process's own.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Joins a path to `start`, which is empty for an absolute path. Redundant parts (`//`, `/./`) are
/// dropped; `..` stays, since its meaning depends on links, and so does a trailing slash.
pub(super) fn join(start: &[u8], path: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(start.len() + path.len() + 1);
    let parts = start.split(slash).chain(path.split(slash));
    for part in parts.filter(|part| !matches!(*part, b"" | b".")) {
        joined.push(b'/');
        joined.extend_from_slice(part);
    }
    let asks_for_directory = matches!(path.rsplit(slash).next(), Some(b"" | b"."));
    if asks_for_directory || joined.is_empty() {
        joined.push(b'/');
    }
    joined
}

fn slash(byte: &u8) -> bool {
    *byte == b'/'
}

/// A path without its trailing slash.
pub(super) fn without_slash(mut path: Vec<u8>) -> Vec<u8> {
    if path.len() > 1 && path.ends_with(b"/") {
        path.pop();
    }
    path
}

/// The paths that the process made, changed or removed, with everything below them.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// The paths as they were named, and resolved (without links and `..`).
    paths: HashSet<PathBuf>,
    /// Resolved paths of directories.
    real: HashMap<PathBuf, PathBuf>,
}

impl Own {
    /// Marks the path as the process's own.
    pub(super) fn add(&mut self, path: Vec<u8>) {
        let path = PathBuf::from(OsStr::from_bytes(&path));
        if let Some(real) = self.real_path(&path) {
            self.paths.insert(real);
        }
        self.paths.insert(path);
    }

    /// Whether the path is the process's own, by this or another name.
    pub(super) fn has(&mut self, path: &[u8]) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        let path = Path::new(OsStr::from_bytes(path));
        // Compares by name only without `..`: `own/../other` is not below `own`.
        let is_plain = !path.components().any(|part| part.as_os_str() == "..");
        (is_plain && self.has_name(path))
            || self
                .real_path(path)
                .is_some_and(|real| self.has_name(&real))
    }

    fn has_name(&self, path: &Path) -> bool {
        path.ancestors().any(|part| self.paths.contains(part))
    }

    /// Resolves a path's directory; the last part stays as it is.
    fn real_path(&mut self, path: &Path) -> Option<PathBuf> {
        let name = path.file_name()?;
        Some(self.real_directory(path.parent()?)?.join(name))
    }

    /// Resolves links and `..` of a directory, as far as it still exists.
    fn real_directory(&mut self, directory: &Path) -> Option<PathBuf> {
        if let Some(real) = self.real.get(directory) {
            return Some(real.clone());
        }
        let real = match fs::canonicalize(directory) {
            Ok(real) => real,
            Err(_) => self.real_path(directory)?,
        };
        self.real.insert(directory.to_owned(), real.clone());
        Some(real)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_without_what_means_nothing() {
        let cases = [
            ("", "/a//b/./c", "/a/b/c"),
            ("", "/", "/"),
            ("", "//", "/"),
            ("/", "a", "/a"),
            ("/a", "b", "/a/b"),
            ("/a", ".", "/a/"),
            ("/a", "b/", "/a/b/"),
            ("/a", "../b", "/a/../b"),
            ("/a", "b/..", "/a/b/.."),
        ];
        for (start, path, expected) in cases {
            let joined = join(start.as_bytes(), path.as_bytes());
            assert_eq!(
                String::from_utf8_lossy(&joined),
                expected,
                "{start} + {path}"
            );
        }
    }

    #[test]
    fn what_is_own_is_so_by_every_name() {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir_all(root.join("real/sub")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        let mut own = Own::default();
        own.add(root.join("link/made").into_os_string().into_encoded_bytes());
        let mut has = |name: &str| own.has(root.join(name).as_os_str().as_bytes());
        for name in [
            "link/made",
            "link/made/file",
            "real/made",
            "real/made/sub/file",
            "real/sub/../made/file",
            "link/sub/../made",
        ] {
            assert!(has(name), "{name}");
        }
        for name in ["real", "link", "real/made2", "real/made/../sub", "link/sub"] {
            assert!(!has(name), "{name}");
        }
    }
}
