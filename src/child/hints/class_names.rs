//! Classes with a name like that of one that does not exist: those that are there, those of Composer's loaded
//! class maps, and those that have a file in the directory of the namespace.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use altair_engine::hints::{NAME_MAX_BYTES, Nearest};

use super::last_part;
use crate::zend::tables::{self, Class, Value};

/// Entries of a class map, or a table of prefixes, to look at.
const MAP_MAX: usize = 50_000;
/// Loaders, and directories of one namespace, to look at.
const PLACES_MAX: usize = 4;
/// Entries of a directory to look at.
const ENTRIES_MAX: usize = 5_000;

/// How much further away a class of another namespace is.
const ELSEWHERE: usize = 1;

const LOADER: &str = "Composer\\Autoload\\ClassLoader";

/// The names like `wanted`.
pub fn near(wanted: &str) -> Nearest {
    let wanted = wanted.as_bytes();
    let wanted = wanted.strip_prefix(b"\\").unwrap_or(wanted);
    let mut nearest = Nearest::to(last_part(wanted));
    if wanted.len() > NAME_MAX_BYTES {
        return nearest;
    }
    let short = last_part(wanted);
    let namespace = &wanted[..wanted.len() - short.len()];
    let mut offer = |name: &[u8]| {
        let part = last_part(name);
        let is_near = name[..name.len() - part.len()].eq_ignore_ascii_case(namespace);
        // Of another namespace, only one of the very same name is meant.
        if is_near || part.eq_ignore_ascii_case(short) {
            nearest.offer_as(part, name, if is_near { 0 } else { ELSEWHERE });
        }
    };
    tables::classes(&mut offer);
    if let Some(loaders) = Class::static_property(LOADER, "registeredLoaders") {
        loaders.items(PLACES_MAX, |_, loader| {
            if let Some(map) = loader.property(LOADER, "classMap") {
                map.items(MAP_MAX, |name, _| offer(name.unwrap_or_default()));
            }
            if !namespace.is_empty() {
                of_directories(loader, namespace, &mut offer);
            }
        });
    }
    nearest
}

/// The classes that have a file in the directory of their namespace, by PSR-4.
fn of_directories(loader: Value, namespace: &[u8], offer: &mut dyn FnMut(&[u8])) {
    let Some(prefixes) = loader.property(LOADER, "prefixDirsPsr4") else {
        return;
    };
    let mut left = PLACES_MAX;
    prefixes.items(MAP_MAX, |prefix, directories| {
        let rest = prefix.and_then(|prefix| namespace.strip_prefix(prefix));
        let Some(rest) = rest else {
            return;
        };
        let below: Vec<u8> = rest
            .iter()
            .map(|byte| if *byte == b'\\' { b'/' } else { *byte })
            .collect();
        directories.items(left, |_, directory| {
            left = left.saturating_sub(1);
            let path = [directory.bytes(), b"/", &below].concat();
            of_directory(path, namespace, offer);
        });
    });
}

fn of_directory(path: Vec<u8>, namespace: &[u8], offer: &mut dyn FnMut(&[u8])) {
    let Ok(path) = CString::new(path) else {
        return;
    };
    if !tables::may_read(&path) {
        return;
    }
    let path = Path::new(OsStr::from_bytes(path.as_bytes()));
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    for entry in entries.take(ENTRIES_MAX) {
        let file = entry.file_name();
        if let Some(class) = file.as_bytes().strip_suffix(b".php") {
            offer(&[namespace, class].concat());
        }
    }
}
