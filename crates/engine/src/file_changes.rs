//! `diagnostics.file_changes`: what a run did to its throwaway layer.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use altair_sandbox::{
    Change, ChangeKind, Changes, Contents, Layer, Listed, Planned, What, shown_path,
};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::{Mode, fstat};
use nix::time::{ClockId, clock_gettime};
use similar::{Algorithm, TextDiff};

use crate::result::{BootChanges, FileChange, FileChanges, FileType};

/// Changes to show; the others are only counted.
pub const SHOWN: usize = 100;
/// Bytes of a file that is compared as text.
const TEXT_MAX_BYTES: u64 = 64 << 10;
/// Bytes of all diffs of a run.
const DIFFS_MAX_BYTES: usize = 32 << 10;
/// Time limit for one diff. After it the rest of a file counts as replaced.
const DIFF_PATIENCE: Duration = Duration::from_millis(50);
/// Time limit for reading and comparing all files. One diff may be under way then.
const DIFFS_PATIENCE: Duration = Duration::from_millis(100);
/// Lines of a file that is compared: the time of a diff grows with the product of lines and changes.
const LINES_MAX: usize = 2_000;

/// A time, since the epoch, that no file's timestamp of later has not reached. From kernel 6.13 on,
/// earlier changes have an earlier timestamp. Before, those of the same tick of the clock have this one.
///
/// Since 6.13 a file that is changed after its times were asked for gets a timestamp of full
/// resolution, and no later timestamp of any file is below it (Documentation/filesystems/multigrain-ts.rst).
#[must_use]
pub fn timestamp() -> Duration {
    changed_file().unwrap_or_else(|_| {
        let now = clock_gettime(ClockId::CLOCK_REALTIME_COARSE);
        now.map_or(Duration::ZERO, Duration::from)
    })
}

/// The timestamp of a nameless file that changes now.
fn changed_file() -> io::Result<Duration> {
    let flags = OFlag::O_TMPFILE | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let file = open(&std::env::temp_dir(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
    fstat(&file)?;
    nix::unistd::write(&file, b"x")?;
    let stat = fstat(&file)?;
    let part = |n: i64| u64::try_from(n).unwrap_or(0);
    let nanos = Duration::from_nanos(part(stat.st_ctime_nsec));
    Ok(Duration::from_secs(part(stat.st_ctime)) + nanos)
}

/// What applying a layer would do, at most `at_most` changes of it listed.
#[must_use]
pub fn planned(plan: &Planned, at_most: usize) -> FileChanges {
    listed(&plan.changes(at_most), false)
}

/// The changes in a layer found by `until`; `None` if there are none.
#[must_use]
pub fn list(layer: &Layer, until: Instant) -> Option<FileChanges> {
    let changes = layer.changes(SHOWN, None, until);
    non_empty(listed(&changes.late, changes.incomplete))
}

/// What a run changed, apart from what boot changed.
///
/// `boot` holds the changes of a template's boot, whose layer is below the run's. In a run that booted
/// by itself both are in one layer, and `since` is when its boot was over.
pub(crate) fn of_run(
    boot: Option<&FileChanges>,
    layer: Option<&Layer>,
    since: Option<Duration>,
    until: Instant,
) -> Option<FileChanges> {
    let changes = layer
        .map(|layer| layer.changes(SHOWN, since, until))
        .unwrap_or_default();
    let run = listed(&changes.late, changes.incomplete);
    let own_boot = listed(&changes.early, false);
    let boot = standing(boot.unwrap_or(&own_boot), &run, &changes);
    let count = boot.each().count() as u64 + boot.more.unwrap_or(0);
    non_empty(FileChanges {
        incomplete: run.incomplete || boot.incomplete,
        boot: (count > 0).then_some(count),
        boot_changes: (count > 0).then_some(BootChanges {
            created: boot.created,
            modified: boot.modified,
            deleted: boot.deleted,
        }),
        ..run
    })
}

/// The changes of boot that the run has left alone.
fn standing(boot: &FileChanges, run: &FileChanges, changes: &Changes) -> FileChanges {
    let name = |change: &FileChange| PathBuf::from(change.path.trim_end_matches('/'));
    let stands = |change: &&FileChange| {
        let path = name(change);
        let is_of_run = run.each().any(|own| name(own) == path);
        !is_of_run && !changes.undone.iter().any(|gone| path.starts_with(gone))
    };
    let list = |boot: &[FileChange]| boot.iter().filter(stands).cloned().collect();
    FileChanges {
        created: list(&boot.created),
        modified: list(&boot.modified),
        deleted: list(&boot.deleted),
        ..boot.clone()
    }
}

fn listed(changes: &Listed, incomplete: bool) -> FileChanges {
    let mut shown = FileChanges {
        more: (changes.more > 0).then_some(changes.more),
        incomplete,
        ..FileChanges::default()
    };
    for change in &changes.first {
        let list = match change.kind {
            ChangeKind::Created => &mut shown.created,
            ChangeKind::Modified => &mut shown.modified,
            ChangeKind::Deleted => &mut shown.deleted,
        };
        list.push(display(change));
    }
    shown
}

fn non_empty(changes: FileChanges) -> Option<FileChanges> {
    (changes != FileChanges::default()).then_some(changes)
}

/// What is said of a file whose name is not UTF-8: the text in its place may be another file's name.
const NO_TEXT: &str = "name is not UTF-8";

fn display(change: &Change) -> FileChange {
    let mut path = shown_path(&change.path);
    if change.is_directory() {
        path.push('/');
    }
    let target = match &change.what {
        What::Link(target) => Some(shown_path(target)),
        What::File | What::Directory | What::Pipe | What::Other => None,
    };
    let mode = change.mode;
    let notes = change.notes.iter().map(ToString::to_string);
    let has_other_bytes = change.path.to_str().is_none();
    FileChange {
        path,
        size: change.size,
        file_type: match change.what {
            What::Link(_) => Some(FileType::Link),
            What::Directory => Some(FileType::Directory),
            What::Pipe => Some(FileType::Pipe),
            What::File | What::Other => None,
        },
        target,
        mode: mode.map(|(before, now)| format!("{before:03o} → {now:03o}")),
        notes: notes
            .chain(has_other_bytes.then(|| NO_TEXT.to_owned()))
            .collect(),
        diff: None,
    }
}

/// Adds unified diffs to the run's own changes of text files, modified ones first, as far as they fit.
pub fn add_diffs(changes: &mut FileChanges, layer: &Layer) {
    let until = Instant::now() + DIFFS_PATIENCE;
    let FileChanges {
        created,
        modified,
        deleted,
        ..
    } = changes;
    let mut each: Vec<&mut FileChange> = modified
        .iter_mut()
        .chain(created)
        .chain(deleted)
        .filter(|change| !change.path.ends_with('/'))
        // It would be another file's diff.
        .filter(|change| !change.notes.iter().any(|note| note == NO_TEXT))
        .collect();
    let paths = each
        .iter()
        .map(|change| PathBuf::from(&change.path))
        .collect();
    let mut left = DIFFS_MAX_BYTES;
    let mut left_out = 0;
    for (change, contents) in each
        .iter_mut()
        .zip(layer.contents(paths, TEXT_MAX_BYTES, until))
    {
        if left == 0 || Instant::now() >= until {
            left_out += 1;
            continue;
        }
        let Some(diff) = contents.and_then(|contents| unified(&change.path, &contents)) else {
            continue;
        };
        match left.checked_sub(diff.len()) {
            Some(rest) => {
                left = rest;
                change.diff = Some(diff);
            }
            None => {
                left = 0;
                left_out += 1;
            }
        }
    }
    changes.diffs_left_out = (left_out > 0).then_some(left_out);
}

/// A unified diff of two texts; `None` if one of them is not text, or nothing differs.
fn unified(path: &str, contents: &Contents) -> Option<String> {
    let Contents { before, after } = contents;
    let (old, new) = (text(before.as_deref())?, text(after.as_deref())?);
    let has_many_lines = |text: &str| text.lines().nth(LINES_MAX).is_some();
    if old == new || has_many_lines(old) || has_many_lines(new) {
        return None;
    }
    // What is known of a path in a layer is hostile: it must not begin a line of its own.
    let path = path.replace(|c: char| c.is_control(), "?");
    let side = |prefix: &str, content: &Option<Vec<u8>>| match content {
        Some(_) => format!("{prefix}/{path}"),
        None => "/dev/null".to_owned(),
    };
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(DIFF_PATIENCE)
        .diff_lines(old, new);
    let mut unified = diff.unified_diff();
    Some(
        unified
            .context_radius(3)
            .header(&side("a", before), &side("b", after))
            .to_string(),
    )
}

/// A file's text; a file that does not exist has none.
fn text(content: Option<&[u8]>) -> Option<&str> {
    let content = content.unwrap_or_default();
    std::str::from_utf8(content)
        .ok()
        .filter(|text| !text.contains('\0'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    fn contents(before: Option<&str>, after: Option<&str>) -> Contents {
        let bytes = |text: Option<&str>| text.map(|text| text.as_bytes().to_vec());
        Contents {
            before: bytes(before),
            after: bytes(after),
        }
    }

    #[test]
    fn names_that_differ_in_a_byte_look_different() {
        let change = |name: &[u8]| Change {
            path: PathBuf::from(OsStr::from_bytes(name)),
            kind: ChangeKind::Created,
            what: What::Link(PathBuf::from(OsStr::from_bytes(name))),
            size: 0,
            mode: None,
            notes: Vec::new(),
        };
        let shown = |name| {
            let shown = display(&change(name));
            (shown.path, shown.target.unwrap(), shown.notes)
        };
        let (fe, ff) = ("a\\xfeb".to_owned(), "a\\xffb".to_owned());
        let note = || vec![NO_TEXT.to_owned()];
        assert_eq!(shown(b"a\xfeb"), (fe.clone(), fe, note()));
        assert_eq!(shown(b"a\xffb"), (ff.clone(), ff.clone(), note()));
        assert_eq!(shown(b"a\\xffb"), (ff.clone(), ff, Vec::new()));
    }

    #[test]
    fn a_diff_is_what_patch_takes() {
        let changed = contents(Some("a\nb\nc\n"), Some("a\nB\nc\n"));
        assert_eq!(
            unified("src/x.php", &changed).unwrap(),
            "--- a/src/x.php\n+++ b/src/x.php\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
        );
        let created = contents(None, Some("new"));
        assert_eq!(
            unified("x", &created).unwrap(),
            "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n"
        );
        let deleted = contents(Some("old\n"), None);
        assert_eq!(
            unified("x", &deleted).unwrap(),
            "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
        );
    }

    #[test]
    fn what_is_no_text_has_no_diff() {
        assert_eq!(unified("x", &contents(Some("a"), Some("a"))), None);
        assert_eq!(unified("x", &contents(Some("a\0"), Some("b"))), None);
        let binary = Contents {
            before: None,
            after: Some(vec![0xff, 0xfe]),
        };
        assert_eq!(unified("x", &binary), None);
        let forged = unified("x\n+++ b/y", &contents(None, Some("1\n"))).unwrap();
        assert!(
            forged.starts_with("--- /dev/null\n+++ b/x?+++ b/y\n@@"),
            "{forged}"
        );
    }

    #[test]
    fn a_diff_that_takes_long_is_cut_short() {
        let lines = |of: usize| {
            (0..LINES_MAX)
                .map(|n| format!("{}\n", n * of % 7))
                .collect::<String>()
        };
        let began = Instant::now();
        assert!(unified("x", &contents(Some(&lines(3)), Some(&lines(5)))).is_some());
        assert!(
            began.elapsed() < DIFF_PATIENCE * 20,
            "{:?}",
            began.elapsed()
        );
    }
}
