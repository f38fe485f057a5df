//! Encoded values as lines and trees.

use altair_engine::{EvalResult, Outcome};
use serde_json::{Value, json};

use super::{plain, result};

/// What is printed for a returned value, without the figures.
fn value(encoded: Value) -> String {
    let text = plain(&EvalResult {
        result: Some(encoded),
        ..result(Outcome::Returned)
    });
    text.strip_suffix("  duration=12ms  memory=8192 KB  exit=0\n")
        .unwrap()
        .to_owned()
}

#[test]
fn scalars_are_one_line() {
    assert_eq!(value(json!({"type": "null", "value": null})), "✓ null\n");
    assert_eq!(value(json!({"type": "int", "value": 2})), "✓ int = 2\n");
    assert_eq!(
        value(json!({"type": "bool", "value": true})),
        "✓ bool = true\n"
    );
    assert_eq!(
        value(json!({"type": "float", "value": 1.5})),
        "✓ float = 1.5\n"
    );
    assert_eq!(
        value(json!({"type": "float", "value": 1.0})),
        "✓ float = 1.0\n"
    );
    assert_eq!(
        value(json!({"type": "float", "value": "NaN"})),
        "✓ float = NaN\n"
    );
    assert_eq!(
        value(json!({"type": "string", "value": "x"})),
        "✓ string = 'x'\n"
    );
    assert_eq!(
        value(json!({"type": "resource", "value": "stream"})),
        "✓ resource (stream)\n"
    );
    assert_eq!(
        plain(&result(Outcome::Returned)),
        "✓ null\n  duration=12ms  memory=8192 KB  exit=0\n"
    );
}

#[test]
fn strings_show_what_is_in_them_and_what_is_not_shown() {
    assert_eq!(
        value(json!({"type": "string", "value": "it's\n\u{1b}[2J\u{202e}"})),
        "✓ string = 'it\\'s\\n\\x1b[2J\\u{202e}'\n"
    );
    assert_eq!(
        value(
            json!({"type": "string", "value": "ab...(truncated)", "truncated": true, "length": 20000})
        ),
        "✓ string = 'ab...(truncated)' (20000 bytes)\n"
    );
    assert_eq!(
        value(json!({"type": "string", "encoding": "base64", "value": "/wA=", "length": 2})),
        "✓ string (base64) = '/wA=' (2 bytes)\n"
    );
}

#[test]
fn nested_values_are_a_tree() {
    assert_eq!(
        value(
            json!({"type": "array", "is_list": false, "count": 3, "value": {
                "id": {"type": "int", "value": 7},
                "a key": {"type": "array", "is_list": true, "count": 2, "value": [
                    {"type": "null", "value": null},
                    {"type": "array", "count": 9, "truncated": true},
                ]},
                "user": {"type": "object", "class": "App\\User", "id": 5, "properties": {
                    "name": {"type": "string", "value": "Ada"},
                    "self": {"type": "reference", "class": "App\\User", "id": 5},
                    "deep": {"type": "object", "class": "App\\Team", "id": 6, "truncated": true},
                }},
            }})
        ),
        "✓ array(3)\n\
        \x20 id: int = 7\n\
        \x20 'a key': array(2)\n\
        \x20   0: null\n\
        \x20   1: array(9) (truncated)\n\
        \x20 user: object App\\User #5\n\
        \x20   name: string = 'Ada'\n\
        \x20   self: reference to App\\User #5\n\
        \x20   deep: object App\\Team (truncated)\n"
    );
    assert_eq!(
        value(json!({"type": "array", "is_list": true, "count": 0, "value": []})),
        "✓ array(0)\n"
    );
    assert_eq!(
        value(
            json!({"type": "array", "is_list": true, "count": 1500, "truncated": true, "value": [
                {"type": "int", "value": 1}
            ]})
        ),
        "✓ array(1500)\n  0: int = 1\n  … and 1499 more\n"
    );
}

#[test]
fn what_did_not_fit_at_all_is_still_named() {
    for kind in ["int", "string", "array", "object", "iterable"] {
        assert_eq!(
            value(json!({"type": kind, "truncated": true})),
            format!("✓ {kind} (truncated)\n")
        );
    }
}

#[test]
fn objects_say_what_they_are() {
    let object = |extra: Value| {
        let mut encoded =
            json!({"type": "object", "class": "App\\Suit", "id": 1, "properties": {}});
        encoded
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        value(encoded)
    };
    assert_eq!(object(json!({})), "✓ object App\\Suit\n");
    assert_eq!(
        object(json!({"case": "Hearts"})),
        "✓ object App\\Suit::Hearts\n"
    );
    assert_eq!(
        object(json!({"case": "Hearts", "backing": "H"})),
        "✓ object App\\Suit::Hearts = 'H'\n"
    );
    assert_eq!(
        object(json!({"case": "One", "backing": 1})),
        "✓ object App\\Suit::One = 1\n"
    );
    assert_eq!(
        object(json!({"display": "snippet:1"})),
        "✓ object App\\Suit (snippet:1)\n"
    );
    assert_eq!(
        object(json!({"error": {"class": "LogicException", "message": "no"}})),
        "✓ object App\\Suit\n  ! LogicException: no\n"
    );
}

#[test]
fn an_iterable_shows_its_preview() {
    assert_eq!(
        value(
            json!({"type": "iterable", "class": "Generator", "exhausted": false, "preview": [
                {"key": 0, "value": {"type": "string", "value": "a"}},
                {"key": "k k", "value": {"type": "null", "value": null}},
                {"key": {"type": "object", "class": "X", "id": 1, "properties": {}}, "value": {"type": "int", "value": 1}},
            ]})
        ),
        "✓ iterable Generator\n  0: string = 'a'\n  'k k': null\n  object X: int = 1\n  … and more\n"
    );
    assert_eq!(
        value(
            json!({"type": "iterable", "class": "ArrayIterator", "exhausted": true, "size_hint": 0, "preview": []})
        ),
        "✓ iterable ArrayIterator (0)\n"
    );
}

#[test]
fn properties_are_marked_by_who_sees_them() {
    assert_eq!(
        value(json!({"type": "object", "class": "App\\User", "id": 1,
            "properties": {"name": {"type": "string", "value": "Ada"}, "age": {"type": "uninitialized"}},
            "protected": {"role": {"type": "int", "value": 1}},
            "private": {
                "password": {"type": "string", "value": "[hidden]", "hidden": true},
                "App\\Base::id": {"type": "int", "value": 7},
                "a b": {"type": "null", "value": null},
                "\u{1b}[2J::x": {"type": "null", "value": null},
            },
            "truncated": true, "hint": "max_items: 9",
        })),
        "✓ object App\\User\n\
        \x20 name: string = 'Ada'\n\
        \x20 age: uninitialized\n\
        \x20 #role: int = 1\n\
        \x20 -password: string (hidden)\n\
        \x20 -App\\Base::id: int = 7\n\
        \x20 -'a b': null\n\
        \x20 -\\x1b[2J::x: null\n\
        \x20 … and more (max_items: 9)\n"
    );
}

#[test]
fn an_object_that_says_itself_in_a_line_is_one() {
    assert_eq!(
        value(
            json!({"type": "object", "class": "DateTime", "id": 1, "zone": "Europe/Rome",
            "display": "2020-01-01T00:00:00+01:00", "properties": {"x": {"type": "int", "value": 1}}})
        ),
        "✓ object DateTime (2020-01-01T00:00:00+01:00 Europe/Rome)\n"
    );
    assert_eq!(
        value(
            json!({"type": "object", "class": "Closure", "id": 1, "display": "snippet:1",
            "parameters": ["int $a", "$b"], "properties": {}})
        ),
        "✓ object Closure (fn (int $a, $b) snippet:1)\n"
    );
}

#[test]
fn what_is_lazy_or_cut_says_so_and_what_shows_more() {
    for (encoded, shown) in [
        (
            json!({"type": "iterable", "class": "Rows", "lazy": true}),
            "iterable Rows (lazy)",
        ),
        (
            json!({"type": "object", "class": "User", "id": 1, "lazy": true,
                "properties": {"id": {"type": "int", "value": 3}}}),
            "object User (lazy)\n  id: int = 3",
        ),
        (
            json!({"type": "array", "count": 9, "truncated": true, "hint": "depth: 4"}),
            "array(9) (truncated; depth: 4)",
        ),
        (
            json!({"type": "int", "truncated": true, "hint": "return less of it"}),
            "int (truncated; return less of it)",
        ),
        (
            json!({"type": "string", "value": "ab...(truncated)", "truncated": true, "length": 9,
                "hint": "max_string: 9"}),
            "string = 'ab...(truncated)' (9 bytes; max_string: 9)",
        ),
        (
            json!({"type": "iterable", "class": "G", "exhausted": false, "truncated": true,
            "hint": "max_items: 9", "preview": [
                {"key": {"type": "string", "value": "a b"}, "value": {"type": "int", "value": 1}},
                {"key": {"type": "int", "value": 3}, "value": {"type": "int", "value": 2}},
            ]}),
            "iterable G\n  'a b': int = 1\n  3: int = 2\n  … and more (max_items: 9)",
        ),
    ] {
        assert_eq!(value(encoded), format!("✓ {shown}\n"));
    }
}
