//! Doctrine's proxies, collections and queries.

use super::{Content, Item, Reach, View, flag, held, lazy, texts};
use crate::encode::node::{Key, Node, ObjectKind, Shape};

/// What is shown of a query builder of the ORM.
pub(super) const ORM_BUILDER: &[(&str, &str)] = &[
    ("dql_parts", "_dqlParts"),
    ("dql_parts", "dqlParts"),
    ("parameters", "parameters"),
    ("first_result", "_firstResult"),
    ("first_result", "firstResult"),
    ("max_results", "_maxResults"),
    ("max_results", "maxResults"),
];

/// What is shown of a query of the ORM.
pub(super) const QUERY: &[(&str, &str)] = &[
    ("dql", "dql"),
    ("sql", "sql"),
    ("parameters", "parameters"),
    ("first_result", "firstResult"),
    ("max_results", "maxResults"),
];

/// What is shown of a query builder of the DBAL; version 4 has a property for each part.
pub(super) const DBAL_BUILDER: &[(&str, &str)] = &[
    ("sql", "sql"),
    ("sql_parts", "sqlParts"),
    ("select", "select"),
    ("from", "from"),
    ("table", "table"),
    ("join", "join"),
    ("set", "set"),
    ("values", "values"),
    ("where", "where"),
    ("group_by", "groupBy"),
    ("having", "having"),
    ("order_by", "orderBy"),
    ("first_result", "firstResult"),
    ("max_results", "maxResults"),
    ("params", "params"),
];

/// What proxies of ORM 2 have besides their entity's properties.
const OWN: [&str; 3] = ["__initializer__", "__cloner__", "__isInitialized__"];

/// What stands between a proxy's name and its entity's.
const MARKER: &str = "\\__CG__\\";

/// A collection, if its items are loaded: reading others runs a query.
pub(super) fn collection<N: Node>(node: &N, reach: Reach) -> Option<View<N>> {
    if flag(node, "initialized") != Some(true) {
        return Some(View::of(Content::Unread));
    }
    // PersistentCollection and its own inner one, or another that a class below has chosen.
    let inner = node.property("", "collection")?;
    match inner.shape() {
        Shape::Object(_) => held(&inner, "elements", reach),
        _ => None,
    }
}

/// A proxy: what is loaded of its entity, or its identifier.
pub(super) fn proxy<N: Node>(node: &N, reach: Reach) -> Option<View<N>> {
    let Shape::Object(object) = node.shape() else {
        return None;
    };
    let entity = object
        .class
        .split_once(MARKER)
        .map(|(_, entity)| entity.to_owned());
    let view = if node.declares("__isInitialized__") {
        old_proxy(node, reach)
    } else {
        lazy::symfony(node, reach)?
    };
    let view = View {
        stands_for: entity,
        ..view
    };
    match object.kind {
        ObjectKind::Traversable if view.lazy => Some(View::of(Content::Unread)),
        ObjectKind::Traversable => None,
        _ => Some(view),
    }
}

/// A proxy of ORM 2. Before it is initialised, all but its identifier are defaults and would lie.
fn old_proxy<N: Node>(node: &N, reach: Reach) -> View<N> {
    if flag(node, "__isInitialized__") == Some(true) {
        return lazy::without(node, &OWN, reach.entries);
    }
    let initializer = node.property("", "__initializer__");
    let metadata = initializer.and_then(|closure| closure.closure_variable("classMetadata"));
    let names = metadata.map_or(Vec::new(), |metadata| {
        texts(&metadata, "identifier", reach.entries)
    });
    let identifier: Vec<(Key, Item<N>)> = names
        .into_iter()
        .filter_map(|name| {
            let value = node.property("", &name)?;
            Some((name.as_str().into(), Item::Node(value)))
        })
        .collect();
    View {
        lazy: true,
        ..View::of(Content::Fields(identifier))
    }
}
