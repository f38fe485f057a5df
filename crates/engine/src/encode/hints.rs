//! What would show more of a value, for those who ask again.

use super::bounds::LOOKED_AHEAD;
use super::node::{Node, ObjectKind, Shape};
use crate::request::{MAX_DEPTH, MAX_ITEMS, MAX_STRING};

/// How much more there is than the whole answer may hold.
pub(super) const LESS: &str = "return less of it";

/// `max_items: N`; `None` where the request asks for the most already.
pub(super) fn items(shown: usize, all: usize) -> Option<String> {
    hint("max_items", shown, all, MAX_ITEMS)
}

/// `max_string: N`.
pub(super) fn string(shown: usize, all: usize) -> Option<String> {
    hint("max_string", shown, all, MAX_STRING)
}

/// `depth: N`.
pub(super) fn depth(limit: usize, needed: usize) -> Option<String> {
    hint("depth", limit, needed, MAX_DEPTH)
}

fn hint(name: &str, now: usize, wanted: usize, most: i64) -> Option<String> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    (now < most).then(|| format!("{name}: {}", wanted.clamp(now + 1, most)))
}

/// Looks how deep a value is that is not shown, as far as this takes no code and little time.
pub(super) struct LookAhead(usize);

impl LookAhead {
    pub(super) fn new() -> Self {
        Self(LOOKED_AHEAD)
    }

    /// Levels of containers in `node`, itself included; at most `most`.
    pub(super) fn levels<N: Node>(&mut self, node: &N, most: usize) -> usize {
        if most == 0 {
            return 0;
        }
        let inner = match node.shape() {
            Shape::Array { count, .. } => {
                let seen = count.min(self.0);
                self.0 -= seen;
                node.entries(seen)
                    .into_iter()
                    .map(|(_, value)| value)
                    .collect()
            }
            Shape::Object(object) if object.kind == ObjectKind::Plain => {
                let (slots, _) = node.slots(self.0.min(50));
                self.0 = self.0.saturating_sub(slots.len());
                slots.into_iter().filter_map(|slot| slot.value).collect()
            }
            Shape::Object(_) => Vec::new(),
            _ => return 0,
        };
        let below = inner.iter().map(|value| self.levels(value, most - 1));
        1 + below.max().unwrap_or(0)
    }
}
