//! What a container was configured with: the environment of its first process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use altair_sandbox::{RunAs, with_files_of};

use crate::owner::FILE_PATIENCE;

/// The inode number of the machine's own pid namespace (`PROC_PID_INIT_INO` in
/// include/linux/proc_ns.h; `PID_NS_INIT_INO` in include/uapi/linux/nsfs.h since 6.18). Its first
/// process is the machine's, not a container's.
const MACHINES_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Bytes of the first process's environment that are read. The kernel lets a program have 2 MiB on a
/// stack of 8 MiB, arguments included (execve(2)).
const ENVIRONMENT_MAX_BYTES: u64 = 2 << 20;

/// The variables with which the container's first process was started; none outside of a container, and
/// where it cannot be told.
///
/// A container is told by its pid namespace: it is not the machine's own, and `/proc` shows the first
/// process of this one and no other's. With the machine's pid namespace (`--pid=host`) process 1 is the
/// machine's, and nothing is known.
///
/// What that process says is not to be trusted, and need not be: a variable only counts if the host has
/// the same value.
pub(super) fn variables() -> Vec<(OsString, OsString)> {
    if !is_containers(Path::new("/proc/self/ns/pid"), Path::new("/proc/1/ns/pid")) {
        return Vec::new();
    }
    read().map_or_else(|_| Vec::new(), |bytes| parsed(&bytes))
}

/// Whether both are of one pid namespace that is not the machine's own.
fn is_containers(own: &Path, first: &Path) -> bool {
    let first = first.to_owned();
    let first = as_first(move || first.metadata().map(|found| found.ino()));
    match (std::fs::metadata(own), first) {
        (Ok(own), Ok(first)) => own.ino() == first && first != MACHINES_PID_NAMESPACE,
        _ => false,
    }
}

fn read() -> io::Result<Vec<u8>> {
    as_first(|| {
        let mut bytes = Vec::new();
        let file = File::open("/proc/1/environ")?;
        file.take(ENVIRONMENT_MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    })
}

/// Looks, and where the host may not, looks as the user of the first process: root of a default
/// container has no right to inspect others' processes, and may become anybody.
fn as_first<T: Send + 'static>(
    look: impl Fn() -> io::Result<T> + Clone + Send + 'static,
) -> io::Result<T> {
    match look() {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let first = std::fs::metadata("/proc/1")?;
            let user = RunAs {
                uid: first.uid(),
                gid: first.gid(),
            };
            with_files_of(Some(user), FILE_PATIENCE, look)?
        }
        looked => looked,
    }
}

/// The variables of an environment as /proc shows it (`proc_pid_environ(5)`).
fn parsed(bytes: &[u8]) -> Vec<(OsString, OsString)> {
    let os = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    bytes
        .split(|byte| *byte == 0)
        .filter_map(|pair| {
            let at = pair.iter().position(|byte| *byte == b'=')?;
            Some((os(&pair[..at]), os(&pair[at + 1..])))
        })
        .collect()
}

/// Whether it is among them, with this value.
pub(super) fn has(variables: &[(OsString, OsString)], name: &OsStr, value: &OsStr) -> bool {
    variables
        .iter()
        .any(|(known, own)| known.as_bytes() == name.as_bytes() && own == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variables_are_those_with_a_name_and_a_value() {
        let found = parsed(b"A=1\0B==x\0C=\0no variable\0D=2");
        let expected = [("A", "1"), ("B", "=x"), ("C", ""), ("D", "2")];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(found, expected);
        assert!(has(&found, OsStr::new("B"), OsStr::new("=x")));
        assert!(!has(&found, OsStr::new("B"), OsStr::new("x")));
    }

    #[test]
    fn another_namespace_than_the_first_processs_is_no_container() {
        let (own, other) = ("/proc/self/ns/pid", "/proc/self/ns/mnt");
        assert!(!is_containers(Path::new(own), Path::new(other)));
        assert!(!is_containers(Path::new(own), Path::new("/nowhere")));
    }
}
