//! Describes files that a run could not open.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use altair_sandbox::Place;
use nix::libc;

use super::Context;
use crate::channel::Outside;
use crate::confinement::AUDIT_DIR;
use crate::guards::Guard;
use crate::result::Blocked;

/// Directories that are never the host's in a run: `--read` cannot show them.
const OWN: &[&str] = &["/proc", "/sys", "/dev"];

/// The entry for a file, if a guard denied access to it.
pub(super) fn blocked(file: &Outside, context: &Context) -> Option<Blocked> {
    let path = plain(Path::new(OsStr::from_bytes(&file.path)));
    let shown = path.display();
    let in_project = path.starts_with(&context.root);
    let entry = |what, lift: String| Blocked {
        what,
        guard: Guard::Filesystem,
        lift: Some(lift),
    };
    if !file.write {
        // A file that the host does not have either is just missing. In the project all files are
        // visible, but for what links lead to.
        let place = Place::find(&path).ok()?;
        let is_visible = in_project && place.path().starts_with(&context.root);
        return (!is_visible).then(|| {
            let path = if in_project { place.path() } else { &path };
            let shown = path.display();
            let lift = if OWN.iter().any(|own| path.starts_with(own)) {
                "--unsafe".to_owned()
            } else {
                format!("--read={shown}")
            };
            entry(format!("read {shown}"), lift)
        });
    }
    let what = format!("write {shown}");
    if in_project && file.errno == libc::EOVERFLOW {
        let why = "it belongs to another user, whose files the throwaway layer cannot hold";
        return Some(entry(format!("{what}: {why}"), "--writes".into()));
    }
    if in_project && file.errno == libc::EXDEV {
        let what = format!(
            "rename the directory {shown}: the throwaway layer cannot rename a directory that existed before the run"
        );
        return Some(entry(what, "--writes".into()));
    }
    if path.starts_with(context.root.join(AUDIT_DIR)) {
        return Some(entry(what, "--unsafe".into()));
    }
    if in_project {
        // A layer itself refuses nothing. Without a private root real writes are to be had only where
        // no run is unsafe, and not in an isolated PHP.
        let by_landlock = !context.unsafe_runs && context.caller.is_none();
        let lift = if context.private_root || by_landlock {
            "--writes"
        } else {
            "--unsafe"
        };
        return (!context.writable).then(|| entry(what, lift.into()));
    }
    let caches = context.caches_of_boot.as_ref();
    if let Some(below) = caches.and_then(|caches| path.strip_prefix(caches).ok()) {
        let what = format!(
            "write {}: a framework's cache, which boot has made for all runs; a run without a template (`warm: false`) has its own",
            below.display()
        );
        return Some(entry(what, "--unsafe".into()));
    }
    // If the host has no such directory, the file could not have been created there either.
    let parent = path.parent()?;
    is_there(parent).then(|| entry(what, "--unsafe".into()))
}

/// Whether a file is a directory or in it, also through links.
pub(super) fn is_in(file: &Outside, directory: &Path) -> bool {
    let path = plain(Path::new(OsStr::from_bytes(&file.path)));
    path.starts_with(directory)
        || Place::find(&path).is_ok_and(|place| place.path().starts_with(directory))
}

fn is_there(path: &Path) -> bool {
    Place::find(path).is_ok()
}

/// The path without `.` and `..`, resolved without looking at the disk.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
