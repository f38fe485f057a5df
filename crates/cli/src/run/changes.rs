//! What a command changed in its layer, and whether that becomes real.

use std::io::{self, BufRead, IsTerminal, Write};

use altair_command::{Outcome, PendingLayer};

use crate::args::Apply;
use crate::failure::Failure;
use crate::human::{self, Theme};

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
    if count == 0 {
        if shows {
            let _ = writeln!(stderr, "altair: {}", theme.dim("no changes"));
        }
        return Ok(false);
    }
    let what = if count == 1 { "change" } else { "changes" };
    if shows {
        let text = human::changes(changes, &format!("{count} {what}"), theme);
        let _ = stderr.write_all(text.as_bytes());
    }
    let succeeded = outcome.exit_code == 0;
    let can_ask = shows && io::stdin().is_terminal() && stderr.is_terminal();
    let wanted = match apply {
        Apply::No => false,
        Apply::Yes => succeeded,
        Apply::Ask => can_ask && ask(count, succeeded)?,
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

/// Asks the person at the terminal.
fn ask(count: u64, succeeded: bool) -> Result<bool, Failure> {
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
    let mut line = String::new();
    loop {
        eprint!("{failed}Apply {them}? [y/N] ");
        line.clear();
        let read = io::stdin().lock().read_line(&mut line);
        let read = read.map_err(|error| {
            Failure::new(format!(
                "the answer cannot be read: {}",
                crate::failure::reason(&error)
            ))
        })?;
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => return Ok(true),
            "" | "n" | "no" => {
                if read == 0 {
                    eprintln!();
                }
                return Ok(false);
            }
            _ => {}
        }
    }
}
