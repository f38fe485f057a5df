//! What is not shown of software that is installed beside the system's.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::keys::is_credential;
use super::{Home, SYSTEM};
use crate::hidden::{but_named, is_everybodys};

/// Where it is.
pub(super) const INSTALLED: &[&str] = &["/opt", "/usr/local"];

/// Entries of each of these directories that are looked at, those further up first, where settings
/// are: below are the files of programs, of which there can be any number.
const ENTRIES: usize = 32_768;

/// What is shown by more than being installed.
pub(super) struct Shown<'a> {
    /// The paths that the policy names.
    pub named: &'a [&'a Path],
    /// The working directory and its repository: their files are a project's.
    pub project: &'a [&'a Path],
    /// The command's home.
    pub home: &'a Home,
}

impl Shown<'_> {
    /// What is hidden: what is not everybody's, credentials by their names, and the files of a home.
    pub(super) fn hidden(&self) -> Vec<PathBuf> {
        let installed = |path: &&Path| is_below(path, INSTALLED);
        let project: Vec<&Path> = self.project.iter().copied().filter(installed).collect();
        let toolchains = self.home.toolchains().iter().map(|one| one.place.path());
        let named = self.named.iter().copied().chain(toolchains);
        let kept: Vec<&Path> = named.filter(installed).chain(project.clone()).collect();
        let home = match self.home {
            Home::Own { path, .. } if is_below(path, SYSTEM) => Some(path.as_path()),
            _ => None,
        };
        let mut hidden = beside(home.map(entries).unwrap_or_default(), &kept);
        // In a private root, the directory itself is the command's own.
        let with_home: Vec<&Path> = kept.iter().copied().chain(home).collect();
        for directory in INSTALLED {
            let found = Found::below(Path::new(directory));
            hidden.extend(beside(found.private, &with_home));
            let credentials = but_named(found.credentials, self.named).into_iter();
            hidden.extend(credentials.filter(|path| !starts_with_any(path, &project)));
        }
        hidden
    }
}

/// What of paths stays if everything below others is shown.
fn beside(paths: Vec<PathBuf>, kept: &[&Path]) -> Vec<PathBuf> {
    let mut left = but_named(paths, kept);
    left.retain(|path| !starts_with_any(path, kept));
    left
}

fn starts_with_any(path: &Path, places: &[&Path]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

fn is_below(path: &Path, directories: &[&str]) -> bool {
    let is_below = |of: &Path| path != of && path.starts_with(of);
    directories.iter().any(|of| is_below(Path::new(of)))
}

/// What is in a home. Links lead to what is hidden, or shown, by itself.
fn entries(home: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(home).into_iter().flatten().flatten();
    let own = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    own.map(|entry| entry.path()).collect()
}

/// What is found below a directory.
#[derive(Debug, Default)]
struct Found {
    /// May not be read by everybody.
    private: Vec<PathBuf>,
    /// Everybody may read it, but has a name of credentials.
    credentials: Vec<PathBuf>,
}

impl Found {
    fn below(directory: &Path) -> Self {
        let mut found = Self::default();
        let mut left = ENTRIES;
        let mut waiting = VecDeque::from([directory.to_owned()]);
        while let Some(directory) = waiting.pop_front() {
            let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
            for entry in entries {
                let Some(fewer) = left.checked_sub(1) else {
                    return found;
                };
                left = fewer;
                // Of the entry itself, not of what a link leads to.
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                if !is_everybodys(&metadata) {
                    found.private.push(entry.path());
                } else if metadata.is_dir() {
                    waiting.push_back(entry.path());
                } else if metadata.is_file() && is_credential(&entry.file_name().to_string_lossy())
                {
                    found.credentials.push(entry.path());
                }
            }
        }
        found
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_private_or_named_as_credentials_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(path("app/private/deep")).unwrap();
        for (name, mode) in [
            ("app/key", 0o600),
            ("app/private/deep/file", 0o644),
            ("app/.env", 0o644),
            ("app/program", 0o755),
        ] {
            std::fs::write(path(name), "").unwrap();
            std::fs::set_permissions(path(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        std::fs::set_permissions(path("app/private"), PermissionsExt::from_mode(0o750)).unwrap();
        let mut found = Found::below(dir.path());
        found.private.sort();
        assert_eq!(found.private, [path("app/key"), path("app/private")]);
        assert_eq!(found.credentials, [path("app/.env")]);
        let kept = path("app/private/deep");
        assert_eq!(beside(found.private, &[&kept]), [path("app/key")]);
    }
}
