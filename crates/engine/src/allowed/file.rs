//! The files of what is allowed: where they are, and whether they are the user's own.
//!
//! A file is looked up name by name, each by the descriptor of the directory before it, so that what
//! is checked is what is read. Neither the file nor any directory or link on the way may be such that
//! somebody else could have put another one there.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, readlinkat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat, fstatat};
use nix::unistd::{Uid, User, geteuid};

use super::content::{Content, Mistake};
use super::error::{AllowedError, Untrusted};

/// The machine's file, which root writes.
const MACHINES: &str = "/etc/altair/config.toml";
/// The user's file, below the home.
const USERS: &str = ".config/altair/config.toml";

/// Bytes of a file; a line of it has some dozens.
const BYTES_MAX: u64 = 1 << 20;
/// Links on the way to a file, as the kernel's own limit (path_resolution(7)).
const LINKS_MAX: usize = 40;

const POINT: OFlag = OFlag::O_PATH
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_CLOEXEC);
const READ: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NOFOLLOW)
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_NOCTTY)
    .union(OFlag::O_CLOEXEC);

/// A file of what is allowed, which may not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    file: PathBuf,
    /// Whose it has to be.
    user: Uid,
}

impl Source {
    /// The machine's file.
    #[must_use]
    pub fn machines() -> Self {
        Self {
            file: MACHINES.into(),
            user: Uid::from_raw(0),
        }
    }

    /// The effective user's file, in the home that the user database has for it: a program, and
    /// whoever controls its environment, can set `HOME`. `None` if there is no home.
    #[must_use]
    pub fn users() -> Option<Self> {
        Self::of(geteuid())
    }

    /// Another user's file, as [`Source::users`].
    pub(crate) fn of(user: Uid) -> Option<Self> {
        let home = User::from_uid(user).ok().flatten()?.dir;
        home.is_absolute().then(|| Self {
            file: home.join(USERS),
            user,
        })
    }

    #[cfg(test)]
    pub(super) fn of_this_user(file: PathBuf) -> Self {
        let user = geteuid();
        Self { file, user }
    }

    /// Both, the machine's first.
    pub fn all() -> impl Iterator<Item = Self> {
        std::iter::once(Self::machines()).chain(Self::users())
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// What it says; nothing if it is not there, or `root` contains it or what leads to it.
    pub(super) fn read(&self, root: Option<&Path>) -> Result<Content, AllowedError> {
        match self.text(root)? {
            Some(text) => Content::parse(&text).map_err(|mistake| self.invalid(mistake)),
            None => Ok(Content::default()),
        }
    }

    /// What it allows a root, as options of `altair allow`.
    ///
    /// # Errors
    /// As for [`allowed_for`](super::allowed_for).
    pub(crate) fn options(&self, root: &Path) -> Result<Vec<String>, AllowedError> {
        let content = self.read(Some(root))?;
        let entries = content.entries().filter(|(key, _)| key.covers(root));
        let options = entries.flat_map(|(_, entry)| {
            let services = entry.services().map(|one| format!("--service={one}"));
            let env = entry.env().map(|one| format!("--env={one}"));
            let read = entry.read().map(|one| format!("--read={}", one.display()));
            let ms = entry
                .max_timeout_ms()
                .map(|ms| format!("--max-timeout-ms={ms}"));
            let mb = entry
                .max_memory_mb()
                .map(|mb| format!("--max-memory-mb={mb}"));
            services.chain(env).chain(read).chain(ms).chain(mb)
        });
        Ok(options.collect())
    }

    pub(super) fn text(&self, root: Option<&Path>) -> Result<Option<String>, AllowedError> {
        let Some(bytes) = self.bytes(root)? else {
            return Ok(None);
        };
        let text = String::from_utf8(bytes);
        text.map(Some)
            .map_err(|_| self.invalid((None, "it is not encoded in UTF-8".to_owned())))
    }

    /// Whether what it says about a root is the root's own word: the file, or what leads to it, is in
    /// it, or would be if it were there.
    #[must_use]
    pub fn is_in(&self, root: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        let mut above = self.file.ancestors().filter_map(real);
        self.path().starts_with(root)
            || above.any(|directory| directory.starts_with(root))
            || Way::to(&self.file, self.user).is_ok_and(|way| way.is_in(root))
    }

    /// The way to its directory, which has to be there and the user's alone.
    pub(super) fn trusted_way(&self) -> Result<Way, AllowedError> {
        let mut way =
            Way::to(&self.file, self.user).map_err(|errno| self.unusable(errno.into()))?;
        match way.objection.take() {
            Some((place, why)) => Err(self.untrusted(place, why)),
            None => Ok(way),
        }
    }

    fn bytes(&self, root: Option<&Path>) -> Result<Option<Vec<u8>>, AllowedError> {
        let way = match Way::to(&self.file, self.user) {
            Ok(way) => way,
            Err(Errno::ENOENT | Errno::ENOTDIR) => return Ok(None),
            Err(errno) => return Err(self.unusable(errno.into())),
        };
        if root.is_some_and(|root| way.is_in(root)) {
            return Ok(None);
        }
        let stat = match fstatat(
            &way.directory,
            way.name.as_os_str(),
            AtFlags::AT_SYMLINK_NOFOLLOW,
        ) {
            Ok(stat) => stat,
            Err(Errno::ENOENT) => return Ok(None),
            Err(errno) => return Err(self.unusable(errno.into())),
        };
        let own = objection_to_file(&stat, self.user).map(|why| (self.file.clone(), why));
        if let Some((place, why)) = way.objection.or(own) {
            return Err(self.untrusted(place, why));
        }
        let file = openat(&way.directory, way.name.as_os_str(), READ, Mode::empty());
        let file = file.map_err(|errno| self.unusable(errno.into()))?;
        // It is the user's own, who may have replaced it since.
        let stat = fstat(&file).map_err(|errno| self.unusable(errno.into()))?;
        if let Some(why) = objection_to_file(&stat, self.user) {
            return Err(self.untrusted(self.file.clone(), why));
        }
        read(file).map(Some).map_err(|error| self.unusable(error))
    }

    pub(super) fn invalid(&self, (line, message): Mistake) -> AllowedError {
        AllowedError::Invalid {
            file: self.file.clone(),
            line,
            message,
        }
    }

    pub(super) fn unusable(&self, source: io::Error) -> AllowedError {
        AllowedError::Unusable {
            file: self.file.clone(),
            source,
        }
    }

    fn untrusted(&self, place: PathBuf, why: Untrusted) -> AllowedError {
        AllowedError::Untrusted {
            file: self.file.clone(),
            place,
            why,
        }
    }
}

fn read(file: OwnedFd) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::from(file)
        .take(BYTES_MAX + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 > BYTES_MAX {
        true => Err(Errno::EFBIG.into()),
        false => Ok(bytes),
    }
}

/// The way to a file: the directory that it is in, and what speaks against anything on the way.
pub(super) struct Way {
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
    /// The directories that were gone through, by their real paths.
    directories: Vec<PathBuf>,
    objection: Option<(PathBuf, Untrusted)>,
}

impl Way {
    /// Looks up the directory of a file, following links.
    fn to(file: &Path, user: Uid) -> nix::Result<Self> {
        let mut names: VecDeque<OsString> = names_of(file).collect();
        let name = names.pop_back().ok_or(Errno::EINVAL)?;
        let mut at = PathBuf::from("/");
        let mut way = Self {
            directory: open("/", POINT | OFlag::O_DIRECTORY, Mode::empty())?,
            name,
            directories: Vec::new(),
            objection: None,
        };
        way.enter(&at, user)?;
        let mut links = 0;
        while let Some(name) = names.pop_front() {
            let found = openat(&way.directory, name.as_os_str(), POINT, Mode::empty())?;
            let stat = fstat(&found)?;
            if kind(&stat) == SFlag::S_IFLNK {
                links += 1;
                if links > LINKS_MAX {
                    return Err(Errno::ELOOP);
                }
                way.object(&at.join(&name), objection_to_owner(&stat, user));
                let target = PathBuf::from(readlinkat(&found, "")?);
                if target.is_absolute() {
                    way.directory = open("/", POINT | OFlag::O_DIRECTORY, Mode::empty())?;
                    at = PathBuf::from("/");
                }
                for name in names_of(&target).collect::<Vec<_>>().into_iter().rev() {
                    names.push_front(name);
                }
                continue;
            }
            if kind(&stat) != SFlag::S_IFDIR {
                return Err(Errno::ENOTDIR);
            }
            match name == ".." {
                true => drop(at.pop()),
                false => at.push(&name),
            }
            way.directory = found;
            way.enter(&at, user)?;
        }
        Ok(way)
    }

    /// Whether anything on the way is a directory or in it.
    fn is_in(&self, directory: &Path) -> bool {
        self.directories
            .iter()
            .any(|one| one.starts_with(directory))
    }

    fn enter(&mut self, at: &Path, user: Uid) -> nix::Result<()> {
        let stat = fstat(self.directory.as_fd())?;
        self.object(at, objection_to_directory(&stat, user));
        self.directories.push(at.to_owned());
        Ok(())
    }

    /// The first is told.
    fn object(&mut self, place: &Path, why: Option<Untrusted>) {
        if self.objection.is_none() {
            self.objection = why.map(|why| (place.to_owned(), why));
        }
    }
}

fn names_of(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

fn kind(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

/// In a directory that is sticky, others cannot replace what is not theirs (inode(7)); whose that is,
/// the next look tells. A group's bit is also that of an access list that lets others write (acl(5)).
fn objection_to_directory(stat: &FileStat, user: Uid) -> Option<Untrusted> {
    let is_sticky = Mode::from_bits_truncate(stat.st_mode).contains(Mode::S_ISVTX);
    let writable = objection_to_mode(stat).filter(|_| !is_sticky);
    objection_to_owner(stat, user).or(writable)
}

fn objection_to_file(stat: &FileStat, user: Uid) -> Option<Untrusted> {
    match kind(stat) {
        SFlag::S_IFREG => {}
        SFlag::S_IFLNK => return Some(Untrusted::Link),
        _ => return Some(Untrusted::Kind),
    }
    let foreign = Untrusted::Foreign {
        owner: stat.st_uid,
        user: user.as_raw(),
    };
    (stat.st_uid != user.as_raw())
        .then_some(foreign)
        .or(objection_to_mode(stat))
}

fn objection_to_mode(stat: &FileStat) -> Option<Untrusted> {
    let mode = Mode::from_bits_truncate(stat.st_mode);
    let others = Mode::S_IWGRP | Mode::S_IWOTH;
    mode.intersects(others).then(|| Untrusted::Writable {
        mode: mode.bits() & 0o7777,
    })
}

fn objection_to_owner(stat: &FileStat, user: Uid) -> Option<Untrusted> {
    let is_own = [0, user.as_raw()].contains(&stat.st_uid);
    (!is_own).then(|| Untrusted::Foreign {
        owner: stat.st_uid,
        user: user.as_raw(),
    })
}
