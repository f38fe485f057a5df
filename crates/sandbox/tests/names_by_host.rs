//! Where the host opens the files by which C libraries look up names, a process finds the names in
//! them and no others, and gains nothing else.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::net::ToSocketAddrs;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use altair_sandbox::{Connections, Policy, Privileges, RunAs};
use common::attack::{Attacked, Guarded, attack_under, c, call, say};
use common::lacking::{behind_a_listener, lacking};
use common::{LONG, is_root, open_descriptors};
use nix::libc;

attacks![look_up, open_otherwise, change_what_it_gets, move_the_path];
also_where_rights_are_lacking![
    all_other_files_are_opened_by_the_process,
    what_a_process_gets_is_its_own_and_can_only_be_read,
    a_path_that_changes_meanwhile_leads_to_what_the_process_may_open,
];

const HOSTS: &str = "127.0.0.9 db\n";

fn policy() -> Policy {
    Policy {
        connections: Connections {
            files: vec![
                ("/etc/hosts".into(), HOSTS.into()),
                ("/etc/nsswitch.conf".into(), b"hosts: files\n".to_vec()),
                ("/etc/host.conf".into(), b"multi on\n".to_vec()),
            ],
            ..Connections::default()
        },
        ..Policy::unconfined()
    }
}

fn attack(name: &str, argument: &str) -> Attacked {
    let guarded = Guarded::ByHost { network: false };
    attack_under(policy(), name, guarded, argument, LONG)
}

/// Less than a C library waits for a name server (resolv.conf(5), `timeout`).
const NAME_SERVER: Duration = Duration::from_secs(4);

/// Looks up names.
fn look_up(names: &str) {
    for name in names.split(' ') {
        let began = Instant::now();
        let found = (name, 1).to_socket_addrs();
        let found: Vec<_> = found.into_iter().flatten().map(|at| at.ip()).collect();
        println!("{name} {found:?} {}", began.elapsed() < NAME_SERVER);
    }
}

#[test]
fn declared_names_resolve_and_no_others() {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim_end();
    // Names that this machine knows.
    let names = format!("db localhost {host} example.com db");
    let expected = format!(
        "db [127.0.0.9] true\nlocalhost [] true\n{host} [] true\nexample.com [] true\ndb [127.0.0.9] true\n"
    );
    assert_eq!(attack("look_up", &names).output(), expected);
    let guarded = Guarded::Services { network: false };
    let otherwise = attack_under(policy(), "look_up", guarded, "db localhost", LONG);
    let output = otherwise.output();
    assert!(
        output.starts_with("db []") && !output.contains("localhost []"),
        "{output}"
    );
}

#[test]
fn declared_names_resolve_where_rights_are_lacking() {
    fn body() {
        let run_as = is_root().then_some(RunAs {
            uid: 4321,
            gid: 8765,
        });
        let policy = Policy {
            privileges: Privileges::Drop { run_as },
            ..policy()
        };
        let guarded = Guarded::ByHost { network: false };
        let attacked = attack_under(policy, "look_up", guarded, "db localhost", LONG);
        assert_eq!(
            attacked.output(),
            "db [127.0.0.9] true\nlocalhost [] true\n"
        );
    }
    lacking(body);
    behind_a_listener(body);
}

/// Opens files in other ways than C libraries do to look up a name.
fn open_otherwise(_: &str) {
    let open = |directory: i32, path: &str, flags: i32| {
        let path = c(path);
        let args = [directory as u64, path.as_ptr() as u64, flags as u64, 0];
        call(libc::SYS_openat, &args)
    };
    let read = |name: &str, opened: i64| {
        if opened < 0 {
            return say(name, opened);
        }
        let mut text = String::new();
        let mut file = unsafe { File::from_raw_fd(opened as i32) };
        file.read_to_string(&mut text).unwrap();
        println!("{name} {}", if text == HOSTS { "given" } else { "own" });
    };
    let (here, to_read) = (libc::AT_FDCWD, libc::O_CLOEXEC);
    read("exactly", open(here, "/etc/hosts", to_read));
    read("inherited", open(here, "/etc/hosts", 0));
    read("spelled", open(here, "/etc//hosts", to_read));
    read("longer", open(here, "/etc/hosts.allow.none", to_read));
    read("other", open(here, "/etc/passwd", to_read));
    read("relative", open(here, "etc/hosts", to_read));
    let root = open(here, "/", libc::O_DIRECTORY | libc::O_CLOEXEC) as i32;
    read("below", open(root, "etc/hosts", to_read));
    read("none", open(here, "/none", to_read));
    say(
        "nowhere",
        call(libc::SYS_openat, &[here as u64, 8, to_read as u64, 0]),
    );
    #[cfg(target_arch = "x86_64")]
    {
        let path = c("/etc/hosts");
        // The kernel's O_LARGEFILE, as musl does.
        let flags = libc::O_CLOEXEC | 0o100_000;
        read(
            "musl",
            call(libc::SYS_open, &[path.as_ptr() as u64, flags as u64, 0]),
        );
    }
}

#[test]
fn all_other_files_are_opened_by_the_process() {
    let attacked = attack("open_otherwise", "");
    let expected = format!(
        "exactly given\ninherited own\nspelled own\nlonger {none}\nother own\nrelative own\nbelow own\nnone \
         {none}\nnowhere {}\n{}",
        libc::EFAULT,
        if cfg!(target_arch = "x86_64") {
            "musl given\n"
        } else {
            ""
        },
        none = libc::ENOENT,
    );
    assert_eq!(attacked.output(), expected);
    assert_eq!(attacked.refused, []);
}

/// Tries to change a file that it was given.
fn change_what_it_gets(_: &str) {
    let open = || File::open("/etc/hosts").unwrap();
    let mut first = open();
    say(
        "write",
        call(
            libc::SYS_write,
            &[first.as_raw_fd() as u64, c("x").as_ptr() as u64, 1],
        ),
    );
    say(
        "truncate",
        call(libc::SYS_ftruncate, &[first.as_raw_fd() as u64, 0]),
    );
    let path = format!("/proc/self/fd/{}", first.as_raw_fd());
    match File::options().write(true).open(path) {
        Ok(mut again) => {
            let written = again.write(b"x").map_or(-1, |_| 0);
            say("again", written);
        }
        Err(_) => say("again", -1),
    }
    let second = open();
    let (one, other) = (first.metadata().unwrap(), second.metadata().unwrap());
    println!("same {}", i32::from(one.ino() == other.ino()));
    let mut text = String::new();
    first.read_to_string(&mut text).unwrap();
    println!(
        "read {}, at {}",
        text == HOSTS,
        second.try_clone().unwrap().stream_position().unwrap()
    );
}

#[test]
fn what_a_process_gets_is_its_own_and_can_only_be_read() {
    let before = open_descriptors();
    let attacked = attack("change_what_it_gets", "");
    for (name, errnos) in [
        ("write", [libc::EBADF, libc::EBADF]),
        ("truncate", [libc::EINVAL, libc::EINVAL]),
        ("again", [libc::EPERM, libc::EACCES]),
        ("same", [0, 0]),
    ] {
        assert!(
            errnos.contains(&attacked.errno(name)),
            "{name}: {}",
            attacked.output()
        );
    }
    assert!(
        attacked.output().ends_with("read true, at 0\n"),
        "{}",
        attacked.output()
    );
    assert!(open_descriptors() <= before + 8);
}

/// Changes the path while the host looks at it.
fn move_the_path(_: &str) {
    let paths = [*b"/etc/hosts\0", *b"/etc/none/\0"];
    let place = Box::leak(Box::new(paths[0]));
    let pointer = place.as_mut_ptr() as usize;
    std::thread::spawn(move || {
        for at in (0..2).cycle() {
            unsafe { std::ptr::write_volatile(pointer as *mut [u8; 11], paths[at]) };
        }
    });
    let until = Instant::now() + Duration::from_millis(500);
    let (mut given, mut strange) = (0, 0);
    while Instant::now() < until {
        let here = libc::AT_FDCWD as u64;
        let opened = call(
            libc::SYS_openat,
            &[here, pointer as u64, libc::O_CLOEXEC as u64, 0],
        );
        if opened < 0 {
            continue;
        }
        let mut text = String::new();
        let mut file = unsafe { File::from_raw_fd(opened as i32) };
        file.read_to_string(&mut text).unwrap();
        // The real file lies there, too.
        given += i32::from(text == HOSTS);
        strange += i32::from(!text.contains("127.0.0."));
    }
    println!("given {}\nstrange {strange}", i32::from(given > 0));
}

#[test]
fn a_path_that_changes_meanwhile_leads_to_what_the_process_may_open() {
    let attacked = attack("move_the_path", "");
    assert_eq!(attacked.errno("given"), 1);
    assert_eq!(attacked.errno("strange"), 0);
}
