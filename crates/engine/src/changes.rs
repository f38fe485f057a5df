//! `diagnostics.file_changes`: what a run did to its throwaway layer, as it is shown.

use altair_sandbox::{Change, ChangeKind, Changes, Layer};

use crate::result::{FileChange, FileChanges};

/// Changes that are shown; of more, only the number.
pub const SHOWN: usize = 100;

/// The changes in a layer; `None` where there are none.
pub(crate) fn list(layer: &Layer) -> Option<FileChanges> {
    let changes = layer.changes(SHOWN);
    if changes == Changes::default() {
        return None;
    }
    let mut shown = FileChanges {
        more: (changes.more > 0).then_some(changes.more),
        incomplete: changes.incomplete,
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
    Some(shown)
}

/// What boot has changed and what a run has changed on top of it, as if the run had done both.
pub(crate) fn on_top(boot: Option<&FileChanges>, run: Option<FileChanges>) -> Option<FileChanges> {
    let Some(boot) = boot else {
        return run;
    };
    let run = run.unwrap_or_default();
    let is_in = |list: &[FileChange], path: &str| list.iter().any(|change| change.path == path);
    let is_of_run = |path: &str| {
        [&run.created, &run.modified, &run.deleted]
            .iter()
            .any(|list| is_in(list, path))
    };
    let with = |boot: &[FileChange], own: &[FileChange]| {
        let mut all: Vec<FileChange> = boot
            .iter()
            .filter(|change| !is_of_run(&change.path))
            .chain(own)
            .cloned()
            .collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    };
    // What boot has made and the run removed was never there.
    let deleted: Vec<FileChange> = run
        .deleted
        .iter()
        .filter(|change| !is_in(&boot.created, &change.path))
        .cloned()
        .collect();
    Some(FileChanges {
        created: with(&boot.created, &run.created),
        modified: with(&boot.modified, &run.modified),
        deleted: with(&boot.deleted, &deleted),
        more: match boot.more.unwrap_or(0) + run.more.unwrap_or(0) {
            0 => None,
            more => Some(more),
        },
        incomplete: boot.incomplete || run.incomplete,
    })
}

fn display(change: &Change) -> FileChange {
    let mut path = change.path.to_string_lossy().into_owned();
    if change.directory {
        path.push('/');
    }
    FileChange {
        path,
        size: change.size,
    }
}
