//! What the engine refuses in a confined run, and who hears of it.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

use super::ffi;

/// Refuses a function, or a method as `Class::name`, if there is one of that name. `lift` is the
/// flag that allows it.
pub fn refuse(name: &str, snippet_only: bool, lift: &str) {
    // The engine's side keeps the text for as long as the process lives.
    let kept = CString::new(lift).unwrap_or_default().into_raw();
    // SAFETY: the name is looked up now, the text stays.
    unsafe { ffi::altair_refuse(name.as_ptr().cast(), name.len(), snippet_only, kept) };
}

/// Refuses them in closures that exist already, too, and string-compiled code in the snippet; from
/// now on files outside of the project `root` are noted. Called once, when all have been added.
pub fn seal(root: &[u8]) {
    // SAFETY: no code is running; the path is copied.
    unsafe { ffi::altair_refuse_everywhere(root.as_ptr().cast(), root.len()) };
}

/// Who hears of what is refused.
#[derive(Clone, Copy)]
pub struct Hearer {
    /// Of something that was refused, in words, and the flag that allows it.
    pub refused: fn(what: String, lift: String),
    /// Of a file that could not be had, outside of the project or, for writing, in it: its absolute
    /// path, whether it was to be written, made or removed, and `errno`, 0 where PHP itself
    /// refused it.
    pub missed: fn(path: &[u8], write: bool, errno: i32),
}

static HEARER: OnceLock<Hearer> = OnceLock::new();

/// Has `hearer` told, once for each thing, when it is tried for the first time. It must not run PHP
/// code.
pub fn tell(hearer: Hearer) {
    let _ = HEARER.set(hearer);
    // SAFETY: registers two functions.
    unsafe { ffi::altair_on_refusal(on_refused, on_missed) };
}

extern "C" fn on_refused(what: *const c_char, lift: *const c_char) {
    // SAFETY: texts of the engine side's, for the time of the call.
    let (what, lift) = unsafe { (CStr::from_ptr(what), CStr::from_ptr(lift)) };
    let text = |text: &CStr| text.to_string_lossy().into_owned();
    if let Some(hearer) = HEARER.get() {
        (hearer.refused)(text(what), text(lift));
    }
}

extern "C" fn on_missed(path: *const c_char, write: bool, error: c_int) {
    if let Some(hearer) = HEARER.get() {
        // SAFETY: a text of the engine side's, for the time of the call.
        (hearer.missed)(unsafe { CStr::from_ptr(path) }.to_bytes(), write, error);
    }
}
