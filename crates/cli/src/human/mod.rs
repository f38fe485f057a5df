//! A result as text for people: a pure function of the result.

mod changes;
mod details;
mod queries;
#[cfg(test)]
mod tests;
mod theme;
mod value;

use altair_engine::{EvalResult, Outcome};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::escape;
pub use changes::{count_of, each as each_change, unlisted as unlisted_changes};
pub use theme::Theme;

/// Renders `result`. Every line ends with a newline, and the snippet's control characters are
/// escaped.
pub fn render(result: &EvalResult, theme: Theme) -> String {
    let mut out = String::new();
    let mark = if result.ok() {
        theme.good("✓")
    } else {
        theme.bad("✗")
    };
    line(&mut out, 0, &format!("{mark} {}", headline(result)));
    if let (Outcome::Returned, Some(value)) = (result.diagnostics.outcome, &result.result) {
        value::tree(&mut out, value, theme);
    }
    line(&mut out, 1, &theme.dim(&figures(result)));
    details::append(&mut out, result, theme);
    section(
        &mut out,
        "stdout",
        &result.stdout,
        cut(result, |full| full.stdout),
        theme,
    );
    section(
        &mut out,
        "stderr",
        &result.stderr,
        cut(result, |full| full.stderr),
        theme,
    );
    out
}

/// The changes of a command below a title.
pub fn changes(changes: &altair_engine::FileChanges, title: &str, theme: Theme) -> String {
    let mut out = String::new();
    changes::list(&mut out, changes, title, theme);
    out
}

/// What was refused, a line each.
pub fn refusals(blocked: &[altair_engine::Blocked], theme: Theme) -> String {
    let mut out = String::new();
    details::refusals(&mut out, blocked, theme);
    out
}

/// Appends a line, indented by `level` steps of two spaces.
fn line(out: &mut String, level: usize, text: &str) {
    out.push_str(&"  ".repeat(level));
    out.push_str(text);
    out.push('\n');
}

/// What happened, in one line: `int = 2`, `RuntimeException: boom`.
pub fn headline(result: &EvalResult) -> String {
    let diagnostics = &result.diagnostics;
    let message = diagnostics
        .message
        .as_deref()
        .filter(|text| !text.is_empty());
    match diagnostics.outcome {
        Outcome::Returned => result
            .result
            .as_ref()
            .map_or("null".into(), value::headline),
        Outcome::Threw => match result.exception.as_ref().map(exception) {
            Some(thrown) if !thrown.is_empty() => thrown,
            _ => labelled("Threw", message),
        },
        Outcome::Exited => format!("Exited {}.", result.exit_code),
        Outcome::Fatal => labelled("Fatal", message),
        Outcome::OutOfMemory => labelled("Out of memory", message),
        Outcome::TimedOut => format!("Timed out after {}ms.", result.duration_ms),
        Outcome::Signalled => killed(diagnostics.signal),
        Outcome::BootFailed => match (message, &result.exception) {
            (None, Some(thrown)) => format!("Boot failed: {}", exception(thrown)),
            (message, _) => labelled("Boot failed", message),
        },
        Outcome::NoReport => labelled("No genuine report", message),
    }
}

fn labelled(label: &str, message: Option<&str>) -> String {
    match message {
        Some(message) => format!("{label}: {}", escape::line(message)),
        None => format!("{label}."),
    }
}

fn killed(signal: Option<i32>) -> String {
    match signal {
        Some(number) => match Signal::try_from(number) {
            Ok(signal) => format!("Killed by signal {number} ({}).", signal.as_str()),
            // Real-time signals have only a number.
            Err(_) => format!("Killed by signal {number}."),
        },
        None => "Killed by a signal.".into(),
    }
}

/// `Class: message` of an encoded exception, in one line.
fn exception(encoded: &Value) -> String {
    let class = escape::line(&field(encoded, "class"));
    let message = escape::line(&field(encoded, "message"));
    if message.is_empty() {
        class
    } else {
        format!("{class}: {message}")
    }
}

/// A field of an encoded value as text: JSON if it is no string, empty if it is missing.
fn field(encoded: &Value, name: &str) -> String {
    match encoded.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn figures(result: &EvalResult) -> String {
    format!(
        "duration={}ms  memory={} KB  exit={}",
        result.duration_ms,
        result.memory_peak_bytes / 1024,
        result.exit_code
    )
}

/// The full byte count of a stream, if any stream was cut.
fn cut(result: &EvalResult, count: fn(altair_engine::OutputTruncated) -> u64) -> Option<u64> {
    result.diagnostics.output_truncated.map(count)
}

fn section(out: &mut String, name: &str, text: &str, full: Option<u64>, theme: Theme) {
    if text.is_empty() {
        return;
    }
    // The counts cover both streams if one was cut; the mark tells which one.
    let note = match full {
        Some(bytes) if text.ends_with("...(truncated)") => format!(" cut, {bytes} bytes in all"),
        _ => String::new(),
    };
    line(out, 0, &theme.dim(&format!("— {name} —{note}")));
    let text = escape::block(text);
    out.push_str(&text);
    if !text.ends_with('\n') {
        out.push('\n');
    }
}
