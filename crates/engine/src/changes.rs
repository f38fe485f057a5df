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
