//! Huge pages for a template's memory. For each, a fork copies one page table entry instead of 512,
//! and removes one at its end. A page that it writes to is still copied alone
//! (Documentation/admin-guide/mm/transhuge.rst).
//!
//! A template has no `/proc` and cannot see its own mappings, so its host sends them.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use nix::errno::Errno;

use crate::system_calls::{self, HUGE_BYTES, PAGES};

/// The most huge pages that are sent: 1 GiB.
pub(crate) const WINDOWS_MAX: usize = 512;
/// Bytes of an address in a packet.
const ADDRESS_BYTES: usize = size_of::<u64>();
/// Bytes of the largest packet with addresses.
pub(crate) const PACKET_BYTES: usize = ADDRESS_BYTES * WINDOWS_MAX;

/// How often each may be postponed, on average.
const TRIES: usize = 4;

/// One takes about a millisecond, or more if the kernel first has to move other memory.
const SLOW: Duration = Duration::from_millis(10);

/// Makes the packet that tells a process where its memory may use huge pages; empty if nowhere.
///
/// # Errors
/// If `/proc` cannot be read.
pub(crate) fn packet_for(pid: i32) -> io::Result<Vec<u8>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let windows = maps.lines().filter_map(private_memory).flat_map(windows_in);
    Ok(windows
        .take(WINDOWS_MAX)
        .flat_map(u64::to_ne_bytes)
        .collect())
}

/// The bounds of a mapping, by its line in `maps`, if it is the process's private memory.
fn private_memory(line: &str) -> Option<(u64, u64)> {
    let mut fields = line.split_whitespace();
    let (begin, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let inode = fields.nth(2)?;
    let is_stack = fields.next() == Some("[stack]");
    if permissions != "rw-p" || inode != "0" || is_stack {
        return None;
    }
    let address = |hex| u64::from_str_radix(hex, 16).ok();
    Some((address(begin)?, address(end)?))
}

/// The huge pages that fit wholly in a mapping.
fn windows_in((begin, end): (u64, u64)) -> impl Iterator<Item = u64> {
    let size = HUGE_BYTES as u64;
    let first = begin.next_multiple_of(size);
    (first..end)
        .step_by(HUGE_BYTES)
        .filter(move |at| end - at >= size)
}

/// The memory still to be moved into huge pages.
#[derive(Default)]
pub(crate) struct Pending {
    windows: VecDeque<usize>,
    /// How often pages may still be postponed.
    patience: usize,
    /// The last one was slow: a request for a fork must not wait for another.
    is_slow: bool,
}

impl Pending {
    /// Decodes a packet.
    pub(crate) fn of(packet: &[u8]) -> Self {
        let addresses = packet.chunks_exact(ADDRESS_BYTES).filter_map(|bytes| {
            let address = u64::from_ne_bytes(bytes.try_into().ok()?);
            usize::try_from(address).ok()
        });
        let windows: VecDeque<usize> = addresses.collect();
        Self {
            patience: TRIES * windows.len(),
            windows,
            is_slow: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow
    }

    /// Handles the next page, which takes about a millisecond. Skips it if it is mostly unused or
    /// the kernel cannot move it.
    pub(crate) fn step(&mut self) {
        let Some(window) = self.windows.pop_front() else {
            return;
        };
        if system_calls::resident_pages(window) < PAGES / 2 {
            return;
        }
        let began = Instant::now();
        match system_calls::collapse(window) {
            // Another process is using one of its pages: a fork that writes to it, or ends.
            Err(Errno::EAGAIN) if self.patience > 0 => {
                self.patience -= 1;
                self.windows.push_back(window);
            }
            // No huge page is available: memory is short or fragmented (madvise(2)).
            Err(Errno::ENOMEM | Errno::EBUSY) => self.windows.clear(),
            _ => {}
        }
        self.is_slow = began.elapsed() > SLOW;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_of_the_processs_own_counts() {
        let own = "7f1d1ee00000-7f1d1f200000 rw-p 00000000 00:00 0 ";
        assert_eq!(
            private_memory(own),
            Some((0x7f1d_1ee0_0000, 0x7f1d_1f20_0000))
        );
        let heap =
            "5579a8215000-5579a853c000 rw-p 00000000 00:00 0                          [heap]";
        assert!(private_memory(heap).is_some());
        for other in [
            "7ffd71d5a000-7ffd71d7b000 rw-p 00000000 00:00 0                          [stack]",
            "7f1d21551000-7f1d216a7000 r-xp 00026000 fe:00 1234                       /lib/libc.so.6",
            "7f1d21551000-7f1d216a7000 rw-p 00026000 fe:00 1234                       /lib/libc.so.6",
            "7f1d21551000-7f1d216a7000 rw-s 00000000 00:01 0                          /dev/zero",
            "7f1d21551000-7f1d216a7000 ---p 00000000 00:00 0 ",
            "",
        ] {
            assert_eq!(private_memory(other), None, "{other}");
        }
    }

    #[test]
    fn windows_lie_wholly_in_the_mapping() {
        let size = HUGE_BYTES as u64;
        let found = |begin, end| windows_in((begin, end)).collect::<Vec<_>>();
        assert_eq!(found(size, 3 * size), [size, 2 * size]);
        assert_eq!(found(size - 1, 2 * size), [size]);
        assert_eq!(found(size + 1, 3 * size - 1), []);
        assert_eq!(found(0, size - 1), []);
    }

    #[test]
    fn memory_in_use_is_put_into_a_huge_page_and_stays_what_it_was() -> io::Result<()> {
        let mut memory = vec![0u8; 2 * HUGE_BYTES];
        for (at, byte) in memory.iter_mut().enumerate() {
            *byte = at.to_le_bytes().into_iter().fold(0, u8::wrapping_add);
        }
        let window = (memory.as_ptr() as usize).next_multiple_of(HUGE_BYTES);
        // The kernel's khugepaged removes pages from the page table for a moment.
        let until = Instant::now() + Duration::from_secs(10);
        while system_calls::resident_pages(window) != PAGES && Instant::now() < until {
            std::thread::yield_now();
        }
        assert_eq!(system_calls::resident_pages(window), PAGES);
        let has_them = fs::exists("/sys/kernel/mm/transparent_hugepage")?;
        // A child of another test's may use its pages for a moment.
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let mut pending = Pending::of(&(window as u64).to_ne_bytes());
            assert!(!pending.is_empty());
            // A step either ends it or uses up one of its tries.
            for _ in 0..=TRIES {
                pending.step();
            }
            assert!(pending.is_empty());
            let huge_kb = huge_kb()?;
            if huge_kb >= HUGE_BYTES / 1024 || !has_them {
                break;
            }
            assert!(Instant::now() < until, "{huge_kb} kB");
            std::thread::sleep(Duration::from_millis(5));
        }
        for (at, byte) in memory.iter().enumerate() {
            assert_eq!(
                *byte,
                at.to_le_bytes().into_iter().fold(0, u8::wrapping_add)
            );
        }
        Ok(())
    }

    /// This process's memory in huge pages.
    fn huge_kb() -> io::Result<usize> {
        let smaps = fs::read_to_string("/proc/self/smaps")?;
        let lines = smaps.lines();
        let told = lines.filter_map(|line| line.strip_prefix("AnonHugePages:"));
        Ok(told
            .filter_map(|kb| kb.trim().trim_end_matches(" kB").parse::<usize>().ok())
            .sum())
    }
}
