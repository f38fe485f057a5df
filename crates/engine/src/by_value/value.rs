//! A value that is no PHP's, to test the format with.

use super::{Build, Full, Key, Malformed, Scalar, Writer};

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float, whose bits count.
    Float(f64),
    /// A string.
    String(Vec<u8>),
    /// A list.
    List(Vec<Value>),
    /// A map, in its order.
    Map(Vec<(OwnedKey, Value)>),
}

/// The key of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnedKey {
    /// An integer.
    Int(i64),
    /// A string.
    String(Vec<u8>),
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            _ => false,
        }
    }
}

impl Drop for Value {
    /// Without recursion: a value may be as deep as the format allows.
    fn drop(&mut self) {
        let mut rest = Vec::new();
        self.take_into(&mut rest);
        while let Some(mut value) = rest.pop() {
            value.take_into(&mut rest);
        }
    }
}

impl Value {
    fn take_into(&mut self, rest: &mut Vec<Value>) {
        match self {
            Self::List(items) => rest.append(items),
            Self::Map(entries) => rest.extend(entries.drain(..).map(|(_, value)| value)),
            _ => {}
        }
    }

    /// Arrays in each other, so many.
    #[must_use]
    pub fn nested(depth: usize) -> Self {
        let mut value = Self::Null;
        for _ in 0..depth {
            value = Self::List(vec![value]);
        }
        value
    }

    /// Writes it.
    ///
    /// # Errors
    ///
    /// As the writer's.
    pub fn write(&self, to: &mut Writer) -> Result<(), Full> {
        let mut rest: Vec<(Option<&OwnedKey>, &Self)> = vec![(None, self)];
        while let Some((key, value)) = rest.pop() {
            match key {
                Some(OwnedKey::Int(key)) => to.int(*key)?,
                Some(OwnedKey::String(key)) => to.string(key)?,
                None => {}
            }
            match value {
                Self::Null => to.null()?,
                Self::Bool(value) => to.bool(*value)?,
                Self::Int(value) => to.int(*value)?,
                Self::Float(value) => to.float(*value)?,
                Self::String(value) => to.string(value)?,
                Self::List(items) => {
                    to.list(items.len())?;
                    rest.extend(items.iter().rev().map(|item| (None, item)));
                }
                Self::Map(entries) => {
                    to.map(entries.len())?;
                    rest.extend(entries.iter().rev().map(|(key, item)| (Some(key), item)));
                }
            }
        }
        Ok(())
    }

    /// As bytes, however many.
    ///
    /// # Errors
    ///
    /// Where there is no memory for them.
    pub fn bytes(&self) -> Result<Vec<u8>, Full> {
        let mut writer = Writer::new(usize::MAX);
        self.write(&mut writer)?;
        Ok(writer.finish())
    }
}

/// Builds a [`Value`], and counts what it was told.
#[derive(Debug, Default)]
pub struct Builder {
    open: Vec<Value>,
    keys: Vec<OwnedKey>,
    root: Option<Value>,
    /// The sum of the counts of all arrays that were announced.
    pub announced: usize,
}

impl Builder {
    /// The value, once it is read.
    #[must_use]
    pub fn take(self) -> Option<Value> {
        self.root
    }

    fn put(&mut self, value: Value) {
        match self.open.last_mut() {
            Some(Value::List(items)) => items.push(value),
            Some(Value::Map(entries)) => entries.extend(self.keys.pop().map(|key| (key, value))),
            _ => self.root = Some(value),
        }
    }
}

impl Build for Builder {
    fn scalar(&mut self, value: Scalar<'_>) {
        self.put(match value {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Int(value) => Value::Int(value),
            Scalar::Float(value) => Value::Float(value),
            Scalar::String(value) => Value::String(value.to_vec()),
        });
    }

    fn begin(&mut self, count: usize, is_list: bool) {
        self.announced += count;
        self.open.push(match is_list {
            true => Value::List(Vec::with_capacity(count)),
            false => Value::Map(Vec::with_capacity(count)),
        });
    }

    fn key(&mut self, key: Key<'_>) -> Result<(), Malformed> {
        let key = match key {
            Key::Int(key) => OwnedKey::Int(key),
            Key::String(key) => OwnedKey::String(key.to_vec()),
        };
        if let Some(Value::Map(entries)) = self.open.last()
            && entries.iter().any(|(other, _)| *other == key)
        {
            return Err(Malformed::DuplicateKey);
        }
        self.keys.push(key);
        Ok(())
    }

    fn end(&mut self) {
        if let Some(value) = self.open.pop() {
            self.put(value);
        }
    }
}
