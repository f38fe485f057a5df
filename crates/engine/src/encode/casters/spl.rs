//! Structures of PHP's own SPL: what they hold, without moving or emptying them.

use super::{Content, Item, Reach, View, keyed};
use crate::encode::node::{BuiltIn, Ended, Key, Node, Shape};

/// Iterables of PHP's own that a look does not change.
const STILL: [&str; 11] = [
    "ArrayObject",
    "ArrayIterator",
    "SplFixedArray",
    "SplDoublyLinkedList",
    "SplHeap",
    "SplPriorityQueue",
    "SplObjectStorage",
    "WeakMap",
    "DatePeriod",
    "DOMNodeList",
    "DOMNamedNodeMap",
];

/// What an iteration calls.
const STEPS: [&str; 7] = [
    "rewind",
    "valid",
    "current",
    "key",
    "next",
    "getiterator",
    "count",
];

/// `SplDoublyLinkedList::IT_MODE_LIFO`.
const LAST_FIRST: i64 = 2;

/// Whether an iteration of the object changes nothing, and runs nothing of the application.
pub(in crate::encode) fn is_still<N: Node>(node: &N) -> bool {
    STILL.iter().any(|class| node.is_a(class)) && !is_iterated_by_user(node)
}

/// Whether a class below PHP's own gives items of its own.
fn is_iterated_by_user<N: Node>(node: &N) -> bool {
    STEPS.iter().any(|name| node.has_user_method(name))
}

/// `ArrayObject` and `ArrayIterator`.
pub(super) fn array_like<N: Node>(node: &N, copy: BuiltIn, reach: Reach) -> Option<View<N>> {
    if is_iterated_by_user(node) {
        return None;
    }
    let copy = node.built_in(copy)?;
    let Shape::Array { count, .. } = copy.shape() else {
        return None;
    };
    let found = copy.entries(reach.preview);
    let before = found.len();
    // One that wraps an object has its private properties, under names that begin with a NUL.
    let seen: Vec<_> = found
        .into_iter()
        .filter(|(key, _)| !matches!(key, Key::Bytes(name) if name.first() == Some(&0)))
        .collect();
    let count = count - (before - seen.len());
    Some(View::of(Content::Items(keyed(seen), count)))
}

/// `SplObjectStorage`: its objects as keys, and what is stored with them.
pub(super) fn object_storage<N: Node>(node: &N, reach: Reach) -> Option<View<N>> {
    let (storage, _) = info(node, BuiltIn::ObjectStorageInfo, b"storage")?;
    let Shape::Array { count, .. } = storage.shape() else {
        return None;
    };
    let mut items = Vec::new();
    for (_, pair) in storage.entries(reach.preview) {
        let mut pair = pair.entries(2).into_iter();
        let (Some((_, object)), Some((_, data))) = (pair.next(), pair.next()) else {
            return None;
        };
        items.push((Item::Node(object), Item::Node(data)));
    }
    Some(View::of(Content::Items(items, count)))
}

/// `SplDoublyLinkedList`, `SplQueue` and `SplStack`, in the order of an iteration.
pub(super) fn linked_list<N: Node>(node: &N, reach: Reach) -> Option<View<N>> {
    if is_iterated_by_user(node) {
        return None;
    }
    let (list, flags) = info(node, BuiltIn::LinkedListInfo, b"dllist")?;
    let Shape::Array { count, .. } = list.shape() else {
        return None;
    };
    let items = if flags & LAST_FIRST == 0 {
        list.entries(reach.preview)
    } else {
        let mut items = list.entries(count);
        items.reverse();
        items.truncate(reach.preview);
        items
    };
    Some(View::of(Content::Items(keyed(items), count)))
}

/// A heap or a priority queue: an iteration takes its items out of a clone.
pub(super) fn consumed<N: Node>(node: &N) -> Result<View<N>, Ended> {
    Ok(match node.copy().result()? {
        Ok(copy) => View::of(Content::Iterator(Some(copy))),
        Err(thrown) => View::of(Content::Threw(thrown)),
    })
}

/// The entry whose private name ends so, and the flags beside it, of what a built-in tells of itself.
fn info<N: Node>(node: &N, method: BuiltIn, name: &[u8]) -> Option<(N, i64)> {
    let info = node.built_in(method)?;
    let mut flags = 0;
    let mut found = None;
    for (key, value) in info.entries(usize::MAX) {
        let Key::Bytes(key) = key else {
            continue;
        };
        if let (true, Shape::Int(n)) = (key.ends_with(b"\0flags"), value.shape()) {
            flags = n;
        } else if key.first() == Some(&0) && key.ends_with(name) {
            found = Some(value);
        }
    }
    Some((found?, flags))
}
