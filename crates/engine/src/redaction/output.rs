//! Redacts output while it is streamed: holds bytes that may begin a secret until more output
//! follows.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use altair_sandbox::Stream;

use super::password_places::BEFORE_MAX;
use super::{Secrets, Variable};
use crate::bounds::OUTPUT_LIMIT;
use crate::observer::Observer;
use crate::result::EvalResult;

/// Checks of the channel after which all messages sent before an output have been received.
const LOOKS: u8 = 2;

/// Maximum bytes of early output that are held back.
const EARLY_MAX: usize = OUTPUT_LIMIT;

/// One stream of a run.
#[derive(Debug, Default)]
struct Redacting {
    /// Bytes that were written but not passed on.
    held: Vec<u8>,
    /// How many of them belong to a secret that was already replaced.
    told: usize,
    /// The end of the output before them: it may mark what follows as a password.
    before: Vec<u8>,
}

impl Redacting {
    /// Takes a chunk and returns what can be passed on.
    fn push(&mut self, secrets: &Arc<Secrets>, chunk: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(chunk);
        let text = std::mem::take(&mut self.held);
        let keep_from = secrets.head_at_end(&self.before, &text);
        let keep_from = keep_from.unwrap_or(text.len());
        let (out, told) = self.pass_on(secrets, &text, keep_from);
        self.held = text[keep_from..].to_vec();
        self.told = told;
        out
    }

    /// Returns what is left at the end of the stream.
    fn end(&mut self, secrets: &Arc<Secrets>) -> Vec<u8> {
        let text = std::mem::take(&mut self.held);
        self.pass_on(secrets, &text, text.len()).0
    }

    /// Returns `text` up to `end`, redacted, and how many bytes after `end` belong to a replaced
    /// secret.
    fn pass_on(&mut self, secrets: &Arc<Secrets>, text: &[u8], end: usize) -> (Vec<u8>, usize) {
        let mut out = Vec::with_capacity(text.len());
        // Skips the bytes of a secret that was already replaced.
        let mut at = std::mem::take(&mut self.told);
        let spans = secrets.spans(&self.before, text, false, None);
        for (span, of) in spans.unwrap_or_default() {
            if span.start >= end {
                break;
            }
            out.extend_from_slice(text.get(at..span.start).unwrap_or_default());
            out.extend_from_slice(secrets.replacement(of).as_bytes());
            at = at.max(span.end);
        }
        out.extend_from_slice(text.get(at..end).unwrap_or_default());
        self.before.extend_from_slice(&text[..end]);
        let old = self.before.len().saturating_sub(BEFORE_MAX);
        self.before.drain(..old);
        (out, at.saturating_sub(end))
    }
}

/// Secrets that are known before a run begins.
#[derive(Clone)]
pub(crate) struct KnownSecrets {
    /// Variables that may hold secrets.
    pub variables: Vec<Variable>,
    /// The secrets among them.
    pub secrets: Option<Arc<Secrets>>,
}

impl std::fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KnownSecrets(..)")
    }
}

impl KnownSecrets {
    /// The secrets of these variables.
    pub(crate) fn of(variables: Vec<Variable>) -> Self {
        Self {
            secrets: Secrets::of(&variables),
            variables,
        }
    }
}

/// Passes a run's events to an observer, with the secrets redacted.
pub(crate) struct Redactor<'a> {
    observer: &'a mut dyn Observer,
    /// Variables that may hold secrets; `None` if nothing is redacted.
    variables: Option<Vec<Variable>>,
    secrets: Option<Arc<Secrets>>,
    /// Output that was read before the end of boot was reported, each chunk with the number of
    /// channel checks since; `None` after the report. The variables that boot left are sent before
    /// the snippet writes, but may be read after its output.
    early: Option<Vec<(Stream, Vec<u8>, u8)>>,
    stdout: Redacting,
    stderr: Redacting,
}

impl<'a> Redactor<'a> {
    /// Redacts the `known` secrets; `None` redacts nothing.
    pub(crate) fn new(observer: &'a mut dyn Observer, known: Option<KnownSecrets>) -> Self {
        let listens = observer.listens();
        let early = (listens && known.is_some()).then(Vec::new);
        let (variables, secrets) = match known {
            Some(KnownSecrets { variables, secrets }) => (Some(variables), secrets),
            None => (None, None),
        };
        Self {
            observer,
            variables,
            early,
            secrets,
            stdout: Redacting::default(),
            stderr: Redacting::default(),
        }
    }

    /// Called at the end of boot with the variables that it left. Redacts their secrets too, and
    /// passes on the output held until now.
    pub(crate) fn boot_is_over(&mut self, left: &[Variable]) -> ControlFlow<()> {
        self.learn(left);
        for (stream, chunk, _) in self.early.take().into_iter().flatten() {
            self.pass_on(stream, &chunk)?;
        }
        ControlFlow::Continue(())
    }

    fn learn(&mut self, variables: &[Variable]) {
        let Some(known) = &mut self.variables else {
            return;
        };
        let own: HashSet<&Variable> = known.iter().collect();
        let new = variables.iter().filter(|variable| !own.contains(variable));
        let new: Vec<Variable> = new.cloned().collect();
        if !new.is_empty() {
            known.extend(new);
            self.secrets = Secrets::of(known);
        }
    }

    /// Called after each check of the channel. The second check has read every message sent before
    /// an output; output still held then is boot's own and is passed on.
    fn looked(&mut self) -> ControlFlow<()> {
        let Some(early) = &mut self.early else {
            return ControlFlow::Continue(());
        };
        let mut old = Vec::new();
        early.retain_mut(|(stream, chunk, looks)| {
            *looks += 1;
            if *looks >= LOOKS {
                old.push((*stream, std::mem::take(chunk)));
            }
            *looks < LOOKS
        });
        for (stream, chunk) in old {
            self.pass_on(stream, &chunk)?;
        }
        ControlFlow::Continue(())
    }

    fn pass_on(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
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

    /// Called at the end of the run. Passes on the held output, and redacts the result, including
    /// secrets in the variables that boot left (`left`).
    ///
    /// `until`: the deadline of the redaction.
    pub(crate) fn finish(
        mut self,
        left: &[Variable],
        mut result: EvalResult,
        until: Instant,
    ) -> EvalResult {
        // The run is over: there is nothing left to interrupt.
        let _ = self.boot_is_over(left);
        let Some(secrets) = &self.secrets else {
            return result;
        };
        for (stream, held) in [
            (Stream::Stdout, &mut self.stdout),
            (Stream::Stderr, &mut self.stderr),
        ] {
            let rest = held.end(secrets);
            if !rest.is_empty() {
                let _ = self.observer.output(stream, &rest);
            }
        }
        secrets.redact(&mut result, until);
        result
    }
}

impl Observer for Redactor<'_> {
    fn begins(&mut self) -> ControlFlow<()> {
        self.observer.begins()
    }

    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        let Some(early) = &mut self.early else {
            return self.pass_on(stream, chunk);
        };
        early.push((stream, chunk.to_vec(), 0));
        if early.iter().map(|(_, chunk, _)| chunk.len()).sum::<usize>() > EARLY_MAX {
            return self.boot_is_over(&[]); // too much to hold
        }
        ControlFlow::Continue(())
    }

    fn tick(&mut self) -> ControlFlow<()> {
        self.looked()?;
        self.observer.tick()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn later() -> Instant {
        Instant::now() + PATIENCE
    }

    fn result() -> EvalResult {
        EvalResult::from_json(serde_json::json!({}))
    }

    /// Records the output.
    #[derive(Default)]
    struct Pen(Vec<u8>);

    impl Observer for Pen {
        fn output(&mut self, _: Stream, chunk: &[u8]) -> ControlFlow<()> {
            self.0.extend_from_slice(chunk);
            ControlFlow::Continue(())
        }

        fn tick(&mut self) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }

    fn known(all: &[(&str, &str)]) -> KnownSecrets {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let variables = all.iter().map(|(name, value)| (bytes(name), bytes(value)));
        KnownSecrets::of(variables.collect())
    }

    pub(crate) fn streamed(all: &[(&str, &str)], chunks: &[&[u8]]) -> Vec<u8> {
        let mut pen = Pen::default();
        let mut redactor = Redactor::new(&mut pen, Some(known(all)));
        assert!(redactor.boot_is_over(&[]).is_continue());
        for chunk in chunks {
            assert!(redactor.output(Stream::Stdout, chunk).is_continue());
        }
        redactor.finish(&[], result(), later());
        pen.0
    }

    #[test]
    fn a_secret_is_found_across_pieces_of_output_and_what_is_none_is_passed_on() {
        let variables = [("A_TOKEN", "abcdef6h")];

        let across = streamed(&variables, &[b"so: abc", b"", b"def", b"6h!", b"abc"]);
        assert_eq!(
            String::from_utf8(across).unwrap(),
            "so: [redacted:A_TOKEN]!abc"
        );
    }

    #[test]
    fn what_is_printed_before_the_end_of_boot_waits_for_what_boot_has_read() {
        let mut pen = Pen::default();
        let mut redactor = Redactor::new(&mut pen, Some(known(&[])));
        assert!(redactor.output(Stream::Stderr, b"abcdef6h ").is_continue());
        let left = [(b"A_TOKEN".to_vec(), b"abcdef6h".to_vec())];
        assert!(redactor.boot_is_over(&left).is_continue());
        assert!(redactor.output(Stream::Stderr, b"abcdef6h").is_continue());
        redactor.finish(&[], result(), later());

        let shown = String::from_utf8(pen.0).unwrap();
        assert_eq!(shown, "[redacted:A_TOKEN] [redacted:A_TOKEN]");
    }

    #[test]
    fn a_flood_before_the_end_of_boot_is_not_kept() {
        let mut pen = Pen::default();
        let mut redactor = Redactor::new(&mut pen, Some(known(&[])));
        for _ in 0..10 {
            assert!(redactor.output(Stream::Stdout, &[b'x'; 4096]).is_continue());
        }
        drop(redactor);

        assert!(pen.0.len() > 8 * 4096);
    }
}
