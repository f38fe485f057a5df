//! Iterables: their first items, as the application's code yields them or a caster reads them.

use serde_json::{Map, Value, json};

use super::Encoder;
use crate::encode::bounds::MARKS;
use crate::encode::casters::Item;
use crate::encode::node::{Ended, Node, Step, Thrown};

/// Where the items of an iterable come from.
pub(super) enum Source<N> {
    /// Nowhere: reading them would do something.
    Unread,
    /// They were read, the first of `total`.
    Items(Vec<(Item<N>, Item<N>)>, usize),
    /// The iterator of the object, or of this one in its place.
    Iterator(Option<N>),
}

/// What came of reading the items.
struct Preview {
    items: Vec<Value>,
    exhausted: bool,
    /// Whether the whole value's bound is the reason for the end.
    full: bool,
    size: Option<i64>,
    thrown: Option<Thrown>,
}

impl<N: Node> Encoder<'_, N> {
    pub(super) fn iterable(
        &mut self,
        node: &N,
        mut map: Map<String, Value>,
        id: u32,
        source: Source<N>,
        depth: usize,
    ) -> Result<Value, Ended> {
        if let Source::Unread = source {
            map.insert("lazy".into(), true.into());
            return Ok(self.paid(Value::Object(map), "iterable"));
        }
        if depth >= self.limits.depth {
            return Ok(self.named(node, map, "iterable", depth));
        }
        if !self.open(&map) {
            return Ok(self.cut("iterable"));
        }
        self.path.push(id);
        let preview = match source {
            Source::Items(items, total) => self.read(&items, total, depth),
            Source::Iterator(None) => self.iterate(node, node, depth),
            Source::Iterator(Some(copy)) => self.iterate(node, &copy, depth),
            Source::Unread => return Err(Ended),
        };
        self.path.pop();
        let preview = preview?;
        let shown = preview.items.len();
        map.insert("preview".into(), preview.items.into());
        let mut marks = Map::new();
        marks.insert("exhausted".into(), preview.exhausted.into());
        if let Some(size) = preview.size {
            marks.insert("size_hint".into(), size.into());
        }
        if preview.full {
            self.mark_cut(&mut marks, shown, 0, usize::MAX);
        } else if !preview.exhausted && preview.thrown.is_none() {
            let size = preview.size.and_then(|size| usize::try_from(size).ok());
            let all = size.filter(|size| *size > shown).unwrap_or(usize::MAX);
            self.mark_cut(&mut marks, shown, all, self.limits.preview);
        }
        self.close(marks, &mut map);
        if let Some(thrown) = preview.thrown {
            self.error(&mut map, &thrown);
        }
        Ok(Value::Object(map))
    }

    /// Items that a caster has read.
    fn read(
        &mut self,
        items: &[(Item<N>, Item<N>)],
        total: usize,
        depth: usize,
    ) -> Result<Preview, Ended> {
        let mut shown = Vec::new();
        let mut full = false;
        for (key, value) in items.iter().take(self.limits.preview) {
            if !self.has_room() {
                full = true;
                break;
            }
            let key = self.item(key, depth + 1)?;
            let value = self.item(value, depth + 1)?;
            shown.push(json!({ "key": key, "value": value }));
        }
        Ok(Preview {
            exhausted: shown.len() == total,
            items: shown,
            full,
            size: i64::try_from(total).ok(),
            thrown: None,
        })
    }

    /// Items that an iterator gives.
    fn iterate(&mut self, node: &N, from: &N, depth: usize) -> Result<Preview, Ended> {
        let mut preview = Preview {
            items: Vec::new(),
            exhausted: false,
            full: false,
            size: None,
            thrown: None,
        };
        match node.size_hint().result()? {
            Ok(size) => preview.size = size,
            Err(thrown) => preview.thrown = Some(thrown),
        }
        loop {
            match from.step(preview.items.is_empty()).result()? {
                Ok(Step::Done) => preview.exhausted = true,
                Ok(Step::Item(..)) if preview.items.len() == self.limits.preview => {}
                Ok(Step::Item(key, value)) => {
                    if self.has_room() {
                        let key = self.at(&key, depth + 1)?;
                        let value = self.at(&value, depth + 1)?;
                        preview.items.push(json!({ "key": key, "value": value }));
                        continue;
                    }
                    preview.full = true;
                }
                Err(thrown) => preview.thrown = Some(thrown),
            }
            return Ok(preview);
        }
    }

    /// Pays for the frame of one item, and looks whether a key and a value fit, if only as marks.
    fn has_room(&mut self) -> bool {
        self.budget.left() > MARKS * 3 && self.budget.take(MARKS / 4)
    }
}
