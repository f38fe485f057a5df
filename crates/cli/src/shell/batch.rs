//! Snippets from standard input, one answer a snippet: for programs, and for a file of lines.

use std::io::BufRead;

use altair_engine::shell::{Judgement, Standing};

use super::commands::unknown;
use super::entry::Entry;
use super::lines::{CtrlC, Lines};
use super::{Setting, Shared};
use crate::exit::Exit;
use crate::failure::{Failure, reason, say};
use crate::output::Reader;

/// Where answers go.
type Print<'a> = &'a mut dyn FnMut(&[u8]) -> Result<Reader, Failure>;

/// Runs what `input` holds: lines are added until PHP's parser takes them for a whole snippet. What the session has to
/// say of itself goes to standard error. The exit code is that of the last snippet.
///
/// # Errors
///
/// If the session cannot go on, or if input or output fails.
pub fn run(
    session: &Shared,
    setting: &Setting,
    mut input: impl BufRead,
    print: Print<'_>,
) -> Result<Exit, Failure> {
    let mut lines = Lines::of(session, setting, CtrlC::EndsAll);
    if let Some(why) = lines.boot()? {
        print(why.as_bytes())?;
        return Ok(Exit::NotClean);
    }
    let mut exit = Exit::Clean;
    let mut text = Vec::new();
    loop {
        let read = input.read_until(b'\n', &mut text);
        let read = read.map_err(|error| {
            Failure::new(format!("cannot read standard input: {}", reason(&error)))
        })?;
        let is_last = read == 0;
        // All of it is looked at: a line within a snippet is no command.
        match Entry::of(&text) {
            Entry::Blank if is_last => return Ok(exit),
            Entry::Blank => text.clear(),
            Entry::Leave => return Ok(exit),
            Entry::Command(command) => {
                text.clear();
                let shown = lines.command(command, None)?;
                if print(shown.as_bytes())? == Reader::Gone {
                    return Ok(exit);
                }
            }
            Entry::Unknown(name) => {
                return Err(Failure::new(unknown(&name)));
            }
            _ if !is_last && judged(session, &text) == Judgement::Unfinished => {}
            _ => {
                if let Some(changed) = lines.changed_files() {
                    say(&changed);
                }
                let code = std::mem::take(&mut text);
                let answer = lines.run(&code)?;
                let shown = lines.show(&answer);
                exit = match answer.ok() {
                    true => Exit::Clean,
                    false => Exit::NotClean,
                };
                let reader = print(shown.text.as_bytes())?;
                shown.notices.iter().for_each(|notice| say(notice));
                let is_over = matches!(answer.standing, Standing::Over { status: _ });
                if is_over || reader == Reader::Gone {
                    return Ok(exit);
                }
            }
        }
    }
}

/// What the session cannot judge is run, which says why.
fn judged(session: &Shared, text: &[u8]) -> Judgement {
    let judged = session.borrow_mut().judge(text);
    judged.unwrap_or(Judgement::Whole)
}
