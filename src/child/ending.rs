//! Ends that PHP code does not come to by itself: fatal errors, memory that ran out.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::{Mutex, OnceLock, PoisonError};

use altair_engine::Location;
use altair_engine::channel::{Ending, Message, Report, Secret, encode_message};
use altair_engine::encode::{STRING_MAX, encode_exception, shorten};
use ext_php_rs::ffi::zend_string;
use nix::unistd::{Pid, getpid};

use super::link::{Link, send_packet};
use super::stop;
use crate::zend::child::{self as engine, Cut, memory_peak};
use crate::zend::{exception, frames, text};

/// Memory that is given back when memory has run out, so that there is some to say so with.
const BALLAST_BYTES: usize = 4 << 20;

/// The status of a PHP that a fatal error has ended.
const EXIT_FATAL: u8 = 255;

struct LastWords {
    socket: RawFd,
    secret: Secret,
    /// Whether the kernel caps this process's memory.
    capped: bool,
    /// As in [`Link`].
    owner: Pid,
}

static LAST_WORDS: OnceLock<LastWords> = OnceLock::new();
static BALLAST: Mutex<Option<Vec<u8>>> = Mutex::new(None);
static FATAL: Mutex<Option<Ending>> = Mutex::new(None);

/// Installs the hooks.
pub fn prepare(link: &Link, capped: bool) {
    if let Some(secret) = link.secret() {
        let socket = link.socket().as_raw_fd();
        let _ = LAST_WORDS.set(LastWords {
            socket,
            secret: secret.clone(),
            capped,
            owner: getpid(),
        });
    }
    *lock(&BALLAST) = Some(Vec::with_capacity(BALLAST_BYTES));
    engine::begin(on_fatal);
    engine::on_exit(on_exit);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The engine reports a fatal error; it bails out next.
#[allow(unsafe_code)]
extern "C" fn on_fatal(
    out_of_memory: bool,
    file: *const zend_string,
    line: u32,
    message: *const zend_string,
) {
    lock(&BALLAST).take();
    // SAFETY: the engine's strings, for the time of the call.
    let (file, message) = unsafe { (text(file), text(message)) };
    let message = shorten(&message, STRING_MAX);
    let location = frames::current_at(file, line);
    lock(&FATAL).get_or_insert(match out_of_memory {
        true => Ending::OutOfMemory {
            message,
            location: Some(location),
        },
        false => Ending::Fatal { message, location },
    });
}

/// Something called libc's `exit`. PHP does so where `malloc` fails under it, with status 1 and
/// without any hook (`zend_out_of_memory` in `Zend/zend_alloc.c`).
#[allow(unsafe_code)]
extern "C" fn on_exit(status: i32) {
    let Some(words) = LAST_WORDS
        .get()
        .filter(|words| words.capped && status == 1 && words.owner == getpid())
    else {
        return;
    };
    lock(&BALLAST).take();
    let location: Option<Location> = frames::current();
    let report = Message::Report(Report {
        ending: Ending::OutOfMemory {
            message: "The hard cap on the process's memory was reached.".into(),
            location,
        },
        phase: stop::phase(),
        memory_peak_bytes: memory_peak(),
        snippet_us: None,
        encode_us: None,
        refused: Vec::new(),
    });
    // SAFETY: the descriptor stays open as long as the process lives.
    let socket = unsafe { BorrowedFd::borrow_raw(words.socket) };
    for packet in encode_message(&words.secret, &report).unwrap_or_default() {
        send_packet(socket, &packet);
    }
}

/// The fatal error that was reported and has not been told yet.
pub fn fatal() -> Option<Ending> {
    lock(&FATAL).take()
}

/// The ending that a cut means.
pub fn of(cut: Cut) -> Ending {
    match cut {
        Cut::Threw(thrown) => Ending::Threw(encoded(&thrown)),
        // Some fatal errors unwind as `exit` does, so that what PHP holds is freed on the way.
        Cut::Exited(EXIT_FATAL) => fatal().unwrap_or(Ending::Exited(EXIT_FATAL)),
        Cut::Exited(status) => Ending::Exited(status),
        Cut::Bailout => fatal().unwrap_or_else(|| Ending::Fatal {
            message: "PHP ended without saying why.".into(),
            location: Location {
                file: String::new(),
                line: 0,
                stack_trace: Vec::new(),
            },
        }),
    }
}

/// An exception in its public shape.
pub fn encoded(thrown: &exception::Exception) -> String {
    encode_exception(&exception::view(thrown.object())).to_string()
}
