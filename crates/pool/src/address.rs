//! Where a pool is found: a socket in a directory that only its user can use, under a name that
//! only processes of equal rights and the same build look for.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use altair_sandbox::Rights;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::socket::UnixAddr;
use nix::sys::stat::{FileStat, Mode, fstat, fstatat, mkdirat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use sha2::{Digest, Sha256};

/// The variable that names the user's directory for sockets (XDG Base Directory Specification).
pub(crate) const RUNTIME: &str = "XDG_RUNTIME_DIR";

/// How long a stamp says that the pool was asked for.
const STAMP: Duration = Duration::from_secs(10 * 60);

/// The directory and the name of a pool's socket.
#[derive(Debug)]
pub(crate) struct Address {
    directory: OwnedFd,
    path: PathBuf,
    name: String,
}

impl Address {
    /// The address of the pool for processes of these rights, in the first directory that can be
    /// used.
    ///
    /// # Errors
    /// Why none can be used; the last reason.
    pub(crate) fn of(rights: &Rights) -> io::Result<Self> {
        let uid = geteuid();
        let runtime = std::env::var_os(RUNTIME).filter(|dir| !dir.is_empty());
        let places = [
            runtime.map(|dir| (PathBuf::from(dir), "altair".to_owned())),
            Some((format!("/run/user/{uid}").into(), "altair".to_owned())),
            Some(("/tmp".into(), format!("altair-{uid}"))),
            Some(("/dev/shm".into(), format!("altair-{uid}"))),
        ];
        let mut why = io::Error::from(Errno::ENOENT);
        for (parent, name) in places.into_iter().flatten() {
            match own_directory(&parent, &name) {
                Ok(directory) => return Ok(Self::within(directory, parent.join(name), rights)),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// The address in a directory that a client has found.
    ///
    /// # Errors
    /// If it is none of this user's own.
    pub(crate) fn at(path: &Path, rights: &Rights) -> io::Result<Self> {
        Ok(Self::within(
            own_directory_at(path)?,
            path.to_owned(),
            rights,
        ))
    }

    /// An address that was found before, if its directory is still this user's own.
    ///
    /// # Errors
    /// As for [`Address::at`].
    pub(crate) fn again(path: &Path, name: &str) -> io::Result<Self> {
        Ok(Self {
            directory: own_directory_at(path)?,
            path: path.to_owned(),
            name: name.to_owned(),
        })
    }

    fn within(directory: OwnedFd, path: PathBuf, rights: &Rights) -> Self {
        let mut hash = Sha256::new();
        hash.update(altair_engine::BUILD);
        hash.update(format!("{rights:?}"));
        let name = hash
            .finalize()
            .iter()
            .take(12)
            .fold(String::with_capacity(24), |name, byte| {
                format!("{name}{byte:02x}")
            });
        Self {
            directory,
            path,
            name,
        }
    }

    /// The path of its directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name of its socket.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The address of its socket: by descriptor, so that no other directory is meant than the one
    /// that was checked.
    ///
    /// # Errors
    /// Never: it is short.
    pub(crate) fn socket(&self) -> io::Result<UnixAddr> {
        self.file_address(&self.name)
    }

    fn file_address(&self, name: &str) -> io::Result<UnixAddr> {
        let directory = self.directory.as_raw_fd();
        Ok(UnixAddr::new(
            format!("/proc/self/fd/{directory}/{name}").as_str(),
        )?)
    }

    /// Binds a socket, which replaces what is at the address, and holds the address as long as the
    /// lock lives.
    ///
    /// # Errors
    /// `EWOULDBLOCK`: a living pool has it.
    pub(crate) fn bind(
        &self,
        bind: impl FnOnce(&UnixAddr) -> io::Result<()>,
    ) -> io::Result<Flock<File>> {
        let lock = self.lock()?;
        // It has done its work.
        self.remove(&self.with("asked"));
        // Bound beside and renamed: whoever connects finds the old one, none, or this one.
        let beside = self.with("new");
        self.remove(&beside);
        bind(&self.file_address(&beside)?)?;
        nix::fcntl::renameat(
            &self.directory,
            beside.as_str(),
            &self.directory,
            self.name.as_str(),
        )?;
        Ok(lock)
    }

    fn lock(&self) -> io::Result<Flock<File>> {
        let name = self.with("lock");
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let file = openat(
            &self.directory,
            name.as_str(),
            flags,
            Mode::S_IRUSR | Mode::S_IWUSR,
        )?;
        let lock = Flock::lock(File::from(file), FlockArg::LockExclusiveNonblock);
        let lock = lock.map_err(|(_, errno)| errno)?;
        // Who held it before has removed it, and another one may be locked already.
        match self.inode_of(&name) == Some(inode(&fstat(&*lock)?)) {
            true => Ok(lock),
            false => Err(Errno::EWOULDBLOCK.into()),
        }
    }

    /// The device and inode of what is at the address.
    pub(crate) fn inode(&self) -> Option<(u64, u64)> {
        self.inode_of(&self.name)
    }

    fn inode_of(&self, name: &str) -> Option<(u64, u64)> {
        let found = fstatat(&self.directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).ok()?;
        Some(inode(&found))
    }

    /// Removes the socket, if it is the one with this inode, and the lock, which must be held.
    pub(crate) fn leave(&self, inode: Option<(u64, u64)>) {
        if inode.is_some() && self.inode() == inode {
            self.remove(&self.name);
        }
        self.remove(&self.with("lock"));
    }

    /// Stamps that the pool was asked for. Returns whether it was not long before.
    pub(crate) fn stamp(&self) -> bool {
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        let stamp = self.with("asked");
        let asked = openat(&self.directory, stamp.as_str(), flags | OFlag::O_EXCL, mode);
        if asked.is_ok() {
            return false;
        }
        let Ok(file) = openat(&self.directory, stamp.as_str(), flags, mode).map(File::from) else {
            return false;
        };
        let before = file.metadata().and_then(|known| known.modified());
        let _ = file.set_modified(SystemTime::now());
        before.is_ok_and(|before| before.elapsed().map_or(true, |elapsed| elapsed < STAMP))
    }

    fn with(&self, end: &str) -> String {
        format!("{}.{end}", self.name)
    }

    fn remove(&self, name: &str) {
        // It may be gone, or never have been.
        let _ = unlinkat(&self.directory, name, UnlinkatFlags::NoRemoveDir);
    }
}

fn inode(found: &FileStat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}

fn own_directory_at(path: &Path) -> io::Result<OwnedFd> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::EINVAL.into());
    };
    own_directory(parent, &name.to_string_lossy())
}

/// Opens a directory of this user's own and nobody else's, and makes it if it is not there. No part
/// of the path is a link.
fn own_directory(parent: &Path, name: &str) -> io::Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let how = OpenHow::new()
        .flags(flags)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    let parent = openat2(nix::fcntl::AT_FDCWD, parent, how)?;
    match mkdirat(&parent, name, Mode::S_IRWXU) {
        Ok(()) | Err(Errno::EEXIST) => {}
        Err(errno) => return Err(errno.into()),
    }
    let directory = openat(
        parent.as_fd(),
        name,
        flags | OFlag::O_NOFOLLOW,
        Mode::empty(),
    )?;
    let found = fstat(&directory)?;
    let is_own = found.st_uid == geteuid().as_raw() && found.st_mode & 0o077 == 0;
    match is_own {
        true => Ok(directory),
        false => Err(Errno::EACCES.into()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_a_directory_of_ones_own_is_taken() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let rights = Rights::own().unwrap();
        Address::at(&base.join("own"), &rights).unwrap();
        let mode = std::fs::metadata(base.join("own")).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o700);

        std::fs::create_dir(base.join("open")).unwrap();
        std::fs::set_permissions(base.join("open"), PermissionsExt::from_mode(0o750)).unwrap();
        symlink("own", base.join("link")).unwrap();
        symlink(&base, base.join("way")).unwrap();
        for refused in ["open", "link", "way/own", "missing/own"] {
            assert!(
                Address::at(&base.join(refused), &rights).is_err(),
                "{refused}"
            );
        }
    }

    #[test]
    fn the_second_ask_is_not_the_first() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().canonicalize().unwrap().join("own");
        let address = Address::at(&path, &Rights::own().unwrap()).unwrap();
        assert!(!address.stamp());
        assert!(address.stamp());
        let stamp = File::open(path.join(address.with("asked"))).unwrap();
        stamp.set_modified(SystemTime::now() - 2 * STAMP).unwrap();
        assert!(!address.stamp());
        assert!(address.stamp());
    }

    #[test]
    fn one_pool_holds_an_address() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().canonicalize().unwrap().join("own");
        let address = Address::at(&path, &Rights::own().unwrap()).unwrap();
        let bind = |at: &UnixAddr| std::fs::write(at.path().unwrap(), "");
        let held = address.bind(bind).unwrap();
        let inode = address.inode();
        let refused = address.bind(bind).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        drop(held);
        let _held = address.bind(bind).unwrap();
        assert_ne!(address.inode(), None);
        address.leave(inode.map(|(device, _)| (device, 0)));
        assert_ne!(address.inode(), None, "another one's socket stays");
        address.leave(address.inode());
        assert_eq!(address.inode(), None);
    }
}
