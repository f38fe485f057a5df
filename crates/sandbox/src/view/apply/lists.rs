//! Access control lists in the form of the attributes (acl(5); `struct posix_acl_xattr_entry` in the
//! kernel's include/uapi/linux/posix_acl_xattr.h).

/// Bytes of the version before the entries, and of an entry: a tag and rights, of two bytes each, and
/// the number of a user or group.
const HEADER_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;

/// The tags of the entries that the mode does not decide about: a user, the group, another group.
const USER: u16 = 0x02;
const GROUP_OWN: u16 = 0x04;
const GROUP: u16 = 0x08;
/// The bounds of these.
const MASK: u16 = 0x10;

type Entry = (u16, u16, [u8; 4]);

fn entries(list: &[u8]) -> impl Iterator<Item = Entry> {
    let entries = list.get(HEADER_BYTES..).unwrap_or_default();
    entries
        .chunks_exact(ENTRY_BYTES)
        .filter_map(|entry| match entry {
            [tag, tag_high, rights, rights_high, id @ ..] => Some((
                u16::from_le_bytes([*tag, *tag_high]),
                u16::from_le_bytes([*rights, *rights_high]),
                id.try_into().ok()?,
            )),
            _ => None,
        })
}

/// Whether two lists say the same of everybody but those that the mode decides about.
pub(super) fn are_same(one: &[u8], other: &[u8]) -> bool {
    let named = |list| -> Vec<Entry> {
        entries(list)
            .filter(|(tag, ..)| matches!(*tag, USER | GROUP_OWN | GROUP))
            .collect()
    };
    named(one) == named(other)
}

/// What the file's own group may do, as a digit of a mode.
pub(super) fn rights_of_group(list: &[u8]) -> u8 {
    let of = |tag| entries(list).find(|entry| entry.0 == tag);
    let own = of(GROUP_OWN).map_or(0, |entry| entry.1);
    let bounds = of(MASK).map_or(7, |entry| entry.1);
    // Only the three rights are left.
    u8::try_from(own & bounds & 7).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(of_user: u8, of_group: u8, mask: u8) -> Vec<u8> {
        let entry = |tag, rights, id| [tag, 0, rights, 0, id, 0, 0, 0];
        let entries = [
            entry(1, 7, 0xff),
            entry(2, of_user, 9),
            entry(4, of_group, 0xff),
            entry(0x10, mask, 0xff),
            entry(0x20, 5, 0xff),
        ];
        [2, 0, 0, 0].into_iter().chain(entries.concat()).collect()
    }

    #[test]
    fn the_mask_is_the_modes_affair_and_the_others_are_not() {
        assert!(are_same(&list(7, 5, 7), &list(7, 5, 0)));
        assert!(!are_same(&list(7, 5, 7), &list(6, 5, 7)));
        assert!(!are_same(&list(7, 5, 7), &list(7, 7, 7)));
        assert_eq!(rights_of_group(&list(7, 5, 6)), 4);
        assert_eq!(rights_of_group(b"odd"), 0);
    }
}
