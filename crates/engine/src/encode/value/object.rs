//! Objects: class, id, a one-line description, and properties.

use serde_json::{Map, Value};

use super::{Encoder, distinct};
use crate::encode::bounds::{LABEL_MAX, MARKS};
use crate::encode::budget::text_cost;
use crate::encode::node::{Ended, Node, ObjectShape, Shape, UserCode};
use crate::encode::shorten;

impl Encoder {
    pub(super) fn object<N: Node>(
        &mut self,
        node: &N,
        object: ObjectShape,
        depth: usize,
    ) -> Result<Value, Ended> {
        let class = shorten(&object.class, LABEL_MAX);
        if self.path.contains(&object.id) {
            return Ok(self.reference(&class, object.id));
        }
        let mut map = Map::new();
        map.insert("type".into(), "object".into());
        map.insert("class".into(), class.into());
        map.insert("id".into(), object.id.into());
        if let Some(display) = object.display {
            map.insert("display".into(), shorten(&display, LABEL_MAX).into());
        }
        if let Some(case) = object.case {
            map.insert("case".into(), shorten(&case, LABEL_MAX).into());
            if let Some(Shape::Int(n)) = node.backing().as_ref().map(Node::shape) {
                map.insert("backing".into(), n.into());
            } else if let Some(Shape::Bytes(bytes)) = node.backing().as_ref().map(Node::shape) {
                let text = shorten(&String::from_utf8_lossy(&bytes), LABEL_MAX);
                map.insert("backing".into(), text.into());
            }
        }
        if depth >= self.limits.depth {
            map.insert("truncated".into(), true.into());
            return Ok(self.paid(Value::Object(map), "object"));
        }
        if !self.open(&map) {
            return Ok(self.cut("object"));
        }
        let properties = match node.properties() {
            UserCode::Gave(properties) => properties,
            UserCode::Threw(thrown) => {
                self.error(&mut map, &thrown);
                return Ok(Value::Object(map));
            }
            UserCode::Ended => return Err(Ended),
        };
        let count = properties.len();
        let mut shown = Map::new();
        self.path.push(object.id);
        for (key, value) in properties.into_iter().take(self.limits.entries) {
            let name = distinct(key.text(), &shown);
            if !self.budget.take(2 + text_cost(&name)) || self.budget.left() < MARKS {
                break;
            }
            let encoded = self.at(&value, depth + 1)?;
            shown.insert(name, encoded);
        }
        self.path.pop();
        if shown.len() < count {
            map.insert("truncated".into(), true.into());
        }
        map.insert("properties".into(), shown.into());
        Ok(Value::Object(map))
    }
}
