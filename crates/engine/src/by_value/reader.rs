//! From bytes that are not to be trusted to a value.

use super::{DEPTH_MAX, ENTRIES_MAX, Key, Scalar, memory, tag};

/// Makes a value of what a [`Reader`] finds: a scalar, or an array and then its entries.
pub trait Build {
    /// A value that is no array.
    fn scalar(&mut self, value: Scalar<'_>);

    /// An array begins that has `count` entries: values alone if it is a list, a key before each value if not.
    fn begin(&mut self, count: usize, is_list: bool);

    /// The key of the next value.
    ///
    /// # Errors
    ///
    /// [`Malformed::DuplicateKey`] if the array has it: who builds has a table to look it up in.
    /// [`Malformed::Collisions`] if the table is made to be slow.
    fn key(&mut self, key: Key<'_>) -> Result<(), Malformed>;

    /// The array that was begun last has all its entries.
    fn end(&mut self);
}

/// Why bytes are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Something is longer than what is left.
    #[error("the value ends too early")]
    Truncated,
    /// There is something behind the value.
    #[error("something follows the value")]
    Trailing,
    /// No value begins with this byte.
    #[error("no value begins with the byte {0}")]
    Tag(u8),
    /// No key begins with this byte.
    #[error("no key begins with the byte {0}")]
    KeyTag(u8),
    /// A number has more bytes than it needs or than a number can have.
    #[error("a number is not in its shortest form")]
    Number,
    /// An array has more entries than PHP can have.
    #[error("an array has too many entries")]
    TooMany,
    /// Arrays are nested more than [`DEPTH_MAX`] deep.
    #[error("arrays are nested more than {DEPTH_MAX} deep")]
    TooDeep,
    /// A key comes twice in an array.
    #[error("an array has a key twice")]
    DuplicateKey,
    /// The keys of an array are so many in the same place of its table that to look for them would take long.
    #[error("the keys of an array collide too often")]
    Collisions,
    /// The value needs more memory than it may have.
    #[error("the value needs more memory than it may have")]
    Memory,
}

/// Reads one value.
///
/// # Errors
///
/// Why it is refused. What was built until then is incomplete.
pub fn read(bytes: &[u8], most_memory: usize, build: &mut impl Build) -> Result<(), Malformed> {
    Reader::new(bytes, most_memory).read(build)
}

/// Reads a value without recursion. It owns memory, and [`read`](Self::read) borrows it only: a builder that leaves by
/// a `longjmp` loses nothing.
///
/// Before it announces a string or an array, it is certain that the bytes for it are there, those for the entries of
/// the arrays around it included, and that PHP has the memory. So what is built is never larger than what came.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Bytes that the entries of open arrays need at least.
    owed: usize,
    memory: usize,
    depth_max: usize,
    open: Vec<Open>,
}

/// An array that has not all its entries yet.
#[derive(Clone, Copy, Debug)]
struct Open {
    left: usize,
    is_list: bool,
}

/// The fewest bytes of an entry: a tag, or three with a key of two.
const fn least(is_list: bool) -> usize {
    if is_list { 1 } else { 3 }
}

impl<'a> Reader<'a> {
    /// Reads a value for which PHP needs at most `most_memory` bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8], most_memory: usize) -> Self {
        Self::as_deep_as(DEPTH_MAX, bytes, most_memory)
    }

    /// The same for a list of values each of which may be as deep as one may be alone: the arguments of a call.
    #[must_use]
    pub const fn of_several(bytes: &'a [u8], most_memory: usize) -> Self {
        Self::as_deep_as(DEPTH_MAX + 1, bytes, most_memory)
    }

    const fn as_deep_as(depth_max: usize, bytes: &'a [u8], most_memory: usize) -> Self {
        Self {
            rest: bytes,
            owed: 0,
            memory: most_memory,
            depth_max,
            open: Vec::new(),
        }
    }

    /// Builds the value.
    ///
    /// # Errors
    ///
    /// As [`read`].
    pub fn read(&mut self, build: &mut impl Build) -> Result<(), Malformed> {
        loop {
            self.value(build)?;
            while let Some(Open { left: 0, .. }) = self.open.last() {
                self.open.pop();
                build.end();
            }
            let Some(array) = self.open.last_mut() else {
                break;
            };
            array.left -= 1;
            let is_list = array.is_list;
            self.owed -= least(is_list);
            if !is_list {
                let key = self.key()?;
                build.key(key)?;
            }
        }
        match self.rest {
            [] => Ok(()),
            _ => Err(Malformed::Trailing),
        }
    }

    #[inline]
    fn value(&mut self, build: &mut impl Build) -> Result<(), Malformed> {
        build.scalar(match self.byte()? {
            tag::NULL => Scalar::Null,
            tag::FALSE => Scalar::Bool(false),
            tag::TRUE => Scalar::Bool(true),
            tag::INT => Scalar::Int(self.int()?),
            tag::FLOAT => Scalar::Float(self.float()?),
            tag::STRING => Scalar::String(self.string()?),
            tag::LIST => return self.array(true, build),
            tag::MAP => return self.array(false, build),
            other => return Err(Malformed::Tag(other)),
        });
        Ok(())
    }

    fn array(&mut self, is_list: bool, build: &mut impl Build) -> Result<(), Malformed> {
        let count = usize::try_from(self.number()?).map_err(|_| Malformed::Truncated)?;
        let least = count
            .checked_mul(least(is_list))
            .filter(|least| *least <= self.rest.len().saturating_sub(self.owed))
            .ok_or(Malformed::Truncated)?;
        if count > ENTRIES_MAX {
            return Err(Malformed::TooMany);
        }
        if self.open.len() == self.depth_max {
            return Err(Malformed::TooDeep);
        }
        self.charge(match is_list {
            true => memory::list(count),
            false => memory::map(count),
        })?;
        self.owed += least;
        self.open.push(Open {
            left: count,
            is_list,
        });
        build.begin(count, is_list);
        Ok(())
    }

    #[inline]
    fn key(&mut self) -> Result<Key<'a>, Malformed> {
        match self.byte()? {
            tag::INT => Ok(Key::Int(self.int()?)),
            tag::STRING => Ok(Key::String(self.string()?)),
            other => Err(Malformed::KeyTag(other)),
        }
    }

    #[inline]
    fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let len = usize::try_from(self.number()?).map_err(|_| Malformed::Truncated)?;
        if len > self.rest.len().saturating_sub(self.owed) {
            return Err(Malformed::Truncated);
        }
        self.charge(memory::string(len))?;
        let (string, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(string)
    }

    #[inline]
    fn int(&mut self) -> Result<i64, Malformed> {
        let zigzag = self.number()?;
        Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    #[inline]
    fn float(&mut self) -> Result<f64, Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(f64::from_bits(u64::from_le_bytes(*bytes)))
    }

    #[inline]
    fn number(&mut self) -> Result<u64, Malformed> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(first.into());
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // The tenth byte has one bit only.
                let is_shortest = byte != 0 && (shift < 63 || byte == 1);
                return is_shortest.then_some(number).ok_or(Malformed::Number);
            }
        }
        Err(Malformed::Number)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Malformed> {
        let (byte, rest) = self.rest.split_first().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(*byte)
    }

    #[inline]
    fn charge(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.memory = self.memory.checked_sub(bytes).ok_or(Malformed::Memory)?;
        Ok(())
    }
}
