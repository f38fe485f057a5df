//! The deadline: the host's signal says so, and the handler says where the code was.
//!
//! The handler reports by itself, at once, and ends the process. Whatever waited for the virtual
//! machine to look up would let the snippet run on after a `sleep`, or come late out of a long
//! native call.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use altair_engine::channel::{StoppedRef, Task, Work, encode_stopped};
use altair_engine::exit_codes::TIMED_OUT;
use altair_engine::{Phase, stop_signal};

use super::channel_link::Voice;
use crate::zend::child::memory_peak;
use crate::zend::frames::Arena;
use crate::zend::process::{Interrupted, leave, on_signal_of};

/// Bytes of the packet that says where the code was.
const PACKET_BYTES: usize = 24 * 1024;

/// What the handler needs, made beforehand: it cannot allocate.
struct Stopper {
    /// Another one in the fork of a template.
    voice: Mutex<&'static Voice>,
    /// Whether the process goes on: it is a template, which nobody waits for that long any more.
    goes_on: AtomicBool,
    /// For the first thread that comes; the handler takes it without waiting.
    room: Mutex<Room>,
}

struct Room {
    arena: Box<Arena>,
    packet: Box<[u8; PACKET_BYTES]>,
}

static STOPPER: OnceLock<Stopper> = OnceLock::new();
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
pub fn arm(voice: &'static Voice, task: &Task) {
    let room = Room {
        arena: Arena::new(),
        packet: Box::new([0; PACKET_BYTES]),
    };
    let stopper = Stopper {
        voice: Mutex::new(voice),
        goes_on: AtomicBool::new(matches!(task.work, Work::Template(_))),
        room: Mutex::new(room),
    };
    let _ = STOPPER.set(stopper);
    on_signal_of(task.host, stop_signal(), on_stop);
}

/// Has the handler of a template, which its fork has, speak for the fork, and end it.
pub fn pass_on(voice: &'static Voice) {
    if let Some(stopper) = STOPPER.get() {
        // Nobody else is there to hold it.
        *stopper.voice.lock().unwrap_or_else(PoisonError::into_inner) = voice;
        stopper.goes_on.store(false, Ordering::Relaxed);
    }
}

/// Async-signal-safe: reads the engine's frames, formats into room of its own, sends, and ends the
/// process.
fn on_stop(interrupted: Interrupted) {
    let Some(stopper) = STOPPER.get() else {
        leave(TIMED_OUT);
    };
    let Ok(mut room) = stopper.room.try_lock() else {
        return; // another thread is at it
    };
    let Room { arena, packet } = &mut *room;
    let phase = phase();
    arena.with_interrupted(interrupted, |location| {
        let stopped = StoppedRef {
            phase,
            location,
            memory_peak_bytes: memory_peak(),
        };
        let Ok(voice) = stopper.voice.try_lock() else {
            return;
        };
        if let Some(packet) = encode_stopped(voice.secret(), &stopped, &mut packet[..]) {
            voice.send_packet(packet);
        }
    });
    if !stopper.goes_on.load(Ordering::Relaxed) {
        leave(TIMED_OUT)
    }
}
