//! Whether the machine is short of memory. For the keeper: nothing here allocates, takes a lock or
//! panics.

use std::ffi::CStr;
use std::os::fd::RawFd;

use crate::raw_descriptors;

/// The kernel's notification that processes wait for memory (Documentation/accounting/psi.rst).
pub(crate) struct Pressure(Option<RawFd>);

impl Pressure {
    /// Some process waited for memory for 200 ms within 2 s. Any user may watch windows that are
    /// multiples of 2 s; other windows need privileges.
    const TRIGGER: &[u8] = b"some 200000 2000000\0";

    /// Asks for the notification; the descriptor is at least `lowest`. Without `CONFIG_PSI` there is
    /// none.
    pub(crate) fn watch(lowest: RawFd) -> Self {
        let opened = raw_descriptors::open_for_both(c"/proc/pressure/memory", lowest);
        Self(opened.ok().filter(|fd| {
            let taken = raw_descriptors::write_all(*fd, Self::TRIGGER);
            if taken.is_err() {
                raw_descriptors::close(*fd);
            }
            taken.is_ok()
        }))
    }

    /// Readable (`POLLPRI`) when it comes; `None` if there is nothing to watch.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        self.0
    }

    /// Stops watching.
    pub(crate) fn end(&mut self) {
        if let Some(descriptor) = self.0.take() {
            raw_descriptors::close(descriptor);
        }
    }
}

/// One part in this many of the machine's memory is to stay available.
const RESERVE: u64 = 8;

/// Bytes of meminfo that hold the first three lines, which have what is looked for.
const HEAD_BYTES: usize = 256;

/// Whether little memory is available. Processes also wait for memory while the kernel compacts it
/// for huge pages or reads files again; that alone is no shortage.
pub(crate) fn is_memory_short() -> bool {
    let mut head = [0; HEAD_BYTES];
    let Some(length) = read(c"/proc/meminfo", &mut head) else {
        return true;
    };
    let head = head.get(..length).unwrap_or_default();
    match (
        kibibytes(head, b"MemTotal:"),
        kibibytes(head, b"MemAvailable:"),
    ) {
        (Some(total), Some(available)) => available < total / RESERVE,
        _ => true,
    }
}

fn read(path: &CStr, to: &mut [u8]) -> Option<usize> {
    let file = raw_descriptors::open_for_reading(path).ok()?;
    let length = raw_descriptors::read(file, to).ok();
    raw_descriptors::close(file);
    length
}

/// The number behind a name in proc_meminfo(5).
fn kibibytes(text: &[u8], name: &[u8]) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(name))?;
    let digits = value
        .iter()
        .skip_while(|byte| **byte == b' ')
        .take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |number: Option<u64>, digit| {
        number
            .unwrap_or(0)
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_by_their_names() {
        let text =
            b"MemTotal:       24576000 kB\nMemFree:  1 kB\nMemAvailable:   20 kB\nBuffers: x";
        assert_eq!(kibibytes(text, b"MemTotal:"), Some(24_576_000));
        assert_eq!(kibibytes(text, b"MemAvailable:"), Some(20));
        assert_eq!(kibibytes(text, b"Buffers:"), None);
        assert_eq!(kibibytes(text, b"Nothing:"), None);
    }

    #[test]
    fn the_kernel_tells_both_in_the_head_of_the_file() {
        let mut head = [0; HEAD_BYTES];
        let length = read(c"/proc/meminfo", &mut head).unwrap_or(0);
        let head = &head[..length];
        let (total, available) = (
            kibibytes(head, b"MemTotal:"),
            kibibytes(head, b"MemAvailable:"),
        );
        assert!(
            total > available && available > Some(0),
            "{total:?} {available:?}"
        );
    }
}
