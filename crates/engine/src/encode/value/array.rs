//! Arrays: their entries, by position or by key.

use serde_json::{Map, Value, json};

use super::{Encoder, distinct};
use crate::encode::bounds::MARKS;
use crate::encode::budget::text_cost;
use crate::encode::node::{Ended, Key, Node};

impl Encoder {
    pub(super) fn array<'a, N: Node>(
        &mut self,
        is_list: bool,
        count: usize,
        entries: Box<dyn Iterator<Item = (Key, N)> + 'a>,
        depth: usize,
    ) -> Result<Value, Ended> {
        if depth >= self.limits.depth {
            return Ok(self.paid(
                json!({ "type": "array", "count": count, "truncated": true }),
                "array",
            ));
        }
        let mut map = Map::new();
        map.insert("type".into(), "array".into());
        map.insert("is_list".into(), is_list.into());
        map.insert("count".into(), count.into());
        if !self.open(&map) {
            return Ok(self.cut("array"));
        }
        let mut list = Vec::new();
        let mut object = Map::new();
        for (key, node) in entries.take(self.limits.entries) {
            let name = if is_list {
                String::new()
            } else {
                distinct(key.text(), &object)
            };
            if !self.budget.take(2 + text_cost(&name)) || self.budget.left() < MARKS {
                break;
            }
            let value = self.at(&node, depth + 1)?;
            if is_list {
                list.push(value);
            } else {
                object.insert(name, value);
            }
        }
        let shown = if is_list { list.len() } else { object.len() };
        map.insert(
            "value".into(),
            if is_list { list.into() } else { object.into() },
        );
        if shown < count {
            map.insert("truncated".into(), true.into());
        }
        Ok(Value::Object(map))
    }
}
