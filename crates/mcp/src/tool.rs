//! The tool: its name, arguments, result and effects.
//!
//! The texts are files of the Composer package, which describes the same tool in PHP.

use std::sync::Arc;

use altair_engine::Database;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::permits::{Permits, Services};

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

const DESCRIPTION: &str = include_str!("../../../php-src/Mcp/description.txt");
/// The schema of all arguments, of which a server publishes those that it does not refuse.
const INPUT: &str = include_str!("../../../php-src/Mcp/input-schema.json");
/// The schema of the result. Keys that hold their default are left out, so few are required.
const OUTPUT: &str = include_str!("../../../php-src/Mcp/output-schema.json");

/// The tool's description for a client. `asks`: whether a person can be asked for what is not
/// permitted.
pub fn describe(permits: Permits, asks: bool) -> Tool {
    // By default a run changes nothing and reaches no other machine: its writes to the project are
    // discarded. With writes it may change or remove any file of the project, and the next boot
    // runs code that it leaves there. What it may do to a service depends on the service: only the
    // sessions of SQL databases are read-only, and only those of PHP's database clients, so that
    // the tool is not read-only with them. What a person has to allow for a single call does not
    // count: hints are for the client's own question.
    let destroys = permits.writes
        || permits.rollback
        || permits.network
        || permits.services == Services::Others;
    let changes = destroys || permits.services != Services::None;
    let annotations = ToolAnnotations::from_raw(
        None,
        Some(!changes),
        Some(destroys),
        Some(!changes),
        Some(permits.network),
    );
    Tool::new(NAME, DESCRIPTION, Arc::new(input(permits, asks)))
        .with_title("Evaluate PHP in the application")
        .with_raw_output_schema(Arc::new(object(OUTPUT)))
        .with_annotations(annotations)
}

fn object(schema: &str) -> JsonObject {
    // Both files are compiled in, and a test reads them.
    serde_json::from_str(schema).unwrap_or_default()
}

/// The schema of the arguments that are not refused.
fn input(permits: Permits, asks: bool) -> JsonObject {
    let mut schema = object(INPUT);
    let Some(Value::Object(arguments)) = schema.get_mut("properties") else {
        return schema;
    };
    if !permits.writes && !asks {
        arguments.shift_remove(WRITES);
    }
    if !permits.network && !asks {
        arguments.shift_remove(NETWORK);
    }
    let modes = Database::ALL.into_iter().filter(|mode| match mode {
        Database::ReadOnly => true,
        Database::Rollback => permits.rollback || asks,
        Database::Write => permits.writes || asks,
    });
    let modes: Vec<&str> = modes.map(Database::name).collect();
    if modes.len() > 1 {
        arguments[DATABASE]["enum"] = json!(modes);
    } else {
        arguments.shift_remove(DATABASE);
    }
    schema
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use altair_engine::{DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS, MIN_TIMEOUT_MS};

    use super::*;

    const ALL: Permits = Permits {
        services: Services::Others,
        writes: true,
        rollback: true,
        network: true,
    };

    fn names(schema: &JsonObject) -> Vec<&str> {
        let properties = schema["properties"].as_object().unwrap();
        properties.keys().map(String::as_str).collect()
    }

    #[test]
    fn arguments_are_those_of_the_table_of_options() {
        let table: Value = serde_json::from_str(include_str!("../../engine/options.json")).unwrap();
        let rows = table.as_array().unwrap().iter();
        let mut expected: BTreeSet<&str> = rows.filter_map(|row| row["mcp"].as_str()).collect();
        expected.extend(OF_THE_ANSWER);
        assert_eq!(BTreeSet::from(NAMES), expected);
        assert_eq!(names(&input(ALL, false)), NAMES);
        assert_eq!(names(&input(Permits::default(), true)), NAMES);
    }

    #[test]
    fn the_files_hold_the_bounds_of_the_engine() {
        let schema = object(INPUT);
        let timeout = &schema["properties"][TIMEOUT_MS];
        let bounds = ["minimum", "maximum", "default"].map(|bound| timeout[bound].as_i64());
        let expected = [MIN_TIMEOUT_MS, MAX_TIMEOUT_MS, DEFAULT_TIMEOUT_MS];
        assert_eq!(bounds, expected.map(Some));
        let modes = json!(Database::ALL.map(Database::name));
        assert_eq!(schema["properties"][DATABASE]["enum"], modes);
        assert_eq!(object(OUTPUT)["required"], json!(["ok"]));
    }

    #[test]
    fn what_is_refused_is_not_in_the_schema() {
        let none = input(Permits::default(), false);
        assert_eq!(
            NAMES
                .into_iter()
                .filter(|name| !names(&none).contains(name))
                .collect::<Vec<_>>(),
            [WRITES, NETWORK, DATABASE]
        );
        let rollback = Permits {
            rollback: true,
            ..Permits::default()
        };
        let schema = input(rollback, false);
        let modes = &schema["properties"][DATABASE]["enum"];
        assert_eq!(modes, &json!(["read-only", "rollback"]));
    }

    #[test]
    fn hints_tell_a_database_that_is_read_from_what_can_be_destroyed() {
        let hints = |permits| {
            let hints = describe(permits, true).annotations.unwrap();
            (hints.read_only_hint, hints.destructive_hint)
        };
        let with = |services| Permits {
            services,
            ..Permits::default()
        };
        assert_eq!(hints(with(Services::None)), (Some(true), Some(false)));
        assert_eq!(hints(with(Services::Databases)), (Some(false), Some(false)));
        assert_eq!(hints(with(Services::Others)), (Some(false), Some(true)));
        assert_eq!(hints(ALL), (Some(false), Some(true)));
    }
}
