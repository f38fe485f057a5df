//! Exceptions as values.

use super::{Content, Item, Reach, View, fields, lazy};
use crate::encode::node::{Key, Node, Property, Visibility};

/// What every exception has; its trace holds the arguments of all calls.
const SHOWN: &[(&str, &str)] = &[
    ("message", "message"),
    ("code", "code"),
    ("file", "file"),
    ("line", "line"),
    ("previous", "previous"),
];
const OWN: [&str; 7] = [
    "message", "string", "code", "file", "line", "trace", "previous",
];

/// An exception: what every one has, and what its class has added.
pub(super) fn exception<N: Node>(node: &N, reach: Reach) -> View<N> {
    let mut properties: Vec<Property<N>> = fields(node, SHOWN)
        .into_iter()
        .filter_map(|(name, item)| match item {
            Item::Node(value) => Some(Property {
                visibility: Visibility::Public,
                hidden_in: None,
                name,
                value: Some(value),
            }),
            _ => None,
        })
        .collect();
    let (added, count) = match lazy::without(node, &OWN, reach.entries).content {
        Content::Properties(added, count) => (added, count),
        _ => (Vec::new(), 0),
    };
    let count = count + properties.len();
    let is_other = |property: &Property<N>| matches!(&property.name, Key::Bytes(_) | Key::Int(_));
    properties.extend(added.into_iter().filter(is_other));
    View::of(Content::Properties(properties, count))
}
