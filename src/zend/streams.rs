//! PHP's streams.

use std::ffi::c_void;
use std::os::fd::{BorrowedFd, RawFd};

use ext_php_rs::types::Zval;

use super::host::{Wants, has_exception};
use super::{Bailout, attempt, ffi};

/// An open stream, which its value keeps open.
pub struct Stream<'a> {
    value: &'a Zval,
}

/// What a read gave.
pub enum Read {
    /// This many bytes.
    Bytes(usize),
    /// None for now.
    Nothing,
    /// None any more.
    End,
}

impl<'a> Stream<'a> {
    /// The stream of a resource; `None` if it is none, or closed.
    pub fn of(value: &'a Zval) -> Option<Self> {
        let stream = Self { value };
        stream.pointer().map(|_| stream)
    }

    fn pointer(&self) -> Option<*mut c_void> {
        // SAFETY: only looks at the value and the list of resources.
        let stream = unsafe { ffi::altair_stream_of((&raw const *self.value).cast_mut()) };
        (!stream.is_null()).then_some(stream)
    }

    /// The descriptor on which more bytes come; `None` where the stream has to be read to know.
    pub fn descriptor(&self) -> Option<BorrowedFd<'a>> {
        // SAFETY: the stream is open.
        let descriptor: RawFd = unsafe { ffi::altair_stream_descriptor(self.pointer()?) };
        // SAFETY: the stream has it, and `value` keeps the stream.
        (descriptor >= 0).then(|| unsafe { BorrowedFd::borrow_raw(descriptor) })
    }

    /// Reads once. A stream without a descriptor may block.
    ///
    /// # Errors
    ///
    /// Why the call must end: the code of a wrapper has thrown.
    pub fn read(&self, buffer: &mut [u8]) -> Result<Read, Wants> {
        // Code that ran meanwhile may have closed it.
        let Some(stream) = self.pointer() else {
            return Ok(Read::End);
        };
        // SAFETY: pointer and length are of one slice; runs PHP code inside `attempt`.
        let read = attempt(|| unsafe {
            ffi::altair_stream_read(stream, buffer.as_mut_ptr().cast(), buffer.len())
        });
        let read = match read {
            Ok(_) if has_exception() => return Err(Wants::Throw),
            Ok(read) => read,
            Err(Bailout) => return Err(Wants::Bailout),
        };
        match usize::try_from(read) {
            Ok(count @ 1..) => Ok(Read::Bytes(count)),
            // What cannot be read now never can: PHP gives 0 where it only has to wait.
            Err(_) => Ok(Read::End),
            Ok(0) => Ok(match self.is_over() {
                true => Read::End,
                false => Read::Nothing,
            }),
        }
    }

    fn is_over(&self) -> bool {
        let Some(stream) = self.pointer() else {
            return true;
        };
        // SAFETY: runs PHP code inside `attempt`.
        attempt(|| unsafe { ffi::altair_stream_is_over(stream) }).unwrap_or(true)
    }
}
