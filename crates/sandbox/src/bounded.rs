//! Lists from an untrusted process: a few bytes can announce millions of entries, each of which
//! takes many bytes in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

/// Reads a list of at most `MOST` entries, for `#[serde(deserialize_with = "…")]`.
///
/// # Errors
/// What the format reports, or that there are more entries.
pub fn at_most<'de, const MOST: usize, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Reader<T, const MOST: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Reader<T, MOST> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MOST} entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
            let mut read = Vec::new();
            while let Some(entry) = entries.next_element()? {
                if read.len() == MOST {
                    return Err(A::Error::custom("there are too many entries"));
                }
                read.push(entry);
            }
            Ok(read)
        }
    }

    from.deserialize_seq(Reader::<T, MOST>(PhantomData))
}
