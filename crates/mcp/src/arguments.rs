//! Checks the arguments of a call against what the server permits.

use altair_engine::arguments::Arguments;
use altair_engine::{
    Bounded, DEFAULT_TIMEOUT_MS, Database, Depth, MAX_TIMEOUT_MS, MIN_TIMEOUT_MS, ShownItems,
    ShownString,
};
use rmcp::model::JsonObject;
use serde_json::Value;

use crate::tool::{
    ARGUMENTS, DATABASE, DEPTH, DIFF, MAX_ITEMS, MAX_STRING, NAME, NAMES, NETWORK, QUERIES,
    SNIPPET, TIMEOUT_MS, TYPED, VERBOSE, WRITES,
};

/// What a call asks for.
#[derive(Debug, PartialEq)]
pub struct Call {
    /// PHP code.
    pub snippet: String,
    /// The deadline, in milliseconds.
    pub timeout_ms: i64,
    /// Whether writes must be real.
    pub allow_writes: bool,
    /// Whether the network must be open.
    pub allow_network: bool,
    /// What database sessions may do.
    pub database: Option<Database>,
    /// Whether to report database statements.
    pub queries: bool,
    /// Variables of the snippet.
    pub arguments: Arguments,
    /// How deeply containers are shown.
    pub depth: Option<Depth>,
    /// How many items of a container are shown.
    pub max_items: Option<ShownItems>,
    /// How many bytes of a string are shown.
    pub max_string: Option<ShownString>,
    /// Whether changed text files are told of with a diff.
    pub diff: bool,
    /// Whether the answer holds what is as it should be, too.
    pub verbose: bool,
    /// Whether values are in the typed encoding.
    pub typed: bool,
}

impl Call {
    /// Reads what a call brings. Gives everything that is wrong with it, and what to do, for the
    /// agent to read. Whether it may have what it asks for is another question.
    pub fn read(given: Option<JsonObject>) -> Result<Self, String> {
        let mut given = given.unwrap_or_default();
        let mut wrong = Vec::new();
        let snippet = match given.remove(SNIPPET) {
            Some(Value::String(snippet)) if !snippet.is_empty() => snippet,
            Some(Value::String(_)) => {
                wrong.push(format!("`{SNIPPET}` is empty: give some PHP to run."));
                String::new()
            }
            Some(other) => {
                wrong.push(format!(
                    "`{SNIPPET}` must be a string, not {}.",
                    kind(&other)
                ));
                String::new()
            }
            None => {
                wrong.push(format!("`{SNIPPET}` is missing: the PHP code to run."));
                String::new()
            }
        };
        let timeout_ms = match given.remove(TIMEOUT_MS) {
            None => DEFAULT_TIMEOUT_MS,
            Some(value) => timeout(&value).unwrap_or_else(|why| {
                wrong.push(why);
                DEFAULT_TIMEOUT_MS
            }),
        };
        let mut flag = |name: &str| match given.remove(name) {
            None => false,
            Some(Value::Bool(is_on)) => is_on,
            Some(other) => {
                wrong.push(format!(
                    "`{name}` must be true or false, not {}.",
                    kind(&other)
                ));
                false
            }
        };
        let allow_writes = flag(WRITES);
        let allow_network = flag(NETWORK);
        let queries = flag(QUERIES);
        let diff = flag(DIFF);
        let verbose = flag(VERBOSE);
        let typed = flag(TYPED);
        let mut number = |name: &str| {
            let value = given.remove(name)?;
            let number = whole(&value);
            if number.is_none() {
                wrong.push(format!(
                    "`{name}` must be an integer, not {}.",
                    kind(&value)
                ));
            }
            number
        };
        let depth = number(DEPTH).map(Bounded::clamped);
        let max_items = number(MAX_ITEMS).map(Bounded::clamped);
        let max_string = number(MAX_STRING).map(Bounded::clamped);
        let arguments = match given.remove(ARGUMENTS) {
            None => Arguments::default(),
            Some(Value::Object(map)) => {
                let given = map.into_iter().map(|(name, value)| (name, value.into()));
                Arguments::new(given.collect()).unwrap_or_else(|why| {
                    wrong.push(why.to_string());
                    Arguments::default()
                })
            }
            Some(other) => {
                wrong.push(format!(
                    "`{ARGUMENTS}` must be an object of names and values, not {}.",
                    kind(&other)
                ));
                Arguments::default()
            }
        };
        let database = given.remove(DATABASE).and_then(|value| {
            let asked = value.as_str().and_then(Database::named);
            if asked.is_none() {
                wrong.push(format!(
                    "`{DATABASE}` must be one of {}.",
                    Database::ALL.map(Database::name).join(", ")
                ));
            }
            asked
        });
        for name in given.keys() {
            wrong.push(match name.as_str() {
                "unsafe" => format!(
                    "There is no way to ask {NAME} for an unsafe run. A person can make one with `altair eval --unsafe`."
                ),
                _ => format!(
                    "There is no argument `{name}`; there are {}.",
                    NAMES.map(|name| format!("`{name}`")).join(", ")
                ),
            });
        }
        if wrong.is_empty() {
            Ok(Self {
                snippet,
                timeout_ms,
                allow_writes,
                allow_network,
                database,
                queries,
                arguments,
                depth,
                max_items,
                max_string,
                diff,
                verbose,
                typed,
            })
        } else {
            Err(format!("Nothing was run. {}", wrong.join(" ")))
        }
    }
}

/// An integer. JSON Schema lets one be written with a fraction of zero.
fn whole(value: &Value) -> Option<i64> {
    let float = || value.as_f64().filter(|n| n.fract() == 0.0);
    value.as_i64().or_else(|| float().map(|n| n as i64))
}

/// A deadline.
fn timeout(value: &Value) -> Result<i64, String> {
    match whole(value) {
        Some(ms) if (MIN_TIMEOUT_MS..=MAX_TIMEOUT_MS).contains(&ms) => Ok(ms),
        Some(_) => Err(format!(
            "`{TIMEOUT_MS}` must be from {MIN_TIMEOUT_MS} to {MAX_TIMEOUT_MS}, not {value}."
        )),
        None => Err(format!(
            "`{TIMEOUT_MS}` must be an integer, not {}.",
            kind(value)
        )),
    }
}

/// The kind of a JSON value, in words.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::permits::{self, Permits, Wanted};
    use serde_json::json;

    fn read(given: Value) -> Result<Call, String> {
        Call::read(given.as_object().cloned())
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let expected = Call {
            snippet: "return 1;".into(),
            timeout_ms: DEFAULT_TIMEOUT_MS,
            allow_writes: false,
            allow_network: false,
            database: None,
            queries: false,
            arguments: Arguments::default(),
            depth: None,
            max_items: None,
            max_string: None,
            diff: false,
            verbose: false,
            typed: false,
        };
        let given = json!({"snippet": "return 1;"});
        assert_eq!(read(given), Ok(expected));
    }

    #[test]
    fn what_is_permitted_may_be_asked_for() {
        let given = json!({"snippet": "1", "timeout_ms": 250.0, "allow_writes": true, "allow_network": true, "database": "rollback", "queries": true, "arguments": {"id": 7}, "depth": 99, "max_items": 5.0, "max_string": 1, "diff": true, "verbose": true, "typed": true});
        let expected = Call {
            snippet: "1".into(),
            timeout_ms: 250,
            allow_writes: true,
            allow_network: true,
            database: Some(Database::Rollback),
            queries: true,
            arguments: Arguments::new(vec![("id".into(), json!(7).into())]).unwrap(),
            depth: Some(Bounded::clamped(10)),
            max_items: Some(Bounded::clamped(5)),
            max_string: Some(Bounded::clamped(100)),
            diff: true,
            verbose: true,
            typed: true,
        };
        assert_eq!(read(given), Ok(expected));
    }

    #[test]
    fn a_database_mode_is_one_of_three() {
        for mode in Database::ALL {
            let call = read(json!({"snippet": "1", "database": mode.name()})).unwrap();
            assert_eq!(call.database, Some(mode));
        }
        for value in [json!("undo"), json!(1), json!(null)] {
            let why = read(json!({"snippet": "1", "database": value})).unwrap_err();
            assert!(why.contains("one of read-only, rollback, write"), "{why}");
        }
    }

    #[test]
    fn what_is_not_permitted_is_lacking() {
        for (asked, wanted) in [
            (
                json!({"snippet": "1", "allow_writes": true}),
                Wanted::Writes,
            ),
            (
                json!({"snippet": "1", "allow_network": true}),
                Wanted::Network,
            ),
            (
                json!({"snippet": "1", "database": "rollback"}),
                Wanted::Rollback,
            ),
            (
                json!({"snippet": "1", "database": "write"}),
                Wanted::DatabaseWrites,
            ),
        ] {
            let call = read(asked).unwrap();
            assert_eq!(Permits::default().lacks(&call), [wanted]);
            let all = Permits {
                writes: true,
                rollback: true,
                network: true,
                ..Permits::default()
            };
            assert_eq!(all.lacks(&call), []);
            let why = permits::refusal(&[wanted]);
            assert!(
                why.starts_with("Nothing was run.") && !why.contains("--"),
                "{why}"
            );
            assert!(why.contains(&wanted.argument()), "{why}");
        }
        let given = json!({"snippet": "1", "allow_writes": false, "database": "read-only"});
        assert_eq!(Permits::default().lacks(&read(given).unwrap()), []);
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let given = json!({"timeout_ms": 99, "allow_writes": 1, "unsafe": true, "memory": 3});
        let why = read(given).unwrap_err();
        for said in [
            "`snippet` is missing",
            "`timeout_ms` must be from 100 to 60000, not 99.",
            "`allow_writes` must be true or false, not a number.",
            "`altair eval --unsafe`",
            "There is no argument `memory`",
        ] {
            assert!(why.contains(said), "{said}: {why}");
        }
    }

    #[test]
    fn numbers_that_are_no_deadline_are_refused() {
        for value in [
            json!(60_001),
            json!(0),
            json!(-5),
            json!(1e300),
            json!(250.5),
            json!("250"),
            json!(null),
        ] {
            let why = read(json!({"snippet": "1", "timeout_ms": value})).unwrap_err();
            assert!(why.contains("`timeout_ms` must be"), "{why}");
        }
    }

    #[test]
    fn a_snippet_must_be_some_text() {
        for value in [json!(""), json!(1), json!(null), json!(["return 1;"])] {
            assert!(read(json!({"snippet": value})).is_err());
        }
        assert!(Call::read(None).is_err());
    }
}
