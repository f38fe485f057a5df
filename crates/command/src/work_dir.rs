//! The directory that a command works in.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use altair_sandbox::{Place, RunAs, other_user};
use nix::errno::Errno;
use nix::sys::stat::fstat;
use nix::unistd::{AccessFlags, access, fchown, geteuid};

use crate::{CommandError, Driver, PolicyPaths};

/// How the name of each begins.
pub const PREFIX: &str = "sandbox-";
/// How many random letters and digits follow. The names of containers are made from them, and an
/// engine may serve several machines' directories.
const RANDOM: usize = 12;
/// Where a command sees its directory, wherever it is.
pub const SEEN_AT: &str = "/work";
/// Whom commands of root run as where a driver changes the user: `nobody` on most systems.
pub const NOBODY: RunAs = RunAs {
    uid: 65534,
    gid: 65534,
};

/// Checks the base directory of a policy, and resolves its symlinks.
///
/// # Errors
/// [`CommandError::Invalid`] if it is no directory in which this process can make files.
pub fn base_directory(base: &Path) -> Result<PathBuf, CommandError> {
    let needed = AccessFlags::W_OK | AccessFlags::X_OK;
    base.canonicalize()
        .ok()
        .filter(|path| path.is_dir() && access(path, needed).is_ok())
        .ok_or_else(|| invalid(base))
}

/// Checks the base directory of a command that works in it and need not make files there.
///
/// # Errors
/// [`CommandError::Invalid`] if it is no directory that this process can enter.
pub fn working_directory(base: &Path) -> Result<PathBuf, CommandError> {
    base.canonicalize()
        .ok()
        .filter(|path| path.is_dir() && access(path, AccessFlags::X_OK).is_ok())
        .ok_or_else(|| {
            CommandError::Invalid(format!(
                "The working directory cannot be entered: {}",
                base.display()
            ))
        })
}

fn invalid(base: &Path) -> CommandError {
    CommandError::Invalid(format!(
        "Base directory is invalid or not writable: {}",
        base.display()
    ))
}

/// A fresh directory for one command. It is removed when dropped, with whatever the command has
/// left in it; no symlink is followed.
#[derive(Debug)]
pub struct WorkDir {
    place: Place,
    owner: Option<RunAs>,
}

impl WorkDir {
    /// Makes one below `base`, for whom the driver runs commands as.
    ///
    /// # Errors
    /// [`CommandError::Invalid`] if none can be made there, [`CommandError::Start`] if something
    /// has run out: descriptors, or the disk's space.
    pub fn create(base: &Path, driver: Driver) -> Result<Self, CommandError> {
        Self::create_for(base, user(driver))
    }

    /// Makes one below `base` for a user; `None`: the caller.
    ///
    /// # Errors
    /// As for [`WorkDir::create`].
    pub fn create_for(base: &Path, owner: Option<RunAs>) -> Result<Self, CommandError> {
        let inside = base_directory(base)?;
        Self::make(&inside, owner).map_err(|error| {
            match error.raw_os_error().map(Errno::from_raw) {
                Some(
                    Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOSPC | Errno::EDQUOT,
                ) => CommandError::Start(format!(
                    "No directory can be made in {}: {error}",
                    base.display()
                )),
                _ => invalid(base),
            }
        })
    }

    fn make(base: &Path, owner: Option<RunAs>) -> io::Result<Self> {
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(RANDOM)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(base)?;
        let place = match Self::exactly(base, dir.path()) {
            Ok(place) => place,
            Err(error) => {
                // Dropping it would need a descriptor, and there may be none left.
                let _ = std::fs::remove_dir(dir.keep());
                return Err(error);
            }
        };
        // From here on it is removed whatever happens.
        let _ = dir.keep();
        let made = Self { place, owner };
        if let Some(owner) = other_user(owner) {
            fchown(
                made.place.open()?,
                Some(owner.uid.into()),
                Some(owner.gid.into()),
            )?;
        }
        Ok(made)
    }

    /// The directory that was just made. Whoever owns `base` can have put another in its place; one
    /// that is not the caller's own, private and empty is not taken.
    fn exactly(base: &Path, path: &Path) -> io::Result<Place> {
        let name = path.file_name().unwrap_or_default();
        let place = Place::find(base)?.below(Path::new(name))?;
        let is_own = place.is_directory()
            && place.owner().uid == geteuid().as_raw()
            && place.mode() & 0o7777 == 0o700
            && place.is_empty()?;
        is_own
            .then_some(place)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// Where it is on the host, without symlinks.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// The directory itself, wherever its path leads by now.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // Most commands leave it empty, and where it was made.
        let is_gone = std::fs::remove_dir(self.path()).is_ok()
            && fstat(self.place.descriptor()).is_ok_and(|stat| stat.st_nlink == 0);
        if !is_gone {
            altair_sandbox::remove_place(&self.place, self.owner);
        }
    }
}

/// Whom a driver runs commands as; `None`: the caller. No container has a process of the host's
/// root.
#[must_use]
pub fn user(driver: Driver) -> Option<RunAs> {
    match driver {
        Driver::Docker | Driver::Podman => geteuid().is_root().then_some(NOBODY),
        Driver::Host | Driver::Native | Driver::Firejail | Driver::Bubblewrap => None,
    }
}

/// Where the command sees its work directory: at [`SEEN_AT`], or at its own place.
///
/// A container has a root of its own. Behind drivers that show the host's files there can be
/// something at that place already; then it is left alone, with the policy's paths below it. If the
/// whole root may be written, nothing is made in it either. Firejail puts nothing elsewhere
/// (`--bind` is root's alone).
#[must_use]
pub fn seen_at(driver: Driver, own: &Path, paths: &PolicyPaths) -> PathBuf {
    let has_one = || Path::new(SEEN_AT).symlink_metadata().is_ok();
    place(driver, own, paths, has_one)
}

/// The same for the driver `native`, which shows only what a policy names: at [`SEEN_AT`], unless
/// the policy names that or something below it.
#[must_use]
pub(crate) fn native_at(own: &Path, named: &[&[Place]]) -> PathBuf {
    let mut named = named.iter().copied().flatten();
    match named.any(|place| place.path().starts_with(SEEN_AT) || place.path() == Path::new("/")) {
        true => own.to_owned(),
        false => SEEN_AT.into(),
    }
}

fn place(
    driver: Driver,
    own: &Path,
    paths: &PolicyPaths,
    host_has_one: impl FnOnce() -> bool,
) -> PathBuf {
    let is_own = match driver {
        Driver::Docker | Driver::Podman => false,
        Driver::Host | Driver::Firejail => true,
        Driver::Native | Driver::Bubblewrap => {
            paths.writable.iter().any(|path| path == Path::new("/")) || host_has_one()
        }
    };
    if is_own { own } else { Path::new(SEEN_AT) }.to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt, symlink};

    #[test]
    fn it_is_private_and_gone_afterwards() {
        let base = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("kept"), "").unwrap();
        let work = WorkDir::create(base.path(), Driver::Bubblewrap).unwrap();
        let path = work.path().to_owned();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("sandbox-"), "{name}");
        assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o700);
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        symlink(outside.path(), path.join("a/b/out")).unwrap();
        std::fs::set_permissions(path.join("a"), Permissions::from_mode(0o0)).unwrap();
        drop(work);
        assert!(path.symlink_metadata().is_err());
        assert!(outside.path().join("kept").exists());
    }

    #[test]
    fn another_one_in_its_place_is_not_taken() {
        let base = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let is_taken = |name: &str| WorkDir::exactly(base.path(), &base.path().join(name)).is_ok();
        let make = |name: &str, mode: u32| {
            let path = base.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        };
        make("own", 0o700);
        assert!(is_taken("own"));
        symlink(outside.path(), base.path().join("link")).unwrap();
        assert!(!is_taken("link"));
        make("open", 0o755);
        assert!(!is_taken("open"));
        let full = make("full", 0o700);
        std::fs::write(full.join("file"), "").unwrap();
        assert!(!is_taken("full"));
        if geteuid().is_root() {
            std::os::unix::fs::chown(make("other", 0o700), Some(NOBODY.uid), None).unwrap();
            assert!(!is_taken("other"));
        }
    }

    #[test]
    fn what_somebody_puts_in_its_place_stays() {
        let base = tempfile::tempdir().unwrap();
        let work = WorkDir::create(base.path(), Driver::Bubblewrap).unwrap();
        let path = work.path().to_owned();
        std::fs::write(path.join("own"), "").unwrap();
        std::fs::rename(&path, base.path().join("elsewhere")).unwrap();
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("kept"), "").unwrap();
        drop(work);
        assert!(path.join("kept").exists());
        assert!(!base.path().join("elsewhere/own").exists());
    }

    #[test]
    fn the_names_in_it_keep_nothing_from_being_removed() {
        let base = tempfile::tempdir().unwrap();
        let work = WorkDir::create(base.path(), Driver::Bubblewrap).unwrap();
        let path = work.path().to_owned();
        for number in 1..40 {
            let below = path.join(format!(".altair-removed-{number}/below/more"));
            std::fs::create_dir_all(below).unwrap();
        }
        drop(work);
        assert!(path.symlink_metadata().is_err());
    }

    #[test]
    fn a_containers_is_never_roots() {
        let base = tempfile::tempdir().unwrap();
        let work = WorkDir::create(base.path(), Driver::Docker).unwrap();
        let meta = work.path().metadata().unwrap();
        let path = work.path().to_owned();
        match geteuid() {
            root if root.is_root() => assert_eq!((meta.uid(), meta.gid()), (65534, 65534)),
            user => assert_eq!(meta.uid(), user.as_raw()),
        }
        drop(work);
        assert!(path.symlink_metadata().is_err());
        let work = WorkDir::create(base.path(), Driver::Firejail).unwrap();
        assert_eq!(work.path().metadata().unwrap().uid(), geteuid().as_raw());
    }

    #[test]
    fn a_base_that_is_none_is_named() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [file.as_path(), Path::new("/nowhere"), Path::new("/proc")] {
            let error = WorkDir::create(path, Driver::Docker).unwrap_err();
            let expected = format!(
                "Base directory is invalid or not writable: {}",
                path.display()
            );
            assert_eq!(error, CommandError::Invalid(expected));
        }
    }

    #[test]
    fn a_base_may_be_a_symlink() {
        let base = tempfile::tempdir().unwrap();
        symlink("real", base.path().join("link")).unwrap();
        std::fs::create_dir(base.path().join("real")).unwrap();
        let work = WorkDir::create(&base.path().join("link"), Driver::Docker).unwrap();
        let real = base.path().canonicalize().unwrap().join("real");
        assert_eq!(work.path().parent().unwrap(), real);
    }

    #[test]
    fn it_is_seen_at_one_place_unless_the_host_has_something_there() {
        let own = Path::new("/tmp/sandbox-1");
        let fixed = Path::new("/work");
        let none = PolicyPaths::default();
        let all = PolicyPaths {
            writable: vec!["/".into()],
            ..PolicyPaths::default()
        };
        for driver in [Driver::Docker, Driver::Podman] {
            assert_eq!(place(driver, own, &all, || true), fixed);
        }
        for driver in [Driver::Host, Driver::Firejail] {
            assert_eq!(place(driver, own, &none, || false), own);
        }
        for driver in [Driver::Native, Driver::Bubblewrap] {
            assert_eq!(place(driver, own, &none, || false), fixed);
            assert_eq!(place(driver, own, &none, || true), own);
            assert_eq!(place(driver, own, &all, || false), own);
        }
    }
}
