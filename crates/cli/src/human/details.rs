//! The part between the figures and the output: the place, what was refused, what would have
//! changed, and which guards are not in force.

use std::collections::BTreeMap;

use altair_engine::guards::GuardState;
use altair_engine::hints::ParseErrorLine;
use altair_engine::{Blocked, EvalResult, Outcome, Phase};
use serde_json::Value;

use super::{Theme, changes, exception, field, line, queries};
use crate::escape;

/// Appends every part that has content.
pub fn append(out: &mut String, result: &EvalResult, theme: Theme) {
    explain(out, result);
    hints(out, result, theme);
    place(out, result, theme);
    for (name, class) in &result.diagnostics.resolved {
        let text = format!("{name} is {class}");
        line(out, 1, &theme.dim(&escape::line(&text)));
    }
    refusals(out, &result.diagnostics.blocked, theme);
    if let Some(changes) = &result.diagnostics.file_changes {
        changes::append(out, changes, theme);
    }
    queries::append(out, result, theme);
    let redacted = &result.diagnostics.redacted;
    if !redacted.is_empty() {
        let text = format!("redacted: {}; --no-redact shows them", redacted.join(", "));
        line(out, 1, &theme.notice(&escape::line(&text)));
    }
    unguarded(out, result, theme);
}

/// What did not fit in the headline.
fn explain(out: &mut String, result: &EvalResult) {
    let diagnostics = &result.diagnostics;
    let in_headline = match diagnostics.outcome {
        Outcome::Fatal | Outcome::OutOfMemory | Outcome::BootFailed | Outcome::NoReport => true,
        // The headline says the same, shorter.
        Outcome::TimedOut | Outcome::Signalled => true,
        // Without an exception the message is in the headline.
        Outcome::Threw => result.exception.is_none(),
        Outcome::Returned | Outcome::Exited => false,
    };
    let message = diagnostics.message.as_deref().unwrap_or_default();
    if !in_headline && !message.is_empty() {
        line(out, 1, &escape::line(message));
    }
    match (diagnostics.outcome, diagnostics.phase) {
        (Outcome::Returned | Outcome::BootFailed, _) | (_, Some(Phase::Snippet) | None) => {}
        (_, Some(Phase::Boot)) => line(out, 1, "while the application booted"),
        (_, Some(Phase::Encode)) => line(out, 1, "while the result was encoded"),
    }
    if let (Outcome::BootFailed, Some(thrown)) = (diagnostics.outcome, &result.exception) {
        let told = ["class", "message"]
            .iter()
            .all(|part| message.contains(&field(thrown, part)));
        // Without a message the headline shows the exception itself.
        if !told && !message.is_empty() {
            line(out, 1, &exception(thrown));
        }
    }
}

/// What may have been meant; the line of a parse error with a caret below its place.
fn hints(out: &mut String, result: &EvalResult, theme: Theme) {
    for hint in &result.diagnostics.hints {
        let Some(at) = ParseErrorLine::read(hint) else {
            line(out, 1, &theme.notice(&escape::line(hint)));
            continue;
        };
        line(out, 1, &format!("line {}, column {}:", at.line, at.column));
        line(out, 2, &escape::line(&at.text));
        // A secret in the line was replaced by a text of another length.
        if result.diagnostics.redacted.is_empty() {
            let before: String = at.text.chars().take(at.before()).collect();
            let blank = " ".repeat(escape::line(&before).chars().count());
            line(out, 2, &format!("{blank}{}", theme.bad("^")));
        }
    }
}

/// The place and the trace of the exception, or the place where the code was.
fn place(out: &mut String, result: &EvalResult, theme: Theme) {
    if let Some(thrown) = result
        .exception
        .as_ref()
        .filter(|e| e.get("file").is_some())
    {
        let code = match thrown.get("code") {
            None | Some(Value::Null) => String::new(),
            Some(code) if code == &Value::from(0) => String::new(),
            Some(_) => format!(" (code {})", field(thrown, "code")),
        };
        let at = format!(
            "at {}:{}{code}",
            field(thrown, "file"),
            field(thrown, "line")
        );
        line(out, 1, &escape::line(&at));
        trace(
            out,
            items(thrown, "stack_trace").filter_map(Value::as_str),
            theme,
        );
        for previous in items(thrown, "previous") {
            let at = format!(" ({}:{})", field(previous, "file"), field(previous, "line"));
            line(
                out,
                1,
                &format!("previous: {}{}", exception(previous), escape::line(&at)),
            );
        }
    } else if let Some(location) = &result.diagnostics.location {
        line(
            out,
            1,
            &escape::line(&format!("at {}:{}", location.file, location.line)),
        );
        trace(out, location.stack_trace.iter().map(String::as_str), theme);
    }
}

fn trace<'a>(out: &mut String, frames: impl Iterator<Item = &'a str>, theme: Theme) {
    for frame in frames {
        line(out, 2, &theme.dim(&escape::line(frame)));
    }
}

/// The items of a list in an encoded value; empty if it is missing.
fn items<'a>(encoded: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    encoded
        .get(name)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// What was refused, and what allows it.
pub fn refusals(out: &mut String, blocked: &[Blocked], theme: Theme) {
    for blocked in blocked {
        line(out, 1, &theme.notice(&refusal(blocked)));
    }
}

fn refusal(blocked: &Blocked) -> String {
    let lift = match &blocked.lift {
        Some(flag) => format!("{} allows it", escape::line(flag)),
        None => "nothing allows it".into(),
    };
    format!(
        "refused: {} by {}; {lift}",
        escape::line(&blocked.what),
        blocked.guard
    )
}

/// Guards that are not in force, by reason, so that no guard degrades silently.
fn unguarded(out: &mut String, result: &EvalResult, theme: Theme) {
    let mut reasons: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (guard, state) in &result.diagnostics.guards {
        if *state != GuardState::InForce {
            let guards = reasons.entry(state.to_string()).or_default();
            guards.push(guard.name());
        }
    }
    for (reason, guards) in reasons {
        let text = format!("not in force: {} ({reason})", guards.join(", "));
        line(out, 1, &theme.notice(&escape::line(&text)));
    }
}
