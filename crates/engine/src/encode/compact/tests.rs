use proptest::prelude::*;
use serde_json::{Value, json};

use super::{COMPACT_MAX_BYTES, compact};

fn int(n: i64) -> Value {
    json!({ "type": "int", "value": n })
}

fn text(text: &str) -> Value {
    json!({ "type": "string", "value": text })
}

fn list(items: Vec<Value>) -> Value {
    json!({ "type": "array", "is_list": true, "count": items.len(), "value": items })
}

fn map(entries: Value) -> Value {
    let count = entries.as_object().map(serde_json::Map::len);
    json!({ "type": "array", "is_list": false, "count": count, "value": entries })
}

fn object(class: &str, id: u64, properties: Value) -> Value {
    json!({ "type": "object", "class": class, "id": id, "properties": properties })
}

/// Typed encodings and the compact ones that stand for them.
#[track_caller]
fn says(typed: Value, expected: Value) {
    assert_eq!(compact(&typed, None).to_string(), expected.to_string());
    assert_eq!(
        compact(&typed, Some(COMPACT_MAX_BYTES)).to_string(),
        expected.to_string()
    );
}

#[test]
fn plain_values_are_plain() {
    says(json!({"type": "null", "value": null}), json!(null));
    says(json!({"type": "bool", "value": true}), json!(true));
    says(int(7), json!(7));
    says(json!({"type": "float", "value": 0.1}), json!(0.1));
    says(text("text"), json!("text"));
    says(list(vec![int(1), text("a")]), json!([1, "a"]));
    says(
        map(json!({"a": int(1), "": int(2), "#b": int(3), "-c": int(4)})),
        json!({"a": 1, "": 2, "#b": 3, "-c": 4}),
    );
    says(list(vec![]), json!([]));
    // As PHP's JSON may give it.
    says(map(json!([])), json!([]));
}

#[test]
fn numbers_that_javascript_loses_are_tagged() {
    says(int(1 << 53), json!(9_007_199_254_740_992_u64));
    says(int((1 << 53) + 1), json!({"@int": "9007199254740993"}));
    says(int(i64::MIN), json!({"@int": "-9223372036854775808"}));
    says(
        json!({"type": "float", "value": "NaN"}),
        json!({"@float": "NaN"}),
    );
    says(
        json!({"type": "float", "value": "-Infinity"}),
        json!({"@float": "-Infinity"}),
    );
    for (float, expected) in [
        (json!(1.0), "1.0"),
        (json!(1), "1.0"),
        (json!(-0.0), "-0.0"),
        (json!(1e300), "1e+300"),
    ] {
        let typed = json!({"type": "float", "value": float});
        assert_eq!(compact(&typed, None).to_string(), expected);
    }
}

#[test]
fn keys_that_json_objects_lose_or_reorder_make_a_map() {
    says(
        map(json!({"b": int(1), "7": int(2)})),
        json!({"@map": [["b", 1], [7, 2]]}),
    );
    says(map(json!({"1": int(1)})), json!({"@map": [[1, 1]]}));
    says(map(json!({"-3": int(1)})), json!({"@map": [[-3, 1]]}));
    says(map(json!({"0": int(1), "1": int(2)})), json!([1, 2]));
    // These are texts in PHP, and in order in JavaScript.
    says(
        map(json!({"07": int(1), "-0": int(2), "9223372036854775808": int(3)})),
        json!({"07": 1, "-0": 2, "9223372036854775808": 3}),
    );
    says(
        map(json!({"9007199254740993": int(1)})),
        json!({"@map": [[{"@int": "9007199254740993"}, 1]]}),
    );
    let mut typed = map(json!({"a\u{fffd}": int(1), "@b": int(2)}));
    typed["key_bytes"] = json!({"a\u{fffd}": "YYA="});
    says(typed, json!({"@map": [[{"@bytes": "YYA="}, 1], ["@b", 2]]}));
}

#[test]
fn own_names_are_told_from_tags_and_marks() {
    says(
        map(json!({"@cut": int(1), "@@": int(2)})),
        json!({"@@cut": 1, "@@@": 2}),
    );
    let mut typed = object(
        "C",
        1,
        json!({"a": int(1), "@b": int(2), "#c": int(3), "-d": int(4)}),
    );
    typed["protected"] = json!({"e": int(5)});
    typed["private"] = json!({"f": int(6), "P\\Q::f": int(7)});
    says(
        typed,
        json!({"@object": "C", "a": 1, "@@b": 2, "@#c": 3, "@-d": 4, "#e": 5, "-f": 6, "-P\\Q::f": 7}),
    );
    let mut typed = object(
        "stdClass",
        1,
        json!({"b": int(1), "7": int(2), "\u{fffd}": int(3), "@": int(4)}),
    );
    typed["key_bytes"] = json!({"\u{fffd}": "gA=="});
    says(
        typed,
        json!({"@object": "stdClass", "@map": [["b", 1], ["7", 2], [{"@bytes": "gA=="}, 3], ["@@", 4]]}),
    );
}

#[test]
fn what_is_no_plain_value_has_its_tag() {
    let named = |more: Value| {
        let mut typed = json!({"type": "object", "class": "C", "id": 3});
        if let (Some(typed), Some(more)) = (typed.as_object_mut(), more.as_object()) {
            typed.extend(more.clone());
        }
        typed
    };
    says(
        named(json!({"case": "High", "backing": 3, "properties": {"name": text("High")}})),
        json!({"@enum": "C::High", "value": 3}),
    );
    says(
        named(json!({"case": "Low", "truncated": true})),
        json!({"@enum": "C::Low"}),
    );
    says(
        named(json!({"class": "Closure", "display": "a.php:7", "parameters": ["int $a"]})),
        json!({"@closure": "a.php:7", "parameters": ["int $a"]}),
    );
    says(
        named(json!({"display": "01HZ", "properties": {"uid": text("x")}})),
        json!({"@object": "C", "@display": "01HZ", "uid": "x"}),
    );
    says(
        named(json!({"lazy": true, "proxy": "P", "properties": {"id": int(7)}})),
        json!({"@lazy": "C", "@proxy": "P", "id": 7}),
    );
    says(named(json!({"properties": {}})), json!({"@object": "C"}));
    says(
        named(json!({"error": {"class": "E", "message": "m"}})),
        json!({"@error": "E", "message": "m", "items": {"@object": "C"}}),
    );
    says(
        json!({"type": "uninitialized"}),
        json!({"@uninitialized": true}),
    );
    says(
        json!({"type": "resource", "value": "stream"}),
        json!({"@resource": "stream"}),
    );
    says(
        json!({"type": "string", "encoding": "base64", "value": "gA==", "length": 1}),
        json!({"@bytes": "gA=="}),
    );
    says(
        json!({"type": "string", "value": "[hidden]", "hidden": true}),
        json!("[hidden]"),
    );
}

#[test]
fn a_date_is_its_text_and_what_that_does_not_tell() {
    let date = |class: &str, display: &str, zone: Option<&str>| {
        let mut typed = json!({"type": "object", "class": class, "id": 1, "display": display, "properties": {}});
        if let Some(zone) = zone {
            typed["zone"] = zone.into();
        }
        typed
    };
    says(
        date(
            "DateTimeImmutable",
            "2024-01-02T03:04:05.000000+01:00",
            None,
        ),
        json!({"@date": "2024-01-02T03:04:05+01:00"}),
    );
    says(
        date(
            "DateTime",
            "2024-01-02T03:04:05.678901+01:00",
            Some("Europe/Berlin"),
        ),
        json!({"@date": "2024-01-02T03:04:05.678901+01:00", "class": "DateTime", "zone": "Europe/Berlin"}),
    );
    says(
        date(
            "DateTimeImmutable",
            "2024-01-02T03:04:05+00:00",
            Some("UTC"),
        ),
        json!({"@date": "2024-01-02T03:04:05Z", "zone": "UTC"}),
    );
    says(
        date("DateTimeImmutable", "-0044-03-15T00:00:00-00:30", None),
        json!({"@date": "-0044-03-15T00:00:00-00:30"}),
    );
    for no_date in [
        "P1DT2H",
        "T",
        "Europe/Berlin",
        "2024-01-02T03:04:05",
        "2024-01-02T",
        "aTbbbbbbbb+",
        "2024-01-02T03:04:05é+01:00",
    ] {
        says(
            date("X", no_date, None),
            json!({"@object": "X", "@display": no_date}),
        );
    }
}

#[test]
fn rows_of_one_class_name_it_once() {
    let row = |class, id| object(class, id, json!({"id": int(7)}));
    says(
        list(vec![row("R", 1), row("R", 2)]),
        json!({"@objects": "R", "items": [{"id": 7}, {"id": 7}]}),
    );
    says(list(vec![row("R", 1)]), json!([{"@object": "R", "id": 7}]));
    says(
        list(vec![row("R", 1), row("S", 2)]),
        json!([{"@object": "R", "id": 7}, {"@object": "S", "id": 7}]),
    );
    says(
        list(vec![row("R", 1), object("R", 2, json!({}))]),
        json!([{"@object": "R", "id": 7}, {"@object": "R"}]),
    );
    says(
        list(vec![row("R", 1), int(1)]),
        json!([{"@object": "R", "id": 7}, 1]),
    );
}

#[test]
fn an_enclosing_object_is_pointed_to() {
    let back = |id: u64| json!({"type": "reference", "class": "N", "id": id});
    says(
        object("N", 1, json!({"self": back(1)})),
        json!({"@object": "N", "self": {"@ref": ""}}),
    );
    let child = |id| {
        object(
            "N",
            id,
            json!({"a": back(1), "b": back(id), "c": list(vec![back(id)])}),
        )
    };
    says(
        object("N", 1, json!({"x/y~": list(vec![child(2), child(3)])})),
        json!({"@object": "N", "x/y~": {"@objects": "N", "items": [
            {"a": {"@ref": ""}, "b": {"@ref": "/x~1y~0/items/0"}, "c": [{"@ref": "/x~1y~0/items/0"}]},
            {"a": {"@ref": ""}, "b": {"@ref": "/x~1y~0/items/1"}, "c": [{"@ref": "/x~1y~0/items/1"}]},
        ]}}),
    );
    let mut cut = map(json!({"k": object("N", 4, json!({"7": back(4)}))}));
    cut["truncated"] = true.into();
    says(
        cut,
        json!({"@cut": "array", "count": 1, "items": {"k": {"@object": "N", "@map": [["7", {"@ref": "/items/k"}]]}}}),
    );
    says(back(9), json!({"@object": "N", "@cut": "object"}));
}

#[test]
fn iterables_keep_their_keys() {
    let iterable = |preview: Value, exhausted: bool| json!({"type": "iterable", "class": "G", "preview": preview, "exhausted": exhausted});
    let entry = |key: Value, n| json!({"key": key, "value": int(n)});
    says(
        iterable(json!([entry(int(0), 1), entry(int(1), 2)]), true),
        json!({"@iterable": "G", "items": [1, 2]}),
    );
    // The keys of an older child.
    says(
        iterable(json!([entry(json!(0), 1), entry(json!(1), 2)]), false),
        json!({"@iterable": "G", "items": [1, 2], "more": true}),
    );
    says(
        iterable(json!([entry(text("a"), 1)]), true),
        json!({"@iterable": "G", "items": {"a": 1}}),
    );
    says(
        iterable(json!([entry(text("a"), 1), entry(text("a"), 2)]), true),
        json!({"@iterable": "G", "items": {"@map": [["a", 1], ["a", 2]]}}),
    );
    says(
        iterable(
            json!([
                entry(text("7"), 1),
                entry(int(7), 2),
                entry(list(vec![int(1)]), 3)
            ]),
            true,
        ),
        json!({"@iterable": "G", "items": {"@map": [["7", 1], [7, 2], [[1], 3]]}}),
    );
    let mut broken = iterable(json!([entry(int(0), 1)]), false);
    broken["error"] = json!({"class": "E", "message": "m"});
    broken["size_hint"] = 5.into();
    says(
        broken,
        json!({"@error": "E", "message": "m", "items": {"@iterable": "G", "items": [1], "count": 5}}),
    );
    says(
        json!({"type": "iterable", "class": "G", "lazy": true}),
        json!({"@iterable": "G", "lazy": true}),
    );
}

#[test]
fn cuts_say_what_is_missing_and_how_to_see_it() {
    says(
        json!({"type": "array", "count": 3, "truncated": true, "hint": "depth: 4"}),
        json!({"@cut": "array", "count": 3, "hint": "depth: 4"}),
    );
    says(
        json!({"type": "object", "class": "C", "id": 1, "truncated": true, "hint": "depth: 4"}),
        json!({"@object": "C", "@cut": "object", "hint": "depth: 4"}),
    );
    says(
        json!({"type": "iterable", "class": "C", "truncated": true}),
        json!({"@iterable": "C", "@cut": "iterable"}),
    );
    says(
        json!({"type": "string", "value": "ab...(truncated)", "truncated": true, "length": 500, "hint": "max_string: 500"}),
        json!({"@cut": "string", "length": 500, "hint": "max_string: 500", "text": "ab"}),
    );
    says(
        json!({"type": "string", "encoding": "base64", "value": "gA==", "truncated": true, "length": 9}),
        json!({"@cut": "string", "length": 9, "text": {"@bytes": "gA=="}}),
    );
    let mut typed = object("C", 1, json!({"hint": int(1)}));
    typed["truncated"] = true.into();
    typed["hint"] = "max_items: 9".into();
    says(
        typed,
        json!({"@cut": "object", "hint": "max_items: 9", "items": {"@object": "C", "hint": 1}}),
    );
    says(
        json!({"type": "string", "truncated": true}),
        json!({"@cut": "string"}),
    );
}

#[test]
fn what_no_encoder_writes_is_a_cut() {
    for odd in [
        json!(null),
        json!(7),
        json!([]),
        json!({}),
        json!({"type": 7}),
        json!({"type": "int", "value": "7"}),
        json!({"type": "int", "value": 0.5}),
        json!({"type": "float", "value": "7"}),
        json!({"type": "\u{1b}[2J"}),
        json!({"type": "reference"}),
        json!({"type": "bool"}),
    ] {
        let Value::Object(shown) = compact(&odd, None) else {
            panic!("{odd}");
        };
        assert_eq!(shown.keys().collect::<Vec<_>>(), ["@cut"], "{odd}");
    }
    says(
        json!({"type": "int", "value": u64::MAX}),
        json!({"@int": "18446744073709551615"}),
    );
    let mut deep = int(1);
    for _ in 0..60 {
        deep = list(vec![deep]);
    }
    assert!(
        compact(&deep, None)
            .to_string()
            .ends_with("[{\"@cut\":\"value\"}]]]]]]]]]]]]]]]]")
    );
}

#[test]
fn rows_are_shown_whole_and_then_counted() {
    let row = |n: i64| {
        map(json!({"id": int(n), "name": text("somebody"), "email": text("somebody@shop.example")}))
    };
    let rows = list((0..5_000).map(row).collect());
    let value = compact(&rows, Some(COMPACT_MAX_BYTES));
    let (text, items) = (
        value.to_string(),
        value["items"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default(),
    );
    assert!(
        text.len() <= COMPACT_MAX_BYTES && text.len() > COMPACT_MAX_BYTES * 95 / 100,
        "{}",
        text.len()
    );
    assert_eq!(
        (&value["@cut"], &value["count"], &value["hint"]),
        (&json!("array"), &json!(5_000), &json!("return less of it"))
    );
    for item in items {
        assert_eq!(item["name"], "somebody");
    }
}

#[test]
fn every_container_of_a_level_is_opened_before_the_next_level_takes_the_rest() {
    let huge = || list((0..50).map(|_| list((0..200).map(int).collect())).collect());
    let small = || map(json!({"a": int(1)}));
    let mut entries = serde_json::Map::new();
    entries.insert("first".into(), huge());
    entries.insert("text".into(), text(&"x".repeat(9_000)));
    for n in 0..20 {
        entries.insert(format!("huge{n}"), huge());
        entries.insert(format!("small{n}"), small());
    }
    let value = compact(&map(entries.into()), Some(COMPACT_MAX_BYTES));
    assert!(value.to_string().len() <= COMPACT_MAX_BYTES);
    for n in 0..20 {
        assert_eq!(value[format!("small{n}")], json!({"a": 1}));
        let items = value[format!("huge{n}")]["items"].as_array();
        assert!(items.is_some_and(|items| !items.is_empty()), "{value}");
    }
    assert_eq!(value["text"]["length"], 9_000);
    assert!(
        value["text"]["text"]
            .as_str()
            .is_some_and(|text| text.len() > 100)
    );
}

#[test]
fn a_long_string_is_cut_to_what_it_may_have() {
    let value = compact(&text(&"\u{1}é".repeat(9_000)), Some(COMPACT_MAX_BYTES));
    let size = value.to_string().len();
    assert!(
        size <= COMPACT_MAX_BYTES && size > COMPACT_MAX_BYTES - 20,
        "{size}"
    );
    assert_eq!(value["length"], 27_000);
    let typed = json!({"type": "string", "encoding": "base64", "value": "gICA".repeat(8_000), "length": 24_000});
    let value = compact(&typed, Some(COMPACT_MAX_BYTES));
    assert_eq!(value["length"], 24_000);
    let shown = value["text"]["@bytes"].as_str().unwrap_or_default();
    assert!(
        shown.len().is_multiple_of(4) && shown.len() > 16_000,
        "{}",
        shown.len()
    );
}

/// Anything, of which much looks like a typed encoding.
fn odd() -> impl Strategy<Value = Value> {
    let word = || {
        prop::sample::select(vec![
            "array",
            "object",
            "iterable",
            "string",
            "int",
            "float",
            "null",
            "reference",
            "Closure",
            "base64",
            "NaN",
            "UTC",
            "2024-01-02T03:04:05.5+00:00",
            "@x",
            "7",
            "x",
        ])
    };
    let key = prop::sample::select(vec![
        "type",
        "value",
        "class",
        "id",
        "properties",
        "protected",
        "private",
        "key_bytes",
        "preview",
        "key",
        "truncated",
        "count",
        "hint",
        "length",
        "encoding",
        "display",
        "zone",
        "case",
        "backing",
        "parameters",
        "proxy",
        "lazy",
        "error",
        "exhausted",
        "size_hint",
        "message",
        "7",
        "@a",
        "\u{fffd}",
    ]);
    let leaf = prop_oneof![
        word().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        ".{0,60}".prop_map(Value::from),
        Just(Value::Null),
    ];
    leaf.prop_recursive(7, 200, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            (
                prop::sample::select(vec!["array", "object", "iterable", "string", "reference"]),
                prop::collection::vec((key.clone(), inner.clone()), 0..8)
            )
                .prop_map(|(kind, entries)| {
                    let mut map: serde_json::Map<String, Value> = entries
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect();
                    map.insert("type".into(), kind.into());
                    map.into()
                }),
            prop::collection::vec(inner, 0..8).prop_map(list),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_child_says_keeps_to_the_budget(typed in odd(), budget in 32..2_000_usize) {
        let whole = compact(&typed, None).to_string();
        let fitted = compact(&typed, Some(budget)).to_string();
        prop_assert!(fitted.len() <= budget, "{} of {}: {}", fitted.len(), budget, fitted);
        if fitted.len() < whole.len() {
            prop_assert!(fitted.contains("@cut") || fitted.contains("\"more\""), "{fitted}\n{whole}");
        }
    }
}

#[test]
fn references_do_not_multiply_long_keys() {
    let reference = json!({ "type": "reference", "class": "N", "id": 1 });
    let value = |key: &str| object("N", 1, json!({ key: list(vec![reference.clone(); 3]) }));
    let key = "~".repeat(250);
    let written = compact(&object("M", 2, json!({ &key: value("a") })), None).to_string();
    assert!(!written.contains("@ref"), "{written}");
    assert!(
        written.contains(r#"[{"@object":"N","@cut":"object"}"#),
        "{written}"
    );
    assert!(
        compact(&value("a"), None)
            .to_string()
            .contains(r#"{"@ref":""}"#)
    );
}

#[test]
fn what_only_says_that_it_is_base64_is_cut_between_characters() {
    let value = format!("x{}", "€".repeat(10_000));
    let typed = json!({ "type": "string", "encoding": "base64", "value": value, "length": 7 });
    for budget in 16_380..16_390 {
        assert!(compact(&typed, Some(budget)).to_string().len() <= budget);
    }
}
