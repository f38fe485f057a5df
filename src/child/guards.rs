//! The guards that the child takes itself: the kernel's before boot, the guard `ini` after it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use altair_engine::channel::{Ending, Message, Restrictions, SnippetTask, Task};
use altair_engine::guards::{Guard, GuardState, ToldStates};
use altair_sandbox::{Seccomp, Taken, has_one_thread};
use nix::unistd::pause;

use super::channel_link::Voice;
use super::refusals;
use crate::zend::child as engine;
use crate::zend::params::ini;
use crate::zend::refusals::{refuse, seal};

/// Takes the kernel's last guards before any code of the application runs, and reports them to the
/// host. `false` if a required guard is missing; the host reports that.
pub fn take_final(task: &Task, run: &SnippetTask, voice: &Voice) -> bool {
    let wanted = &run.guards;
    if (wanted.landlock.is_some() || wanted.seccomp.is_some()) && !has_one_thread() {
        voice.send(&Message::SecondThread);
        // The host reads the thread's name and ends the process.
        loop {
            pause();
        }
    }
    // Before the filter, which forbids this. Not in a private root: no other process can access
    // this one there, and the host must. It reads the arguments of a refused call, and takes a copy
    // of the socket that it connects to a service.
    let serves = |seccomp: &Seccomp| seccomp.tcp || seccomp.local;
    if wanted.seccomp.as_ref().is_some_and(|own| !serves(own)) && !task.private_root {
        hide();
    }
    let guards = states(wanted.take(Some(voice.channel())));
    let goes_on = suffice(&guards, run);
    voice.send(&Message::Guarded { guards });
    goes_on
}

/// The states of the kernel's last guards.
pub fn states(taken: Taken) -> ToldStates {
    let Taken {
        landlock,
        seccomp,
        limits,
    } = taken;
    let taken = [
        (Guard::Landlock, landlock),
        (Guard::Seccomp, seccomp),
        (Guard::Limits, limits),
    ];
    let taken = taken.into_iter();
    taken
        .filter_map(|(guard, state)| Some((guard, state?)))
        .collect()
}

/// Returns whether all required guards are there.
pub fn suffice(guards: &ToldStates, run: &SnippetTask) -> bool {
    let mut insisted = run.insist.iter();
    insisted.all(|insisted| insisted.check(guards).is_ok())
}

/// Prevents access to this process by others of the same user, and by itself through /proc.
fn hide() {
    // Never fails for this value (prctl(2), PR_SET_DUMPABLE).
    let _ = nix::sys::prctl::set_dumpable(false);
}

/// After boot: applies the restrictions that PHP itself enforces.
pub fn restrict(task: &Task) {
    let Some(restrictions) = &task.restrictions else {
        return;
    };
    restrict_paths(task, restrictions);
    for (name, value) in &restrictions.ini {
        engine::set_ini(name, value.as_bytes());
    }
    for function in &restrictions.functions {
        refuse(&function.name, function.snippet_only, &function.lift);
    }
    seal(&task.root);
}

/// Applies the part of the guard `ini` that is specific to a run: its memory limit. From here on,
/// refusals are reported on `voice`. Returns the guard's state, if it is taken.
///
/// # Errors
///
/// The ending of a run whose boot has used more than the request allows.
pub fn limit(
    task: &Task,
    run: &SnippetTask,
    voice: &'static Voice,
) -> Result<Option<GuardState>, Ending> {
    let Some(limit) = run.memory_limit_bytes else {
        return Ok(None);
    };
    if run.guards.seccomp.is_none() {
        hide();
    }
    refusals::report_to(voice);
    if !engine::set_memory_limit(limit) {
        let used = engine::memory_usage();
        return Err(Ending::BootFailed {
            message: format!(
                "Boot has used {} MiB, more than the memory limit of {} MiB: ask for at least {} MiB (--memory-mb).",
                used.div_ceil(1 << 20),
                limit >> 20,
                (used + (used >> 2)).div_ceil(1 << 20)
            ),
            exception: None,
        });
    }
    Ok(Some(paths_state(task)))
}

/// Restricts PHP's own file functions to readable paths, unless a private root does that.
fn restrict_paths(task: &Task, restrictions: &Restrictions) {
    if !task.private_root
        && let Some(dirs) = open_basedir(&task.root, &restrictions.readable)
    {
        engine::set_ini("open_basedir", &dirs);
    }
}

/// The state of the guard after [`restrict_paths`].
fn paths_state(task: &Task) -> GuardState {
    if task.private_root || can_be_listed(&task.root) {
        GuardState::InForce
    } else {
        GuardState::Degraded {
            to: "no open_basedir: it cannot name a project with a colon in its path".into(),
        }
    }
}

/// Returns whether `open_basedir`, whose items are separated by colons, can contain a path.
fn can_be_listed(path: &[u8]) -> bool {
    !path.contains(&b':')
}

/// The paths for PHP's own file functions: the project, the include path, devices, the temp
/// directory, and the run's readable paths. `None` if the project's path contains a colon, which
/// separates the items.
fn open_basedir(root: &[u8], readable: &[Vec<u8>]) -> Option<Vec<u8>> {
    if !can_be_listed(root) {
        return None;
    }
    let root = Path::new(OsStr::from_bytes(root));
    let mut dirs = vec![root.to_owned()];
    dirs.extend(root.join("vendor").canonicalize());
    dirs.extend(
        ini(c"include_path")
            .split(':')
            .filter(|dir| dir.starts_with('/'))
            .map(PathBuf::from),
    );
    dirs.extend([std::env::temp_dir(), PathBuf::from("/dev")]);
    let readable = readable.iter().map(|path| OsStr::from_bytes(path).into());
    let mut dirs: Vec<PathBuf> = dirs.into_iter().chain(readable).collect();
    // Kept short, since PHP names all of them in each warning.
    dirs.retain(|dir| !dir.as_os_str().as_bytes().contains(&b':') && dir.exists());
    let all = dirs.clone();
    let mut seen = HashSet::new();
    dirs.retain(|dir| {
        let is_in_another = all
            .iter()
            .any(|other| other != dir && dir.starts_with(other));
        !is_in_another && seen.insert(dir.clone())
    });
    let dirs: Vec<&[u8]> = dirs.iter().map(|dir| dir.as_os_str().as_bytes()).collect();
    Some(dirs.join(&b':'))
}
