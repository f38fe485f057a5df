//! The deadline: the host sends a signal, and the handler reports where the code was.
//!
//! The handler reports immediately and ends the process. If it waited for the virtual machine's
//! interrupt, the snippet could continue after a `sleep`, and a long native call would delay the
//! end.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use altair_engine::channel::{StoppedRef, Task, Work, encode_stopped};
use altair_engine::exit_codes::TIMED_OUT;
use altair_engine::{Phase, stop_signal};

use super::channel_link::Voice;
use crate::zend::child::memory_peak;
use crate::zend::frames::Arena;
use crate::zend::line;
use crate::zend::process::{Interrupted, leave, on_signal_of};

/// Bytes of the packet with the position.
const PACKET_BYTES: usize = 24 * 1024;

/// What the handler needs, allocated in advance, since it cannot allocate.
struct Stopper {
    /// Replaced in the fork of a template.
    voice: Mutex<&'static Voice>,
    /// Whether the process continues after its report: it is a template.
    goes_on: AtomicBool,
    /// For the first thread; the handler does not wait for the lock.
    room: Mutex<Room>,
}

struct Room {
    arena: Box<Arena>,
    packet: Box<[u8; PACKET_BYTES]>,
}

/// Whether the first signal of the host ends only the line of a session that runs.
static LINE: AtomicU8 = AtomicU8::new(NO_SESSION);
/// The process is no session.
const NO_SESSION: u8 = 0;
/// A session between two lines, which a late signal is not meant for.
const RESTS: u8 = 1;
/// A line runs.
const RUNS: u8 = 2;
/// A line runs that was told to end. The next signal ends the process.
const HAS_TO_END: u8 = 3;

/// In a session: a line begins.
pub fn line_begins() {
    LINE.store(RUNS, Ordering::Relaxed);
}

/// In a session: no line runs. Returns whether the host has ended one.
pub fn line_ends() -> bool {
    let was = LINE.swap(RESTS, Ordering::Relaxed);
    line::has_ended();
    was == HAS_TO_END
}

static STOPPER: OnceLock<Stopper> = OnceLock::new();
static PHASE: AtomicU8 = AtomicU8::new(0);
const PHASES: [Phase; 3] = [Phase::Boot, Phase::Snippet, Phase::Encode];

/// Sets the current phase.
pub fn note_phase(phase: Phase) {
    let at = PHASES.iter().position(|p| *p == phase).unwrap_or_default();
    PHASE.store(u8::try_from(at).unwrap_or_default(), Ordering::Relaxed);
}

/// The current phase.
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

/// In the fork of a template: makes the inherited handler report on the fork's channel and end it.
pub fn pass_on(voice: &'static Voice) {
    if let Some(stopper) = STOPPER.get() {
        // There is no other thread that could hold it.
        *stopper.voice.lock().unwrap_or_else(PoisonError::into_inner) = voice;
        stopper.goes_on.store(false, Ordering::Relaxed);
    }
}

/// Async-signal-safe: reads the engine's frames, formats into its own buffer, sends, and ends the
/// process.
fn on_stop(interrupted: Interrupted) {
    match LINE.load(Ordering::Relaxed) {
        RESTS => return,
        RUNS => {
            LINE.store(HAS_TO_END, Ordering::Relaxed);
            return line::end();
        }
        _ => {}
    }
    let Some(stopper) = STOPPER.get() else {
        leave(TIMED_OUT);
    };
    let Ok(mut room) = stopper.room.try_lock() else {
        return; // another thread is reporting
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
