//! Control characters are escaped, whatever the child reports.

use altair_engine::guards::{Guard, GuardState};
use altair_engine::{Blocked, EvalResult, Location, Outcome};
use proptest::prelude::*;
use serde_json::Value;

use super::{plain, result};

/// Arbitrary JSON with the names that the printer reads and characters that it must escape.
fn any_encoded() -> impl Strategy<Value = Value> {
    let text = "[a\u{1b}\u{7f}\u{85}\u{202e}\u{2066}\r\n\t]{0,4}";
    let kind = prop::sample::select(vec![
        "null",
        "int",
        "float",
        "string",
        "array",
        "object",
        "iterable",
        "resource",
        "reference",
        "other",
    ]);
    let leaf = prop_oneof![
        text.prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        let names = prop::sample::select(vec![
            "value",
            "count",
            "class",
            "id",
            "properties",
            "preview",
            "key",
            "error",
            "message",
            "case",
            "backing",
            "display",
            "encoding",
            "length",
            "size_hint",
            "exhausted",
            "truncated",
            "file",
            "line",
            "code",
            "stack_trace",
            "previous",
        ]);
        let name =
            prop_oneof![4 => names.prop_map(str::to_owned), 1 => text.prop_map(String::from)];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            (kind.clone(), prop::collection::hash_map(name, inner, 0..7)).prop_map(
                |(kind, fields)| {
                    let mut map: serde_json::Map<String, Value> = fields.into_iter().collect();
                    map.insert("type".into(), kind.into());
                    Value::Object(map)
                }
            ),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_the_child_says_no_control_character_comes_through(
        encoded in any_encoded(),
        thrown in any_encoded(),
        message in "[a\u{1b}\u{85}\u{202e}\r\n]{0,5}",
    ) {
        let returned = EvalResult { result: Some(encoded), ..result(Outcome::Returned) };
        let mut threw = EvalResult { exception: Some(thrown), stdout: message.clone(), ..result(Outcome::BootFailed) };
        threw.diagnostics.message = Some(message.clone());
        threw.diagnostics.location = Some(Location { file: message.clone(), line: 1, stack_trace: vec![message.clone()] });
        threw.diagnostics.blocked = vec![Blocked { what: message.clone(), guard: Guard::Ini, lift: Some(message.clone()) }];
        threw.diagnostics.guards.insert(Guard::Ini, GuardState::Missing { because: message });
        for text in [plain(&returned), plain(&threw)] {
            let raw = text.chars().find(|c| {
                c.is_control() && *c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            });
            prop_assert_eq!(raw, None, "{:?}", text);
        }
    }
}
