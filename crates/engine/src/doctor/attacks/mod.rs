//! Attacks on each guard, judged from outside of the run: by whether a file exists, a connection
//! arrived, a process is alive, or a random text got out.

mod deadline;
mod environment;
mod files;
mod ini;
mod limits;
mod outlive;
mod privileges;
mod process;
mod seccomp;

use std::path::Path;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::trial_runs::{Lab, Setting};
use crate::guards::Guard;
use crate::{EvalResult, Outcome};

/// Attempts in the given setting. `Err` says why none could be made.
type Attempts = fn(&Lab, Setting) -> Result<Vec<Attempt>, String>;

/// How a guard is attacked.
pub(super) struct Plan {
    pub guard: Guard,
    /// With the guard alone.
    pub attack: Attempts,
    /// The same attempts without it, as far as it can be left out.
    pub without: Option<Attempts>,
}

/// Every guard, in the order of [`Guard::ALL`].
pub(super) const PLANS: &[Plan] = &[
    Plan {
        guard: Guard::Process,
        attack: process::attack,
        without: Some(process::without),
    },
    same(Guard::Environment, environment::attack),
    same(Guard::Ini, ini::attack),
    same(Guard::Limits, limits::attack),
    same(Guard::Privileges, privileges::attack),
    same(Guard::Filesystem, files::attack_view),
    same(Guard::Landlock, files::attack_landlock),
    same(Guard::Seccomp, seccomp::attack),
    Plan {
        guard: Guard::Deadline,
        attack: deadline::attack,
        without: None,
    },
];

const fn same(guard: Guard, attack: Attempts) -> Plan {
    Plan {
        guard,
        attack,
        without: Some(attack),
    }
}

/// An attempted attack.
pub(super) struct Attempt {
    /// In words.
    pub tried: String,
    pub seen: Seen,
}

/// The result, in words.
pub(super) enum Seen {
    /// The attempt got through.
    Through(String),
    /// It was stopped.
    Stopped(String),
    /// It could not be made here.
    Impossible(String),
}

impl Attempt {
    /// An attempt that got through or not; `words` describe the first case and the second.
    fn new(tried: impl Into<String>, through: bool, words: (&str, &str)) -> Self {
        let (got_through, stopped) = words;
        Self {
            tried: tried.into(),
            seen: if through {
                Seen::Through(got_through.into())
            } else {
                Seen::Stopped(stopped.into())
            },
        }
    }

    fn impossible(tried: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            tried: tried.into(),
            seen: Seen::Impossible(why.into()),
        }
    }
}

/// Checks that a run finished: one that did not has tried nothing.
fn ran(result: EvalResult) -> Result<EvalResult, String> {
    match result.diagnostics.outcome {
        Outcome::Returned => Ok(result),
        _ => Err(format!("the run did not finish: {}", why(&result))),
    }
}

/// What ended a run, in words.
fn why(result: &EvalResult) -> String {
    let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
    let thrown = result.exception.as_ref();
    result
        .diagnostics
        .message
        .clone()
        .or_else(|| text(thrown?.get("message")?))
        .unwrap_or_else(|| format!("exit code {}", result.exit_code))
}

/// Whether random text is in what a snippet returned.
fn returned(result: &EvalResult, token: &str) -> bool {
    result
        .result
        .as_ref()
        .is_some_and(|value| value.to_string().contains(token))
}

fn holds(file: &Path, token: &str) -> bool {
    std::fs::read(file).is_ok_and(|content| content == token.as_bytes())
}

/// The process that a line of output names.
fn pid(line: &str) -> Option<Pid> {
    line.parse()
        .ok()
        .filter(|pid: &i32| *pid > 1)
        .map(Pid::from_raw)
}

/// Whether a process that was seen alive ended with its run. Kills it otherwise: an examination
/// leaves nothing behind.
fn ends(pid: Pid) -> bool {
    let ended = !is_alive(pid);
    if !ended {
        // It may just have ended by itself.
        let _ = kill(pid, Signal::SIGKILL);
    }
    ended
}

fn is_alive(pid: Pid) -> bool {
    // EPERM: it exists, but may not be signalled.
    matches!(kill(pid, None), Ok(()) | Err(Errno::EPERM))
}
