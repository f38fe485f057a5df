//! What a process may do, as `/proc` tells: for two processes that want to act for one another only
//! if neither gains by it.
#![allow(unsafe_code)]

mod hidden;

use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, readlinkat};
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use nix::unistd::{Gid, Uid, getpid, getresgid, getresuid, gettid};

use crate::privileges;
use crate::procfs;

pub use hidden::Surroundings;

/// The namespaces that a process is in, or makes its children in (namespaces(7)).
const NAMESPACES: [&str; 10] = [
    "cgroup",
    "ipc",
    "mnt",
    "net",
    "pid",
    "pid_for_children",
    "time",
    "time_for_children",
    "user",
    "uts",
];

/// The lines of `/proc/<pid>/status` (proc_pid_status(5)) that tell of rights: ids, groups,
/// capabilities, filters, and whoever traces it: a tracer can decide on each call.
const LINES: [&str; 12] = [
    TRACER,
    "Uid:",
    "Gid:",
    "Groups:",
    "CapInh:",
    "CapPrm:",
    "CapEff:",
    "CapBnd:",
    "CapAmb:",
    NO_NEW_PRIVS,
    "Seccomp:",
    FILTERS,
];
const TRACER: &str = "TracerPid:";
const NO_NEW_PRIVS: &str = "NoNewPrivs:";
/// Since Linux 5.9.
const FILTERS: &str = "Seccomp_filters:";

/// Where systems with units have the cgroups that [`unit`] names (cgroups(7)).
const CGROUPS: [&str; 3] = [
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/systemd",
    "/sys/fs/cgroup",
];

/// Bytes that are read of a file in `/proc`.
const MOST: usize = 64 * 1024;

/// Bytes that such a file has at most, as a rule: more take further reads.
const USUAL: usize = 4096;

/// What a process may do: its ids, groups and capabilities, its namespaces and its root, its cgroup,
/// how many filters it has, whether it can gain privileges, who traces it, and its label of a
/// security module. What Landlock adds the kernel does not tell; but it lets a process look only into
/// those that are confined at least as much.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rights {
    lines: Vec<String>,
    namespaces: Vec<Vec<u8>>,
    root: Root,
    label: Vec<u8>,
    cgroup: String,
}

/// What a process without capabilities could gain, or get back that it has given up: its ids and its
/// label (credentials(7)). Without capabilities it cannot change its further groups, leave a root
/// directory or go back to a namespace, and filters and rules of Landlock are only ever added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    users: [u32; 3],
    groups: [u32; 3],
    label: Vec<u8>,
}

impl Credentials {
    /// This process's. `None` if it has capabilities, or if the calling thread is not its first one:
    /// others look at that.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn own() -> io::Result<Option<Self>> {
        let capabilities = privileges::capability_sets()?;
        let has_some = capabilities.iter().any(|[_, permitted, _]| *permitted != 0);
        if has_some || gettid() != getpid() {
            return Ok(None);
        }
        let users = getresuid()?;
        let groups = getresgid()?;
        Ok(Some(Self {
            users: [users.real, users.effective, users.saved].map(Uid::as_raw),
            groups: [groups.real, groups.effective, groups.saved].map(Gid::as_raw),
            label: label(|| directory(OWN))?,
        }))
    }
}

/// Why two processes of equal rights could still be confined differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has system call filters or no_new_privs that process 1 does not have")]
pub struct Filtered;

impl Rights {
    /// The calling thread's: it may be confined more than its process, which other processes see.
    ///
    /// # Errors
    /// If `/proc` does not tell.
    pub fn own() -> io::Result<Self> {
        Ok(Inspected::at(OWN)?.rights_and_status()?.0)
    }

    /// Those of another process, which may be inspected as by ptrace(2) in read mode.
    ///
    /// # Errors
    /// As for [`Inspected::new`] and [`Inspected::rights`].
    pub fn of(pid: i32, pidfd: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Inspected::new(pid)?.rights(pidfd)?.0)
    }

    /// Checks that nothing is added to what process 1 of the pid namespace has, or, in a service's
    /// cgroup, to what the service's processes have: two filters of two processes look alike.
    ///
    /// # Errors
    /// [`Filtered`].
    pub fn check_filters(&self) -> Result<(), Filtered> {
        let is_zero = |name| number(&self.lines, name) == Some(0);
        if is_zero(FILTERS) && is_zero(NO_NEW_PRIVS) {
            return Ok(()); // nothing that could have been added
        }
        let of_first = status("1").map(|status| lines(&status));
        let of = |lines: &[String], name: &str| {
            let found = lines.iter().find(|line| line.starts_with(name));
            found.cloned()
        };
        let is_same = |name| {
            let (own, first) = (
                of(&self.lines, name),
                of_first.as_deref().ok().and_then(|first| of(first, name)),
            );
            own.is_some() && own == first
        };
        // Before 5.9 the kernel does not count them.
        let has_none = of(&self.lines, "Seccomp:").is_some_and(|line| line.ends_with('0'));
        let filters = is_same(FILTERS) || of(&self.lines, FILTERS).is_none() && has_none;
        let is_served = || of_first.is_ok() && is_unit(&self.cgroup) && self.adds_none_in_unit();
        match (filters && is_same(NO_NEW_PRIVS)) || is_served() {
            true => Ok(()),
            false => Err(Filtered),
        }
    }

    /// Whether no process of the same service has fewer filters, or may gain privileges where this
    /// one may not: the service's first process has what is the service's own, and no more.
    fn adds_none_in_unit(&self) -> bool {
        let has = |lines: &[String]| [FILTERS, NO_NEW_PRIVS].map(|name| number(lines, name));
        let [Some(filters), Some(privileges)] = has(&self.lines) else {
            return false;
        };
        let lists = CGROUPS
            .iter()
            .map(|at| format!("{at}{}/cgroup.procs", self.cgroup));
        let list = lists.map(std::fs::read_to_string).find_map(Result::ok);
        let mut others = 0;
        for pid in list.iter().flat_map(|list| list.lines()) {
            match status(pid).map(|status| has(&lines(&status))) {
                Ok([Some(of_other), Some(may_not)])
                    if of_other >= filters && may_not >= privileges =>
                {
                    others += 1;
                }
                // It is gone.
                Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) => {}
                _ => return false,
            }
        }
        others > 0
    }

    /// What differs from another process's rights, in a word; `None` if nothing does.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        match differing_line(&self.lines, &other.lines) {
            Some(name) => Some(name),
            None if self.namespaces != other.namespaces => Some("namespaces"),
            None if self.root != other.root => Some("root directory"),
            None if self.label != other.label => Some("label"),
            None if self.cgroup != other.cgroup => Some("cgroup"),
            None => None,
        }
    }
}

/// What the lines of two processes differ in, in a word.
fn differing_line(own: &[String], other: &[String]) -> Option<&'static str> {
    if own.len() != other.len() {
        return Some("what the kernel tells");
    }
    let (differing, _) = own.iter().zip(other).find(|(own, other)| own != other)?;
    let name = LINES.into_iter().find(|name| differing.starts_with(name));
    Some(match name {
        Some("Uid:" | "Gid:" | "Groups:") => "user or groups",
        Some(TRACER) => "tracer",
        Some(NO_NEW_PRIVS) => "no_new_privs",
        Some("Seccomp:" | FILTERS) => "system call filters",
        _ => "capabilities",
    })
}

/// What `/proc` shows of a process, to be read again and again.
#[derive(Debug)]
pub struct Inspected {
    directory: OwnedFd,
    namespaces: OwnedFd,
    status: File,
    cgroup: File,
}

impl Inspected {
    /// # Errors
    /// `ENOENT` if there is no such process; `ESRCH` if it has no id here.
    pub fn new(pid: i32) -> io::Result<Self> {
        match pid > 0 {
            true => Self::at(&pid.to_string()),
            false => Err(Errno::ESRCH.into()),
        }
    }

    fn at(process: &str) -> io::Result<Self> {
        let directory = directory(process)?;
        Ok(Self {
            namespaces: openat(&directory, "ns", DIRECTORY, Mode::empty())?,
            status: file(&directory, "status")?,
            cgroup: file(&directory, "cgroup")?,
            directory,
        })
    }

    /// Its rights, and its umask, which tells nothing of them. `None`: before Linux 4.7 the kernel does
    /// not tell.
    ///
    /// # Errors
    /// `EACCES` if it may not be inspected; `ESRCH` if it has ended.
    pub fn rights(&self, pidfd: BorrowedFd<'_>) -> io::Result<(Rights, Option<u32>)> {
        let (rights, status) = self.rights_and_status()?;
        check_alive(pidfd)?;
        Ok((rights, umask(&status)))
    }

    fn rights_and_status(&self) -> io::Result<(Rights, String)> {
        let status = text(&self.status)?;
        let names = NAMESPACES.into_iter().map(|name| {
            match readlinkat(&self.namespaces, name) {
                Ok(link) => Ok(link.as_bytes().to_vec()),
                // An older kernel has no such namespace.
                Err(Errno::ENOENT) => Ok(Vec::new()),
                Err(errno) => Err(io::Error::from(errno)),
            }
        });
        let namespaces = names.collect::<io::Result<_>>()?;
        let rights = Rights {
            lines: lines(&status),
            namespaces,
            root: Root::of(&self.directory)?,
            label: label(|| self.directory.try_clone())?,
            cgroup: unit(&text(&self.cgroup)?),
        };
        Ok((rights, status))
    }
}

/// Checks that a process has not ended. As long as it has not been waited for, nobody else has its id.
fn check_alive(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    let mut fds = [PollFd::new(pidfd, PollFlags::POLLIN)];
    match poll(&mut fds, PollTimeout::ZERO)? {
        0 => Ok(()),
        _ => Err(Errno::ESRCH.into()),
    }
}

/// The calling thread's directory in `/proc`.
const OWN: &str = "thread-self";

const DIRECTORY: OFlag = OFlag::O_PATH
    .union(OFlag::O_DIRECTORY)
    .union(OFlag::O_CLOEXEC);

/// The directory of a process in `/proc`.
fn directory(process: &str) -> io::Result<OwnedFd> {
    if let Some(why) = procfs::why_unseen() {
        return Err(io::Error::other(why));
    }
    let path = format!("/proc/{process}");
    Ok(nix::fcntl::open(path.as_str(), DIRECTORY, Mode::empty())?)
}

/// What `/proc` says of a process.
fn status(process: &str) -> io::Result<String> {
    text(&file(&directory(process)?, "status")?)
}

fn file(process: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
    Ok(openat(process, name, flags, Mode::empty())?.into())
}

/// What a file in `/proc` says now. The kernel makes such a file's text as a whole (`single_open` in
/// fs/seq_file.c), so a read that does not fill its buffer has all of it.
fn text(file: &File) -> io::Result<String> {
    let mut text = vec![0; USUAL];
    let mut length = 0;
    loop {
        let free = text.get_mut(length..).unwrap_or_default();
        let is_full = match file.read_at(free, length as u64) {
            Ok(count) => {
                length += count;
                count == free.len()
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) => return Err(error),
        };
        if !is_full || length >= MOST {
            text.truncate(length);
            return String::from_utf8(text).map_err(io::Error::other);
        }
        text.resize((length + USUAL).min(MOST), 0);
    }
}

/// Whether no security module of this kernel has labels.
static HAS_NO_LABELS: AtomicBool = AtomicBool::new(false);

/// What a security module calls a process, whose directory is given: its profile or context. Empty
/// without such a module.
fn label(process: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<Vec<u8>> {
    if HAS_NO_LABELS.load(Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let mut label = Vec::new();
    let read = file(&process()?, "attr/current")
        .and_then(|file| file.take(MOST as u64).read_to_end(&mut label));
    match read {
        Ok(_) => Ok(label),
        Err(error) => match error.raw_os_error() {
            // No module answers (`security_getprocattr` in security/security.c), for no process, and
            // none is added to a kernel that runs.
            Some(libc::EINVAL) => {
                HAS_NO_LABELS.store(true, Ordering::Relaxed);
                Ok(Vec::new())
            }
            // The kernel is made without modules (proc_pid_attr(5)).
            Some(libc::ENOENT) => Ok(Vec::new()),
            _ => Err(error),
        },
    }
}

/// A root directory, and the mount that it is in: another mount of the same directory may be
/// read-only, or lack what is mounted below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Root {
    mount: u64,
    device: (u32, u32),
    inode: u64,
}

impl Root {
    /// That of a process (proc_pid_root(5)).
    fn of(process: &OwnedFd) -> io::Result<Self> {
        let mut found = MaybeUninit::<libc::statx>::zeroed();
        let wanted = libc::STATX_INO | libc::STATX_MNT_ID;
        // SAFETY: the path ends with a NUL, and the buffer is a `statx`, writable for the call.
        let done = unsafe {
            libc::statx(
                process.as_raw_fd(),
                c"root".as_ptr(),
                0,
                wanted,
                found.as_mut_ptr(),
            )
        };
        Errno::result(done)?;
        // SAFETY: zeroed before the call, which is a valid value of these plain numbers.
        let found = unsafe { found.assume_init() };
        // Before 5.8 the kernel does not tell the mount.
        match found.stx_mask & wanted == wanted {
            true => Ok(Self {
                mount: found.stx_mnt_id,
                device: (found.stx_dev_major, found.stx_dev_minor),
                inode: found.stx_ino,
            }),
            false => Err(Errno::ENOSYS.into()),
        }
    }
}

/// The lines of a status that tell of rights.
fn lines(status: &str) -> Vec<String> {
    let lines = status.lines();
    let telling = lines.filter(|line| LINES.iter().any(|name| line.starts_with(name)));
    telling.map(|line| line.trim_end().to_owned()).collect()
}

/// The umask of this process, if the kernel tells it without a change of it (since Linux 4.7).
#[must_use]
pub fn own_umask() -> Option<u32> {
    umask(&std::fs::read_to_string("/proc/self/status").ok()?)
}

/// The umask that a status tells (proc_pid_status(5)).
fn umask(status: &str) -> Option<u32> {
    let umask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(umask.trim(), 8).ok()
}

/// The number that a line tells.
fn number(lines: &[String], name: &str) -> Option<u32> {
    let line = lines.iter().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

/// The cgroup that a list names (cgroups(7)), up to the unit, the user's slice or the container.
fn unit(list: &str) -> String {
    let path_of = |start: &str| {
        let line = list.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            rest.strip_prefix(start)
        });
        line.filter(|path| *path != "/")
    };
    // The one hierarchy of version 2, else the service manager's own of version 1.
    let path = path_of(":").or_else(|| path_of("name=systemd:"));
    let mut unit = String::new();
    for part in path
        .unwrap_or("/")
        .split('/')
        .filter(|part| !part.is_empty())
    {
        unit.push('/');
        unit.push_str(part);
        if ends_unit(part) {
            break;
        }
    }
    unit
}

/// Whether a part of a cgroup's path is the last one that counts.
fn ends_unit(part: &str) -> bool {
    let of_user = part
        .strip_prefix("user-")
        .and_then(|rest| rest.strip_suffix(".slice"));
    let is_id = |text: &str| text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit());
    of_user.is_some_and(|id| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()))
        || [".service", ".scope"].iter().any(|end| part.ends_with(end))
        || is_id(part)
}

/// Whether a cgroup is a service's own, whose processes have the service's filters and may add some.
fn is_unit(cgroup: &str) -> bool {
    cgroup.ends_with(".service")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_told_up_to_its_unit() {
        let id = "0123456789abcdef".repeat(4);
        for (list, wanted) in [
            (
                "0::/system.slice/php8.2-fpm.service/sub\n",
                "/system.slice/php8.2-fpm.service",
            ),
            (
                "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope\n",
                "/user.slice/user-1000.slice",
            ),
            (
                "0::/user.slice/user-1000.slice/session-3.scope\n",
                "/user.slice/user-1000.slice",
            ),
            (&format!("0::/docker/{id}/init\n"), &format!("/docker/{id}")),
            (
                "4:memory:/x\n1:name=systemd:/a.service/b\n0::/\n",
                "/a.service",
            ),
            ("0::/\n", ""),
            ("", ""),
        ] {
            assert_eq!(unit(list), wanted, "{list}");
        }
    }

    #[test]
    fn a_process_differs_from_one_in_another_namespace() {
        let own = Rights::own().unwrap();
        assert_eq!(own.difference(&own.clone()), None);
        let mut other = own.clone();
        other.label = b"other".to_vec();
        assert_eq!(own.difference(&other), Some("label"));
        other.namespaces[2] = b"mnt:[1]".to_vec();
        assert_eq!(own.difference(&other), Some("namespaces"));
        other.lines[1] = "Uid:\t7\t7\t7\t7".into();
        assert_eq!(own.difference(&other), Some("user or groups"));
        assert_ne!(own, other);
    }

    #[test]
    fn a_thread_may_be_confined_more_than_its_process() {
        let of_process = || {
            let process = Inspected::at("self").unwrap();
            process.rights_and_status().unwrap().0
        };
        if number(&of_process().lines, NO_NEW_PRIVS) == Some(1) {
            return;
        }
        let confined = std::thread::spawn(|| {
            nix::sys::prctl::set_no_new_privs().unwrap();
            Rights::own().unwrap()
        });
        let confined = confined.join().unwrap();
        assert_eq!(of_process().difference(&confined), Some("no_new_privs"));
    }

    #[test]
    fn there_are_all_lines() {
        assert_eq!(Rights::own().unwrap().lines.len(), LINES.len());
    }
}
