//! Files that a run could not open, in words.

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

/// Directories that are not the host's where they are in a run at all: to name them as readable
/// changes nothing.
const OWN: &[&str] = &["/proc", "/sys", "/dev"];

/// The entry for a file, if it was a guard that kept it.
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
        // What is not there for the host either is simply not there. In the project, all is.
        return (!in_project && is_there(&path)).then(|| {
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
        let why = "it is another user's, whose files the throwaway layer cannot hold";
        return Some(entry(format!("{what}: {why}"), "--writes".into()));
    }
    if in_project && file.errno == libc::EXDEV {
        let what = format!(
            "rename the directory {shown}: the throwaway layer cannot rename one that was there before"
        );
        return Some(entry(what, "--writes".into()));
    }
    if path.starts_with(context.root.join(AUDIT_DIR)) {
        return Some(entry(what, "--unsafe".into()));
    }
    if in_project {
        // A layer refuses nothing by itself.
        // Without a private root real writes are not to be had either.
        let lift = if context.private_root {
            "--writes"
        } else {
            "--unsafe"
        };
        return (!context.writable).then(|| entry(what, lift.into()));
    }
    // Where the host has no such directory, the file could not have been made there either.
    let parent = path.parent()?;
    is_there(parent).then(|| entry(what, "--unsafe".into()))
}

fn is_there(path: &Path) -> bool {
    Place::find(path).is_ok()
}

/// The path without `.` and `..`, by its words alone.
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
