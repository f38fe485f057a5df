//! `altair pool`: what the pool of this user holds, and its end. The program `altair` is the pool,
//! too.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::PathBuf;

use crate::args::{Format, PoolArgs};
use crate::escape;
use crate::exit::Exit;
use crate::failure::{Failure, say};
use crate::host::Host;
use crate::human::Theme;
use crate::{json, output};
use altair_engine::Environment;
use altair_pool::{Client, NoAnswer, Setting, State};

/// What asks the pool of this user.
pub fn client() -> Client {
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    let started_with: Environment = std::env::vars_os().collect();
    let setting = Setting::named(OsStr::new("auto"), &started_with);
    Client::new(setting, own.ok(), started_with)
}

/// Shows the pool, ends it, or is it.
///
/// # Errors
///
/// A pool that does not answer, or cannot be started.
pub fn run(args: PoolArgs, host: &Host) -> Result<Exit, Failure> {
    let PoolArgs {
        stop,
        format,
        start,
        serve,
        title: _,
    } = args;
    match (start, serve) {
        (Some(directory), _) if host.is_program => altair_pool::spawn(&directory)
            .map(|()| Exit::Clean)
            .map_err(|error| Failure::new(format!("the pool cannot be started: {error}"))),
        (_, Some(directory)) if host.is_program => be(directory),
        (None, None) if stop => end(),
        (None, None) => show(format),
        _ => Err(Failure::new(
            "only the program altair itself can be the pool",
        )),
    }
}

fn be(directory: PathBuf) -> Result<Exit, Failure> {
    altair_pool::serve(&directory)
        .map(|()| Exit::Clean)
        .map_err(|error| Failure::new(error.to_string()))
}

fn end() -> Result<Exit, Failure> {
    match client().stop() {
        Ok(()) => Ok(Exit::Clean),
        Err(NoAnswer::None) => {
            say("no pool is running");
            Ok(Exit::Clean)
        }
        Err(why) => Err(refused(&why)),
    }
}

fn refused(why: &NoAnswer) -> Failure {
    Failure::new(format!("the pool does not serve this process: {why}"))
}

fn show(format: Format) -> Result<Exit, Failure> {
    let state = match client().state() {
        Ok(state) => Some(state),
        Err(NoAnswer::None) => None,
        Err(why) => return Err(refused(&why)),
    };
    let text = match format {
        Format::Json => json::result(&serde_json::json!({ "pool": state }), output::is_terminal()),
        Format::Human => match state {
            Some(state) => render(&state, Theme::new(output::takes_color())),
            None => "No pool is running. The second call of `altair eval` within ten minutes starts one.\n".to_owned(),
        },
    };
    output::print(text.as_bytes())?;
    Ok(Exit::Clean)
}

/// The pool in a few lines: a line for each template.
fn render(state: &State, theme: Theme) -> String {
    let mut text = format!(
        "pool {}: {}, {}, up {}\n",
        state.pid,
        counted(state.templates.len() as u64, "template"),
        counted(state.served, "run"),
        duration(state.age_seconds)
    );
    for template in &state.templates {
        let memory = template
            .memory_bytes
            .map(|bytes| format!(", {} MiB", bytes.div_ceil(1 << 20)));
        let facts = format!(
            "{}, {}, {}, age {}, idle {}{}",
            template.state,
            counted(template.uses, "use"),
            counted(template.spares as u64, "spare"),
            duration(template.age_seconds),
            duration(template.idle_seconds),
            memory.unwrap_or_default()
        );
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "  {}  {}",
            theme.name(&escape::line(&template.root)),
            theme.dim(&facts)
        );
    }
    text
}

fn counted(count: u64, noun: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{end}")
}

fn duration(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}
