//! `diagnostics.file_changes`: what a run did to its throwaway layer.

use std::path::Path;
use std::time::Instant;

use altair_sandbox::{Change, ChangeKind, Changes, Layer};

use crate::result::{FileChange, FileChanges};

/// Changes to show; the others are only counted.
pub const SHOWN: usize = 100;

/// The changes in a layer, as far as they are found by `until`; `None` if there are none.
pub(crate) fn list(layer: &Layer, until: Instant) -> Option<FileChanges> {
    shown(&layer.changes(SHOWN, until))
}

fn shown(changes: &Changes) -> Option<FileChanges> {
    if changes.first.is_empty() && changes.more == 0 && !changes.incomplete {
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

/// Combines the changes made by boot with a run's changes in a layer on top, as if the run had made
/// both.
pub(crate) fn on_top(
    boot: Option<&FileChanges>,
    layer: Option<&Layer>,
    until: Instant,
) -> Option<FileChanges> {
    let changes = layer
        .map(|layer| layer.changes(SHOWN, until))
        .unwrap_or_default();
    let run = shown(&changes);
    let Some(boot) = boot else {
        return run;
    };
    let run = run.unwrap_or_default();
    let stands = |change: &&FileChange| {
        let path = change.path.trim_end_matches('/');
        let is_of_run = [&run.created, &run.modified, &run.deleted]
            .iter()
            .any(|list| {
                list.iter()
                    .any(|own| own.path.trim_end_matches('/') == path)
            });
        !is_of_run
            && !changes
                .undone
                .iter()
                .any(|gone| Path::new(path).starts_with(gone))
    };
    let with = |boot: &[FileChange], own: &[FileChange]| {
        let mut all: Vec<FileChange> = boot.iter().filter(stands).chain(own).cloned().collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        all
    };
    let all = FileChanges {
        created: with(&boot.created, &run.created),
        modified: with(&boot.modified, &run.modified),
        deleted: with(&boot.deleted, &run.deleted),
        more: match boot.more.unwrap_or(0) + run.more.unwrap_or(0) {
            0 => None,
            more => Some(more),
        },
        incomplete: boot.incomplete || run.incomplete,
    };
    (all != FileChanges::default()).then_some(all)
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
