//! The layers of results: what a run wrote, until somebody applies or discards it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// What a run wrote into a layer. Dropping it discards that.
pub trait Layer {
    /// Writes it to where the run believed to write.
    ///
    /// # Errors
    ///
    /// Why nothing of it was written: a sentence for the user. The layer is as before.
    fn apply(&mut self) -> Result<(), String>;
}

/// Why a layer was not applied or discarded.
pub enum Refusal {
    /// There is none any more, or there never was one: wrong use of the class.
    Misuse(&'static str),
    /// It could not be applied.
    Failed(String),
}

enum State {
    Open(Box<dyn Layer>),
    Applied,
    Discarded,
}

/// A layer and the process that has it: a fork of that process must not remove its files.
struct Kept {
    state: RefCell<State>,
    process: u32,
}

impl Kept {
    fn is_own(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if !self.is_own() {
            std::mem::forget(self.state.replace(State::Discarded));
        }
    }
}

thread_local! {
    /// The layer of each result that had one, by the object's handle. Clones share theirs.
    static LAYERS: RefCell<HashMap<u32, Rc<Kept>>> = RefCell::default();
}

/// Gives a new result its layer.
pub fn attach(handle: u32, layer: Box<dyn Layer>) {
    let kept = Kept {
        state: RefCell::new(State::Open(layer)),
        process: std::process::id(),
    };
    LAYERS.with_borrow_mut(|layers| layers.insert(handle, Rc::new(kept)));
}

/// Discards the layer of a freed result, unless a clone of it has it, too.
pub extern "C" fn freed(handle: u32) {
    // Removed before it is dropped, since that takes a moment. At the end of the thread, all are.
    let layer = LAYERS.try_with(|layers| layers.borrow_mut().remove(&handle));
    drop(layer);
}

/// Shares the layer of a result with its clone.
pub extern "C" fn cloned(from: u32, to: u32) {
    if let Some(kept) = kept(from) {
        LAYERS.with_borrow_mut(|layers| layers.insert(to, kept));
    }
}

/// Whether a result has a layer that was neither applied nor discarded.
#[must_use]
pub fn is_open(handle: u32) -> bool {
    kept(handle).is_some_and(|kept| matches!(*kept.state.borrow(), State::Open(_)))
}

/// Applies the layer of a result.
///
/// # Errors
///
/// Why not. One that could not be applied may still be discarded, or applied later.
pub fn apply(handle: u32) -> Result<(), Refusal> {
    let kept = open(handle)?;
    let mut state = kept.state.borrow_mut();
    if let State::Open(layer) = &mut *state {
        layer.apply().map_err(Refusal::Failed)?;
        *state = State::Applied;
    }
    Ok(())
}

/// Discards the layer of a result.
///
/// # Errors
///
/// There is none.
pub fn discard(handle: u32) -> Result<(), Refusal> {
    let kept = open(handle)?;
    kept.state.replace(State::Discarded);
    Ok(())
}

fn kept(handle: u32) -> Option<Rc<Kept>> {
    let kept = LAYERS.try_with(|layers| layers.borrow().get(&handle).map(Rc::clone));
    kept.ok().flatten()
}

/// A layer that can still be applied or discarded, by this process.
fn open(handle: u32) -> Result<Rc<Kept>, Refusal> {
    let kept = kept(handle).ok_or(Refusal::Misuse("The result has no layer."))?;
    let reason = match *kept.state.borrow() {
        State::Applied => Some("The layer of the result was already applied."),
        State::Discarded => Some("The layer of the result was already discarded."),
        State::Open(_) if !kept.is_own() => {
            Some("The layer of the result belongs to the process that ran the command.")
        }
        State::Open(_) => None,
    };
    match reason {
        Some(reason) => Err(Refusal::Misuse(reason)),
        None => Ok(kept),
    }
}
