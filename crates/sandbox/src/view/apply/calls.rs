//! System calls that neither the standard library nor `nix` offers everywhere.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::libc;

use crate::place::by_number;

/// Maximum size of an extended attribute's value and of the list of their names (xattr(7)).
const ATTRIBUTE_MAX_BYTES: usize = 64 * 1024;

/// How [`rename`] treats what is at the new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::view) enum Over {
    /// It must not exist.
    Nothing,
    /// The two change places.
    Exchange,
}

fn c_string(name: &OsStr) -> nix::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| Errno::EINVAL)
}

/// Renames without replacing anything (renameat2(2)).
///
/// # Errors
/// Those of the call. `EINVAL` if the file system cannot do this.
pub(in crate::view) fn rename(
    from: (BorrowedFd<'_>, &OsStr),
    to: (BorrowedFd<'_>, &OsStr),
    over: Over,
) -> nix::Result<()> {
    let (old, new) = (c_string(from.1)?, c_string(to.1)?);
    let flags = match over {
        Over::Nothing => libc::RENAME_NOREPLACE,
        Over::Exchange => libc::RENAME_EXCHANGE,
    };
    // SAFETY: two C strings. The C library has its wrapper only in some versions.
    let renamed = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            from.0.as_raw_fd(),
            old.as_ptr(),
            to.0.as_raw_fd(),
            new.as_ptr(),
            flags,
        )
    };
    match Errno::result(renamed) {
        Ok(_) => Ok(()),
        Err(Errno::ENOSYS) => Err(Errno::EINVAL),
        Err(errno) => Err(errno),
    }
}

/// The path by which the calls for extended attributes, which take no `O_PATH` descriptor, reach
/// a file.
fn path_of(file: BorrowedFd<'_>) -> nix::Result<CString> {
    CString::new(by_number(file)).map_err(|_| Errno::EINVAL)
}

/// Calls with a buffer until it is large enough.
fn filled(call: impl Fn(&mut [u8]) -> isize) -> nix::Result<Vec<u8>> {
    let mut buffer = vec![0; 256];
    loop {
        match Errno::result(call(&mut buffer)) {
            Ok(length) => {
                buffer.truncate(length.unsigned_abs());
                return Ok(buffer);
            }
            Err(Errno::ERANGE) if buffer.len() < ATTRIBUTE_MAX_BYTES => {
                buffer.resize(ATTRIBUTE_MAX_BYTES, 0);
            }
            Err(errno) => return Err(errno),
        }
    }
}

/// The names of a file's extended attributes.
pub(super) fn attribute_names(file: BorrowedFd<'_>) -> nix::Result<Vec<CString>> {
    let path = path_of(file)?;
    // SAFETY: a C string; pointer and length are of one buffer.
    let list = filled(|buffer| unsafe {
        libc::listxattr(path.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len())
    })?;
    let names = list
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| CString::new(name).ok()).collect())
}

/// The value of an extended attribute.
///
/// # Errors
/// `ENODATA` if there is none, `EOPNOTSUPP` if the file system has none of this kind.
pub(super) fn attribute(file: BorrowedFd<'_>, name: &CStr) -> nix::Result<Vec<u8>> {
    let path = path_of(file)?;
    // SAFETY: two C strings; pointer and length are of one buffer.
    filled(|buffer| unsafe {
        libc::getxattr(
            path.as_ptr(),
            name.as_ptr(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
        )
    })
}

/// Sets an extended attribute.
pub(super) fn set_attribute(file: BorrowedFd<'_>, name: &CStr, value: &[u8]) -> nix::Result<()> {
    let path = path_of(file)?;
    // SAFETY: two C strings; pointer and length are of one buffer.
    let set = unsafe {
        libc::setxattr(
            path.as_ptr(),
            name.as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
        )
    };
    Errno::result(set).map(drop)
}

/// Removes an extended attribute.
pub(super) fn remove_attribute(file: BorrowedFd<'_>, name: &CStr) -> nix::Result<()> {
    let path = path_of(file)?;
    // SAFETY: two C strings.
    Errno::result(unsafe { libc::removexattr(path.as_ptr(), name.as_ptr()) }).map(drop)
}

/// The `struct file_handle` of the kernel, with room for any of its handles.
#[repr(C)]
struct FileHandle {
    bytes: libc::c_uint,
    kind: libc::c_int,
    handle: [u8; libc::MAX_HANDLE_SZ as usize],
}

/// The kind and the bytes of the handle by which a file system knows a file (name_to_handle_at(2)).
///
/// # Errors
/// `EOPNOTSUPP` if it has no handles.
pub(super) fn handle(directory: BorrowedFd<'_>, name: &OsStr) -> nix::Result<(u8, Vec<u8>)> {
    let name = c_string(name)?;
    let mut handle = FileHandle {
        bytes: libc::MAX_HANDLE_SZ as libc::c_uint,
        kind: 0,
        handle: [0; libc::MAX_HANDLE_SZ as usize],
    };
    let mut mount: libc::c_int = 0;
    // SAFETY: a C string; `handle` has as many bytes as it says, and both outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            directory.as_raw_fd(),
            name.as_ptr(),
            &raw mut handle,
            &raw mut mount,
            0,
        )
    };
    Errno::result(done)?;
    let kind = u8::try_from(handle.kind).map_err(|_| Errno::EOPNOTSUPP)?;
    let bytes = handle.handle.get(..handle.bytes as usize);
    Ok((kind, bytes.ok_or(Errno::EIO)?.to_vec()))
}
