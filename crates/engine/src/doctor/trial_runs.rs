//! Evaluations with one guard alone, or with none that can be left out.

use std::ops::ControlFlow;
use std::path::PathBuf;

use altair_sandbox::Stream;

use super::scratch_project::Scratch;
use crate::guards::{Guard, GuardState, Selection};
use crate::services::Declared;
use crate::{EvalError, EvalRequest, EvalResult, Evaluator, Observer, Silent};

/// Which guards a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setting {
    /// All.
    All,
    /// This one, and those that cannot be left out.
    Alone(Guard),
    /// Those that cannot be left out.
    Bare,
}

impl Setting {
    fn selection(self) -> Selection {
        let keeps = |guard: &Guard| match self {
            Self::All => true,
            Self::Alone(alone) => *guard == alone || guard.is_always_on(),
            Self::Bare => guard.is_always_on(),
        };
        let omitted = Guard::ALL.into_iter().filter(|guard| !keeps(guard));
        // Requires only `ini`, so that a kernel without guards still gives a report.
        let required = match self {
            Self::All => vec![Guard::Ini],
            Self::Alone(_) | Self::Bare => Vec::new(),
        };
        Selection::new(required, omitted.collect())
    }
}

/// Evaluates trials.
#[derive(Debug)]
pub(super) struct Lab {
    /// An evaluator with the PHP under examination.
    pub evaluator: Evaluator,
    /// That PHP.
    pub php: PathBuf,
    /// Whether that PHP can fork.
    pub has_pcntl: bool,
}

/// A run to make.
pub(super) struct Trial<'a> {
    pub setting: Setting,
    pub request: EvalRequest,
    /// Variables added to the environment from which the child's is built.
    pub variables: &'a [(&'a str, &'a str)],
    /// Services that it has, with who declares each.
    pub services: Vec<Declared>,
}

impl<'a> Trial<'a> {
    /// A snippet in a scratch project.
    pub fn new(setting: Setting, scratch: &Scratch, snippet: String) -> Self {
        let mut request = EvalRequest::new(snippet, scratch.project());
        // The guards are tested, not redaction.
        request.redact = false;
        Self {
            setting,
            request,
            variables: &[],
            services: Vec::new(),
        }
    }
}

impl Lab {
    /// Runs to the end.
    ///
    /// # Errors
    ///
    /// Why there was no run with the guard, in words.
    pub fn run(&self, trial: &Trial<'_>) -> Result<EvalResult, String> {
        self.evaluate(trial, &mut Silent)
            .map_err(|error| error.to_string())
            .and_then(|result| has_guard(trial.setting, result))
    }

    /// Runs and passes each line of output to `look` while the snippet waits or continues. `Break`
    /// ends the run, which then has no result.
    ///
    /// # Errors
    ///
    /// As for [`Lab::run`].
    pub fn watch(
        &self,
        trial: &Trial<'_>,
        look: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<Option<EvalResult>, String> {
        let mut watcher = Watcher {
            line: Vec::new(),
            look,
        };
        match self.evaluate(trial, &mut watcher) {
            Ok(result) => has_guard(trial.setting, result).map(Some),
            Err(EvalError::Interrupted) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn evaluate(
        &self,
        trial: &Trial<'_>,
        observer: &mut dyn Observer,
    ) -> Result<EvalResult, EvalError> {
        let evaluator = self
            .evaluator
            .clone()
            .with_guards(trial.setting.selection());
        let evaluator = match trial.services.is_empty() {
            true => evaluator,
            false => evaluator.with_services(trial.services.clone()),
        };
        let mut prepared = evaluator.prepare(&trial.request)?;
        for (name, value) in trial.variables {
            prepared = prepared.with_variable(name, value);
        }
        prepared.run(observer)
    }
}

/// A guard may be in force together with all others, but not alone.
fn has_guard(setting: Setting, result: EvalResult) -> Result<EvalResult, String> {
    if let Setting::Alone(guard) = setting
        && let Some(GuardState::Missing { because }) = result.diagnostics.guards.get(&guard)
    {
        return Err(format!("alone it is missing: {because}"));
    }
    Ok(result)
}

/// Assembles lines of standard output.
struct Watcher<'a> {
    line: Vec<u8>,
    look: &'a mut dyn FnMut(&str) -> ControlFlow<()>,
}

impl Observer for Watcher<'_> {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        if stream != Stream::Stdout {
            return ControlFlow::Continue(());
        }
        self.line.extend_from_slice(chunk);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            (self.look)(String::from_utf8_lossy(&line).trim())?;
        }
        ControlFlow::Continue(())
    }

    fn tick(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
