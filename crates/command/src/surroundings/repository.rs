//! The repository that a working directory is in.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use altair_sandbox::Place;

/// Bytes of a file in which git keeps one path.
const POINTER_BYTES: u64 = 4096;

/// What is shown of a repository.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    /// Its root, and the directory of the main repository if that is elsewhere.
    pub readable: Vec<Place>,
    /// A root that is not shown, since it is a home or holds one.
    pub is_home: Option<PathBuf>,
}

/// Finds the nearest `.git` at or above a directory. `owner`: as whom the command runs; a repository
/// that somebody else has put above it is none (git, `safe.directory`). Files are looked up as the
/// calling thread's user.
pub(crate) fn around(directory: &Path, homes: &[PathBuf], owner: u32) -> Repository {
    for root in directory.ancestors() {
        let git = root.join(".git");
        let (Ok(of_root), Ok(of_git)) = (root.symlink_metadata(), git.symlink_metadata()) else {
            continue;
        };
        let is_own = |of: &Metadata| of.uid() == owner;
        if !is_own(&of_git) || !(is_own(&of_root) || root == directory) {
            continue;
        }
        if homes.iter().any(|home| home.starts_with(root)) || root == Path::new("/") {
            return Repository {
                readable: Vec::new(),
                is_home: (root != directory).then(|| root.to_owned()),
            };
        }
        let mut readable: Vec<Place> = Place::find(root).into_iter().collect();
        if of_git.is_file() {
            let main = main_directory(root, &git);
            let is_fine = |main: &Place| !homes.iter().any(|home| home.starts_with(main.path()));
            readable.extend(main.filter(is_fine));
        }
        return Repository {
            readable,
            is_home: None,
        };
    }
    Repository::default()
}

/// The directory that a `.git` file leads to. A file can say anything, so what it names has to say the
/// same: the directory of a worktree names the worktree (gitrepository-layout(5), `worktrees/<id>`),
/// and that of a submodule is in the `.git` of a directory above.
fn main_directory(root: &Path, git: &Path) -> Option<Place> {
    let own = Place::find(root).ok()?;
    let text = read(&own, ".git")?;
    let named = root.join(text.strip_prefix("gitdir:")?.trim());
    let place = Place::find(&named).ok().filter(Place::is_directory)?;
    let at = place.path();
    let has_submodules = |above: &&Path| at.starts_with(above.join(".git/modules"));
    if root.ancestors().skip(1).any(|above| has_submodules(&above)) {
        return Some(place);
    }
    let back = at.join(read(&place, "gitdir")?.trim());
    if back.canonicalize().ok()? != git.canonicalize().ok()? {
        return None;
    }
    let main = Place::find(&at.join(read(&place, "commondir")?.trim())).ok()?;
    let is_its_own = at.parent() == Some(&main.path().join("worktrees"));
    let is_repository = main
        .below(Path::new("objects"))
        .is_ok_and(|of| of.is_directory())
        && main.below(Path::new("HEAD")).is_ok_and(|of| of.is_file());
    (is_its_own && is_repository).then_some(main)
}

fn read(place: &Place, name: &str) -> Option<String> {
    String::from_utf8(place.read(Path::new(name), POINTER_BYTES).ok()?).ok()
}
