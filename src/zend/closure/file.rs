//! The bytes of the file that a closure names, read so that nobody notices and nothing waits.

use std::ffi::{OsStr, c_int};
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

use crate::zend::{attempt, ffi};

/// The largest file that is read.
const SIZE_MAX: u64 = 64 << 20;

/// What of a file changes with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stamp {
    /// Device, inode, size, and both times to the nanosecond.
    File([i64; 7]),
    /// A file in an archive has only its bytes.
    None,
}

/// Looks what a file is now, without its content.
pub fn stamp(file: &[u8]) -> Stamp {
    if is_phar(file) {
        return Stamp::None;
    }
    std::fs::metadata(path(file)).map_or(Stamp::None, |meta| stamp_of(&meta))
}

/// Reads a file.
///
/// # Errors
///
/// Why it cannot be, as the end of a sentence.
pub fn read(file: &[u8]) -> Result<(Vec<u8>, Stamp), String> {
    if let Some(why) = is_no_file(file) {
        return Err(why);
    }
    if is_phar(file) {
        return read_phar(file).map(|bytes| (bytes, Stamp::None));
    }
    let name = super::c_text(file);
    // SAFETY: a text with a NUL, for the time of the call.
    if attempt(|| unsafe { ffi::altair_may_read(name.as_ptr().cast()) }) != Ok(true) {
        return Err("open_basedir does not let its file be read".into());
    }
    read_file(path(file))
}

fn read_file(path: &Path) -> Result<(Vec<u8>, Stamp), String> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_CLOEXEC | OFlag::O_NOCTTY;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path);
    let cannot = |error: &io::Error| format!("its file cannot be read: {error}");
    let file = opened.map_err(|error| cannot(&error))?;
    let meta = file.metadata().map_err(|error| cannot(&error))?;
    if !meta.is_file() {
        return Err("its file is no regular file any more".into());
    }
    let mut bytes = Vec::new();
    // One byte more tells of a file that grows.
    let read = (&file).take(SIZE_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| cannot(&error))?;
    if bytes.len() as u64 > SIZE_MAX {
        return Err(too_large());
    }
    let after = file.metadata().map_err(|error| cannot(&error))?;
    match stamp_of(&after) {
        stamp if stamp == stamp_of(&meta) => Ok((bytes, stamp)),
        _ => Err("its file is being written".into()),
    }
}

fn read_phar(file: &[u8]) -> Result<Vec<u8>, String> {
    let name = super::c_text(file);
    let mut bytes: Vec<u8> = Vec::new();
    let context = (&raw mut bytes).cast();
    // SAFETY: a text with a NUL, and a vector that outlives the call.
    let error = attempt(|| unsafe {
        let size = usize::try_from(SIZE_MAX).unwrap_or(usize::MAX);
        ffi::altair_closure_read_phar(name.as_ptr().cast(), size, super::append, context)
    });
    match error {
        Ok(0) => Ok(bytes),
        Ok(libc_error) if libc_error == nix::errno::Errno::EFBIG as c_int => Err(too_large()),
        _ => Err("its archive cannot be read any more".into()),
    }
}

fn too_large() -> String {
    format!("its file is larger than {} MiB", SIZE_MAX >> 20)
}

/// Why a name of code is not that of a file.
fn is_no_file(file: &[u8]) -> Option<String> {
    let name = String::from_utf8_lossy(file);
    if name.ends_with(" : eval()'d code")
        || name.ends_with(" : runtime-created function")
        || name.ends_with(" : assert code")
    {
        return Some("it is of evaluated code, which is in no file".into());
    }
    match name.as_ref() {
        "Standard input code" | "-" => {
            return Some("its code was read from standard input, and is in no file".into());
        }
        "Command line code"
        | "Command line run code"
        | "Command line begin code"
        | "Command line end code" => {
            return Some("its code is of the command line, and is in no file".into());
        }
        "php shell code" => return Some("its code was typed, and is in no file".into()),
        _ => {}
    }
    let scheme = name.split_once("://").map(|(scheme, _)| scheme);
    let is_scheme = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    match scheme.filter(|scheme| is_scheme(scheme)) {
        Some("phar") => None,
        Some(scheme) => Some(format!(
            "its code is from {scheme}://, which cannot be read again"
        )),
        None if name.starts_with("data:") => {
            Some("its code is from a data: stream, and is in no file".into())
        }
        None if file.first() != Some(&b'/') || file.contains(&0) => {
            Some("its code is in no file that can be named".into())
        }
        None => None,
    }
}

fn is_phar(file: &[u8]) -> bool {
    file.starts_with(b"phar://")
}

fn path(file: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(file))
}

fn stamp_of(meta: &std::fs::Metadata) -> Stamp {
    Stamp::File([
        meta.dev().cast_signed(),
        meta.ino().cast_signed(),
        meta.size().cast_signed(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ctime(),
        meta.ctime_nsec(),
    ])
}
