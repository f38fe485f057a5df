//! On the project's word alone, a process is connected to nobody before the host has seen who listens.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use altair_sandbox::{Connections, Listener, Policy, Privileges, Refusal, RunAs, Word};
use common::attack::{attack_to, attack_under, services};
use common::connections::{alone, by_project, connect_to_each, heard, to_addresses, to_sockets};
use common::peers::{answers_local, answers_tcp, free_port};
use common::{LONG, is_root};
use nix::libc;

attacks![connect_to_each, connect_again_and_again];
also_where_rights_are_lacking![
    a_program_of_its_own_user_is_reached_on_the_user_s_word_alone,
    a_service_s_user_is_reached_on_the_project_s_word_and_root_as_far_as_that_is_harmless,
    whoever_begins_to_listen_between_the_look_and_the_connection_hears_nothing,
    a_socket_is_told_by_its_file_and_not_by_its_name,
];

/// How often an address was used.
static USES: AtomicUsize = AtomicUsize::new(0);

/// Has code run as another user, on a thread of its own that has no other group.
fn as_user<T: Send + 'static>(uid: u32, body: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::spawn(move || {
        let set = unsafe { libc::syscall(libc::SYS_setresuid, -1, uid, -1) };
        assert_eq!(set, 0);
        body()
    })
    .join()
    .unwrap()
}

fn refusal(to: impl std::fmt::Display, listener: Option<Listener>) -> Refusal {
    Refusal::NotByProject {
        to: to.to_string(),
        listener,
    }
}

#[test]
fn a_program_of_its_own_user_is_reached_on_the_user_s_word_alone() {
    let _alone = alone();
    let address = answers_tcp("127.0.0.1:0");
    let wildcard = answers_tcp("0.0.0.0:0");
    let wildcard = SocketAddr::from(([127, 0, 0, 1], wildcard.port()));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().canonicalize().unwrap().join("own.sock");
    answers_local(&path);
    let connections = Connections {
        sockets: to_sockets(&[&path]).sockets,
        ..to_addresses(&[address, wildcard])
    };
    let path = path.display();
    let to = format!("{address} {wildcard} {path}");
    let attacked = attack_to(connections.clone(), "connect_to_each", &to);
    let (one, two, three) = (heard(address), heard(wildcard), heard(&path));
    assert_eq!(attacked.output(), format!("{one}{two}{three}"));
    let attacked = attack_to(by_project(connections.clone()), "connect_to_each", &to);
    assert_eq!(
        attacked.output(),
        format!("{address} 1\n{wildcard} 1\n{path} 1\n")
    );
    let own = Some(Listener::Own);
    let refused = [
        refusal(address, own),
        refusal(wildcard, own),
        refusal(&path, own),
    ];
    assert_eq!(attacked.refused, refused);
    // What no project may name is refused whoever listens.
    let mut connections = connections;
    connections.addresses[0].word = Word::Insufficient;
    let attacked = attack_to(connections, "connect_to_each", &address.to_string());
    assert_eq!(attacked.output(), format!("{address} 1\n"));
    assert_eq!(attacked.refused, [refusal(address, None)]);
}

#[test]
fn a_service_s_user_is_reached_on_the_project_s_word_and_root_as_far_as_that_is_harmless() {
    let _alone = alone();
    if !is_root() {
        return; // only root can be another user
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let (service, root) = (dir.join("service.sock"), dir.join("root.sock"));
    let there = service.clone();
    as_user(4322, move || answers_local(&there));
    answers_local(&root);
    let of_service = as_user(4322, || answers_tcp("127.0.0.1:0"));
    let of_root = answers_tcp("127.0.0.1:0");
    // An address of this test's alone.
    let (own, time) = (std::process::id(), USES.fetch_add(1, Ordering::SeqCst));
    let [.., a, b] = own.to_be_bytes();
    let powerful = answers_tcp(&format!("127.{a}.{b}.{}:2375", time + 1));
    let policy = Policy {
        connections: by_project(Connections {
            sockets: to_sockets(&[&service, &root]).sockets,
            ..to_addresses(&[of_service, of_root, powerful])
        }),
        privileges: Privileges::Drop {
            run_as: Some(RunAs {
                uid: 4321,
                gid: 4321,
            }),
        },
        ..Policy::unconfined()
    };
    let (service, root) = (service.display(), root.display());
    let to = format!("{service} {of_service} {of_root} {powerful} {root}");
    let attacked = attack_under(policy, "connect_to_each", services(false), &to, LONG);
    let (one, two, three) = (heard(&service), heard(of_service), heard(of_root));
    let refused = format!("{powerful} 1\n{root} 1\n");
    assert_eq!(attacked.output(), format!("{one}{two}{three}{refused}"));
    let by_root = Some(Listener::Root);
    assert_eq!(
        attacked.refused,
        [refusal(powerful, by_root), refusal(&root, by_root)]
    );
}

#[test]
fn a_socket_is_told_by_its_file_and_not_by_its_name() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let daemon = dir.join("daemon.sock");
    answers_local(&daemon);
    let (link, hard) = (dir.join("link.sock"), dir.join("innocent.sock"));
    symlink(&daemon, &link).unwrap();
    std::fs::hard_link(&daemon, &hard).unwrap();
    let nobody = dir.join("nobody.sock");
    drop(UnixListener::bind(&nobody).unwrap());
    let paths: [&Path; 3] = [&link, &hard, &nobody];
    let connections = by_project(to_sockets(&paths));
    let [link, hard, nobody] = paths.map(Path::display);
    let to = format!("{link} {hard} {nobody}");
    let attacked = attack_to(connections, "connect_to_each", &to);
    let none = libc::ECONNREFUSED;
    assert_eq!(
        attacked.output(),
        format!("{link} 1\n{hard} 1\n{nobody} {none}\n")
    );
    let own = Some(Listener::Own);
    assert_eq!(
        attacked.refused,
        [refusal(daemon.display(), own), refusal(&hard, own)]
    );
}

const ATTEMPTS: usize = 400;

/// Says something to whoever is there, as soon as there is somebody.
fn connect_again_and_again(to: &str) {
    let to: SocketAddr = to.parse().unwrap();
    for _ in 0..ATTEMPTS {
        if let Ok(mut stream) = TcpStream::connect(to) {
            let _ = stream.write_all(b"hello");
        }
    }
    println!("tried");
}

#[test]
fn whoever_begins_to_listen_between_the_look_and_the_connection_hears_nothing() {
    let _alone = alone();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let is_over = Arc::new(AtomicBool::new(false));
    let (over, heard) = (Arc::clone(&is_over), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&heard);
    let daemon = std::thread::spawn(move || {
        while !over.load(Ordering::SeqCst) {
            // Somebody else's for a moment, where the port is free for all.
            let Ok(listener) = TcpListener::bind(address) else {
                continue;
            };
            listener.set_nonblocking(true).unwrap();
            for _ in 0..20 {
                let Ok((mut stream, _)) = listener.accept() else {
                    std::thread::yield_now();
                    continue;
                };
                stream.set_nonblocking(false).unwrap();
                stream
                    .set_read_timeout(Some(Duration::from_secs(5)))
                    .unwrap();
                let mut said = [0; 5];
                if stream.read_exact(&mut said).is_ok() {
                    count.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    });
    let connections = by_project(to_addresses(&[address]));
    let attacked = attack_to(connections, "connect_again_and_again", &address.to_string());
    is_over.store(true, Ordering::SeqCst);
    daemon.join().unwrap();
    assert_eq!(attacked.output(), "tried\n");
    assert_eq!(heard.load(Ordering::SeqCst), 0);
}
