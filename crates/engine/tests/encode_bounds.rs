//! The bounds of encoded values, against arbitrary trees.
#![allow(clippy::unwrap_used)]

use std::borrow::Cow;

use altair_engine::encode::{
    Ended, ITERABLE_PREVIEW, Key, Limits, MAX_DEPTH, MAX_ENTRIES, Node, ObjectShape, STRING_MAX,
    Shape, Step, Thrown, UserCode, VALUE_MAX_BYTES, encode_value,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A value of no PHP, for the encoder to look at.
#[derive(Debug, Clone)]
enum Tree {
    Null,
    Int(i64),
    Float(f64),
    Bytes(Vec<u8>),
    List(Vec<Tree>),
    Map(Vec<(Vec<u8>, Tree)>),
    Object(u32, Vec<(Vec<u8>, Tree)>),
    Iterable(u32, Vec<Tree>),
    Throws,
    Exits,
}

/// A tree and how far its iteration has come.
struct Cursor<'t>(&'t Tree, std::cell::Cell<usize>);

fn cursor(tree: &Tree) -> Cursor<'_> {
    Cursor(tree, std::cell::Cell::new(0))
}

fn pairs(items: &[(Vec<u8>, Tree)]) -> Vec<(Key, Cursor<'_>)> {
    items
        .iter()
        .map(|(key, item)| (Key::Bytes(key.clone()), cursor(item)))
        .collect()
}

impl<'t> Node for Cursor<'t> {
    fn shape(&self) -> Shape<'_, Self> {
        let object = |id| ObjectShape {
            class: "App\\Thing".into(),
            id,
            ..Default::default()
        };
        match self.0 {
            Tree::Null => Shape::Null,
            Tree::Int(n) => Shape::Int(*n),
            Tree::Float(f) => Shape::Float(*f),
            Tree::Bytes(bytes) => Shape::Bytes(Cow::Borrowed(bytes)),
            Tree::List(items) => Shape::Array {
                is_list: true,
                count: items.len(),
                entries: Box::new(
                    items
                        .iter()
                        .enumerate()
                        .map(|(at, item)| (Key::Int(at as i64), cursor(item))),
                ),
            },
            Tree::Map(items) => Shape::Array {
                is_list: false,
                count: items.len(),
                entries: Box::new(pairs(items).into_iter()),
            },
            Tree::Object(id, _) => Shape::Object(object(*id)),
            Tree::Throws => Shape::Object(object(1_000_001)),
            Tree::Exits => Shape::Object(object(1_000_002)),
            Tree::Iterable(id, _) => Shape::Iterable {
                class: "App\\Items".into(),
                id: *id,
            },
        }
    }

    fn backing(&self) -> Option<Self> {
        None
    }

    fn properties(&self) -> UserCode<Vec<(Key, Self)>> {
        match self.0 {
            Tree::Object(_, items) => UserCode::Gave(pairs(items)),
            Tree::Throws => UserCode::Threw(Thrown {
                class: "E".into(),
                message: "m".repeat(5_000),
            }),
            _ => UserCode::Ended,
        }
    }

    fn size_hint(&self) -> UserCode<Option<i64>> {
        UserCode::Gave(Some(7))
    }

    fn step(&self, first: bool) -> UserCode<Step<Self>> {
        let at = if first { 0 } else { self.1.get() + 1 };
        self.1.set(at);
        let Tree::Iterable(_, items) = self.0 else {
            return UserCode::Ended;
        };
        UserCode::Gave(match items.get(at) {
            Some(item) => Step::Item(cursor(&Tree::Null), cursor(item)),
            None => Step::Done,
        })
    }
}

fn encode(tree: &Tree) -> Result<Value, Ended> {
    encode_value(&cursor(tree), Limits::default())
}

/// The length of a value as PHP's `json_encode` prints it without flags: slashes and everything
/// beyond ASCII escaped.
fn length_in_php(value: &Value) -> usize {
    let text = value.to_string();
    text.chars()
        .map(|c| match c {
            '/' => 2,
            '\u{10000}'.. => 12,
            '\u{7f}'.. => 6,
            _ => 1,
        })
        .sum()
}

fn depth(value: &Value) -> usize {
    let inner = |value: &Value| match value {
        Value::Array(items) => items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    };
    match value {
        Value::Object(map) => {
            let below = ["value", "properties", "preview"]
                .iter()
                .filter_map(|key| map.get(*key));
            let below = below.filter(|value| value.is_object() || value.is_array());
            below
                .map(|value| 1 + inner(value))
                .max()
                .unwrap_or_else(|| inner(value))
        }
        _ => inner(value),
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..30),
        ".{0,20}".prop_map(String::into_bytes),
        (0..30_000_usize, "[a/\u{1}\u{e9}\u{1f600}]").prop_map(|(n, c)| c.repeat(n).into_bytes()),
    ];
    let leaf = prop_oneof![
        Just(Tree::Null),
        Just(Tree::Throws),
        any::<i64>().prop_map(Tree::Int),
        any::<f64>().prop_map(Tree::Float),
        bytes.prop_map(Tree::Bytes),
    ];
    leaf.prop_recursive(7, 300, 60, |inner| {
        let key = prop_oneof![
            ".{0,8}".prop_map(String::into_bytes),
            prop::collection::vec(any::<u8>(), 0..3_000)
        ];
        let map = prop::collection::vec((key, inner.clone()), 0..60);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..60).prop_map(Tree::List),
            map.clone().prop_map(Tree::Map),
            (0..20_u32, map).prop_map(|(id, items)| Tree::Object(id, items)),
            (0..20_u32, prop::collection::vec(inner, 0..60))
                .prop_map(|(id, items)| Tree::Iterable(id, items)),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_tree_makes_an_answer_too_long_or_too_deep(tree in trees()) {
        let value = encode(&tree).unwrap();
        prop_assert!(length_in_php(&value) <= VALUE_MAX_BYTES);
        prop_assert!(depth(&value) <= MAX_DEPTH, "{}", depth(&value));
    }

    #[test]
    fn wide_trees_stay_within_the_bound(width in 900..1_200_usize, length in 0..2_000_usize, c in "[ax\u{2}/\u{e9}]") {
        let text = Tree::Bytes(c.repeat(length).into_bytes());
        let row = Tree::List(vec![text; 10]);
        let value = encode(&Tree::List(vec![row; width])).unwrap();
        prop_assert!(length_in_php(&value) <= VALUE_MAX_BYTES, "{}", length_in_php(&value));
        prop_assert_eq!(&value["count"], &json!(width));
        let shown = value["value"].as_array().unwrap().len();
        prop_assert!(shown <= MAX_ENTRIES);
        prop_assert_eq!(value.get("truncated").is_some(), shown < width);
    }

    #[test]
    fn a_string_is_cut_at_its_bound_and_between_characters(text in "[a\u{e9}\u{20ac}\u{1f600}]{0,6000}") {
        let value = encode(&Tree::Bytes(text.clone().into_bytes())).unwrap();
        let shown = value["value"].as_str().unwrap();
        if text.len() <= STRING_MAX {
            prop_assert_eq!(shown, text.as_str());
            prop_assert!(value.get("truncated").is_none());
        } else {
            let head = shown.strip_suffix("...(truncated)").unwrap();
            prop_assert!(text.starts_with(head) && head.len() > STRING_MAX - 4 && head.len() <= STRING_MAX);
            prop_assert_eq!(&value["length"], &json!(text.len()));
        }
    }
}

#[test]
fn truncated_stubs_do_not_add_up_past_the_bound() {
    let big = Tree::Bytes(vec![1; 2_000]);
    let tree = Tree::List(vec![Tree::List(vec![Tree::List(vec![big; 100]); 100]); 10]);
    let value = encode(&tree).unwrap();
    assert!(
        length_in_php(&value) <= VALUE_MAX_BYTES,
        "{}",
        length_in_php(&value)
    );
    assert!(
        length_in_php(&value) > VALUE_MAX_BYTES / 2,
        "the room is used"
    );
}

#[test]
fn what_throws_is_marked_in_its_place_and_the_rest_is_shown() {
    let value = encode(&Tree::List(vec![Tree::Throws, Tree::Int(2)])).unwrap();
    assert_eq!(value["value"][0]["error"]["class"], "E");
    assert_eq!(value["value"][1], json!({ "type": "int", "value": 2 }));
}

#[test]
fn what_ends_the_run_ends_the_encoding() {
    assert_eq!(encode(&Tree::List(vec![Tree::Exits])), Err(Ended));
}

#[test]
fn an_iteration_is_followed_for_its_preview_and_no_further() {
    let items = |n: usize| Tree::Iterable(1, vec![Tree::Null; n]);
    let value = encode(&items(ITERABLE_PREVIEW)).unwrap();
    assert_eq!(value["preview"].as_array().unwrap().len(), ITERABLE_PREVIEW);
    assert_eq!(
        (&value["exhausted"], &value["size_hint"]),
        (&json!(true), &json!(7))
    );
    let value = encode(&items(ITERABLE_PREVIEW + 1)).unwrap();
    assert_eq!(value["preview"].as_array().unwrap().len(), ITERABLE_PREVIEW);
    assert_eq!(value["exhausted"], json!(false));
}

#[test]
fn an_object_on_its_own_path_is_a_reference_and_beside_it_is_not() {
    let inner = Tree::Object(5, vec![(b"self".to_vec(), Tree::Object(5, vec![]))]);
    let value = encode(&Tree::List(vec![inner.clone(), inner])).unwrap();
    for at in 0..2 {
        assert_eq!(value["value"][at]["type"], "object");
        assert_eq!(
            value["value"][at]["properties"]["self"]["type"],
            "reference"
        );
    }
}
