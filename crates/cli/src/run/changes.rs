//! What a command changed in its layer, and whether that becomes real.

use std::io::{self, BufRead, IsTerminal, Write};

use altair_command::{Outcome, PendingLayer};
use altair_engine::FileChanges;

use super::screen;
use crate::args::Apply;
use crate::failure::Failure;
use crate::human::{self, Theme};

/// How many changes are named where nobody can ask for the rest.
const NAMED: usize = 100;
/// Lines of the terminal that are needed for more than the list.
const OTHER_LINES: usize = 6;

/// Shows the changes, asks if there is somebody to ask, and applies or discards them. Returns
/// whether they were applied.
///
/// # Errors
/// Why they could not be applied. What was there is there again then.
pub fn settle(
    layer: PendingLayer,
    outcome: &Outcome,
    apply: Apply,
    shows: bool,
    theme: Theme,
) -> Result<bool, Failure> {
    let Some(changes) = &outcome.changes else {
        return Ok(false);
    };
    let count = human::count_of(changes);
    let mut stderr = io::stderr();
    if count == 0 && layer.refusal().is_none() {
        if shows {
            let _ = writeln!(stderr, "altair: {}", theme.dim("no changes"));
        }
        return Ok(false);
    }
    let what = if count == 1 { "change" } else { "changes" };
    let succeeded = outcome.exit_code == 0;
    let can_ask = shows && io::stdin().is_terminal() && stderr.is_terminal();
    let asks = can_ask && apply == Apply::Ask && layer.refusal().is_none();
    let list = List {
        title: format!("{count} {what}"),
        each: human::each_change(changes, theme),
        changes,
        theme,
    };
    let room = match asks {
        true => screen::rows().saturating_sub(OTHER_LINES).max(1),
        false => usize::MAX,
    };
    let is_whole = match shows {
        true => list.show(room, if asks { usize::MAX } else { NAMED }),
        false => true,
    };
    let wanted = match apply {
        Apply::No => false,
        Apply::Yes => succeeded,
        Apply::Ask => asks && ask(count, succeeded, is_whole, &list)?,
    };
    if wanted {
        layer
            .apply()
            .map_err(|error| Failure::new(error.to_string()))?;
    }
    if shows {
        let text = match (wanted, apply) {
            (true, _) => format!("applied {count} {what}"),
            (false, Apply::Yes) => {
                format!("not applied: the command ended with {}", outcome.exit_code)
            }
            (false, Apply::Ask) if layer.refusal().is_some() => {
                let why = layer.refusal().unwrap_or_default();
                format!("not applied: {why}")
            }
            (false, Apply::Ask) if !can_ask => {
                format!(
                    "not applied: nobody can be asked here; --apply=yes makes {} real",
                    if count == 1 { "it" } else { "them" }
                )
            }
            (false, _) => "not applied".to_owned(),
        };
        let _ = writeln!(stderr, "altair: {}", theme.notice(&text));
    }
    Ok(wanted)
}

/// The changes as they are shown.
struct List<'a> {
    title: String,
    each: Vec<String>,
    changes: &'a FileChanges,
    theme: Theme,
}

impl List<'_> {
    /// Shows the first changes that fit into some lines. Returns whether that is all.
    fn show(&self, lines: usize, at_most: usize) -> bool {
        let mut used = 0;
        let fitting = self.each.iter().take_while(|change| {
            used += change.lines().count();
            used <= lines
        });
        // One is shown in any case.
        let fitting = fitting.count().max(1).min(at_most);
        let mut out = format!("  {}\n", self.theme.notice(&self.title));
        out.extend(self.each.iter().take(fitting).map(String::as_str));
        let listed = u64::try_from(fitting.min(self.each.len())).unwrap_or(u64::MAX);
        out.push_str(&human::unlisted_changes(self.changes, listed, self.theme));
        let _ = io::stderr().write_all(out.as_bytes());
        fitting >= self.each.len()
    }

    /// Shows all changes, a screen at a time.
    fn page(&self) -> Result<(), Failure> {
        let lines: Vec<&str> = self.each.iter().flat_map(|change| change.lines()).collect();
        let height = screen::rows().saturating_sub(2).max(1);
        let mut shown = 0;
        for page in lines.chunks(height) {
            shown += page.len();
            eprintln!("{}", page.join("\n"));
            if shown < lines.len() {
                eprint!(
                    "{shown} of {} lines; Enter for more, q to stop: ",
                    lines.len()
                );
                if answer()?.is_none_or(|line| line.trim() == "q") {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Asks the person at the terminal.
fn ask(count: u64, succeeded: bool, is_whole: bool, list: &List<'_>) -> Result<bool, Failure> {
    let failed = if succeeded {
        ""
    } else {
        "The command failed. "
    };
    let them = if count == 1 {
        "this change"
    } else {
        "these changes"
    };
    let choices = if is_whole {
        "[y/N]"
    } else {
        "[y/N, l lists all]"
    };
    // Whatever was typed while the command ran was meant for that, or came from the terminal itself.
    screen::forget_typed();
    loop {
        eprint!("{failed}Apply {them}? {choices} ");
        let Some(line) = answer()? else {
            eprintln!();
            return Ok(false);
        };
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "" | "n" | "no" => return Ok(false),
            "l" | "list" => list.page()?,
            _ => {}
        }
    }
}

/// A line that is typed; `None` at the end of input.
fn answer() -> Result<Option<String>, Failure> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    match read {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(line)),
        // No text is no answer.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some("?".into())),
        Err(error) => Err(Failure::new(format!(
            "the answer cannot be read: {}",
            crate::failure::reason(&error)
        ))),
    }
}
