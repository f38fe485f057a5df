//! One event of the audit log as a line.

use serde_json::{Map, Value};

use crate::args::Format;
use crate::escape;
use crate::human::Theme;

/// Characters of a snippet shown in a line; `--format=json` has all of them.
const SNIPPET_PREVIEW: usize = 80;
/// Width of the longest status, `partial`.
const STATUS_WIDTH: usize = 7;

/// How events are printed.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    /// As fields in a line for people, or the log's line unchanged.
    pub format: Format,
    /// Colours of the line for people.
    pub theme: Theme,
    /// Whether a terminal shows it, so control characters must be escaped even in valid JSON.
    pub for_terminal: bool,
}

impl Printer {
    /// Whether a line of the log is an event: not garbage, and complete.
    pub fn accepts(line: &[u8]) -> bool {
        event(line).is_some()
    }

    /// The line to print, with its line feed; `None` if it is no event.
    pub fn print(self, line: &[u8]) -> Option<Vec<u8>> {
        let event = event(line)?;
        let mut text = match self.format {
            Format::Human => human(&event, self.theme).into_bytes(),
            Format::Json if self.for_terminal => {
                escape::json(&String::from_utf8_lossy(line)).into_bytes()
            }
            Format::Json => line.to_vec(),
        };
        text.push(b'\n');
        Some(text)
    }
}

fn event(line: &[u8]) -> Option<Map<String, Value>> {
    match serde_json::from_slice(line) {
        Ok(Value::Object(event)) => Some(event),
        _ => None,
    }
}

fn human(event: &Map<String, Value>, theme: Theme) -> String {
    let status = text(event.get("status")).unwrap_or_else(|| "-".into());
    let padded = format!("{status:<STATUS_WIDTH$}");
    let mut fields = vec![
        theme.dim(&text(event.get("timestamp")).unwrap_or_else(|| "-".into())),
        match status.as_str() {
            "ok" => theme.good(&padded),
            "fail" => theme.bad(&padded),
            _ => theme.dim(&padded),
        },
    ];
    fields.extend(
        ["actor", "user", "client", "command"]
            .iter()
            .filter_map(|name| text(event.get(*name))),
    );
    // Until the run has ended there is no duration.
    if status != "partial" {
        fields.extend(text(event.get("duration_ms")).map(|ms| format!("{ms}ms")));
    }
    let extra = event.get("extra").and_then(Value::as_object);
    fields.extend(extra.map(switches).filter(|switches| !switches.is_empty()));
    fields.extend(
        extra
            .and_then(|extra| extra.get("snippet"))
            .and_then(Value::as_str)
            .map(preview),
    );
    fields.extend(text(event.get("error")).map(|error| theme.bad(&format!("error: {error}"))));
    fields.join("  ")
}

/// The permissions of the run.
fn switches(extra: &Map<String, Value>) -> String {
    [
        ("unsafe", "unsafe"),
        ("allow_writes", "writes"),
        ("allow_network", "network"),
    ]
    .iter()
    .filter(|(field, _)| extra.get(*field) == Some(&Value::Bool(true)))
    .map(|(_, switch)| *switch)
    .collect::<Vec<_>>()
    .join("+")
}

/// The start of a snippet, in one line with white space collapsed.
fn preview(snippet: &str) -> String {
    let joined = snippet
        .split_ascii_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    match joined.char_indices().nth(SNIPPET_PREVIEW) {
        Some((end, _)) => format!("{}…", escape::line(&joined[..end])),
        None => escape::line(&joined),
    }
}

/// A field in one line; `None` if it is missing or empty.
fn text(field: Option<&Value>) -> Option<String> {
    match field? {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(escape::line(text)),
        other => Some(escape::line(&other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn printed(line: &str, format: Format, for_terminal: bool) -> Option<String> {
        let printer = Printer {
            format,
            theme: Theme::new(false),
            for_terminal,
        };
        printer
            .print(line.as_bytes())
            .map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn an_event_is_a_line_of_what_matters() {
        let line = r#"{"id":"01","timestamp":"2026-01-02T03:04:05.678+00:00","actor":"cli","user":"ada","client":null,"command":"eval","kind":"eval","status":"fail","duration_ms":12,"error":"RuntimeException: boom","extra":{"run":"01","unsafe":true,"allow_writes":false,"allow_network":true,"snippet":"throw\n  new \u001b[31mX;","exit_code":1}}"#;
        assert_eq!(
            printed(line, Format::Human, true).unwrap(),
            "2026-01-02T03:04:05.678+00:00  fail     cli  ada  eval  12ms  unsafe+network  \
             throw new \\x1b[31mX;  error: RuntimeException: boom\n"
        );
    }

    #[test]
    fn an_event_with_nothing_in_it_is_still_shown() {
        assert_eq!(printed("{}", Format::Human, false).unwrap(), "-  -      \n");
    }

    #[test]
    fn a_long_snippet_is_cut_at_a_character() {
        let line = format!(
            r#"{{"status":"ok","extra":{{"snippet":"{}"}}}}"#,
            "é".repeat(200)
        );
        let text = printed(&line, Format::Human, false).unwrap();
        assert!(
            text.ends_with(&format!("  {}…\n", "é".repeat(80))),
            "{text}"
        );
    }

    #[test]
    fn garbage_is_no_event() {
        for line in ["", "{", "[1]", "12", "\"x\"", "{} x"] {
            assert_eq!(printed(line, Format::Human, false), None, "{line}");
            assert!(!Printer::accepts(line.as_bytes()), "{line}");
        }
    }

    #[test]
    fn json_is_the_line_itself_but_for_what_a_terminal_would_act_on() {
        let line = "{\"b\":1, \"a\":\"\u{9b}x\"}";
        assert_eq!(
            printed(line, Format::Json, false).unwrap(),
            format!("{line}\n")
        );
        assert_eq!(
            printed(line, Format::Json, true).unwrap(),
            "{\"b\":1, \"a\":\"\\u009bx\"}\n"
        );
    }
}
