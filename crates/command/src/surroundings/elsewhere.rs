//! Where hidden files can be read under another path.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};

use altair_sandbox::Inode;

use super::NO_HOMES;
use super::installed::INSTALLED;
use crate::hidden::is_hidden;

/// Entries of a hidden directory among which links are looked for: browsers keep thousands of files.
const ENTRIES: usize = 1024;
/// Directories below a hidden one in which they are looked for, one in the other: of a cloud's tokens
/// (`.aws/sso/cache/id.json`).
const DEPTH: usize = 4;

/// What links below hidden directories lead to, as those of a manager of dotfiles: files, and
/// directories that a hidden one itself names. Deeper links to directories are those of a program to
/// the whole of a home's documents. Files of the system are not hidden for a link to them.
pub(super) fn linked(hidden: &[PathBuf], homes: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for directory in hidden {
        let mut left = ENTRIES;
        let mut waiting = VecDeque::from([(directory.clone(), 0)]);
        while let Some((at, depth)) = waiting.pop_front() {
            let entries = std::fs::read_dir(&at).into_iter().flatten().flatten();
            for entry in entries {
                let Some(fewer) = left.checked_sub(1) else {
                    break;
                };
                left = fewer;
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && depth + 1 < DEPTH => {
                        waiting.push_back((entry.path(), depth + 1));
                    }
                    Ok(kind) if kind.is_symlink() => {
                        let target = entry.path().canonicalize();
                        let may_be_directory = depth == 0;
                        found.extend(
                            target
                                .into_iter()
                                .filter(|to| may_be_directory || to.is_file()),
                        );
                    }
                    _ => {}
                }
            }
        }
    }
    let is_of_system = |path: &Path| {
        let system = NO_HOMES.iter().filter(|path| **path != "/tmp");
        let system = system.chain(INSTALLED).chain(&["/nix", "/gnu"]);
        system.into_iter().any(|system| path.starts_with(system))
    };
    let holds_home = |path: &Path| homes.iter().any(|home| home.starts_with(path));
    found.retain(|path| !is_of_system(path) && !holds_home(path) && !is_hidden(path, hidden));
    found
}

/// Hidden paths below places where a directory that holds them is mounted, too. `shown`: paths at or
/// below such places.
pub(super) fn mounted<'a>(
    hidden: &[PathBuf],
    shown: impl Iterator<Item = &'a Path>,
) -> Vec<PathBuf> {
    let inode = |path: &Path| Some(Inode::of_metadata(&path.metadata().ok()?));
    let places: BTreeSet<&Path> = shown.flat_map(Path::ancestors).collect();
    let mut known: HashMap<&Path, Option<Inode>> = HashMap::new();
    let mut found = Vec::new();
    let places: Vec<(&Path, Inode)> = places
        .into_iter()
        .filter_map(|place| Some((place, inode(place)?)))
        .collect();
    for path in hidden {
        for holder in path.ancestors() {
            let of_holder = *known.entry(holder).or_insert_with(|| inode(holder));
            let same = places
                .iter()
                .filter(|(place, of)| *place != holder && Some(*of) == of_holder);
            let Ok(below) = path.strip_prefix(holder) else {
                continue;
            };
            // Joined to nothing, a path would end in a slash.
            found.extend(same.map(|(place, _)| match below.as_os_str().is_empty() {
                true => (*place).to_owned(),
                false => place.join(below),
            }));
        }
    }
    found.retain(|path| path.symlink_metadata().is_ok());
    found
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_links_in_hidden_directories_lead_to_is_found() {
        use std::os::unix::fs::symlink;
        // Not where temporary files are, which is a place like any other here.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let home = dir.path().canonicalize().unwrap();
        let path = |name: &str| home.join(name);
        for directory in [".ssh/deep/deeper", "dotfiles/keys", "documents"] {
            std::fs::create_dir_all(path(directory)).unwrap();
        }
        for file in ["dotfiles/id", "dotfiles/deep"] {
            std::fs::write(path(file), "").unwrap();
        }
        for (to, at) in [
            ("../dotfiles/id", ".ssh/id"),
            ("../dotfiles/keys", ".ssh/keys"),
            ("../../../dotfiles/deep", ".ssh/deep/deeper/id"),
            ("../../documents", ".ssh/deep/documents"),
            ("..", ".ssh/home"),
            ("/", ".ssh/root"),
            ("/usr/bin/env", ".ssh/env"),
            ("deep", ".ssh/itself"),
            ("nowhere", ".ssh/nowhere"),
        ] {
            symlink(to, path(at)).unwrap();
        }
        let mut found = linked(&[path(".ssh")], std::slice::from_ref(&home));
        found.sort();
        assert_eq!(
            found,
            ["dotfiles/deep", "dotfiles/id", "dotfiles/keys"].map(path)
        );
    }
}
