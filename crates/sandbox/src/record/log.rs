//! The log: one private mapping that only grows, written by the signal handler and read when the
//! recording has ended.
#![allow(unsafe_code)]

use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::Relaxed};

use nix::errno::Errno;
use nix::libc;

use super::Unseen;
use super::sight::Entry;

/// Size of the address space; only written pages take memory. An entry takes about 200 bytes.
const BYTES: usize = 32 << 20;
/// Alignment of entries.
const ALIGN: usize = 8;
/// The head before each entry: the length of its path, and its total size, which stays 0 until the
/// entry is complete.
const HEAD_BYTES: usize = 8;

/// A process has at most one recorder, and its handler can only access statics. Only one thread
/// uses them, so no memory ordering is needed; but each access must be atomic, since one handler
/// may interrupt another.
static START: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static USED: AtomicUsize = AtomicUsize::new(0);
static UNSEEN: AtomicU32 = AtomicU32::new(0);

/// All kinds with their bits in `UNSEEN`.
const KINDS: [(Unseen, u32); 4] = [
    (Unseen::Process, 1),
    (Unseen::Thread, 2),
    (Unseen::Connection, 4),
    (Unseen::TooMuch, 8),
];

/// Makes an empty log.
///
/// # Errors
/// `EBUSY`: there is one already. Those of mmap(2).
pub(super) fn open() -> io::Result<()> {
    if !START.load(Relaxed).is_null() {
        return Err(Errno::EBUSY.into());
    }
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    USED.store(0, Relaxed);
    UNSEEN.store(0, Relaxed);
    START.store(start.cast(), Relaxed);
    Ok(())
}

/// Notes what no entry can describe.
#[inline]
pub(super) fn note(unseen: Unseen) {
    for (kind, bit) in KINDS {
        if kind == unseen {
            UNSEEN.fetch_or(bit, Relaxed);
        }
    }
}

/// What was noted.
pub(super) fn noted() -> Vec<Unseen> {
    let bits = UNSEEN.load(Relaxed);
    let kinds = KINDS.into_iter().filter(|(_, bit)| bits & bit != 0);
    kinds.map(|(kind, _)| kind).collect()
}

/// An entry in the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(NonNull<Entry>);

impl Place {
    /// Marks that the call has succeeded.
    #[inline]
    pub(super) fn set_done(self) {
        // SAFETY: only `append` makes a place, for an entry that it wrote; the log outlives the
        // handler that holds the place.
        unsafe { (*self.0.as_ptr()).done = true };
    }
}

/// Appends an entry, or notes that there is no room. Async-signal-safe and reentrant.
#[inline]
pub(super) fn append(entry: Entry, path: &[u8]) -> Option<Place> {
    let size = (HEAD_BYTES + size_of::<Entry>() + path.len() + 1).next_multiple_of(ALIGN);
    let reserved = USED.fetch_update(Relaxed, Relaxed, |used| {
        used.checked_add(size).filter(|end| *end <= BYTES)
    });
    let start = NonNull::new(START.load(Relaxed));
    let (Ok(at), Some(start)) = (reserved, start) else {
        note(Unseen::TooMuch);
        return None;
    };
    let length = u32::try_from(path.len()).unwrap_or(0);
    let size = u32::try_from(size).unwrap_or(0);
    // SAFETY: the mapping is `BYTES` long and `at + size` is within it; no other call was given
    // this part, which is aligned for an entry because all sizes are multiples of `ALIGN`.
    unsafe {
        let head = start.add(at);
        let place = head.add(HEAD_BYTES).cast::<Entry>();
        place.write(entry);
        let text = place.add(1).cast::<u8>();
        ptr::copy_nonoverlapping(path.as_ptr(), text.as_ptr(), path.len());
        head.cast::<u32>().write(length);
        // Last, so that an entry left half written by a jump out of a handler is not read.
        ptr::write_volatile(head.cast::<u32>().add(1).as_ptr(), size);
        Some(Place(place))
    }
}

/// Passes each entry and its path to `each`, in order, and unmaps the log.
pub(super) fn drain(mut each: impl FnMut(&Entry, &[u8])) {
    let Some(start) = NonNull::new(START.swap(ptr::null_mut(), Relaxed)) else {
        return;
    };
    let used = USED.load(Relaxed);
    let mut at = 0;
    while at < used {
        // SAFETY: up to `used` the log holds heads, each followed by its entry and its path, as
        // `append` wrote them; the size of an incomplete one is 0.
        unsafe {
            let head = start.add(at);
            let length = head.cast::<u32>().read() as usize;
            let size = head.cast::<u32>().add(1).read() as usize;
            if size == 0 {
                note(Unseen::TooMuch);
                break;
            }
            let place = head.add(HEAD_BYTES).cast::<Entry>();
            let text = place.add(1).cast::<u8>();
            let path = std::slice::from_raw_parts(text.as_ptr(), length);
            each(place.as_ref(), path);
            at += size;
        }
    }
    // SAFETY: the mapping made by `open`; nothing points into it any more.
    unsafe { libc::munmap(start.as_ptr().cast(), BYTES) };
}
