//! The run phase: boot, guards, snippet, encoding, shutdown. Ends in a report.

use std::time::Instant;

use altair_engine::Phase;
use altair_engine::channel::{Ending, Message, Report, Task};
use altair_engine::encode::encode_value;

use super::link::Voice;
use super::{boot, ending, guards, stop};
use crate::zend::child::{self as engine, memory_peak};
use crate::zend::node::ZvalNode;

/// A run that has come to its end.
pub struct Run {
    /// What is to be said of it.
    pub report: Report,
}

/// ini settings of the child's that hold from its first own code on: what PHP says goes to
/// standard error, and output that nobody reads any more (a snippet may close it) is no reason to end.
const OWN_INI: &[(&str, &str)] = &[
    ("error_log", ""),
    ("ignore_user_abort", "1"),
    // PHP would end the process where `set_time_limit` is missed by a long native call; the
    // deadline does, and says where the call was.
    ("hard_timeout", "0"),
];
/// ini settings that boot may have changed for its own ends, and that hold for the snippet.
const SNIPPET_INI: &[(&str, &str)] = &[("display_errors", "stderr"), ("html_errors", "0")];

/// Runs a task to its end.
pub fn run(task: &Task, voice: &'static Voice) -> Run {
    let mut run = Run {
        report: Report {
            ending: Ending::Exited(0),
            phase: Phase::Boot,
            memory_peak_bytes: 0,
            snippet_us: None,
            encode_us: None,
        },
    };
    run.report.ending = match run.complete(task, voice) {
        Ok(ending) | Err(ending) => ending,
    };
    run.report.memory_peak_bytes = memory_peak();
    run
}

impl Run {
    fn complete(&mut self, task: &Task, voice: &'static Voice) -> Result<Ending, Ending> {
        self.boot(task, voice)?;
        self.enter(Phase::Snippet);
        let ending = self.snippet(task);
        Ok(self.shut_down(ending))
    }

    fn enter(&mut self, phase: Phase) {
        self.report.phase = phase;
        stop::note_phase(phase);
    }

    fn boot(&mut self, task: &Task, voice: &'static Voice) -> Result<(), Ending> {
        let began = Instant::now();
        for (name, value) in OWN_INI {
            engine::set_ini(name, value.as_bytes());
        }
        let container = boot::boot(task)?;
        engine::set_container(&container);
        engine::end_boot();
        for (name, value) in SNIPPET_INI {
            engine::set_ini(name, value.as_bytes());
        }
        let guards = match &task.restrictions {
            Some(restrictions) => {
                vec![("ini".to_owned(), guards::apply(task, restrictions, voice)?)]
            }
            None => Vec::new(),
        };
        // The container belongs to `container()` from here on.
        std::mem::forget(container);
        voice.send(&Message::Ready {
            boot_us: micros(began),
            guards,
        });
        Ok(())
    }

    fn snippet(&mut self, task: &Task) -> Ending {
        let began = Instant::now();
        let returned = engine::run_snippet(&snippet_source(&task.snippet));
        self.report.snippet_us = Some(micros(began));
        let value = match returned {
            Ok(value) => value,
            Err(cut) => return ending::of(cut),
        };
        self.enter(Phase::Encode);
        let began = Instant::now();
        let node = ZvalNode::new(&value);
        let encoded = encode_value(&node);
        self.report.encode_us = Some(micros(began));
        drop(node);
        let ending = match encoded {
            Ok(json) => Ending::Returned(json.to_string()),
            Err(_) => ending::of(engine::pending_cut()),
        };
        if !matches!(ending, Ending::Returned(_)) {
            std::mem::forget(value);
            return ending;
        }
        self.enter(Phase::Snippet);
        match engine::release(value) {
            Ok(()) => ending,
            Err(cut) => ending::of(cut),
        }
    }

    /// Shutdown functions and destructors of what the snippet made. One of them can still turn a
    /// snippet that returned into one that ended otherwise; it does not make good one that failed.
    fn shut_down(&mut self, ending: Ending) -> Ending {
        let ended = engine::shut_down();
        if !matches!(ending, Ending::Returned(_)) {
            return ending;
        }
        match ended {
            Err(cut) => ending::of(cut),
            // PHP's own loop over shutdown functions ends at a fatal error and does not pass it on.
            Ok(()) => ending::fatal().unwrap_or(ending),
        }
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// The snippet with what may stand before its code blanked out, so that lines stay what they are:
/// a byte order mark, a shebang line, an opening tag.
fn snippet_source(snippet: &[u8]) -> Vec<u8> {
    let mut source = snippet.to_vec();
    let mut at = if source.starts_with(b"\xEF\xBB\xBF") {
        3
    } else {
        0
    };
    if source[at..].starts_with(b"#!") {
        at += source[at..]
            .iter()
            .position(|b| *b == b'\n')
            .unwrap_or(source.len() - at);
    }
    let blank = source[at..]
        .iter()
        .take_while(|b| b.is_ascii_whitespace())
        .count();
    let tag = source.get(at + blank..at + blank + 5);
    if tag.is_some_and(|tag| tag.eq_ignore_ascii_case(b"<?php")) {
        at += blank + 5;
    }
    for byte in &mut source[..at] {
        if *byte != b'\n' && *byte != b'\r' {
            *byte = b' ';
        }
    }
    source
}
