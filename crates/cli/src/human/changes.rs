//! The files that would have changed.

use altair_engine::{FileChange, FileChanges, FileType};

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

/// Appends the first changes below a title.
pub fn list(out: &mut String, changes: &FileChanges, title: &str, theme: Theme) {
    line(out, 1, &theme.notice(title));
    let each = each(changes, theme, usize::MAX);
    for change in each.iter().take(NAMED) {
        out.push_str(change);
    }
    let listed = u64::try_from(each.len().min(NAMED)).unwrap_or(u64::MAX);
    out.push_str(&unlisted(changes, listed, theme));
}

/// Each change, in a line and those of its diff: first what was there before, which is what can be
/// lost. Names and notes of more than `name_max` characters are cut.
pub fn each(changes: &FileChanges, theme: Theme, name_max: usize) -> Vec<String> {
    let kinds = [
        ("modified", &changes.modified),
        ("deleted ", &changes.deleted),
        ("created ", &changes.created),
    ];
    let each = kinds
        .iter()
        .flat_map(|(kind, list)| list.iter().map(move |change| (kind, change)));
    each.map(|(kind, change)| {
        let mut out = String::new();
        line(
            &mut out,
            2,
            &format!("{} {}", theme.dim(kind), described(change, name_max)),
        );
        if let Some(text) = &change.diff {
            diff(&mut out, text, theme);
        }
        out
    })
    .collect()
}

/// What is missing in a list with the first changes.
pub fn unlisted(changes: &FileChanges, listed: u64, theme: Theme) -> String {
    let mut out = String::new();
    let more = count_of(changes).saturating_sub(listed);
    if more > 0 {
        line(&mut out, 2, &theme.dim(&format!("… and {more} more")));
    }
    if let Some(left_out) = changes.diffs_left_out {
        let text = format!("the diffs of {left_out} more files do not fit");
        line(&mut out, 2, &theme.dim(&text));
    }
    if changes.incomplete {
        let text = "… and maybe more: not all could be looked at";
        line(&mut out, 2, &theme.dim(text));
    }
    out
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

/// The path, what it leads to, and in brackets what there is to say of it.
fn described(change: &FileChange, name_max: usize) -> String {
    let shown = |text: &str| cut(escape::name(text), name_max);
    let mut out = shown(&change.path);
    let mut said = Vec::new();
    match change.file_type {
        // The sizes of these depend on the file system, or say nothing.
        Some(FileType::Directory) => {}
        Some(FileType::Link) => {
            let target = change.target.as_deref().unwrap_or_default();
            out.push_str(&format!(" → {}", shown(target)));
        }
        Some(FileType::Pipe) => said.push("pipe".to_owned()),
        None => {
            let unit = if change.size == 1 { "byte" } else { "bytes" };
            said.push(format!("{} {unit}", change.size));
        }
    }
    if let Some(mode) = &change.mode {
        said.push(format!("mode {mode}"));
    }
    said.extend(change.notes.iter().map(|note| shown(note)));
    match said.is_empty() {
        true => out,
        false => format!("{out} ({})", said.join("; ")),
    }
}

/// The beginning and the end of a text that is longer than `most` characters.
fn cut(text: String, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text;
    }
    let kept = most.saturating_sub(1);
    let end = kept / 2;
    let first: String = text.chars().take(kept - end).collect();
    let last: String = text.chars().skip(count - end).collect();
    format!("{first}…{last}")
}
