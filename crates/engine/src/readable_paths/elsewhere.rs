//! What an application has outside of its root, by its own word: packages that Composer links, a
//! `vendor-dir` elsewhere, links out of the root. It is shown where it belongs to the application
//! (`territory.rs`); what else a project names, only the user can show.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use altair_sandbox::bounded::at_most;
use altair_sandbox::{Place, Shown};
use nix::unistd::{Uid, User, geteuid};
use serde::Deserialize;

use super::credentials::{Below, Keys, Search};
use super::territory::{Territory, is_plain};
use crate::services::{Declarations, MANIFEST_MAX_BYTES};
use crate::surroundings;

/// What an application has outside of its root.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    /// What belongs to it.
    pub shown: Vec<Shown>,
    /// What it names, but only the user can show.
    pub left: Vec<Left>,
}

/// Something that an application names and that was not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    /// Where it is.
    pub path: PathBuf,
    /// Whether code is loaded from there: without it, classes are missing.
    pub is_code: bool,
    /// What below it speaks against it; `None` if it does not belong to the application.
    pub below: Option<Below>,
}

/// Links in the root to look at, and packages and links outside of it to show or tell.
const ELSEWHERE_MAX: usize = 256;
/// Entries of the root among which links are looked for.
const ENTRIES_MAX: usize = 10_000;

impl Elsewhere {
    /// What the application at `root` has, as visible to the calling thread's user.
    pub(crate) fn of(root: &Place, homes: &Homes) -> Self {
        let territory = Territory::of(root, homes);
        let mut found = Self::default();
        let mut look = Look {
            root,
            homes,
            territory: &territory,
            search: Search::new(),
            found: &mut found,
        };
        look.at_shared();
        look.at_packages();
        look.at_links();
        found
    }
}

struct Look<'a> {
    root: &'a Place,
    homes: &'a Homes,
    territory: &'a Territory,
    search: Search,
    found: &'a mut Elsewhere,
}

impl Look<'_> {
    /// What a deployment keeps for all its releases, to which links deeper in the root lead, too.
    fn at_shared(&mut self) {
        if let Some(shared) = self.territory.shared() {
            self.show(shared.path().to_owned(), shared, false);
        }
    }

    fn at_packages(&mut self) {
        let named = self.root.path().join(vendor_dir(self.root));
        let Ok(vendor) = Place::find(&named) else {
            return;
        };
        if is_vendor(&vendor) && !self.follow(named, &vendor, true) {
            return;
        }
        let installed = vendor.read(Path::new("composer/installed.json"), COMPOSER_MAX_BYTES);
        let packages = installed.map_or_else(|_| Vec::new(), |text| linked_packages(&text));
        for at in packages {
            if self.is_full() {
                break;
            }
            if let Ok(package) = Place::find(&vendor.path().join("composer").join(at))
                && has_file(&package, "composer.json")
            {
                self.follow(package.path().to_owned(), &package, true);
            }
        }
    }

    /// Links in the root itself: `.env`, `storage`, `public/` and the like.
    fn at_links(&mut self) {
        let Ok(entries) = std::fs::read_dir(self.root.path()) else {
            return;
        };
        let links = entries
            .take(ENTRIES_MAX)
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        for link in links {
            if self.is_full() {
                break;
            }
            if let Ok(target) = Place::find(&link.path())
                && (target.is_directory() || target.is_file())
            {
                self.follow(link.path(), &target, false);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.found.shown.len() + self.found.left.len() >= ELSEWHERE_MAX
    }

    /// Shows what the application names, if it belongs to it. Returns whether a run sees it.
    fn follow(&mut self, named: PathBuf, place: &Place, is_code: bool) -> bool {
        let path = place.path();
        let is_known =
            |shown: &Shown| shown.inode() == Some(place.inode()) && shown.path() == named;
        if path.starts_with(self.root.path()) || self.found.shown.iter().any(is_known) {
            return true;
        }
        if !may_be_shown(place, self.root, self.homes) {
            return false;
        }
        let whole = self.territory.shared().map(Place::inode);
        let is_seen = |shown: &Shown| whole.is_some() && shown.inode() == whole;
        if self.territory.is_shared(path) && self.found.shown.iter().any(is_seen) {
            return true;
        }
        if self.territory.holds(place) {
            return self.show(named, place, is_code);
        }
        // Nobody is advised to show what is hidden or secret.
        if is_plain(path.iter(), place) {
            self.leave(place, is_code, None);
        }
        false
    }

    /// Shows what belongs to the application, if no credentials of others are below it. Returns whether
    /// a run sees it.
    fn show(&mut self, named: PathBuf, place: &Place, is_code: bool) -> bool {
        let keys = match self.territory.is_shared(place.path()) {
            true => Keys::Own,
            false => Keys::Others,
        };
        let below = match place.is_directory() {
            true => self.search.below(place, keys),
            false => None,
        };
        if below.is_some() {
            self.leave(place, is_code, below);
            return false;
        }
        self.found.shown.push(Shown::found(named, place.clone()));
        true
    }

    fn leave(&mut self, place: &Place, is_code: bool, below: Option<Below>) {
        let path = place.path();
        if self.found.left.iter().all(|left| left.path != path) {
            self.found.left.push(Left {
                path: path.to_owned(),
                is_code,
                below,
            });
        }
    }
}

/// The homes of the users concerned, which no file of an application opens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Homes(Vec<PathBuf>);

impl Homes {
    /// Those of the host's user and of the project's owner, by the user database and by `HOME`.
    pub(crate) fn of(root: &Place, environment: &[(OsString, OsString)]) -> Self {
        let of_user = |user: Uid| User::from_uid(user).ok().flatten().map(|user| user.dir);
        let own = geteuid();
        let owner = Uid::from_raw(root.owner().uid);
        let named = surroundings::variable(environment, "HOME").map(PathBuf::from);
        let owners = (owner != own).then(|| of_user(owner)).flatten();
        let homes = [named, of_user(own), owners].into_iter().flatten();
        // A system user's is often `/`, or a directory of its application's.
        let homes = homes.filter_map(|home| home.canonicalize().ok());
        Self(homes.collect())
    }

    /// Whether a directory is a home, or contains one.
    pub(crate) fn are_in(&self, path: &Path) -> bool {
        path.parent() == Some(Path::new("/home"))
            || self.0.iter().any(|home| home.starts_with(path))
    }
}

/// Bytes of Composer's package list to read; a large application's has one or two MiB.
const COMPOSER_MAX_BYTES: u64 = 16 << 20;

/// The directories of the packages that Composer links according to `installed.json`, relative to
/// its directory.
pub(crate) fn linked_packages(installed: &[u8]) -> Vec<PathBuf> {
    let Ok(installed) = serde_json::from_slice::<Installed>(installed) else {
        return Vec::new();
    };
    let linked = installed.packages.into_iter().filter(|package| {
        let dist = package.dist.as_ref();
        dist.is_some_and(|dist| dist.kind == "path")
    });
    linked.filter_map(|package| package.install_path).collect()
}

fn has_file(directory: &Place, name: &str) -> bool {
    directory
        .below(Path::new(name))
        .is_ok_and(|found| found.is_file())
}

/// Returns whether Composer installs into a directory; a project may name any directory.
pub(super) fn is_vendor(directory: &Place) -> bool {
    has_file(directory, "autoload.php") && has_file(directory, "composer/installed.json")
}

/// Composer's `vendor-dir`, by default `vendor`. Variables in it (`$HOME`) are not expanded.
fn vendor_dir(root: &Place) -> PathBuf {
    #[derive(Default, Deserialize)]
    struct Manifest {
        #[serde(default)]
        config: Config,
    }
    #[derive(Default, Deserialize)]
    struct Config {
        #[serde(rename = "vendor-dir")]
        vendor_dir: Option<PathBuf>,
    }
    let manifest = root
        .read(Path::new(Declarations::FILE), MANIFEST_MAX_BYTES)
        .ok()
        .and_then(|text| serde_json::from_slice::<Manifest>(&text).ok())
        .unwrap_or_default();
    manifest
        .config
        .vendor_dir
        .unwrap_or_else(|| "vendor".into())
}

/// The maximum number of packages.
const PACKAGES_MAX: usize = 10_000;

/// `vendor/composer/installed.json`, as Composer 2 writes it.
#[derive(Deserialize)]
struct Installed {
    #[serde(deserialize_with = "at_most::<PACKAGES_MAX, _, _>")]
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    #[serde(rename = "install-path")]
    install_path: Option<PathBuf>,
    dist: Option<Dist>,
}

#[derive(Deserialize)]
struct Dist {
    #[serde(rename = "type")]
    kind: String,
}

/// System directories. Neither they nor their parents can be a package.
const SYSTEM_DIRECTORIES: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/root", "/run", "/sbin",
    "/sys", "/tmp", "/usr", "/var",
];

/// Whether a directory is one of the system's, or contains one.
pub(super) fn is_of_system(path: &Path) -> bool {
    SYSTEM_DIRECTORIES
        .iter()
        .any(|system| Path::new(system).starts_with(path))
}

/// Returns whether a file or directory that the application's own files name can be a part of it at
/// all. Refuses one that holds more than a package would.
fn may_be_shown(place: &Place, root: &Place, homes: &Homes) -> bool {
    let path = place.path();
    !root.path().starts_with(path)
        && !homes.are_in(path)
        && !is_of_system(path)
        && !["/proc", "/sys", "/dev", "/etc", "/run", "/boot"]
            .iter()
            .any(|system| path.starts_with(system))
}
