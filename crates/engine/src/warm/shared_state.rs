//! What a booted template shares with its forks, as seen from outside. A fork is sound only if
//! nothing is shared.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use altair_sandbox::Unseen;

/// Descriptors of every template: an empty standard input, standard output and error, its channel.
const OWN_DESCRIPTORS: usize = 4;

/// Returns the first shared state found, described for the user. `has_temp`: whether it has a
/// descriptor of its directory for temporary files.
///
/// # Errors
/// If `/proc` cannot be read.
pub(super) fn find(
    pid: i32,
    root: &Path,
    unseen: &[Unseen],
    has_temp: bool,
) -> io::Result<Option<String>> {
    let proc = Path::new("/proc").join(pid.to_string());
    if fs::read_dir(proc.join("task"))?.count() != 1 {
        return Ok(Some("boot leaves a second thread behind".into()));
    }
    let own = OWN_DESCRIPTORS + usize::from(has_temp);
    if let Some(what) = descriptor(&proc, root, own)? {
        return Ok(Some(format!("boot leaves {what} open")));
    }
    if let Some(what) = mapping(&proc)? {
        return Ok(Some(format!("boot leaves shared memory behind ({what})")));
    }
    let what = unseen.first().map(|unseen| match unseen {
        Unseen::Process => "boot starts a process",
        Unseen::Thread => "boot starts a thread",
        Unseen::Connection => "boot makes a connection",
        Unseen::TooMuch => "boot looks at more than can be kept track of",
    });
    Ok(what.map(str::to_owned))
}

/// Finds a descriptor that is not the template's own.
fn descriptor(proc: &Path, root: &Path, own: usize) -> io::Result<Option<String>> {
    let mut numbers: Vec<usize> = fs::read_dir(proc.join("fd"))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    numbers.sort_unstable();
    // Its own are the first ones: nothing else was open when it started.
    let Some(other) = numbers.iter().find(|number| **number >= own) else {
        return Ok(None);
    };
    let number = other.to_string();
    let target = fs::read_link(proc.join("fd").join(&number))?;
    if let Some((kind, what)) = target.to_string_lossy().split_once(':') {
        match kind {
            "socket" => return Ok(Some("a connection".into())),
            "pipe" => return Ok(Some("a pipe".into())),
            "anon_inode" => return Ok(Some(what.trim_matches(['[', ']']).into())),
            _ => {}
        }
    }
    // The template has given up the project's mount: a path there is relative to the project root.
    let path = match is_mounted(proc, &number)? {
        true => target,
        false => root.join(target.strip_prefix("/").unwrap_or(&target)),
    };
    let path = path.to_string_lossy();
    Ok(Some(path.trim_end_matches(" (deleted)").to_owned()))
}

/// Returns whether the mount that a descriptor refers to exists in the process's mount namespace.
fn is_mounted(proc: &Path, number: &str) -> io::Result<bool> {
    let info = fs::read_to_string(proc.join("fdinfo").join(number))?;
    let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    let mount = mount.map(str::trim);
    let mounts = fs::read_to_string(proc.join("mountinfo"))?;
    Ok(mounts.lines().any(|line| line.split(' ').next() == mount))
}

/// Bytes to read of a process's list of mappings; an application's has some ten thousand.
const MAPS_MAX: u64 = 4 << 20;

/// Reads a process's list of mappings.
///
/// # Errors
/// If `/proc` cannot be read, or if the list is longer than any application's.
pub(super) fn maps(proc: &Path) -> io::Result<Vec<u8>> {
    let mut maps = Vec::new();
    let file = fs::File::open(proc.join("maps"))?;
    file.take(MAPS_MAX).read_to_end(&mut maps)?;
    match maps.len() as u64 == MAPS_MAX {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(maps),
    }
}

/// Finds writable memory that a fork would share.
fn mapping(proc: &Path) -> io::Result<Option<String>> {
    let maps = maps(proc)?;
    Ok(maps.split(|byte| *byte == b'\n').find_map(|line| {
        let line = String::from_utf8_lossy(line);
        let mut fields = line.split_whitespace();
        let permissions = fields.nth(1)?;
        let writable = permissions.as_bytes().get(1) == Some(&b'w');
        let shared = permissions.as_bytes().get(3) == Some(&b's');
        (writable && shared).then(|| fields.nth(3).unwrap_or("anonymous").to_owned())
    }))
}
