//! How a run ended, as the log records it.

use serde_json::Value;

use crate::{EvalResult, Outcome};

/// How an announced run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Whether the run was clean.
    pub ok: bool,
    /// What went wrong; ignored if `ok`.
    pub error: Option<String>,
    /// How long the run took, in milliseconds.
    pub duration_ms: u64,
    /// The exit code, if the run got far enough to have one.
    pub exit_code: Option<i32>,
    /// Whether the deadline ended it.
    pub timed_out: bool,
}

impl Ending {
    /// A run whose host stopped waiting for it after `duration_ms` milliseconds.
    pub(super) fn interrupted(duration_ms: u64) -> Self {
        Self {
            ok: false,
            error: Some("interrupted".to_owned()),
            duration_ms,
            exit_code: None,
            timed_out: false,
        }
    }

    /// The error for the line: `None` for a clean run, otherwise never empty.
    pub(super) fn stated_error(&self) -> Option<String> {
        if self.ok {
            return None;
        }
        let stated = self
            .error
            .as_deref()
            .map(str::trim)
            .filter(|e| !e.is_empty());
        Some(match (stated, self.exit_code) {
            (Some(error), _) => error.to_owned(),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "failed".to_owned(),
        })
    }
}

impl From<&EvalResult> for Ending {
    fn from(result: &EvalResult) -> Self {
        let ok = result.ok();
        Self {
            ok,
            error: if ok { None } else { Some(error_of(result)) },
            duration_ms: result.duration_ms,
            exit_code: Some(result.exit_code),
            timed_out: result.timed_out,
        }
    }
}

/// The most specific description of a failure in a result.
fn error_of(result: &EvalResult) -> String {
    let diagnostics = &result.diagnostics;
    let message = diagnostics
        .message
        .as_deref()
        .map(str::trim)
        .filter(|m| !m.is_empty());
    if let Some(exception) = result.exception.as_ref().and_then(exception_line) {
        exception
    } else if result.timed_out || diagnostics.outcome == Outcome::TimedOut {
        format!("timed out after {} ms", result.duration_ms)
    } else if let Some(signal) = diagnostics.signal {
        format!("killed by signal {signal}")
    } else if let Some(message) = message {
        message.to_owned()
    } else {
        format!("exit code {}", result.exit_code)
    }
}

/// `Class: message` of an encoded exception, or the part of it that exists.
fn exception_line(exception: &Value) -> Option<String> {
    let field = |name: &str| {
        exception
            .get(name)
            .and_then(Value::as_str)
            .map(str::trim)
            .filter(|text| !text.is_empty())
    };
    match (field("class"), field("message")) {
        (Some(class), Some(message)) => Some(format!("{class}: {message}")),
        (Some(text), None) | (None, Some(text)) => Some(text.to_owned()),
        (None, None) => None,
    }
}
