//! The deadline: the host's signal says so, and the handler says where the code was.
//!
//! The handler reports by itself, at once, and ends the process. Whatever waited for the virtual
//! machine to look up would let the snippet run on after a `sleep`, or come late out of a long
//! native call.

use std::cell::UnsafeCell;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use altair_engine::channel::{SECRET_BYTES, Secret, StoppedRef, encode_stopped};
use altair_engine::{Phase, stop_signal};
use nix::sys::signal::SigSet;
use nix::unistd::{Pid, getpid};

use super::link::{Link, leave, send_packet};
use crate::zend::child::memory_peak;
use crate::zend::frames::Arena;

/// Bytes of the packet that says where the code was.
const PACKET_BYTES: usize = 24 * 1024;
/// Bytes of the handler's own stack: the snippet's may be used up.
const STACK_BYTES: usize = 128 * 1024;
/// The exit status of a child that stopped at the deadline; what `timeout(1)` uses.
const EXIT_STOPPED: i32 = 124;

/// What the handler needs, made beforehand.
struct Stopper {
    socket: RawFd,
    secret: Secret,
    room: UnsafeCell<Room>,
    /// As in [`Link`].
    owner: Pid,
}

struct Room {
    arena: Box<Arena>,
    packet: Box<[u8; PACKET_BYTES]>,
}

// SAFETY: the room is used by the one thread that `ENTERED` lets in.
#[allow(unsafe_code)]
unsafe impl Sync for Stopper {}

static STOPPER: OnceLock<Stopper> = OnceLock::new();
static ENTERED: AtomicBool = AtomicBool::new(false);
static PHASE: AtomicU8 = AtomicU8::new(0);
const PHASES: [Phase; 3] = [Phase::Boot, Phase::Snippet, Phase::Encode];

/// Says what is under way from now on.
pub fn note_phase(phase: Phase) {
    let at = PHASES.iter().position(|p| *p == phase).unwrap_or_default();
    PHASE.store(u8::try_from(at).unwrap_or_default(), Ordering::Relaxed);
}

/// What is under way.
pub fn phase() -> Phase {
    PHASES[usize::from(PHASE.load(Ordering::Relaxed)) % PHASES.len()]
}

/// Installs the handler.
#[allow(unsafe_code)]
pub fn arm(link: &Link) {
    let Some(secret) = link.secret() else {
        return;
    };
    let room = Room {
        arena: Arena::new(),
        packet: Box::new([0; PACKET_BYTES]),
    };
    let _ = STOPPER.set(Stopper {
        socket: link.socket().as_raw_fd(),
        secret: secret.clone(),
        room: UnsafeCell::new(room),
        owner: getpid(),
    });
    let stack = Box::leak(vec![0_u8; STACK_BYTES].into_boxed_slice());
    // SAFETY: the stack lives as long as the process; the handler is async-signal-safe: it reads
    // the engine's frames, formats into room of its own, sends, and ends the process.
    unsafe {
        let alternate = nix::libc::stack_t {
            ss_sp: stack.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: STACK_BYTES,
        };
        nix::libc::sigaltstack(&raw const alternate, std::ptr::null_mut());
        let mut action: nix::libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_stop as *const () as usize;
        action.sa_flags = nix::libc::SA_ONSTACK;
        action.sa_mask = *SigSet::all().as_ref();
        nix::libc::sigaction(stop_signal(), &raw const action, std::ptr::null_mut());
    }
}

#[allow(unsafe_code)]
extern "C" fn on_stop(_signal: i32) {
    if ENTERED.swap(true, Ordering::AcqRel) {
        return;
    }
    if let Some(stopper) = STOPPER.get()
        && stopper.owner == getpid()
    {
        // SAFETY: `ENTERED` lets one thread in, once.
        let Room { arena, packet } = unsafe { &mut *stopper.room.get() };
        let phase = phase();
        arena.with_current(|location| {
            let stopped = StoppedRef {
                phase,
                location,
                memory_peak_bytes: memory_peak(),
            };
            // SAFETY: the descriptor stays open as long as the process lives.
            let socket = unsafe { BorrowedFd::borrow_raw(stopper.socket) };
            if let Some(packet) = encode_stopped(&stopper.secret, &stopped, &mut packet[..]) {
                send_packet(socket, packet);
            }
        });
    }
    leave(EXIT_STOPPED)
}

const _: () = assert!(PACKET_BYTES > SECRET_BYTES + 1);
