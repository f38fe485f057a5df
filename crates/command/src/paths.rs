//! Which paths of a policy a driver gets.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use crate::{Driver, ExecutionPolicy};

/// What firejail refuses in a path, besides control characters.
const FIREJAIL_REFUSES: &[u8] = b"\\&!\"<>%^{};,";
/// What firejail takes for a pattern: it would allow more than the path.
const FIREJAIL_EXPANDS: &[u8] = b"*?[";

/// The paths of a policy as they are on disk: no symlinks, each once, parents first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyPaths {
    /// May be read. None of them is writable as well.
    pub readable: Vec<PathBuf>,
    /// May be read and written.
    pub writable: Vec<PathBuf>,
}

impl PolicyPaths {
    /// Resolves the paths of a policy. What does not exist, or what the driver's program has no way
    /// to say, is left out.
    #[must_use]
    pub fn resolve(policy: &ExecutionPolicy, driver: Driver) -> Self {
        let writable = resolved(&policy.writable_paths, driver);
        let mut readable = resolved(&policy.readable_paths, driver);
        readable.retain(|path| !writable.contains(path));
        Self { readable, writable }
    }
}

fn resolved(paths: &[PathBuf], driver: Driver) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = paths
        .iter()
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| can_carry(driver, path))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Whether a driver's program can be told of this path.
#[must_use]
pub fn can_carry(driver: Driver, path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    // Behind these the command has processes of its own there.
    let has_own = matches!(
        driver,
        Driver::Native | Driver::Bubblewrap | Driver::Firejail
    );
    if has_own && path.starts_with("/proc") {
        return false;
    }
    match driver {
        Driver::Host | Driver::Native | Driver::Bubblewrap => true,
        // A mount is one record of CSV, whose reader drops carriage returns, in a message that is
        // JSON, which is UTF-8.
        Driver::Docker | Driver::Podman => !bytes.contains(&b'\r') && path.to_str().is_some(),
        Driver::Firejail => {
            !bytes.windows(2).any(|two| two == b"..")
                && bytes.iter().all(|byte| {
                    !byte.is_ascii_control()
                        && !FIREJAIL_REFUSES.contains(byte)
                        && !FIREJAIL_EXPANDS.contains(byte)
                })
        }
    }
}

/// The places where something is mounted that this process can reach and that is not read-only
/// anyway, each once, parents first. A directory that a program makes read-only is not always so
/// where something else is mounted below it.
///
/// # Errors
/// The system's error, where `/proc` cannot be read.
pub fn writable_mounts() -> io::Result<Vec<PathBuf>> {
    let mut points = writable_points(&std::fs::read("/proc/self/mountinfo")?);
    points.retain(|point| {
        let above = point.parent().unwrap_or(point);
        access(above, AccessFlags::X_OK).is_ok()
    });
    Ok(points)
}

/// The mount points in a `mountinfo` (proc_pid_mountinfo(5)) without the option `ro`.
fn writable_points(mount_info: &[u8]) -> Vec<PathBuf> {
    let mut points: Vec<PathBuf> = mount_info
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ').skip(4);
            let (point, options) = (fields.next()?, fields.next()?);
            let is_read_only = options
                .split(|byte| *byte == b',')
                .any(|option| option == b"ro");
            (!is_read_only).then(|| unescape(point).into())
        })
        .collect();
    points.sort();
    points.dedup();
    points
}

/// Undoes `\040` and the like, with which the kernel writes spaces, tabs, newlines and backslashes.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        match (first, octal) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_path_is_what_it_leads_to_and_only_once() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        for name in ["a", "b"] {
            std::fs::create_dir(dir.join(name)).unwrap();
        }
        symlink(dir.join("a"), dir.join("link")).unwrap();
        symlink(dir.join("nothing"), dir.join("dangling")).unwrap();
        let mut policy = ExecutionPolicy::in_dir("/tmp");
        policy.readable_paths = ["b", "a", "link", "dangling", "nothing", "a/../b"]
            .map(|name| dir.join(name))
            .to_vec();
        let found = PolicyPaths::resolve(&policy, Driver::Bubblewrap);
        assert_eq!(found.readable, [dir.join("a"), dir.join("b")]);
        assert!(found.writable.is_empty());

        policy.writable_paths = vec![dir.join("link")];
        let found = PolicyPaths::resolve(&policy, Driver::Bubblewrap);
        assert_eq!(found.readable, [dir.join("b")]);
        assert_eq!(found.writable, [dir.join("a")]);
    }

    #[test]
    fn a_driver_gets_no_path_that_it_cannot_say() {
        let all = [
            Driver::Docker,
            Driver::Podman,
            Driver::Firejail,
            Driver::Bubblewrap,
        ];
        let cannot = |name: &[u8]| -> Vec<Driver> {
            let path = Path::new("/srv").join(OsStr::from_bytes(name));
            all.into_iter()
                .filter(|driver| !can_carry(*driver, &path))
                .collect()
        };
        for name in ["a b", "a:b", "a=b", "it's", "ä", "-a", "$HOME", "~", "#"] {
            assert_eq!(cannot(name.as_bytes()), [], "{name}");
        }
        for name in ["a,b", "a\"b", "a\nb", "a*", "a..b", "a\\b", "${HOME}", "%"] {
            assert_eq!(cannot(name.as_bytes()), [Driver::Firejail], "{name}");
        }
        for path in ["/proc", "/proc/1"] {
            for (driver, can) in [
                (Driver::Native, false),
                (Driver::Bubblewrap, false),
                (Driver::Firejail, false),
                (Driver::Host, true),
                (Driver::Docker, true),
            ] {
                assert_eq!(can_carry(driver, Path::new(path)), can, "{driver:?}");
            }
        }
        assert_eq!(cannot(b"a\rb"), all[..3]);
        assert_eq!(cannot(b"\xff"), all[..2]);
    }

    #[test]
    fn mounts_are_those_that_can_be_written() {
        let mount_info = b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
            23 22 0:5 / /srv/a\\040b\\134c rw - tmpfs x rw\n\
            24 22 0:6 / /snap/core ro,nodev - squashfs x ro\n\
            25 22 0:7 / /srv/ro ro - tmpfs x rw\n\
            26 22 0:8 / /srv/a\\040b\\134c rw - tmpfs over rw\n";
        assert_eq!(
            writable_points(mount_info),
            [Path::new("/"), Path::new("/srv/a b\\c")]
        );
        assert!(writable_mounts().unwrap().contains(&"/proc".into()));
    }
}
