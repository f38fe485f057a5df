//! What an answer leaves out: everything that is as it should be.

mod lift;

use serde_json::{Map, Value};

use crate::EvalResult;
use crate::encode::{COMPACT_MAX_BYTES, compact};
use crate::guards::GuardState;

/// How an answer is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answer {
    /// Whether it is complete.
    pub verbose: bool,
    /// Whether the value is in the typed encoding, and not in the compact one.
    pub typed: bool,
    /// Who reads it.
    pub reader: Reader,
}

/// Who reads an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reader {
    /// A program that has called the command line: values of any size, flags of the command line.
    #[default]
    Program,
    /// An agent that has called the tool: at most [`COMPACT_MAX_BYTES`] of a compact value, and
    /// arguments of the tool instead of flags.
    Agent,
}

impl Answer {
    /// The answer to an agent. Unless it is verbose, it leaves out every key that holds its default:
    /// empty output, no exception, exit code 0, no timeout, the result of a run that failed,
    /// `outcome` where it is `returned`, empty diagnostics; and the memory peak.
    #[must_use]
    pub fn of(self, result: &EvalResult) -> Value {
        let mut answer = match public(result, self.verbose) {
            Value::Object(answer) => answer,
            other => return other,
        };
        if let (false, Some(typed)) = (self.typed, &result.result) {
            let budget = match self.reader {
                Reader::Program => None,
                Reader::Agent => Some(COMPACT_MAX_BYTES),
            };
            answer.insert("result".into(), compact(typed, budget));
        }
        if let (Reader::Agent, Some(diagnostics)) = (self.reader, answer.get_mut("diagnostics")) {
            lift::name_arguments(diagnostics);
        }
        if self.verbose {
            return answer.into();
        }
        if let Some(Value::Object(diagnostics)) = answer.get_mut("diagnostics")
            && diagnostics
                .get("outcome")
                .is_some_and(|it| it == "returned")
        {
            diagnostics.shift_remove("outcome");
        }
        let ok = result.ok();
        answer.retain(|key, value| match key.as_str() {
            "ok" | "duration_ms" => true,
            "result" => ok || !value.is_null(),
            "memory_peak_bytes" => false,
            _ => !is_default(value),
        });
        answer.into()
    }
}

/// The ten keys of `EvalResult::toArray()`.
#[must_use]
pub fn public(result: &EvalResult, verbose: bool) -> Value {
    let mut json = result.to_json();
    if !verbose && let Some(Value::Object(diagnostics)) = json.get_mut("diagnostics") {
        leave_out(diagnostics);
    }
    json
}

/// Removes from `diagnostics` what [`expected`] names.
fn leave_out(diagnostics: &mut Map<String, Value>) {
    for (key, inner) in expected(diagnostics) {
        match inner {
            None => {
                diagnostics.shift_remove(&key);
            }
            Some(inner) => {
                if let Some(Value::Object(map)) = diagnostics.get_mut(&key) {
                    map.shift_remove(&inner);
                }
            }
        }
    }
}

/// The keys of `diagnostics`, and of the objects in it, that only a complete answer has: guards that
/// are in force, `timings_ms`, `pool`, the list of what boot changed, empty lists, and `start` unless the run started
/// otherwise than it should have. A run should start in a template, or cold where there is to be none, or none yet; a
/// `start_reason` says why it did not.
#[must_use]
pub fn expected(diagnostics: &Map<String, Value>) -> Vec<(String, Option<String>)> {
    let in_force = GuardState::InForce.to_string();
    let mut found = Vec::new();
    for (key, value) in diagnostics {
        let inner: Vec<&String> = match value {
            Value::Object(map) => map
                .iter()
                .filter(|(inner, value)| {
                    is_empty(value)
                        || key == "guards" && **value == *in_force
                        || key == "file_changes" && *inner == "boot_changes"
                })
                .map(|(inner, _)| inner)
                .collect(),
            _ => Vec::new(),
        };
        let all = value
            .as_object()
            .is_some_and(|map| map.len() == inner.len());
        let is_expected = match key.as_str() {
            "timings_ms" | "pool" => true,
            "start" => value != "booted" && !diagnostics.contains_key("start_reason"),
            _ => all || is_empty(value),
        };
        if is_expected {
            found.push((key.clone(), None));
        } else {
            let inner = inner.into_iter().cloned();
            found.extend(inner.map(|inner| (key.clone(), Some(inner))));
        }
    }
    found
}

fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const AGENT: Answer = Answer {
        verbose: false,
        typed: false,
        reader: Reader::Agent,
    };

    fn result(diagnostics: Value) -> EvalResult {
        EvalResult::from_json(json!({
            "result": {"type": "int", "value": 2}, "stdout": "", "stderr": "", "exception": null,
            "duration_ms": 1, "memory_peak_bytes": 2_097_152, "exit_code": 0, "timed_out": false,
            "diagnostics": diagnostics,
        }))
    }

    fn lean(diagnostics: Value) -> Value {
        public(&result(diagnostics), false)["diagnostics"].take()
    }

    #[test]
    fn a_clean_answer_is_its_value() {
        let result = result(json!({
            "outcome": "returned", "start": "warm", "timings_ms": {"total": 1.5},
            "guards": {"ini": "in force"}, "queries": [],
        }));
        let text = AGENT.of(&result).to_string();
        assert_eq!(text, r#"{"ok":true,"result":2,"duration_ms":1}"#);
        let typed = Answer {
            typed: true,
            ..AGENT
        };
        assert_eq!(
            typed.of(&result)["result"],
            json!({"type": "int", "value": 2})
        );
        let verbose = Answer {
            verbose: true,
            ..AGENT
        }
        .of(&result);
        assert_eq!(verbose.as_object().map(Map::len), Some(10));
        assert_eq!(verbose["result"], 2);
        assert_eq!(verbose["diagnostics"], result.diagnostics_json());
    }

    #[test]
    fn a_result_of_null_stays_where_the_run_was_clean() {
        let returned = EvalResult::from_json(json!({"result": {"type": "null", "value": null}}));
        assert_eq!(
            AGENT.of(&returned),
            json!({"ok": true, "result": null, "duration_ms": 0})
        );
        let nothing = EvalResult::from_json(json!({"diagnostics": {"outcome": "exited"}}));
        assert_eq!(
            AGENT.of(&nothing),
            json!({"ok": true, "result": null, "duration_ms": 0, "diagnostics": {"outcome": "exited"}})
        );
    }

    #[test]
    fn what_is_not_as_it_should_be_stays() {
        let failed = EvalResult::from_json(json!({
            "stdout": "o", "stderr": "e", "exception": {"class": "E"}, "exit_code": 1,
            "duration_ms": 0, "timed_out": true, "memory_peak_bytes": 7,
            "diagnostics": {"outcome": "timed_out", "signal": 0},
        }));
        assert_eq!(
            AGENT.of(&failed),
            json!({
                "ok": false, "stdout": "o", "stderr": "e", "exception": {"class": "E"},
                "duration_ms": 0, "exit_code": 1, "timed_out": true,
                "diagnostics": {"outcome": "timed_out", "signal": 0},
            })
        );
    }

    #[test]
    fn guards_are_told_where_they_are_not_in_force() {
        assert_eq!(
            lean(
                json!({"guards": {"ini": "in force", "seccomp": "missing: old", "landlock": "degraded to ABI 1"}})
            ),
            json!({"outcome": "returned", "guards": {"landlock": "degraded to ABI 1", "seccomp": "missing: old"}})
        );
    }

    #[test]
    fn a_start_is_told_where_it_was_not_expected() {
        for start in ["warm", "first", "cold"] {
            assert_eq!(
                lean(json!({"start": start})),
                json!({"outcome": "returned"})
            );
        }
        for start in ["booted", "cold"] {
            let told = lean(json!({"start": start, "start_reason": "so"}));
            assert_eq!(
                (&told["start"], &told["start_reason"]),
                (&json!(start), &json!("so"))
            );
        }
        assert_eq!(lean(json!({"start": "booted"}))["start"], "booted");
    }

    #[test]
    fn empty_lists_are_left_out_at_every_place() {
        let file = json!({"path": "a", "size": 1});
        assert_eq!(
            lean(
                json!({"queries": [], "file_changes": {"created": [file]}, "location": {"file": "f", "line": 1}})
            ),
            json!({"outcome": "returned", "location": {"file": "f", "line": 1}, "file_changes": {"created": [file]}})
        );
        assert_eq!(
            lean(json!({"file_changes": {}})),
            json!({"outcome": "returned"})
        );
    }

    #[test]
    fn a_lean_answer_can_be_read_again() {
        let told = json!({
            "outcome": "threw", "start": "cold", "guards": {"ini": "in force", "seccomp": "missing: old"},
            "file_changes": {"created": [{"path": "a", "size": 1}]},
        });
        let lean = EvalResult::from_json(public(&result(told.clone()), false));
        let whole = result(told);
        assert_eq!(lean.result, whole.result);
        assert_eq!(lean.diagnostics.outcome, whole.diagnostics.outcome);
        assert_eq!(
            lean.diagnostics.file_changes,
            whole.diagnostics.file_changes
        );
        assert_eq!(lean.diagnostics.guards.len(), 1);
    }
}
