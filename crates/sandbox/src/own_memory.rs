//! The keeper's memory: it is a copy of the host's, and needs next to nothing of it.
//!
//! As in the keeper, nothing here allocates, takes a lock or panics.
#![allow(unsafe_code)]

use nix::libc::{self, c_void};

use crate::raw_descriptors;

/// Mappings to release at a time.
const AT_A_TIME: usize = 64;
/// Smaller mappings are not worth a call: loaders' and the C library's own data.
const SMALL_BYTES: usize = 64 * 1024;
/// Bytes read at a time, into a buffer on the stack.
const BUFFER_BYTES: usize = 4096;
/// Bytes of a line that are looked at: addresses, permissions, device, inode, and the beginning of a
/// name (proc_pid_maps(5)).
const LINE_BYTES: usize = 128;

/// A range of addresses.
#[derive(Clone, Copy, Default)]
struct Range {
    start: usize,
    end: usize,
}

impl Range {
    fn holds(self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// Releases the heaps that the calling process has copied from its host: whoever looks into it finds
/// no secrets of the host's there, the host need not copy the pages that it writes to, and the end
/// of the process takes less time.
///
/// The caller must use nothing on a heap from now on.
pub(crate) fn release_heaps() {
    let on_stack = 0_u8;
    // SAFETY: the C library always has a place for `errno`.
    let in_thread_storage = unsafe { libc::__errno_location() } as usize;
    let kept = [(&raw const on_stack) as usize, in_thread_storage];
    let mut found = [Range::default(); AT_A_TIME];
    let mut count = 0;
    let mut before = Mapping::default();
    each_mapping(&mut |mapping| {
        let is_heap = mapping.is_private_data
            && !mapping.is_of_file
            // The uninitialised data of a program or library, behind its initialised data.
            && !(before.is_of_file && before.range.end == mapping.range.start)
            && mapping.range.end - mapping.range.start >= SMALL_BYTES
            && !mapping.is_stack
            && !kept.iter().any(|address| mapping.range.holds(*address));
        if is_heap && let Some(place) = found.get_mut(count) {
            *place = mapping.range;
            count += 1;
        }
        before = mapping;
    });
    for range in found.iter().take(count) {
        // SAFETY: private memory that nothing in this process uses any more, as the caller promises
        // for heaps; it holds neither the stack nor the thread's storage.
        unsafe { libc::munmap(range.start as *mut c_void, range.end - range.start) };
    }
}

/// A line of `/proc/self/maps`.
#[derive(Clone, Copy, Default)]
struct Mapping {
    range: Range,
    /// Readable, writable, private.
    is_private_data: bool,
    is_of_file: bool,
    is_stack: bool,
}

/// Calls `found` with each mapping of the calling process, by address.
fn each_mapping(found: &mut dyn FnMut(Mapping)) {
    let Ok(file) = raw_descriptors::open_for_reading(c"/proc/self/maps") else {
        return;
    };
    let mut buffer = [0; BUFFER_BYTES];
    let mut line = [0; LINE_BYTES];
    let mut length = 0;
    while let Ok(count @ 1..) = raw_descriptors::read(file, &mut buffer) {
        for byte in buffer.iter().take(count) {
            if *byte == b'\n' {
                if let Some(mapping) = line.get(..length).and_then(parsed) {
                    found(mapping);
                }
                length = 0;
            } else if let Some(place) = line.get_mut(length) {
                *place = *byte;
                length += 1;
            }
        }
    }
    raw_descriptors::close(file);
}

/// Reads `start-end perms offset dev inode name`.
fn parsed(line: &[u8]) -> Option<Mapping> {
    let mut fields = line
        .split(|byte| *byte == b' ')
        .filter(|field| !field.is_empty());
    let mut ends = fields.next()?.split(|byte| *byte == b'-');
    let start = hexadecimal(ends.next()?)?;
    let end = hexadecimal(ends.next()?)?;
    let permissions = fields.next()?;
    let inode = fields.nth(2)?;
    let name = fields.next().unwrap_or_default();
    Some(Mapping {
        range: Range { start, end },
        is_private_data: permissions == b"rw-p",
        is_of_file: inode != b"0",
        is_stack: name.starts_with(b"[stack"),
    })
}

fn hexadecimal(digits: &[u8]) -> Option<usize> {
    let mut number = 0_usize;
    for byte in digits {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        number = number.checked_mul(16)?.checked_add(digit.into())?;
    }
    Some(number)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let heap = parsed(b"55a9736000-55a9800000 rw-p 00000000 00:00 0    [heap]").unwrap();
        assert_eq!(
            (heap.range.start, heap.range.end),
            (0x55a9736000, 0x55a9800000)
        );
        assert!(heap.is_private_data && !heap.is_of_file && !heap.is_stack);
        let library = parsed(b"7f0000000000-7f0000001000 rw-p 00003000 08:01 1234   /lib/x.so");
        assert!(library.unwrap().is_of_file);
        let stack = parsed(b"7ffc0000000-7ffc0021000 rw-p 00000000 00:00 0  [stack]").unwrap();
        assert!(stack.is_stack);
        assert!(
            !parsed(b"7f00-7f10 r--p 00000000 00:00 0")
                .unwrap()
                .is_private_data
        );
        for other in [&b""[..], b"x-y rw-p 0 0 0", b"7f00", b"7f00-7f10 rw-p"] {
            assert!(parsed(other).is_none());
        }
    }

    #[test]
    fn the_mappings_of_this_process_are_found() {
        let on_stack = 0_u8;
        let on_heap = vec![0_u8; 1 << 20];
        let mut seen = [false; 2];
        each_mapping(&mut |mapping| {
            seen[0] |= mapping.range.holds((&raw const on_stack) as usize);
            seen[1] |= mapping.range.holds(on_heap.as_ptr() as usize) && mapping.is_private_data;
        });
        assert_eq!(seen, [true, true]);
    }
}
