//! The bounds of encoded values, against arbitrary trees.
#![allow(clippy::unwrap_used)]

use std::borrow::Cow;

use altair_engine::encode::{
    BuiltIn, ClosureView, Ended, ITERABLE_PREVIEW, Key, Laziness, MAX_DEPTH, MAX_ENTRIES, Node,
    ObjectKind, ObjectShape, Options, OwnCasters, Property, STRING_MAX, Shape, Step, Thrown,
    UserCode, VALUE_MAX_BYTES, Visibility, encode_value,
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
    /// Its properties are public, protected and private in turn, and every seventh is hidden.
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
    fn shape(&self) -> Shape<'_> {
        let object = |id, kind| {
            Shape::Object(ObjectShape {
                class: "App\\Thing".into(),
                id,
                kind,
            })
        };
        match self.0 {
            Tree::Null => Shape::Null,
            Tree::Int(n) => Shape::Int(*n),
            Tree::Float(f) => Shape::Float(*f),
            Tree::Bytes(bytes) => Shape::Bytes(Cow::Borrowed(bytes)),
            Tree::List(items) => Shape::Array {
                is_list: true,
                count: items.len(),
            },
            Tree::Map(items) => Shape::Array {
                is_list: false,
                count: items.len(),
            },
            Tree::Object(id, _) => object(*id, ObjectKind::Plain),
            Tree::Throws => object(1_000_001, ObjectKind::Plain),
            Tree::Exits => object(1_000_002, ObjectKind::Plain),
            Tree::Iterable(id, _) => object(*id, ObjectKind::Traversable),
        }
    }

    fn entries(&self, max: usize) -> Vec<(Key, Self)> {
        match self.0 {
            Tree::List(items) => items
                .iter()
                .take(max)
                .enumerate()
                .map(|(at, item)| (Key::Int(at as i64), cursor(item)))
                .collect(),
            Tree::Map(items) => pairs(&items[..items.len().min(max)]),
            _ => Vec::new(),
        }
    }

    fn slots(&self, max: usize) -> (Vec<Property<Self>>, usize) {
        let Tree::Object(_, items) = self.0 else {
            return (Vec::new(), 0);
        };
        let slots = pairs(items).into_iter().enumerate().take(max);
        let slots = slots.map(|(at, (name, value))| Property {
            visibility: [
                Visibility::Public,
                Visibility::Protected,
                Visibility::Private,
            ][at % 3],
            hidden_in: (at % 7 == 6).then(|| "App\\Parent".to_owned()),
            name,
            value: (at % 5 != 4).then_some(value),
        });
        (slots.collect(), items.len())
    }

    fn class_key(&self) -> usize {
        0
    }

    fn is_a(&self, _: &str) -> bool {
        false
    }

    fn has_user_method(&self, _: &str) -> bool {
        false
    }

    fn declares(&self, _: &str) -> bool {
        false
    }

    fn property(&self, _: &str, _: &str) -> Option<Self> {
        None
    }

    fn built_in(&self, _: BuiltIn) -> Option<Self> {
        None
    }

    fn laziness(&self) -> Laziness<Self> {
        Laziness::Complete
    }

    fn closure(&self) -> ClosureView {
        ClosureView::default()
    }

    fn closure_variable(&self, _: &str) -> Option<Self> {
        None
    }

    fn stream_length(&self) -> Option<i64> {
        None
    }

    fn case(&self) -> Option<String> {
        None
    }

    fn backing(&self) -> Option<Self> {
        None
    }

    fn debug_info(&self) -> UserCode<Option<Vec<(Key, Self)>>> {
        match self.0 {
            Tree::Object(..) => UserCode::Gave(None),
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

    fn copy(&self) -> UserCode<Self> {
        UserCode::Gave(cursor(self.0))
    }
}

fn encode(tree: &Tree) -> Result<Value, Ended> {
    encode_value(&cursor(tree), Options::default())
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
        // A key and a value of an iterable are as deep as each other, and no container themselves.
        Value::Object(map) if map.contains_key("key") && !map.contains_key("type") => inner(value),
        Value::Object(map) => {
            let below = ["value", "properties", "protected", "private", "preview"]
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

#[test]
fn properties_stand_by_who_sees_them() {
    let names: Vec<_> = (0..8)
        .map(|n| (format!("p{n}").into_bytes(), Tree::Int(n)))
        .collect();
    let value = encode(&Tree::Object(1, names)).unwrap();
    let keys =
        |name: &str| -> Vec<String> { value[name].as_object().unwrap().keys().cloned().collect() };
    assert_eq!(keys("properties"), ["p0", "p3", "App\\Parent::p6"]);
    assert_eq!(keys("protected"), ["p1", "p4", "p7"]);
    assert_eq!(keys("private"), ["p2", "p5"]);
    assert_eq!(value["protected"]["p4"], json!({ "type": "uninitialized" }));
}

#[test]
fn a_text_under_a_secret_name_is_hidden_inside_of_objects_and_shown_outside() {
    let named = |value: Tree| vec![(b"apiToken".to_vec(), value), (b"name".to_vec(), text("n"))];
    fn text(text: &str) -> Tree {
        Tree::Bytes(text.as_bytes().to_vec())
    }
    let object = Tree::Object(1, named(text("s3cret")));
    let hidden = json!({ "type": "string", "value": "[hidden]", "hidden": true });
    let shown = json!({ "type": "string", "value": "s3cret" });
    let value = encode(&object).unwrap();
    assert_eq!(value["properties"]["apiToken"], hidden);
    assert_eq!(value["protected"]["name"]["value"], "n");
    // Also in arrays below: nobody has asked for these one by one.
    let config = Tree::Object(
        1,
        vec![(b"config".to_vec(), Tree::Map(named(text("s3cret"))))],
    );
    let value = encode(&config).unwrap();
    assert_eq!(value["properties"]["config"]["value"]["apiToken"], hidden);
    // What the snippet itself put together is what it asked for.
    let value = encode(&Tree::Map(named(text("s3cret")))).unwrap();
    assert_eq!(value["value"]["apiToken"], shown);
    for harmless in [text(""), Tree::Null, Tree::Int(3)] {
        let value = encode(&Tree::Object(1, named(harmless))).unwrap();
        assert!(value["properties"]["apiToken"].get("hidden").is_none());
    }
    let options = Options {
        redact: false,
        ..Options::default()
    };
    let value = encode_value(&cursor(&object), options).unwrap();
    assert_eq!(value["properties"]["apiToken"], shown);
}

#[test]
fn a_name_that_is_not_utf8_is_beside_what_it_looks_like() {
    let names = vec![(vec![0xff], Tree::Int(1)), (vec![0xfe], Tree::Int(2))];
    let bytes = json!({ "\u{fffd}": "/w==", "\u{fffd}~2": "/g==" });
    let value = encode(&Tree::Map(names.clone())).unwrap();
    assert_eq!(value["key_bytes"], bytes);
    assert_eq!(value["value"]["\u{fffd}~2"]["value"], 2);
    let value = encode(&Tree::Object(1, names[..1].to_vec())).unwrap();
    assert_eq!(value["key_bytes"], json!({ "\u{fffd}": "/w==" }));
    assert!(
        encode(&Tree::Map(vec![]))
            .unwrap()
            .get("key_bytes")
            .is_none()
    );
}

#[test]
fn what_is_cut_says_how_to_see_all_of_it() {
    let nest = |levels: usize| (0..levels).fold(Tree::Int(1), |inner, _| Tree::List(vec![inner]));
    let at = |value: &Value, path: &str| value.pointer(path).unwrap().clone();
    let deep = "/value/0/value/0/value/0";
    for (levels, hint) in [(4, "depth: 4"), (6, "depth: 6"), (30, "depth: 10")] {
        assert_eq!(at(&encode(&nest(levels)).unwrap(), deep)["hint"], hint);
    }
    assert_eq!(
        encode(&Tree::List(vec![Tree::Null; 1_500])).unwrap()["hint"],
        "max_items: 1500"
    );
    assert_eq!(
        encode(&Tree::List(vec![Tree::Null; 20_000])).unwrap()["hint"],
        "max_items: 10000"
    );
    assert_eq!(
        encode(&Tree::Bytes(vec![b'a'; 20_000])).unwrap()["hint"],
        "max_string: 20000"
    );
    assert_eq!(
        encode(&Tree::Iterable(1, vec![Tree::Null; 60])).unwrap()["hint"],
        "max_items: 10000"
    );
    let properties = (0..1_200).map(|n: u32| (n.to_string().into_bytes(), Tree::Null));
    let value = encode(&Tree::Object(1, properties.collect())).unwrap();
    assert_eq!(value["hint"], "max_items: 1200");
}

#[test]
fn there_is_no_hint_at_the_most_and_another_where_the_whole_is_too_large() {
    let mut options = Options::default();
    options.limits.depth = 10;
    options.limits.entries = 10_000;
    options.limits.string = 1_000_000;
    let deep = (0..12).fold(Tree::Int(1), |inner, _| Tree::List(vec![inner]));
    let value = encode_value(&cursor(&deep), options).unwrap();
    assert!(value.to_string().contains("truncated") && !value.to_string().contains("hint"));
    let huge = encode(&Tree::List(vec![Tree::Bytes(vec![b'a'; 9_000]); 900])).unwrap();
    assert_eq!(huge["hint"], "return less of it");
    assert_eq!(huge["truncated"], true);
}

#[test]
fn iterators_do_not_advance_where_the_value_was_not_asked_for() {
    let options = Options {
        advance: false,
        ..Options::default()
    };
    let tree = Tree::List(vec![Tree::Iterable(1, vec![Tree::Exits])]);
    let value = encode_value(&cursor(&tree), options).unwrap();
    let lazy = json!({ "type": "iterable", "class": "App\\Thing", "lazy": true });
    assert_eq!(value["value"][0], lazy);
}

/// Says something of one object, and has something to complain of.
struct Casters;

impl<'t> OwnCasters<Cursor<'t>> for Casters {
    fn cast(&mut self, object: &Cursor<'t>) -> UserCode<Option<Vec<(Key, Cursor<'t>)>>> {
        match object.0 {
            Tree::Object(1, items) => UserCode::Gave(Some(pairs(&items[..1]))),
            Tree::Object(2, _) => UserCode::Threw(Thrown {
                class: "C".into(),
                message: "no".into(),
            }),
            Tree::Object(3, _) => UserCode::Ended,
            _ => UserCode::Gave(None),
        }
    }

    fn trouble(&mut self) -> UserCode<Option<Thrown>> {
        UserCode::Gave(Some(Thrown {
            class: "T".into(),
            message: "gone".into(),
        }))
    }
}

#[test]
fn an_application_shows_its_objects_in_its_own_way() {
    let encode = |tree: &Tree| {
        let options = Options {
            own: Some(&mut Casters),
            ..Options::default()
        };
        encode_value(&cursor(tree), options)
    };
    let object = |id| {
        let fields = vec![(b"a".to_vec(), Tree::Int(1)), (b"b".to_vec(), Tree::Int(2))];
        Tree::Object(id, fields)
    };
    let value = encode(&Tree::List(vec![object(1), object(2), object(4)])).unwrap();
    let shown = value["value"].as_array().unwrap();
    assert_eq!(
        shown[0]["properties"],
        json!({ "a": { "type": "int", "value": 1 } })
    );
    assert!(shown[0].get("protected").is_none());
    assert_eq!(
        shown[0]["error"],
        json!({ "class": "T", "message": "gone" })
    );
    assert_eq!(shown[1]["error"], json!({ "class": "C", "message": "no" }));
    assert!(shown[2].get("error").is_none());
    assert_eq!(shown[2]["protected"]["b"]["value"], 2);
    assert_eq!(encode(&object(3)), Err(Ended));
}
