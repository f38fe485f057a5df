//! A template: boots the application once, and forks a child for each snippet. It never reads a
//! snippet itself.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, Instant};

use altair_engine::channel::{
    BootReport, Ending, Ground, INI_MAX, Message, Report, Task, TemplateTask, Work, fits,
};
use altair_engine::exit_codes::BROKEN;
use altair_engine::guards::{Guard, GuardState, ToldStates};
use altair_sandbox::{
    Behind, FinalGuards, FirstGuard, Fork, Forked, Forking, Recorder, TEMP_PATH, has_one_thread,
    landlock_version, make_first_directory,
};

use super::channel_link::{Link, Voice};
use super::run::Start;
use super::{deadline, ending, finish, guards, receive, rehearsal, run, runtime};
use crate::zend::child::{self as engine, memory_peak};
use crate::zend::{fork_state, startup};

/// The descriptor of a fork's channel, as in every child.
const CHANNEL: i32 = altair_engine::channel::DESCRIPTOR;

/// The exit status of a template that is no longer needed.
const EXIT_IDLE: i32 = 0;

/// Boots, and forks on request until the template has been idle for too long or the host is gone.
/// Returns the exit status of the template, and in each fork that of the fork.
pub fn serve(task: &Task, model: &TemplateTask, link: Link) -> i32 {
    let voice = super::begin(task, link);
    let forking = match get_ready(task, model, voice) {
        Ok(forking) => forking,
        Err(End::Boot(report)) => finish(*report, voice),
        Err(End::Unable(why)) => {
            voice.send(&Message::Unable { why });
            return BROKEN;
        }
        Err(End::Told) => return BROKEN,
    };
    match forking.next(Duration::from_millis(model.idle_ms)) {
        Forked::Over => EXIT_IDLE,
        Forked::Fork(fork) => in_fork(*fork, &model.forks),
    }
}

/// Why a template could not be started.
enum End {
    /// Boot has failed, with the report of a run.
    Boot(Box<Report>),
    /// Templates are not possible here.
    Unable(String),
    /// The same, already reported; or the host is gone.
    Told,
}

fn get_ready(task: &Task, model: &TemplateTask, voice: &'static Voice) -> Result<Forking, End> {
    if !has_one_thread() {
        return Err(End::Unable("it has a second thread".into()));
    }
    let landlock = take_ground(model)?;
    // Before the filter, which forbids it.
    let dispatch = Recorder::begin();
    let guard = FirstGuard::take(voice.channel(), model.forks.descriptors).map_err(|error| {
        End::Unable(format!(
            "its first seccomp filter cannot be installed: {error}"
        ))
    })?;
    let insists = model
        .insist
        .iter()
        .any(|insisted| insisted.guard == Guard::Landlock);
    if insists && let Err(why) = landlock_version() {
        return Err(End::Unable(why));
    }
    voice.send(&Message::Guarded {
        guards: guards_of_boot(landlock),
    });
    let began = Instant::now();
    fork_state::watch_seeds();
    // After all guards of boot.
    let recorder = guard.record(dispatch);
    run::boot(task, voice, model.boots).map_err(boot_failed)?;
    let record = match recorder {
        Ok(recorder) => Ok(recorder.end()),
        Err(error) => Err(error.to_string()),
    };
    let boot_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
    let mut booted = Message::Booted(BootReport {
        boot_us,
        record,
        ini: startup::ini_paths()
            .into_iter()
            .take(INI_MAX)
            .map(|path| path.into_os_string().into_vec())
            .collect(),
    });
    if !fits(&booted)
        && let Message::Booted(booted) = &mut booted
    {
        booted.record = Err("boot looks at more than can be kept track of".into());
    }
    voice.send(&booted);
    drop(booted);
    fork_state::settle();
    // Everything for the record is freed by now. Free pages need no copy in the forks.
    engine::trim_memory();
    // The host checks what boot has left, and may decide against forks.
    guard
        .settle(&model.ground.own_files(), voice.channel())
        .map_err(|_| End::Told)
}

/// Takes what holds boot where there is no private root: Landlock, and a directory for temporary
/// files. Returns the state of Landlock during boot, if the forks take it.
fn take_ground(model: &TemplateTask) -> Result<Option<GuardState>, End> {
    let (landlock, temp) = match &model.ground {
        Ground::PrivateRoot(_) => {
            let to = "the private root alone while a template boots".to_owned();
            return Ok(model
                .forks
                .landlock
                .is_some()
                .then_some(GuardState::Degraded { to }));
        }
        Ground::HostFiles { landlock, temp } => (landlock, temp),
    };
    make_first_directory(Path::new(OsStr::from_bytes(temp))).map_err(|error| {
        End::Unable(format!(
            "its directory for temporary files cannot be made: {error}"
        ))
    })?;
    engine::keep_link(TEMP_PATH.as_bytes());
    let guards = FinalGuards {
        landlock: Some(landlock.clone()),
        ..FinalGuards::default()
    };
    match guards.take(None).landlock {
        Some(GuardState::Missing { because }) => Err(End::Unable(because)),
        state => Ok(state),
    }
}

/// The kernel's guards during boot in a template.
fn guards_of_boot(landlock: Option<GuardState>) -> ToldStates {
    let landlock = landlock.map(|state| (Guard::Landlock, state));
    let seccomp = (Guard::Seccomp, GuardState::InForce);
    landlock.into_iter().chain([seccomp]).collect()
}

fn boot_failed(ending: Ending) -> End {
    End::Boot(Box::new(Report {
        ending,
        phase: deadline::phase(),
        memory_peak_bytes: memory_peak(),
        snippet_us: None,
        encode_us: None,
        hints: Vec::new(),
    }))
}

/// One evaluation in a fork, which may have been made before anybody asked for it. Gives the exit
/// status.
fn in_fork(fork: Fork, guards: &FinalGuards) -> i32 {
    let confined = fork.confine(guards);
    if !confined.is_called() {
        engine::own_data();
    }
    if !confined.is_called() && rehearsal::rehearse().is_err() {
        return BROKEN;
    }
    if !confined.wait() {
        return EXIT_IDLE;
    }
    let Ok(link) = Link::open(CHANNEL) else {
        return BROKEN;
    };
    let entered_ns = link.opened_ns();
    let Some((link, task)) = receive(link) else {
        return BROKEN;
    };
    let run = match &task.work {
        Work::Snippet(run) => run,
        Work::Runtime(runtime) => &runtime.first,
        Work::Template(_) => return BROKEN,
    };
    let voice = link.with_secret(task.secret.clone());
    ending::pass_on(voice);
    deadline::pass_on(voice);
    let Behind { taken, layer } = match confined.limit(&run.limits) {
        Ok(behind) => behind,
        Err(why) => {
            voice.send(&Message::Unable { why });
            return BROKEN;
        }
    };
    let guards = guards::states(taken);
    if !guards::suffice(&guards, run) {
        voice.send(&Message::Guarded { guards });
        return BROKEN;
    }
    let start = Start::Fork(run::Booted {
        entered_ns,
        guards,
        layer,
    });
    match &task.work {
        Work::Runtime(runtime) => runtime::serve(&task, runtime, voice, start),
        _ => finish(run::run(&task, run, voice, start), voice),
    }
}
