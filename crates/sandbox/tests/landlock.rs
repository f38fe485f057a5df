//! Landlock alone, taken as a program takes it: each attack succeeds without it and fails with it,
//! as seen from outside. The tests beside the guard cover what each version of it governs.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

mod common;

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

use common::attack::Guarded::{Landlock, Not};
use common::attack::{attack, call, say};

attacks![write_outside, execute, connect, connect_by_name, signal];

fn said<T>(name: &str, result: std::io::Result<T>) {
    let errno = result.map_or_else(|error| error.raw_os_error().unwrap(), |_| 0);
    println!("{name} {errno}");
}

fn write_outside(path: &str) {
    said("read", std::fs::read(path));
    said("write", std::fs::write(path, "changed"));
    said("make", std::fs::write(format!("{path}.new"), ""));
    let text = std::ffi::CString::new(path).unwrap();
    say(
        "truncate",
        call(libc::SYS_truncate, &[text.as_ptr() as u64, 0]),
    );
    said("remove", std::fs::remove_file(path));
}

#[test]
fn what_may_only_be_read_is_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "content").unwrap();
    let attacked = attack("write_outside", Landlock, file.to_str().unwrap());
    assert_eq!(attacked.errno("read"), 0);
    for refused in ["write", "make", "truncate", "remove"] {
        assert_eq!(attacked.errno(refused), libc::EACCES, "{refused}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"content");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    attack("write_outside", Not, file.to_str().unwrap());
    assert!(!file.exists());
}

fn execute(path: &str) {
    said("execute", Command::new("/bin/touch").arg(path).status());
}

#[test]
fn no_program_is_executed() {
    let dir = tempfile::tempdir().unwrap();
    let marker = dir.path().join("executed");
    let attacked = attack("execute", Landlock, marker.to_str().unwrap());
    assert_eq!(attacked.errno("execute"), libc::EACCES);
    assert!(!marker.exists());
    attack("execute", Not, marker.to_str().unwrap());
    assert!(marker.exists());
}

fn connect(address: &str) {
    said("connect", std::net::TcpStream::connect(address));
    said("bind", TcpListener::bind("127.0.0.1:0"));
}

#[test]
fn no_tcp_connection_is_made_and_nothing_listens() {
    let host = TcpListener::bind("127.0.0.1:0").unwrap();
    host.set_nonblocking(true).unwrap();
    let address = host.local_addr().unwrap().to_string();
    let attacked = attack("connect", Landlock, &address);
    assert_eq!(attacked.errno("connect"), libc::EACCES);
    assert_eq!(attacked.errno("bind"), libc::EACCES);
    assert!(host.accept().is_err());
    attack("connect", Not, &address);
    assert!(host.accept().is_ok());
}

fn connect_by_name(name: &str) {
    let address = SocketAddr::from_abstract_name(name).unwrap();
    said(
        "connect",
        std::os::unix::net::UnixStream::connect_addr(&address),
    );
}

#[test]
fn an_abstract_socket_of_the_host_is_not_reached() {
    let name = common::fresh_mark("landlock");
    let host = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    host.set_nonblocking(true).unwrap();
    let attacked = attack("connect_by_name", Landlock, &name);
    assert_eq!(attacked.errno("connect"), libc::EPERM);
    assert!(host.accept().is_err());
    attack("connect_by_name", Not, &name);
    assert!(host.accept().is_ok());
}

fn signal(pid: &str) {
    let pid = pid.parse().unwrap();
    say("kill", call(libc::SYS_kill, &[pid, 9]));
}

#[test]
fn a_signal_reaches_nobody_else() {
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = other.id().to_string();
    assert_eq!(attack("signal", Landlock, &pid).errno("kill"), libc::EPERM);
    assert_eq!(other.try_wait().unwrap(), None);
    attack("signal", Not, &pid);
    assert!(!other.wait().unwrap().success());
}
