//! JSON in the layout of `Altair\Eval\Support\Json`: four spaces, a final newline.

use serde::Serialize;
use serde_json::ser::PrettyFormatter;

use crate::escape;
use crate::failure::Failure;

/// `value` as text. For a terminal, control characters that JSON allows are escaped.
///
/// # Errors
///
/// If JSON cannot represent the value.
pub fn render(value: &impl Serialize, for_terminal: bool) -> Result<String, Failure> {
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
