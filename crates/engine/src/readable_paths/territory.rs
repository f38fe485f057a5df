//! What belongs to an application besides its root: the repository that it is part of, and what a
//! deployment keeps for all its releases. A project can say where else its files are, but it cannot
//! put anything above its root, so that is what its word is checked against.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use altair_sandbox::Place;

use super::credentials;
use super::elsewhere::{Homes, is_of_system};

/// The directories in which files that an application names are its own.
#[derive(Debug, Default)]
pub(crate) struct Territory {
    tops: Vec<PathBuf>,
    shared: Option<Place>,
}

/// Bytes of the files by which git connects a worktree with its repository: a path.
const GIT_FILE_MAX: u64 = 8192;

impl Territory {
    /// That of the application at `root`, as visible to the calling thread's user.
    pub(crate) fn of(root: &Place, homes: &Homes) -> Self {
        let mut territory = Self {
            tops: repository(root),
            shared: shared(root),
        };
        if let (Some(shared), Some(releases)) = (&territory.shared, root.path().parent()) {
            let shared = shared.path().to_owned();
            territory.tops.extend([releases.to_owned(), shared]);
        }
        territory
            .tops
            .retain(|top| !homes.are_in(top) && !is_of_system(top));
        territory
    }

    /// What a deployment keeps for all its releases.
    pub(crate) fn shared(&self) -> Option<&Place> {
        self.shared.as_ref()
    }

    /// Whether something is that or part of it.
    pub(crate) fn is_shared(&self, path: &Path) -> bool {
        let shared = self.shared.as_ref();
        shared.is_some_and(|shared| path.starts_with(shared.path()))
    }

    /// Whether something belongs to the application: below one of the directories, neither in nor
    /// as a hidden directory, and nothing that holds credentials.
    pub(crate) fn holds(&self, place: &Place) -> bool {
        let below = |top: &PathBuf| place.path().strip_prefix(top).ok();
        self.tops
            .iter()
            .filter_map(below)
            .any(|path| path != Path::new("") && is_plain(path.iter(), place))
    }
}

/// Whether a file or directory is neither hidden nor in a hidden directory, nor holds credentials.
/// `names`: those of its path that count.
pub(crate) fn is_plain(mut names: std::path::Iter<'_>, place: &Place) -> bool {
    let is_hidden = |name: &OsStr| name.as_bytes().starts_with(b".");
    let last = names.next_back().unwrap_or_default();
    let is_environment = place.is_file() && last.as_bytes().starts_with(b".env");
    let is_credential = place.is_file() && credentials::is_one(place.path());
    !names.any(is_hidden) && (is_environment || !is_hidden(last)) && !is_credential
}

/// The repository that a directory is in: that of the nearest `.git`. For a worktree's (gitworktrees,
/// "DETAILS"), the main worktree, too.
fn repository(root: &Place) -> Vec<PathBuf> {
    let marked = root.path().ancestors().find_map(|top| {
        let mark = top.join(".git").symlink_metadata().ok()?;
        Some((top, mark))
    });
    let Some((top, mark)) = marked else {
        return Vec::new();
    };
    // Another user can have made one in a directory above.
    if !is_own(mark.uid(), root) {
        return Vec::new();
    }
    let main = match mark.is_file() {
        true => main_worktree(top, root),
        false => None,
    };
    // Nothing outside of the root is in a repository that the root itself is, or that is in it.
    main.into_iter()
        .chain((top != root.path()).then(|| top.to_owned()))
        .collect()
}

/// The main worktree that a worktree's `.git` file names. That file can be the project's own: only
/// the repository, which names the worktree in turn, tells whether it is true.
fn main_worktree(top: &Path, root: &Place) -> Option<PathBuf> {
    let named = line(&Place::find(top).ok()?, ".git")?;
    let named = named.strip_prefix(b"gitdir: ")?;
    let entry = Place::find(&top.join(path(named))).ok()?;
    let worktrees = entry.path().parent()?;
    let git = worktrees.parent()?;
    if worktrees.file_name()? != "worktrees" || git.file_name()? != ".git" {
        return None;
    }
    let named = line(&entry, "gitdir")?;
    let back = entry.path().join(path(&named));
    let is_named = back.file_name()? == ".git" && Place::find(back.parent()?).ok()?.path() == top;
    let git = Place::find(git).ok()?;
    let is_own = is_own(git.owner().uid, root) && is_own(entry.owner().uid, root);
    (is_named && is_own).then(|| git.path().parent().map(Path::to_owned))?
}

fn line(directory: &Place, name: &str) -> Option<Vec<u8>> {
    let text = directory.read(Path::new(name), GIT_FILE_MAX).ok()?;
    Some(text.trim_ascii_end().to_owned())
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

/// `shared` beside `releases`, for a root in the `releases` of a deployment (Deployer's and
/// Capistrano's layout). Directories of these names are no deployment yet.
fn shared(root: &Place) -> Option<Place> {
    let releases = root.path().parent()?;
    let deployment = releases.parent()?;
    if releases.file_name()? != "releases" || !is_deployment(deployment, releases, root) {
        return None;
    }
    let named = deployment.join("shared");
    let shared = Place::find(&named).ok()?;
    let is_plain = shared.path() == named && shared.is_directory();
    (is_plain && is_own(shared.owner().uid, root)).then_some(shared)
}

/// Whether a directory has what a deployment makes in it: Deployer's `.dep`, or the link `current` to
/// a release.
fn is_deployment(directory: &Path, releases: &Path, root: &Place) -> bool {
    let own = |name: &str| {
        let mark = directory.join(name).symlink_metadata().ok()?;
        is_own(mark.uid(), root).then_some(mark)
    };
    let leads_to_a_release = || {
        let release = Place::find(&directory.join("current"));
        release.is_ok_and(|release| {
            release.is_directory() && release.path().parent() == Some(releases)
        })
    };
    own(".dep").is_some_and(|mark| mark.is_dir())
        || own("current").is_some_and(|mark| mark.is_symlink()) && leads_to_a_release()
}

/// Whether a user may say what belongs to a project: its owner, or root.
fn is_own(user: u32, root: &Place) -> bool {
    user == 0 || user == root.owner().uid
}
