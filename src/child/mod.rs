//! The child: a `php` process that loads this extension, boots the application, runs one snippet
//! and ends. [`install`] is where it begins, [`main`] is the whole of it.

mod boot;
mod ending;
mod guards;
mod link;
mod refusals;
mod run;
mod stop;

use std::ffi::CStr;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use altair_engine::channel::{Ending, Message, PROTOCOL};

use crate::zend::child as engine;
use crate::zend::params::ini;
use crate::zend::process::leave;
use link::Link;

/// The ini setting by which a host tells a process that it is a child, and on which descriptor
/// the channel is.
pub const CHANNEL_INI: &CStr = c"altair_eval.channel";

/// The exit status of a child that could not do its work. Nothing is read into it: the missing
/// report is what the host goes by.
const EXIT_BROKEN: i32 = 70;

static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Whether this process is a child, where nothing may be evaluated.
pub fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// At the module's start: takes over the process where a host asks for it.
pub fn install() {
    if !ini(CHANNEL_INI).is_empty() {
        IS_CHILD.store(true, Ordering::Relaxed);
        engine::take_over(entry);
    }
}

extern "C" fn entry() {
    let status = catch_unwind(main).unwrap_or(EXIT_BROKEN);
    // Everything that has to run has run; module shutdown would only cost time.
    leave(status)
}

/// One evaluation, from the task to the report. Gives the exit status.
fn main() -> i32 {
    let entered_ns = link::monotonic_ns();
    let link = match Link::open(ini(CHANNEL_INI).parse().unwrap_or(-1)) {
        Ok(link) => link,
        Err(_) => return EXIT_BROKEN,
    };
    let task = match link.receive() {
        Ok(task) if task.protocol == PROTOCOL => task,
        _ => {
            link.say_who_we_are();
            return EXIT_BROKEN;
        }
    };
    let voice = link.with_secret(task.secret.clone());
    voice.send(&Message::Entered { at_ns: entered_ns });
    // These set up what the last guards forbid.
    ending::prepare(voice, task.capped);
    stop::arm(voice);
    if !guards::take_final(&task, voice) {
        return EXIT_BROKEN;
    }
    let run = run::run(&task, voice);
    stop::note_phase(run.report.phase);
    let status = exit_status(&run.report.ending);
    voice.send(&Message::Report(run.report));
    status
}

/// The status that fits an ending; the same as the host's table has.
fn exit_status(ending: &Ending) -> i32 {
    match ending {
        Ending::Returned(_) => 0,
        Ending::Threw(_) => 1,
        Ending::Exited(status) => (*status).into(),
        Ending::Fatal { .. } | Ending::OutOfMemory { .. } => 255,
        Ending::BootFailed { .. } => 2,
    }
}
