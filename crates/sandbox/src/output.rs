//! The output of a process: the head is kept, the rest is counted.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::read;

/// One of a process's two output streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
}

/// What a process wrote to one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The first bytes, at most [`Supervision::output_limit`](crate::Supervision::output_limit).
    pub head: Vec<u8>,
    /// Bytes written in total; more than `head.len()` if the output was cut.
    pub total: u64,
}

impl Captured {
    /// Adds a chunk and keeps at most `limit` bytes in total.
    fn push(&mut self, chunk: &[u8], limit: usize) {
        let room = limit.saturating_sub(self.head.len());
        let kept = chunk.get(..room).unwrap_or(chunk);
        self.head.extend_from_slice(kept);
        self.total = self.total.saturating_add(chunk.len() as u64);
    }
}

/// More bytes than a terminal holds that nobody has read yet (`TTYB_DEFAULT_MEM_LIMIT` of
/// drivers/tty/tty_buffer.c).
const TERMINAL_BYTES: usize = 64 * 1024;

/// The host's end of one stream.
pub(crate) struct Tap {
    pub(crate) stream: Stream,
    /// `None` once the end of the stream was read.
    pipe: Option<OwnedFd>,
    limit: usize,
    pub(crate) captured: Captured,
}

/// The result of one read.
pub(crate) enum Read {
    /// The number of bytes, at the start of the buffer.
    Bytes(usize),
    /// Nothing for now, or the end of the stream.
    Nothing,
}

impl Tap {
    /// Reads `pipe` without blocking. This affects only the host's end: the two ends are two open
    /// files, each with its own flags.
    pub(crate) fn new(stream: Stream, pipe: OwnedFd, limit: usize) -> Self {
        // Fails only for a descriptor that is not open.
        let _ = fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
        Self {
            stream,
            pipe: Some(pipe),
            limit,
            captured: Captured::default(),
        }
    }

    /// The descriptor to poll, until the end of the stream was read.
    pub(crate) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    /// Bytes that the pipe can hold. A process that has ended leaves at most this much in it.
    pub(crate) fn capacity(&self) -> usize {
        let Some(pipe) = &self.pipe else { return 0 };
        fcntl(pipe, FcntlArg::F_GETPIPE_SZ)
            .ok()
            .and_then(|bytes| usize::try_from(bytes).ok())
            // A terminal.
            .unwrap_or(TERMINAL_BYTES)
    }

    /// Reads once and keeps the part that belongs to the head.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Read {
        let Some(pipe) = &self.pipe else {
            return Read::Nothing;
        };
        match read(pipe, buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => {
                let chunk = buffer.get(..count).unwrap_or_default();
                self.captured.push(chunk, self.limit);
                return Read::Bytes(count);
            }
            Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(_) => self.pipe = None,
        }
        Read::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_head_is_a_prefix_of_what_was_written_and_the_total_is_exact(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20),
            limit in 0usize..300,
        ) {
            let whole = chunks.concat();
            let mut captured = Captured::default();
            for chunk in &chunks {
                captured.push(chunk, limit);
            }
            prop_assert_eq!(captured.total, whole.len() as u64);
            prop_assert_eq!(&captured.head[..], &whole[..limit.min(whole.len())]);
        }
    }
}
