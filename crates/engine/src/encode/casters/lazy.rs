//! Objects that are not there before they are used.

use super::{Content, Reach, View, int};
use crate::encode::node::{Key, Node};

/// The property by which lazy objects of Symfony's VarExporter know how far they are.
pub(super) const STATE: &str = "lazyObjectState";

/// `LazyObjectState::STATUS_UNINITIALIZED_FULL` and `STATUS_UNINITIALIZED_PARTIAL`.
const UNINITIALIZED: [i64; 2] = [1, 2];

/// A lazy ghost or proxy of Symfony's; `None` for one that is like any other object.
pub(super) fn symfony<N: Node>(node: &N, reach: Reach) -> Option<View<N>> {
    let Some(state) = node.property("", STATE) else {
        // It was made without being lazy.
        return node
            .declares(STATE)
            .then(|| without(node, &[STATE], reach.entries));
    };
    if let Some(instance) = state.property("", "realInstance") {
        return Some(View::of(Content::Instance(instance)));
    }
    let status = int(&state, "status");
    // A proxy that has no instance yet keeps its initialiser; its status stays 0.
    let is_waiting = status.is_none_or(|status| status == 0 || UNINITIALIZED.contains(&status));
    Some(View {
        lazy: is_waiting,
        ..without_unset(node, &[STATE], reach.entries, is_waiting)
    })
}

/// An object that is not initialised: the properties that it has already.
pub(in crate::encode) fn waiting<N: Node>(node: &N, most: usize) -> View<N> {
    View {
        lazy: true,
        ..without_unset(node, &[], most, true)
    }
}

/// An object's properties but for some.
pub(super) fn without<N: Node>(node: &N, names: &[&str], most: usize) -> View<N> {
    without_unset(node, names, most, false)
}

fn without_unset<N: Node>(node: &N, names: &[&str], most: usize, only_set: bool) -> View<N> {
    let (mut properties, count) = node.slots(most);
    let before = properties.len();
    properties.retain(|property| {
        let is_named = matches!(&property.name, Key::Bytes(name)
            if names.iter().any(|known| known.as_bytes() == name));
        !(is_named || only_set && property.value.is_none())
    });
    let count = count - (before - properties.len());
    View::of(Content::Properties(properties, count))
}
