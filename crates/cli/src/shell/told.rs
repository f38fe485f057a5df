//! What the shell has to say, in words.

use std::path::{Path, PathBuf};

use altair_engine::shell::Standing;
use altair_engine::{Blocked, FileChanges};

use crate::escape;
use crate::human::{self, Theme};

/// The most names in one sentence. The rest are only counted.
const NAMED: usize = 20;
/// The most lines of history that are shown.
const LINES: usize = 50;

/// What became of a session, unless it goes on.
pub fn standing(standing: &Standing) -> Option<String> {
    match standing {
        Standing::Kept | Standing::Over { status: _ } => None,
        Standing::Restarted { lost, why } if lost.is_empty() => {
            Some(format!("the session began anew: {why}; nothing was lost"))
        }
        Standing::Restarted { lost, why } => {
            let variables = lost.iter().map(|name| format!("${name}"));
            let are = if lost.len() == 1 { "is" } else { "are" };
            Some(format!(
                "the session began anew: {why}; {} {are} lost",
                some_of(variables)
            ))
        }
    }
}

/// Files that have changed since they were loaded; those of the project by their path in it.
pub fn changed_files(files: &[PathBuf], root: &Path) -> Option<String> {
    if files.is_empty() {
        return None;
    }
    let paths = files
        .iter()
        .map(|path| path.strip_prefix(root).unwrap_or(path));
    let named = some_of(paths.map(|path| path.display().to_string()));
    Some(format!(
        "changed since the session has loaded it: {named}; :restart boots anew"
    ))
}

/// What was written so far.
pub fn changes(changes: Option<&FileChanges>, writes: bool, theme: Theme) -> String {
    match changes {
        None if writes => "  with --writes, what is written is real and not listed\n".into(),
        None => "  what was written is not known\n".into(),
        Some(changes) if human::count_of(changes) == 0 && !changes.incomplete => {
            "  nothing was written\n".into()
        }
        Some(changes) => human::changes(changes, "written so far, and not kept:", theme),
    }
}

/// What was refused so far.
pub fn blocked(blocked: &[Blocked], theme: Theme) -> String {
    if blocked.is_empty() {
        return "  nothing was refused\n".into();
    }
    human::refusals(blocked, theme)
}

/// The last lines, the newest at the end.
pub fn history(lines: &[&str]) -> String {
    if lines.is_empty() {
        return "  nothing was typed yet\n".into();
    }
    let shown = lines.get(lines.len().saturating_sub(LINES)..);
    let mut out = String::new();
    for entry in shown.unwrap_or_default() {
        for line in entry.lines() {
            out.push_str(&format!("  {}\n", escape::block(line)));
        }
    }
    out
}

/// Names in one sentence.
fn some_of(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let named: Vec<String> = names.take(NAMED).collect();
    match more {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}
