//! What was found out in this request: closures by their code, and files.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::sync::Arc;

use ext_php_rs::types::ZendObject;

use super::survey::Survey;
use super::{Found, Origin, Refused};
use crate::zend::ffi;

/// Closures that are kept.
const CLOSURES_MAX: usize = 4096;
/// Files that are kept, and their bytes together with what was found in them.
const FILES_MAX: usize = 64;
const FILES_BYTES: usize = 32 << 20;

/// Code, by where it is in memory. As long as it is pinned, nothing else is there; that of opcache stays.
type Key = (usize, u32, Vec<u8>, (u32, u32));

/// The code of a closure, kept where it is.
struct Pin(*mut c_void);

impl Drop for Pin {
    fn drop(&mut self) {
        // SAFETY: pinned once, and the request has not ended.
        unsafe { ffi::altair_closure_unpin(self.0) };
    }
}

#[derive(Default)]
struct Known {
    closures: HashMap<Key, (Result<Arc<Found>, Refused>, Pin)>,
    order: VecDeque<Key>,
    files: VecDeque<Survey>,
}

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// Forgets everything.
pub fn forget() {
    // Dropped outside of the borrow.
    let known = KNOWN.try_with(|known| std::mem::take(&mut *known.borrow_mut()));
    drop(known);
}

/// Finds a closure that is written in PHP.
pub fn find(closure: &ZendObject) -> Result<Arc<Found>, Refused> {
    let origin = Origin::of(closure);
    let key: Key = (
        origin.opcodes,
        origin.count,
        origin.file.clone(),
        origin.lines,
    );
    KNOWN.with(|known| {
        let known = &mut *known.borrow_mut();
        if let Some((found, _)) = known.closures.get(&key) {
            return found.clone();
        }
        let found = known.look(closure, &origin);
        if !matches!(found, Err(Refused::Source(_))) {
            known.keep(key, closure, found.clone());
        }
        found
    })
}

impl Known {
    fn look(&mut self, closure: &ZendObject, origin: &Origin) -> Result<Arc<Found>, Refused> {
        // SAFETY: only looks.
        if unsafe { ffi::altair_closure_is_encoded() } {
            return Err(origin.refuse("zend.multibyte may read its file in another encoding"));
        }
        let at = self.files.iter().position(|file| file.is_of(&origin.file));
        let file = at.and_then(|at| self.files.remove(at));
        let mut file = match file.filter(Survey::holds) {
            Some(file) => file,
            None => Survey::of(&origin.file).map_err(|why| origin.refuse(&why))?,
        };
        let found = file.find(closure, origin).map(Arc::new);
        self.files.push_back(file);
        while self.files.len() > FILES_MAX
            || self.files.len() > 1
                && self.files.iter().map(Survey::size).sum::<usize>() > FILES_BYTES
        {
            self.files.pop_front();
        }
        found
    }

    fn keep(&mut self, key: Key, closure: &ZendObject, found: Result<Arc<Found>, Refused>) {
        // SAFETY: a closure that is written in PHP.
        let pin = Pin(unsafe { ffi::altair_closure_pin(&raw const *closure) });
        if pin.0.is_null() {
            return;
        }
        if self.order.len() == CLOSURES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.closures.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.closures.insert(key, (found, pin));
    }
}
