//! What the engine refuses in a confined run, and who is told.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

use super::ffi;

/// Refuses a function, or a method as `Class::name`, if it exists. `lift` is the flag that allows
/// it.
pub fn refuse(name: &str, snippet_only: bool, lift: &str) {
    // The C side keeps the text for the life of the process.
    let kept = CString::new(lift).unwrap_or_default().into_raw();
    // SAFETY: the name is looked up now, the text stays.
    unsafe { ffi::altair_refuse(name.as_ptr().cast(), name.len(), snippet_only, kept) };
}

/// Refuses these functions also in existing closures, and string-compiled code in the snippet. From
/// now on, notes files outside of the project `root`. Called once, after all calls of [`refuse`].
pub fn seal(root: &[u8]) {
    // SAFETY: no code is running; the path is copied.
    unsafe { ffi::altair_refuse_everywhere(root.as_ptr().cast(), root.len()) };
}

/// From now on, keeps the names of variables of the environment that PHP looks for and that are not there.
pub fn note_sought() {
    // SAFETY: replaces the handler of a function; no code is running.
    unsafe { ffi::altair_note_sought() };
}

/// Those that were not given yet.
pub fn take_sought() -> Vec<Vec<u8>> {
    // SAFETY: gives a text of the C side, which stays until the names are forgotten, or null.
    let next = || unsafe {
        let name = ffi::altair_next_sought();
        (!name.is_null()).then(|| CStr::from_ptr(name).to_bytes().to_vec())
    };
    std::iter::from_fn(next).collect()
}

/// The receiver of refusals.
#[derive(Clone, Copy)]
pub struct Hearer {
    /// Receives a refusal: its description, and the flag that allows it.
    pub refused: fn(what: String, lift: String),
    /// Receives an unavailable file, outside of the project or, for writing, in it: its absolute
    /// path, whether it was to be written, made or removed, and `errno`, 0 if PHP itself refused
    /// it.
    pub missed: fn(path: &[u8], write: bool, errno: i32),
}

static HEARER: OnceLock<Hearer> = OnceLock::new();

/// Calls `hearer` on the first attempt of each refused thing. It must not run PHP code.
pub fn tell(hearer: Hearer) {
    let _ = HEARER.set(hearer);
    // SAFETY: registers two functions.
    unsafe { ffi::altair_on_refusal(on_refused, on_missed) };
}

/// What the caller has in place of a flag, if anything.
pub type Way = fn(flag: &str) -> Option<String>;

static WAY: OnceLock<Way> = OnceLock::new();

/// Errors name what `way` gives in place of flags, from now on.
pub fn name_ways(way: Way) {
    let _ = WAY.set(way);
    // SAFETY: registers a function.
    unsafe { ffi::altair_name_ways(on_way) };
}

extern "C" fn on_way(flag: *const c_char, room: *mut c_char, size: usize) -> bool {
    // SAFETY: a text of the C side, valid for the time of the call.
    let flag = unsafe { CStr::from_ptr(flag) }.to_string_lossy();
    let Some(way) = WAY.get().and_then(|way| way(&flag)) else {
        return false;
    };
    let Some(most) = size.checked_sub(1) else {
        return false;
    };
    let way = &way.as_bytes()[..way.len().min(most)];
    // SAFETY: the C side has room for `size` bytes, which is one more than `way` has at most.
    unsafe {
        std::ptr::copy_nonoverlapping(way.as_ptr().cast(), room, way.len());
        *room.add(way.len()) = 0;
    }
    true
}

extern "C" fn on_refused(what: *const c_char, lift: *const c_char) {
    // SAFETY: texts of the C side, valid for the time of the call.
    let (what, lift) = unsafe { (CStr::from_ptr(what), CStr::from_ptr(lift)) };
    let text = |text: &CStr| text.to_string_lossy().into_owned();
    if let Some(hearer) = HEARER.get() {
        (hearer.refused)(text(what), text(lift));
    }
}

extern "C" fn on_missed(path: *const c_char, write: bool, error: c_int) {
    if let Some(hearer) = HEARER.get() {
        // SAFETY: a text of the C side, valid for the time of the call.
        (hearer.missed)(unsafe { CStr::from_ptr(path) }.to_bytes(), write, error);
    }
}
