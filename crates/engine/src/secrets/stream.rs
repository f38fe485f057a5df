//! Output as it is written, without its secrets: what may become one waits for what follows.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};

use altair_sandbox::Stream;

use super::{Names, Secrets, is_secret};
use crate::evaluation::Observer;
use crate::result::EvalResult;

/// A variable's name and value.
pub(crate) type Variable = (Vec<u8>, Vec<u8>);

/// One stream of a run.
#[derive(Debug, Default)]
struct Redacting {
    /// What was written and not passed on.
    held: Vec<u8>,
    /// How much of it belongs to a secret that was replaced already.
    told: usize,
}

impl Redacting {
    /// Takes a piece; what can be passed on.
    fn push(&mut self, secrets: &Arc<Secrets>, chunk: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(chunk);
        let text = std::mem::take(&mut self.held);
        let keep_from = secrets
            .finder
            .head_at_end(&text, 1)
            .map_or(text.len(), |(start, _)| start);
        let (out, told) = self.pass_on(secrets, &text, keep_from);
        self.held = text[keep_from..].to_vec();
        self.told = told;
        out
    }

    /// What is left, at the end of the stream.
    fn end(&mut self, secrets: &Arc<Secrets>) -> Vec<u8> {
        let text = std::mem::take(&mut self.held);
        self.pass_on(secrets, &text, text.len()).0
    }

    /// `text` up to `end`, and how much behind that is of a secret that was replaced.
    fn pass_on(&mut self, secrets: &Arc<Secrets>, text: &[u8], end: usize) -> (Vec<u8>, usize) {
        let mut out = Vec::with_capacity(text.len());
        // What was replaced before is not shown again.
        let mut at = std::mem::take(&mut self.told);
        for (span, of) in secrets.finder.spans(text, false) {
            if span.start >= end {
                break;
            }
            out.extend_from_slice(text.get(at..span.start).unwrap_or_default());
            out.extend_from_slice(secrets.replacement(of, &mut Names::new()).as_bytes());
            at = at.max(span.end);
        }
        out.extend_from_slice(text.get(at..end).unwrap_or_default());
        (out, at.saturating_sub(end))
    }
}

fn among(variables: &[Variable]) -> Option<Arc<Secrets>> {
    Secrets::among(
        variables
            .iter()
            .map(|(name, value)| (&name[..], &value[..])),
    )
}

/// What is known of an environment.
struct Known {
    environment: Vec<(OsString, OsString)>,
    /// Those that may hold secrets.
    variables: Vec<Variable>,
    secrets: Option<Arc<Secrets>>,
}

/// The last that was looked at: that of a host seldom changes from one run to the next.
static LAST: Mutex<Option<Arc<Known>>> = Mutex::new(None);

impl Known {
    fn of(environment: &[(OsString, OsString)]) -> Arc<Self> {
        // In a fork of a host another thread may have the lock for ever.
        let mut last = LAST.try_lock().ok();
        if let Some(Some(last)) = last.as_deref()
            && last.environment == environment
        {
            return Arc::clone(last);
        }
        let variables: Vec<Variable> = environment
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
            .filter(|(name, value)| is_secret(name, value))
            .map(|(name, value)| (name.to_vec(), value.to_vec()))
            .collect();
        let known = Arc::new(Self {
            environment: environment.to_vec(),
            secrets: among(&variables),
            variables,
        });
        if let Some(last) = last.as_deref_mut() {
            *last = Some(Arc::clone(&known));
        }
        known
    }
}

/// Watches a run for somebody, and keeps its secrets back.
pub(crate) struct Redactor<'a> {
    observer: &'a mut dyn Observer,
    /// Variables that may hold secrets; `None` where nothing is to be kept back.
    variables: Option<Vec<Variable>>,
    secrets: Option<Arc<Secrets>>,
    stdout: Redacting,
    stderr: Redacting,
}

impl<'a> Redactor<'a> {
    /// Keeps back what the variables of a run's environment hold.
    pub(crate) fn new(
        observer: &'a mut dyn Observer,
        environment: Option<&[(OsString, OsString)]>,
    ) -> Self {
        let known = environment.map(Known::of);
        Self {
            observer,
            variables: known.as_ref().map(|known| known.variables.clone()),
            secrets: known.and_then(|known| known.secrets.clone()),
            stdout: Redacting::default(),
            stderr: Redacting::default(),
        }
    }

    /// Keeps back what these hold, too: boot has left them.
    pub(crate) fn learn(&mut self, variables: &[Variable]) {
        if let Some(known) = &mut self.variables
            && variables.iter().any(|variable| !known.contains(variable))
        {
            known.extend_from_slice(variables);
            self.secrets = among(known);
        }
    }

    /// Passes on what was held, and keeps the secrets back from the result.
    pub(crate) fn end(&mut self, result: &mut EvalResult) {
        let Some(secrets) = &self.secrets else {
            return;
        };
        for (stream, held) in [
            (Stream::Stdout, &mut self.stdout),
            (Stream::Stderr, &mut self.stderr),
        ] {
            let rest = held.end(secrets);
            if !rest.is_empty() {
                // The run is over: there is nothing to break off any more.
                let _ = self.observer.output(stream, &rest);
            }
        }
        secrets.redact(result);
    }
}

impl Observer for Redactor<'_> {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        let Some(secrets) = self.secrets.as_ref().filter(|_| self.observer.listens()) else {
            return self.observer.output(stream, chunk);
        };
        let held = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let out = held.push(secrets, chunk);
        if out.is_empty() {
            ControlFlow::Continue(())
        } else {
            self.observer.output(stream, &out)
        }
    }

    fn tick(&mut self) -> ControlFlow<()> {
        self.observer.tick()
    }
}
