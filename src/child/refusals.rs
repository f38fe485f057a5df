//! Tells the host what was refused, when it is: the end of a run may leave no time for it.

use std::sync::OnceLock;

use altair_engine::Blocked;
use altair_engine::channel::{Message, Outside};

use super::link::Voice;
use crate::zend::refusals::{Hearer, tell};

/// The guard that refuses on this side.
const GUARD: &str = "ini";

static VOICE: OnceLock<&'static Voice> = OnceLock::new();

/// Tells `voice` from now on.
pub fn report_to(voice: &'static Voice) {
    let _ = VOICE.set(voice);
    tell(Hearer { refused, missed });
}

fn say(message: &Message) {
    if let Some(voice) = VOICE.get() {
        voice.send(message);
    }
}

fn refused(what: String, lift: String) {
    say(&Message::Refused(Blocked {
        what,
        guard: GUARD.into(),
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
