//! Shared by the tests of the filesystem view: a place with a project. Its cases run as the tests'
//! user and, if that is root, also as an ordinary user, who needs a user namespace.
#![allow(unsafe_code, dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use altair_sandbox::{
    Change, ChangeKind, Connections, Ended, Launch, Limits, Made, Place as FoundPlace, Policy,
    Privileges, Project, Shown, Status, Temp, View, What, Writes,
};
use nix::libc;
use tempfile::TempDir;

use super::{LONG, Recorder, sh, stdout, supervision};

/// An ordinary user, if the tests run as root.
pub const NOBODY: u32 = 65534;

/// The paths that a shell and the usual tools need.
const SYSTEM: &[&str] = &[
    "/bin",
    "/lib",
    "/lib64",
    "/usr/bin",
    "/usr/lib",
    "/etc/passwd",
];

pub const MIB: u64 = 1 << 20;

pub fn found(path: impl AsRef<Path>) -> FoundPlace {
    FoundPlace::find(path.as_ref()).unwrap()
}

pub fn later() -> Instant {
    Instant::now() + LONG
}

/// Runs a case as the tests' own user and, if that is root, also as an ordinary one.
pub fn as_each_user(case: fn(&Place)) {
    case(&Place::new(None));
    if nix::unistd::geteuid().is_root() {
        let place = Place::new(Some(NOBODY));
        std::thread::scope(|scope| {
            let run = || {
                become_ordinary();
                case(&place);
            };
            scope.spawn(run).join().unwrap();
        });
    }
}

/// Raw calls affect only the calling thread.
pub fn become_ordinary() {
    let id = libc::c_long::from(NOBODY);
    // SAFETY: no pointer but a null one for an empty list.
    unsafe {
        assert_eq!(
            libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()),
            0
        );
        assert_eq!(libc::syscall(libc::SYS_setresgid, id, id, id), 0);
        assert_eq!(libc::syscall(libc::SYS_setresuid, id, id, id), 0);
    }
}

/// A project `app` with a file and a directory, and a secret beside it.
pub struct Place {
    dir: TempDir,
    pub ordinary: bool,
}

impl Place {
    pub fn new(owner: Option<u32>) -> Self {
        let place = Self {
            dir: TempDir::with_prefix("altair view ").unwrap(),
            ordinary: owner.is_some(),
        };
        fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        place.write("secret", "the secret");
        place.write("app/file", "content");
        place.write("app/dir/one", "1");
        place.write("app/dir/two", "22");
        if let Some(owner) = owner {
            let chown = |path: PathBuf| {
                std::os::unix::fs::lchown(path, Some(owner), Some(owner)).unwrap();
            };
            for path in [
                "",
                "secret",
                "app",
                "app/file",
                "app/dir",
                "app/dir/one",
                "app/dir/two",
            ] {
                chown(place.path(path));
            }
        }
        place
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    pub fn write(&self, path: &str, content: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub fn view(&self) -> View {
        View {
            readable: SYSTEM.iter().map(Shown::of_system).collect(),
            devices: vec!["/dev/null".into(), "/dev/nothing".into()],
            files: Vec::new(),
            links: Vec::new(),
            writable: Vec::new(),
            layered: None,
            covered: Vec::new(),
            processes: false,
            project: Project {
                root: found(self.path("app")),
                at: self.path("app"),
                writes: Writes::Layer {
                    bytes: 8 * MIB,
                    on_disk: None,
                },
                sealed: Some(".sealed".into()),
            },
            temp: Temp {
                path: "/tmp".into(),
                bytes: MIB,
            },
            home: None,
        }
    }

    pub fn launch(&self, script: &str, view: View) -> Launch {
        Launch {
            cwd: view.project.root.path().to_owned(),
            policy: Policy {
                limits: Limits::default(),
                privileges: Privileges::Drop { run_as: None },
                view: Some(view),
                connections: Connections::default(),
                made: Made::ForItself,
                spaces: None,
                before_exec: None,
            },
            ..sh(script)
        }
    }

    /// Runs a script that must succeed; returns its output and what it changed.
    pub fn run(&self, script: &str, view: View) -> (String, Vec<Change>) {
        let (ended, changes) = self.end_of(script, view);
        assert_eq!(
            ended.status,
            Status::Exited(0),
            "{}",
            String::from_utf8_lossy(&ended.stderr.head)
        );
        (stdout(&ended), changes)
    }

    pub fn end_of(&self, script: &str, view: View) -> (Ended, Vec<Change>) {
        let mut child = self.launch(script, view).spawn().unwrap();
        let layer = child.take_layer();
        let ended = child.supervise(supervision(LONG), &mut Recorder::default());
        (
            ended,
            layer
                .map(|layer| layer.changes(1000, None, later()).late.first)
                .unwrap_or_default(),
        )
    }

    pub fn shows(&self, script: &str) -> String {
        self.run(script, self.view()).0
    }
}

/// A change of a file, or of a directory, whose path ends with a slash.
pub fn change(kind: ChangeKind, path: &str, size: u64) -> Change {
    Change {
        path: path.trim_end_matches('/').into(),
        kind,
        what: match path.ends_with('/') {
            true => What::Directory,
            false => What::File,
        },
        size,
        mode: None,
        notes: Vec::new(),
    }
}

pub fn with_writes(place: &Place, writes: Writes) -> View {
    let mut view = place.view();
    view.project.writes = writes;
    view
}
