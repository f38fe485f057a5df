//! Arrays: their entries, by position or by key.

use serde_json::{Map, Value};

use super::Encoder;
use super::map::Entries;
use crate::encode::bounds::MARKS;
use crate::encode::casters::Item;
use crate::encode::node::{Ended, Node};

impl<N: Node> Encoder<'_, N> {
    pub(super) fn array(
        &mut self,
        node: &N,
        is_list: bool,
        count: usize,
        depth: usize,
    ) -> Result<Value, Ended> {
        let mut map = Map::new();
        map.insert("type".into(), "array".into());
        if depth >= self.limits.depth {
            map.insert("count".into(), count.into());
            return Ok(self.named(node, map, "array", depth));
        }
        map.insert("is_list".into(), is_list.into());
        map.insert("count".into(), count.into());
        if !self.open(&map) {
            return Ok(self.cut("array"));
        }
        let mut list = Vec::new();
        let mut entries = Entries::default();
        for (key, value) in node.entries(self.limits.entries) {
            if is_list {
                // A comma, and what PHP prints around it.
                if !self.budget.take(2) || self.budget.left() < MARKS {
                    break;
                }
                list.push(self.at(&value, depth + 1)?);
            } else if !self.entry(&mut entries, &key, &Item::Node(value), depth + 1)? {
                break;
            }
        }
        let shown = if is_list {
            list.len()
        } else {
            entries.shown.len()
        };
        if is_list {
            map.insert("value".into(), list.into());
        } else {
            entries.insert("value", &mut map);
        }
        let mut marks = Map::new();
        if shown < count {
            self.mark_cut(&mut marks, shown, count, self.limits.entries);
        }
        self.close(marks, &mut map);
        Ok(Value::Object(map))
    }
}
