//! By path, a process reaches only the sockets that it may connect to, as its own user.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::net::UdpSocket;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;

use altair_sandbox::{Connections, Policy, Privileges, RunAs};
use common::attack::{attack_to, attack_under, services};
use common::connections::{alone, connect_to_each, heard, to_sockets};
use common::peers::{Trap, answer, answers_local, answers_tcp};
use common::{LONG, is_root};
use nix::libc;

attacks![connect_to_each];
also_where_rights_are_lacking![
    only_what_is_permitted_is_reached_by_path,
    the_other_end_of_a_local_socket_is_told_of_the_process_s_user,
    with_the_network_on_the_host_still_looks_at_paths,
];

#[test]
fn only_what_is_permitted_is_reached_by_path() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let (permitted, other) = (dir.join("db.sock"), dir.join("other.sock"));
    answers_local(&permitted);
    let trap = Trap::new();
    trap.local(&other);
    // The link leads to a permitted path, but did not exist when the run began.
    let planted = dir.join("planted.sock");
    let link = dir.join("link");
    std::fs::create_dir(dir.join("real")).unwrap();
    answers_local(&dir.join("real/db.sock"));
    symlink(dir.join("real"), &link).unwrap();
    let through_link = link.join("db.sock");
    let connections = to_sockets(&[&permitted, &planted, &through_link]);
    symlink(&other, &planted).unwrap();
    let real = dir.join("real/db.sock");
    let to = [&permitted, &through_link, &real, &planted, &other].map(|path| path.display());
    let text = to.each_ref().map(ToString::to_string).join(" ");
    let attacked = attack_to(connections, "connect_to_each", &text);
    let [a, b, c, d, e] = to;
    let (no_link, refused) = (libc::ELOOP, libc::EPERM);
    let expected = format!(
        "{}{}{}{d} {no_link}\n{e} {refused}\n",
        heard(a),
        heard(b),
        heard(c)
    );
    assert_eq!(attacked.output(), expected);
    assert!(!trap.has_sprung());
}

#[test]
fn the_other_end_of_a_local_socket_is_told_of_the_process_s_user() {
    let _alone = alone();
    if !is_root() {
        return; // the process then has its host's user
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let path = dir.path().canonicalize().unwrap().join("db.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).unwrap();
    let server = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let peer =
            nix::sys::socket::getsockopt(&stream, nix::sys::socket::sockopt::PeerCredentials);
        answer(stream);
        peer.unwrap()
    });
    let policy = || Policy {
        connections: to_sockets(&[&path]),
        privileges: Privileges::Drop {
            run_as: Some(RunAs {
                uid: 4321,
                gid: 8765,
            }),
        },
        ..Policy::unconfined()
    };
    let guarded = services(false);
    let text = path.display().to_string();
    let attacked = attack_under(policy(), "connect_to_each", guarded, &text, LONG);
    assert_eq!(attacked.output(), heard(&text));
    let peer = server.join().unwrap();
    assert_eq!((peer.uid(), peer.gid()), (4321, 8765));
    // And has that user's rights.
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    let attacked = attack_under(policy(), "connect_to_each", guarded, &text, LONG);
    assert_eq!(attacked.output(), format!("{text} {}\n", libc::EACCES));
    // The host is unchanged.
    assert!(nix::unistd::geteuid().is_root());
    assert!(nix::sys::prctl::get_dumpable().unwrap());
}

#[test]
fn with_the_network_on_the_host_still_looks_at_paths() {
    let _alone = alone();
    let anywhere = answers_tcp("127.0.0.1:0");
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let (permitted, other) = (dir.join("db.sock"), dir.join("other.sock"));
    answers_local(&permitted);
    let trap = Trap::new();
    trap.local(&other);
    let connections = Connections {
        internet: true,
        ..to_sockets(&[&permitted])
    };
    let (permitted, other) = (permitted.display(), other.display());
    let to = format!("{anywhere} {permitted} {other}");
    let attacked = attack_to(connections, "connect_to_each", &to);
    let expected = format!("{}{}{other} 1\n", heard(anywhere), heard(permitted));
    assert_eq!(attacked.output(), expected);
    assert!(!trap.has_sprung());
    drop(UdpSocket::bind("127.0.0.1:0").unwrap());
}
