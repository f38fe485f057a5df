//! Exceptions: class, message, place, trace, and previous exceptions.

use serde_json::{Map, Value, json};

use super::bounds::STRING_MAX;
use super::{TRUNCATED, shorten};

/// Previous exceptions that are shown.
pub const MAX_PREVIOUS_CHAIN: usize = 10;
/// Frames of a trace that are shown.
pub const MAX_TRACE_FRAMES: usize = 30;

/// An exception as found in PHP.
#[derive(Debug, Clone, PartialEq)]
pub struct ExceptionView {
    /// The exception itself.
    pub head: Previous,
    /// `getCode()`: most often an integer, but a string in a `PDOException`.
    pub code: Code,
    /// The trace, from the innermost frame out; one more than [`MAX_TRACE_FRAMES`] is enough.
    pub frames: Vec<Frame>,
    /// The chain of previous exceptions, nearest first.
    pub previous: Vec<Previous>,
}

/// The code of an exception.
#[derive(Debug, Clone, PartialEq)]
pub enum Code {
    /// An integer.
    Int(i64),
    /// Anything else, as text.
    Text(String),
}

/// What is shown of an exception further down the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Previous {
    /// Its class.
    pub class: String,
    /// Its message.
    pub message: String,
    /// The file it was created in.
    pub file: String,
    /// The line it was created in.
    pub line: i64,
}

/// One frame of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// `Class->method`, `Class::method` or `function`.
    pub function: String,
    /// Where it was called from; `None` if that is inside PHP.
    pub place: Option<(String, u32)>,
}

/// The public shape of an exception.
#[must_use]
pub fn encode_exception(view: &ExceptionView) -> Value {
    let mut map = summary(&view.head);
    map.insert(
        "code".into(),
        match &view.code {
            Code::Int(code) => (*code).into(),
            Code::Text(text) => shorten(text, STRING_MAX).into(),
        },
    );
    map.insert("stack_trace".into(), format_frames(&view.frames).into());
    if !view.previous.is_empty() {
        let chain: Vec<Value> = view
            .previous
            .iter()
            .take(MAX_PREVIOUS_CHAIN)
            .map(|previous| Value::Object(summary(previous)))
            .collect();
        map.insert("previous".into(), chain.into());
    }
    Value::Object(map)
}

/// Frames as text, `function (file:line)`, at most [`MAX_TRACE_FRAMES`] of them.
#[must_use]
pub fn format_frames(frames: &[Frame]) -> Vec<String> {
    let mut lines: Vec<String> = frames
        .iter()
        .take(MAX_TRACE_FRAMES)
        .map(|frame| match &frame.place {
            Some((file, line)) => format!("{} ({file}:{line})", frame.function),
            None => format!("{} (<internal>)", frame.function),
        })
        .map(|line| shorten(&line, STRING_MAX))
        .collect();
    if frames.len() > MAX_TRACE_FRAMES {
        lines.push(TRUNCATED.into());
    }
    lines
}

fn summary(exception: &Previous) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("class".into(), shorten(&exception.class, STRING_MAX).into());
    map.insert(
        "message".into(),
        shorten(&exception.message, STRING_MAX).into(),
    );
    map.insert("file".into(), shorten(&exception.file, STRING_MAX).into());
    map.insert("line".into(), json!(exception.line));
    map
}
