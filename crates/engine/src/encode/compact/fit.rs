//! Cuts a value to a number of bytes.

use super::RETURN_LESS;
use super::item::{Container, Cut, Item, Kind, Layout, Shape, Text};
use super::size::head_of;
use crate::encode::head;

/// Bytes below which a value is not cut for the sake of its siblings.
const SMALL: usize = 100;
/// Bytes that an item of a list gets at least, if it needs them: rows are shown whole rather than
/// in great number.
const ROW: usize = 512;
/// The most bytes that opening a container may reserve.
const OPEN_MAX: usize = 300;

/// Cuts `item` to `budget` bytes.
pub fn fit(item: &mut Item, budget: usize) {
    if item.size <= budget {
        return;
    }
    let fitted = match &mut item.shape {
        Shape::Text(text) => cut_text(text, budget),
        Shape::Container(container) => cut_container(container, budget),
        Shape::Plain(..) | Shape::Reference { .. } => None,
    };
    *item = match fitted {
        Some(fitted) if fitted.size <= budget => fitted,
        _ => Item::plain(serde_json::json!({ "@cut": item.kind() }), item.kind()),
    };
}

fn cut_text(text: &mut Text, budget: usize) -> Option<Item> {
    let length = match &text.cut {
        Some(cut) => cut.count,
        None if text.is_base64 => u64::try_from(text.shown.len() / 4 * 3).ok(),
        None => u64::try_from(text.shown.len()).ok(),
    };
    // Of a base64 text the padding is none of the bytes.
    let padding = text.shown.bytes().rev().take_while(|b| *b == b'=').count();
    let padding = if text.is_base64 && text.cut.is_none() {
        padding
    } else {
        0
    };
    let mut cut = Text {
        shown: String::new(),
        is_base64: text.is_base64,
        cut: Some(Cut {
            count: length.map(|n| n.saturating_sub(padding as u64)),
            hint: Some(RETURN_LESS.into()),
        }),
    };
    let room = budget.checked_sub(cut.size())?;
    let shown = head_of(&text.shown, room);
    let whole = if text.is_base64 {
        shown.len() / 4 * 4
    } else {
        shown.len()
    };
    // What says of itself that it is base64 need not be.
    cut.shown = head(shown, whole).to_owned();
    Some(Item::new(Shape::Text(cut)))
}

fn cut_container(container: &mut Container, budget: usize) -> Option<Item> {
    let layout = container.layout();
    let floor = match layout {
        Layout::List => (budget / 40).clamp(SMALL, ROW),
        Layout::Object | Layout::Map => SMALL,
    };
    let entries = container.entries.iter();
    // Of each entry: the bytes of the value at least, and with its key.
    let least: Vec<(usize, usize)> = entries
        .map(|(key, item)| {
            let least = item.size.min(floor.max(opened(item)));
            (least, key.size(layout) + least)
        })
        .collect();
    let sum = |least: &[(usize, usize)]| least.iter().map(|(_, size)| size).sum::<usize>();
    let mut shown = least.len();
    if container.frame(layout) + sum(&least) > budget {
        mark(container);
        let mut left = budget.saturating_sub(container.frame(layout));
        let fits = |(_, size): &&(usize, usize)| {
            let rest = left.checked_sub(*size);
            left = rest.unwrap_or(left);
            rest.is_some()
        };
        shown = least.iter().take_while(fits).count();
        if shown == 0 {
            return Some(named(container));
        }
        container.entries.truncate(shown);
    }
    let least = &least[..shown];
    let used = container.frame(layout) + sum(least);
    share(container, least, budget.saturating_sub(used));
    let empty = Container {
        kind: Kind::Array,
        entries: Vec::new(),
        cut: None,
        error: None,
    };
    let cut = std::mem::replace(container, empty);
    Some(Item::new(Shape::Container(cut)))
}

/// Gives each entry what it needs at least and an equal part of what is left. Those that need little
/// come first, so that what they leave goes to the others.
fn share(container: &mut Container, least: &[(usize, usize)], mut left: usize) {
    let mut order: Vec<usize> = (0..container.entries.len()).collect();
    order.sort_by_key(|at| container.entries[*at].1.size - least[*at].0);
    let count = order.len();
    for (done, at) in order.into_iter().enumerate() {
        let item = &mut container.entries[at].1;
        fit(item, least[at].0 + left / (count - done));
        left = (left + least[at].0).saturating_sub(item.size);
    }
}

/// The bytes that it takes to show something of an item.
fn opened(item: &Item) -> usize {
    match &item.shape {
        Shape::Container(container) => {
            let layout = container.layout();
            let first = container.entries.first();
            let first = first.map_or(0, |(key, item)| key.size(layout) + item.size.min(SMALL));
            // The frame, and the mark of a cut around it.
            (container.frame(layout) + 30 + by_budget(container).size() + first).min(OPEN_MAX)
        }
        _ => SMALL,
    }
}

/// Notes that entries are missing.
fn mark(container: &mut Container) {
    let cut = by_budget(container);
    match &mut container.kind {
        Kind::Iterable { more, hint, .. } => {
            *more = true;
            *hint = cut.hint;
        }
        Kind::Array | Kind::Object { .. } => container.cut = Some(cut),
    }
}

/// The cut that the budget makes.
fn by_budget(container: &Container) -> Cut {
    let known = container.cut.as_ref().and_then(|cut| cut.count);
    let count = match &container.kind {
        Kind::Array => known.or(u64::try_from(container.entries.len()).ok()),
        Kind::Object { .. } => known,
        Kind::Iterable { size_hint, .. } => *size_hint,
    };
    Cut {
        count,
        hint: Some(RETURN_LESS.into()),
    }
}

fn named(container: &Container) -> Item {
    let cut = by_budget(container);
    Item::plain(container.kind.named(&cut), container.kind.name())
}
