#![allow(clippy::unwrap_used, clippy::expect_used)]

mod judging;
mod kernel;
mod mounts;
mod quiet;
mod sight;
mod stale;
mod ways;

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use altair_sandbox::{Identity, Look, Way};
use tempfile::TempDir;

use super::{Changed, Freshness, MadeFrom, Means, Started, What};

/// Unlimited watches, and none.
const WATCHED: usize = usize::MAX;
const POLLED: usize = 0;
const MINUTE_NS: i64 = 60_000_000_000;

/// Files, and what a template saw of them.
struct Scene {
    dir: TempDir,
    made_from: MadeFrom,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made_from = MadeFrom {
            launched_ns: later(),
            visible: vec![bytes(dir.path())],
            ..MadeFrom::default()
        };
        Self { dir, made_from }
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() {
            self.dir.path().into()
        } else {
            self.dir.path().join(name)
        }
    }

    fn write(&self, name: &str, content: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), content).unwrap();
    }

    /// The template looks at `name` a minute after its last change.
    fn look(&mut self, name: &str, way: Way) {
        let path = self.path(name);
        let found = if way == Way::Passed {
            fs::symlink_metadata(&path)
        } else {
            fs::metadata(&path)
        };
        self.seen(&path, way, found.ok().as_ref().map(identity));
        self.made_from.looks.last_mut().unwrap().link = way == Way::Passed;
    }

    /// The template looks at `name` itself, which is a link.
    fn look_at_link(&mut self, name: &str) {
        let path = self.path(name);
        let found = fs::symlink_metadata(&path).unwrap();
        self.seen(&path, Way::Read, Some(identity(&found)));
        self.made_from.looks.last_mut().unwrap().link = true;
    }

    fn seen(&mut self, path: &Path, way: Way, found: Option<Identity>) {
        self.made_from.looks.push(Look {
            path: bytes(path),
            way,
            link: false,
            found,
            at_ns: later(),
        });
    }

    fn started(&mut self, name: &str, way: Way) {
        let path = bytes(&self.path(name));
        self.made_from.started.push(Started { path, way });
    }

    fn stand(&self, watches: usize) -> Freshness {
        let mut fresh = Freshness::stand_with(&self.made_from, watches).unwrap();
        assert_eq!(fresh.check(), Ok(()));
        fresh
    }

    /// Why it does not stand; the reason is the same with watches and without.
    fn refused(&self) -> What {
        let why = |watches| Freshness::stand_with(&self.made_from, watches).unwrap_err();
        assert_eq!(why(WATCHED), why(POLLED));
        why(WATCHED).what
    }

    /// Returns once a new change gets later times than everything before.
    fn tick(&self) {
        let clock = tempfile::NamedTempFile::new_in(self.dir.path().parent().unwrap()).unwrap();
        let time = || {
            clock.as_file().set_len(1).unwrap();
            fs::write(clock.path(), "tick").unwrap();
            identity(&fs::metadata(clock.path()).unwrap()).ctime_ns
        };
        let began = time();
        while time() == began {}
    }
}

/// Checks that `change` is detected by the kernel's events alone, and by polling alone. Returns how
/// it was detected, in this order. Keeps the result of `change` until then.
fn goes_stale<Kept>(make: impl Fn(&mut Scene), change: impl Fn(&Scene) -> Kept) -> [Changed; 2] {
    [WATCHED, POLLED].map(|watches| {
        let (scene, mut fresh) = stand(&make, watches);
        let kept = change(&scene);
        let changed = fresh.check().expect_err("it is stale");
        drop(kept);
        assert_eq!(fresh.check(), Err(changed.clone()), "it stays stale");
        changed
    })
}

/// The opposite.
fn stays_fresh(make: impl Fn(&mut Scene), change: impl Fn(&Scene)) {
    for watches in [WATCHED, POLLED] {
        let (scene, mut fresh) = stand(&make, watches);
        change(&scene);
        assert_eq!(fresh.check(), Ok(()), "{:?}", fresh.means());
    }
}

fn stand(make: impl Fn(&mut Scene), watches: usize) -> (Scene, Freshness) {
    let mut scene = Scene::new();
    make(&mut scene);
    scene.tick();
    let fresh = scene.stand(watches);
    let Means { watched, polled } = fresh.means();
    assert_eq!((watched > 0, polled > 0), (watches > 0, watches == 0));
    (scene, fresh)
}

fn identity(found: &fs::Metadata) -> Identity {
    let directory = found.is_dir();
    Identity {
        mode: found.mode(),
        ino: if directory { 0 } else { found.ino() },
        size: if directory { 0 } else { found.size() },
        mtime_ns: found.mtime() * 1_000_000_000 + found.mtime_nsec(),
        ctime_ns: found.ctime() * 1_000_000_000 + found.ctime_nsec(),
    }
}

fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_nanos().try_into().unwrap()
}

fn later() -> i64 {
    now() + MINUTE_NS
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
