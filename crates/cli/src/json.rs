//! JSON as text with a final newline.

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::PrettyFormatter;

use crate::escape;
use crate::failure::Failure;

/// A result as text: in the layout of `render` for a terminal, otherwise in one line.
pub fn result(value: &Value, for_terminal: bool) -> String {
    match for_terminal.then(|| render(value, true)) {
        Some(Ok(text)) => text,
        // JSON can represent each of its own values.
        Some(Err(_)) | None => format!("{value}\n"),
    }
}

/// `value` in the layout of `Altair\Eval\Support\Json`, which indents by four spaces. For a terminal, control characters that JSON allows are escaped.
///
/// # Errors
///
/// If JSON cannot represent the value.
pub(crate) fn render(value: &impl Serialize, for_terminal: bool) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let layout = PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, layout);
    let failure = |why: String| Failure::new(format!("the result cannot be written: {why}"));
    value
        .serialize(&mut serializer)
        .map_err(|error| failure(error.to_string()))?;
    bytes.push(b'\n');
    let text = String::from_utf8(bytes).map_err(|error| failure(error.to_string()))?;
    Ok(if for_terminal {
        escape::json(&text)
    } else {
        text
    })
}
