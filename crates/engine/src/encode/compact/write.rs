//! To the compact encoding.

use serde_json::{Map, Value, json};

use super::item::{Container, Cut, Item, Key, Kind, Layout, Shape, Text, write_int};

pub fn write(item: &Item) -> Value {
    Writer::default().value(item)
}

#[derive(Default)]
struct Writer {
    /// The steps of a JSON pointer to the value that is being written.
    path: Vec<String>,
    /// The enclosing objects: id, and the number of steps to it.
    enclosing: Vec<(u64, usize)>,
}

impl Writer {
    fn value(&mut self, item: &Item) -> Value {
        match &item.shape {
            Shape::Plain(value, _) => value.clone(),
            Shape::Text(text) => write_text(text),
            Shape::Reference { class, id } => self.reference(class, *id),
            Shape::Container(container) => self.container(container),
        }
    }

    fn at(&mut self, step: impl ToString, item: &Item) -> Value {
        self.within(step, |writer| writer.value(item))
    }

    fn within<T>(&mut self, step: impl ToString, write: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step.to_string());
        let written = write(self);
        self.path.pop();
        written
    }

    fn reference(&self, class: &str, id: u64) -> Value {
        let found = self.enclosing.iter().rev().find(|(known, _)| *known == id);
        // Each reference has all the keys above it: long ones would multiply.
        match found.map(|(_, steps)| pointer(&self.path[..*steps])) {
            Some(pointer) if pointer.len() <= POINTER_MAX => json!({ "@ref": pointer }),
            _ => json!({ "@object": class, "@cut": "object" }),
        }
    }

    fn container(&mut self, container: &Container) -> Value {
        let id = match container.kind {
            Kind::Object { id, .. } => id,
            _ => None,
        };
        if let Some(id) = id {
            self.enclosing.push((id, self.path.len()));
        }
        let written = self.wrapped(container);
        if id.is_some() {
            self.enclosing.pop();
        }
        written
    }

    /// The container in the cut and the error that it has.
    fn wrapped(&mut self, container: &Container) -> Value {
        let steps = usize::from(container.cut.is_some()) + usize::from(container.error.is_some());
        let before = self.path.len();
        self.path
            .extend(std::iter::repeat_n("items".to_owned(), steps));
        let mut value = self.bare(container);
        self.path.truncate(before);
        if let Some((class, message)) = &container.error {
            value = json!({ "@error": class, "message": message, "items": value });
        }
        if let Some(cut) = &container.cut {
            let mut map = cut_of(container.kind.name(), "count", cut);
            map.insert("items".into(), value);
            value = map.into();
        }
        value
    }

    fn bare(&mut self, container: &Container) -> Value {
        match &container.kind {
            Kind::Array => self.entries(container),
            Kind::Object {
                class,
                is_lazy,
                proxy,
                display,
                ..
            } => {
                let mut map = Map::new();
                let tag = if *is_lazy { "@lazy" } else { "@object" };
                map.insert(tag.into(), class.as_str().into());
                for (tag, text) in [("@proxy", proxy), ("@display", display)] {
                    if let Some(text) = text {
                        map.insert(tag.into(), text.as_str().into());
                    }
                }
                self.properties(container, &mut map);
                map.into()
            }
            Kind::Iterable {
                class,
                size_hint,
                more,
                hint,
            } => {
                let items = self.within("items", |writer| writer.entries(container));
                let mut value = json!({ "@iterable": class, "items": items });
                if let Some(count) = size_hint {
                    value["count"] = (*count).into();
                }
                if *more {
                    value["more"] = true.into();
                }
                if let Some(hint) = hint {
                    value["hint"] = hint.as_str().into();
                }
                value
            }
        }
    }

    /// Adds the properties of an object, named as they are written.
    fn properties(&mut self, object: &Container, map: &mut Map<String, Value>) {
        if object.layout() != Layout::Object {
            let pairs = self.pairs(&object.entries);
            map.insert("@map".into(), pairs);
            return;
        }
        for (key, item) in &object.entries {
            if let Key::Text(name) = key {
                map.insert(name.clone(), self.at(name, item));
            }
        }
    }

    fn entries(&mut self, container: &Container) -> Value {
        match container.layout() {
            Layout::List => self.list(&container.entries),
            Layout::Map => {
                let pairs = self.pairs(&container.entries);
                json!({ "@map": pairs })
            }
            Layout::Object => {
                let mut map = Map::new();
                for (key, item) in &container.entries {
                    if let Key::Text(name) = key {
                        let escape = if name.starts_with('@') { "@" } else { "" };
                        let name = format!("{escape}{name}");
                        let value = self.at(&name, item);
                        map.insert(name, value);
                    }
                }
                map.into()
            }
        }
    }

    fn pairs(&mut self, entries: &[(Key, Item)]) -> Value {
        self.within("@map", |writer| {
            let pair = |(at, (key, item)): (usize, &(Key, Item))| {
                writer.within(at, |writer| {
                    let key = match key {
                        Key::Int(n) => write_int(*n),
                        Key::Text(name) => name.as_str().into(),
                        Key::Bytes(base64) => json!({ "@bytes": base64 }),
                        Key::Value(item) => writer.at(0, item),
                    };
                    json!([key, writer.at(1, item)])
                })
            };
            entries.iter().enumerate().map(pair).collect()
        })
    }

    fn list(&mut self, entries: &[(Key, Item)]) -> Value {
        let Some(class) = common_class(entries) else {
            let items = entries.iter().enumerate();
            return items.map(|(at, (_, item))| self.at(at, item)).collect();
        };
        let items: Vec<Value> = self.within("items", |writer| {
            let items = entries.iter().enumerate();
            let write = |(at, (_, item)): (usize, &(Key, Item))| {
                let mut value = writer.at(at, item);
                if let Value::Object(map) = &mut value {
                    map.shift_remove("@object");
                }
                value
            };
            items.map(write).collect()
        });
        json!({ "@objects": class, "items": items })
    }
}

/// The class of two or more objects that have no tag but that.
fn common_class(entries: &[(Key, Item)]) -> Option<&str> {
    let mut classes = entries.iter().map(|(_, item)| match &item.shape {
        Shape::Container(container) => container.plain_object(),
        _ => None,
    });
    let first = classes.next()??;
    (entries.len() > 1 && classes.all(|class| class == Some(first))).then_some(first)
}

fn write_text(text: &Text) -> Value {
    let shown = if text.is_base64 {
        json!({ "@bytes": text.shown })
    } else {
        text.shown.as_str().into()
    };
    let Some(cut) = &text.cut else {
        return shown;
    };
    let mut map = cut_of("string", "length", cut);
    map.insert("text".into(), shown);
    map.into()
}

/// The mark of a cut, with what is known of its extent.
fn cut_of(kind: &str, extent: &str, cut: &Cut) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("@cut".into(), kind.into());
    if let Some(count) = cut.count {
        map.insert(extent.into(), count.into());
    }
    if let Some(hint) = &cut.hint {
        map.insert("hint".into(), hint.as_str().into());
    }
    map
}

/// Bytes of a pointer that is written.
const POINTER_MAX: usize = 200;

/// RFC 6901.
fn pointer(path: &[String]) -> String {
    let steps = path
        .iter()
        .map(|step| step.replace('~', "~0").replace('/', "~1"));
    steps.fold(String::new(), |pointer, step| pointer + "/" + &step)
}
