//! Files and directories that are looked up once. Checks and later uses then refer to the same
//! inode, wherever the path leads by then: a project's owner can change its paths at any time.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use serde::{Deserialize, Serialize};

use crate::RunAs;

/// Identifies a file as long as it is open somewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Inode {
    /// The device number of its file system.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
}

impl Inode {
    pub(crate) fn of(stat: &FileStat) -> Self {
        Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
        }
    }
}

/// A file or directory that was found. Copies share the descriptor, which keeps the inode from
/// being reused.
#[derive(Clone, Debug)]
pub struct Place {
    path: PathBuf,
    file: Arc<OwnedFd>,
    inode: Inode,
    mode: u32,
    owner: RunAs,
}

/// Equal: the same file at the same path.
impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.inode) == (&other.path, other.inode)
    }
}

impl Eq for Place {}

/// Refers to a file without opening it for access (open(2), `O_PATH`).
const POINT: OFlag = OFlag::O_PATH.union(OFlag::O_CLOEXEC);
/// The same without following a link.
const POINT_ITSELF: OFlag = POINT.union(OFlag::O_NOFOLLOW);
/// For reading a regular file. `O_NONBLOCK` keeps open(2) from waiting for the holder of a lease
/// (fcntl(2), "Leases").
const READ: OFlag = OFlag::O_RDONLY
    .union(OFlag::O_NONBLOCK)
    .union(OFlag::O_CLOEXEC);

impl Place {
    /// Finds what a path leads to, following links, as the calling thread's user.
    ///
    /// # Errors
    /// If the path cannot be resolved or opened.
    pub fn find(named: &Path) -> io::Result<Self> {
        let (file, is_real) = find(named)?;
        let path = match is_real {
            // The kernel need not be asked for it, which takes longer than to find the file.
            true => Ok(named.to_owned()),
            false => std::fs::read_link(by_number(file.as_fd())),
        };
        let path = match path {
            Ok(found) => found,
            // Without /proc, resolves the name again, which must lead to the same inode.
            Err(_) => {
                let found = named.canonicalize()?;
                let again = openat(AT_FDCWD, &found, POINT_ITSELF, Mode::empty())?;
                if Inode::of(&fstat(&again)?) != Inode::of(&fstat(&file)?) {
                    return Err(Errno::ESTALE.into());
                }
                found
            }
        };
        let stat = fstat(&file)?;
        // For a deleted file, the link read from /proc ends in ` (deleted)`.
        if stat.st_nlink == 0 {
            return Err(Errno::ENOENT.into());
        }
        Ok(Self::new(path, file, &stat))
    }

    fn new(path: PathBuf, file: OwnedFd, stat: &FileStat) -> Self {
        Self {
            path,
            file: Arc::new(file),
            inode: Inode::of(stat),
            mode: stat.st_mode,
            owner: RunAs {
                uid: stat.st_uid,
                gid: stat.st_gid,
            },
        }
    }

    /// The path where it was found: absolute and without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A descriptor that refers to it (open(2), `O_PATH`).
    #[must_use]
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Its inode.
    #[must_use]
    pub fn inode(&self) -> Inode {
        self.inode
    }

    /// Type and permission bits, when it was found.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// The owner when it was found.
    #[must_use]
    pub fn owner(&self) -> RunAs {
        self.owner
    }

    /// Whether it is a directory.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        self.kind() == SFlag::S_IFDIR
    }

    /// Whether it is a regular file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.kind() == SFlag::S_IFREG
    }

    /// Whether it is a socket.
    #[must_use]
    pub fn is_socket(&self) -> bool {
        self.kind() == SFlag::S_IFSOCK
    }

    fn kind(&self) -> SFlag {
        SFlag::from_bits_truncate(self.mode) & SFlag::S_IFMT
    }

    /// Opens exactly this directory for reading.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(openat(self.descriptor(), ".", flags, Mode::empty())?)
    }

    /// Whether this directory has no entries.
    ///
    /// # Errors
    /// Those of open(2).
    pub fn is_empty(&self) -> io::Result<bool> {
        let mut dir = Dir::from_fd(self.open()?)?;
        Ok(dir
            .iter()
            .flatten()
            .all(|entry| [c".", c".."].contains(&entry.file_name())))
    }

    /// Finds what is below this directory at a relative path, which may contain neither links nor
    /// `..`.
    ///
    /// # Errors
    /// Those of open(2); `ENOTDIR` or `ELOOP` for a link, `EXDEV` for `..`.
    pub fn below(&self, path: &Path) -> io::Result<Self> {
        let file = point_below(self.descriptor(), path)?;
        let stat = fstat(&file)?;
        if SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFLNK {
            return Err(Errno::ELOOP.into());
        }
        Ok(Self::new(self.path.join(path), file, &stat))
    }

    /// Reads a regular file below this directory; other kinds of files are not opened.
    ///
    /// # Errors
    /// As for [`Place::below`]; `EINVAL` if it is not a regular file, `EFBIG` if it has more than
    /// `most` bytes.
    pub fn read(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        read_below(self.descriptor(), path, most)
    }
}

/// Opens what a path leads to with `O_PATH`, but follows no magic links of proc(5), which bypass
/// path resolution. Also returns whether it is known that the path is the one that the kernel has for
/// it.
fn find(path: &Path) -> nix::Result<(OwnedFd, bool)> {
    let look = |resolve| openat2(AT_FDCWD, path, OpenHow::new().flags(POINT).resolve(resolve));
    if is_plain(path)
        && let Ok(found) = look(ResolveFlag::RESOLVE_NO_SYMLINKS)
    {
        return Ok((found, true));
    }
    let found = match look(ResolveFlag::RESOLVE_NO_MAGICLINKS) {
        // Before kernel 5.6, or an older container profile.
        Err(Errno::ENOSYS | Errno::EPERM) => openat(AT_FDCWD, path, POINT, Mode::empty()),
        found => found,
    };
    Ok((found?, false))
}

/// Whether a path that goes through no links is the one that the kernel has for the file: absolute,
/// and nothing in it can be left out.
fn is_plain(path: &Path) -> bool {
    let text = path.as_os_str().as_bytes();
    let mut names = text.split(|byte| *byte == b'/');
    names.next() == Some(b"") && names.all(|name| !matches!(name, b"" | b"." | b".."))
}

/// The magic link of proc(5) that leads to the descriptor's file itself, without a name lookup.
pub(crate) fn by_number(file: BorrowedFd<'_>) -> String {
    format!("/proc/thread-self/fd/{}", file.as_raw_fd())
}

/// Opens what is below a directory with `O_PATH`, without following links; the last name may be
/// one.
pub(crate) fn point_below(directory: BorrowedFd<'_>, path: &Path) -> nix::Result<OwnedFd> {
    let mut found = openat(directory, ".", POINT | OFlag::O_DIRECTORY, Mode::empty())?;
    let mut names = path.components().peekable();
    while let Some(component) = names.next() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(Errno::EXDEV);
            }
        };
        let flags = match names.peek() {
            Some(_) => POINT_ITSELF | OFlag::O_DIRECTORY,
            None => POINT_ITSELF,
        };
        found = openat(&found, name, flags, Mode::empty())?;
    }
    Ok(found)
}

/// Reads a regular file below a directory, as [`Place::read`] does.
pub(crate) fn read_below(directory: BorrowedFd<'_>, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (parent, name) = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => (point_below(directory, parent)?, name),
        _ => return Err(Errno::EINVAL.into()),
    };
    read_in(parent.as_fd(), name, most)
}

fn read_in(directory: BorrowedFd<'_>, name: &OsStr, most: u64) -> io::Result<Vec<u8>> {
    // Checks the type before opening, since opening a device can have side effects.
    let pointed = openat(directory, name, POINT_ITSELF, Mode::empty())?;
    let kind = SFlag::from_bits_truncate(fstat(&pointed)?.st_mode) & SFlag::S_IFMT;
    if kind != SFlag::S_IFREG {
        return Err(Errno::EINVAL.into());
    }
    let file = openat(
        AT_FDCWD,
        by_number(pointed.as_fd()).as_str(),
        READ,
        Mode::empty(),
    )?;
    let mut content = Vec::new();
    let limit = most.saturating_add(1);
    File::from(file).take(limit).read_to_end(&mut content)?;
    if content.len() as u64 == limit {
        return Err(Errno::EFBIG.into());
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_place_stays_the_file_that_was_found() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("one"), dir.path().join("two"));
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("file"), "of one").unwrap();
        symlink(&path, dir.path().join("link")).unwrap();
        let place = Place::find(&dir.path().join("link")).unwrap();
        assert_eq!(place.path(), path.canonicalize().unwrap());
        std::fs::rename(&path, &other).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(place.read(Path::new("file"), 99).unwrap(), b"of one");
        assert_ne!(place, Place::find(&path).unwrap());
    }

    #[test]
    fn every_way_to_a_place_leads_to_the_one_path_that_it_has() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap().join("a/b");
        std::fs::create_dir_all(&real).unwrap();
        symlink("a", real.ancestors().nth(2).unwrap().join("link")).unwrap();
        let top = real.ancestors().nth(2).unwrap().to_str().unwrap();
        for way in [
            "a/b", "a//b", "a/b/", "a/./b", "a/b/.", "a/b/../b", "link/b",
        ] {
            let place = Place::find(Path::new(&format!("{top}/{way}"))).unwrap();
            assert_eq!(place.path(), real, "{way}");
        }
        assert!(is_plain(&real) && !is_plain(Path::new("a")) && !is_plain(Path::new("/")));
        assert!(Place::find(&real.join("none")).is_err());
    }

    #[test]
    fn below_a_place_no_link_is_followed_and_nothing_but_files_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir(path("dir")).unwrap();
        std::fs::write(path("dir/file"), "12345").unwrap();
        symlink("dir", path("way")).unwrap();
        symlink("dir/file", path("link")).unwrap();
        nix::unistd::mkfifo(&path("pipe"), Mode::S_IRWXU).unwrap();
        let place = Place::find(dir.path()).unwrap();
        let read = |name: &str| {
            place
                .read(Path::new(name), 5)
                .map_err(|error| Errno::from_raw(error.raw_os_error().unwrap()))
        };
        assert_eq!(read("dir/file").unwrap(), b"12345");
        assert_eq!(read("way/file"), Err(Errno::ENOTDIR));
        assert_eq!(read("link"), Err(Errno::EINVAL));
        assert_eq!(read("pipe"), Err(Errno::EINVAL));
        assert_eq!(read("dir"), Err(Errno::EINVAL));
        assert_eq!(read("dir/../dir/file"), Err(Errno::EXDEV));
        assert_eq!(read("nothing"), Err(Errno::ENOENT));
        std::fs::write(path("dir/file"), "123456").unwrap();
        assert_eq!(read("dir/file"), Err(Errno::EFBIG));
        assert!(place.below(Path::new("link")).is_err());
        assert!(place.below(Path::new("dir")).unwrap().is_directory());
    }
}
