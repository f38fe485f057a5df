//! The tool: its name, arguments, result and effects.

use std::sync::Arc;

use altair_engine::{DEFAULT_TIMEOUT_MS, Database, MAX_TIMEOUT_MS, MIN_TIMEOUT_MS};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::permits::Permits;

/// Its name.
pub const NAME: &str = "framework__eval";

// Its arguments.
pub const SNIPPET: &str = "snippet";
pub const TIMEOUT_MS: &str = "timeout_ms";
pub const WRITES: &str = "allow_writes";
pub const NETWORK: &str = "allow_network";
pub const DATABASE: &str = "database";
pub const QUERIES: &str = "queries";
pub const ARGUMENTS: &str = "arguments";
pub const DEPTH: &str = "depth";
pub const MAX_ITEMS: &str = "max_items";
pub const MAX_STRING: &str = "max_string";
pub const DIFF: &str = "diff";
pub const VERBOSE: &str = "verbose";
pub const TYPED: &str = "typed";

/// All of its arguments.
pub const NAMES: [&str; 13] = [
    SNIPPET, TIMEOUT_MS, WRITES, NETWORK, DATABASE, QUERIES, ARGUMENTS, DEPTH, MAX_ITEMS,
    MAX_STRING, DIFF, VERBOSE, TYPED,
];
/// Those that say how an answer is written, and are no field of a request.
#[cfg(test)]
const OF_THE_ANSWER: [&str; 2] = [VERBOSE, TYPED];

const DESCRIPTION: &str = "Runs a few lines of PHP against this application, booted as it is now, in a confined one-shot process, and tells what they return, print or throw. Use it to check a hypothesis about the code instead of guessing: what a method returns for an input, which exception is thrown, what a configuration value or a query is, whether a class autoloads.\n\nThe code is a function body: `return` gives the result; a single expression needs none. `container()` is the application's PSR-11 container, `container($id)` an entry of it. Nothing is kept between calls: each starts from the application as it is on disk, and what it writes to the project is thrown away and listed in `diagnostics.file_changes`, unless the server permits `allow_writes`. There are no processes, and no connections but to the application's own services (its database, its cache), unless the server permits `allow_network`; database sessions are read-only unless it permits `allow_writes`, or `database` with `rollback`: then they write, and all of it is rolled back. What was refused is in `diagnostics.blocked`, with the switch that lifts it. Output is cut at 16 KiB a stream, values at a depth of 3.";

/// The tool's description for a client.
pub fn describe(permits: Permits) -> Tool {
    // By default a run changes nothing and reaches no other machine: its writes to the project are
    // discarded. With writes it may change or remove any file of the project, and the next boot
    // runs code that it leaves there. What it may do to a service depends on the service: only
    // sessions of PHP's database clients are read-only.
    let changes = permits.writes || permits.rollback || permits.network || permits.services;
    let annotations = ToolAnnotations::from_raw(
        Some("Evaluate PHP in the application".into()),
        Some(!changes),
        Some(changes),
        Some(!changes),
        Some(permits.network),
    );
    Tool::new(NAME, DESCRIPTION, object(input()))
        .with_title("Evaluate PHP in the application")
        .with_raw_output_schema(object(output()))
        .with_annotations(annotations)
}

fn object(schema: Value) -> Arc<JsonObject> {
    Arc::new(match schema {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    })
}

/// The schema of the arguments.
fn input() -> Value {
    json!({
        "type": "object",
        "properties": {
            SNIPPET: {
                "type": "string",
                "minLength": 1,
                "description": "PHP code; a leading <?php is accepted."
            },
            TIMEOUT_MS: {
                "type": "integer",
                "minimum": MIN_TIMEOUT_MS,
                "maximum": MAX_TIMEOUT_MS,
                "default": DEFAULT_TIMEOUT_MS,
                "description": "Deadline of the run in milliseconds, boot included."
            },
            WRITES: {
                "type": "boolean",
                "default": false,
                "description": "Make writes to the project and its databases real. Only where the server was started with --allow-writes."
            },
            NETWORK: {
                "type": "boolean",
                "default": false,
                "description": "Open outbound connections. Only where the server was started with --allow-network."
            },
            DATABASE: {
                "enum": Database::ALL.map(Database::name),
                "description": "What database sessions may do; rollback: write, and all of it is rolled back. Only where the server was started with --allow-rollback; write with --allow-writes. By default they only read, or write with allow_writes."
            },
            QUERIES: {
                "type": "boolean",
                "default": false,
                "description": "Tell in `diagnostics.queries` which statements databases were asked: how often, rows, time, and the line that asks; and in `diagnostics.database_changes` what they changed. Always told with rollback."
            },
            ARGUMENTS: {"type": "object", "description": "Variables of the snippet, by name."},
            DEPTH: {"type": "integer", "description": "How deep the value is shown."},
            MAX_ITEMS: {"type": "integer", "description": "How many items of a container are shown."},
            MAX_STRING: {"type": "integer", "description": "How many bytes of a string are shown."},
            DIFF: {"type": "boolean", "description": "Tell what changed in text files as a diff."},
            VERBOSE: {"type": "boolean", "description": "Tell what is as it should be, too."},
            TYPED: {"type": "boolean", "description": "Give the value in the typed encoding."}
        },
        "required": [SNIPPET],
        "additionalProperties": false
    })
}

/// The schema of the result: `EvalResult::toArray()`.
fn output() -> Value {
    let optional = |schema: Value| json!({"anyOf": [schema, {"type": "null"}]});
    let count = json!({"type": "integer", "minimum": 0});
    let milliseconds = json!({"type": "number", "minimum": 0});
    let changes = json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "size": count},
            "required": ["path", "size"]
        }
    });
    json!({
        "type": "object",
        "properties": {
            "ok": {"type": "boolean", "description": "No timeout, no exception, exit code 0."},
            "result": optional(json!({
                "type": "object",
                "description": "The encoded value that the code returned.",
                "properties": {"type": {
                    "enum": ["null", "bool", "int", "float", "string", "array", "object", "iterable", "resource", "reference"]
                }},
                "required": ["type"]
            })),
            "stdout": {"type": "string"},
            "stderr": {"type": "string", "description": "PHP's warnings and notices too."},
            "exception": optional(json!({
                "type": "object",
                "properties": {
                    "class": {"type": "string"},
                    "message": {"type": "string"},
                    "file": {"type": "string"},
                    "line": {"type": "integer"},
                    "code": {"type": ["integer", "string"]},
                    "stack_trace": {"type": "array", "items": {"type": "string"}},
                    "previous": {"type": "array", "items": {"type": "object"}}
                },
                "required": ["class", "message", "file", "line", "code", "stack_trace"]
            })),
            "duration_ms": count,
            "memory_peak_bytes": count,
            "exit_code": {"type": "integer"},
            "timed_out": {"type": "boolean"},
            "diagnostics": {
                "type": "object",
                "properties": {
                    "outcome": {"enum": [
                        "returned", "threw", "exited", "fatal", "out_of_memory", "timed_out", "signalled",
                        "boot_failed", "no_report"
                    ]},
                    "phase": {"enum": ["boot", "snippet", "encode"]},
                    "message": {"type": "string"},
                    "location": {
                        "type": "object",
                        "properties": {
                            "file": {"type": "string"},
                            "line": {"type": "integer"},
                            "stack_trace": {"type": "array", "items": {"type": "string"}}
                        },
                        "required": ["file", "line", "stack_trace"]
                    },
                    "signal": {"type": "integer"},
                    "timings_ms": {
                        "type": "object",
                        "properties": {
                            "start": milliseconds, "boot": milliseconds, "snippet": milliseconds,
                            "encode": milliseconds, "total": milliseconds
                        },
                        "required": ["total"]
                    },
                    "start": {"enum": ["cold", "first", "warm", "booted"]},
                    "start_reason": {"type": "string"},
                    "blocked": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "what": {"type": "string"},
                                "guard": {"type": "string"},
                                "lift": {"type": ["string", "null"]}
                            },
                            "required": ["what", "guard", "lift"]
                        }
                    },
                    "file_changes": {
                        "type": "object",
                        "properties": {
                            "created": changes, "modified": changes, "deleted": changes,
                            "more": count, "incomplete": {"type": "boolean"}
                        },
                        "required": ["created", "modified", "deleted"]
                    },
                    "queries": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "sql": {"type": "string"}, "times": count, "rows": count,
                                "ms": milliseconds, "at": {"type": "string"}
                            },
                            "required": ["sql", "times", "rows", "ms"]
                        }
                    },
                    "queries_more": {
                        "type": "object",
                        "properties": {"times": count, "rows": count, "ms": milliseconds},
                        "required": ["times", "rows", "ms"]
                    },
                    "database_changes": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "object",
                            "properties": {"inserted": count, "updated": count, "deleted": count},
                            "required": ["inserted", "updated", "deleted"]
                        }
                    },
                    "output_truncated": {
                        "type": "object",
                        "properties": {"stdout": count, "stderr": count},
                        "required": ["stdout", "stderr"]
                    },
                    "resolved": {"type": "object", "additionalProperties": {"type": "string"}},
                    "redacted": {"type": "array", "items": {"type": "string"}},
                    "guards": {"type": "object", "additionalProperties": {"type": "string"}}
                },
                "required": ["outcome", "timings_ms", "start"]
            }
        },
        "required": [
            "ok", "result", "stdout", "stderr", "exception", "duration_ms", "memory_peak_bytes", "exit_code",
            "timed_out", "diagnostics"
        ],
        "additionalProperties": false
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn arguments_are_those_of_the_table_of_options() {
        let table: Value = serde_json::from_str(include_str!("../../engine/options.json")).unwrap();
        let rows = table.as_array().unwrap().iter();
        let mut expected: BTreeSet<&str> = rows.filter_map(|row| row["mcp"].as_str()).collect();
        expected.extend(OF_THE_ANSWER);
        assert_eq!(BTreeSet::from(NAMES), expected);
        let schema = input();
        let told = schema["properties"].as_object().unwrap();
        assert_eq!(
            told.keys().map(String::as_str).collect::<BTreeSet<_>>(),
            expected
        );
    }
}
