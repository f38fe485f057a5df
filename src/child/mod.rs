//! The child: a `php` process that loads this extension, boots the application, runs one snippet
//! and ends. It begins in [`install`]; [`main`] is all of it.

mod boot;
mod casters;
mod channel_link;
mod completion;
mod deadline;
mod ending;
mod guards;
mod hints;
mod line;
mod project_classes;
mod queries;
mod refusals;
mod rehearsal;
mod run;
mod runtime;
mod short_names;
mod template;

use std::ffi::CStr;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

use altair_engine::channel::{Code, Message, PROTOCOL, Report, SnippetTask, Task, Work};
use altair_engine::exit_codes::BROKEN;

use crate::zend::child as engine;
use crate::zend::params::ini;
use crate::zend::process::leave;
use crate::zend::refusals::note_sought;
use channel_link::{Link, Voice};
use run::Start;

/// The ini setting by which a host makes a process a child. Its value is the channel's descriptor.
pub const CHANNEL_INI: &CStr = c"altair_eval.channel";

static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Returns whether this process is a child, in which nothing may be evaluated.
pub fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// At the module's start: takes over the process if a host asks for it.
pub fn install() {
    if !ini(CHANNEL_INI).is_empty() {
        IS_CHILD.store(true, Ordering::Relaxed);
        engine::take_over(entry);
    }
}

extern "C" fn entry() {
    let status = catch_unwind(main).unwrap_or(BROKEN);
    // Everything has run; module shutdown would only cost time.
    leave(status)
}

/// Runs a child from its task to its end. Returns the exit status.
fn main() -> i32 {
    let descriptor = ini(CHANNEL_INI).parse().unwrap_or(-1);
    let Some((link, task)) = Link::open(descriptor).ok().and_then(receive) else {
        return BROKEN;
    };
    if let Work::Template(model) = &task.work {
        return template::serve(&task, model, link);
    }
    // Before boot, whose code has the channel, too.
    let Ok(code) = link.receive() else {
        return BROKEN;
    };
    match &task.work {
        Work::Snippet(run) => cold(&task, run, code, link),
        Work::Runtime(runtime) => runtime::cold(&task, runtime, code, link),
        Work::Template(_) => BROKEN,
    }
}

/// Waits for the task.
fn receive(link: Link) -> Option<(Link, Task)> {
    match link.receive::<Task>() {
        Ok(task) if task.protocol == PROTOCOL => Some((link, task)),
        _ => {
            link.say_who_we_are();
            None
        }
    }
}

/// One evaluation in a process of its own.
fn cold(task: &Task, run: &SnippetTask, code: Code, link: Link) -> i32 {
    let voice = begin(task, link);
    if !guards::take_final(task, run, voice) {
        return BROKEN;
    }
    finish(run::run(task, run, voice, Start::Cold(code)), voice)
}

/// Reports that the child's own code has begun, and sets up what the last guards forbid.
fn begin(task: &Task, link: Link) -> &'static Voice {
    let entered_ns = link.opened_ns();
    let voice = link.with_secret(task.secret.clone());
    voice.send(&Message::Entered { at_ns: entered_ns });
    if !task.unsafe_runs {
        refusals::without_unsafe_runs();
    }
    if task.restrictions.is_some() {
        note_sought();
    }
    ending::prepare(voice, task.capped);
    deadline::arm(voice, task);
    voice
}

/// Sends the report, and ends: nothing is tidied up that the kernel frees anyway.
fn finish(report: Report, voice: &Voice) -> ! {
    deadline::note_phase(report.phase);
    let status = report.ending.exit_code();
    crate::zend::queries::tell_all();
    refusals::tell_sought(voice);
    voice.send(&Message::Report(report));
    // The host goes on first, if it was woken on this processor: what is left is the kernel's work.
    std::thread::yield_now();
    leave(status)
}
