//! The guards that the child itself takes: the kernel's before boot, the guard `ini` after it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use altair_engine::channel::{Ending, Message, Restrictions, Task};
use altair_engine::guards::{IN_FORCE, describe};

use super::link::Voice;

use crate::zend::child::{self as engine, Refusals};
use crate::zend::params::ini;

/// Takes the kernel's last guards, before anything of the application runs, and tells the host.
/// `false` where one is missing that nothing may run without; the host says so.
pub fn take_final(task: &Task, voice: &Voice) -> bool {
    let taken = task.guards.take(Some(voice.channel()));
    let guards: Vec<_> = [("landlock", taken.landlock), ("seccomp", taken.seccomp)]
        .into_iter()
        .filter_map(|(name, state)| Some((name.to_owned(), describe(&state?))))
        .collect();
    let met = |name: &String| {
        guards
            .iter()
            .any(|(guard, state)| guard == name && state == IN_FORCE)
    };
    let goes_on = task.insist.iter().all(met);
    voice.send(&Message::Guarded { guards });
    goes_on
}

/// Applies the restrictions. Gives what has to be asked, later, for the calls that were refused.
///
/// # Errors
///
/// The ending of a run whose boot has used more than the request allows.
pub fn apply(restrictions: &Restrictions, root: &[u8]) -> Result<Refusals, Ending> {
    engine::set_ini("open_basedir", &open_basedir(root));
    for (name, value) in &restrictions.ini {
        engine::set_ini(name, value.as_bytes());
    }
    let mut refusals = Refusals::default();
    for function in &restrictions.functions {
        refusals.add(&function.name, function.snippet_only, &function.lift);
    }
    refusals.seal();
    let limit = restrictions.memory_limit_bytes;
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
    engine::set_ini("memory_limit", format!("{}M", limit >> 20).as_bytes());
    // Nothing else of this user's may look into the process, nor it into itself by way of /proc.
    let _ = nix::sys::prctl::set_dumpable(false);
    Ok(refusals)
}

/// Where PHP's own file functions may go: the project, what PHP itself includes from, devices,
/// the temp directory.
fn open_basedir(root: &[u8]) -> Vec<u8> {
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
    let dirs: Vec<&[u8]> = dirs.iter().map(|dir| dir.as_os_str().as_bytes()).collect();
    dirs.join(&b':')
}
