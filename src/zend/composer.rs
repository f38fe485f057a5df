//! What Composer's autoloaders know, read from their properties: nothing of it runs.

use std::ffi::{OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use ext_php_rs::ffi::{zend_array, zend_object, zval};
use ext_php_rs::types::Zval;

use super::ffi;
use super::object::string_bytes;

/// What the autoloaders of this process know.
#[derive(Debug, Default)]
pub struct Autoloaders {
    /// Classes of class maps, of those that were wanted, and their files.
    pub classes: Vec<(String, PathBuf)>,
    /// Prefixes of PSR-4, each with the backslash at its end, and their directories.
    pub psr4: Vec<(String, PathBuf)>,
    /// Prefixes of PSR-0, and the directories above that of the namespace.
    pub psr0: Vec<(String, PathBuf)>,
}

impl Autoloaders {
    /// Reads them. `wanted` says which classes of the class maps are.
    pub fn read(wanted: &dyn Fn(&[u8]) -> bool) -> Self {
        struct Context<'a> {
            found: Autoloaders,
            wanted: &'a dyn Fn(&[u8]) -> bool,
        }
        extern "C" fn each(context: *mut c_void, loader: *mut zend_object) {
            // SAFETY: the context below, and an object of the engine's for the time of the call.
            let context = unsafe { &mut *context.cast::<Context<'_>>() };
            context.found.add(loader, context.wanted);
        }
        let mut context = Context {
            found: Self::default(),
            wanted,
        };
        // SAFETY: calls back before it returns.
        unsafe {
            ffi::altair_each_object(
                c"Composer\\Autoload\\ClassLoader".as_ptr(),
                each,
                (&raw mut context).cast(),
            );
        }
        context.found
    }

    fn add(&mut self, loader: *mut zend_object, wanted: &dyn Fn(&[u8]) -> bool) {
        property(loader, "classMap", &mut |class, file| {
            if wanted(class)
                && let (Some(class), Some(file)) = (text(class), path(file))
            {
                self.classes.push((class, file));
            }
        });
        property(loader, "prefixDirsPsr4", &mut |prefix, dirs| {
            directories(prefix, dirs, &mut self.psr4);
        });
        property(loader, "fallbackDirsPsr4", &mut |_, dir| {
            self.psr4.extend(path(dir).map(|dir| (String::new(), dir)));
        });
        property(loader, "prefixesPsr0", &mut |_, prefixes| {
            entries(prefixes, &mut |prefix, dirs| {
                directories(prefix, dirs, &mut self.psr0);
            });
        });
        property(loader, "fallbackDirsPsr0", &mut |_, dir| {
            self.psr0.extend(path(dir).map(|dir| (String::new(), dir)));
        });
    }
}

/// What is done with a key (empty for an integer) and a value.
type Each<'a> = dyn FnMut(&[u8], &Zval) + 'a;

/// The entries of a property that is an array.
fn property(object: *mut zend_object, name: &str, each: &mut Each<'_>) {
    // SAFETY: the object is alive; the result, if any, is one of its slots.
    let slot = unsafe { ffi::altair_property(object, name.as_ptr().cast(), name.len()).as_ref() };
    if let Some(slot) = slot {
        entries(slot, each);
    }
}

/// The entries of an array; none of another value.
fn entries(value: &Zval, mut each: &mut Each<'_>) {
    extern "C" fn seen(
        context: *mut c_void,
        key: *const c_char,
        len: usize,
        _: i64,
        value: *mut zval,
    ) {
        // SAFETY: the context below; an entry of the array, for the time of the call.
        let (each, key, value) = unsafe {
            let key: &[u8] = match key.is_null() {
                true => &[],
                false => std::slice::from_raw_parts(key.cast(), len),
            };
            (&mut *context.cast::<&mut Each<'_>>(), key, &*value)
        };
        each(key, value.dereference());
    }
    if let Some(array) = value.dereference().array() {
        let array: *const zend_array = array;
        // SAFETY: the array is alive and calls back before it returns.
        unsafe {
            ffi::altair_entries(
                array.cast_mut(),
                usize::MAX,
                seen,
                (&raw mut each).cast::<c_void>(),
            );
        }
    }
}

fn directories(prefix: &[u8], dirs: &Zval, into: &mut Vec<(String, PathBuf)>) {
    let Some(prefix) = text(prefix) else { return };
    entries(dirs, &mut |_, dir| {
        into.extend(path(dir).map(|dir| (prefix.clone(), dir)));
    });
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

fn path(value: &Zval) -> Option<PathBuf> {
    let bytes = string_bytes(value);
    (!bytes.is_empty()).then(|| OsStr::from_bytes(bytes).into())
}
