//! Iterables: their first items, as the application's code yields them.

use serde_json::{Map, Value, json};

use super::Encoder;
use super::scalar::float;
use crate::encode::bounds::{LABEL_MAX, MARKS};
use crate::encode::budget::value_cost;
use crate::encode::node::{Ended, Node, Shape, Step, UserCode};
use crate::encode::shorten;

impl Encoder {
    pub(super) fn iterable<N: Node>(
        &mut self,
        node: &N,
        class: &str,
        id: u32,
        depth: usize,
    ) -> Result<Value, Ended> {
        let class = shorten(class, LABEL_MAX);
        if self.path.contains(&id) {
            return Ok(self.reference(&class, id));
        }
        let mut map = Map::new();
        map.insert("type".into(), "iterable".into());
        map.insert("class".into(), class.into());
        if depth >= self.limits.depth {
            map.insert("truncated".into(), true.into());
            return Ok(self.paid(Value::Object(map), "iterable"));
        }
        if !self.open(&map) {
            return Ok(self.cut("iterable"));
        }
        let (size_hint, mut thrown) = match node.size_hint() {
            UserCode::Gave(size) => (size, None),
            UserCode::Threw(thrown) => (None, Some(thrown)),
            UserCode::Ended => return Err(Ended),
        };
        let mut preview = Vec::new();
        let mut exhausted = false;
        let mut full = false;
        self.path.push(id);
        loop {
            match node.step(preview.is_empty()) {
                UserCode::Gave(Step::Done) => exhausted = true,
                UserCode::Gave(Step::Item(..)) if preview.len() == self.limits.preview => {}
                UserCode::Gave(Step::Item(key, value)) => {
                    if self.budget.left() > MARKS * 3 && self.budget.take(MARKS / 2) {
                        let key = self.key(&key, depth)?;
                        let value = self.at(&value, depth + 1)?;
                        preview.push(json!({ "key": key, "value": value }));
                        continue;
                    }
                    full = true;
                }
                UserCode::Threw(error) => thrown = Some(error),
                UserCode::Ended => return Err(Ended),
            }
            break;
        }
        self.path.pop();
        map.insert("preview".into(), preview.into());
        map.insert("exhausted".into(), exhausted.into());
        if let Some(size) = size_hint {
            map.insert("size_hint".into(), size.into());
        }
        if full {
            map.insert("truncated".into(), true.into());
        }
        if let Some(thrown) = thrown {
            self.error(&mut map, &thrown);
        }
        Ok(Value::Object(map))
    }

    /// The key of an iterable's item: as it is if it is a plain scalar, otherwise encoded.
    fn key<N: Node>(&mut self, node: &N, depth: usize) -> Result<Value, Ended> {
        let plain = match node.shape() {
            Shape::Null => Value::Null,
            Shape::Bool(b) => b.into(),
            Shape::Int(n) => n.into(),
            Shape::Float(f) => float(f),
            Shape::Bytes(bytes) if bytes.len() <= LABEL_MAX && bytes.is_ascii() => {
                String::from_utf8_lossy(&bytes).into()
            }
            _ => return self.at(node, depth + 1),
        };
        Ok(if self.budget.take(value_cost(&plain)) {
            plain
        } else {
            Value::Null
        })
    }
}
