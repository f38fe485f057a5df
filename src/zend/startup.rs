//! The files that this PHP has read at its start.

use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::ffi;

/// The paths that a child with the same PHP must read: ini files and the directories searched for
/// them, shared objects, and the configured directories of the include path and of extensions.
#[must_use]
pub fn paths() -> Vec<PathBuf> {
    let mut paths = configured_paths();
    paths.extend(shared_objects());
    paths
}

/// The ini files that were read, and the directories searched for them.
#[must_use]
pub fn ini_paths() -> Vec<PathBuf> {
    // SAFETY: the engine's own, set at its start, and constants of its build.
    let lists = unsafe {
        [
            text(ffi::php_ini_opened_path),
            text(ffi::php_ini_scanned_path),
            text(ffi::php_ini_scanned_files),
            text(ffi::altair_ini_directory()),
        ]
    };
    absolute_paths(&lists)
}

/// The directory that this PHP was built to have its programs in (`PHP_BINDIR`).
#[must_use]
pub fn own_programs() -> Option<PathBuf> {
    // SAFETY: a constant of the engine's build.
    let directory = unsafe { text(ffi::altair_programs_directory()) };
    (!directory.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(directory)))
}

/// What this process was told about ini settings when it was started.
pub struct IniOptions {
    /// Whether it is a command line, whose options another one understands.
    pub is_command_line: bool,
    /// `-c`.
    pub path: Option<PathBuf>,
    /// `-n`.
    pub ignores_files: bool,
    /// The switches `-d`, as the text of an ini file; with the settings that the SAPI itself makes.
    pub switches: Vec<u8>,
    /// The main ini file that was read.
    pub opened: Option<PathBuf>,
    /// The directories that were searched for others, separated by colons.
    pub scanned: Option<Vec<u8>>,
}

/// Reads them from the SAPI.
#[must_use]
pub fn ini_options() -> IniOptions {
    let mut raw = ffi::RawIniOptions {
        path: std::ptr::null(),
        entries: std::ptr::null(),
        ignores_files: false,
    };
    // SAFETY: the SAPI's own texts, set at its start; null or strings.
    let (path, switches, opened, scanned) = unsafe {
        ffi::altair_ini_options(&raw mut raw);
        (
            text(raw.path),
            text(raw.entries),
            text(ffi::php_ini_opened_path),
            text(ffi::php_ini_scanned_path),
        )
    };
    let some = |text: &'static [u8]| (!text.is_empty()).then_some(text);
    IniOptions {
        is_command_line: super::host::is_command_line(),
        path: some(path).map(|path| PathBuf::from(OsStr::from_bytes(path))),
        ignores_files: raw.ignores_files,
        switches: switches.to_vec(),
        opened: some(opened).map(|path| PathBuf::from(OsStr::from_bytes(path))),
        scanned: some(scanned).map(<[u8]>::to_vec),
    }
}

fn configured_paths() -> Vec<PathBuf> {
    // SAFETY: the engine's own, set at its start.
    let (opened, directories, files) = unsafe {
        (
            text(ffi::php_ini_opened_path),
            text(ffi::php_ini_scanned_path),
            text(ffi::php_ini_scanned_files),
        )
    };
    absolute_paths(&[
        opened,
        directories,
        files,
        configured(c"extension_dir"),
        configured(c"include_path"),
    ])
}

fn absolute_paths(lists: &[&[u8]]) -> Vec<PathBuf> {
    lists
        .iter()
        // Lists of directories are separated by colons, the list of files by commas and line ends.
        .flat_map(|list| list.split(|byte| matches!(byte, b':' | b',' | b'\n')))
        .filter(|path| path.starts_with(b"/"))
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect()
}

/// Extensions and their libraries: an ini file may name one anywhere.
fn shared_objects() -> Vec<PathBuf> {
    let maps = std::fs::read("/proc/self/maps").unwrap_or_default();
    let mut paths: Vec<PathBuf> = maps
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            line.iter()
                .position(|byte| *byte == b'/')
                .map(|at| &line[at..])
        })
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .filter(|path| {
            let name = path.file_name().map(OsStr::as_bytes).unwrap_or_default();
            name.ends_with(b".so") || name.windows(4).any(|part| part == b".so.")
        })
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// A number of an ini file with its suffix, as PHP reads it.
#[must_use]
pub fn ini_quantity(text: &[u8]) -> i64 {
    // SAFETY: the text is copied.
    unsafe { ffi::altair_ini_quantity(text.as_ptr().cast(), text.len()) }
}

/// An ini setting as it was before the application changed it.
fn configured(name: &CStr) -> &'static [u8] {
    // SAFETY: the name is a string; the result is used before any setting changes.
    unsafe { text(ffi::zend_ini_string(name.as_ptr(), name.count_bytes(), 1)) }
}

/// # Safety
///
/// `text` is null or a string that outlives the use of the result.
unsafe fn text(text: *const c_char) -> &'static [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}
