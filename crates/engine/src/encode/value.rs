//! Values: `{type, value}` and the richer shapes.

mod array;
mod iterable;
mod object;
mod scalar;

use serde_json::{Map, Value, json};

use scalar::float;

use super::bounds::{LABEL_MAX, Limits, MARKS, VALUE_MAX_BYTES};
use super::budget::{Budget, text_cost, value_cost};
use super::node::{Ended, Node, Shape, Thrown};
use super::shorten;

/// Encodes a value within `limits` and [`VALUE_MAX_BYTES`].
///
/// # Errors
///
/// [`Ended`] when the application's code ended the run meanwhile.
pub fn encode_value<N: Node>(node: &N, limits: Limits) -> Result<Value, Ended> {
    Encoder {
        limits,
        budget: Budget::new(VALUE_MAX_BYTES - MARKS),
        path: Vec::new(),
    }
    .value(node)
}

struct Encoder {
    limits: Limits,
    budget: Budget,
    /// The ids of the objects that enclose the current value.
    path: Vec<u32>,
    // Its length is not the depth: arrays count too.
}

impl Encoder {
    fn value<N: Node>(&mut self, node: &N) -> Result<Value, Ended> {
        self.at(node, 0)
    }

    fn at<N: Node>(&mut self, node: &N, depth: usize) -> Result<Value, Ended> {
        Ok(match node.shape() {
            Shape::Null => self.scalar("null", Value::Null),
            Shape::Bool(b) => self.scalar("bool", b.into()),
            Shape::Int(n) => self.scalar("int", n.into()),
            Shape::Float(f) => self.scalar("float", float(f)),
            Shape::Resource(kind) => self.scalar("resource", shorten(&kind, LABEL_MAX).into()),
            Shape::Bytes(bytes) => self.string(&bytes),
            Shape::Array {
                is_list,
                count,
                entries,
            } => self.array(is_list, count, entries, depth)?,
            Shape::Object(object) => self.object(node, object, depth)?,
            Shape::Iterable { class, id } => self.iterable(node, &class, id, depth)?,
        })
    }

    /// `full` if the budget covers it, otherwise only the mark.
    fn paid(&mut self, full: Value, kind: &str) -> Value {
        if self.budget.take(value_cost(&full)) {
            full
        } else {
            self.cut(kind)
        }
    }

    /// The placeholder for a value that does not fit. Every container keeps enough room for it
    /// before it adds an entry.
    fn cut(&mut self, kind: &str) -> Value {
        let mark = json!({ "type": kind, "truncated": true });
        self.budget.take(value_cost(&mark));
        mark
    }

    /// Charges a container's own keys and marks.
    fn open(&mut self, header: &Map<String, Value>) -> bool {
        let cost: usize = header
            .iter()
            .map(|(k, v)| 2 + text_cost(k) + value_cost(v))
            .sum::<usize>();
        self.budget.take(cost + MARKS)
    }

    fn reference(&mut self, class: &str, id: u32) -> Value {
        self.paid(
            json!({ "type": "reference", "class": class, "id": id }),
            "reference",
        )
    }

    fn error(&mut self, map: &mut Map<String, Value>, thrown: &Thrown) {
        let error = json!({
            "class": shorten(&thrown.class, LABEL_MAX),
            "message": shorten(&thrown.message, LABEL_MAX),
        });
        if self.budget.take(value_cost(&error) + 16) {
            map.insert("error".into(), error);
        } else {
            map.insert("truncated".into(), true.into());
        }
    }
}

/// `name`, or a numbered variant if another key already looks the same: names that are not UTF-8 or
/// were cut can collide.
fn distinct(name: String, taken: &Map<String, Value>) -> String {
    if !taken.contains_key(&name) {
        return name;
    }
    let numbered = (2..).map(|n: u32| format!("{name}~{n}"));
    numbered
        .into_iter()
        .find(|name| !taken.contains_key(name))
        .unwrap_or(name.clone())
}
