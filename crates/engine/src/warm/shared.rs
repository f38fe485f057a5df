//! What a booted template shares with its forks, seen from outside: a fork of it is only sound
//! where that is nothing.

use std::fs;
use std::io;
use std::path::Path;

use altair_sandbox::Unseen;

/// Descriptors that each template has: nothing, standard output and error, its channel.
const OWN_DESCRIPTORS: usize = 4;

/// Why a template cannot be forked from again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// A fork, one alone, is as good as a process of its own.
    Shared(String),
    /// Its boot did not go as it does in a process of its own.
    Unsound(String),
}

/// Looks for one.
///
/// # Errors
/// Where `/proc` does not tell.
pub(super) fn find(pid: i32, unseen: &[Unseen]) -> io::Result<Option<Obstacle>> {
    let proc = Path::new("/proc").join(pid.to_string());
    for what in unseen {
        match what {
            Unseen::Process => return Ok(unsound("boot starts a process")),
            Unseen::Thread => return Ok(unsound("boot starts a thread")),
            Unseen::Connection | Unseen::TooMuch => {}
        }
    }
    if fs::read_dir(proc.join("task"))?.count() != 1 {
        return Ok(unsound("boot leaves a second thread behind"));
    }
    if let Some(what) = descriptor(&proc)? {
        return Ok(shared(format!("boot leaves {what} open")));
    }
    if let Some(what) = mapping(&proc)? {
        return Ok(shared(format!("boot leaves shared memory behind ({what})")));
    }
    for what in unseen {
        match what {
            Unseen::Connection => return Ok(shared("boot makes a connection".into())),
            Unseen::TooMuch => {
                return Ok(shared(
                    "boot looks at more than can be kept track of".into(),
                ));
            }
            Unseen::Process | Unseen::Thread => {}
        }
    }
    Ok(None)
}

fn unsound(what: &str) -> Option<Obstacle> {
    Some(Obstacle::Unsound(what.into()))
}

fn shared(what: String) -> Option<Obstacle> {
    Some(Obstacle::Shared(what))
}

/// A descriptor that is not the template's own.
fn descriptor(proc: &Path) -> io::Result<Option<String>> {
    let mut numbers: Vec<usize> = fs::read_dir(proc.join("fd"))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    // Its own are the first ones: nothing else was open when it was started.
    let Some(other) = numbers.iter().find(|number| **number >= OWN_DESCRIPTORS) else {
        return Ok(None);
    };
    let target = fs::read_link(proc.join("fd").join(other.to_string()))?;
    let target = target.to_string_lossy();
    Ok(Some(match target.split_once(':') {
        Some(("socket", _)) => "a connection".into(),
        Some(("pipe", _)) => "a pipe".into(),
        Some(("anon_inode", what)) => what.trim_matches(['[', ']']).into(),
        _ => target.into_owned(),
    }))
}

/// Memory that a fork would share, and may write to.
fn mapping(proc: &Path) -> io::Result<Option<String>> {
    let maps = fs::read(proc.join("maps"))?;
    Ok(maps.split(|byte| *byte == b'\n').find_map(|line| {
        let line = String::from_utf8_lossy(line);
        let mut fields = line.split_whitespace();
        let permissions = fields.nth(1)?;
        let writable = permissions.as_bytes().get(1) == Some(&b'w');
        let shared = permissions.as_bytes().get(3) == Some(&b's');
        (writable && shared).then(|| fields.nth(3).unwrap_or("anonymous").to_owned())
    }))
}
