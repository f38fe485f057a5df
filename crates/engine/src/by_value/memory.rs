//! What PHP's allocator takes for a value, at least as much as it does: a value is refused for it before it is built.
//!
//! The sizes are those of `Zend/zend_alloc_sizes.h`, `zend_string.h` and `zend_hash.h` from PHP 8.2 on.

/// Of a page of the allocator.
const PAGE: usize = 4096;
/// Of a chunk of it, which large blocks share and which have one page for themselves.
const CHUNK: usize = 2 << 20;
const PAGES_OF_CHUNK: usize = CHUNK / PAGE - 1;
/// The largest block that shares its pages with others of its size.
const SMALL_MAX: usize = 3072;
/// Builds of PHP that watch over the ends of blocks have a few bytes more in each.
const GUARD: usize = 8;
/// What the system may round a mapping of its own up to: the largest page of aarch64.
const MAPPING: usize = 64 << 10;

/// The fewest slots of a table.
const SLOTS_MIN: usize = 8;
/// `sizeof(zend_array)`.
const TABLE_HEAD: usize = 56;
/// `sizeof(zval)`.
const ZVAL: usize = 16;
/// `sizeof(Bucket)`, and its place in the hash.
const BUCKET: usize = 32 + 4 * 2;
/// The hash of a packed table, which has none.
const NO_HASH: usize = 8;
/// The head of a `zend_string`, and the NUL behind it.
const STRING_HEAD: usize = 24 + 1;

/// Bytes for a string, or a key, of that length.
pub fn string(len: usize) -> usize {
    match len {
        0 | 1 => 0, // PHP has each of them once
        _ => block(len.saturating_add(STRING_HEAD).saturating_add(7) & !7),
    }
}

/// Bytes for a list of that many entries, without what they hold.
pub fn list(count: usize) -> usize {
    match count {
        0 => 0, // the same for all
        _ => block(TABLE_HEAD).saturating_add(block(
            slots(count).saturating_mul(ZVAL).saturating_add(NO_HASH),
        )),
    }
}

/// Bytes for a map of that many entries, without its keys and what they hold.
pub fn map(count: usize) -> usize {
    match count {
        0 => 0,
        _ => block(TABLE_HEAD).saturating_add(block(slots(count).saturating_mul(BUCKET))),
    }
}

fn slots(count: usize) -> usize {
    count.max(SLOTS_MIN).next_power_of_two()
}

/// Bytes for a block of that size, with what is lost around it.
fn block(size: usize) -> usize {
    let size = size.saturating_add(GUARD);
    if size <= SMALL_MAX {
        // Sizes go in steps of an eighth of the power of two above them. What does not fill a page to its end, and
        // what the chunk needs for itself, is less than a thirtieth.
        let step = (size.next_power_of_two() / 8).max(8);
        let rounded = size.next_multiple_of(step);
        return rounded + rounded / 30;
    }
    if size <= PAGES_OF_CHUNK * PAGE {
        // As if a chunk had only blocks of this size: those of more than half of it have a chunk for themselves.
        return CHUNK / (PAGES_OF_CHUNK / size.div_ceil(PAGE));
    }
    size.saturating_add(MAPPING - 1) & !(MAPPING - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_php_has_once_costs_nothing() {
        assert_eq!((string(0), string(1), list(0), map(0)), (0, 0, 0, 0));
    }

    #[test]
    fn a_string_takes_the_next_size_of_the_allocator() {
        // 24 + 2 + 1 → 32, 40 with the guard; 24 + 40 + 1 → 72 → 80; 24 + 2600 + 1 → 2632 → 3072.
        for (len, size) in [(2, 40), (40, 80), (2600, 3072), (3000, 3072)] {
            assert_eq!(string(len), size + size / 30, "of {len} bytes");
        }
        assert_eq!(string(4000), CHUNK / PAGES_OF_CHUNK); // one page
        assert_eq!(string(1_100_000), CHUNK); // more than half of a chunk
        assert!((10_000_000..10_100_000).contains(&string(10_000_000)));
    }

    #[test]
    fn a_table_has_a_power_of_two_of_slots() {
        assert_eq!(list(1), list(8));
        assert!(list(9) > list(8));
        assert_eq!(list(9), list(16));
        assert_eq!(map(1), map(8));
        assert!((320 + 56..320 + 56 + 128).contains(&map(8)));
        assert!(list(100_000) >= 131_072 * 16);
        assert!(map(100_000) >= 131_072 * 40);
    }

    #[test]
    fn no_size_is_too_large_to_be_told() {
        assert!(string(usize::MAX) > usize::MAX / 2);
        assert!(list(1 << 60) > usize::MAX / 2);
        assert!(map(1 << 60) > usize::MAX / 2);
    }
}
