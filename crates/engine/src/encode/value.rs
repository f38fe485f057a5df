//! Values: `{type, value}` and the richer shapes.

mod array;
mod iterable;
mod map;
mod object;
mod scalar;

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use scalar::float;

use super::bounds::{LABEL_MAX, Limits, MARKS, VALUE_MAX_BYTES};
use super::budget::{Budget, text_cost, value_cost};
use super::casters::Form;
use super::hints::{LESS, LookAhead};
use super::node::{Ended, Node, OwnCasters, Shape, Thrown};
use super::shorten;

/// How a value is encoded.
pub struct Options<'a, N> {
    /// How much of it is shown.
    pub limits: Limits,
    /// Whether values under secret names, and those that a model hides, are hidden.
    pub redact: bool,
    /// Whether generators, cursors and other iterators of the application advance.
    pub advance: bool,
    /// Objects that enclose the value, by their ids.
    pub seen: Vec<u32>,
    /// How deep the value is in something else.
    pub depth: usize,
    /// How the application wants its objects shown.
    pub own: Option<&'a mut dyn OwnCasters<N>>,
}

impl<N> Default for Options<'_, N> {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            redact: true,
            advance: true,
            seen: Vec::new(),
            depth: 0,
            own: None,
        }
    }
}

/// Encodes a value within its limits and [`VALUE_MAX_BYTES`].
///
/// # Errors
///
/// [`Ended`] when the application's code ended the run meanwhile.
pub fn encode_value<N: Node>(node: &N, options: Options<'_, N>) -> Result<Value, Ended> {
    let Options {
        limits,
        redact,
        advance,
        seen,
        depth,
        own,
    } = options;
    Encoder {
        limits,
        redact,
        advance,
        budget: Budget::new(VALUE_MAX_BYTES - MARKS),
        ahead: LookAhead::new(),
        path: seen,
        guarded: 0,
        forms: HashMap::new(),
        asked: own.is_none(),
        own,
    }
    .at(node, depth)
}

struct Encoder<'a, N> {
    limits: Limits,
    redact: bool,
    advance: bool,
    budget: Budget,
    ahead: LookAhead,
    /// The ids of the objects that enclose the current value.
    path: Vec<u32>,
    // Its length is not the depth: arrays count too.
    /// How many objects enclose it whose properties nobody asked for one by one.
    guarded: usize,
    /// How objects of each class are shown that was met.
    forms: HashMap<usize, Option<&'static Form>>,
    own: Option<&'a mut dyn OwnCasters<N>>,
    /// Whether `own` was asked if there is trouble with it.
    asked: bool,
}

impl<N: Node> Encoder<'_, N> {
    fn at(&mut self, node: &N, depth: usize) -> Result<Value, Ended> {
        Ok(match node.shape() {
            Shape::Null => self.scalar("null", Value::Null),
            Shape::Bool(b) => self.scalar("bool", b.into()),
            Shape::Int(n) => self.scalar("int", n.into()),
            Shape::Float(f) => self.scalar("float", float(f)),
            Shape::Resource(kind) => self.scalar("resource", shorten(&kind, LABEL_MAX).into()),
            Shape::Bytes(bytes) => self.string(&bytes),
            Shape::Array { is_list, count } => self.array(node, is_list, count, depth)?,
            Shape::Object(object) => self.object(node, object, depth)?,
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
        let mark = json!({ "type": kind, "truncated": true, "hint": LESS });
        self.budget.take(value_cost(&mark));
        mark
    }

    /// A container that is too deep to be shown, named. `header` says what it is.
    fn named(
        &mut self,
        node: &N,
        mut header: Map<String, Value>,
        kind: &str,
        depth: usize,
    ) -> Value {
        header.insert("truncated".into(), true.into());
        let most = usize::try_from(crate::request::MAX_DEPTH).unwrap_or(usize::MAX);
        let levels = self.ahead.levels(node, most.saturating_sub(depth)).max(1);
        if let Some(hint) = super::hints::depth(self.limits.depth, depth.saturating_add(levels)) {
            header.insert("hint".into(), hint.into());
        }
        self.paid(Value::Object(header), kind)
    }

    /// Charges a container's own keys and marks.
    fn open(&mut self, header: &Map<String, Value>) -> bool {
        self.budget.take(members_cost(header) + MARKS)
    }

    /// Gives back what the marks of a finished container have not used.
    fn close(&mut self, marks: Map<String, Value>, map: &mut Map<String, Value>) {
        self.budget
            .give(MARKS.saturating_sub(members_cost(&marks) + NAMES));
        map.extend(marks);
    }

    /// Says that not all of a container is shown: `all` of its items there are, if that is known.
    fn mark_cut(&self, marks: &mut Map<String, Value>, shown: usize, all: usize, limit: usize) {
        marks.insert("truncated".into(), true.into());
        let hint = if shown < limit {
            Some(LESS.to_owned())
        } else {
            super::hints::items(limit, all)
        };
        if let Some(hint) = hint {
            marks.insert("hint".into(), hint.into());
        }
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

/// Bytes of [`MARKS`] for the names and brackets of what a container holds.
const NAMES: usize = 64;

/// The cost of the members of an object.
fn members_cost(map: &Map<String, Value>) -> usize {
    map.iter()
        .map(|(k, v)| 2 + text_cost(k) + value_cost(v))
        .sum()
}
