//! The files that would have changed.

use altair_engine::{FileChange, FileChanges};

use super::{Theme, line};
use crate::escape;

/// The most files named. The rest are only counted.
const NAMED: usize = 20;

/// How many changes there are, those that are only counted among them.
pub fn count_of(changes: &FileChanges) -> u64 {
    let listed = u64::try_from(changes.each().count()).unwrap_or(u64::MAX);
    listed.saturating_add(changes.more.unwrap_or_default())
}

/// Appends what a run changed in its throwaway layer, if anything.
pub fn append(out: &mut String, changes: &FileChanges, theme: Theme) {
    let all = count_of(changes);
    if all == 0 {
        return of_boot(out, changes, theme);
    }
    let (what, them) = if all == 1 {
        ("change", "it")
    } else {
        ("changes", "them")
    };
    let title = format!("not kept: {all} {what} to the project; --writes keeps {them}");
    list(out, changes, &title, theme);
    of_boot(out, changes, theme);
}

/// Appends the changes below a title.
pub fn list(out: &mut String, changes: &FileChanges, title: &str, theme: Theme) {
    line(out, 1, &theme.notice(title));
    let kinds = [
        ("created ", &changes.created),
        ("modified", &changes.modified),
        ("deleted ", &changes.deleted),
    ];
    let listed = changes.each().count();
    let all = count_of(changes);
    let each = kinds
        .iter()
        .flat_map(|(kind, list)| list.iter().map(move |change| (kind, change)));
    for (kind, change) in each.take(NAMED) {
        line(
            out,
            2,
            &format!("{} {}", theme.dim(kind), described(change)),
        );
        if let Some(text) = &change.diff {
            diff(out, text, theme);
        }
    }
    let more = all.saturating_sub(u64::try_from(listed.min(NAMED)).unwrap_or(u64::MAX));
    if more > 0 {
        line(out, 2, &theme.dim(&format!("… and {more} more")));
    }
    if let Some(left_out) = changes.diffs_left_out {
        let text = format!("the diffs of {left_out} more files do not fit");
        line(out, 2, &theme.dim(&text));
    }
    if changes.incomplete {
        line(
            out,
            2,
            &theme.dim("… and maybe more: not all could be looked at"),
        );
    }
}

/// Appends how much boot changed, such as a framework's cache.
fn of_boot(out: &mut String, changes: &FileChanges, theme: Theme) {
    let Some(count) = changes.boot else { return };
    let what = if count == 1 { "change" } else { "changes" };
    let text = format!("not kept: {count} {what} by the boot of the application");
    line(out, 1, &theme.dim(&text));
}

/// Appends a unified diff without its header, which repeats the path.
fn diff(out: &mut String, text: &str, theme: Theme) {
    for text in text.lines().skip(2) {
        let shown = escape::line(text);
        let shown = match text.as_bytes().first() {
            Some(b'+') => theme.added(&shown),
            Some(b'-') => theme.removed(&shown),
            Some(b'@') => theme.dim(&shown),
            _ => shown,
        };
        line(out, 4, &shown);
    }
}

fn described(change: &FileChange) -> String {
    let path = escape::line(&change.path);
    // The size of a directory depends on the file system.
    if change.path.ends_with('/') {
        path
    } else {
        let unit = if change.size == 1 { "byte" } else { "bytes" };
        format!("{path} ({} {unit})", change.size)
    }
}
