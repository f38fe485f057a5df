//! Processes, threads and connections.

use std::ffi::{c_int, c_long};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::ptr::null;

use altair_sandbox::Unseen;
use libc::*;

use crate::support::*;

#[test]
fn processes_and_threads_are_refused_and_noted() {
    alone(|_| {
        let none: [Text; 1] = [null()];
        #[rustfmt::skip]
        let refused: [(&str, &dyn Fn() -> c_long, c_int, Unseen); 8] = [
            ("fork", &|| sys!(SYS_fork), EPERM, Unseen::Process),
            ("vfork", &|| sys!(SYS_vfork), EPERM, Unseen::Process),
            ("fork()", &|| unsafe { fork() }.into(), EPERM, Unseen::Process),
            ("clone", &|| sys!(SYS_clone, SIGCHLD, NO, NO, NO, NO), EPERM, Unseen::Process),
            ("execve", &|| sys!(SYS_execve, TRUE, &none, &none), EPERM, Unseen::Process),
            ("execveat", &|| sys!(SYS_execveat, AT_FDCWD, TRUE, &none, &none, 0), EPERM, Unseen::Process),
            ("clone3", &|| sys!(SYS_clone3, &raw const THREAD, 64_usize), ENOSYS, Unseen::Thread),
            ("clone", &|| sys!(SYS_clone, THREAD[0], NO, NO, NO, NO), EAGAIN, Unseen::Thread),
        ];
        let parent = std::process::id();
        for (call, act, expected, kind) in refused {
            let mut got = 0;
            let record = record(|| {
                assert_eq!(act(), -1, "{call}");
                got = errno();
            });
            assert_eq!(std::process::id(), parent);
            assert_eq!((got, record.unseen), (expected, vec![kind]), "{call}");
        }
        let record = record(|| {
            let error = std::thread::Builder::new().spawn(|| ()).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(EAGAIN));
            assert_eq!(
                Command::new("/bin/true")
                    .status()
                    .unwrap_err()
                    .raw_os_error(),
                Some(EPERM)
            );
        });
        assert_eq!(record.unseen, [Unseen::Process, Unseen::Thread]);
    });
}

const TRUE: Text = c"/bin/true".as_ptr();
static THREAD: [u64; 8] = [
    (CLONE_THREAD | CLONE_VM | CLONE_SIGHAND) as u64,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
];

/// Sends a byte with `sendmsg` or `sendmmsg`, to an address or not.
fn send_message(fd: c_int, address: Option<&sockaddr_in>, many: bool) {
    unsafe {
        let mut part = iovec {
            iov_base: room().cast(),
            iov_len: 1,
        };
        let mut two: [mmsghdr; 2] = std::mem::zeroed();
        for message in &mut two {
            message.msg_hdr.msg_iov = &raw mut part;
            message.msg_hdr.msg_iovlen = 1;
        }
        if let Some(address) = address {
            two[1].msg_hdr.msg_name = (&raw const *address).cast_mut().cast();
            two[1].msg_hdr.msg_namelen = size_of::<sockaddr_in>() as u32;
        }
        if many {
            sendmmsg(fd, two.as_mut_ptr(), 2, 0);
        } else {
            sendmsg(fd, &raw const two[1].msg_hdr, 0);
        }
    }
}

#[test]
fn connections_are_noted_and_the_channel_is_not() {
    alone(|root| {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let quiet = record(|| {
            near.write_all(b"hello").unwrap();
            send_message(near.as_raw_fd(), None, false);
            send_message(near.as_raw_fd(), None, true);
            assert_eq!(unsafe { send(near.as_raw_fd(), room().cast(), 1, 0) }, 1);
            let mut got = [0; 9];
            far.read_exact(&mut got).unwrap();
            assert!(got.starts_with(b"hello"));
            assert!(UnixStream::pair().is_ok());
        });
        assert_eq!(quiet.unseen, []);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let fd = socket.as_raw_fd();
        let mut address: sockaddr_in = unsafe { std::mem::zeroed() };
        address.sin_family = AF_INET as sa_family_t;
        address.sin_port = socket.local_addr().unwrap().port().to_be();
        address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
        let loud: [&dyn Fn(); 5] = [
            &|| assert!(UnixStream::connect(root.join("absent")).is_err()),
            &|| socket.connect(socket.local_addr().unwrap()).unwrap(),
            &|| {
                assert_eq!(
                    socket.send_to(b"x", socket.local_addr().unwrap()).unwrap(),
                    1
                )
            },
            &|| send_message(fd, Some(&address), false),
            &|| send_message(fd, Some(&address), true),
        ];
        for act in loud {
            assert_eq!(record(act).unseen, [Unseen::Connection]);
        }
    });
}
