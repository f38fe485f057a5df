//! What a command changed in its layer, and whether that becomes real.

use std::io::{self, BufRead, IsTerminal, Write};

use altair_command::{Outcome, PendingLayer};
use altair_engine::FileChanges;

use super::{rows, screen};
use crate::args::Apply;
use crate::failure::Failure;
use crate::human::{self, Theme};

/// How many changes are named where nobody can ask for the rest.
const NAMED: usize = 100;
/// Columns of a line of the list that are needed for more than a name.
const OTHER_COLUMNS: usize = 14;
/// The least of a name that is shown.
const NAME_MIN: usize = 20;

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
        each: human::each_change(changes, theme, usize::MAX),
        changes,
        theme,
    };
    if shows && !asks {
        list.show();
    }
    let wanted = match apply {
        Apply::No => false,
        Apply::Yes => succeeded,
        Apply::Ask => asks && Question { count, succeeded }.ask(&list)?,
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
    /// Each in full.
    each: Vec<String>,
    changes: &'a FileChanges,
    theme: Theme,
}

impl List<'_> {
    fn titled(&self) -> String {
        format!("  {}\n", self.theme.notice(&self.title))
    }

    fn unlisted(&self, listed: usize) -> String {
        let listed = u64::try_from(listed).unwrap_or(u64::MAX);
        human::unlisted_changes(self.changes, listed, self.theme)
    }

    /// Shows the first changes where nobody is asked.
    fn show(&self) {
        let listed = self.each.len().min(NAMED);
        let each = self.each.get(..listed).unwrap_or_default();
        let out = format!(
            "{}{}{}",
            self.titled(),
            each.concat(),
            self.unlisted(listed)
        );
        let _ = io::stderr().write_all(out.as_bytes());
    }

    /// Shows as much as fits on the screen above the question, with long names cut. Returns whether
    /// that is all.
    fn show_above(&self, question: &Question) -> bool {
        let (height, columns) = screen::size();
        let longest = [
            self.titled(),
            self.unlisted(0),
            question.text(false),
            // Where the answer ends.
            "\n".to_owned(),
        ];
        let taken: usize = longest
            .iter()
            .map(|text| rows::of(text, columns).len())
            .sum();
        let room = height.saturating_sub(taken).max(1);
        let name_max = columns.saturating_sub(OTHER_COLUMNS).max(NAME_MIN);
        let each = human::each_change(self.changes, self.theme, name_max);

        let mut shown = Vec::new();
        let mut listed = 0;
        for change in &each {
            let rows = rows::of(change, columns);
            if shown.len() + rows.len() > room {
                break;
            }
            shown.extend(rows);
            listed += 1;
        }
        // Something of the first is shown in any case.
        let first = each.first().filter(|_| listed == 0);
        shown.extend(
            first
                .into_iter()
                .flat_map(|first| rows::of(first, columns))
                .take(room),
        );
        let listed = listed.max(usize::from(first.is_some()));
        let is_whole = first.is_none() && listed == each.len() && each == self.each;
        let shown: String = shown.iter().flat_map(|row| [row, "\n"]).collect();
        let out = format!("{}{shown}{}", self.titled(), self.unlisted(listed));
        let _ = io::stderr().write_all(out.as_bytes());
        is_whole
    }

    /// Shows all changes in full, a screen at a time.
    fn page(&self, question: &Question) -> Result<(), Failure> {
        let (height, columns) = screen::size();
        let all = format!("{}{}", self.each.concat(), self.unlisted(self.each.len()));
        let all = rows::of(&all, columns);
        let more = |shown| {
            format!(
                "{shown} of {} lines; Enter for more, q to stop: ",
                all.len()
            )
        };
        let below = [more(all.len()), question.text(false)];
        let below = below.iter().map(|text| rows::of(text, columns).len()).max();
        // And the end of the answer.
        let height = height.saturating_sub(below.unwrap_or(1) + 1).max(1);
        let mut shown = 0;
        for page in all.chunks(height) {
            shown += page.len();
            eprintln!("{}", page.join("\n"));
            if shown < all.len() {
                eprint!("{}", more(shown));
                if answer()?.is_none_or(|line| line.trim() == "q") {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// What the person at the terminal is asked.
struct Question {
    count: u64,
    succeeded: bool,
}

impl Question {
    fn text(&self, is_whole: bool) -> String {
        let failed = if self.succeeded {
            ""
        } else {
            "The command failed. "
        };
        let them = if self.count == 1 {
            "this change"
        } else {
            "these changes"
        };
        let choices = if is_whole {
            "[y/N]"
        } else {
            "[y/N, l lists all]"
        };
        format!("{failed}Apply {them}? {choices} ")
    }

    /// Shows the list and asks.
    fn ask(&self, list: &List<'_>) -> Result<bool, Failure> {
        let is_whole = list.show_above(self);
        // Whatever was typed while the command ran was meant for that, or came from the terminal
        // itself.
        screen::forget_typed();
        loop {
            eprint!("{}", self.text(is_whole));
            let Some(line) = answer()? else {
                eprintln!();
                return Ok(false);
            };
            match line.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "" | "n" | "no" => return Ok(false),
                "l" | "list" => list.page(self)?,
                _ => {}
            }
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
