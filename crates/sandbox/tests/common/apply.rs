//! Shared by the tests of applying layers: a project, processes that change it, and what is in it.
#![allow(dead_code, unsafe_code, clippy::unwrap_used, clippy::expect_used)]

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use altair_sandbox::{ApplyError, Change, Layer, Planned, Privileges, RunAs, Status, View, Writes};
use nix::libc;

use super::view::{MIB, NOBODY, Place, become_ordinary, found};
use super::{LONG, Recorder, supervision};

/// Everything in the working directory: types, modes, owners, times, links and contents, but for
/// the sealed directory.
const LIST: &str = "
all() { find . -mindepth 1 -path ./.sealed -prune -o \"$@\"; }
all -printf '%P %y %m %U:%G %T@ %l\\0' 2>/dev/null | sort -z | tr '\\0' '\\n'
all -type f -links +1 -printf '%i %P\n' 2>/dev/null | sort | { last=; same=; while read -r inode name; do
    [ \"$inode\" = \"$last\" ] || { echo \"$same\"; same=; }
    last=$inode; same=\"$same = $name\"
done; echo \"$same\"; } | sort
all -type f -print0 2>/dev/null | sort -z | xargs -0 -r cksum 2>/dev/null
true
";

/// Who has the project, and who is the host.
pub struct Site {
    pub place: Place,
    /// The process's user.
    pub run_as: Option<RunAs>,
}

/// Runs a case as the tests' own user and, if that is root, also as an ordinary one, and as root
/// with a process of an ordinary user.
pub fn as_each(case: fn(&Site)) {
    case(&Site::new(None, None));
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let site = Site::new(Some(NOBODY), None);
    std::thread::scope(|scope| {
        let run = || {
            become_ordinary();
            case(&site);
        };
        scope.spawn(run).join().unwrap();
    });
    let user = RunAs {
        uid: NOBODY,
        gid: NOBODY,
    };
    case(&Site::new(Some(NOBODY), Some(user)));
}

/// What a process left.
pub struct Left {
    /// Its layer.
    pub layer: Layer,
    /// A time before it began.
    pub since: Duration,
    /// What applying does, as it was planned at its end; `None` if it could not be planned.
    pub planned: Option<Planned>,
    /// The project as it saw it at its end.
    pub saw: String,
}

impl Left {
    /// Carries out what was planned, or says why that was not possible.
    pub fn apply(&self) -> Result<(), ApplyError> {
        match &self.planned {
            Some(planned) => self.layer.apply(planned),
            None => self.apply_since(self.since),
        }
    }

    /// The same, as if the process had begun at another time.
    pub fn apply_since(&self, since: Duration) -> Result<(), ApplyError> {
        let planned = self.layer.plan(since, usize::MAX, super::view::later())?;
        self.layer.apply(&planned)
    }

    /// All changes that were planned.
    pub fn changes(&self) -> Vec<Change> {
        self.planned.as_ref().unwrap().changes(usize::MAX).first
    }
}

impl Site {
    pub fn new(owner: Option<u32>, run_as: Option<RunAs>) -> Self {
        Self {
            place: Place::new(owner),
            run_as,
        }
    }

    pub fn app(&self) -> PathBuf {
        self.place.path("app")
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.app().join(path)
    }

    /// Runs a script of the project's owner in the project, outside of any sandbox.
    pub fn outside(&self, script: &str) {
        let done = self.command(script).status().unwrap();
        assert!(done.success(), "{script}");
    }

    fn command(&self, script: &str) -> Command {
        let mut command = match (self.run_as, nix::unistd::geteuid().is_root()) {
            (Some(user), _) => {
                let mut command = Command::new("setpriv");
                command.args([
                    format!("--reuid={}", user.uid),
                    format!("--regid={}", user.gid),
                ]);
                command.args(["--clear-groups", "sh", "-c"]);
                command
            }
            // Without the rights to pass over modes.
            (None, true) => {
                let mut command = Command::new("setpriv");
                command.args(["--bounding-set=-all", "--inh-caps=-all", "sh", "-c"]);
                command
            }
            (None, false) => {
                let mut command = Command::new("sh");
                command.arg("-c");
                command
            }
        };
        command.arg(script).current_dir(self.app());
        command
    }

    pub fn view(&self) -> View {
        let mut view = self.place.view();
        view.project.writes = Writes::Layer {
            bytes: 64 * MIB,
            on_disk: None,
        };
        view
    }

    /// Runs a script in a layer.
    pub fn run(&self, script: &str) -> Left {
        self.run_in(script, self.view())
    }

    pub fn run_in(&self, script: &str, view: View) -> Left {
        let since = now(&self.place.path(""));
        let script = format!("{script}\necho ---\ncd {}\n{LIST}", quoted(&self.app()));
        let mut launch = self.place.launch(&script, view);
        launch.policy.privileges = Privileges::Drop {
            run_as: self.run_as,
        };
        let mut child = launch.spawn().unwrap();
        let layer = child.take_layer().unwrap();
        let ended = child.supervise(supervision(LONG), &mut Recorder::default());
        assert_eq!(
            ended.status,
            Status::Exited(0),
            "{}",
            String::from_utf8_lossy(&ended.stderr.head)
        );
        let output = String::from_utf8_lossy(&ended.stdout.head).into_owned();
        let (_, saw) = output.split_once("---\n").unwrap();
        let planned = layer.plan(since, usize::MAX, super::view::later());
        Left {
            layer,
            since,
            planned: planned.ok(),
            saw: saw.to_owned(),
        }
    }

    /// The project as its owner sees it.
    pub fn shows(&self) -> String {
        let output = self.command(LIST).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Everything in the project and beside it, as far as it can be told apart.
    pub fn state(&self) -> String {
        self.state_but(&[])
    }

    /// The same without the contents of files with these names, which are not opened.
    pub fn state_but(&self, names: &[&str]) -> String {
        let mut state = String::new();
        add_state(&self.place.path(""), names, &mut state);
        state
    }

    /// Gives everything in the project to its owner.
    pub fn own(&self) {
        if let Some(owner) = self.place_owner() {
            own(&self.app(), owner);
        }
    }

    fn place_owner(&self) -> Option<u32> {
        let owner = self.app().metadata().unwrap().uid();
        (nix::unistd::geteuid().is_root() && owner != 0).then_some(owner)
    }

    /// Applies a layer whose process must have seen what is there afterwards.
    pub fn applies(&self, script: &str) {
        let left = self.run(script);
        left.apply().unwrap();
        assert_eq!(self.shows(), left.saw, "{script}");
        self.has_nothing_left();
    }

    pub fn has_nothing_left(&self) {
        let state = self.state();
        assert!(!state.contains(".altair-apply"), "{state}");
    }

    /// A layer on disk is like one in memory.
    pub fn view_on_disk(&self) -> View {
        let store = self.place.path("store");
        fs::create_dir_all(&store).unwrap();
        if let Some(owner) = self.place_owner() {
            own(&store, owner);
        }
        let mut view = self.place.view();
        view.project.writes = Writes::Layer {
            bytes: MIB,
            on_disk: Some(found(&store)),
        };
        view
    }
}

fn own(path: &Path, owner: u32) {
    lchown(path, Some(owner), Some(owner)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            own(&entry.unwrap().path(), owner);
        }
    }
}

fn add_state(path: &Path, closed: &[&str], state: &mut String) {
    let meta = path.symlink_metadata().unwrap();
    let at = (meta.mtime(), meta.mtime_nsec());
    let content = match (meta.is_file(), meta.is_symlink()) {
        (true, _) if closed.iter().any(|name| path.ends_with(name)) => Vec::new(),
        (true, _) => fs::read(path).unwrap_or_default(),
        (_, true) => fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec(),
        _ => Vec::new(),
    };
    let (mode, links) = (meta.mode(), if meta.is_dir() { 0 } else { meta.nlink() });
    *state += &format!(
        "{path:?} {mode:o} {}:{} {at:?} {links} {} {content:?}\n",
        meta.uid(),
        meta.gid(),
        meta.ino()
    );
    if meta.is_dir()
        && let Ok(entries) = fs::read_dir(path)
    {
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            add_state(&path, closed, state);
        }
    }
}

/// A time of the files' clock: changes before have an earlier one.
pub fn now(near: &Path) -> Duration {
    let path = near.join("../").canonicalize().unwrap();
    let mut file = tempfile::tempfile_in(path).unwrap();
    file.metadata().unwrap();
    file.write_all(b"x").unwrap();
    let meta = file.metadata().unwrap();
    let part = |n: i64| u64::try_from(n).unwrap();
    Duration::from_secs(part(meta.ctime())) + Duration::from_nanos(part(meta.ctime_nsec()))
}

pub fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Sets an extended attribute, if the file system has any.
pub fn set_attribute(path: &Path, name: &str, value: impl AsRef<[u8]>) {
    let value = value.as_ref();
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    let name = std::ffi::CString::new(name).unwrap();
    // SAFETY: two C strings; pointer and length are of one slice.
    let set = unsafe {
        libc::setxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
        )
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

pub fn attribute(path: &Path, name: &str) -> Option<String> {
    let path = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
    let name = std::ffi::CString::new(name).unwrap();
    let mut value = [0u8; 256];
    // SAFETY: two C strings; pointer and length are of one buffer.
    let length = unsafe {
        libc::getxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_mut_ptr().cast(),
            value.len(),
        )
    };
    let value = value.get(..usize::try_from(length).ok()?)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

pub fn output(command: &mut Command) -> String {
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}
