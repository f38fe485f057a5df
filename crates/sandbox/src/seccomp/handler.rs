//! The process's own handler of `SIGSYS`, where its filter can have no listener: it hands the socket
//! of a call of connect(2) to the host, which connects it ([`super::requests`]), and has the host
//! open the files by which names are looked up.
//!
//! It decides nothing. A process that replaces it, or calls the host by itself, gains no more than
//! what the host answers to anybody.
//!
//! It runs between any two instructions of any thread: no allocation, no lock, no `errno`, no panic.
//! If the thread that makes such a call has blocked the signal, the kernel ends the whole process: it
//! resets the action (kernel/signal.c, `force_sig_info_to_task`), and the default one is for all
//! threads.
#![allow(unsafe_code)]
// The kernel's names, in patterns.
#![allow(non_upper_case_globals)]

use std::io;
use std::mem::{forget, zeroed};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use nix::libc::*;

use super::call::Opening;
use super::describe::asks_for_v6;
use super::requests::kind;
use crate::channel_pair;
use crate::record::context::{Info, SECCOMP};
use crate::record::kernel::{self, Action, Call, act_on, call, path_at};
use crate::record::machine::{ARCHITECTURE, Context};
use crate::record::sigsys::Handled;

/// The number that the filter returns with its answer, which tells it from other filters.
pub(super) const MARK: u16 = 0x0a5d;

/// The process's end of the socket over which it asks the host. It is never closed.
static HOST: AtomicI32 = AtomicI32::new(-1);

/// The lengths that the kernel accepts for an address (net/socket.c, `move_addr_to_kernel`): a
/// family, up to `struct sockaddr_storage`.
const ADDRESS: std::ops::RangeInclusive<c_int> = 2..=size_of::<sockaddr_storage>() as c_int;

/// Puts the handler in place, for good, and returns the host's end of its socket.
///
/// # Errors
/// If the process has no descriptor left, or may have no handler.
pub(super) fn begin() -> io::Result<OwnedFd> {
    let (host, own) = channel_pair()?;
    forget(Handled::begin(on_call)?);
    HOST.store(own.into_raw_fd(), Ordering::Relaxed);
    Ok(host)
}

extern "C" fn on_call(_signal: c_int, info: *const Info, context: *mut Context) {
    // SAFETY: the kernel passes valid pointers to this handler.
    let (info, context) = unsafe { (&*info, &mut *context) };
    if info.code != SECCOMP || info.errno != i32::from(MARK) || info.architecture != ARCHITECTURE {
        return die();
    }
    let Call { number, args } = context.call();
    let [first, second, third, fourth, ..] = args;
    let answer = match number as c_long {
        SYS_connect => connect(first, second, third),
        // Like the kernel, uses the lower halves.
        SYS_socket if asks_for_v6(first as c_int, second as c_int, third as c_int) => {
            ask_for(Bytes::NONE, kind::PROBE_V6)
        }
        SYS_openat => open(&OPENAT, args, (second, third, fourth)),
        #[cfg(target_arch = "x86_64")]
        SYS_open => open(&OPEN, args, (first, second, third)),
        _ => Err(EPERM),
    };
    context.answer(answer.unwrap_or_else(|errno| -(errno as isize)));
}

/// Ends the process by the signal, as if it had no handler.
fn die() {
    // SAFETY: no handler, and no pointer is passed; the signal is for the calling thread.
    unsafe {
        let _ = act_on(SIGSYS, Some(&Action::default()));
        let process = call(SYS_getpid, []);
        let thread = call(SYS_gettid, []);
        let own = [
            process.unsigned_abs(),
            thread.unsigned_abs(),
            SIGSYS as usize,
        ];
        call(SYS_tgkill, own);
    }
}

fn connect(socket: usize, address: usize, length: usize) -> Result<isize, c_int> {
    // Like the kernel, uses the lower halves.
    let (socket, length) = (socket as c_int, length as c_int);
    if !ADDRESS.contains(&length) {
        return Err(EINVAL);
    }
    let length = length as usize;
    ask(Bytes { address, length }, kind::CONNECT, Some(socket)).map(|_| 0)
}

/// Where openat(2) has its arguments.
const OPENAT: Opening = Opening {
    directory: Some(0),
    path: 1,
    flags: 2,
};

/// Where open(2) has them.
#[cfg(target_arch = "x86_64")]
const OPEN: Opening = Opening {
    directory: None,
    path: 0,
    flags: 1,
};

/// The directory of all files that the host opens.
const DIRECTORY: &[u8] = b"/etc/";

/// Opens a file, or has it opened by the host if that has it.
fn open(
    opening: &Opening,
    args: [usize; 6],
    (path, flags, mode): (usize, usize, usize),
) -> Result<isize, c_int> {
    if !opening.is_lookup(&args.map(|argument| argument as u64)) {
        // It would make a file that the filter refuses.
        return Err(EPERM);
    }
    // The filter intercepts no call with this flag, which only matters for terminals.
    let own = [AT_FDCWD as usize, path, flags | O_NOCTTY as usize, mode];
    // SAFETY: the process's own call, with its own arguments, at the same point.
    let opened = kernel::result(unsafe { call(SYS_openat, own) });
    if opened == Err(EFAULT) {
        return opened;
    }
    // SAFETY: the kernel has just read it.
    let name = unsafe { path_at(path) };
    let Some(name) = name.filter(|name| name.starts_with(DIRECTORY)) else {
        return opened;
    };
    let (address, length) = (path, name.len());
    match ask_for(Bytes { address, length }, kind::OPEN) {
        Ok(given) => {
            if let Ok(own) = opened {
                close(own as c_int);
            }
            Ok(given)
        }
        Err(_) => opened,
    }
}

/// Memory of the process, which may be invalid.
struct Bytes {
    address: usize,
    length: usize,
}

impl Bytes {
    const NONE: Self = Self {
        address: 0,
        length: 0,
    };
}

/// Asks the host for a descriptor.
fn ask_for(about: Bytes, kind: u8) -> Result<isize, c_int> {
    let given = ask(about, kind, None)?;
    // The host answers with one. Where the process has no number left for it, the kernel drops it.
    given.map(|given| given as isize).ok_or(EMFILE)
}

/// Asks the host about something, with a socket to connect, if there is one. Returns the descriptor
/// that comes with the answer.
fn ask(about: Bytes, kind: u8, socket: Option<c_int>) -> Result<Option<c_int>, c_int> {
    // A pair for each request: the answers of threads cannot be mixed up.
    let mut ends = [-1; 2];
    let packets = (SOCK_SEQPACKET | SOCK_CLOEXEC) as usize;
    let pair = [AF_UNIX as usize, packets, 0, (&raw mut ends) as usize];
    // SAFETY: the kernel writes two descriptors.
    kernel::result(unsafe { call(SYS_socketpair, pair) })?;
    let [own, theirs] = ends;
    let sent = send(about, kind, theirs, socket);
    close(theirs);
    let answer = sent.and_then(|()| receive(own));
    close(own);
    answer
}

fn close(descriptor: c_int) {
    // SAFETY: no pointer is passed; callers pass what they have made.
    unsafe { call(SYS_close, [descriptor as usize]) };
}

/// A control message with at most two descriptors, as the kernel lays it out.
#[repr(C, align(8))]
struct Control {
    head: cmsghdr,
    descriptors: [c_int; 2],
}

const _: () = assert!(size_of::<Control>() == size_of::<cmsghdr>() + 8);

/// The length of a control message with this many descriptors.
const fn control_length(descriptors: usize) -> usize {
    size_of::<cmsghdr>() + descriptors * size_of::<c_int>()
}

fn send(about: Bytes, kind: u8, reply: c_int, socket: Option<c_int>) -> Result<(), c_int> {
    let count = 1 + usize::from(socket.is_some());
    // SAFETY: numbers, for which zeros are valid.
    let mut control: Control = unsafe { zeroed() };
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = control_length(count) as _;
    control.descriptors = [reply, socket.unwrap_or(-1)];
    let mut parts = [
        part((&raw const kind) as usize, 1),
        part(about.address, about.length),
    ];
    let message = message(&mut parts, &mut control, control_length(count));
    loop {
        let host = HOST.load(Ordering::Relaxed) as usize;
        let args = [host, (&raw const message) as usize, MSG_NOSIGNAL as usize];
        // SAFETY: the structures outlive the call. The kernel checks the address in `parts`.
        match kernel::result(unsafe { call(SYS_sendmsg, args) }) {
            Ok(_) => return Ok(()),
            Err(EINTR) => {}
            // The host no longer listens.
            Err(EPIPE | ECONNRESET | ENOTCONN) => return Err(EPERM),
            Err(errno) => return Err(errno),
        }
    }
}

fn receive(own: c_int) -> Result<Option<c_int>, c_int> {
    let mut errno: c_int = 0;
    // SAFETY: numbers, for which zeros are valid.
    let mut control: Control = unsafe { zeroed() };
    let mut parts = [part((&raw mut errno) as usize, size_of::<c_int>())];
    let mut message = message(&mut parts, &mut control, control_length(1));
    let args = [
        own as usize,
        (&raw mut message) as usize,
        MSG_CMSG_CLOEXEC as usize,
    ];
    loop {
        // SAFETY: the structures outlive the call, and have the lengths that they tell.
        match kernel::result(unsafe { call(SYS_recvmsg, args) }) {
            Err(EINTR) => {}
            // The host does not answer.
            Err(_) | Ok(0) => return Err(EPERM),
            Ok(_) if errno != 0 => return Err(errno),
            Ok(_) if control.head.cmsg_type == SCM_RIGHTS => {
                let [given, _] = control.descriptors;
                return Ok(Some(given));
            }
            Ok(_) => return Ok(None),
        }
    }
}

fn part(address: usize, length: usize) -> iovec {
    iovec {
        iov_base: address as *mut c_void,
        iov_len: length,
    }
}

fn message(parts: &mut [iovec], control: &mut Control, length: usize) -> msghdr {
    // SAFETY: all zeros is a valid msghdr.
    let mut message: msghdr = unsafe { zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len() as _;
    message.msg_control = (&raw mut *control).cast();
    message.msg_controllen = length as _;
    message
}
