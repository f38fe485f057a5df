//! What keeper and host read from `/proc`. The keeper reads without allocating.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::File;
use std::io::{BufRead, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::errno::Errno;
use nix::libc::{self, c_int};

use crate::raw_descriptors;

/// Bytes read at a time, into a buffer on the stack of a small process.
const BUFFER_BYTES: usize = 8192;

/// Why `/proc` cannot tell of the processes that this one starts, if it cannot: it is missing, or it
/// knows them by other ids, as one that a container has from its host does.
#[must_use]
pub fn why_unseen() -> Option<&'static str> {
    if !Path::new("/proc/self/stat").exists() {
        Some("/proc is not mounted, or is that of another pid namespace")
    } else if !is_own() {
        Some("/proc is that of another pid namespace")
    } else {
        None
    }
}

/// Whether the ids in `/proc` are those of the calling process's pid namespace.
fn is_own() -> bool {
    own_id() == Ok(nix::unistd::getpid())
}

/// Maximum number of bytes read from a list of locks: some 150,000 locks.
const LOCKS_MAX_BYTES: u64 = 8 << 20;

/// Whether a process has more than `most` file locks, as far as the kernel tells. For the host
/// only, since it allocates.
pub(crate) fn has_more_locks(process: c_int, most: usize) -> bool {
    is_own()
        && locks_by_descriptor(process, most).unwrap_or_else(|_| locks_by_process(process, most))
            > most
}

/// Counts the locks of all of a process's open files (proc_pid_fdinfo(5)). Stops after exceeding
/// `most`.
///
/// # Errors
/// If the host may not inspect the process.
fn locks_by_descriptor(process: c_int, most: usize) -> std::io::Result<usize> {
    let mut found = 0;
    for file in std::fs::read_dir(format!("/proc/{process}/fdinfo"))?.flatten() {
        // A file that was closed meanwhile has no locks.
        let Ok(info) = std::fs::File::open(file.path()) else {
            continue;
        };
        let lines = std::io::BufReader::new(info.take(LOCKS_MAX_BYTES)).split(b'\n');
        let locks = lines
            .map_while(Result::ok)
            .filter(|line| line.starts_with(b"lock:"));
        found += locks.take(most + 1).count();
        if found > most {
            break;
        }
    }
    Ok(found)
}

/// The same from the list of all locks (proc_locks(5)). Reading it blocks all file locking on the
/// machine for some milliseconds.
fn locks_by_process(process: c_int, most: usize) -> usize {
    let Ok(locks) = std::fs::File::open("/proc/locks") else {
        return 0;
    };
    let process = process.to_string();
    let is_own = |line: &Vec<u8>| {
        // `1: POSIX  ADVISORY  WRITE 4711 08:01:1234 0 EOF`, with `->` after the number if the lock
        // is waiting.
        line.split(u8::is_ascii_whitespace)
            .filter(|field| !field.is_empty() && field != b"->")
            .nth(4)
            == Some(process.as_bytes())
    };
    let lines = std::io::BufReader::new(locks.take(LOCKS_MAX_BYTES)).split(b'\n');
    let own = lines.map_while(Result::ok).filter(is_own);
    own.take(most + 1).count()
}

/// The id of the calling process as whoever mounted `/proc` knows it (proc(5), `/proc/self`).
pub(crate) fn own_id() -> nix::Result<nix::unistd::Pid> {
    let mut target = [0u8; 16];
    // SAFETY: a C string; pointer and length are of one buffer.
    let length = Errno::result(unsafe {
        libc::readlink(
            c"/proc/self".as_ptr(),
            target.as_mut_ptr().cast(),
            target.len(),
        )
    })?;
    let digits = target.get(..length.unsigned_abs());
    let id = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    id.map(nix::unistd::Pid::from_raw).ok_or(Errno::ESRCH)
}

/// Bytes read of a list of sockets: some 50,000 sockets.
const SOCKETS_MAX_BYTES: u64 = 8 << 20;

/// Whether a TCP socket listens on a port, or a UDP socket has it, in the network of a process
/// (proc_pid_net(5)). Also true if that cannot be determined. For the host only, since it allocates.
pub(crate) fn is_bound(process: c_int, port: u16) -> bool {
    /// `TCP_LISTEN` (include/net/tcp_states.h).
    const LISTENS: &str = "0A";
    let port = format!("{port:04X}");
    ["tcp", "tcp6", "udp", "udp6"].iter().any(|kind| {
        let Ok(list) = std::fs::File::open(format!("/proc/{process}/net/{kind}")) else {
            // A kernel without IPv6 has no such list.
            return !kind.ends_with('6');
        };
        let lines = std::io::BufReader::new(list.take(SOCKETS_MAX_BYTES)).lines();
        // `0: 0100007F:0CEA 00000000:0000 0A ...`: number, own address, peer, state.
        lines.map_while(Result::ok).any(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let own = fields.next().and_then(|own| own.rsplit_once(':'));
            let state = fields.nth(1);
            own.is_some_and(|(_, own)| own == port)
                && (kind.starts_with("udp") || state == Some(LISTENS))
        })
    })
}

/// Calls `found` with each child of the calling process, which must have only one thread.
/// Returns `false` if they cannot be determined.
pub(crate) fn each_child(found: &mut dyn FnMut(c_int)) -> bool {
    // By ids of another namespace, other processes would be taken for them.
    if !is_own() {
        return false;
    }
    // Needs CONFIG_PROC_CHILDREN, which distributions set (proc_tid_children(5)).
    if let Ok(list) = open(c"/proc/thread-self/children") {
        return each_number(&list, found);
    }
    let own = std::process::id();
    let read = each_entry(c"/proc", &mut |pid| {
        if parent_of(pid).is_some_and(|parent| u32::try_from(parent) == Ok(own)) {
            found(pid);
        }
    });
    read.is_ok()
}

/// Closes `first` and every descriptor above it, for kernels without `close_range`.
pub(crate) fn close_from(first: RawFd) -> nix::Result<()> {
    // Closing while reading makes the kernel skip entries, so this repeats until nothing is left.
    loop {
        let mut closed = false;
        each_entry(c"/proc/self/fd", &mut |fd| {
            if fd >= first {
                raw_descriptors::close(fd);
                closed = true;
            }
        })?;
        if !closed {
            return Ok(());
        }
    }
}

fn open(path: &CStr) -> nix::Result<OwnedFd> {
    // SAFETY: `path` is a C string that outlives the call.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    let fd = Errno::result(fd)?;
    // SAFETY: just opened, and not owned elsewhere.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Calls `found` with each decimal number in the file; any other bytes separate numbers.
fn each_number(file: &OwnedFd, found: &mut dyn FnMut(c_int)) -> bool {
    let mut buffer = [0u8; BUFFER_BYTES];
    let mut number: Option<c_int> = None;
    loop {
        let count = match nix::unistd::read(file, &mut buffer) {
            Ok(count) => count,
            Err(Errno::EINTR) => continue,
            Err(_) => return false,
        };
        for byte in buffer.iter().take(count) {
            number = match (digit(*byte), number) {
                (Some(digit), so_far) => Some(append(so_far.unwrap_or(0), digit)),
                (None, Some(complete)) => {
                    found(complete);
                    None
                }
                (None, None) => None,
            };
        }
        if count == 0 {
            if let Some(complete) = number {
                found(complete);
            }
            return true;
        }
    }
}

fn digit(byte: u8) -> Option<c_int> {
    byte.is_ascii_digit()
        .then(|| c_int::from(byte.wrapping_sub(b'0')))
}

fn append(number: c_int, digit: c_int) -> c_int {
    number.saturating_mul(10).saturating_add(digit)
}

/// Calls `found` with each entry of a directory whose name is a number.
fn each_entry(directory: &CStr, found: &mut dyn FnMut(c_int)) -> nix::Result<()> {
    // getdents64(2): inode 8 bytes, offset 8, length of the record 2, type 1, then the name.
    const LENGTH_AT: usize = 16;
    const NAME_AT: usize = 19;
    let directory = open(directory)?;
    let mut buffer = [0u8; BUFFER_BYTES];
    loop {
        // SAFETY: the kernel writes at most the length given into the buffer.
        let count = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                directory.as_raw_fd(),
                buffer.as_mut_ptr(),
                buffer.len(),
            )
        };
        let count = usize::try_from(Errno::result(count)?).unwrap_or(0);
        if count == 0 {
            return Ok(());
        }
        let mut rest = buffer.get(..count).unwrap_or_default();
        while let Some(&[low, high]) = rest.get(LENGTH_AT..LENGTH_AT + 2) {
            let length = usize::from(u16::from_ne_bytes([low, high]));
            let name = rest.get(NAME_AT..length).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            // Skips the entry of the directory's own descriptor in /proc/self/fd.
            if let Some(number) = parse(name).filter(|number| *number != directory.as_raw_fd()) {
                found(number);
            }
            rest = rest.get(length.max(1)..).unwrap_or_default();
        }
    }
}

/// Parses a whole name as a decimal number.
fn parse(name: &[u8]) -> Option<c_int> {
    if name.is_empty() {
        return None;
    }
    name.iter().try_fold(0, |number, byte| {
        digit(*byte).map(|digit| append(number, digit))
    })
}

/// How far a process has come, by its `stat` (proc_pid_stat(5)).
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It has memory.
    Alive {
        /// Whether it tells this process its status. It may change that later (prctl(2),
        /// `PR_SET_DUMPABLE`). That hides its status only in the moment in which it loses its memory: a
        /// process without memory tells it again (__ptrace_may_access, kernel/ptrace.c). A hidden status
        /// reads as 0, and the process may choose 0 anyway.
        tells: bool,
        /// The processor that it ran on last.
        processor: usize,
    },
    /// Its program is over, while the kernel still frees its memory, which takes longer than many
    /// runs. It does nothing more: it is in `do_exit`, has no other thread and no memory. What it has
    /// open is closed a moment later.
    Exiting {
        /// Its wait status, or 0 if it does not tell it.
        status: c_int,
    },
}

/// The `stat` of one process, whose id may be another's later.
#[derive(Debug)]
pub(crate) struct StatFile {
    stat: File,
    /// Its `oom_score`.
    score: Option<File>,
}

impl StatFile {
    /// That of the process which has this id now.
    pub(crate) fn of(pid: c_int) -> Option<Self> {
        let mut path = [0u8; PATH_BYTES];
        let stat = open(path_of(pid, "stat", &mut path)?).ok()?;
        let score = open(path_of(pid, "oom_score", &mut path)?).ok();
        Some(Self {
            stat: stat.into(),
            score: score.map(File::from),
        })
    }

    /// Whether it may have memory still. `oom_score` is 0 without, and for most processes not
    /// otherwise (proc_oom_score, fs/proc/base.c).
    ///
    /// It takes a quarter of the time of [`Self::progress`], which holds on to the memory for a
    /// moment (do_task_stat, fs/proc/array.c): if the process lets go of it in that moment, the
    /// kernel frees it here, and this process waits for that.
    pub(crate) fn may_have_memory(&self) -> bool {
        let mut buffer = [0u8; 8];
        let score = self.score.as_ref();
        let count = score.and_then(|score| score.read_at(&mut buffer, 0).ok());
        count.and_then(|count| buffer.get(..count)) != Some(b"0\n")
    }

    /// How far it has come, if it is a child of `parent`; `None` if it has ended, or another thread of
    /// it runs.
    pub(crate) fn progress(&self, parent: c_int) -> Option<Progress> {
        /// `PF_EXITING` (include/linux/sched.h).
        const EXITING: u64 = 4;
        let mut buffer = [0u8; 1024];
        let count = self.stat.read_at(&mut buffer, 0).ok()?;
        let text = buffer.get(..count)?;
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        // proc_pid_stat(5): the first field here is the third, the process's state.
        let mut fields = text.get(name_end + 2..)?.split(|byte| *byte == b' ');
        let mut next = 3;
        let mut field = |number: usize| {
            let field = fields.nth(number.checked_sub(next)?)?;
            next = number + 1;
            std::str::from_utf8(field)
                .ok()?
                .trim_end()
                .parse::<u64>()
                .ok()
        };
        let is_child = field(4)? == u64::try_from(parent).ok()?;
        let is_exiting = field(9)? & EXITING != 0;
        let is_alone = field(20)? == 1;
        // It gives up its memory after its status is set (do_exit, kernel/exit.c).
        let has_memory = field(23)? != 0;
        // Where its code begins, if that may be read; otherwise 1 (do_task_stat, fs/proc/array.c). The
        // status may be read by the same who may read this.
        let tells = field(26)? > 1;
        let processor = usize::try_from(field(39)?).ok()?;
        let status = c_int::try_from(field(52)?).ok()?;
        match (is_child, has_memory) {
            (true, true) => Some(Progress::Alive { tells, processor }),
            (true, false) if is_exiting && is_alone => Some(Progress::Exiting { status }),
            _ => None,
        }
    }
}

/// The parent of a process, from the fourth field of `/proc/<pid>/stat`. The second field is the
/// program's name in parentheses, which may contain any characters.
pub(crate) fn parent_of(pid: c_int) -> Option<c_int> {
    let mut path = [0u8; PATH_BYTES];
    let mut buffer = [0u8; 512];
    let file = open(path_of(pid, "stat", &mut path)?).ok()?;
    let count = nix::unistd::read(&file, &mut buffer).ok()?;
    let text = buffer.get(..count)?;
    let name_end = text.iter().rposition(|byte| *byte == b')')?;
    text.get(name_end..)?
        .split(|byte| *byte == b' ')
        .nth(2)
        .and_then(parse)
}

/// Room for a path below `/proc/<pid>`.
const PATH_BYTES: usize = 32;

/// Writes `/proc/<pid>/<name>` into `buffer`.
fn path_of<'b>(pid: c_int, name: &str, buffer: &'b mut [u8; PATH_BYTES]) -> Option<&'b CStr> {
    use std::io::Write;
    let mut rest = &mut buffer[..];
    // Formatting an integer into a slice does not allocate.
    write!(rest, "/proc/{pid}/{name}\0").ok()?;
    CStr::from_bytes_until_nul(buffer).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::process::Command;

    #[test]
    fn the_parent_of_a_process_is_read_from_its_stat() {
        let mut child = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let pid = c_int::try_from(child.id()).unwrap();
        let own = c_int::try_from(std::process::id()).unwrap();
        assert_eq!(parent_of(pid), Some(own));
        let mut seen = Vec::new();
        each_entry(c"/proc", &mut |pid| seen.push(pid)).unwrap();
        assert!(seen.contains(&pid) && seen.contains(&own));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_has_memory_until_it_ends() {
        let mut child = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let stat = StatFile::of(c_int::try_from(child.id()).unwrap()).unwrap();
        assert!(stat.may_have_memory());
        child.kill().unwrap();
        // It is not collected.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while stat.may_have_memory() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(!stat.may_have_memory());
        child.wait().unwrap();
    }

    #[test]
    fn the_children_of_this_thread_are_listed() {
        let mut child = Command::new("/bin/sleep").arg("60").spawn().unwrap();
        let pid = c_int::try_from(child.id()).unwrap();
        let mut seen = Vec::new();
        assert!(each_child(&mut |pid| seen.push(pid)));
        assert!(seen.contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn without_close_range_every_descriptor_from_the_first_on_is_closed() {
        // In a separate process, so that it closes no other test's descriptors.
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "procfs::tests::helper_closes_descriptors"])
            .args(["--ignored", "--nocapture"])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("left []"), "{text}");
    }

    #[test]
    #[ignore = "a helper that another test runs"]
    fn helper_closes_descriptors() {
        use std::os::fd::IntoRawFd;
        // More than one buffer of directory entries.
        for _ in 0..700 {
            let _ = std::fs::File::open("/dev/null").unwrap().into_raw_fd();
        }
        close_from(100).unwrap();
        let mut left = Vec::new();
        each_entry(c"/proc/self/fd", &mut |fd| left.push(fd)).unwrap();
        left.retain(|fd| *fd >= 100);
        println!("left {left:?}");
    }
}
