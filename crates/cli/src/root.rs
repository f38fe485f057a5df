//! The project that a command is about: the one that is named, else the working directory, else the nearest directory
//! above it that is a project.
//!
//! Its autoloader is run. So what is not named has to be the caller's own: of a directory above, the caller may not even
//! know.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::{Uid, User, geteuid};

use crate::failure::{Failure, reason, say};

/// The project that a command is about.
pub struct Root {
    /// Its directory.
    pub path: PathBuf,
    /// Whether it is a directory above the working directory, which nobody has named.
    pub is_found: bool,
    /// Why nothing of it may be run, if it is a working directory that is no project yet: somebody else could make
    /// it one meanwhile.
    objection: Option<String>,
}

impl Root {
    /// The one that is named, else the working directory if it is a project, else the nearest directory above it that
    /// is one, up to the border of a mount or the home directory; else the working directory.
    ///
    /// # Errors
    ///
    /// If the working directory no longer exists, or if somebody else could have put there what would be run.
    pub fn of(named: Option<PathBuf>) -> Result<Self, Failure> {
        match named {
            Some(path) => Ok(Self {
                path,
                is_found: false,
                objection: None,
            }),
            None => search(),
        }
    }

    /// Refuses a working directory in which somebody else could put what would be run.
    ///
    /// # Errors
    ///
    /// If it is one.
    pub fn check_to_run(&self) -> Result<(), Failure> {
        match &self.objection {
            None => Ok(()),
            Some(why) => Err(Failure::new(format!(
                "no project is found: {} has no vendor/autoload.php, and {why}; name --root=<dir>",
                self.path.display()
            ))),
        }
    }

    /// Says on standard error which one was found; nothing of one that the user knows.
    pub fn show(&self) {
        if self.is_found {
            say(&format!(
                "the project is {}, above the working directory",
                self.path.display()
            ));
        }
    }
}

/// The working directory.
///
/// # Errors
///
/// If it no longer exists.
pub fn working_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| unusable(&reason(&error)))
}

fn unusable(why: &str) -> Failure {
    Failure::new(format!(
        "the working directory cannot be used: {why}; name --root=<dir>"
    ))
}

const DIRECTORY: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_CLOEXEC);
const AUTOLOADER: &str = "vendor/autoload.php";

fn search() -> Result<Root, Failure> {
    let start = working_directory()?;
    let failed = |errno: Errno| unusable(&errno.desc().to_lowercase());
    let mut dir = open(".", DIRECTORY, Mode::empty()).map_err(failed)?;
    let own = fstat(&dir).map_err(failed)?;
    let trusted = Trusted {
        caller: geteuid(),
        owner_of_start: Uid::from_raw(own.st_uid),
    };
    if is_project(&dir) {
        return match trusted.objection_to_start(&dir) {
            None => Ok(Root {
                path: start,
                is_found: false,
                objection: None,
            }),
            Some(why) => Err(refused(&start, &why)),
        };
    }
    let objection = trusted.objection_to_start(&dir);
    let home = std::env::var_os("HOME").and_then(|home| nix::sys::stat::stat(&*home).ok());
    let is_home = |at: &FileStat| home.as_ref().is_some_and(|home| same(home, at));
    let mut at = own;
    let mut paths = start.ancestors();
    paths.next();
    for path in paths {
        let mount = mount_of(&dir);
        if is_home(&at) {
            break;
        }
        dir = match openat(&dir, "..", DIRECTORY, Mode::empty()) {
            Ok(above) if mount.is_some() && mount_of(&above) == mount => above,
            _ => break,
        };
        at = fstat(&dir).map_err(failed)?;
        // The engine refuses it: a run can read its whole project.
        if path == Path::new("/") {
            break;
        }
        if is_project(&dir) {
            // The descriptor is what was looked at, the path what is used.
            let named = nix::sys::stat::stat(path);
            let why = match named.is_ok_and(|named| same(&named, &at)) {
                true => trusted.objection_to_found(&dir, path),
                false => Some("it has been moved".into()),
            };
            return match why {
                None => Ok(Root {
                    path: path.to_owned(),
                    is_found: true,
                    objection: None,
                }),
                Some(why) => Err(refused(path, &why)),
            };
        }
    }
    Ok(Root {
        path: start,
        is_found: false,
        objection,
    })
}

fn refused(path: &Path, why: &str) -> Failure {
    let path = path.display();
    Failure::new(format!(
        "{path} is a project, but {why}; --root={path} runs it all the same"
    ))
}

fn is_project(dir: &OwnedFd) -> bool {
    fstatat(dir, AUTOLOADER, AtFlags::empty()).is_ok_and(|file| is(&file, SFlag::S_IFREG))
}

fn is(file: &FileStat, kind: SFlag) -> bool {
    SFlag::from_bits_truncate(file.st_mode) & SFlag::S_IFMT == kind
}

fn same(one: &FileStat, other: &FileStat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// The mount that a descriptor is of (proc_pid_fdinfo(5)); a bind mount has the device of what it shows.
fn mount_of(dir: &OwnedFd) -> Option<String> {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", dir.as_raw_fd())).ok()?;
    let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    mount.map(|id| id.trim().to_owned())
}

/// Who may have made what is run.
struct Trusted {
    caller: Uid,
    /// Counts instead of the caller where that is root, who is in everybody's directories.
    owner_of_start: Uid,
}

impl Trusted {
    /// Whether a file belongs to the one user who counts, so that parts of a project do not belong to several.
    fn owns(&self, file: &FileStat) -> bool {
        let owner = match self.caller.is_root() {
            true => self.owner_of_start,
            false => self.caller,
        };
        Uid::from_raw(file.st_uid) == owner
    }

    /// What speaks against the working directory, which the caller has chosen: that it is somebody else's, but not
    /// root's, or everybody's. Those of its group are let in, as they are by Composer.
    fn objection_to_start(&self, dir: &OwnedFd) -> Option<String> {
        let look = |name: &str| match name {
            "" => fstat(dir),
            name => fstatat(dir, name, AtFlags::empty()),
        };
        ["", "composer.json", "vendor", AUTOLOADER]
            .into_iter()
            .find_map(|name| {
                let file = look(name).ok()?;
                let is_roots = Uid::from_raw(file.st_uid).is_root();
                self.objection(name, &file, is_roots, Mode::S_IWOTH)
            })
    }

    /// What speaks against a directory above: that any of it is not the caller's own, or that others could have put
    /// it there. A group's bit is also that of an access list that lets anybody else write (acl(5)).
    fn objection_to_found(&self, dir: &OwnedFd, path: &Path) -> Option<String> {
        let others = Mode::S_IWGRP | Mode::S_IWOTH;
        let look = |name: &str| fstatat(dir, name, AtFlags::AT_SYMLINK_NOFOLLOW);
        let parts = [
            ("", fstat(dir), SFlag::S_IFDIR),
            ("composer.json", look("composer.json"), SFlag::S_IFREG),
            ("vendor", look("vendor"), SFlag::S_IFDIR),
            (AUTOLOADER, look(AUTOLOADER), SFlag::S_IFREG),
        ];
        for (name, file, kind) in parts {
            let file = match file {
                Ok(file) if is(&file, kind) => file,
                Ok(_) => return Some(format!("{name} is a link, or something else")),
                Err(Errno::ENOENT) if name == "composer.json" => continue,
                Err(errno) => return Some(format!("{name} cannot be looked at: {errno}")),
            };
            if let Some(why) = self.objection(name, &file, false, others) {
                return Some(why);
            }
        }
        self.objection_to_place(dir, path)
    }

    /// What speaks against where a directory is: that others could put another one in its place.
    fn objection_to_place(&self, dir: &OwnedFd, path: &Path) -> Option<String> {
        let others = Mode::S_IWGRP | Mode::S_IWOTH;
        let mut dir = openat(dir, "..", DIRECTORY, Mode::empty());
        let mut above = path.ancestors().skip(1);
        loop {
            let path = above.next()?;
            let here = match &dir {
                Ok(dir) => fstat(dir),
                Err(errno) => Err(*errno),
            };
            let shown = path.display();
            let here = match here {
                Ok(here) => here,
                Err(errno) => return Some(format!("{shown} cannot be looked at: {errno}")),
            };
            let mode = Mode::from_bits_truncate(here.st_mode);
            let is_shared = mode.intersects(others) && !mode.contains(Mode::S_ISVTX);
            if is_shared || !self.owns(&here) && !Uid::from_raw(here.st_uid).is_root() {
                return Some(format!(
                    "others can put another one in its place in {shown}"
                ));
            }
            let up = dir.and_then(|dir| openat(&dir, "..", DIRECTORY, Mode::empty()));
            dir = up;
        }
    }

    fn objection(&self, name: &str, file: &FileStat, is_fine: bool, mode: Mode) -> Option<String> {
        let what = if name.is_empty() { "it" } else { name };
        if !self.owns(file) && !is_fine {
            let uid = Uid::from_raw(file.st_uid);
            let user = User::from_uid(uid).ok().flatten();
            let user = user.map_or_else(|| format!("user {uid}"), |user| user.name);
            return Some(format!("{what} belongs to {user}"));
        }
        let is_open = Mode::from_bits_truncate(file.st_mode).intersects(mode);
        is_open.then(|| format!("{what} can be written by others"))
    }
}
