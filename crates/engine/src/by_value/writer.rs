//! From a value to bytes.

use super::tag;

/// The value needs more bytes than it may have, or than there is memory for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the value is too large")]
pub struct Full;

/// Appends values to a buffer of limited size. What it is given has to be a value: after [`list`](Self::list) as many
/// values as it says, after [`map`](Self::map) as many keys, each with a value.
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    most: usize,
}

/// The longest varint.
const VARINT_MAX: usize = 10;

impl Writer {
    /// A writer of at most `most` bytes.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self {
            bytes: Vec::new(),
            most,
        }
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Null.
    ///
    /// # Errors
    ///
    /// [`Full`], here and below, where there is no more room.
    #[inline]
    pub fn null(&mut self) -> Result<(), Full> {
        self.short(&[tag::NULL])
    }

    /// A boolean.
    ///
    /// # Errors
    ///
    /// [`Full`].
    #[inline]
    pub fn bool(&mut self, value: bool) -> Result<(), Full> {
        self.short(&[if value { tag::TRUE } else { tag::FALSE }])
    }

    /// An integer, or the key of an entry of a map.
    ///
    /// # Errors
    ///
    /// [`Full`].
    #[inline]
    pub fn int(&mut self, value: i64) -> Result<(), Full> {
        // Zigzag: the sign is the lowest bit, so that small negative numbers are short, too.
        self.tagged(tag::INT, ((value << 1) ^ (value >> 63)).cast_unsigned())
    }

    /// A float.
    ///
    /// # Errors
    ///
    /// [`Full`].
    #[inline]
    pub fn float(&mut self, value: f64) -> Result<(), Full> {
        let mut bytes = [tag::FLOAT; 9];
        bytes[1..].copy_from_slice(&value.to_bits().to_le_bytes());
        self.short(&bytes)
    }

    /// A string, or the key of an entry of a map.
    ///
    /// # Errors
    ///
    /// [`Full`].
    #[inline]
    pub fn string(&mut self, value: &[u8]) -> Result<(), Full> {
        self.tagged(tag::STRING, value.len() as u64)?;
        self.room(value.len())?;
        self.bytes.extend_from_slice(value);
        Ok(())
    }

    /// The head of a list of that many values.
    ///
    /// # Errors
    ///
    /// [`Full`].
    #[inline]
    pub fn list(&mut self, count: usize) -> Result<(), Full> {
        self.tagged(tag::LIST, count as u64)
    }

    /// The head of a map of that many entries.
    ///
    /// # Errors
    ///
    /// [`Full`].
    #[inline]
    pub fn map(&mut self, count: usize) -> Result<(), Full> {
        self.tagged(tag::MAP, count as u64)
    }

    #[inline]
    fn tagged(&mut self, tag: u8, mut number: u64) -> Result<(), Full> {
        let mut bytes = [tag; 1 + VARINT_MAX];
        let mut len = 1;
        while number >= 0x80 {
            bytes[len] = number.to_le_bytes()[0] | 0x80;
            number >>= 7;
            len += 1;
        }
        bytes[len] = number.to_le_bytes()[0];
        self.short(&bytes[..=len])
    }

    #[inline]
    fn short(&mut self, bytes: &[u8]) -> Result<(), Full> {
        self.room(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn room(&mut self, more: usize) -> Result<(), Full> {
        if more > self.most - self.bytes.len() {
            return Err(Full);
        }
        // A process that is confined has little memory at times, and running out of it would end it.
        match more > self.bytes.capacity() - self.bytes.len() {
            true => self.bytes.try_reserve(more).map_err(|_| Full),
            false => Ok(()),
        }
    }
}
