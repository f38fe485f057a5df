//! What may stand in a file of what is allowed. The command line and the file have the same rules.

use std::path::{Component, Path};

use crate::request::{MAX_MEMORY_MB, MAX_TIMEOUT_MS};
use crate::services::Service;

/// The most that [`Allowed::max_timeout_ms`](super::Allowed::max_timeout_ms) can be, in milliseconds:
/// reports and migrations take minutes.
pub const MOST_TIMEOUT_MS: u64 = 600_000;
/// The most that [`Allowed::max_memory_mb`](super::Allowed::max_memory_mb) can be, in MiB.
pub const MOST_MEMORY_MB: u64 = 4_096;

/// Bytes of a variable's name; longer ones are mistakes.
const NAME_MAX: usize = 200;

pub(super) fn check_service(text: &str) -> Result<(), String> {
    text.parse::<Service>().map(drop).map_err(|why| {
        format!("\"{text}\" is no service: {why}. A service is host:port or the absolute path of a Unix socket")
    })
}

pub(super) fn check_env(name: &str) -> Result<(), String> {
    let is_of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = name.bytes().all(is_of_a_name)
        && (1..=NAME_MAX).contains(&name.len())
        && !name.starts_with(|first: char| first.is_ascii_digit());
    match is_name {
        true => Ok(()),
        false => Err(format!(
            "\"{name}\" is no name of an environment variable: letters, digits and underscores, no digit first"
        )),
    }
}

pub(super) fn check_read(path: &str) -> Result<(), String> {
    check_path(path).map_err(|why| format!("the path \"{path}\" {why}"))
}

pub(super) fn check_root(key: &str) -> Result<(), String> {
    check_path(key).map_err(|why| format!("the root \"{key}\" {why}"))
}

fn check_path(text: &str) -> Result<(), &'static str> {
    let path = Path::new(text);
    if !path.is_absolute() {
        return Err("is not absolute");
    }
    if text.contains('\0') {
        return Err("contains a NUL byte, which no path can");
    }
    // `Path` leaves out `//` and `/.`, which no real path contains.
    let is_plain = path.components().all(|part| part != Component::ParentDir)
        && !text.contains("//")
        && !text.split('/').any(|part| part == ".");
    match is_plain {
        true => Ok(()),
        false => Err("contains `.`, `..` or `//`: write it without them"),
    }
}

pub(super) fn check_timeout(ms: u64) -> Result<(), String> {
    within("max_timeout_ms", ms, MAX_TIMEOUT_MS, MOST_TIMEOUT_MS)
}

pub(super) fn check_memory(mb: u64) -> Result<(), String> {
    within("max_memory_mb", mb, MAX_MEMORY_MB, MOST_MEMORY_MB)
}

fn within(name: &str, number: u64, usual: i64, most: u64) -> Result<(), String> {
    let usual = usual.unsigned_abs();
    match (usual..=most).contains(&number) {
        true => Ok(()),
        false => Err(format!(
            "{name} is {number}: it is a bound from {usual} (what every request may ask for) to {most}"
        )),
    }
}
