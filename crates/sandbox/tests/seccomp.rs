//! seccomp alone: each attack succeeds without it and fails with it, seen from outside where that
//! is possible.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use altair_sandbox::{GuardState, Status};
use common::attack::Guarded::{ByItself, Not};
use common::attack::{SECCOMP, WITH_NETWORK, WITHOUT_METADATA, attack, call, channel, say};

attacks![
    start_program,
    make_processes,
    make_thread,
    signal_process,
    connect_to,
    reach_sockets,
    listen,
    map_memory,
    link_files,
    change_metadata,
    enter_as_32_bit,
    enter_as_x32,
    knock,
    live_normally,
    second_thread,
];

const EPERM: i32 = libc::EPERM;
const ENOSYS: i32 = libc::ENOSYS;

fn c(text: &str) -> std::ffi::CString {
    std::ffi::CString::new(text).unwrap()
}

// Processes.

fn start_program(path: &str) {
    let (touch, path) = (c("/bin/touch"), c(path));
    let argv = [touch.as_ptr(), path.as_ptr(), std::ptr::null()];
    let argv = argv.as_ptr() as u64;
    say(
        "execveat",
        call(
            libc::SYS_execveat,
            &[u64::MAX, touch.as_ptr() as u64, argv, 0, 0],
        ),
    );
    say(
        "execve",
        call(libc::SYS_execve, &[touch.as_ptr() as u64, argv, 0]),
    );
}

#[test]
fn no_program_is_executed() {
    let dir = tempfile::tempdir().unwrap();
    let marker = dir.path().join("executed");
    let attacked = attack("start_program", SECCOMP, marker.to_str().unwrap());
    assert_eq!(attacked.errno("execve"), EPERM);
    assert_eq!(attacked.errno("execveat"), EPERM);
    assert!(!marker.exists());
    attack("start_program", Not, marker.to_str().unwrap());
    assert!(marker.exists());
}

fn make_processes(path: &str) {
    // A new process leaves a file.
    let child = |name: &str, result: i64| {
        if result == 0 {
            let _ = std::fs::write(format!("{path}/{name}"), "");
            unsafe { libc::_exit(0) };
        }
        say(name, result);
    };
    child("clone", call(libc::SYS_clone, &[libc::SIGCHLD as u64]));
    child("quiet_clone", call(libc::SYS_clone, &[0]));
    #[cfg(target_arch = "x86_64")]
    child("fork", call(libc::SYS_fork, &[]));
    let mut args = [0u64; 11];
    args[4] = libc::SIGCHLD as u64;
    child(
        "clone3",
        call(libc::SYS_clone3, &[args.as_ptr() as u64, 88]),
    );
    // SAFETY: waits for all children.
    while unsafe { libc::wait(std::ptr::null_mut()) } > 0 {}
}

#[test]
fn no_process_is_made() {
    let kinds: &[&str] = if cfg!(target_arch = "x86_64") {
        &["clone", "quiet_clone", "fork", "clone3"]
    } else {
        &["clone", "quiet_clone", "clone3"]
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let attacked = attack("make_processes", SECCOMP, path);
    for kind in kinds {
        let errno = if *kind == "clone3" { ENOSYS } else { EPERM };
        assert_eq!(attacked.errno(kind), errno, "{kind}");
        assert!(!dir.path().join(kind).exists(), "{kind}");
    }
    attack("make_processes", Not, path);
    for kind in kinds.iter().filter(|kind| **kind != "quiet_clone") {
        assert!(dir.path().join(kind).exists(), "{kind}");
    }
}

fn make_thread(_: &str) {
    let told = std::thread::spawn(|| {
        // What a thread makes is refused to it, too.
        call(libc::SYS_socket, &[1, 1, 0])
    })
    .join()
    .unwrap();
    println!("thread {told}");
}

#[test]
fn threads_are_made_and_are_behind_the_filter() {
    assert_eq!(attack("make_thread", SECCOMP, "").output(), "thread -1\n");
    assert_ne!(attack("make_thread", Not, "").output(), "thread -1\n");
}

fn second_thread(_: &str) {
    use altair_sandbox::{FinalGuards, Landlock, Seccomp};
    let (go, wait) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        wait.recv().unwrap();
        call(libc::SYS_socket, &[1, 1, 0])
    });
    let taken = FinalGuards {
        landlock: Some(Landlock::default()),
        seccomp: Some(Seccomp::default()),
        descriptors: None,
    }
    .take(Some(channel()));
    go.send(()).unwrap();
    println!("thread {}", thread.join().unwrap());
    println!("seccomp {}", taken.seccomp == Some(GuardState::InForce));
    println!(
        "landlock {}",
        matches!(taken.landlock, Some(GuardState::Missing { because }) if because.contains("thread"))
    );
}

#[test]
fn a_thread_of_before_is_behind_the_filter_and_makes_landlock_say_that_it_is_missing() {
    let attacked = attack("second_thread", ByItself, "");
    assert_eq!(
        attacked.output(),
        "thread -1\nseccomp true\nlandlock true\n"
    );
}

fn signal_process(pid: &str) {
    let pid: u64 = pid.parse().unwrap();
    let own = u64::from(std::process::id());
    say("own", call(libc::SYS_kill, &[own, 0]));
    say("raise", call(libc::SYS_tgkill, &[own, own, 0]));
    say("group", call(libc::SYS_kill, &[0, 0]));
    say("tkill", call(libc::SYS_tkill, &[pid, 9]));
    say("tgkill", call(libc::SYS_tgkill, &[pid, pid, 9]));
    say("prlimit", call(libc::SYS_prlimit64, &[pid, 7, 0, 0]));
    say("getsid", call(libc::SYS_getsid, &[pid]));
    say("all", call(libc::SYS_kill, &[u64::MAX, 0]));
    say("kill", call(libc::SYS_kill, &[pid, 9]));
}

#[test]
fn a_signal_reaches_nobody_else() {
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = other.id().to_string();
    let attacked = attack("signal_process", SECCOMP, &pid);
    assert_eq!(attacked.errno("own"), 0);
    assert_eq!(attacked.errno("raise"), 0);
    for refused in [
        "group", "all", "kill", "tkill", "tgkill", "prlimit", "getsid",
    ] {
        assert_eq!(attacked.errno(refused), EPERM, "{refused}");
    }
    assert_eq!(other.try_wait().unwrap(), None);
    attack("signal_process", Not, &pid);
    assert!(!other.wait().unwrap().success());
}

// The network.

fn connect_to(address: &str) {
    let said = |name: &str, result: std::io::Result<()>| {
        let errno = result.map_or_else(|error| error.raw_os_error().unwrap_or(-1), |()| 0);
        println!("{name} {errno}");
    };
    said("tcp", TcpStream::connect(address).map(drop));
    said(
        "udp",
        // The standard library's socket binds, which is listening.
        UdpSocket::bind("127.0.0.1:0").map(drop),
    );
    let (kind, inet) = (libc::SOCK_DGRAM as u64, libc::AF_INET as u64);
    say("udp_socket", call(libc::SYS_socket, &[inet, kind, 0]));
}

#[test]
fn tcp_is_made_with_the_network_on_only_and_nothing_listens() {
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    host.set_nonblocking(true).unwrap();
    let address = host.local_addr().unwrap().to_string();
    let attacked = attack("connect_to", SECCOMP, &address);
    for refused in ["tcp", "udp", "udp_socket"] {
        assert_eq!(attacked.errno(refused), EPERM, "{refused}");
    }
    assert!(host.accept().is_err());
    let attacked = attack("connect_to", WITH_NETWORK, &address);
    assert_eq!(attacked.errno("tcp"), 0);
    assert_eq!(attacked.errno("udp"), EPERM);
    assert_eq!(attacked.errno("udp_socket"), 0);
    assert!(host.accept().is_ok());
    assert_eq!(attack("connect_to", Not, &address).errno("udp"), 0);
}

fn reach_sockets(path: &str) {
    let mut pair = [0i32; 2];
    let pointer = pair.as_mut_ptr() as u64;
    let unix = libc::AF_UNIX as u64;
    let datagram = libc::SOCK_DGRAM as u64;
    say(
        "socketpair",
        call(
            libc::SYS_socketpair,
            &[unix, libc::SOCK_STREAM as u64, 0, pointer],
        ),
    );
    say(
        "pair",
        call(libc::SYS_socketpair, &[unix, datagram, 0, pointer]),
    );
    let result = UnixStream::connect(path).map(drop);
    println!(
        "unix {}",
        result.map_or_else(|error| error.raw_os_error().unwrap(), |()| 0)
    );
    for (name, family, kind) in [
        ("netlink", libc::AF_NETLINK, libc::SOCK_RAW),
        ("vsock", libc::AF_VSOCK, libc::SOCK_STREAM),
        ("alg", libc::AF_ALG, libc::SOCK_SEQPACKET),
    ] {
        say(
            name,
            call(libc::SYS_socket, &[family as u64, kind as u64, 0]),
        );
    }
}

#[test]
fn no_other_kind_of_socket_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("socket");
    let host = std::os::unix::net::UnixListener::bind(&path).unwrap();
    host.set_nonblocking(true).unwrap();
    for guarded in [SECCOMP, WITH_NETWORK] {
        let attacked = attack("reach_sockets", guarded, path.to_str().unwrap());
        assert_eq!(attacked.errno("socketpair"), 0);
        for refused in ["pair", "unix", "netlink", "vsock", "alg"] {
            assert_eq!(attacked.errno(refused), EPERM, "{refused}");
        }
        assert!(host.accept().is_err());
    }
    let attacked = attack("reach_sockets", Not, path.to_str().unwrap());
    assert_eq!(attacked.errno("unix"), 0);
    assert_eq!(attacked.errno("pair"), 0);
    assert!(host.accept().is_ok());
}

fn listen(_: &str) {
    // Without bind, listen takes a port by itself.
    let socket = call(libc::SYS_socket, &[2, 1, 0]);
    say("listen", call(libc::SYS_listen, &[socket as u64, 1]));
    let linger = [1i32, 10];
    let options = [
        socket as u64,
        libc::SOL_SOCKET as u64,
        libc::SO_LINGER as u64,
        linger.as_ptr() as u64,
        8,
    ];
    say("linger", call(libc::SYS_setsockopt, &options));
    let on = 1i32;
    let options = [
        socket as u64,
        libc::SOL_SOCKET as u64,
        libc::SO_KEEPALIVE as u64,
        &raw const on as u64,
        4,
    ];
    say("keepalive", call(libc::SYS_setsockopt, &options));
}

#[test]
fn a_socket_that_may_connect_may_not_listen_or_linger() {
    let attacked = attack("listen", WITH_NETWORK, "");
    assert_eq!(attacked.errno("listen"), EPERM);
    assert_eq!(attacked.errno("linger"), EPERM);
    assert_eq!(attacked.errno("keepalive"), 0);
    let attacked = attack("listen", Not, "");
    assert_eq!(attacked.errno("listen"), 0);
    assert_eq!(attacked.errno("linger"), 0);
}

// Memory and files.

fn map_memory(_: &str) {
    let map = |flags: i32, protection: i32| {
        let flags = (flags | libc::MAP_ANONYMOUS) as u64;
        call(
            libc::SYS_mmap,
            &[0, 4096, protection as u64, flags, u64::MAX, 0],
        )
    };
    let write = libc::PROT_READ | libc::PROT_WRITE;
    say("private", map(libc::MAP_PRIVATE, write));
    say(
        "executable",
        map(libc::MAP_PRIVATE, write | libc::PROT_EXEC),
    );
    say("shared", map(libc::MAP_SHARED, write));
    say("stack", map(libc::MAP_PRIVATE | libc::MAP_GROWSDOWN, write));
    let name = c("x");
    say(
        "memfd",
        call(libc::SYS_memfd_create, &[name.as_ptr() as u64, 0]),
    );
    let segment = call(libc::SYS_shmget, &[0, 4096, 0o600]);
    say("shmget", segment);
    if let Ok(segment) = u64::try_from(segment) {
        // It would outlive all of the tests.
        call(libc::SYS_shmctl, &[segment, libc::IPC_RMID as u64, 0]);
    }
}

#[test]
fn memory_that_no_limit_counts_is_not_to_be_had() {
    let attacked = attack("map_memory", SECCOMP, "");
    assert_eq!(attacked.errno("private"), 0);
    assert_eq!(attacked.errno("executable"), 0);
    for refused in ["shared", "stack", "shmget"] {
        assert_eq!(attacked.errno(refused), EPERM, "{refused}");
    }
    assert_eq!(attacked.errno("memfd"), ENOSYS);
    let attacked = attack("map_memory", Not, "");
    for there in ["shared", "stack", "memfd"] {
        assert_eq!(attacked.errno(there), 0, "{there}");
    }
}

fn link_files(path: &str) {
    let (from, hard, soft) = (
        c(path),
        c(&format!("{path}.hard")),
        c(&format!("{path}.soft")),
    );
    let at = libc::AT_FDCWD as u64;
    let [from, hard, soft] = [&from, &hard, &soft].map(|path| path.as_ptr() as u64);
    say("link", call(libc::SYS_linkat, &[at, from, at, hard, 0]));
    say("symlink", call(libc::SYS_symlinkat, &[from, at, soft]));
    let device = c(&format!("{path}.device"));
    let device = device.as_ptr() as u64;
    let null = libc::makedev(1, 3);
    let mode = u64::from(libc::S_IFCHR | 0o600);
    say("device", call(libc::SYS_mknodat, &[at, device, mode, null]));
    let set_id = c(&format!("{path}.set_id"));
    let flags = (libc::O_CREAT | libc::O_WRONLY) as u64;
    say(
        "set_id",
        call(
            libc::SYS_openat,
            &[at, set_id.as_ptr() as u64, flags, 0o4755],
        ),
    );
}

#[test]
fn no_link_device_or_set_id_file_is_made() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let entries = || std::fs::read_dir(dir.path()).unwrap().count();
    let attacked = attack("link_files", SECCOMP, file.to_str().unwrap());
    for refused in ["link", "symlink", "device", "set_id"] {
        assert_eq!(attacked.errno(refused), EPERM, "{refused}");
    }
    assert_eq!(entries(), 1);
    attack("link_files", Not, file.to_str().unwrap());
    assert_eq!(entries(), if common::is_root() { 5 } else { 4 });
}

fn change_metadata(path: &str) {
    let file = c(path);
    let at = libc::AT_FDCWD as u64;
    let pointer = file.as_ptr() as u64;
    say("chmod", call(libc::SYS_fchmodat, &[at, pointer, 0o600]));
    say("set_id", call(libc::SYS_fchmodat, &[at, pointer, 0o4600]));
    let opened = call(libc::SYS_openat, &[at, pointer, libc::O_RDONLY as u64]);
    let descriptor = u64::try_from(opened).unwrap();
    say(
        "by_descriptor",
        call(libc::SYS_fchmod, &[descriptor, 0o600]),
    );
    say(
        "set_id_by_descriptor",
        call(libc::SYS_fchmod, &[descriptor, 0o4600]),
    );
    say("utimes", call(libc::SYS_utimensat, &[at, pointer, 0, 0]));
    let owner = u64::from(u32::MAX);
    say(
        "chown",
        call(libc::SYS_fchownat, &[at, pointer, owner, owner, 0]),
    );
    let name = c("user.altair");
    say(
        "xattr",
        call(libc::SYS_removexattr, &[pointer, name.as_ptr() as u64]),
    );
}

#[test]
fn metadata_changes_where_the_policy_says_so_but_for_set_id_bits() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let attacked = attack("change_metadata", WITHOUT_METADATA, path);
    let all = [
        "chmod",
        "set_id",
        "by_descriptor",
        "set_id_by_descriptor",
        "utimes",
        "chown",
        "xattr",
    ];
    for refused in all {
        assert_eq!(attacked.errno(refused), EPERM, "{refused}");
    }
    let attacked = attack("change_metadata", SECCOMP, path);
    for made in ["chmod", "by_descriptor", "utimes", "chown"] {
        assert_eq!(attacked.errno(made), 0, "{made}");
    }
    assert_ne!(attacked.errno("xattr"), EPERM);
    let unguarded = attack("change_metadata", Not, path);
    for set_id in ["set_id", "set_id_by_descriptor"] {
        assert_eq!(attacked.errno(set_id), EPERM, "{set_id}");
        assert_eq!(unguarded.errno(set_id), 0, "{set_id}");
    }
}

// Other ways into the kernel.

fn enter_as_32_bit(_: &str) {
    #[cfg(target_arch = "x86_64")]
    {
        let result: i32;
        // SAFETY: getpid (20) as a 32-bit program calls it; it takes nothing.
        unsafe { std::arch::asm!("int 0x80", inlateout("eax") 20 => result) };
        println!("entered {}", result == std::process::id() as i32);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_32_bit_entry_is_closed() {
    let attacked = attack("enter_as_32_bit", SECCOMP, "");
    assert_eq!(attacked.ended.status, Status::Signalled(libc::SIGSYS));
    assert_eq!(attacked.output(), "");
    // Where the kernel has the entry at all.
    let attacked = attack("enter_as_32_bit", Not, "");
    assert!(
        attacked.output() == "entered true\n"
            || attacked.ended.status == Status::Signalled(libc::SIGSEGV)
    );
}

fn enter_as_x32(_: &str) {
    const X32: i64 = 0x4000_0000;
    say("getpid", call(X32 | libc::SYS_getpid, &[]));
    say("execve", call(X32 | 520, &[]));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_x32_entry_is_closed() {
    let attacked = attack("enter_as_x32", SECCOMP, "");
    assert_eq!(attacked.errno("getpid"), EPERM);
    assert_eq!(attacked.errno("execve"), EPERM);
    assert_ne!(attack("enter_as_x32", Not, "").errno("getpid"), EPERM);
}

/// Calls with arguments that are harmless: each fails for another reason where it may be made.
const KNOCKS: &[(&str, i64, [u64; 4])] = &[
    ("ptrace", libc::SYS_ptrace, [u64::MAX, 0, 0, 0]),
    ("process_vm_readv", libc::SYS_process_vm_readv, [0, 0, 0, 0]),
    ("pidfd_getfd", libc::SYS_pidfd_getfd, [u64::MAX, 0, 0, 0]),
    ("setns", libc::SYS_setns, [u64::MAX, 0, 0, 0]),
    ("unshare", libc::SYS_unshare, [0, 0, 0, 0]),
    ("mount", libc::SYS_mount, [8, 8, 8, 0]),
    ("bpf", libc::SYS_bpf, [u64::MAX, 8, 8, 0]),
    ("perf", libc::SYS_perf_event_open, [8, 0, 0, 0]),
    ("keyctl", libc::SYS_keyctl, [u64::MAX, 0, 0, 0]),
    ("add_key", libc::SYS_add_key, [8, 8, 0, 0]),
    ("userfaultfd", libc::SYS_userfaultfd, [u64::MAX, 0, 0, 0]),
    ("fanotify", libc::SYS_fanotify_mark, [u64::MAX, 0, 0, 0]),
    ("inotify", libc::SYS_inotify_init1, [0, 0, 0, 0]),
    ("personality", libc::SYS_personality, [0, 0, 0, 0]),
    ("kcmp", libc::SYS_kcmp, [0, 0, 99, 0]),
    ("seccomp", libc::SYS_seccomp, [99, 0, 0, 0]),
    ("semget", libc::SYS_semget, [0, 0, 0, 0]),
    ("splice", libc::SYS_splice, [u64::MAX, 0, u64::MAX, 0]),
    ("setpriority", libc::SYS_setpriority, [99, 0, 0, 0]),
    (
        "sched_setaffinity",
        libc::SYS_sched_setaffinity,
        [0, 0, 0, 0],
    ),
    ("setsid", libc::SYS_setpgid, [0, u64::MAX, 0, 0]),
    ("setuid", libc::SYS_setuid, [u64::MAX, 0, 0, 0]),
    ("sysv_message", libc::SYS_msgget, [1, 0, 0, 0]),
    ("dumpable", libc::SYS_prctl, [4, 1, 0, 0]),
    ("subreaper", libc::SYS_prctl, [36, 0, 0, 0]),
    ("death_signal", libc::SYS_prctl, [1, 99, 0, 0]),
    ("owner", libc::SYS_fcntl, [u64::MAX, 8, 1, 0]),
    ("terminal_keys", libc::SYS_ioctl, [u64::MAX, 0x5412, 0, 0]),
];

fn knock(_: &str) {
    for (name, number, args) in KNOCKS {
        say(name, call(*number, args));
    }
    for (name, number) in [
        ("io_uring", libc::SYS_io_uring_setup),
        ("landlock", libc::SYS_landlock_create_ruleset),
        ("openat2", libc::SYS_openat2),
        ("pidfd_open", libc::SYS_pidfd_open),
    ] {
        say(name, call(number, &[]));
    }
}

#[test]
fn the_rest_of_the_kernel_is_closed() {
    let attacked = attack("knock", SECCOMP, "");
    let free = attack("knock", Not, "");
    for (name, _, _) in KNOCKS {
        assert_eq!(attacked.errno(name), EPERM, "{name}");
        assert_ne!(free.errno(name), EPERM, "{name}");
    }
    for probed in ["io_uring", "landlock", "openat2", "pidfd_open"] {
        assert_eq!(attacked.errno(probed), ENOSYS, "{probed}");
        assert_ne!(free.errno(probed), ENOSYS, "{probed}");
    }
}

// Normal life.

fn live_normally(path: &str) {
    let path = Path::new(path);
    std::fs::create_dir(path.join("made")).unwrap();
    std::fs::write(path.join("made/file"), "text").unwrap();
    std::fs::copy(path.join("made/file"), path.join("made/copy")).unwrap();
    std::fs::rename(path.join("made/copy"), path.join("made/moved")).unwrap();
    assert_eq!(std::fs::read_dir(path.join("made")).unwrap().count(), 2);
    std::fs::File::open(path.join("made/file"))
        .unwrap()
        .lock_shared()
        .unwrap();
    std::fs::remove_dir_all(path.join("made")).unwrap();
    let (_ours, _theirs) = UnixStream::pair().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop((reader, writer));
    let threads: Vec<_> = (0..8)
        .map(|index| std::thread::spawn(move || index))
        .collect();
    let sum: i32 = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    std::thread::sleep(std::time::Duration::from_millis(1));
    std::thread::available_parallelism().unwrap();
    println!("{sum}");
    // A failed assertion ends it by a signal to itself.
    unsafe { libc::raise(libc::SIGUSR1) };
}

#[test]
fn normal_life_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let attacked = attack("live_normally", SECCOMP, dir.path().to_str().unwrap());
    assert_eq!(attacked.output(), "28\n");
    assert_eq!(attacked.ended.status, Status::Signalled(libc::SIGUSR1));
    assert_eq!(attacked.refused, []);
}

#[test]
fn the_harness_is_honest() {
    // An attacker whose guard could not be taken does not get to its attack.
    let output = Command::new(std::env::current_exe().unwrap())
        .env("ALTAIR_ATTACK", "no such attack")
        .env("ALTAIR_ATTACK_GUARDS", "itself")
        .env("ALTAIR_ATTACK_ARGUMENT", "")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
}
