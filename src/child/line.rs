//! The lines of a session: each runs as a snippet does, in the variables that the lines before it
//! have left.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use altair_engine::Phase;
use altair_engine::arguments::Arguments;
use altair_engine::channel::{
    Ending, LOADED_MAX, Left, Message, Report, SnippetTask, Task, VARIABLES_NAMED_MAX,
};

use super::channel_link::Voice;
use super::run::{encoded, micros, snippet_source};
use super::{deadline, ending, hints, short_names};
use crate::zend::child::{self as engine, Cut, memory_peak};
use crate::zend::snippet::Returned;
use crate::zend::{frames, line, snippet, tables};

/// The variables with the value and the exception of the last line that had one.
const LAST_VALUE: &str = "_";
const LAST_EXCEPTION: &str = "_e";

/// What a session remembers from line to line, besides PHP's own state.
pub struct Lines<'t> {
    root: &'t Path,
    run: &'t SnippetTask,
    voice: &'static Voice,
    /// How many included files the host knows.
    told: usize,
}

impl<'t> Lines<'t> {
    /// Begins a session.
    pub fn begin(task: &'t Task, run: &'t SnippetTask, voice: &'static Voice) -> Self {
        VOICE.get_or_init(|| voice);
        line::begin(on_interrupt);
        hints::begin();
        let _ = deadline::line_ends();
        let mut lines = Self {
            root: Path::new(OsStr::from_bytes(&task.root)),
            run,
            voice,
            told: 0,
        };
        lines.tell_loaded();
        lines
    }

    /// Runs a line. `Err`: PHP cannot go on.
    pub fn run(&mut self, text: &[u8]) -> Result<Left, Ending> {
        deadline::note_phase(Phase::Snippet);
        let mut report = Report {
            ending: Ending::Exited(0),
            phase: Phase::Snippet,
            memory_peak_bytes: 0,
            snippet_us: None,
            encode_us: None,
            hints: Vec::new(),
        };
        line::forget_refusals();
        deadline::line_begins();
        let ended = line::recovering(|| self.complete(text, &mut report));
        let flushed = engine::flush_output();
        let was_stopped = deadline::line_ends();
        deadline::note_phase(Phase::Snippet);
        report.ending = match (ended, flushed) {
            (Ok(value), Ok(())) => Ending::Returned(value),
            (Err(cut), _) | (Ok(_), Err(cut)) => self.cut_short(cut, text)?,
        };
        report.memory_peak_bytes = memory_peak();
        report.hints = hints::told(&report.ending);
        self.tell_loaded();
        let mut variables = Vec::new();
        tables::own_variables(|name, _| {
            if variables.len() < VARIABLES_NAMED_MAX {
                variables.push(String::from_utf8_lossy(name).into_owned());
            }
        });
        Ok(Left::Ran {
            report,
            was_stopped,
            variables,
        })
    }

    /// Runs a line and encodes its value.
    fn complete(&self, text: &[u8], report: &mut Report) -> Result<String, Cut> {
        let began = Instant::now();
        let source = snippet_source(text);
        let returned = short_names::compile(&source, self.root, self.voice).and_then(|code| {
            line::keep_names();
            snippet::run_with(code, &Arguments::default())
        });
        report.snippet_us = Some(micros(began));
        let Returned { value, .. } = returned?;
        let began = Instant::now();
        report.phase = Phase::Encode;
        deadline::note_phase(Phase::Encode);
        // A value is shown after each line, so that showing it must change nothing.
        let encoded = encoded(&value, self.run, self.root, false);
        report.encode_us = Some(micros(began));
        let Some(encoded) = encoded else {
            std::mem::forget(value);
            return Err(engine::pending_cut());
        };
        report.phase = Phase::Snippet;
        if !value.is_null() {
            line::set_variable(LAST_VALUE, &value)?;
        }
        engine::release_value(value)?;
        Ok(encoded)
    }

    /// The ending that a cut means. `Err`: PHP cannot go on.
    fn cut_short(&self, cut: Cut, text: &[u8]) -> Result<Ending, Ending> {
        if let Cut::Threw(thrown) = &cut {
            hints::of_exception(thrown.object(), text);
            let _ = line::set_object(LAST_EXCEPTION, thrown.object());
        }
        match ending::of(cut) {
            ending @ Ending::OutOfMemory { .. } => Err(ending),
            ending => Ok(ending),
        }
    }

    /// Tells the host of files that were included since it was told last.
    fn tell_loaded(&mut self) {
        let mut files = Vec::new();
        self.told = line::included(self.told, |file| files.push(file.to_vec()));
        for some in files.chunks(LOADED_MAX) {
            self.voice.send(&Message::Loaded(some.to_vec()));
        }
    }
}

static VOICE: std::sync::OnceLock<&'static Voice> = std::sync::OnceLock::new();

/// The host ends the line that runs: tells it where the code was.
fn on_interrupt() {
    if let Some(voice) = VOICE.get() {
        voice.send(&Message::Stopped {
            phase: deadline::phase(),
            location: frames::current(),
            memory_peak_bytes: memory_peak(),
        });
    }
}
