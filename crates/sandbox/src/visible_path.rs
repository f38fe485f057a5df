//! What a process is shown, and the links on the path to it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::{Inode, Place};

/// Maximum number of symbolic links followed for one path, as in the kernel (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// A file or directory that a process is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    path: PathBuf,
    found: Option<ResolvedPath>,
}

/// What was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolvedPath {
    pub(crate) place: Place,
    /// The links that lead there.
    pub(crate) links: Vec<Link>,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its path, without other links.
    pub(crate) at: PathBuf,
    /// Its content.
    pub(crate) target: PathBuf,
}

impl Shown {
    /// What is at a path that only the system's administrator can change.
    #[must_use]
    pub fn of_system(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            found: None,
        }
    }

    /// What was found, shown at a path that leads to it. The links on this path are looked up here,
    /// as the calling thread's user; if they by now lead to another file, it is only shown at the
    /// path of the place.
    #[must_use]
    pub fn found(path: impl Into<PathBuf>, place: Place) -> Self {
        let path = path.into();
        let links = if path == place.path() {
            Vec::new()
        } else {
            follow(&path, |_| false)
                .filter(|way| Inode::of_metadata(&way.metadata) == place.inode())
                .map_or_else(Vec::new, |way| way.links)
        };
        let found = Some(ResolvedPath { place, links });
        Self { path, found }
    }

    /// The path at which it is shown.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path where it was found, which may differ.
    #[must_use]
    pub fn found_at(&self) -> Option<PathBuf> {
        Some(self.found.as_ref()?.place.path().to_owned())
    }

    /// The inode that it must be.
    #[must_use]
    pub fn inode(&self) -> Option<Inode> {
        Some(self.found.as_ref()?.place.inode())
    }

    /// Whether these directories show it, and every link on the path to it. A path without links
    /// starts with a directory's only if that directory's has none, either.
    #[must_use]
    pub fn is_below(&self, directories: &[&Path]) -> bool {
        let below = |path: &Path| {
            directories
                .iter()
                .any(|directory| path.starts_with(directory))
        };
        self.found.as_ref().is_some_and(|found| {
            below(found.place.path()) && found.links.iter().all(|link| below(&link.at))
        })
    }

    /// What was looked up; `None` for a path of the system.
    pub(crate) fn found_as(&self) -> Option<&ResolvedPath> {
        self.found.as_ref()
    }
}

impl Inode {
    /// That of a file that was looked at.
    #[must_use]
    pub fn of_metadata(metadata: &Metadata) -> Self {
        Self {
            dev: metadata.dev(),
            ino: metadata.ino(),
        }
    }
}

/// The symbolic links on the path to something, each with its own path and content; none if it leads
/// nowhere. They are looked up as the calling thread's user.
#[must_use]
pub fn links_on(path: &Path) -> Vec<(PathBuf, PathBuf)> {
    let links = follow(path, |_| false).map_or_else(Vec::new, |way| way.links);
    links
        .into_iter()
        .map(|link| (link.at, link.target))
        .collect()
}

/// Where a path leads.
pub(crate) struct Followed {
    /// The links on the way.
    pub(crate) links: Vec<Link>,
    /// Its final path, without links.
    pub(crate) end: PathBuf,
    /// The metadata of what is there.
    pub(crate) metadata: Metadata,
}

/// Follows a path as the kernel does, name by name. `None` if it leads nowhere. Paths for which
/// `is_directory` returns true are taken as directories without a look.
pub(crate) fn follow(path: &Path, is_directory: impl Fn(&Path) -> bool) -> Option<Followed> {
    let mut links = Vec::new();
    let mut rest = names(path);
    let mut current = PathBuf::from("/");
    loop {
        match rest.pop_front() {
            None => {
                let metadata = current.symlink_metadata().ok()?;
                let end = current;
                return Some(Followed {
                    links,
                    end,
                    metadata,
                });
            }
            Some(name) if name == ".." => {
                current.pop();
                continue;
            }
            Some(name) => current.push(name),
        }
        if is_directory(&current) {
            continue;
        }
        let metadata = current.symlink_metadata().ok()?;
        if metadata.is_symlink() {
            let target = current.read_link().ok()?;
            if links.len() == LINKS_MAX {
                return None;
            }
            for name in names(&target).into_iter().rev() {
                rest.push_front(name);
            }
            links.push(Link {
                at: current.clone(),
                target,
            });
            match links.last() {
                Some(link) if link.target.is_absolute() => current = PathBuf::from("/"),
                _ => {
                    current.pop();
                }
            }
        } else if rest.is_empty() {
            let end = current;
            return Some(Followed {
                links,
                end,
                metadata,
            });
        } else if !metadata.is_dir() {
            return None;
        }
    }
}

/// The names in a path, including `..`.
fn names(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    /// The names of the links on the way, and the final path.
    fn way(path: &Path) -> Option<(Vec<String>, PathBuf)> {
        let way = follow(path, |_| false)?;
        let name = |link: &Link| link.at.file_name().unwrap().to_str().unwrap().to_owned();
        Some((way.links.iter().map(name).collect(), way.end))
    }

    #[test]
    fn a_path_is_followed_as_the_kernel_does_it() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().canonicalize().unwrap();
        let path = |name: &str| own.join(name);
        std::fs::create_dir_all(path("real/sub")).unwrap();
        std::fs::write(path("real/file"), "").unwrap();
        symlink("real", path("near")).unwrap();
        symlink(path("near"), path("far")).unwrap();
        symlink("../file", path("real/sub/up")).unwrap();
        symlink("loop", path("loop")).unwrap();
        symlink("nothing", path("dangling")).unwrap();
        let links = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let file = path("real/file");
        assert_eq!(way(&path("real/file")), Some((links(&[]), file.clone())));
        assert_eq!(
            way(&path("near/file")),
            Some((links(&["near"]), file.clone()))
        );
        assert_eq!(
            way(&path("far/sub/up")),
            Some((links(&["far", "near", "up"]), file.clone()))
        );
        assert_eq!(
            way(&path("near/sub/../file")),
            Some((links(&["near"]), file))
        );
        assert_eq!(
            way(&path("far/..")),
            Some((links(&["far", "near"]), own.clone()))
        );
        assert_eq!(way(Path::new("/")), Some((links(&[]), PathBuf::from("/"))));
        for nowhere in ["loop", "dangling", "nothing", "real/file/below"] {
            assert_eq!(way(&path(nowhere)), None, "{nowhere}");
        }
    }

    #[test]
    fn what_a_directory_shows_with_all_its_links_is_below_it() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().canonicalize().unwrap();
        let path = |name: &str| own.join(name);
        for name in ["shown", "other"] {
            std::fs::create_dir(path(name)).unwrap();
            std::fs::write(path(name).join("file"), "").unwrap();
        }
        symlink("file", path("shown/near")).unwrap();
        symlink("../other/file", path("shown/away")).unwrap();
        symlink("../shown/file", path("other/back")).unwrap();
        symlink("shown", path("alias")).unwrap();
        let is_below = |name: &str, directory: &str| {
            let place = Place::find(&path(name)).unwrap();
            Shown::found(path(name), place).is_below(&[&path(directory)])
        };
        assert!(is_below("shown/file", "shown"));
        assert!(is_below("shown/near", "shown"));
        assert!(is_below("shown", "shown"));
        // What is named, or a link on the way, is elsewhere.
        assert!(!is_below("other/file", "shown"));
        assert!(!is_below("shown/away", "shown"));
        assert!(!is_below("other/back", "shown"));
        assert!(!is_below("alias/file", "shown"));
        // A directory that is a link has no path of a place below its own.
        assert!(!is_below("alias/file", "alias"));
        assert!(!Shown::of_system(path("shown/file")).is_below(&[&path("shown")]));
    }

    #[test]
    fn links_that_lead_elsewhere_by_now_are_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("one")).unwrap();
        std::fs::create_dir(path("two")).unwrap();
        symlink("one", path("link")).unwrap();
        let place = Place::find(&path("link")).unwrap();
        let shown = Shown::found(path("link"), place.clone());
        assert_eq!(shown.found_as().unwrap().links.len(), 1);
        std::fs::remove_file(path("link")).unwrap();
        symlink("two", path("link")).unwrap();
        let shown = Shown::found(path("link"), place.clone());
        assert!(shown.found_as().unwrap().links.is_empty());
        assert_eq!(shown.found_at().unwrap(), place.path());
    }
}
