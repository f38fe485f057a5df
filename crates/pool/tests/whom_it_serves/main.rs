//! Whom a pool serves: callers that go to its socket and speak its protocol from within a sandbox,
//! with a proof that they have made up, one that they have learned outside, or the right one, which
//! somebody outside looks up for them.
//!
//! This program is the test, the pools, and the callers.
#![allow(clippy::unwrap_used, clippy::expect_used, unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, IoSlice, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, Backlog, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr,
    UnixCredentials, accept, bind, connect, listen, recv, sendmsg, socket,
};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

mod confinement;
mod hidden;

use confinement::{NOBODY, SERVICE, confinements, done, enter, go_on_as_a_child, group};

/// The first answers of a pool; one that it gives only to callers that it serves is not read.
#[derive(Debug, Deserialize)]
enum Answer {
    Looked {
        name: Option<String>,
        descriptor: i32,
    },
    Refused(String),
}

/// A caller's first message.
#[derive(Serialize, Deserialize)]
struct Intent {
    shows: Option<Shows>,
    keeps: bool,
    digest: [u8; 32],
}

/// A descriptor that the pool looks at, and whose it is if not the caller's own.
#[derive(Serialize, Deserialize)]
struct Shows {
    witness: Option<i32>,
    descriptor: i32,
}

/// A caller's second message: what the digest was of.
#[derive(Serialize)]
struct Order<'a> {
    work: &'a [u8],
}

/// A caller's third message.
#[derive(Serialize)]
struct Proof<'a> {
    name: &'a str,
}

/// What a caller says over a connection that it keeps.
#[derive(Serialize)]
struct Again<'a> {
    name: &'a str,
    work: Work,
}

/// Descriptors of the pool.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Next {
    proof: i32,
    permit: i32,
}

#[derive(Serialize)]
#[allow(dead_code)] // Their order matters.
enum Work {
    Run,
    State,
    Stop,
}

/// What a caller receives.
#[derive(Debug)]
enum Received {
    Answer(Answer),
    /// What is there, and what the next request over the same connection needs.
    Served(Option<Next>),
    Closed,
}

/// The number of `Answer::State`.
const OF_STATE: u8 = 7;
/// The number of `Answer::Looked`.
const OF_LOOKED: u8 = 0;
/// More packets follow.
const MORE: u8 = 0;
/// The last packet of a message.
const LAST: u8 = 1;
/// `Work::State`, with its salt.
const STATE: [u8; 17] = [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 1];
/// `Work::Stop`.
const STOP: [u8; 17] = [7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 2];

const REFUSED_LOOK: &str = "it may not look into the pool";
const UNEQUAL: &str = "it differs from the pool in its ";
const BY_ANOTHER: &str = "another process has connected";
const FILTERED: &str = "it has system call filters or no_new_privs that process 1 does not have";
const SERVED: &str = "served";
const CLOSED: &str = "closed";
const UNPROVEN: &str = "closed at the request";

/// How a caller goes about it.
const WAYS: [&str; 5] = [
    // It enters its sandbox and then connects; somebody outside looks into the pool for it.
    "helped",
    // The same, with a proof that it has learned outside over another connection.
    "learned",
    // It connects and then enters its sandbox.
    "connected",
    // It says that it knows the pool, and sends all at once.
    "knowing",
    // It is served, enters its sandbox, and asks again over the same connection.
    "kept",
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
        ["executed", confinement, fd, permit, proof] => {
            let numbers = [fd, permit, proof].map(|number| number.parse().unwrap());
            println!("{}", executed(confinement, numbers));
        }
        ["hidden", other, socket, confinement, way] => {
            let other = other.parse().unwrap();
            println!(
                "{}",
                hidden::call(Path::new(socket), confinement, way, other)
            );
        }
        ["outside"] => hidden::wait_outside(),
        ["rogue", socket, confinement] => listen_at(Path::new(socket), confinement),
        ["host"] => println!("{}", ask()),
        ["host", "again"] => {
            // It has no capabilities, and can know its pool.
            enter("nobody");
            assert_eq!(ask(), SERVED);
            println!("ready");
            std::io::stdin().lines().next().unwrap().unwrap();
            println!("{}", ask());
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
    let said = pool.called("none", "another request");
    check("another request".into(), said, UNPROVEN);
    for (confinement, differing) in confinements() {
        for way in WAYS {
            let said = pool.called(confinement, way);
            // It is a child that asks then.
            let forks = ["traced", "pid", "time"].contains(&confinement);
            let wanted = match forks && ["connected", "kept"].contains(&way) {
                true => BY_ANOTHER.to_owned(),
                false => format!("{UNEQUAL}{differing}"),
            };
            check(format!("{confinement}, {way}"), said, &wanted);
        }
    }
    for way in ["inherited", "kept inherited"] {
        check(way.into(), pool.called("none", way), BY_ANOTHER);
    }
    // Nobody has permitted the run, or the caller has thought better of it.
    let said = pool.called("none", "kept without a permit");
    check("kept without a permit".into(), said, CLOSED);
    // Each proof is one of one request.
    let said = pool.called("none", "kept twice");
    check("kept twice".into(), said, REFUSED_LOOK);
    let said = pool.called("none", "kept and ended");
    check("kept and ended".into(), said, CLOSED);
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
        check(
            "another in the known pool's place, landlock".into(),
            hosted_again("landlock nobody"),
            "it may not look into this process; nothing",
        );
        check("forged".into(), pool.called("uts", "forged"), BY_ANOTHER);
        for way in [
            "alone",
            "learned",
            "connected alone",
            "knowing alone",
            "kept alone",
        ] {
            check(
                format!("landlock, {way}"),
                pool.called("landlock", way),
                REFUSED_LOOK,
            );
        }
        // It has found its next proof outside.
        let said = pool.called("landlock", "kept learned");
        check("landlock, kept learned".into(), said, SERVED);
        // What it asks for was settled outside, and is nothing else.
        for (way, wanted) in [("settled", SERVED), ("settled another", UNPROVEN)] {
            let said = pool.called("landlock", way);
            check(format!("landlock, {way}"), said, wanted);
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
        // What a caller without capabilities can enter, and what one that executes a program that has some.
        let powerless = Pool::start("powerless");
        let namespaces = format!("{UNEQUAL}namespaces");
        for (confinement, way, wanted) in [
            ("none", "kept powerless", SERVED),
            ("none", "kept powerless twice", REFUSED_LOOK),
            ("user", "kept powerless", &namespaces),
            ("none", "kept powerless executed", SERVED),
            ("uts", "kept powerless executed", &namespaces),
            ("net", "kept powerless executed", &namespaces),
        ] {
            let said = powerless.called(confinement, way);
            check(format!("{confinement}, {way}"), said, wanted);
        }
        hidden::test(&mut check);
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
    check(
        "a listener that has ended".into(),
        ended_listener(),
        "ESRCH",
    );
    check("still".into(), pool.called("none", "alone"), SERVED);
    assert!(failed.is_empty(), "{failed:#?}");
    println!("ok");
}

/// Asks as a host does.
fn ask() -> String {
    let client = altair_pool::Client::new(altair_pool::Setting::Auto, None, [].into());
    match client.state() {
        Ok(_) => SERVED.into(),
        Err(why) => why.to_string(),
    }
}

/// What a host says that knows its pool when a process that is confined takes its place, and what that
/// process gets to know of it.
fn hosted_again(confinement: &str) -> String {
    let pool = Pool::start("nobody");
    let directory = pool.directory.path().canonicalize().unwrap();
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["host", "again"])
        .env("XDG_RUNTIME_DIR", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(host.stdout.take().unwrap()).lines();
    assert_eq!(said.next().unwrap().unwrap(), "ready");
    let mut rogue = Rogue::in_place_of(&pool, confinement);
    drop(host.stdin.take().map(|mut to| writeln!(to)));
    let (said, known) = (said.next().unwrap().unwrap(), rogue.known());
    host.wait().unwrap();
    format!("{said}; {known}")
}

/// A confined process in a pool's place.
struct Rogue {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Rogue {
    fn in_place_of(pool: &Pool, confinement: &str) -> Self {
        pool.end();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args([Path::new("rogue"), &pool.socket, Path::new(confinement)])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        Self { process, lines }
    }

    /// What it got to know.
    fn known(&mut self) -> String {
        let known = self.lines.next().unwrap().unwrap();
        self.process.wait().unwrap();
        known
    }
}

/// What a host says that finds the socket of a process that is confined in its pool's place, and what
/// that process gets to know of it.
fn hosted(confinement: &str) -> String {
    let pool = Pool::start("none");
    let directory = pool.directory.path().canonicalize().unwrap();
    let mut rogue = Rogue::in_place_of(&pool, confinement);
    let host = Command::new(std::env::current_exe().unwrap())
        .arg("host")
        .env("XDG_RUNTIME_DIR", directory)
        .output()
        .unwrap();
    let known = rogue.known();
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
    // A host that has known another pool here connects once more.
    while !is_told(&listener) {}
}

/// Speaks to a host as a pool does, and says what it was told. Returns whether it was told anything.
fn is_told(listener: &OwnedFd) -> bool {
    let fd = accept(listener.as_raw_fd()).unwrap();
    // SAFETY: accepted just now.
    let host = unsafe { OwnedFd::from_raw_fd(fd) };
    let option = nix::sys::socket::sockopt::PeerCredentials;
    let pid = nix::sys::socket::getsockopt(&host, option).unwrap().pid();
    let mut packet = vec![0; 64 * 1024];
    let mut has_looked = false;
    loop {
        let count = recv(fd, &mut packet, MsgFlags::empty()).unwrap_or(0);
        match packet.get(..count) {
            None | Some([]) if !has_looked => return false,
            None | Some([]) => {
                println!("nothing");
                return true;
            }
            Some([_, intent @ ..]) if !has_looked => {
                let Intent { shows, .. } = postcard::from_bytes(intent).unwrap();
                let seen = match shows {
                    Some(Shows {
                        witness,
                        descriptor,
                    }) => look(witness.unwrap_or(pid).unsigned_abs(), descriptor),
                    None => Err(std::io::ErrorKind::NotFound.into()),
                };
                let seen = seen.unwrap_or_else(|_| format!("altair-{}", "0".repeat(32)));
                let content = postcard::to_allocvec(&(Some(seen), 0)).unwrap();
                send(fd, &[&[LAST, OF_LOOKED], content.as_slice()].concat());
                has_looked = true;
            }
            Some(_) => {
                println!("its request");
                return true;
            }
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
        if confinement == "nobody" {
            std::os::unix::fs::chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
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
        self.called_as(&["caller"], confinement, way)
    }

    /// The same as a caller of another kind.
    fn called_as(&self, kind: &[&str], confinement: &str, way: &str) -> String {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(kind).args([
            self.socket.as_path(),
            Path::new(confinement),
            Path::new(way),
        ]);
        let inherited = reach(&self.socket);
        let fd = inherited.as_raw_fd();
        let (shown, _) = show();
        let intent = intent(Some(&shown));
        match way {
            "begun by another" => send(fd, &[MORE]),
            "proven by another" => send(fd, &intent),
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
                    send(fd, &intent);
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
        // The pool may have refused the caller by now.
        .unwrap_or_default()
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
    let (shown, name) = show();
    let is_settled = way.starts_with("settled");
    let early = (is_settled || way.starts_with("connected")).then(|| reach(path));
    let outside = match (way, &early) {
        ("learned", _) => Some(reach(path)),
        (_, Some(connection)) if is_settled => Some(connection.try_clone().unwrap()),
        _ => None,
    };
    let learned = outside.map(|connection| {
        send(connection.as_raw_fd(), &intent(Some(&shown)));
        match receive(connection.as_raw_fd()) {
            Received::Answer(Answer::Looked { descriptor, .. }) => helped(descriptor),
            other => panic!("{other:?}"),
        }
    });
    if way.starts_with("kept") {
        return call_again(path, confinement, way);
    }
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
    let knows = way.starts_with("knowing");
    match way {
        "ended by another" => {
            send(fd, &[MORE]);
            println!("end it");
            std::io::stdin().lines().next().unwrap().unwrap();
        }
        "proven by another" | "settled" | "settled another" => {}
        "forged" => send_as(fd, &intent(Some(&shown)), nix::unistd::getppid().as_raw()),
        _ if knows => {
            send(fd, &intent(None));
            send_message(fd, &Order { work: &STATE });
        }
        _ => send(fd, &intent(Some(&shown))),
    }
    let proof = match learned {
        Some(proof) if is_settled => proof,
        learned => {
            let (seen, descriptor) = match receive(fd) {
                Received::Answer(Answer::Looked { name, descriptor }) => (name, descriptor),
                other => return end(other),
            };
            let is_seen = seen.as_ref() == (!knows).then_some(&name);
            assert!(inherits || is_seen, "it has looked");
            match learned {
                Some(proof) => proof,
                None if way.ends_with("alone") => look(pid(path, 0), descriptor)
                    .unwrap_or_else(|_| format!("altair-{}", "0".repeat(32))),
                None => helped(descriptor),
            }
        }
    };
    let work = match way {
        "another request" | "settled another" => STOP,
        _ => STATE,
    };
    if !knows {
        send_message(fd, &Order { work: &work });
    }
    send_message(fd, &Proof { name: &proof });
    match receive(fd) {
        Received::Closed => UNPROVEN.into(),
        other => end(other),
    }
}

/// Calls twice over the same connection.
fn call_again(path: &Path, confinement: &str, way: &str) -> String {
    if way.contains("powerless") {
        enter("powerless");
    }
    let connection = reach(path);
    let fd = connection.as_raw_fd();
    let (shown, _) = show();
    send(fd, &intent(Some(&shown)));
    let Received::Answer(Answer::Looked { descriptor, .. }) = receive(fd) else {
        panic!("it is not looked at");
    };
    let pool = pid(path, 0);
    let name = look(pool, descriptor).unwrap();
    send_message(fd, &Order { work: &STATE });
    send_message(fd, &Proof { name: &name });
    let Next { proof, permit } = match receive(fd) {
        Received::Served(next) => next.expect("the connection is kept"),
        other => return format!("not at first: {}", end(other)),
    };
    let learned = way.ends_with("learned").then(|| look(pool, proof).unwrap());
    let permit = OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/{pool}/fd/{permit}"))
        .unwrap();
    if way.ends_with("executed") {
        // By the program it gets all capabilities again, as it is root's.
        return execute(&[fd, permit.as_raw_fd(), proof], confinement);
    }
    enter(confinement);
    if way.ends_with("inherited") {
        go_on_as_a_child();
    }
    let name = match learned {
        Some(name) => name,
        None if way.ends_with("alone") => {
            look(pool, proof).unwrap_or_else(|_| format!("altair-{}", "0".repeat(32)))
        }
        None => helped(proof),
    };
    if !way.ends_with("without a permit") {
        permits(&permit);
    }
    let again = Again {
        name: &name,
        work: Work::State,
    };
    if way.ends_with("ended") {
        send(fd, &[MORE]);
        // SAFETY: no pointer is passed.
        let ended = Errno::result(unsafe { libc::shutdown(fd, libc::SHUT_WR) });
        ended.unwrap();
        return end(receive(fd));
    }
    send_message(fd, &again);
    if way.ends_with("twice") {
        assert!(matches!(receive(fd), Received::Served(Some(_))));
        permits(&permit);
        send_message(fd, &again);
    }
    end(receive(fd))
}

/// Lays down what the pool takes before it begins.
fn permits(mut permit: &File) {
    permit.write_all(&[0]).unwrap();
}

/// Goes on as another program in the same process, with the connection, the permit, and the descriptor
/// of the next proof.
fn execute([fd, permit, proof]: &[RawFd; 3], confinement: &str) -> String {
    for inherited in [fd, permit] {
        // SAFETY: no pointer is passed.
        done(unsafe { libc::fcntl(*inherited, libc::F_SETFD, 0) });
    }
    let numbers = [fd, permit, proof].map(ToString::to_string);
    let error = Command::new(std::env::current_exe().unwrap())
        .args(["executed", confinement])
        .args(numbers)
        .exec();
    panic!("{error}");
}

/// What [`execute`] goes on as: confines itself, gives up its capabilities, and asks again.
fn executed(confinement: &str, [fd, permit, proof]: [RawFd; 3]) -> String {
    enter(confinement);
    enter("powerless");
    // Not so after a program that has given it capabilities.
    nix::sys::prctl::set_dumpable(true).unwrap();
    // SAFETY: it was left open for this, and nothing else has it.
    permits(&unsafe { File::from_raw_fd(permit) });
    let again = Again {
        name: &helped(proof),
        work: Work::State,
    };
    send_message(fd, &again);
    end(receive(fd))
}

/// A file for the pool to look at, and its name.
fn show() -> (OwnedFd, String) {
    let name = format!("altair-{:032x}", std::process::id());
    let file = memfd_create(name.as_str(), MFdFlags::MFD_CLOEXEC).unwrap();
    (file, name)
}

fn send_message(fd: RawFd, message: &impl Serialize) {
    let content = postcard::to_allocvec(message).unwrap();
    send(fd, &[&[LAST], content.as_slice()].concat());
}

/// A packet that settles to ask for [`STATE`].
fn intent(shown: Option<&OwnedFd>) -> Vec<u8> {
    intent_of(shown.map(|shown| Shows {
        witness: None,
        descriptor: shown.as_raw_fd(),
    }))
}

fn intent_of(shows: Option<Shows>) -> Vec<u8> {
    let intent = Intent {
        shows,
        keeps: true,
        digest: Sha256::digest(STATE).into(),
    };
    [&[LAST], postcard::to_allocvec(&intent).unwrap().as_slice()].concat()
}

fn end(received: Received) -> String {
    match received {
        Received::Served(_) => SERVED.into(),
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
    // A pool that has refused the caller has closed it, and its number may be another one's by now.
    name.map(str::to_owned)
        .ok_or_else(|| std::io::ErrorKind::NotFound.into())
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
    // The other end may be closed by now, and may not have taken everything.
    let is_well = matches!(sent, Ok(_) | Err(Errno::EPIPE | Errno::ECONNRESET));
    assert!(is_well, "{sent:?}");
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
    let received = match recv(fd, &mut packet, MsgFlags::empty()) {
        // It was closed before it had taken everything. What it has sent is there.
        Err(Errno::ECONNRESET) => recv(fd, &mut packet, MsgFlags::empty()),
        received => received,
    };
    let count = received.unwrap_or(0);
    match packet.get(1..count) {
        None => Received::Closed,
        Some([OF_STATE, content @ ..]) => {
            let (_, next): (&[u8], _) = postcard::from_bytes(content).unwrap();
            Received::Served(next)
        }
        Some(content) => Received::Answer(postcard::from_bytes(content).unwrap()),
    }
}

/// Who listens where the process has ended that began to: its id may be another's by now.
fn ended_listener() -> String {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let kind = SockType::SeqPacket;
    let listener = socket(AddressFamily::Unix, kind, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(listener.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
    // SAFETY: there is one thread.
    match unsafe { fork() }.unwrap() {
        ForkResult::Child => {
            listen(&listener, Backlog::new(8).unwrap()).unwrap();
            std::process::exit(0);
        }
        ForkResult::Parent { child } => waitpid(child, None).unwrap(),
    };
    let connection = reach(&path);
    match altair_sandbox::peer::listener_of(connection.as_fd()) {
        Ok(listener) => format!("{listener:?}"),
        Err(error) => format!("{:?}", Errno::from_raw(error.raw_os_error().unwrap_or(0))),
    }
}
