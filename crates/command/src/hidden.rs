//! What stays unreadable below directories that may be read, unless it is named itself.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use altair_sandbox::Granted;

/// Adds what is below a directory and may not be read by everybody.
pub(crate) fn collect_secrets(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        // Of the entry itself, not of what a link leads to.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if !is_everybodys(&metadata) {
            found.push(entry.path());
        } else if metadata.is_dir() {
            collect_secrets(&entry.path(), found);
        }
    }
}

/// Whether everybody may read a file, or look into a directory.
pub(crate) fn is_everybodys(metadata: &Metadata) -> bool {
    const ALL_READ: u32 = 0o004;
    const ALL_ENTER: u32 = 0o005;
    let needed = match metadata.is_dir() {
        true => ALL_ENTER,
        false => ALL_READ,
    };
    metadata.mode() & needed == needed
}

/// Files of `/proc` that only root may read: facts about the machine's memory and its processes.
pub(crate) fn facts_for_root() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let only_roots = entries.filter(|entry| {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file && entry.metadata().is_ok_and(|of| of.mode() & 0o004 == 0)
    });
    only_roots.map(|entry| entry.path()).collect()
}

/// What of hidden paths stays hidden if others are named. A path above a hidden one shows it no more
/// than before; one below it shows itself alone, so that everything beside it is hidden instead.
pub(crate) fn but_named(hidden: Vec<PathBuf>, named: &[&Path]) -> Vec<PathBuf> {
    let mut left = Vec::new();
    for path in hidden {
        keep_hidden(path, named, &mut left);
    }
    left.sort();
    left.dedup();
    left
}

fn keep_hidden(path: PathBuf, named: &[&Path], left: &mut Vec<PathBuf>) {
    if named.iter().any(|named| *named == path) {
        return;
    }
    if !named.iter().any(|named| named.starts_with(&path)) {
        return left.push(path);
    }
    let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
    for entry in entries {
        keep_hidden(entry.path(), named, left);
    }
}

/// Whether one of the hidden paths is a directory, or below it.
pub(crate) fn has_below(directory: &Path, hidden: &[PathBuf]) -> bool {
    hidden.iter().any(|path| path.starts_with(directory))
}

/// Whether a path is one of the hidden ones, or below one.
pub(crate) fn is_hidden(path: &Path, hidden: &[PathBuf]) -> bool {
    hidden.iter().any(|hidden| path.starts_with(hidden))
}

/// What Landlock grants of a directory, since its rules only add up.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// May be read, with everything below.
    pub readable: Vec<Granted>,
    /// Hold something hidden: not even their names can be read, since a right to list a directory is
    /// one for everything below it.
    pub divided: Vec<PathBuf>,
}

impl Parts {
    /// Adds a path without what is hidden below it. Links in it lead to what has a rule of its own.
    pub(crate) fn add(&mut self, granted: Granted, hidden: &[PathBuf]) {
        let path = granted.path.as_path();
        if is_hidden(path, hidden) {
            return;
        }
        if !has_below(path, hidden) {
            return self.readable.push(granted);
        }
        self.divided.push(path.to_owned());
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        for entry in entries {
            if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
                self.add(entry.path().into(), hidden);
            }
        }
    }
}

/// An empty file of the kind that a path's name says, so that programs which read it do not stop.
pub(crate) fn nothing_for(path: &Path) -> Vec<u8> {
    let text = match path.extension().and_then(|end| end.to_str()) {
        Some("json") => "{}\n",
        Some("xml") => "<settings/>\n",
        _ => "",
    };
    text.into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_named_path_shows_itself_and_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(path("keys/deep")).unwrap();
        for name in ["keys/one", "keys/two", "keys/deep/three", "keys/deep/four"] {
            std::fs::write(path(name), "").unwrap();
        }
        let hidden = |named: &[PathBuf]| {
            let named: Vec<&Path> = named.iter().map(PathBuf::as_path).collect();
            but_named(vec![path("keys")], &named)
        };
        assert_eq!(hidden(&[]), [path("keys")]);
        assert_eq!(hidden(&[dir.path().to_owned()]), [path("keys")]);
        assert!(hidden(&[path("keys")]).is_empty());
        assert_eq!(
            hidden(&[path("keys/deep/three")]),
            [path("keys/deep/four"), path("keys/one"), path("keys/two")]
        );
    }

    #[test]
    fn a_directory_is_granted_in_parts_if_something_below_it_is_hidden() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(path("a/b")).unwrap();
        for name in ["a/b/hidden", "a/b/file", "a/other"] {
            std::fs::write(path(name), "").unwrap();
        }
        let mut parts = Parts::default();
        parts.add(dir.path().into(), &[path("a/b/hidden")]);
        let mut readable: Vec<PathBuf> = parts.readable.into_iter().map(|one| one.path).collect();
        readable.sort();
        assert_eq!(readable, [path("a/b/file"), path("a/other")]);
        assert_eq!(
            parts.divided,
            [dir.path().to_owned(), path("a"), path("a/b")]
        );
    }
}
