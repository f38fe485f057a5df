//! Ends of a run by fatal errors and by exhausted memory.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use altair_engine::Location;
use altair_engine::channel::{Ending, Message, Report};
use altair_engine::encode::{STRING_MAX, encode_exception, shorten};

use altair_engine::exit_codes::{self, EXHAUSTED};

use super::channel_link::Voice;
use super::deadline;
use crate::zend::allocator::on_exhausted;
use crate::zend::child::{self as engine, Cut, FatalError, memory_peak};
use crate::zend::fork_state::NotFresh;
use crate::zend::process::leave;
use crate::zend::{exception, frames};

/// Memory that is freed when memory runs out, so that this can be reported.
const BALLAST_BYTES: usize = 4 << 20;

/// Replaced in the fork of a template.
static LAST_WORDS: Mutex<Option<&'static Voice>> = Mutex::new(None);
static BALLAST: Mutex<Option<Vec<u8>>> = Mutex::new(None);
static FATAL: Mutex<Option<Ending>> = Mutex::new(None);

/// Installs the hooks; `capped` says whether the kernel caps this process's memory.
pub fn prepare(voice: &'static Voice, capped: bool) {
    *lock(&BALLAST) = Some(Vec::with_capacity(BALLAST_BYTES));
    engine::begin(on_fatal);
    if capped {
        *lock(&LAST_WORDS) = Some(voice);
        engine::on_exit(on_exit);
        on_exhausted(last_words);
    }
}

/// In the fork of a template: makes the inherited hooks use the fork's own channel.
pub fn pass_on(voice: &'static Voice) {
    if let Some(last_words) = &mut *lock(&LAST_WORDS) {
        *last_words = voice;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The engine reports a fatal error, and then bails out.
fn on_fatal(error: FatalError) {
    lock(&BALLAST).take();
    let message = shorten(&error.message, STRING_MAX);
    let location = frames::current_at(error.file, error.line);
    lock(&FATAL).get_or_insert(match error.out_of_memory {
        true => Ending::OutOfMemory {
            message,
            location: Some(location),
        },
        false => Ending::Fatal { message, location },
    });
}

/// Something called libc's `exit`. If `malloc` fails, PHP calls it with status 1 and without any
/// other hook (`zend_out_of_memory` in `Zend/zend_alloc.c`).
extern "C" fn on_exit(status: i32) {
    if status == EXHAUSTED {
        say_exhausted();
    }
}

/// Rust's own memory has run out.
fn last_words() {
    static SPEAKING: AtomicBool = AtomicBool::new(false);
    // On the second call, even this report had no memory.
    if !SPEAKING.swap(true, Ordering::Relaxed) {
        say_exhausted();
    }
    leave(EXHAUSTED)
}

fn say_exhausted() {
    let voice = LAST_WORDS.try_lock().ok().and_then(|voice| *voice);
    let Some(voice) = voice else {
        return;
    };
    // If the lock is held, its holder is freeing the ballast.
    drop(
        BALLAST
            .try_lock()
            .ok()
            .and_then(|mut ballast| ballast.take()),
    );
    let location: Option<Location> = frames::current();
    voice.send(&Message::Report(Report {
        ending: Ending::OutOfMemory {
            message: "The hard cap on the process's memory was reached.".into(),
            location,
        },
        phase: deadline::phase(),
        memory_peak_bytes: memory_peak(),
        snippet_us: None,
        encode_us: None,
        hints: Vec::new(),
    }));
}

/// Takes the fatal error that the engine reported.
pub fn fatal() -> Option<Ending> {
    lock(&FATAL).take()
}

/// The ending for a cut.
pub fn of(cut: Cut) -> Ending {
    match cut {
        Cut::Threw(thrown) => Ending::Threw(encoded(&thrown)),
        // Some fatal errors unwind like `exit`, so that PHP frees its memory.
        Cut::Exited(status) if i32::from(status) == exit_codes::FATAL => {
            fatal().unwrap_or(Ending::Exited(status))
        }
        Cut::Exited(status) => Ending::Exited(status),
        Cut::Bailout => fatal().unwrap_or_else(|| Ending::Fatal {
            message: "PHP ended without an error message.".into(),
            location: Location {
                file: String::new(),
                line: 0,
                stack_trace: Vec::new(),
            },
        }),
    }
}

/// The ending of a fork whose state could not be renewed.
pub fn of_unfresh(why: NotFresh) -> Ending {
    match why {
        NotFresh::Directory(error) => Ending::BootFailed {
            message: format!("The project's directory cannot be entered: {error}."),
            exception: None,
        },
        NotFresh::Bailout => of(Cut::Bailout),
    }
}

/// An exception in its public shape.
pub fn encoded(thrown: &exception::Exception) -> String {
    encode_exception(&exception::view(thrown.object())).to_string()
}
