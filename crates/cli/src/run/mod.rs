//! `altair run`: any command under a policy, from the shell.

mod changes;
mod policy;
mod relay;
mod rows;
mod screen;
mod signals;
mod stream;
mod typed;

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};

use altair_command::{Command, CommandError, Driver, Outcome, Sandbox, Stdin, WorksIn};
use altair_engine::programs::Programs;

use crate::args::{Format, RunArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::human::{self, Theme};
use crate::{failure, json, output};
use policy::Policy;
use relay::Relay;
use signals::Signals;
use stream::Streaming;

/// What altair itself could not do: the code that `env` and `timeout` use, which few commands have.
pub const OWN_FAILURE: Exit = Exit::Of(125);

/// The code of a command that ended because nobody reads its output any more, as in a pipeline.
const NOBODY_READS: u8 = 128 + nix::libc::SIGPIPE as u8;

/// Whether the arguments are those of this command.
pub fn is_asked_for(arguments: &[OsString]) -> bool {
    arguments.get(1).is_some_and(|name| name == "run")
}

/// Runs the command, passes on its output, and shows what it changed.
///
/// # Errors
/// Wrong usage, and what keeps the command from starting.
pub fn run(args: RunArgs) -> Result<Exit, Failure> {
    let (format, apply) = (args.format, args.apply);
    let shows = format == Format::Human;
    let Policy { driver, policy } = Policy::of(&args)?;
    let confines_itself = matches!(driver, Driver::Native | Driver::Host);
    let is_interactive =
        shows && confines_itself && io::stdin().is_terminal() && output::is_terminal();
    let relay = is_interactive.then(Relay::begin).transpose()?;
    let terminal = relay.as_ref().map(Relay::terminal).transpose()?;
    let (stdin, typed) = match &terminal {
        Some(_) => (Stdin::Empty, None),
        None => typed::standard_input()?,
    };
    let command = Command {
        sandbox: Sandbox {
            driver,
            binary: None,
            image: None,
        },
        policy,
        works_in: match confines_itself {
            true => WorksIn::Base,
            false => WorksIn::Own,
        },
        argv: args.command.clone(),
        stdin,
        terminal,
        environment: std::env::vars_os().collect(),
        started_with: std::env::vars_os().collect(),
        programs: Programs::All,
        diff: args.diff,
        listed: usize::MAX,
    };
    let signals = Signals::catch(relay.as_ref().map(Relay::resizer).transpose()?)?;
    let mut streaming = Streaming::new(shows);
    let ran = command
        .prepare()
        .and_then(|prepared| prepared.run(&mut streaming, Some(signals.forwarding())));
    drop(signals);
    // The terminal is as it was before anything else is printed, and what is typed now is for altair.
    drop((relay, typed));
    let mut outcome = match ran {
        Ok(outcome) => outcome,
        Err(CommandError::Interrupted) if streaming.is_unread() => {
            return Ok(Exit::Of(NOBODY_READS));
        }
        Err(error) => return Err(Failure::new(error.to_string())),
    };
    let code = u8::try_from(outcome.exit_code).unwrap_or(u8::MAX);
    let theme = Theme::new(output::takes_color_on_stderr());
    if shows {
        if outcome
            .changes
            .as_ref()
            .is_some_and(|changes| human::count_of(changes) > 0)
        {
            screen::make_usual();
        }
        tell(&outcome, theme);
    }
    let applied = match outcome.layer.take() {
        Some(layer) => changes::settle(layer, &outcome, apply, shows, theme)?,
        None => false,
    };
    if !shows {
        let text = json::result(
            &policy::described(&args.command, &outcome, applied),
            output::is_terminal(),
        );
        output::print(text.as_bytes())?;
    }
    Ok(Exit::Of(code))
}

/// Shows what a command that has ended leaves to say.
fn tell(outcome: &Outcome, theme: Theme) {
    let mut stderr = io::stderr();
    if let Some(why) = outcome.why_not_started() {
        failure::say(&why);
    }
    if let Some(reason) = outcome.timeout {
        failure::say(&format!(
            "the command was ended after {:.1} s: {}",
            outcome.duration.as_secs_f64(),
            match reason {
                altair_command::TimeoutReason::Wall => "it took too long (--timeout)",
                altair_command::TimeoutReason::Idle => "it was silent too long (--idle-timeout)",
            }
        ));
    }
    for blocked in &outcome.blocked {
        let lift = match &blocked.lift {
            Some(lift) => format!(" ({lift} allows it)"),
            None => String::new(),
        };
        let text = format!("refused: {}{lift}", crate::escape::line(&blocked.what));
        let _ = writeln!(stderr, "altair: {}", theme.notice(&text));
    }
    for (guard, state) in &outcome.guards {
        let text = format!("the guard {guard} is {state}");
        let _ = writeln!(stderr, "altair: {}", theme.dim(&crate::escape::line(&text)));
    }
}
