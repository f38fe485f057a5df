//! Checks the arguments of a call against what the server permits.

use altair_engine::{DEFAULT_TIMEOUT_MS, Database, MAX_TIMEOUT_MS, MIN_TIMEOUT_MS};
use rmcp::model::JsonObject;
use serde_json::Value;

use crate::permits::Permits;
use crate::tool::{DATABASE, NAME, NETWORK, QUERIES, SNIPPET, TIMEOUT_MS, WRITES};

/// The arguments of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct Arguments {
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
}

impl Arguments {
    /// Reads the arguments of a call. On error returns everything that is wrong with them and how
    /// to correct it, for the agent to read.
    pub fn read(given: Option<JsonObject>, permits: Permits) -> Result<Self, String> {
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
        let mut allowed = |name: &str, permitted: bool, flag: &str| match given.remove(name) {
            None | Some(Value::Bool(false)) => false,
            Some(Value::Bool(true)) if permitted => true,
            Some(Value::Bool(true)) => {
                wrong.push(format!(
                    "`{name}` is not allowed by this server. Whoever runs it can start it with {flag}; leave `{name}` out otherwise."
                ));
                false
            }
            Some(other) => {
                wrong.push(format!(
                    "`{name}` must be true or false, not {}.",
                    kind(&other)
                ));
                false
            }
        };
        let allow_writes = allowed(WRITES, permits.writes, "--allow-writes");
        let allow_network = allowed(NETWORK, permits.network, "--allow-network");
        let queries = allowed(QUERIES, true, "");
        let database = given.remove(DATABASE).and_then(|value| {
            let asked = value.as_str().and_then(Database::named);
            let (permitted, flag) = match asked {
                None => {
                    wrong.push(format!(
                        "`{DATABASE}` must be one of {}.",
                        Database::ALL.map(Database::name).join(", ")
                    ));
                    return None;
                }
                Some(Database::ReadOnly) => (true, ""),
                Some(Database::Rollback) => (permits.rollback, "--allow-rollback"),
                Some(Database::Write) => (permits.writes, "--allow-writes"),
            };
            if !permitted {
                wrong.push(format!(
                    "`{DATABASE}` {value} is not allowed by this server. Whoever runs it can start it with {flag}; leave `{DATABASE}` out otherwise."
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
                    "There is no argument `{name}`; there are `{SNIPPET}`, `{TIMEOUT_MS}`, `{WRITES}`, `{NETWORK}`, `{DATABASE}` and `{QUERIES}`."
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
            })
        } else {
            Err(format!("Nothing was run. {}", wrong.join(" ")))
        }
    }
}

/// Reads a deadline. JSON Schema allows an integer to be written with a zero fraction.
fn timeout(value: &Value) -> Result<i64, String> {
    let whole = value.as_i64().or_else(|| {
        value
            .as_f64()
            .filter(|n| n.fract() == 0.0)
            .map(|n| n as i64)
    });
    match whole {
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
    use serde_json::json;

    const ALL: Permits = Permits {
        services: true,
        writes: true,
        rollback: true,
        network: true,
    };

    fn read(given: Value, permits: Permits) -> Result<Arguments, String> {
        Arguments::read(given.as_object().cloned(), permits)
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let expected = Arguments {
            snippet: "return 1;".into(),
            timeout_ms: DEFAULT_TIMEOUT_MS,
            allow_writes: false,
            allow_network: false,
            database: None,
            queries: false,
        };
        let given = json!({"snippet": "return 1;"});
        assert_eq!(read(given, Permits::default()), Ok(expected));
    }

    #[test]
    fn what_is_permitted_may_be_asked_for() {
        let given = json!({"snippet": "1", "timeout_ms": 250.0, "allow_writes": true, "allow_network": true, "database": "rollback", "queries": true});
        let expected = Arguments {
            snippet: "1".into(),
            timeout_ms: 250,
            allow_writes: true,
            allow_network: true,
            database: Some(Database::Rollback),
            queries: true,
        };
        assert_eq!(read(given, ALL), Ok(expected));
    }

    #[test]
    fn what_is_not_permitted_is_refused_with_the_flag() {
        for (name, flag) in [
            ("allow_writes", "--allow-writes"),
            ("allow_network", "--allow-network"),
        ] {
            let given = json!({"snippet": "1", name: true});
            let why = read(given, Permits::default()).unwrap_err();
            assert!(
                why.starts_with("Nothing was run.") && why.contains(flag),
                "{why}"
            );
            assert!(read(json!({"snippet": "1", name: false}), Permits::default()).is_ok());
        }
    }

    #[test]
    fn a_database_mode_needs_what_it_permits() {
        for (mode, flag) in [
            ("rollback", "--allow-rollback"),
            ("write", "--allow-writes"),
        ] {
            let given = json!({"snippet": "1", "database": mode});
            let why = read(given.clone(), Permits::default()).unwrap_err();
            assert!(why.contains(flag), "{why}");
            assert!(read(given, ALL).is_ok());
        }
        let given = json!({"snippet": "1", "database": "read-only"});
        assert!(read(given, Permits::default()).is_ok());
        for value in [json!("undo"), json!(1), json!(null)] {
            let why = read(json!({"snippet": "1", "database": value}), ALL).unwrap_err();
            assert!(why.contains("one of read-only, rollback, write"), "{why}");
        }
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let given = json!({"timeout_ms": 99, "allow_writes": 1, "unsafe": true, "memory": 3});
        let why = read(given, ALL).unwrap_err();
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
            let why = read(json!({"snippet": "1", "timeout_ms": value}), ALL).unwrap_err();
            assert!(why.contains("`timeout_ms` must be"), "{why}");
        }
    }

    #[test]
    fn a_snippet_must_be_some_text() {
        for value in [json!(""), json!(1), json!(null), json!(["return 1;"])] {
            assert!(read(json!({"snippet": value}), ALL).is_err());
        }
        assert!(Arguments::read(None, ALL).is_err());
    }
}
