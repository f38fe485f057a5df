//! The end of a stream: what a cap keeps.

use std::collections::VecDeque;

/// Keeps the last bytes of a stream.
#[derive(Debug)]
pub(crate) struct Tail {
    limit: usize,
    bytes: VecDeque<u8>,
    is_cut: bool,
}

impl Tail {
    /// Keeps at most `limit` bytes.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            bytes: VecDeque::new(),
            is_cut: false,
        }
    }

    /// Adds a chunk.
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        let last = match chunk.len().checked_sub(self.limit) {
            Some(surplus) => chunk.get(surplus..).unwrap_or_default(),
            None => chunk,
        };
        let too_many = (self.bytes.len() + chunk.len()).saturating_sub(self.limit);
        self.is_cut |= too_many > 0;
        self.bytes.drain(..too_many.min(self.bytes.len()));
        self.bytes.extend(last);
    }

    /// The bytes, and whether there were more.
    pub(crate) fn into_bytes(self) -> (Vec<u8>, bool) {
        (self.bytes.into(), self.is_cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_last_bytes_are_kept(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            limit in 1u64..200,
        ) {
            let whole = chunks.concat();
            let mut tail = Tail::new(limit);
            for chunk in &chunks {
                tail.push(chunk);
            }
            let (bytes, is_cut) = tail.into_bytes();
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            prop_assert_eq!(&bytes[..], &whole[whole.len().saturating_sub(limit)..]);
            prop_assert_eq!(is_cut, whole.len() > limit);
        }
    }
}
