//! PHP's values as bytes, and back: [`altair_engine::by_value`] is the form.

#![allow(dead_code)] // until `Altair\Sandbox\Runtime` is there

use std::mem::ManuallyDrop;

use altair_engine::by_value::{
    Build, DEPTH_MAX, Full, Key, Malformed, Reader, Scalar, Writer, memory,
};
use ext_php_rs::ffi::{
    Bucket, IS_ARRAY, IS_DOUBLE, IS_FALSE, IS_INDIRECT, IS_LONG, IS_NULL, IS_REFERENCE,
    IS_RESOURCE, IS_STRING, IS_TRUE, IS_UNDEF, zend_array, zval,
};
use ext_php_rs::types::Zval;

use super::ffi::{self, RawTable};
use super::{Bailout, attempt, attempt_drop, bytes};

/// What becomes of objects and resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objects {
    /// The value is refused.
    Refuse,
    /// `true`.
    True,
}

/// Why a value does not travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unencodable {
    /// It holds an object.
    Object,
    /// It holds a resource, open or closed.
    Resource,
    /// Its arrays are nested more than [`DEPTH_MAX`] deep, perhaps because one holds itself.
    TooDeep,
    /// It needs more bytes than it may have.
    TooLarge,
}

/// Why bytes are no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecodable {
    /// No writer writes them.
    Malformed(Malformed),
    /// The value needs more memory than it may have. None was taken.
    Memory,
    /// There was less memory than allowed: PHP has printed its fatal error and wants the request to end. A PHP that
    /// delays this error until the next instruction of the caller's code gives the value, and ends the request then.
    Bailout,
}

impl std::fmt::Display for Unencodable {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object => to.write_str("an object"),
            Self::Resource => to.write_str("a resource"),
            Self::TooDeep => {
                write!(
                    to,
                    "arrays nested more than {DEPTH_MAX} deep, or in themselves"
                )
            }
            Self::TooLarge => to.write_str("too large a value"),
        }
    }
}

impl From<Full> for Unencodable {
    fn from(Full: Full) -> Self {
        Self::TooLarge
    }
}

/// The value in at most `most` bytes, for which the other side needs at most as many for its arrays. Runs no code and changes nothing; references become what they refer to. The time
/// it takes is in proportion to `most` at most, whatever the value's arrays share.
///
/// # Errors
///
/// Why it has none.
pub fn encode(value: &Zval, objects: Objects, most: usize) -> Result<Vec<u8>, Unencodable> {
    let mut encoder = Encoder::new(objects, most, DEPTH_MAX);
    // SAFETY: the caller holds the value, and no code runs that could change it.
    unsafe {
        encoder.value(value)?;
        encoder.rest(0)?;
    }
    Ok(encoder.writer.finish())
}

/// The values of an array as a list, without its keys, for [`decode_arguments`]. Objects and resources are refused.
///
/// # Errors
///
/// Why it has none, and the number of the value, from 1, in which that was found.
pub fn encode_arguments(array: &Zval, most: usize) -> Result<Vec<u8>, (usize, Unencodable)> {
    // Each of them may be as deep as it may be alone.
    let mut encoder = Encoder::new(Objects::Refuse, most, DEPTH_MAX + 1);
    let mut number = 0;
    // SAFETY: as above.
    unsafe {
        encoder.list_of(array).map_err(|why| (number, why))?;
        while encoder.entry().map_err(|why| (number + 1, why))? {
            number += 1;
            encoder.rest(1).map_err(|why| (number, why))?;
        }
    }
    Ok(encoder.writer.finish())
}

/// The value of the bytes, for which PHP needs at most `most_memory` bytes. Takes no memory for what is refused.
///
/// # Errors
///
/// Why there is none. Nothing of it is left.
pub fn decode(bytes: &[u8], most_memory: usize) -> Result<Zval, Undecodable> {
    build(Reader::new(bytes, most_memory))
}

/// The list that [`encode_arguments`] has written.
///
/// # Errors
///
/// As [`decode`].
pub fn decode_arguments(bytes: &[u8], most_memory: usize) -> Result<Zval, Undecodable> {
    build(Reader::of_several(bytes, most_memory))
}

/// The entries of an array that are still to be written.
struct Entries {
    next: *const u8,
    end: *const u8,
    /// Of the next one, if it is packed.
    index: i64,
    is_packed: bool,
    has_keys: bool,
}

/// Writes without recursion: on the stack there would not be room for each depth everywhere.
struct Encoder {
    writer: Writer,
    objects: Objects,
    open: Vec<Entries>,
    depth_max: usize,
    /// How many empty slots may still be passed. They take time and no bytes.
    holes: usize,
    /// Bytes of memory that the arrays that are to come may need.
    memory: usize,
}

/// So many empty slots are passed in less than a tenth of a second.
const HOLES_MAX: usize = 1 << 26;

impl Encoder {
    fn new(objects: Objects, most: usize, depth_max: usize) -> Self {
        Self {
            writer: Writer::new(most),
            objects,
            open: Vec::new(),
            depth_max,
            holes: HOLES_MAX,
            memory: most,
        }
    }

    /// Writes what is left of the arrays above the first `level`.
    ///
    /// # Safety
    ///
    /// The values are there, and nothing changes them.
    unsafe fn rest(&mut self, level: usize) -> Result<(), Unencodable> {
        while self.open.len() > level {
            // SAFETY: the caller's promise.
            if !unsafe { self.entry()? } {
                self.open.pop();
            }
        }
        Ok(())
    }

    /// Writes the entries of the innermost array up to the next array in it, whose head it writes; false if there is
    /// none. Of the outermost list of arguments it writes one entry.
    ///
    /// # Safety
    ///
    /// As [`rest`](Self::rest).
    unsafe fn entry(&mut self) -> Result<bool, Unencodable> {
        let Some(entries) = self.open.last_mut() else {
            return Ok(false);
        };
        while entries.next != entries.end {
            // SAFETY: the caller's promise; there is a slot between `next` and `end`, and a bucket begins with its
            // value.
            let value = unsafe { followed(&*entries.next.cast::<zval>()) };
            let (slot, index) = (entries.next, entries.index);
            let size = if entries.is_packed {
                size_of::<zval>()
            } else {
                size_of::<Bucket>()
            };
            // SAFETY: up to one behind the last slot.
            entries.next = unsafe { slot.add(size) };
            entries.index += 1;
            if kind(value) == IS_UNDEF {
                continue;
            }
            if entries.has_keys {
                if entries.is_packed {
                    self.writer.int(index)?;
                } else {
                    // SAFETY: the slot is a bucket, and the table has its key.
                    unsafe { write_key(&mut self.writer, &*slot.cast::<Bucket>())? };
                }
            }
            // SAFETY: the caller's promise.
            unsafe { self.value(value)? };
            return Ok(true);
        }
        Ok(false)
    }

    /// Writes a value, or the head of an array.
    ///
    /// # Safety
    ///
    /// As [`rest`](Self::rest).
    #[inline]
    unsafe fn value(&mut self, value: &zval) -> Result<(), Unencodable> {
        let value = followed(value);
        // SAFETY: the type says which field has the value.
        unsafe {
            match kind(value) {
                IS_UNDEF | IS_NULL => self.writer.null()?,
                IS_FALSE => self.writer.bool(false)?,
                IS_TRUE => self.writer.bool(true)?,
                IS_LONG => self.writer.int(value.value.lval)?,
                IS_DOUBLE => self.writer.float(value.value.dval)?,
                IS_STRING => self.writer.string(bytes(value.value.str_))?,
                IS_ARRAY => self.array(value.value.arr, true)?,
                other if self.objects == Objects::Refuse => {
                    return Err(match other {
                        IS_RESOURCE => Unencodable::Resource,
                        _ => Unencodable::Object,
                    });
                }
                _ => self.writer.bool(true)?,
            }
        }
        Ok(())
    }

    /// The head of the outermost list; an empty one if the value is no array.
    ///
    /// # Safety
    ///
    /// As [`rest`](Self::rest).
    unsafe fn list_of(&mut self, value: &zval) -> Result<(), Unencodable> {
        let value = followed(value);
        match kind(value) {
            // SAFETY: it is an array.
            IS_ARRAY => unsafe { self.array(value.value.arr, false) },
            _ => Ok(self.writer.list(0)?),
        }
    }

    /// # Safety
    ///
    /// As [`rest`](Self::rest).
    unsafe fn array(
        &mut self,
        array: *const zend_array,
        with_keys: bool,
    ) -> Result<(), Unencodable> {
        if self.open.len() == self.depth_max {
            return Err(Unencodable::TooDeep);
        }
        let mut table = RawTable {
            slots: std::ptr::null(),
            used: 0,
            count: 0,
            is_packed: true,
        };
        // SAFETY: the caller's promise.
        unsafe { ffi::altair_table_of(array, &raw mut table) };
        let (used, count) = (table.used as usize, table.count as usize);
        self.holes = self
            .holes
            .checked_sub(used - count)
            .ok_or(Unencodable::TooLarge)?;
        let has_keys = with_keys && count != 0 && !(table.is_packed && used == count);
        // What it takes on the other side. An array that stands in many places is written in each.
        let needed = match has_keys {
            true => memory::map(count),
            false => memory::list(count),
        };
        let left = self.memory.checked_sub(needed);
        self.memory = left.ok_or(Unencodable::TooLarge)?;
        match has_keys {
            true => self.writer.map(count)?,
            false => self.writer.list(count)?,
        }
        let size = if table.is_packed {
            size_of::<zval>()
        } else {
            size_of::<Bucket>()
        };
        let next = table.slots.cast::<u8>();
        self.open.push(Entries {
            next,
            // SAFETY: so many slots are used.
            end: unsafe { next.add(used * size) },
            index: 0,
            is_packed: table.is_packed,
            has_keys,
        });
        Ok(())
    }
}

/// The type of a value.
#[inline]
fn kind(value: &zval) -> u32 {
    // SAFETY: each value has a type.
    unsafe { value.u1.v.type_ }.into()
}

/// What a slot of a symbol table, or a reference, stands for.
#[inline]
fn followed(mut value: &zval) -> &zval {
    // SAFETY: the type says which field has the value, and what it points to lives as long as it does.
    unsafe {
        if kind(value) == IS_INDIRECT {
            value = &*value.value.zv;
        }
        if kind(value) == IS_REFERENCE {
            value = &(*value.value.ref_).val;
        }
    }
    value
}

/// # Safety
///
/// The bucket is one of a table.
#[inline]
unsafe fn write_key(writer: &mut Writer, bucket: &Bucket) -> Result<(), Full> {
    if bucket.key.is_null() {
        writer.int(bucket.h.cast_signed())
    } else {
        // SAFETY: the caller's promise.
        writer.string(unsafe { bytes(bucket.key) })
    }
}

fn build(mut reader: Reader<'_>) -> Result<Zval, Undecodable> {
    let mut value = ManuallyDrop::new(Zval::new());
    let mut builder = Builder {
        slot: &raw mut *value,
        open: Vec::new(),
        steps: 0,
    };
    // What owns memory is outside, and the value is whole at each moment.
    let refused = match attempt(|| reader.read(&mut builder)) {
        Ok(Ok(())) => return Ok(ManuallyDrop::into_inner(value)),
        Ok(Err(Malformed::Memory)) => Undecodable::Memory,
        Ok(Err(malformed)) => Undecodable::Malformed(malformed),
        Err(Bailout) => Undecodable::Bailout,
    };
    // SAFETY: dropped once, and nothing reads it afterwards. It holds no object.
    attempt_drop(|| unsafe { ManuallyDrop::drop(&mut value) });
    Err(refused)
}

/// Builds a value in its place: each array is part of the whole as soon as it is made.
struct Builder {
    /// Where the next value belongs, if that is not in a list.
    slot: *mut zval,
    open: Vec<Place>,
    steps: u64,
}

/// An array that is being filled.
enum Place {
    /// The next slot of a list.
    List(*mut zval),
    /// A map.
    Map(*mut zend_array),
}

/// How often keys may have others in their way, in one value: as often as takes a second or two. In a table that nobody
/// has made to be slow it is about as often as there are entries; numbers whose low bits are all the same, as some
/// identifiers, reach this with 30,000 of them.
const STEPS_MAX: u64 = 1 << 29;

impl Builder {
    #[inline]
    fn take_slot(&mut self) -> *mut zval {
        match self.open.last_mut() {
            Some(Place::List(next)) => {
                let slot = *next;
                // SAFETY: up to one behind the last, since the reader gives as many values as it has announced.
                *next = unsafe { slot.add(1) };
                slot
            }
            _ => self.slot,
        }
    }
}

impl Build for Builder {
    #[inline]
    fn scalar(&mut self, value: Scalar<'_>) {
        let slot = self.take_slot();
        // SAFETY: the slot has a null that belongs to the value that is built. In a map it is also a link of the
        // table, which is in the third field of a `zval` and stays.
        unsafe {
            let kind = match value {
                Scalar::Null => IS_NULL,
                Scalar::Bool(false) => IS_FALSE,
                Scalar::Bool(true) => IS_TRUE,
                Scalar::Int(value) => {
                    (*slot).value.lval = value;
                    IS_LONG
                }
                Scalar::Float(value) => {
                    (*slot).value.dval = value;
                    IS_DOUBLE
                }
                Scalar::String(text) => {
                    return ffi::altair_make_string(slot, text.as_ptr().cast(), text.len());
                }
            };
            (*slot).u1.type_info = kind;
        }
    }

    fn begin(&mut self, count: usize, is_list: bool) {
        let slot = self.take_slot();
        // The reader lets no array have more.
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        // SAFETY: as above.
        self.open.push(unsafe {
            match is_list {
                true => Place::List(ffi::altair_begin_list(slot, count)),
                false => Place::Map(ffi::altair_begin_map(slot, count)),
            }
        });
    }

    #[inline]
    fn key(&mut self, key: Key<'_>) -> Result<(), Malformed> {
        let Some(Place::Map(map)) = self.open.last() else {
            return Ok(()); // the reader gives keys to maps only
        };
        // SAFETY: the array is the innermost that is being filled, and nobody else has it.
        self.slot = unsafe {
            match key {
                Key::Int(index) => ffi::altair_add_index(*map, index, &raw mut self.steps),
                Key::String(text) => {
                    ffi::altair_add_key(*map, text.as_ptr().cast(), text.len(), &raw mut self.steps)
                }
            }
        };
        if self.slot.is_null() {
            return Err(Malformed::DuplicateKey);
        }
        if self.steps > STEPS_MAX {
            return Err(Malformed::Collisions);
        }
        Ok(())
    }

    fn end(&mut self) {
        self.open.pop();
    }
}
