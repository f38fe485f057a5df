//! A person at a terminal.

use altair_engine::shell::Standing;

use super::commands::unknown;
use super::editor::{Editor, Typed};
use super::entry::Entry;
use super::history::HistoryFile;
use super::lines::{self, CtrlC, Lines, sentence};
use super::{Setting, Shared};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Reader};

/// Talks until the person leaves, or a line calls `exit`.
///
/// # Errors
///
/// If the session could not be started, or if the terminal cannot be used.
pub fn run(session: &Shared, setting: &Setting) -> Result<Exit, Failure> {
    // From here on Ctrl-C ends no more than a line. The editor sees to it itself, but not at a terminal that it cannot
    // control (`TERM=dumb`), where the kernel takes back what was typed.
    let _caught = lines::caught()?;
    let mut editor = Editor::new(session, setting.theme)?;
    let mut lines = Lines::of(session, setting, CtrlC::EndsLine);
    if let Some(why) = lines.boot()? {
        output::print(why.as_bytes())?;
        return Ok(Exit::NotClean);
    }
    output::print(greeting(setting).as_bytes())?;
    let mut history = Some(HistoryFile::of_user());
    match history.as_ref().map(HistoryFile::load) {
        Some(Ok(entries)) => entries.iter().for_each(|entry| {
            editor.remember(entry);
        }),
        Some(Err(why)) => give_up(&mut history, &why, setting)?,
        None => {}
    }
    loop {
        if let Some(changed) = lines.changed_files() {
            output::print(sentence(&changed, setting).as_bytes())?;
        }
        let typed = editor.read()?;
        // From Enter on it is meant for the line, also if it comes before the line has begun.
        lines::forget_ctrl_c();
        let typed = match typed {
            Typed::Nothing => continue,
            Typed::End => return Ok(Exit::Clean),
            Typed::Entry(typed) => typed,
        };
        let entry = Entry::of(typed.as_bytes());
        if entry != Entry::Blank
            && editor.remember(&typed)
            && let Some(Err(why)) = history.as_ref().map(|file| file.append(&typed))
        {
            give_up(&mut history, &why, setting)?;
        }
        let shown = match entry {
            Entry::Blank => continue,
            Entry::Leave => return Ok(Exit::Clean),
            Entry::Unknown(name) => sentence(&unknown(&name), setting),
            Entry::Command(command) => lines
                .command(command, Some(&editor.remembered()))
                .unwrap_or_else(|failure| sentence(&failure.to_string(), setting)),
            Entry::Snippet => match lines.run(typed.as_bytes()) {
                Err(failure) => sentence(&failure.to_string(), setting),
                Ok(answer) => {
                    let shown = lines.show(&answer);
                    let notices = shown.notices.iter().map(|notice| sentence(notice, setting));
                    // The terminal has shown `^C`.
                    let begun = if answer.result.is_none() { "\n" } else { "" };
                    let text = [begun, &shown.text].concat() + &notices.collect::<String>();
                    if matches!(answer.standing, Standing::Over { status: _ }) {
                        output::print(text.as_bytes())?;
                        return Ok(match answer.ok() {
                            true => Exit::Clean,
                            false => Exit::NotClean,
                        });
                    }
                    text
                }
            },
        };
        if output::print(shown.as_bytes())? == Reader::Gone {
            return Ok(Exit::Clean);
        }
    }
}

/// What a person should know before the first line.
fn greeting(setting: &Setting) -> String {
    let writes = match setting.writes {
        true => "what it writes is real",
        false => "what it writes is not kept",
    };
    let text = format!(
        "a session in {}; {writes}; :help lists what there is",
        setting.root.display()
    );
    format!("{}\n", setting.theme.dim(&crate::escape::line(&text)))
}

/// Keeps no more lines, and says so.
fn give_up(history: &mut Option<HistoryFile>, why: &str, setting: &Setting) -> Result<(), Failure> {
    *history = None;
    let said = sentence(&format!("lines are not kept: {why}"), setting);
    output::print(said.as_bytes()).map(|_| ())
}
