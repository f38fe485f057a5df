//! What a host names for the pool to start: PHP code that may start no programs can speak to the pool
//! as a program does, so a pool takes only what that code could not have put there. That is what the
//! host itself is, or what the system has.
//!
//! Not for root: whose code writes any file starts any program.

use std::ffi::{OsStr, OsString};
use std::fs::{metadata, read_link};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use altair_engine::Loaded;
use nix::unistd::geteuid;

/// Write permission of the group and of others, and the bit that keeps others from replacing what is in
/// a directory (inode(7)).
const WRITABLE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Entries of a directory of ini files that are looked at; only root could have put more there.
const INIS_MAX: usize = 1000;

/// The variable that names the directories of ini files.
const SCAN_DIR: &[u8] = b"PHP_INI_SCAN_DIR=";

/// Checks what a host, the process `pid`, has named. The caller makes sure afterwards that the process
/// has not ended.
///
/// # Errors
/// What it may not name, in words for the host.
pub(crate) fn check(named: &Loaded<'_>, pid: i32) -> Result<(), String> {
    let host = format!("/proc/{pid}/exe");
    if geteuid().is_root() || is_same(&host, "/proc/self/exe") {
        return Ok(());
    }
    let refused = |path: &Path| {
        let shown = path.display();
        Err(format!(
            "{shown} is neither the system's nor the host's own"
        ))
    };
    // By its path: another one may lead elsewhere by the time that it is started.
    if read_link(host).ok().as_deref() != Some(named.php) && !is_php_of_system(named.php) {
        return refused(named.php);
    }
    if let Some(extension) = named.extension
        && !is_systems(extension)
        && !has_loaded(pid, extension)
    {
        return refused(extension);
    }
    if let Some(list) = named.ini_scan_dir
        && !std::env::split_paths(list)
            .filter(|dir| !dir.as_os_str().is_empty())
            .all(|dir| has_inis_of_system(&dir))
        && !was_started_with(pid, list)
    {
        return refused(Path::new(list));
    }
    Ok(())
}

fn is_same(one: &str, other: &str) -> bool {
    let inode = |path| metadata(path).ok().map(|file| (file.dev(), file.ino()));
    inode(one).is_some_and(|one| Some(one) == inode(other))
}

/// Whether only root can change what is at a path, and what the path leads to.
fn is_systems(path: &Path) -> bool {
    let Ok(real) = path.canonicalize() else {
        return false;
    };
    // The links on the way are in directories, too.
    [path, real.as_path()].into_iter().all(|path| {
        path.ancestors()
            .filter(|part| !part.as_os_str().is_empty())
            .all(|part| {
                part.symlink_metadata().is_ok_and(|found| {
                    let mode = found.mode();
                    // What is in such a directory is looked at by itself; the directory itself is everybody's.
                    let is_kept = part != path && found.is_dir() && mode & STICKY != 0;
                    found.uid() == 0 && (found.is_symlink() || mode & WRITABLE == 0 || is_kept)
                })
            })
    })
}

/// Whether a program is a PHP that only root can change. A child takes its guards itself, after it is
/// executed: any other program goes without, whoever has it.
fn is_php_of_system(program: &Path) -> bool {
    let real = program.canonicalize();
    let name = real.as_deref().ok().and_then(Path::file_name);
    let version = name.and_then(|name| name.as_bytes().strip_prefix(b"php"));
    let is_version = |rest: &[u8]| {
        rest.iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.')
    };
    version.is_some_and(is_version) && is_systems(program)
}

/// Whether only root can change the ini files of a directory.
fn has_inis_of_system(directory: &Path) -> bool {
    let are_systems = |entries: std::fs::ReadDir| {
        entries
            .take(INIS_MAX)
            .all(|entry| entry.is_ok_and(|entry| is_systems(&entry.path())))
    };
    is_systems(directory) && std::fs::read_dir(directory).is_ok_and(are_systems)
}

/// Whether a process has loaded a file as code: only what a loader maps is executable.
fn has_loaded(pid: i32, file: &Path) -> bool {
    let maps = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    maps.split(|byte| *byte == b'\n').any(|line| {
        // Address, permissions, offset, device, inode, path (proc_pid_maps(5)).
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let is_code = words
            .nth(1)
            .is_some_and(|permissions| permissions.get(2) == Some(&b'x'));
        let path = words.nth(3).map(<[u8]>::trim_ascii_start);
        is_code && path == Some(file.as_os_str().as_bytes())
    })
}

/// Whether a process was started with this `PHP_INI_SCAN_DIR`. A process can write over what the kernel
/// shows of its environment where it writes its title over its arguments and beyond; then it was not.
fn was_started_with(pid: i32, list: &OsStr) -> bool {
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let stat = read("stat");
    // After the name, which may hold blanks, field 3 is the next (proc_pid_stat(5)).
    let fields: Vec<_> = match stat.iter().rposition(|byte| *byte == b')') {
        Some(end) => stat.split_at(end).1.split(|byte| *byte == b' ').collect(),
        None => return false,
    };
    let field = |number: usize| -> Option<usize> {
        let text = fields.get(number - 2)?;
        std::str::from_utf8(text).ok()?.parse().ok()
    };
    // arg_start, arg_end
    let is_intact = match (field(48), field(49)) {
        (Some(from), Some(to)) if from < to => read("cmdline").len() == to - from,
        _ => false,
    };
    let variable = [SCAN_DIR, list.as_bytes()].concat();
    is_intact
        && read("environ")
            .split(|byte| *byte == 0)
            .any(|one| one == variable)
}

/// What was checked for the process of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    php: PathBuf,
    extension: Option<PathBuf>,
    ini_scan_dir: Option<OsString>,
}

impl Checked {
    pub(crate) fn of(named: &Loaded<'_>) -> Self {
        Self {
            php: named.php.to_owned(),
            extension: named.extension.map(Path::to_owned),
            ini_scan_dir: named.ini_scan_dir.map(OsStr::to_owned),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn what_only_root_can_change_is_the_systems() {
        assert!(is_systems(Path::new("/usr/bin/env")));
        assert!(!is_systems(Path::new("/nowhere")));
        assert!(!is_systems(Path::new("/tmp")), "everybody puts files there");
        assert!(!has_inis_of_system(Path::new("/tmp")));
        assert!(has_inis_of_system(Path::new("/usr/bin")));
        for program in ["/usr/bin/env", "/usr/bin/python3", "/bin/sh"] {
            assert!(!is_php_of_system(Path::new(program)), "{program} is no PHP");
        }
        assert!(is_php_of_system(Path::new("/usr/bin/php")));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(dir.path(), open).unwrap();
        assert!(!is_systems(&file), "others can replace it");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/usr/bin/env", &link).unwrap();
        assert!(!is_systems(&link), "others can replace it");
    }

    #[test]
    fn a_process_has_loaded_what_it_executes() {
        let pid = std::process::id().cast_signed();
        let own = std::env::current_exe().unwrap();
        assert!(has_loaded(pid, &own));
        assert!(!has_loaded(pid, Path::new("/etc/passwd")));
    }

    #[test]
    fn the_environment_of_a_start_is_known() {
        let mut child = Command::new("/bin/cat")
            .env("PHP_INI_SCAN_DIR", "/some:/where")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        // It has executed its program once it answers.
        let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        std::io::Write::write_all(&mut input, b"x").unwrap();
        std::io::Read::read_exact(&mut output, &mut [0]).unwrap();
        assert!(was_started_with(pid, OsStr::new("/some:/where")));
        assert!(!was_started_with(pid, OsStr::new("/some")));
        drop(input);
        child.wait().unwrap();
        assert!(!was_started_with(pid, OsStr::new("/some:/where")));
    }
}
