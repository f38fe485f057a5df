//! The child: a `php` process that loads this extension, boots the application, runs one snippet
//! and ends. [`install`] is where it begins, [`main`] is the whole of it.

mod boot;
mod channel_link;
mod deadline;
mod ending;
mod guards;
mod project_classes;
mod queries;
mod refusals;
mod run;
mod short_names;
mod template;

use std::ffi::CStr;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use altair_engine::channel::{Message, PROTOCOL, Report, SnippetTask, Task, Work};
use altair_engine::exit_codes::BROKEN;

use crate::zend::child as engine;
use crate::zend::params::ini;
use crate::zend::process::leave;
use channel_link::{Link, Voice};

/// The ini setting by which a host tells a process that it is a child, and on which descriptor
/// the channel is.
pub const CHANNEL_INI: &CStr = c"altair_eval.channel";

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
    let status = catch_unwind(main).unwrap_or(BROKEN);
    // Everything that has to run has run; module shutdown would only cost time.
    leave(status)
}

/// One child, from its task to its end. Gives the exit status.
fn main() -> i32 {
    let descriptor = ini(CHANNEL_INI).parse().unwrap_or(-1);
    match Link::open(descriptor).ok().and_then(receive) {
        Some((link, task)) => match task.work.clone() {
            Work::Snippet(run) => cold(&task, &run, link),
            Work::Template(model) => template::serve(&task, &model, link),
        },
        None => BROKEN,
    }
}

/// Waits for the task.
fn receive(link: Link) -> Option<(Link, Task)> {
    match link.receive() {
        Ok(task) if task.protocol == PROTOCOL => Some((link, task)),
        _ => {
            link.say_who_we_are();
            None
        }
    }
}

/// One evaluation in a process of its own.
fn cold(task: &Task, run: &SnippetTask, link: Link) -> i32 {
    let voice = begin(task, link);
    if !guards::take_final(task, run, voice) {
        return BROKEN;
    }
    finish(run::run(task, run, voice, None), voice)
}

/// Says that the child's own code has begun, and sets up what the last guards forbid.
fn begin(task: &Task, link: Link) -> &'static Voice {
    let entered_ns = link.opened_ns();
    let voice = link.with_secret(task.secret.clone());
    voice.send(&Message::Entered { at_ns: entered_ns });
    ending::prepare(voice, task.capped);
    deadline::arm(voice, task);
    voice
}

/// Reports. Gives the exit status.
fn finish(report: Report, voice: &Voice) -> i32 {
    deadline::note_phase(report.phase);
    let status = report.ending.exit_code();
    crate::zend::queries::tell_all();
    voice.send(&Message::Report(report));
    status
}
