//! What a command is shown that works where its caller is, besides what its policy names: the
//! repository that it is in, and a home without keys.

mod elsewhere;
mod installed;
mod keys;
mod repository;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use altair_engine::Blocked;
use altair_engine::guards::Guard;
use altair_sandbox::{Inode, Place, RunAs, links_on, with_files_of};
use nix::unistd::{User, geteuid};

use crate::CommandError;
use crate::hidden::{but_named, collect_secrets};

/// System directories that such a command may read besides those that every command may.
pub(crate) const SYSTEM: &[&str] = &["/opt"];

/// How long files of homes may take to be looked at: they may be on a network file system whose server
/// does not answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Directories in which no home is made, whatever the user database says (`/usr/sbin` for `daemon`).
const NO_HOMES: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run",
    "/sbin", "/sys", "/tmp", "/usr",
];

/// What a command is shown.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// May be read: the repository.
    pub readable: Vec<Place>,
    /// The home.
    pub home: Home,
    /// What is not shown, wherever it would be: keys, credentials and what in `/etc` is not everybody's.
    pub hidden: Vec<PathBuf>,
    /// What its caller may have expected to be shown.
    pub told: Vec<Blocked>,
}

/// A command's home.
#[derive(Debug, Default)]
pub(crate) enum Home {
    /// There is none where one could be made: the directory for temporary files.
    #[default]
    Temp,
    /// The user's own, since it is what is to be shown.
    AsItIs(PathBuf),
    /// A directory of its own.
    Own {
        /// Where the user database has it.
        named: PathBuf,
        /// The same without links.
        path: PathBuf,
        /// Links on the way to it.
        links: Vec<(PathBuf, PathBuf)>,
        /// What is shown in it.
        toolchains: Vec<Toolchain>,
    },
}

/// A directory of a toolchain's.
#[derive(Debug, Clone)]
pub(crate) struct Toolchain {
    /// Its path in the home.
    pub name: &'static str,
    /// Where it is.
    pub place: Place,
    /// Links on the way to it.
    pub links: Vec<(PathBuf, PathBuf)>,
    /// Whether writes to it can be thrown away; otherwise it may only be read, since the working
    /// directory is in it.
    pub has_layer: bool,
}

impl Toolchain {
    /// Whether it is linked to in a home without mounts.
    pub(crate) fn is_linked(&self) -> bool {
        keys::LINKED.contains(&self.name)
    }
}

impl Home {
    /// The toolchains' directories in it.
    pub(crate) fn toolchains(&self) -> &[Toolchain] {
        match self {
            Self::Own { toolchains, .. } => toolchains,
            Self::Temp | Self::AsItIs(_) => &[],
        }
    }
}

/// What surroundings depend on.
#[derive(Debug, Clone)]
pub(crate) struct Around {
    /// The working directory, if it is shown.
    pub base: Option<PathBuf>,
    /// The paths that the policy names.
    pub named: Vec<PathBuf>,
    /// Those of them that may be written.
    pub written: Vec<PathBuf>,
    /// As whom a root host's command runs.
    pub user: Option<RunAs>,
    /// Homes by the user database: the command's user's first, then its caller's.
    homes: Vec<PathBuf>,
    /// Further ones: what the variable `HOME` says.
    said: Option<PathBuf>,
}

impl Around {
    /// `variable`: the caller's `HOME`. It may be anything, so that it hides what is a home's, but shows
    /// nothing: the home that is shown is that of the user database.
    pub(crate) fn new(
        base: Option<&Path>,
        named: &[&Path],
        written: &[&Path],
        user: Option<RunAs>,
        variable: Option<&OsStr>,
    ) -> Self {
        let own = geteuid().as_raw();
        let uid = user.map_or(own, |user| user.uid);
        let of = |uid: u32| Some(User::from_uid(uid.into()).ok()??.dir);
        let others = (uid != own).then(|| of(own)).flatten();
        let is_usable = |path: &PathBuf| path.is_absolute();
        Self {
            base: base.map(Path::to_owned),
            named: named.iter().map(|path| (*path).to_owned()).collect(),
            written: written.iter().map(|path| (*path).to_owned()).collect(),
            user,
            // A user who has none still has a place in the list: its own is the first.
            homes: [of(uid).unwrap_or_default()]
                .into_iter()
                .chain(others)
                .collect(),
            said: variable.map(PathBuf::from).filter(is_usable),
        }
    }

    /// Looks for what there is, as the command's user.
    ///
    /// # Errors
    /// [`CommandError::Start`] if the files do not answer: then it is not known what must not be shown;
    /// [`CommandError::Invalid`] if the working directory is among what is not.
    pub(crate) fn look(self) -> Result<Surroundings, CommandError> {
        let (user, base) = (self.user, self.base.clone());
        let looked = with_files_of(user, PATIENCE, move || self.found());
        let surroundings = looked.map_err(|error: io::Error| {
            CommandError::Start(format!(
                "Nothing was started: what is in the home cannot be looked at ({error})."
            ))
        })?;
        let hidden = base.filter(|base| crate::hidden::is_hidden(base, &surroundings.hidden));
        match hidden {
            None => Ok(surroundings),
            Some(base) => Err(CommandError::Invalid(format!(
                "The working directory is among keys or credentials, which are only shown if they are named: --read={}",
                base.display()
            ))),
        }
    }

    fn found(&self) -> Surroundings {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let all = self.homes.iter().chain(&self.said);
        let homes: Vec<PathBuf> = all
            .filter(|path| path.is_absolute())
            .map(real)
            .filter(|path| path != Path::new("/"))
            .collect();
        let named: Vec<&Path> = self.named.iter().map(PathBuf::as_path).collect();
        let shown = self
            .base
            .as_deref()
            .into_iter()
            .chain(named.iter().copied());
        let others: Vec<PathBuf> = shown.flat_map(|path| same(path, &homes)).collect();
        let homes = [homes, others].concat();
        let owner = self
            .user
            .map_or_else(|| geteuid().as_raw(), |user| user.uid);
        let repository = self.base.as_ref();
        let repository = repository.map(|base| repository::around(base, &homes, owner));
        let repository = repository.unwrap_or_default();
        let repositories = repository.readable.iter().map(Place::path);
        let project: Vec<&Path> = self
            .base
            .as_deref()
            .into_iter()
            .chain(repositories)
            .collect();
        let mut hidden: Vec<PathBuf> = homes.iter().flat_map(|home| keys::below(home)).collect();
        hidden.extend(elsewhere::linked(&hidden, &homes));
        let shown = project.iter().chain(&named).copied();
        hidden.extend(elsewhere::mounted(&hidden, shown));
        collect_secrets(Path::new("/etc"), &mut hidden);
        let home = self.home(&named);
        let mut hidden = but_named(hidden, &named);
        let installed = installed::Shown {
            named: &named,
            project: &project,
            home: &home,
        };
        hidden.extend(installed.hidden());
        let is_told = |root: &PathBuf| !named.iter().any(|named| root.starts_with(named));
        Surroundings {
            readable: repository.readable,
            home,
            hidden,
            told: (repository.is_home.filter(is_told).map(told).into_iter())
                .chain(
                    named
                        .iter()
                        .copied()
                        .filter(|path| is_device(path))
                        .map(no_device),
                )
                .collect(),
        }
    }

    /// The home of the command's user.
    fn home(&self, named: &[&Path]) -> Home {
        let Some(home) = self.homes.first().filter(|home| can_be_made(home)) else {
            return Home::Temp;
        };
        let path = home.canonicalize().unwrap_or_else(|_| home.clone());
        if !can_be_made(&path) {
            return Home::Temp;
        }
        let base = self.base.as_deref();
        if base
            .into_iter()
            .chain(named.iter().copied())
            .any(|shown| path.starts_with(shown))
        {
            return Home::AsItIs(home.clone());
        }
        let mut toolchains: Vec<Toolchain> = Vec::new();
        for name in keys::TOOLCHAINS {
            let at = path.join(name);
            let Some(place) = Place::find(&at).ok().filter(Place::is_directory) else {
                continue;
            };
            let real = place.path();
            let is_shown = toolchains
                .iter()
                .any(|one| real.starts_with(one.place.path()));
            let holds_home = path.starts_with(real);
            let is_of_system = ["/proc", "/dev", "/sys"]
                .iter()
                .any(|own| real.starts_with(own));
            // Its changes are real, or shown.
            let is_written = self.written.iter().any(|written| real.starts_with(written));
            if is_shown || holds_home || is_of_system || is_written {
                continue;
            }
            toolchains.push(Toolchain {
                name,
                has_layer: !base.is_some_and(|base| base.starts_with(real)),
                links: links_on(&at),
                place,
            });
        }
        Home::Own {
            named: home.clone(),
            links: links_on(home),
            path,
            toolchains,
        }
    }
}

/// The directories at or above a path that are one of the homes, mounted at another place.
fn same<'a>(path: &'a Path, homes: &'a [PathBuf]) -> impl Iterator<Item = PathBuf> + 'a {
    let inode = |path: &Path| Some(Inode::of_metadata(&path.metadata().ok()?));
    let is_home = move |above: &&Path| {
        homes.iter().all(|home| home != above)
            && homes
                .iter()
                .any(|home| inode(home).is_some_and(|of| Some(of) == inode(above)))
    };
    path.ancestors().filter(is_home).map(Path::to_owned)
}

/// Whether a path is one of devices, which are never the host's.
fn is_device(path: &Path) -> bool {
    path.starts_with("/dev")
}

fn no_device(path: &Path) -> Blocked {
    Blocked {
        what: format!("read {}: a command has devices of its own", path.display()),
        guard: Guard::Filesystem,
        lift: None,
    }
}

fn can_be_made(home: &Path) -> bool {
    home.is_absolute() && home != Path::new("/") && !NO_HOMES.iter().any(|no| home.starts_with(no))
}

fn told(root: PathBuf) -> Blocked {
    Blocked {
        what: format!(
            "read the repository {}: it is a home, which is not shown because it has a .git",
            root.display()
        ),
        guard: Guard::Filesystem,
        lift: Some(format!("--read={}", root.display())),
    }
}
