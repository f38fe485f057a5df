//! Objects: class, id, a one-line description, and properties.

use serde_json::{Map, Value};

use super::Encoder;
use super::iterable::Source;
use super::map::Entries;
use crate::encode::bounds::LABEL_MAX;
use crate::encode::casters::{self, Content, Item, View};
use crate::encode::node::{
    Ended, Key, Laziness, Node, ObjectKind, ObjectShape, Property, Shape, Thrown, Visibility,
};
use crate::encode::shorten;

/// What stands in an object.
enum Parts<N> {
    Properties(Vec<Property<N>>, usize),
    Fields(Vec<(Key, Item<N>)>, usize),
    Threw(Thrown),
}

impl<N: Node> Encoder<'_, N> {
    pub(super) fn object(
        &mut self,
        node: &N,
        object: ObjectShape,
        depth: usize,
    ) -> Result<Value, Ended> {
        let class = shorten(&object.class, LABEL_MAX);
        if self.path.contains(&object.id) {
            return Ok(self.reference(&class, object.id));
        }
        let trouble = self.trouble()?;
        let mut view = self.view(node, &object)?;
        // What is lazy would be initialised by the application's own code.
        if let Some(own) = &mut self.own
            && !view.lazy
            && !matches!(view.content, Content::Unread | Content::Instance(_))
        {
            match own.cast(node).result()? {
                Ok(None) => {}
                Ok(Some(fields)) => {
                    let count = fields.len();
                    let fields = fields.into_iter().take(self.limits.entries).map(told);
                    view = View::of(Content::Properties(fields.collect(), count));
                }
                Err(thrown) => view = View::of(Content::Threw(thrown)),
            }
        }
        let source = match view.content {
            Content::Instance(instance) => {
                return self.instance(&instance, class, object.id, depth);
            }
            Content::Unread => Ok(Source::Unread),
            Content::Items(items, total) => Ok(Source::Items(items, total)),
            Content::Iterator(copy) => Ok(Source::Iterator(copy)),
            content => Err(content),
        };
        let mut map = Map::new();
        let content = match source {
            Ok(source) => {
                map.insert("type".into(), "iterable".into());
                map.insert("class".into(), class.into());
                return self.iterable(node, map, object.id, source, depth);
            }
            Err(content) => content,
        };
        let stands_for = view.stands_for.map(|class| shorten(&class, LABEL_MAX));
        let proxy = stands_for.is_some().then(|| class.clone());
        map.insert("type".into(), "object".into());
        map.insert("class".into(), stands_for.unwrap_or(class).into());
        map.insert("id".into(), object.id.into());
        let texts = [
            ("display", view.display),
            ("zone", view.zone),
            ("proxy", proxy),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                map.insert(name.into(), shorten(&text, LABEL_MAX).into());
            }
        }
        if object.kind == ObjectKind::Enum {
            self.case(node, &mut map);
        }
        if let Some(parameters) = view.parameters {
            let shown = parameters.iter().take(100);
            let shown: Vec<Value> = shown.map(|text| shorten(text, LABEL_MAX).into()).collect();
            map.insert("parameters".into(), shown.into());
        }
        if view.lazy {
            map.insert("lazy".into(), true.into());
        }
        if depth >= self.limits.depth {
            return Ok(self.named(node, map, "object", depth));
        }
        if !self.open(&map) {
            return Ok(self.cut("object"));
        }
        let limit = self.limits.entries;
        let parts = match content {
            Content::Own => match node.debug_info().result()? {
                Ok(Some(info)) => {
                    let count = info.len();
                    let properties = info.into_iter().take(limit).map(told);
                    Parts::Properties(properties.collect(), count)
                }
                Ok(None) => {
                    let (properties, count) = node.slots(limit);
                    Parts::Properties(properties, count)
                }
                Err(thrown) => Parts::Threw(thrown),
            },
            Content::Properties(properties, count) => Parts::Properties(properties, count),
            Content::Fields(fields) => {
                let count = fields.len();
                Parts::Fields(fields, count)
            }
            Content::Threw(thrown) => Parts::Threw(thrown),
            _ => Parts::Fields(Vec::new(), 0),
        };
        self.path.push(object.id);
        self.guarded += 1;
        let filled = self.fill(&mut map, parts, depth);
        self.guarded -= 1;
        self.path.pop();
        filled?;
        if let Some(trouble) = trouble {
            self.error(&mut map, &trouble);
        }
        Ok(Value::Object(map))
    }

    /// An initialised proxy: what it stands for, and the proxy's class.
    fn instance(&mut self, node: &N, class: String, id: u32, depth: usize) -> Result<Value, Ended> {
        self.path.push(id);
        let shown = self.at(node, depth);
        self.path.pop();
        let mut shown = shown?;
        if let Value::Object(map) = &mut shown
            && self.budget.take(class.len() * 6 + 16)
        {
            map.insert("proxy".into(), class.into());
        }
        Ok(shown)
    }

    fn case(&mut self, node: &N, map: &mut Map<String, Value>) {
        let case = node.case().unwrap_or_default();
        map.insert("case".into(), shorten(&case, LABEL_MAX).into());
        match node.backing().as_ref().map(Node::shape) {
            Some(Shape::Int(n)) => {
                map.insert("backing".into(), n.into());
            }
            Some(Shape::Bytes(bytes)) => {
                let text = shorten(&String::from_utf8_lossy(&bytes), LABEL_MAX);
                map.insert("backing".into(), text.into());
            }
            _ => {}
        }
    }

    /// How an object is shown that the application says nothing of.
    fn view(&mut self, node: &N, object: &ObjectShape) -> Result<View<N>, Ended> {
        match node.laziness() {
            Laziness::Complete => {}
            Laziness::Waiting if object.kind == ObjectKind::Traversable => {
                return Ok(View::of(Content::Unread));
            }
            Laziness::Waiting => return Ok(casters::waiting(node, self.limits.entries)),
            Laziness::Proxy(instance) => return Ok(View::of(Content::Instance(instance))),
        }
        let key = node.class_key();
        let form = match self.forms.get(&key) {
            Some(form) => *form,
            None => {
                let form = casters::form_of(node);
                self.forms.insert(key, form);
                form
            }
        };
        let limits = casters::Reach {
            entries: self.limits.entries,
            preview: self.limits.preview.saturating_add(1),
            redact: self.redact,
        };
        let cast = match form {
            Some(form) => casters::view(form, node, limits)?,
            None => None,
        };
        if let Some(view) = cast {
            return Ok(view);
        }
        Ok(match object.kind {
            ObjectKind::Closure => {
                let closure = node.closure();
                View {
                    display: Some(closure.display),
                    parameters: Some(closure.parameters),
                    ..View::of(Content::Fields(Vec::new()))
                }
            }
            ObjectKind::Traversable if !self.advance && !casters::is_still(node) => {
                View::of(Content::Unread)
            }
            ObjectKind::Traversable => View::of(Content::Iterator(None)),
            ObjectKind::Plain | ObjectKind::Enum => View::of(Content::Own),
        })
    }

    fn fill(
        &mut self,
        map: &mut Map<String, Value>,
        parts: Parts<N>,
        depth: usize,
    ) -> Result<(), Ended> {
        let mut public = Entries::default();
        let mut protected = Entries::default();
        let mut private = Entries::default();
        let limit = self.limits.entries;
        let mut shown = 0;
        let count = match parts {
            Parts::Threw(thrown) => {
                self.close(Map::new(), map);
                self.error(map, &thrown);
                return Ok(());
            }
            Parts::Fields(fields, count) => {
                for (key, value) in fields.into_iter().take(limit) {
                    if !self.entry(&mut public, &key, &value, depth + 1)? {
                        break;
                    }
                    shown += 1;
                }
                count
            }
            Parts::Properties(properties, count) => {
                for property in properties.into_iter().take(limit) {
                    let entries = match property.visibility {
                        Visibility::Public => &mut public,
                        Visibility::Protected => &mut protected,
                        Visibility::Private => &mut private,
                    };
                    let name = property.name.text();
                    let name = match property.hidden_in {
                        Some(class) => shorten(&format!("{class}::{name}"), LABEL_MAX),
                        None => name,
                    };
                    let value = property.value.map_or(Item::Uninitialized, Item::Node);
                    if !self.named_entry(entries, name, &property.name, &value, depth + 1)? {
                        break;
                    }
                    shown += 1;
                }
                count
            }
        };
        public.insert("properties", map);
        for (name, entries) in [("protected", protected), ("private", private)] {
            if !entries.shown.is_empty() {
                map.insert(name.into(), entries.shown.into());
            }
        }
        let mut marks = Map::new();
        if shown < count {
            self.mark_cut(&mut marks, shown, count, limit);
        }
        self.close(marks, map);
        Ok(())
    }

    /// What is wrong with the application's own casters; at the first object, once.
    fn trouble(&mut self) -> Result<Option<Thrown>, Ended> {
        if std::mem::replace(&mut self.asked, true) {
            return Ok(None);
        }
        let Some(own) = &mut self.own else {
            return Ok(None);
        };
        match own.trouble().result()? {
            Ok(trouble) => Ok(trouble),
            Err(thrown) => Ok(Some(thrown)),
        }
    }
}

/// An entry of what an object tells of itself. PHP writes who sees a property into its key, as in
/// `(array) $object`: `\0*\0name`, `\0Class\0name`.
fn told<N>((key, value): (Key, N)) -> Property<N> {
    let (visibility, name) = match &key {
        Key::Bytes(bytes) if bytes.first() == Some(&0) => {
            let parts = bytes[1..].split(|byte| *byte == 0).collect::<Vec<_>>();
            match parts[..] {
                [b"*", name] => (Visibility::Protected, Key::Bytes(name.to_vec())),
                [_, .., name] => (Visibility::Private, Key::Bytes(name.to_vec())),
                _ => (Visibility::Public, key),
            }
        }
        _ => (Visibility::Public, key),
    };
    Property {
        visibility,
        hidden_in: None,
        name,
        value: Some(value),
    }
}
