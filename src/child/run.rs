//! The run: boot, guards, snippet, encoding, shutdown. Ends in a report. The same for a child in a
//! process of its own and for the fork of a template, which is already booted.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, Instant};

use altair_engine::Phase;
use altair_engine::channel::{
    Code, Ending, Message, Report, SnippetTask, Task, VARIABLES_MAX, VARIABLES_MAX_BYTES,
};
use altair_engine::encode::{Options, OwnCasters, encode_value};
use altair_engine::exit_codes::BROKEN;
use altair_engine::file_changes::timestamp;
use altair_engine::guards::{Guard, GuardState, ToldStates};
use altair_engine::redaction::is_secret;

use super::casters::Casters;
use super::channel_link::Voice;
use super::{boot, deadline, ending, guards, hints, queries, refusals, short_names};
use crate::zend::child::{self as engine, Cut, memory_peak};
use crate::zend::database;
use crate::zend::fork_state;
use crate::zend::has_bailed;
use crate::zend::host::has_exception;
use crate::zend::node::ZvalNode;
use crate::zend::params::ini;
use crate::zend::process::leave;
use crate::zend::snippet::{self, Returned};
use ext_php_rs::types::Zval;

/// The log of a child's start, whose complaints are about the extension that it was told to load.
/// From its first code on, PHP logs to standard error.
const NO_LOG: &str = "/dev/null";
/// ini settings of the child from its first code on: closed output (a snippet may close it) does not
/// end the process.
const PROCESS_INI: &[(&str, &str)] = &[
    ("ignore_user_abort", "1"),
    // PHP would end the process if a long native call exceeds `set_time_limit`. The deadline does
    // that instead, and reports the position.
    ("hard_timeout", "0"),
];
/// ini settings that boot may have changed, and that must hold for the snippet.
const SNIPPET_INI: &[(&str, &str)] = &[("display_errors", "stderr"), ("html_errors", "0")];

/// Boots: the application, or nothing but PHP.
///
/// # Errors
///
/// The ending of a boot that failed.
pub fn boot(task: &Task, voice: &Voice, boots: bool) -> Result<(), Ending> {
    let booted = match boots {
        true => boot_application(task, voice),
        false => {
            boot_nothing(task, voice);
            Ok(())
        }
    };
    // A run that is cut short later tells of its boot at least.
    refusals::tell_sought(voice);
    booted
}

/// A PHP without an application has its own ini settings, but for what ends a process in the middle
/// of a call.
fn boot_nothing(task: &Task, voice: &Voice) {
    if ini(c"error_log") == NO_LOG {
        engine::set_ini("error_log", b"");
    }
    for (name, value) in PROCESS_INI {
        engine::set_ini(name, value.as_bytes());
    }
    if let Some(watched) = task.watched {
        database::watch(watched);
    }
    tell_variables(voice);
    engine::end_boot();
    guards::restrict(task);
}

/// Boots the application. Afterwards its objects are marked as boot's, and the snippet's
/// `container()` returns its container.
fn boot_application(task: &Task, voice: &Voice) -> Result<(), Ending> {
    engine::set_ini("error_log", b"");
    for (name, value) in PROCESS_INI {
        engine::set_ini(name, value.as_bytes());
    }
    if let Some(watched) = task.watched {
        // Also the connections that boot opens.
        database::watch(watched);
    }
    let container = boot::boot(task);
    // Also if it failed: the error may contain a secret.
    tell_variables(voice);
    let container = container?;
    engine::set_container(&container);
    // `container()` owns it from here on.
    std::mem::forget(container);
    engine::end_boot();
    for (name, value) in SNIPPET_INI {
        engine::set_ini(name, value.as_bytes());
    }
    guards::restrict(task);
    Ok(())
}

/// Reports variables that may hold secrets to the host: boot may have read a `.env`.
fn tell_variables(voice: &Voice) {
    // Variables that the host does not have come first.
    let mut variables = engine::superglobals(is_secret);
    for (name, value) in std::env::vars_os() {
        let variable = (name.into_vec(), value.into_vec());
        if is_secret(&variable.0, &variable.1) && !variables.contains(&variable) {
            variables.push(variable);
        }
    }
    let mut room = VARIABLES_MAX_BYTES;
    variables.retain(|(name, value)| {
        let fits = room.checked_sub(name.len() + value.len());
        room = fits.unwrap_or(room);
        fits.is_some()
    });
    variables.truncate(VARIABLES_MAX);
    if !variables.is_empty() {
        voice.send(&Message::Variables(variables));
    }
}

/// Runs a task to its end, in an application that may already be booted.
pub fn run(task: &Task, run: &SnippetTask, voice: &'static Voice, start: Start) -> Report {
    let mut going = Going {
        report: Report {
            ending: Ending::Exited(0),
            phase: Phase::Boot,
            memory_peak_bytes: 0,
            snippet_us: None,
            encode_us: None,
            hints: Vec::new(),
        },
    };
    going.report.ending = match going.complete(task, run, voice, start) {
        Ok(ending) | Err(ending) => ending,
    };
    going.report.memory_peak_bytes = memory_peak();
    going.report.hints = hints::told(&going.report.ending);
    going.report
}

/// Boots, unless the template of this fork has booted, takes the guards that come after boot, and
/// says that the child is ready. Gives its code.
///
/// # Errors
///
/// The ending of a boot that failed.
pub fn get_ready(
    task: &Task,
    run: &SnippetTask,
    voice: &'static Voice,
    start: Start,
    boots: bool,
) -> Result<Code, Ending> {
    let began = Instant::now();
    let (booted, code) = match start {
        Start::Cold(code) => {
            boot(task, voice, boots)?;
            (None, Some(code))
        }
        Start::Fork(booted) => (Some(booted), None),
    };
    // Boot may have changed the directory; relative paths must mean the same in each run.
    let root = Path::new(OsStr::from_bytes(&task.root));
    let fresh = fork_state::enter(root).and_then(|()| match booted {
        Some(_) => fork_state::freshen(),
        None => Ok(()),
    });
    fresh.map_err(ending::of_unfresh)?;
    let ini = guards::limit(task, run, voice)?.map(|state| (Guard::Ini, state));
    let (entered_ns, guards, layer) = match booted {
        Some(booted) => (Some(booted.entered_ns), booted.guards, booted.layer),
        None => (None, Vec::new(), None),
    };
    let guards: ToldStates = guards.into_iter().chain(ini).collect();
    let boot_us = micros(began);
    // A host hears that a child is ready only once it has its code: one that ends before has run none.
    let Some(code) = code.or_else(|| voice.receive_code()) else {
        leave(BROKEN);
    };
    // The boot of a template has a layer of its own.
    let boot_ended = match entered_ns {
        Some(_) => Duration::ZERO,
        None => timestamp(),
    };
    let ready = |guards| Message::Ready {
        boot_us,
        guards,
        entered_ns,
        boot_ended,
    };
    let sent = match &layer {
        Some(layer) => voice.send_with(&ready(guards.clone()), layer),
        None => {
            voice.send(&ready(guards.clone()));
            Ok(())
        }
    };
    if let Err(errno) = sent {
        let why = errno.desc().to_lowercase();
        let to = format!("a layer whose changes cannot be reported: {why}");
        let layer = (Guard::Filesystem, GuardState::Degraded { to });
        voice.send(&ready(guards.into_iter().chain([layer]).collect()));
    }
    drop(layer);
    // From here on, no message needs more descriptors.
    if run.guards.limit_descriptors().is_err() {
        leave(BROKEN);
    }
    queries::report_to(voice, task, run);
    Ok(code)
}

/// Runs what an isolated PHP runs first. Its value is not kept.
///
/// # Errors
///
/// How it was cut short.
pub fn run_first(task: &Task, code: &Code, voice: &Voice) -> Result<(), Ending> {
    let root = Path::new(OsStr::from_bytes(&task.root));
    let source = snippet_source(&code.snippet);
    short_names::compile(&source, root, voice)
        .and_then(|compiled| snippet::run_with(compiled, &code.arguments))
        .and_then(|returned| engine::release_value(returned.value))
        .and_then(|()| engine::flush_output())
        .map_err(ending::of)
}

/// How a child comes to its code.
pub enum Start {
    /// It has it, and is to boot.
    Cold(Code),
    /// It gets it when it is ready.
    Fork(Booted),
}

/// An application that the template of this fork has booted.
pub struct Booted {
    /// When the fork began.
    pub entered_ns: u64,
    /// The guards that the fork has taken.
    pub guards: ToldStates,
    /// The directory of its layer, for the host.
    pub layer: Option<OwnedFd>,
}

/// A run in progress.
struct Going {
    report: Report,
}

impl Going {
    fn complete(
        &mut self,
        task: &Task,
        run: &SnippetTask,
        voice: &'static Voice,
        start: Start,
    ) -> Result<Ending, Ending> {
        let code = get_ready(task, run, voice, start, true)?;
        hints::begin();
        self.enter(Phase::Snippet);
        let root = Path::new(OsStr::from_bytes(&task.root));
        let ending = self.snippet(root, run, &code, voice);
        Ok(self.shut_down(ending, &code))
    }

    fn enter(&mut self, phase: Phase) {
        self.report.phase = phase;
        deadline::note_phase(phase);
    }

    fn snippet(&mut self, root: &Path, run: &SnippetTask, code: &Code, voice: &Voice) -> Ending {
        let began = Instant::now();
        let source = snippet_source(&code.snippet);
        let returned = short_names::compile(&source, root, voice)
            .and_then(|compiled| snippet::run_with(compiled, &code.arguments));
        self.report.snippet_us = Some(micros(began));
        let Returned {
            value,
            is_asked_for,
        } = match returned {
            Ok(returned) => returned,
            Err(cut) => return cut_short(cut, code),
        };
        self.enter(Phase::Encode);
        let began = Instant::now();
        let encoded = encoded(&value, run, root, is_asked_for);
        self.report.encode_us = Some(micros(began));
        let ending = match encoded {
            Some(json) => Ending::Returned(json),
            None => cut_short(engine::pending_cut(), code),
        };
        if !matches!(ending, Ending::Returned(_)) {
            std::mem::forget(value);
            return ending;
        }
        self.enter(Phase::Snippet);
        match engine::release(value) {
            Ok(()) => ending,
            Err(cut) => cut_short(cut, code),
        }
    }

    /// Shutdown functions and destructors of what the snippet made. One of them can still turn a
    /// snippet that returned into one that ended otherwise; it does not make good one that failed.
    fn shut_down(&mut self, ending: Ending, code: &Code) -> Ending {
        let ended = engine::shut_down();
        if !matches!(ending, Ending::Returned(_)) {
            return ending;
        }
        match ended {
            Err(cut) => cut_short(cut, code),
            // PHP's own loop over shutdown functions ends at a fatal error and does not pass it on.
            Ok(()) => ending::fatal().unwrap_or(ending),
        }
    }
}

/// The value as the host gets it; `None` if code that encoding has run was cut short. `advances`: iterators may
/// be advanced.
pub fn encoded(value: &Zval, run: &SnippetTask, root: &Path, advances: bool) -> Option<String> {
    let node = ZvalNode::new(value);
    let casters = run.casters.as_ref();
    let root = root.as_os_str().as_bytes();
    let mut casters = casters.map(|file| Casters::declared(root, file));
    let options = Options {
        limits: run.shown,
        redact: run.redact,
        advance: advances,
        own: casters
            .as_mut()
            .map(|own| own as &mut dyn OwnCasters<ZvalNode>),
        ..Options::default()
    };
    let encoded = encode_value(&node, options);
    drop(node);
    drop(casters);
    encoded
        .ok()
        .map(|json| json.to_string())
        .filter(|_| !has_bailed() && !has_exception())
}

/// The ending that a cut means, and hints at what may have been meant instead.
fn cut_short(cut: Cut, code: &Code) -> Ending {
    if let Cut::Threw(thrown) = &cut {
        hints::of_exception(thrown.object(), &code.snippet);
    }
    ending::of(cut)
}

pub fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// The snippet with a byte order mark, a shebang line and an opening tag replaced by spaces, which
/// keeps line numbers.
pub fn snippet_source(snippet: &[u8]) -> Vec<u8> {
    let mut source = snippet.to_vec();
    let mut at = if source.starts_with(b"\xEF\xBB\xBF") {
        3
    } else {
        0
    };
    if source[at..].starts_with(b"#!") {
        at += source[at..]
            .iter()
            .position(|b| *b == b'\n')
            .unwrap_or(source.len() - at);
    }
    let blank = source[at..]
        .iter()
        .take_while(|b| b.is_ascii_whitespace())
        .count();
    let tag = source.get(at + blank..at + blank + 5);
    if tag.is_some_and(|tag| tag.eq_ignore_ascii_case(b"<?php")) {
        at += blank + 5;
    }
    for byte in &mut source[..at] {
        if *byte != b'\n' && *byte != b'\r' {
            *byte = b' ';
        }
    }
    source
}
