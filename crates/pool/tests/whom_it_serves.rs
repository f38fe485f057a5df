//! Whom a pool serves: callers that go to its socket and speak its protocol from within a sandbox,
//! with a proof that they have made up, one that they have learned outside, or the right one, which
//! somebody outside looks up for them.
//!
//! This program is the test, the pools, and the callers.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

use std::fs;
use std::io::{BufRead, BufReader, IoSlice, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr,
    UnixCredentials, accept, bind, connect, listen, recv, sendmsg, socket,
};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};
use serde::Deserialize;

/// The first answers of a pool; one that it gives only to callers that it serves is not read.
#[derive(Debug, Deserialize)]
enum Answer {
    Challenge { descriptor: i32 },
    Accepted,
    Refused(String),
}

/// What a caller receives.
#[derive(Debug)]
enum Received {
    Answer(Answer),
    Served,
    Closed,
}

/// The number of `Answer::State`.
const OF_STATE: u8 = 8;
/// The number of `Answer::Seen`.
const OF_SEEN: u8 = 10;
/// More packets follow.
const MORE: u8 = 0;
/// The last packet of a message.
const LAST: u8 = 1;
/// `Work::State`.
const STATE: u8 = 1;
/// `Work::Look`.
const LOOK: u8 = 3;

const REFUSED_LOOK: &str = "it may not look into the pool";
const UNEQUAL: &str = "it differs from the pool in its ";
const BY_ANOTHER: &str = "another process has connected";
const FILTERED: &str = "it has system call filters or no_new_privs that process 1 does not have";
const SERVED: &str = "served";
const CLOSED: &str = "closed";
const UNPROVEN: &str = "closed at the proof";

/// How a caller goes about it.
const WAYS: [&str; 3] = [
    // It enters its sandbox and then connects; somebody outside looks into the pool for it.
    "helped",
    // The same, with a proof that it has learned outside over another connection.
    "learned",
    // It connects and then enters its sandbox.
    "connected",
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match *words.as_slice() {
        ["pool", directory, confinement] => {
            enter(confinement);
            altair_pool::serve(Path::new(directory)).unwrap();
        }
        ["caller", socket, confinement, way] => {
            let said = call(Path::new(socket), confinement, way);
            println!("{said}");
        }
        ["rogue", socket, confinement] => listen_at(Path::new(socket), confinement),
        ["host"] => {
            let setting = altair_pool::Setting::Auto;
            match altair_pool::Client::new(setting, None).state() {
                Ok(_) => println!("{SERVED}"),
                Err(why) => println!("{why}"),
            }
        }
        _ => test(),
    }
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn test() {
    if is_root() {
        // Of its own, so that what is mounted is gone afterwards.
        if unshare(CloneFlags::CLONE_NEWNS).is_err() {
            println!("skipped: root may not make sandboxes here");
            return;
        }
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
    }
    let pool = Pool::start("none");
    let mut failed = Vec::new();
    let mut check = |what: String, said: String, wanted: &str| {
        println!("{what}: {said}");
        if said != wanted {
            failed.push(format!("{what}: {said}, not: {wanted}"));
        }
    };
    for way in WAYS {
        let wanted = if way == "learned" {
            REFUSED_LOOK
        } else {
            SERVED
        };
        check(format!("none, {way}"), pool.called("none", way), wanted);
    }
    check("alone".into(), pool.called("none", "alone"), SERVED);
    for (confinement, differing) in confinements() {
        for way in WAYS {
            let said = pool.called(confinement, way);
            // It is a child that asks then.
            let forks = ["traced", "pid", "time"].contains(&confinement);
            let wanted = match forks && way == "connected" {
                true => BY_ANOTHER.to_owned(),
                false => format!("{UNEQUAL}{differing}"),
            };
            check(format!("{confinement}, {way}"), said, &wanted);
        }
    }
    check(
        "inherited".into(),
        pool.called("none", "inherited"),
        BY_ANOTHER,
    );
    for way in ["begun by another", "ended by another"] {
        check(way.into(), pool.called("none", way), CLOSED);
    }
    let said = pool.called("none", "proven by another");
    check("proven by another".into(), said, UNPROVEN);
    check(
        "another's pool".into(),
        hosted("no_new_privs"),
        "it differs from the pool in its no_new_privs; nothing",
    );
    if is_root() {
        // `/proc` tells no difference then.
        check(
            "another's pool, landlock".into(),
            hosted("landlock"),
            "it may not look into this process; nothing",
        );
        check("forged".into(), pool.called("uts", "forged"), BY_ANOTHER);
        for way in ["alone", "learned", "connected alone"] {
            check(
                format!("landlock, {way}"),
                pool.called("landlock", way),
                REFUSED_LOOK,
            );
        }
        // Equal to its pool, for all that can be counted; but the filters may be others.
        let filtered = Pool::start("filter");
        check(
            "two filters".into(),
            filtered.called("filter", "helped"),
            FILTERED,
        );
        let unable = Pool::start("no_new_privs");
        check(
            "two unable".into(),
            unable.called("no_new_privs", "helped"),
            FILTERED,
        );
        let equal = Pool::start("uts");
        let said = equal.called("uts", "helped");
        check(
            "two namespaces".into(),
            said,
            &format!("{UNEQUAL}namespaces"),
        );
        let inner = Pool::start("container");
        let said = inner.called("none", "helped");
        check("outside".into(), said, "it is in another pid namespace");
    } else {
        let said = pool.called("dumpless", "helped");
        check(
            "dumpless".into(),
            said,
            "the pool may not look into it (Permission denied (os error 13))",
        );
    }
    if let Some(group) = group("altair-test") {
        let _ = fs::remove_dir(group);
    }
    if is_root() {
        in_a_service(&mut check);
    }
    check("still".into(), pool.called("none", "alone"), SERVED);
    assert!(failed.is_empty(), "{failed:#?}");
    println!("ok");
}

/// What a host says that finds the socket of a process that is confined in its pool's place, and what
/// that process gets to know of it.
fn hosted(confinement: &str) -> String {
    let pool = Pool::start("none");
    let (path, directory) = (
        pool.socket.clone(),
        pool.directory.path().canonicalize().unwrap(),
    );
    pool.end();
    let own = std::env::current_exe().unwrap();
    let mut rogue = Command::new(&own)
        .args([Path::new("rogue"), &path, Path::new(confinement)])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(rogue.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let host = Command::new(own)
        .arg("host")
        .env("XDG_RUNTIME_DIR", directory)
        .output()
        .unwrap();
    let known = lines.next().unwrap().unwrap();
    rogue.wait().unwrap();
    drop(pool);
    format!("{}; {known}", String::from_utf8_lossy(&host.stdout).trim())
}

/// Listens in a pool's place.
fn listen_at(path: &Path, confinement: &str) {
    enter(confinement);
    let flags = SockFlag::SOCK_CLOEXEC;
    let listener = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None).unwrap();
    bind(listener.as_raw_fd(), &UnixAddr::new(path).unwrap()).unwrap();
    listen(&listener, Backlog::new(8).unwrap()).unwrap();
    println!("ready");
    let fd = accept(listener.as_raw_fd()).unwrap();
    // SAFETY: accepted just now.
    let host = unsafe { OwnedFd::from_raw_fd(fd) };
    let option = nix::sys::socket::sockopt::PeerCredentials;
    let pid = nix::sys::socket::getsockopt(&host, option).unwrap().pid();
    let mut packet = vec![0; 64 * 1024];
    loop {
        let count = recv(fd, &mut packet, MsgFlags::empty()).unwrap_or(0);
        match packet.get(..count) {
            Some([LAST, LOOK, descriptor @ ..]) => {
                let descriptor = postcard::from_bytes(descriptor).unwrap();
                let seen = look(pid.unsigned_abs(), descriptor);
                let seen = seen.unwrap_or_else(|_| format!("altair-{}", "0".repeat(32)));
                let content = postcard::to_allocvec(&seen).unwrap();
                send(fd, &[&[LAST, OF_SEEN], content.as_slice()].concat());
            }
            None | Some([]) => return println!("nothing"),
            Some(_) => return println!("its request"),
        }
    }
}

/// A service may have filters, which count as nothing added. A process of it may add some of its own.
fn in_a_service(check: &mut impl FnMut(String, String, &str)) {
    let Some(group) = group(SERVICE).filter(|group| fs::create_dir(group).is_ok()) else {
        return;
    };
    let pool = Pool::start("service filter");
    let said = pool.called("service filter", "helped");
    check("a service's filter".into(), said, SERVED);
    let bare = Pool::start("service");
    let said = pool.called("service filter", "helped");
    check("a filter in a service".into(), said, FILTERED);
    drop(pool);
    drop(bare);
    fs::remove_dir(group).unwrap();
}

/// What a caller enters, and in what it differs then.
fn confinements() -> Vec<(&'static str, &'static str)> {
    let mut all = vec![("traced", "tracer")];
    // A container may have it already.
    if !nix::sys::prctl::get_no_new_privs().unwrap() {
        all.push(("no_new_privs", "no_new_privs"));
    }
    if may_make_users() {
        all.push(("user", "namespaces"));
    }
    if is_root() {
        all.extend(
            [
                "uts",
                "ipc",
                "net",
                "mnt",
                "cgroup",
                "pid_for_children",
                "pid",
                "time",
            ]
            .map(|n| (n, "namespaces")),
        );
        all.extend([("time_for_children", "namespaces")]);
        all.extend(["uid", "gid", "groups"].map(|name| (name, "user or groups")));
        all.extend(["effective", "bounding", "inheritable"].map(|name| (name, "capabilities")));
        all.extend([
            ("filter", "system call filters"),
            ("chroot", "root directory"),
        ]);
        if group("altair-test").is_some_and(|group| fs::create_dir(&group).is_ok()) {
            all.push(("cgroup_path", "cgroup"));
        }
    }
    all
}

/// Whether a system lets this user make namespaces of users.
fn may_make_users() -> bool {
    // SAFETY: there is one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let made = unshare(CloneFlags::CLONE_NEWUSER);
            std::process::exit(i32::from(made.is_err()))
        }
        ForkResult::Parent { child } => {
            waitpid(child, None) == Ok(nix::sys::wait::WaitStatus::Exited(child, 0))
        }
    }
}

/// A pool in a directory of its own.
struct Pool {
    directory: tempfile::TempDir,
    process: Child,
    socket: PathBuf,
}

impl Pool {
    #[allow(clippy::zombie_processes)] // It is waited for when it is dropped; a panic ends the test.
    fn start(confinement: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().canonicalize().unwrap().join("altair");
        let process = Command::new(std::env::current_exe().unwrap())
            .args([Path::new("pool"), &at, Path::new(confinement)])
            // Its log; what it refuses its callers say.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let entries = fs::read_dir(&at).into_iter().flatten().flatten();
            let is_it = |entry: &fs::DirEntry| {
                let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
                is_socket && entry.path().extension().is_none()
            };
            if let Some(found) = entries.into_iter().find(is_it) {
                let socket = found.path();
                return Self {
                    directory,
                    process,
                    socket,
                };
            }
            assert!(Instant::now() < until, "no pool");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Has a caller call, and looks into the pool for it. Returns what it says at the end.
    fn called(&self, confinement: &str, way: &str) -> String {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            Path::new("caller"),
            &self.socket,
            Path::new(confinement),
            Path::new(way),
        ]);
        let inherited = reach(&self.socket);
        let fd = inherited.as_raw_fd();
        match way {
            "inherited" => {}
            "begun by another" => send(fd, &[MORE]),
            "ended by another" => {}
            "proven by another" => {
                send(fd, &[LAST, STATE]);
            }
            _ => {}
        }
        // SAFETY: dup2(2) is async-signal-safe; the copy does not close on exec.
        unsafe {
            command.pre_exec(move || {
                Errno::result(libc::dup2(fd, INHERITED))
                    .map(drop)
                    .map_err(Into::into)
            });
        }
        // A trial directory for what is mounted.
        let trial = self.directory.path().join("root");
        let _ = fs::create_dir(&trial);
        let mut caller = command
            .env("TRIAL", &trial)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut to = caller.stdin.take().unwrap();
        let mut said = String::new();
        for line in BufReader::new(caller.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            match line.split_once(' ') {
                Some(("look", descriptor)) => {
                    let name = self.look(descriptor);
                    writeln!(to, "{name}").unwrap();
                }
                Some(("end", _)) => {
                    send(fd, &[LAST, STATE]);
                    writeln!(to).unwrap();
                }
                _ => said = line,
            }
        }
        caller.wait().unwrap();
        // What it has mounted, which its namespace alone would not undo.
        while umount2(&trial, MntFlags::MNT_DETACH).is_ok() {}
        said
    }

    /// Ends it, and waits until it has ended.
    fn end(&self) {
        let listener = pid(&self.socket, self.process.id());
        let _ = kill(Pid::from_raw(listener.cast_signed()), Signal::SIGTERM);
        let until = Instant::now() + Duration::from_secs(20);
        while self.socket.exists() {
            assert!(Instant::now() < until, "it stays");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn look(&self, descriptor: &str) -> String {
        look(
            pid(&self.socket, self.process.id()),
            descriptor.parse().unwrap(),
        )
        .unwrap()
    }
}

/// The process that listens, as a child's namespace of processes may have made it another one.
fn pid(socket: &Path, started: u32) -> u32 {
    let connection = reach(socket);
    let option = nix::sys::socket::sockopt::PeerCredentials;
    let listener = nix::sys::socket::getsockopt(&connection, option)
        .unwrap()
        .pid();
    u32::try_from(listener)
        .ok()
        .filter(|pid| *pid > 0)
        .unwrap_or(started)
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|ended| ended.is_none()) && self.socket.exists() {
            self.end();
        }
        let _ = self.process.wait();
    }
}

/// The number of the connection that callers inherit.
const INHERITED: RawFd = 77;

fn call(path: &Path, confinement: &str, way: &str) -> String {
    let first = (way == "learned").then(|| reach(path));
    let learned = first.map(|connection| {
        send(connection.as_raw_fd(), &[LAST, STATE]);
        match receive(connection.as_raw_fd()) {
            Received::Answer(Answer::Challenge { descriptor }) => helped(descriptor),
            other => panic!("{other:?}"),
        }
    });
    let early = way.starts_with("connected").then(|| reach(path));
    // It may go on as a child, which says the same at the end.
    enter(confinement);
    let inherits = way == "inherited" || way.ends_with("by another");
    let connection = match early {
        Some(connection) => connection,
        // SAFETY: the starter has made it, and nothing else has it.
        None if inherits => unsafe { OwnedFd::from_raw_fd(INHERITED) },
        None => reach(path),
    };
    let fd = connection.as_raw_fd();
    match way {
        "ended by another" => {
            send(fd, &[MORE]);
            println!("end it");
            std::io::stdin().lines().next().unwrap().unwrap();
        }
        "proven by another" => {}
        "forged" => send_as(fd, &[LAST, STATE], nix::unistd::getppid().as_raw()),
        _ => send(fd, &[LAST, STATE]),
    }
    let descriptor = match receive(fd) {
        Received::Answer(Answer::Challenge { descriptor }) => descriptor,
        other => return end(other),
    };
    let alone = || {
        let listener = pid(path, 0);
        look(listener, descriptor).unwrap_or_else(|_| format!("altair-{}", "0".repeat(32)))
    };
    let proof = match learned {
        Some(proof) => proof,
        None if way.ends_with("alone") => alone(),
        None => helped(descriptor),
    };
    let content = postcard::to_allocvec(&proof).unwrap();
    let packet = [&[LAST], content.as_slice()].concat();
    send(fd, &packet);
    match receive(fd) {
        Received::Closed => UNPROVEN.into(),
        other => end(other),
    }
}

fn end(received: Received) -> String {
    match received {
        Received::Served => SERVED.into(),
        Received::Answer(Answer::Refused(why)) => why,
        Received::Closed => CLOSED.into(),
        other @ Received::Answer(_) => format!("{other:?}"),
    }
}

/// Has somebody outside look into the pool.
fn helped(descriptor: i32) -> String {
    println!("look {descriptor}");
    std::io::stdin().lines().next().unwrap().unwrap()
}

fn look(pid: u32, descriptor: i32) -> std::io::Result<String> {
    let shown = fs::read_link(format!("/proc/{pid}/fd/{descriptor}"))?;
    let shown = shown.to_string_lossy().into_owned();
    let name = shown
        .strip_prefix("/memfd:")
        .and_then(|rest| rest.strip_suffix(" (deleted)"));
    Ok(name.expect("a memfd").to_owned())
}

fn reach(path: &Path) -> OwnedFd {
    let connection = socket(
        AddressFamily::Unix,
        SockType::SeqPacket,
        SockFlag::SOCK_CLOEXEC,
        None,
    )
    .unwrap();
    connect(connection.as_raw_fd(), &UnixAddr::new(path).unwrap()).unwrap();
    connection
}

fn send(fd: RawFd, packet: &[u8]) {
    let sent = nix::sys::socket::send(fd, packet, MsgFlags::MSG_NOSIGNAL);
    assert!(matches!(sent, Ok(_) | Err(Errno::EPIPE)), "{sent:?}");
}

/// Sends a packet in the name of another process, as root may.
fn send_as(fd: RawFd, packet: &[u8], pid: i32) {
    let name = UnixCredentials::from(libc::ucred {
        pid,
        uid: 0,
        gid: 0,
    });
    let named = [ControlMessage::ScmCredentials(&name)];
    sendmsg::<()>(
        fd,
        &[IoSlice::new(packet)],
        &named,
        MsgFlags::MSG_NOSIGNAL,
        None,
    )
    .unwrap();
}

fn receive(fd: RawFd) -> Received {
    let mut packet = vec![0; 64 * 1024];
    let count = recv(fd, &mut packet, MsgFlags::empty()).unwrap_or(0);
    match packet.get(1..count) {
        None => Received::Closed,
        Some([OF_STATE, ..]) => Received::Served,
        Some(content) => Received::Answer(postcard::from_bytes(content).unwrap()),
    }
}

/// Confines this process.
fn enter(confinement: &str) {
    let namespace = |flag| unshare(flag).unwrap();
    match confinement {
        "none" => {}
        "no_new_privs" => nix::sys::prctl::set_no_new_privs().unwrap(),
        "dumpless" => nix::sys::prctl::set_dumpable(false).unwrap(),
        "traced" => trace(),
        "user" => {
            let had = capabilities();
            namespace(CloneFlags::CLONE_NEWUSER);
            reduce(had);
        }
        "uts" => namespace(CloneFlags::CLONE_NEWUTS),
        "ipc" => namespace(CloneFlags::CLONE_NEWIPC),
        "net" => namespace(CloneFlags::CLONE_NEWNET),
        "mnt" => namespace(CloneFlags::CLONE_NEWNS),
        "cgroup" => namespace(CloneFlags::CLONE_NEWCGROUP),
        "pid_for_children" => namespace(CloneFlags::CLONE_NEWPID),
        "pid" => {
            namespace(CloneFlags::CLONE_NEWPID);
            go_on_as_a_child();
        }
        "container" => {
            namespace(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS);
            go_on_as_a_child();
            let none = None::<&str>;
            mount(Some("proc"), "/proc", Some("proc"), MsFlags::empty(), none).unwrap();
        }
        "time_for_children" => namespace(NEW_TIME),
        "time" => {
            namespace(NEW_TIME);
            go_on_as_a_child();
        }
        // SAFETY: no pointer is passed. The effective and saved ids, and so the capabilities, stay.
        "uid" => done(unsafe { libc::setresuid(65534, u32::MAX, u32::MAX) }),
        // SAFETY: as above.
        "gid" => done(unsafe { libc::setresgid(65534, u32::MAX, u32::MAX) }),
        "groups" => nix::unistd::setgroups(&[nix::unistd::Gid::from_raw(65534)]).unwrap(),
        "effective" => {
            let had = capabilities();
            set(Capabilities {
                effective: had.effective & !CHOWN,
                ..had
            });
        }
        "inheritable" => {
            let had = capabilities();
            set(Capabilities {
                inheritable: had.inheritable | CHOWN,
                ..had
            });
        }
        // SAFETY: no pointer is passed.
        "bounding" => done(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, 0, 0, 0, 0) }),
        "filter" => filter(),
        "landlock" => landlock(),
        "chroot" => {
            let trial = std::env::var("TRIAL").unwrap();
            let with_all = MsFlags::MS_BIND | MsFlags::MS_REC;
            mount(
                Some("/"),
                trial.as_str(),
                None::<&str>,
                with_all,
                None::<&str>,
            )
            .unwrap();
            nix::unistd::chroot(trial.as_str()).unwrap();
            nix::unistd::chdir("/").unwrap();
        }
        "cgroup_path" => join("altair-test"),
        "service" => join(SERVICE),
        "service filter" => {
            join(SERVICE);
            filter();
        }
        other => panic!("{other}"),
    }
}

/// A control group for callers, of the version that the pool looks at.
fn group(name: &str) -> Option<PathBuf> {
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let is_one = |place: &&str| Path::new(place).join("cgroup.procs").exists();
    let place = places.into_iter().find(is_one)?;
    Some(Path::new(place).join(name))
}

fn join(name: &str) {
    fs::write(group(name).unwrap().join("cgroup.procs"), "0").unwrap();
}

/// Goes on in a child, for which this process waits.
fn go_on_as_a_child() {
    // SAFETY: there is one thread.
    if let ForkResult::Parent { child } = unsafe { fork() }.unwrap() {
        let _ = waitpid(child, None);
        std::process::exit(0);
    }
}

/// Goes on in a child that this process traces.
fn trace() {
    // SAFETY: there is one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            let nothing = std::ptr::null_mut::<libc::c_void>();
            // SAFETY: the request takes no pointer.
            let traced = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) };
            Errno::result(traced).unwrap();
        }
        ForkResult::Parent { child } => {
            let mut status = 0;
            // SAFETY: the status outlives the call.
            while unsafe { libc::waitpid(child.as_raw(), &raw mut status, 0) } > 0 {
                if libc::WIFSTOPPED(status) {
                    let nothing = std::ptr::null_mut::<libc::c_void>();
                    let signal = std::ptr::without_provenance_mut::<libc::c_void>(
                        usize::try_from(libc::WSTOPSIG(status)).unwrap(),
                    );
                    // SAFETY: the request takes a number in place of a pointer.
                    unsafe { libc::ptrace(libc::PTRACE_CONT, child.as_raw(), nothing, signal) };
                }
            }
            std::process::exit(0);
        }
    }
}

/// Sets of capabilities, a bit for each.
#[derive(Clone, Copy)]
struct Capabilities {
    inheritable: u64,
    permitted: u64,
    effective: u64,
    bounding: u64,
}

/// This process's.
fn capabilities() -> Capabilities {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    Capabilities {
        inheritable: of("CapInh:"),
        permitted: of("CapPrm:"),
        effective: of("CapEff:"),
        bounding: of("CapBnd:"),
    }
}

/// Sets all but the bounding set (capset(2)).
fn set(to: Capabilities) {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header {
        version: 0x2008_0522,
        pid: 0,
    };
    let half =
        |shift: u32| [to.effective, to.permitted, to.inheritable].map(|set| (set >> shift) as u32);
    let data = [half(0), half(32)];
    // SAFETY: both are laid out as the call of this version reads them, and outlive it.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, &raw const data) };
    Errno::result(result).unwrap();
}

/// Drops what was not there before.
fn reduce(had: Capabilities) {
    for capability in 0..64_u32 {
        if had.bounding >> capability & 1 == 0 {
            // SAFETY: no pointer is passed. The kernel may not have this one.
            unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        }
    }
    set(had);
}

/// Adds a filter that allows everything.
fn filter() {
    let mut allow = libc::sock_filter {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ALLOW,
    };
    let program = libc::sock_fprog {
        len: 1,
        filter: &raw mut allow,
    };
    // SAFETY: the program is of one instruction; the kernel copies it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    };
    Errno::result(result).unwrap();
}

/// Refuses to make devices, by Landlock.
fn landlock() {
    const MAKE_CHAR: u64 = 1 << 6;
    let handled = MAKE_CHAR;
    // SAFETY: the attributes are of the first field alone, which outlives the call.
    let ruleset = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const handled,
            size_of_val(&handled),
            0,
        )
    };
    let ruleset = Errno::result(ruleset).unwrap();
    // SAFETY: no pointer is passed.
    let result = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) };
    Errno::result(result).unwrap();
}

const SERVICE: &str = "altair-test.service";
const NEW_TIME: CloneFlags = CloneFlags::from_bits_retain(libc::CLONE_NEWTIME);
/// `CAP_CHOWN`, the capability 0.
const CHOWN: u64 = 1;

fn done(result: libc::c_int) {
    Errno::result(result).unwrap();
}
