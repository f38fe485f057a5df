//! The result: one shape for every way a run can end.

use std::borrow::Cow;
use std::collections::BTreeMap;

use altair_sandbox::bounded::at_most;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::EvalError;
use crate::encode::MAX_TRACE_FRAMES;
use crate::guards::{Guard, GuardState, GuardStates};
use crate::queries::{MoreQueries, Query, RowChanges};

/// How a run ended. The names are the values of `diagnostics.outcome`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The snippet ran to its end; there is a result.
    Returned,
    /// An exception or a parse error left the snippet.
    Threw,
    /// The snippet called `exit`.
    Exited,
    /// A fatal error ended PHP.
    Fatal,
    /// `memory_limit` or the hard cap was reached.
    OutOfMemory,
    /// The deadline passed.
    TimedOut,
    /// A signal ended the child.
    Signalled,
    /// The application could not be booted.
    BootFailed,
    /// The child ended without a genuine report.
    NoReport,
}

/// Which part of a run was under way when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Autoloader and container.
    Boot,
    /// The snippet, with the shutdown functions and destructors it left.
    Snippet,
    /// Encoding the value, which may run the application's code.
    Encode,
}

/// The number of stack frames to read: twice as many as are shown.
const FRAMES_MAX: usize = 2 * MAX_TRACE_FRAMES;

/// Where the code was: the place of a fatal error, or where the snippet was at the deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// The file; `snippet` for the snippet itself.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// Frames from the innermost out, `function (file:line)`, without argument values.
    #[serde(default, deserialize_with = "at_most::<FRAMES_MAX, _, _>")]
    pub stack_trace: Vec<String>,
}

/// Where the time went, each in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Timings {
    /// From the call to the child's first own instruction: process, PHP's start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<f64>,
    /// Autoloader and container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<f64>,
    /// The snippet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<f64>,
    /// Encoding its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encode: Option<f64>,
    /// The whole call, as measured by the host.
    pub total: f64,
}

/// Full byte counts of streams of which only the head was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputTruncated {
    /// Bytes written to standard output.
    pub stdout: u64,
    /// Bytes written to standard error.
    pub stderr: u64,
}

/// Something the run tried and was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// What was tried: `shell_exec()`.
    pub what: String,
    /// The guard that refused it.
    pub guard: Guard,
    /// The command line's flag that allows it, if any does.
    pub lift: Option<String>,
}

/// A file that a run created, changed or removed in its layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Relative to the project root; a directory's path ends with a slash.
    pub path: String,
    /// Bytes; for a removed file, its former size.
    pub size: u64,
    /// What it is, if not a regular file.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub file_type: Option<FileType>,
    /// Where a link leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The mode before and afterwards, if that changed: `755 → 777`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What else there is to say, for people: attributes, owners, and what of it is never made real.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The change as a unified diff, if the request asks for it and both sides are text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// What a path stands for that is no regular file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileType {
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A named pipe.
    Pipe,
}

/// What boot changed and the run has left alone, such as a framework's cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BootChanges {
    /// As in [`FileChanges`].
    pub created: Vec<FileChange>,
    /// As in [`FileChanges`].
    pub modified: Vec<FileChange>,
    /// As in [`FileChanges`].
    pub deleted: Vec<FileChange>,
}

/// What a run did to its throwaway layer, each list sorted by path; at most a hundred entries in
/// all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileChanges {
    /// Files and directories that did not exist before.
    pub created: Vec<FileChange>,
    /// Files whose content, mode or type changed.
    pub modified: Vec<FileChange>,
    /// Files and directories that no longer exist.
    pub deleted: Vec<FileChange>,
    /// The number of changes that are not listed, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more: Option<u64>,
    /// `true` if the comparison took too long to finish: there may be further changes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// The number of text files whose diff did not fit, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diffs_left_out: Option<u64>,
    /// How much boot changed, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<u64>,
    /// The first of these changes. Only a complete answer has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_changes: Option<BootChanges>,
}

impl FileChanges {
    /// The listed changes of the run itself.
    pub fn each(&self) -> impl Iterator<Item = &FileChange> {
        self.created
            .iter()
            .chain(&self.modified)
            .chain(&self.deleted)
    }
}

/// Further facts about a run. Serialises to `diagnostics`; keys appear only if they apply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Diagnostics {
    /// How the run ended.
    pub outcome: Outcome,
    /// The part that was under way, if the run did not finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// What happened, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Where the code was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// What may have been meant instead of what does not exist, and the line of a parse error: a line
    /// each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// The number of the signal that ended the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Where the time went.
    pub timings_ms: Timings,
    /// How the child was started: `cold`, `warm`, `first` for the call that made the template,
    /// `booted` if a template could not boot for it.
    pub start: Cow<'static, str>,
    /// Why no template booted for it, if one should have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_reason: Option<String>,
    /// Whether the pool has carried it out. Only a complete answer has this.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pool: bool,
    /// What was refused, in order, each thing once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<Blocked>,
    /// What the run did to its throwaway layer, which has been discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_changes: Option<FileChanges>,
    /// The database statements, in order, each once. Present only if they were to be reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries: Option<Vec<Query>>,
    /// A summary of the statements after the first fifty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries_more: Option<MoreQueries>,
    /// Row changes by table, as far as the servers report them, without those that the application
    /// itself rolled back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub database_changes: BTreeMap<String, RowChanges>,
    /// Byte counts, if a stream was truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_truncated: Option<OutputTruncated>,
    /// Short class names in the snippet, and the classes of the project that they were taken for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resolved: BTreeMap<String, String>,
    /// The names of secrets that were replaced in this answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<String>,
    /// The state of each guard; in JSON as text: `in force`, or why not.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "in_words",
        deserialize_with = "from_words"
    )]
    pub guards: GuardStates,
}

impl Diagnostics {
    /// Diagnostics that hold only how a run ended.
    #[must_use]
    pub fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            phase: None,
            message: None,
            location: None,
            hints: Vec::new(),
            signal: None,
            timings_ms: Timings::default(),
            start: Cow::default(),
            start_reason: None,
            pool: false,
            blocked: Vec::new(),
            file_changes: None,
            queries: None,
            queries_more: None,
            database_changes: BTreeMap::new(),
            output_truncated: None,
            resolved: BTreeMap::new(),
            redacted: Vec::new(),
            guards: BTreeMap::new(),
        }
    }
}

/// The answer. [`EvalResult::to_json`] is its public shape; what it serialises to is for processes of
/// the same build. `D`: how its diagnostics are held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalResult<D = Diagnostics> {
    /// The encoded value; `None` unless the snippet returned.
    pub result: Option<Value>,
    /// The head of standard output, valid UTF-8.
    pub stdout: String,
    /// The head of standard error, valid UTF-8.
    pub stderr: String,
    /// The encoded exception, if one ended the run.
    pub exception: Option<Value>,
    /// The snippet's own time if there is a report, otherwise the elapsed time, in milliseconds.
    pub duration_ms: u64,
    /// PHP's real peak, in bytes; 0 if the child could not report it.
    pub memory_peak_bytes: u64,
    /// 0, or the code of the outcome table.
    pub exit_code: i32,
    /// Whether the deadline ended the run.
    pub timed_out: bool,
    /// Further facts.
    pub diagnostics: D,
}

impl EvalResult {
    /// Returns whether the run was clean: no timeout, no exception, exit code 0.
    #[must_use]
    pub fn ok(&self) -> bool {
        !self.timed_out && self.exception.is_none() && self.exit_code == 0
    }

    /// The public shape: the ten keys of `EvalResult::toArray()`, in their order.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("ok".into(), self.ok().into());
        map.insert("result".into(), self.result.clone().into());
        map.insert("stdout".into(), self.stdout.as_str().into());
        map.insert("stderr".into(), self.stderr.as_str().into());
        map.insert("exception".into(), self.exception.clone().into());
        map.insert("duration_ms".into(), self.duration_ms.into());
        map.insert("memory_peak_bytes".into(), self.memory_peak_bytes.into());
        map.insert("exit_code".into(), self.exit_code.into());
        map.insert("timed_out".into(), self.timed_out.into());
        map.insert("diagnostics".into(), self.diagnostics_json());
        Value::Object(map)
    }

    /// Reads a result in its public shape. Anybody can make one, so a missing key or one of another
    /// type is treated as absent. Without an outcome in `diagnostics`, the other keys imply it.
    #[must_use]
    pub fn from_json(mut json: Value) -> Self {
        let mut take = |key: &str| json.get_mut(key).map(Value::take).filter(|v| !v.is_null());
        let number = |value: Option<Value>| value.and_then(|value| value.as_i64()).unwrap_or(0);
        let mut told = take("diagnostics").unwrap_or_default();
        let exit_code = number(take("exit_code"));
        let mut result = Self {
            result: take("result"),
            stdout: take("stdout").map(text).unwrap_or_default(),
            stderr: take("stderr").map(text).unwrap_or_default(),
            exception: take("exception"),
            duration_ms: number(take("duration_ms")).try_into().unwrap_or(0),
            memory_peak_bytes: number(take("memory_peak_bytes")).try_into().unwrap_or(0),
            exit_code: i32::try_from(exit_code).unwrap_or(i32::MAX),
            timed_out: take("timed_out") == Some(Value::Bool(true)),
            diagnostics: Diagnostics::of(Outcome::Returned),
        };
        result.diagnostics = Diagnostics {
            outcome: field::<Option<Outcome>>(&mut told, "outcome")
                .unwrap_or_else(|| result.implied()),
            phase: field(&mut told, "phase"),
            message: field(&mut told, "message"),
            location: field(&mut told, "location"),
            hints: field(&mut told, "hints"),
            signal: field(&mut told, "signal"),
            timings_ms: field(&mut told, "timings_ms"),
            start: field(&mut told, "start"),
            start_reason: field(&mut told, "start_reason"),
            pool: field(&mut told, "pool"),
            blocked: each(field(&mut told, "blocked")),
            file_changes: field(&mut told, "file_changes"),
            queries: field(&mut told, "queries"),
            queries_more: field(&mut told, "queries_more"),
            database_changes: field(&mut told, "database_changes"),
            output_truncated: field(&mut told, "output_truncated"),
            resolved: field(&mut told, "resolved"),
            redacted: field(&mut told, "redacted"),
            guards: of_words(field(&mut told, "guards")),
        };
        result
    }

    /// How the run ended, derived without `diagnostics`.
    fn implied(&self) -> Outcome {
        match self {
            Self {
                timed_out: true, ..
            } => Outcome::TimedOut,
            Self {
                exception: Some(_), ..
            } => Outcome::Threw,
            Self { exit_code: 0, .. } => Outcome::Returned,
            _ => Outcome::Exited,
        }
    }

    /// The result as JSON, for another process of this build.
    #[must_use]
    pub fn told(&self) -> ToldResult {
        // Strings, finite numbers and JSON's own values: JSON can represent all of them.
        ToldResult(serde_json::to_vec(self).unwrap_or_default())
    }

    /// `diagnostics` as a JSON object.
    #[must_use]
    pub fn diagnostics_json(&self) -> Value {
        // Plain structs of strings and finite numbers: JSON can represent all of them.
        serde_json::to_value(&self.diagnostics).unwrap_or_else(|_| Value::Object(Map::new()))
    }
}

/// A result as another process of this build has told it: a JSON object with the keys of
/// [`EvalResult::to_json`], without `ok`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldResult(pub Vec<u8>);

impl ToldResult {
    /// The result, with its diagnostics as [`Diagnostics`], or as JSON for whoever only hands them on.
    ///
    /// # Errors
    /// [`EvalError::Launch`] if it is none.
    pub fn read<D: DeserializeOwned>(&self) -> Result<EvalResult<D>, EvalError> {
        serde_json::from_slice(&self.0).map_err(|why| {
            EvalError::Launch(format!(
                "The answer of the pool cannot be read: {why}. The run may have had effects, so it was not made again."
            ))
        })
    }
}

/// The answer to a request.
#[derive(Debug)]
pub enum Answered {
    /// This process has made the run.
    Here(Box<EvalResult>),
    /// Another one has.
    Elsewhere(ToldResult),
}

impl Answered {
    /// # Errors
    /// As for [`ToldResult::read`].
    pub fn into_result(self) -> Result<EvalResult, EvalError> {
        match self {
            Self::Here(result) => Ok(*result),
            Self::Elsewhere(told) => told.read(),
        }
    }
}

fn in_words<S: Serializer>(states: &GuardStates, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(
        states
            .iter()
            .map(|(guard, state)| (guard, state.to_string())),
    )
}

fn from_words<'d, D: Deserializer<'d>>(deserializer: D) -> Result<GuardStates, D::Error> {
    BTreeMap::deserialize(deserializer).map(of_words)
}

/// Parses the states from their text. Skips unknown guards; a text that is no known state becomes a
/// missing guard's reason.
fn of_words(words: BTreeMap<String, String>) -> GuardStates {
    let states = words.into_iter().filter_map(|(name, words)| {
        let rest = |start: &str| words.strip_prefix(start).map(str::to_owned);
        let state = match (rest("degraded to "), rest("left out: ")) {
            _ if words == GuardState::InForce.to_string() => GuardState::InForce,
            (Some(to), _) => GuardState::Degraded { to },
            (_, Some(because)) => GuardState::LeftOut { because },
            _ => GuardState::Missing {
                because: rest("missing: ").unwrap_or(words),
            },
        };
        Some((name.parse().ok()?, state))
    });
    states.collect()
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Takes a field; its type's default if it is missing or has another shape.
fn field<T: DeserializeOwned + Default>(object: &mut Value, key: &str) -> T {
    let value = object.get_mut(key).map(Value::take);
    value
        .and_then(|value| serde_json::from_value(value).ok())
        .unwrap_or_default()
}

/// The items that have the expected shape.
fn each<T: DeserializeOwned>(items: Vec<Value>) -> Vec<T> {
    let items = items.into_iter();
    items
        .filter_map(|item| serde_json::from_value(item).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_public_shape_can_be_read_again() {
        let result = EvalResult {
            result: None,
            stdout: "out".into(),
            stderr: "err".into(),
            exception: Some(json!({"class": "E"})),
            duration_ms: 7,
            memory_peak_bytes: 1 << 40,
            exit_code: 1,
            timed_out: false,
            diagnostics: Diagnostics {
                phase: Some(Phase::Encode),
                signal: Some(9),
                hints: vec!["did you mean b?".into()],
                start: "warm".into(),
                blocked: vec![Blocked {
                    what: "w".into(),
                    guard: Guard::Ini,
                    lift: None,
                }],
                file_changes: Some(FileChanges {
                    more: Some(3),
                    ..FileChanges::default()
                }),
                queries: Some(vec![Query {
                    sql: "SELECT 1".into(),
                    times: 2,
                    rows: 2,
                    ms: 0.5,
                    at: Some("src/Orders.php:40".into()),
                }]),
                queries_more: Some(MoreQueries::default()),
                database_changes: BTreeMap::from([("orders".into(), RowChanges::default())]),
                resolved: BTreeMap::from([("User".into(), "App\\User".into())]),
                guards: [
                    (Guard::Ini, GuardState::InForce),
                    (
                        Guard::Landlock,
                        GuardState::Missing {
                            because: "old".into(),
                        },
                    ),
                    (Guard::Limits, GuardState::Degraded { to: "some".into() }),
                    (
                        Guard::Seccomp,
                        GuardState::LeftOut {
                            because: "so".into(),
                        },
                    ),
                ]
                .into(),
                ..Diagnostics::of(Outcome::Threw)
            },
        };

        assert_eq!(EvalResult::from_json(result.to_json()), result);
        let read = result.told().read::<Map<String, Value>>();
        assert_eq!(
            read.map(|read| Value::Object(read.diagnostics)).ok(),
            Some(result.diagnostics_json())
        );
        assert_eq!(result.told().read().ok(), Some(result));
    }

    #[test]
    fn what_is_no_result_is_an_error_that_says_that_it_ran() {
        for odd in ["", "[]", "{}", r#"{"result": null}"#] {
            let error = ToldResult(odd.into())
                .read::<Map<String, Value>>()
                .map_err(|error| error.to_string());
            assert!(error.is_err_and(|error| error.contains("may have had effects")));
        }
    }

    #[test]
    fn without_diagnostics_the_rest_tells_how_it_ended() {
        let outcome = |json| EvalResult::from_json(json).diagnostics.outcome;

        assert_eq!(outcome(json!({"timed_out": true})), Outcome::TimedOut);
        assert_eq!(outcome(json!({"exception": {}})), Outcome::Threw);
        assert_eq!(outcome(json!({"exit_code": 3})), Outcome::Exited);
        assert_eq!(outcome(json!({"diagnostics": []})), Outcome::Returned);
        assert_eq!(
            outcome(json!({"exit_code": "3", "diagnostics": {"outcome": 7}})),
            Outcome::Returned
        );
        assert_eq!(outcome(json!({"exit_code": 1_u64 << 40})), Outcome::Exited);
        assert_eq!(outcome(json!(null)), Outcome::Returned);
    }

    #[test]
    fn one_odd_field_leaves_the_others() {
        let told = json!({
            "outcome": "fatal", "message": "boom", "phase": "later", "signal": "9", "start": null,
            "timings_ms": [], "guards": [], "location": {"file": "f", "line": 7},
            "blocked": [{"what": "w", "guard": "moat", "lift": null}, {"what": "w", "guard": "ini", "lift": null}, 7],
        });
        let diagnostics = EvalResult::from_json(json!({"diagnostics": told})).diagnostics;

        assert_eq!(diagnostics.outcome, Outcome::Fatal);
        assert_eq!(diagnostics.message.as_deref(), Some("boom"));
        assert_eq!(diagnostics.location.map(|at| at.line), Some(7));
        assert_eq!((diagnostics.phase, diagnostics.signal), (None, None));
        assert_eq!(diagnostics.blocked.len(), 1);
        assert!(diagnostics.guards.is_empty());
    }
}
