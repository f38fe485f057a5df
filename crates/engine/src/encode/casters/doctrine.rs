//! Doctrine's proxies, collections and queries.

use super::{Content, Item, Reach, View, entries, fields, flag, held, lazy, text, texts};
use crate::encode::node::{Key, Node, ObjectKind, Shape};

/// What is shown of a query builder of the ORM.
pub(super) const ORM_BUILDER: &[(&str, &str)] = &[
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

/// What is shown of a query builder of the DBAL.
pub(super) const DBAL_BUILDER: &[(&str, &str)] = &[
    ("sql", "sql"),
    ("table", "table"),
    ("values", "values"),
    ("first_result", "firstResult"),
    ("max_results", "maxResults"),
    ("params", "params"),
];

/// The parts of a query of DBAL 4, which has a property for each of them.
const DBAL_PARTS: [(&str, &str); 8] = [
    ("select", "select"),
    ("from", "from"),
    ("join", "join"),
    ("set", "set"),
    ("where", "where"),
    ("group_by", "groupBy"),
    ("having", "having"),
    ("order_by", "orderBy"),
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

/// Expressions in each other, and bytes of their text, at most.
const DEPTH: usize = 20;
const LENGTH: usize = 10_000;

/// A query builder: each part that it has as text, as its properties tell it. The whole text would be
/// its own code's.
pub(super) fn builder<N: Node>(
    node: &N,
    parts: [&str; 2],
    names: &[(&str, &str)],
    reach: Reach,
) -> View<N> {
    let of = |name: &&str| entries(node, name, reach.entries);
    let parts = match parts.iter().find_map(of) {
        Some((parts, _)) => parts,
        None => {
            let own =
                |(shown, name): (&str, &str)| Some((Key::from(shown), node.property("", name)?));
            DBAL_PARTS.into_iter().filter_map(own).collect()
        }
    };
    let parts = parts.into_iter().filter_map(|(name, part)| {
        let words = words(&part, DEPTH);
        (!words.is_empty()).then_some((name, Item::Text(words)))
    });
    let mut shown: Vec<(Key, Item<N>)> = parts.collect();
    shown.extend(fields(node, names));
    View::of(Content::Fields(shown))
}

/// Whether what stands between two expressions makes a condition of them.
fn is_logical(between: &str) -> bool {
    let between = between.trim();
    between.eq_ignore_ascii_case("and") || between.eq_ignore_ascii_case("or")
}

/// Whether an expression is of several, which belong together where others stand beside it.
fn is_compound(words: &str) -> bool {
    words.split_whitespace().any(is_logical)
}

/// An expression of a query as it would be written, or nearly.
fn words<N: Node>(node: &N, depth: usize) -> String {
    if depth == 0 {
        return "...".into();
    }
    let below = |nodes: Vec<N>, between: &str| {
        let mut all = String::new();
        let is_one_of_several = nodes.len() > 1;
        for words in nodes.iter().map(|node| words(node, depth - 1)) {
            if words.is_empty() || all.len() > LENGTH {
                continue;
            }
            let words = match is_one_of_several && is_logical(between) && is_compound(&words) {
                true => format!("({words})"),
                false => words,
            };
            if !all.is_empty() {
                all.push_str(between);
            }
            all.push_str(&words);
        }
        all
    };
    let values = |node: &N| -> Vec<N> {
        let entries = node.entries(100).into_iter();
        entries.map(|(_, value)| value).collect()
    };
    match node.shape() {
        Shape::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Shape::Int(n) => n.to_string(),
        Shape::Float(f) => f.to_string(),
        // A table and its alias are the entries of an array.
        Shape::Array { is_list, .. } => below(values(node), if is_list { ", " } else { " " }),
        Shape::Object(_) => {
            let properties = |names: &[&str]| -> Vec<N> {
                let found = names.iter().filter_map(|name| node.property("", name));
                found.collect()
            };
            // A join is a word between its kind and its table, and perhaps one before its condition.
            let join = |kind: &str, table: &[&str], word: &str| {
                let kind = text(node, "", kind).unwrap_or_default();
                let table = below(properties(table), " ");
                let condition = node.property("", "condition");
                let condition = condition.map(|condition| words(&condition, depth - 1));
                let condition = condition.filter(|condition| !condition.is_empty());
                let condition = condition.map(|condition| format!(" {word} {condition}"));
                format!("{kind} JOIN {table}{}", condition.unwrap_or_default())
            };
            if let Some(parts) = node.property("", "parts") {
                let between = text(node, "", "separator");
                let between = between.or_else(|| Some(format!(" {} ", text(node, "", "type")?)));
                below(values(&parts), &between.unwrap_or_else(|| ", ".into()))
            } else if node.declares("operator") {
                below(properties(&["leftExpr", "operator", "rightExpr"]), " ")
            } else if node.declares("arguments") {
                let arguments = below(properties(&["arguments"]), ", ");
                format!(
                    "{}({arguments})",
                    text(node, "", "name").unwrap_or_default()
                )
            } else if node.declares("joinType") {
                let word = text(node, "", "conditionType").unwrap_or_default();
                join("joinType", &["join", "alias"], &word)
            } else if node.declares("condition") {
                join("type", &["table", "alias"], "ON")
            } else {
                below(properties(&["from", "table", "alias"]), " ")
            }
        }
        _ => String::new(),
    }
}
