//! Reports refusals to the host immediately, since the end of a run may leave no time for that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use altair_engine::channel::{Message, Outside};
use altair_engine::guards::Guard;
use altair_engine::{Blocked, Caller};

use super::channel_link::Voice;
use crate::zend::refusals::{Hearer, name_ways, take_sought, tell};

/// The guard that refuses in the child.
const GUARD: Guard = Guard::Ini;

static VOICE: Mutex<Option<&'static Voice>> = Mutex::new(None);

/// Reports on `voice` from now on.
pub fn report_to(voice: &'static Voice) {
    *VOICE.lock().unwrap_or_else(PoisonError::into_inner) = Some(voice);
    tell(Hearer { refused, missed });
}

/// Whose names errors use from now on for what allows something. Called once; before, errors name
/// flags of the command line.
pub fn speak_to(caller: Caller) {
    let _ = CALLER.set(caller);
    name_ways(way);
}

static CALLER: OnceLock<Caller> = OnceLock::new();

/// Errors name nothing that a host refuses which makes no unsafe runs.
pub fn without_unsafe_runs() {
    UNSAFE_RUNS.store(false, Ordering::Relaxed);
    name_ways(way);
}

static UNSAFE_RUNS: AtomicBool = AtomicBool::new(true);

fn way(flag: &str) -> Option<String> {
    let unsafe_runs = UNSAFE_RUNS.load(Ordering::Relaxed);
    altair_engine::way(CALLER.get().copied(), unsafe_runs, flag)
}

/// Tells the host of variables that were looked for since it was told last.
pub fn tell_sought(voice: &Voice) {
    let names = take_sought();
    if !names.is_empty() {
        voice.send(&Message::Sought(names));
    }
}

fn say(message: &Message) {
    let voice = *VOICE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(voice) = voice {
        voice.send(message);
    }
}

fn refused(what: String, lift: String) {
    say(&Message::Refused(Blocked {
        what,
        guard: GUARD,
        lift: Some(lift),
    }));
}

fn missed(path: &[u8], write: bool, errno: i32) {
    say(&Message::Outside(Outside {
        path: path.to_vec(),
        write,
        errno,
    }));
}
