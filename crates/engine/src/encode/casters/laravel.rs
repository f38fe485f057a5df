//! Eloquent's models, and the queries of Laravel's database component.

use super::{Content, Item, Reach, View, entries, fields, flag, int, text, texts};
use crate::encode::node::{Key, Node, Shape};

/// What is shown of a page of results.
pub(super) const PAGE: &[(&str, &str)] = &[
    ("current_page", "currentPage"),
    ("per_page", "perPage"),
    ("total", "total"),
    ("last_page", "lastPage"),
    ("items", "items"),
];

/// The parts of a query. Its SQL would be its grammar's, and that is code of a library; the values
/// that are bound are added to these.
const QUERY: &[(&str, &str)] = &[
    ("from", "from"),
    ("columns", "columns"),
    ("distinct", "distinct"),
    ("aggregate", "aggregate"),
    ("joins", "joins"),
    ("wheres", "wheres"),
    ("groups", "groups"),
    ("havings", "havings"),
    ("orders", "orders"),
    ("limit", "limit"),
    ("offset", "offset"),
    ("unions", "unions"),
    ("lock", "lock"),
];

/// Casts of attributes whose stored value is secret.
const SECRET_CASTS: [&str; 2] = ["hashed", "encrypted"];

/// A model: its attributes as they are stored, and the relations that are loaded.
pub(super) fn model<N: Node>(node: &N, reach: Reach) -> Option<View<N>> {
    let (attributes, count) = entries(node, "attributes", reach.entries)?;
    let mut hidden = texts(node, "hidden", reach.entries);
    let (casts, _) = entries(node, "casts", reach.entries).unwrap_or_default();
    hidden.extend(casts.into_iter().filter_map(|(name, cast)| {
        let Shape::Bytes(cast) = cast.shape() else {
            return None;
        };
        let secret = SECRET_CASTS
            .iter()
            .any(|prefix| cast.starts_with(prefix.as_bytes()));
        secret.then(|| name.text())
    }));
    let is_hidden =
        |name: &Key, value: &N| reach.redact && !is_empty(value) && hidden.contains(&name.text());
    let (original, _) = entries(node, "original", reach.entries).unwrap_or_default();
    let changed: Vec<Item<N>> = attributes
        .iter()
        .filter(|(name, value)| {
            let stored = original.iter().find(|(known, _)| known == name);
            stored.is_none_or(|(_, stored)| !is_same(value, stored))
        })
        .map(|(name, _)| Item::Text(name.text()))
        .collect();
    let (relations, related) = entries(node, "relations", reach.entries).unwrap_or_default();
    let name = text(node, "", "primaryKey").unwrap_or_else(|| "id".to_owned());
    let key = attributes
        .iter()
        .position(|(known, _)| known.text() == name);
    let show = |(name, value): (Key, N)| {
        let item = match is_hidden(&name, &value) {
            true => Item::Hidden,
            false => Item::Node(value),
        };
        (name, item)
    };
    let mut shown = Vec::new();
    if let Some(at) = key
        && let Some(key) = node.property("", "attributes")
        && let Some((_, value)) = key.entries(at + 1).pop()
    {
        shown.push(("key".into(), show((name.as_str().into(), value)).1));
    }
    let exists = flag(node, "exists").unwrap_or_default();
    shown.push(("exists".into(), Item::Bool(exists)));
    let attributes = attributes.into_iter().map(show).collect();
    shown.push(("attributes".into(), Item::Map(attributes, count)));
    if !changed.is_empty() {
        shown.push(("changed".into(), Item::List(changed)));
    }
    if related > 0 {
        let relations = relations.into_iter().map(show).collect();
        shown.push(("relations".into(), Item::Map(relations, related)));
    }
    Some(View::of(Content::Fields(shown)))
}

/// A query for models.
pub(super) fn model_query<N: Node>(node: &N, reach: Reach) -> Option<View<N>> {
    let below = node.property("", "query")?;
    let mut shown = Vec::new();
    if let Some(Shape::Object(model)) = node.property("", "model").as_ref().map(Node::shape) {
        shown.push(("model".into(), Item::Text(model.class)));
    }
    shown.extend(query(&below, reach));
    Some(View::of(Content::Fields(shown)))
}

/// A query, as its properties tell it.
pub(super) fn query<N: Node>(node: &N, reach: Reach) -> Vec<(Key, Item<N>)> {
    let mut shown = fields(node, QUERY);
    let (kinds, _) = entries(node, "bindings", reach.entries).unwrap_or_default();
    let bound = kinds
        .into_iter()
        .flat_map(|(_, values)| match values.shape() {
            Shape::Array { .. } => values.entries(reach.entries),
            _ => Vec::new(),
        });
    let bound: Vec<Item<N>> = bound.map(|(_, value)| Item::Node(value)).collect();
    if !bound.is_empty() {
        shown.push(("bindings".into(), Item::List(bound)));
    }
    if let Some(connection) = node.property("", "connection")
        && let Some(database) = text(&connection, "", "database")
    {
        shown.push(("database".into(), Item::Text(database)));
    }
    if let Some(Shape::Null) | None = node.property("", "limit").as_ref().map(Node::shape)
        && let Some(limit) = int(node, "unionLimit")
    {
        shown.push(("union_limit".into(), Item::Int(limit)));
    }
    shown
}

fn is_empty<N: Node>(value: &N) -> bool {
    match value.shape() {
        Shape::Null => true,
        Shape::Bytes(bytes) => bytes.is_empty(),
        _ => false,
    }
}

/// Whether two stored values are one: a driver may give a number as text.
fn is_same<N: Node>(one: &N, other: &N) -> bool {
    let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.parse::<i64>().ok();
    match (one.shape(), other.shape()) {
        (Shape::Null, Shape::Null) => true,
        (Shape::Bool(a), Shape::Bool(b)) => a == b,
        (Shape::Int(a), Shape::Int(b)) => a == b,
        (Shape::Float(a), Shape::Float(b)) => a.to_bits() == b.to_bits(),
        (Shape::Bytes(a), Shape::Bytes(b)) => a == b,
        (Shape::Int(a), Shape::Bytes(b)) | (Shape::Bytes(b), Shape::Int(a)) => {
            number(&b) == Some(a)
        }
        (Shape::Bool(a), Shape::Int(b)) | (Shape::Int(b), Shape::Bool(a)) => i64::from(a) == b,
        _ => false,
    }
}
