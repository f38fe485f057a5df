#![allow(clippy::unwrap_used)]

use nix::libc;

use super::*;

fn context(root: &std::path::Path, writable: bool) -> Context {
    Context {
        user: None,
        root: root.to_owned(),
        application: None,
        writable,
        private_root: true,
        unsafe_runs: true,
        caller: None,
        caches_of_boot: None,
        given: Arc::default(),
    }
}

fn listed(calls: Vec<Refusal>) -> Vec<(String, Option<String>)> {
    let refused = Refused {
        calls,
        ..Refused::default()
    };
    refused
        .list(&context(std::path::Path::new("/project"), true), false)
        .into_iter()
        .map(|entry| (entry.what, entry.lift))
        .collect()
}

fn tcp_socket() -> Refusal {
    Refusal::Socket {
        family: libc::AF_INET,
        kind: libc::SOCK_STREAM,
        protocol: 0,
    }
}

fn connect(to: &str) -> Refusal {
    Refusal::Connect {
        to: Some(to.into()),
    }
}

fn entry(what: &str, lift: &str) -> (String, Option<String>) {
    (what.into(), Some(lift.into()))
}

#[test]
fn calls_are_said_in_words_with_the_flag_that_allows_them() {
    let unix = |kind| Refusal::Socket {
        family: libc::AF_UNIX,
        kind,
        protocol: 0,
    };
    let cases = [
        (
            tcp_socket(),
            entry("open a TCP socket", "--service=<host:port>"),
        ),
        (
            unix(libc::SOCK_STREAM),
            entry("open a Unix socket", "--service=<path>"),
        ),
        (
            Refusal::Socket {
                family: libc::AF_INET,
                kind: libc::SOCK_RAW,
                protocol: 1,
            },
            entry("open a raw Internet socket", "--unsafe"),
        ),
        (
            connect("127.0.0.1:8443"),
            entry("connect to 127.0.0.1:8443", "--service=127.0.0.1:8443"),
        ),
        (
            connect("[::1]:80"),
            entry("connect to [::1]:80", "--service=[::1]:80"),
        ),
        (
            connect("/run/docker.sock"),
            entry("connect to /run/docker.sock", "--service=/run/docker.sock"),
        ),
        (
            Refusal::Listen { at: None },
            entry("listen for connections", "--unsafe"),
        ),
        (
            Refusal::Execute {
                path: Some("/bin/sh".into()),
            },
            entry("execute /bin/sh", "--unsafe"),
        ),
        (
            Refusal::Process,
            entry("start a process (fork)", "--unsafe"),
        ),
        (
            Refusal::Thread { most: 64 },
            entry("have more than 64 threads", "--unsafe"),
        ),
        (
            Refusal::Signal {
                pid: 1234,
                signal: 9,
            },
            entry("send signal 9 to process 1234", "--unsafe"),
        ),
        (
            Refusal::Signal {
                pid: -1,
                signal: 15,
            },
            entry("send signal 15 to every process", "--unsafe"),
        ),
        (
            Refusal::Signal {
                pid: i32::MIN,
                signal: 15,
            },
            entry("send signal 15 to process group 2147483648", "--unsafe"),
        ),
        (Refusal::Link, entry("make a link to a file", "--unsafe")),
        (
            Refusal::Inspect { call: "ptrace" },
            entry("reach into another process: ptrace()", "--unsafe"),
        ),
        (
            Refusal::Kernel { call: "bpf" },
            entry("call bpf()", "--unsafe"),
        ),
    ];
    for (refusal, expected) in cases {
        assert_eq!(listed(vec![refusal.clone()]), [expected], "{refusal:?}");
    }
}

#[test]
fn no_flag_is_named_for_what_only_root_may_do() {
    let mount = Refusal::Kernel { call: "mount" };
    assert_eq!(calls::describe(&mount, false, None).1, None);
    assert_eq!(
        calls::describe(&mount, true, None).1.as_deref(),
        Some("--unsafe")
    );
}

#[test]
fn where_a_program_wanted_to_connect_replaces_its_socket() {
    let list = listed(vec![tcp_socket(), connect("127.0.0.1:8443")]);
    assert_eq!(
        list,
        [entry(
            "connect to 127.0.0.1:8443",
            "--service=127.0.0.1:8443"
        )]
    );
    // The refusal of a Unix socket says nothing about the Internet.
    let list = listed(vec![tcp_socket(), connect("/run/db.sock")]);
    assert_eq!(list.len(), 2);
}

#[test]
fn each_thing_is_said_once_and_the_list_is_bounded() {
    assert_eq!(
        listed(vec![Refusal::Link, Refusal::Process, Refusal::Link]).len(),
        2
    );
    let many = (1..100)
        .map(|pid| Refusal::Signal { pid, signal: 9 })
        .collect();
    let list = listed(many);
    assert_eq!(list.len(), SHOWN);
    assert_eq!(list[0].0, "send signal 9 to process 1");
}

#[test]
fn what_a_run_names_cannot_steer_a_terminal() {
    let path = "/tmp/\u{1b}[2J\n\u{202e}x".into();
    let list = listed(vec![Refusal::Execute { path: Some(path) }]);
    assert_eq!(list[0].0, "execute /tmp/\\u{1b}[2J\\n\\u{202e}x");
    let long = "/".repeat(1000).into();
    let list = listed(vec![Refusal::Execute { path: Some(long) }]);
    assert_eq!(list[0].0.chars().count(), 301);
}

fn files(outside: Vec<(&std::path::Path, bool, i32)>, context: &Context) -> Vec<(String, String)> {
    use std::os::unix::ffi::OsStrExt;
    let refused = Refused {
        outside: outside
            .into_iter()
            .map(|(path, write, errno)| Outside {
                path: path.as_os_str().as_bytes().to_vec(),
                write,
                errno,
            })
            .collect(),
        ..Refused::default()
    };
    refused
        .list(context, false)
        .into_iter()
        .map(|entry| {
            assert_eq!(entry.guard, Guard::Filesystem);
            (entry.what, entry.lift.unwrap())
        })
        .collect()
}

#[test]
fn a_file_that_the_host_has_is_named_with_the_flag_to_read_it() {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("there");
    std::fs::write(&there, "").unwrap();
    let missing = dir.path().join("missing");
    let context = context(std::path::Path::new("/project"), true);
    let list = files(vec![(&there, false, 2), (&missing, false, 2)], &context);
    let name = there.display();
    assert_eq!(list, [(format!("read {name}"), format!("--read={name}"))]);
    let odd = dir
        .path()
        .join("../")
        .join(dir.path().file_name().unwrap())
        .join("there");
    assert_eq!(files(vec![(&odd, false, 2)], &context), list);
    let status = std::path::Path::new("/proc/self/status");
    assert_eq!(files(vec![(status, false, 2)], &context)[0].1, "--unsafe");
}

#[test]
fn a_write_names_what_would_allow_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    let inside = root.join("file");
    let log = root.join(".altair/audit.log");
    let outside = dir.path().join("outside");
    let nowhere = dir.path().join("no/such/directory");
    let lifts = |writable, errno| {
        let context = context(&root, writable);
        let all = [&inside, &log, &outside, &nowhere];
        files(
            all.map(|path| (path.as_path(), true, errno)).to_vec(),
            &context,
        )
        .into_iter()
        .map(|(_, lift)| lift)
        .collect::<Vec<_>>()
    };
    assert_eq!(
        lifts(false, libc::EROFS),
        ["--writes", "--unsafe", "--unsafe"]
    );
    assert_eq!(lifts(true, libc::EROFS), ["--unsafe", "--unsafe"]);
    let layered = context(&root, true);
    let list = files(vec![(&inside, true, libc::EOVERFLOW)], &layered);
    assert!(list[0].0.contains("another user"), "{}", list[0].0);
    assert_eq!(list[0].1, "--writes");
}

#[test]
fn nothing_is_named_that_its_host_refuses() {
    use crate::Caller::{Constructor, Request, Session};
    let root = std::path::Path::new("/project");
    let refused = Refused {
        calls: vec![Refusal::Process],
        outside: vec![Outside {
            path: b"/project/file".to_vec(),
            write: true,
            errno: libc::EROFS,
        }],
        ..Refused::default()
    };
    // What lifts the refusal of a process, and of a write.
    let lifts = |caller, unsafe_runs, private_root| {
        let context = Context {
            caller,
            unsafe_runs,
            private_root,
            ..context(root, false)
        };
        let list = refused.clone().list(&context, false);
        list.into_iter().map(|entry| entry.lift).collect::<Vec<_>>()
    };
    let some = |lift: &str| Some(lift.to_owned());
    for (caller, all, writes) in [
        (None, some("--unsafe"), some("--writes")),
        (
            Some(Constructor),
            some("guarded: false"),
            some("guarded: false"),
        ),
        (
            Some(Request),
            some("unsafe: true"),
            some("allowWrites: true"),
        ),
        (Some(Session), None, some("--writes")),
    ] {
        let is_constructor = caller == Some(Constructor);
        let permitted = writes.clone().filter(|_| !is_constructor);
        assert_eq!(lifts(caller, true, true), [all.clone(), writes.clone()]);
        assert_eq!(lifts(caller, false, true), [None, permitted.clone()]);
        assert_eq!(lifts(caller, true, false), [all.clone(), all]);
        // Landlock grants an evaluation real writes, but nothing that lives on.
        let by_landlock = permitted.filter(|_| caller.is_none());
        assert_eq!(lifts(caller, false, false), [None, by_landlock]);
    }
}
