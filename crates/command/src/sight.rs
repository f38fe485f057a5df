//! What a command may have missed: files that its caller has and that it was not shown.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use altair_engine::Blocked;
use altair_engine::guards::Guard;
use altair_sandbox::{RunAs, with_files_of};

use crate::hidden::is_hidden;

/// How long to look at files that a command may have missed.
const PATIENCE: Duration = Duration::from_millis(200);
/// Paths that are looked at.
const LOOKED_AT: usize = 64;
/// Paths that are told.
const TOLD: usize = 5;
/// Bytes of the end of output in which paths are looked for.
const OUTPUT_BYTES: usize = 16 * 1024;

/// What a command sees of its caller's files.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    /// As whom a root host's command runs.
    pub user: Option<RunAs>,
    /// The directory that it starts in.
    pub cwd: PathBuf,
    /// Files, and directories with everything below them, that it sees.
    pub shown: Vec<PathBuf>,
    /// What of them it does not see.
    pub hidden: Vec<PathBuf>,
    /// Its arguments.
    pub argv: Vec<OsString>,
    /// What is told of it whatever it does.
    pub told: Vec<Blocked>,
}

impl Sight {
    /// Whether it sees what a path leads to.
    pub(crate) fn sees(&self, path: &Path) -> bool {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        // Those are its own.
        let is_own = ["/proc", "/dev"].iter().any(|own| path.starts_with(own));
        is_own
            || self.shown.iter().any(|shown| real.starts_with(shown))
                && !is_hidden(&real, &self.hidden)
    }

    /// What is to be told of a command that has ended: `failed`, and the ends of its output in which it
    /// may have said what it missed. A command may name any path there; what is told is whether its
    /// user could have read it, and nothing of its content.
    pub(crate) fn told(self, failed: bool, output: &[&[u8]]) -> Vec<Blocked> {
        let mut found = BTreeSet::new();
        for word in &self.argv {
            for part in word.as_bytes().split(|byte| *byte == b'=') {
                self.add(part, &mut found);
            }
        }
        if !failed {
            // It may only have handed them on. A file that is kept from it is there, and empty.
            found.retain(|path| is_hidden(path, &self.hidden));
        }
        for output in output {
            let end = output.len().saturating_sub(OUTPUT_BYTES);
            for word in output[end..].split(|byte| is_no_part(*byte)) {
                if word.starts_with(b"/") {
                    self.add(word, &mut found);
                }
            }
        }
        let user = self.user;
        let mut told = self.told.clone();
        let missed = with_files_of(user, PATIENCE, move || {
            let missed = found
                .into_iter()
                .filter(|path| !self.sees(path) && may_be_read(path));
            missed
                .take(TOLD)
                .map(|path| entry(&path))
                .collect::<Vec<_>>()
        });
        told.extend(missed.unwrap_or_default());
        told
    }

    /// Adds the path that a word may be.
    fn add(&self, word: &[u8], found: &mut BTreeSet<PathBuf>) {
        let text = std::str::from_utf8(word).ok();
        let text = text.filter(|text| text.contains('/') && !text.contains(char::is_control));
        if let Some(text) = text.map(|text| text.trim_end_matches('.'))
            && found.len() < LOOKED_AT
        {
            found.insert(plain(&self.cwd.join(text)));
        }
    }
}

/// The entry for a path that was not shown.
fn entry(path: &Path) -> Blocked {
    Blocked {
        what: format!("read {}", path.display()),
        guard: Guard::Filesystem,
        lift: Some(format!("--read={}", path.display())),
    }
}

/// Whether a byte of a message ends a path in it.
fn is_no_part(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"'\"`:;,()[]<>=|&".contains(&byte)
}

/// Whether the calling thread's user may read what is there: a file or a directory, since to open
/// anything else has effects.
fn may_be_read(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|of| match (of.is_dir(), of.is_file()) {
            (true, _) => path.read_dir().is_ok(),
            (_, true) => std::fs::File::open(path).is_ok(),
            _ => false,
        })
}

/// The path without `.` and `..`, without a look at the disk.
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
