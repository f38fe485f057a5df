//! The examination: ask PHP, evaluate once with every guard, then attack each guard.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::Progress;
use super::interpreter::{self, Interpreter};
use super::machine::Machine;
use super::report::{GuardReport, Kernel, Remedy, Report, SelfTest, State, User, Verdict};
use super::scratch_project::Scratch;
use super::self_test::{not_tried, self_test};
use super::trial_runs::{Lab, Setting, Trial};
use super::{abilities, attacks};
use super::{advice, guard_versions};
use crate::audit::Actor;
use crate::guards::{Guard, GuardState, GuardStates};
use crate::{Evaluator, Outcome};

/// Maximum number of concurrent self-tests: each makes a few evaluations, each of which takes 200
/// MiB.
const WORKERS_MAX: usize = 4;

/// See [`Doctor::examine`](super::Doctor::examine). The laboratory is there if PHP can be examined.
pub(super) fn examine(
    php: &OsStr,
    extension: Option<&Path>,
    progress: &mut dyn FnMut(Progress),
) -> (Report, Option<Lab>) {
    let machine = Machine::here();
    let Interpreter {
        php,
        extension: loaded,
        has_pcntl,
        warning,
    } = interpreter::ask(php, extension);
    let mut problems = Vec::new();
    let mut states = GuardStates::new();
    let mut lab = None;
    if let Some(path) = &php.path
        && php.problem.is_none()
        && loaded.problem.is_none()
    {
        let evaluator = Evaluator::new(path, Actor::Cli);
        let examined = Lab {
            evaluator: match extension {
                Some(extension) => evaluator.with_extension(extension.to_owned()),
                None => evaluator,
            },
            php: path.clone(),
            has_pcntl,
        };
        match every_guard(&examined, &mut problems) {
            Ok(found) => {
                states = found;
                lab = Some(examined);
            }
            Err(problem) => problems.push(problem),
        }
    }
    let states = Guard::ALL.map(|guard| state(states.get(&guard)));
    let mut tests = self_tests(lab.as_ref(), &states, progress).into_iter();
    let guards: Vec<GuardReport> = Guard::ALL
        .into_iter()
        .zip(states)
        .map(|(name, (state, detail))| GuardReport {
            name,
            state,
            version: guard_versions::of(name, &machine),
            remedies: remedies(name, state, detail.as_deref(), &machine),
            detail,
            self_test: tests
                .next()
                .unwrap_or_else(|| not_tried("it was not reached")),
        })
        .collect();
    let report = Report {
        ok: problems.is_empty() && guards.iter().all(holds),
        user: user(),
        php,
        extension: loaded,
        kernel: Kernel {
            release: machine.release.clone(),
            architecture: std::env::consts::ARCH,
            container: machine.container,
            filtered: machine.is_filtered,
            apparmor: machine.apparmor.clone(),
        },
        problems,
        warnings: warning.into_iter().collect(),
        services: Vec::new(),
        withheld: Vec::new(),
        allowed: Vec::new(),
        abilities: lab.as_ref().map(abilities::abilities).unwrap_or_default(),
        pool: None,
        guards,
    };
    (report, lab)
}

fn holds(guard: &GuardReport) -> bool {
    guard.state == State::InForce && guard.self_test.verdict != Verdict::Failed
}

fn user() -> User {
    let uid = nix::unistd::geteuid();
    User {
        uid: uid.as_raw(),
        name: nix::unistd::User::from_uid(uid)
            .ok()
            .flatten()
            .map(|user| user.name),
    }
}

/// Runs once with every guard, and returns the state of each.
fn every_guard(lab: &Lab, problems: &mut Vec<String>) -> Result<GuardStates, String> {
    let scratch = Scratch::new().map_err(|e| {
        format!(
            "No scratch project can be created in {}: {}. Set TMPDIR to another directory.",
            std::env::temp_dir().display(),
            e.kind()
        )
    })?;
    let result = lab.run(&Trial::new(Setting::All, &scratch, "return 1;".into()))?;
    if result.diagnostics.outcome != Outcome::Returned {
        let why = result.diagnostics.message.unwrap_or_default();
        let said = result.stderr.trim();
        problems.push(format!("An empty run did not finish: {why} {said}"));
    }
    Ok(result.diagnostics.guards)
}

fn state(of: Option<&GuardState>) -> (State, Option<String>) {
    match of {
        None => (State::Unknown, None),
        Some(GuardState::InForce) => (State::InForce, None),
        Some(GuardState::Degraded { to }) => (State::Degraded, Some(to.clone())),
        Some(GuardState::Missing { because } | GuardState::LeftOut { because }) => {
            (State::Missing, Some(because.clone()))
        }
    }
}

fn remedies(guard: Guard, state: State, detail: Option<&str>, machine: &Machine) -> Vec<Remedy> {
    match state {
        State::InForce | State::Unknown => Vec::new(),
        State::Degraded | State::Missing => advice::of(guard, detail.unwrap_or_default(), machine),
    }
}

/// The self-test of every guard, in order.
fn self_tests(
    lab: Option<&Lab>,
    states: &[(State, Option<String>)],
    progress: &mut dyn FnMut(Progress),
) -> Vec<SelfTest> {
    let plans = attacks::PLANS;
    let mut tests: Vec<Option<SelfTest>> = plans.iter().map(|_| None).collect();
    let all = plans.len();
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(WORKERS_MAX);
    let (done, finished) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (done, next) = (done.clone(), &next);
            scope.spawn(move || {
                while let Some((index, plan)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    plans.get(index).map(|plan| (index, plan))
                } {
                    let state = states.get(index).map(|(state, _)| *state);
                    let test = match (lab, state) {
                        (None, _) | (_, None | Some(State::Unknown)) => {
                            not_tried("there is no child process to try it in")
                        }
                        (_, Some(State::Missing)) => not_tried("the guard is missing"),
                        (Some(lab), _) => self_test(lab, plan),
                    };
                    // The receiver waits for all results.
                    let _ = done.send((index, test));
                }
            });
        }
        drop(done);
        for (count, (index, test)) in finished.iter().enumerate() {
            if let Some(place) = tests.get_mut(index) {
                *place = Some(test);
            }
            progress(Progress {
                done: count + 1,
                all,
            });
        }
    });
    tests
        .into_iter()
        .map(|test| test.unwrap_or_else(|| not_tried("its thread ended early")))
        .collect()
}
