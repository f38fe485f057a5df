//! The current position of the code. Also usable in a signal handler and during a fatal error.

use std::fmt::{self, Write};

use altair_engine::Location;
use altair_engine::channel::LocationRef;
use altair_engine::encode::{
    Frame, MAX_TRACE_FRAMES, STRING_MAX, TRUNCATED, format_frames, shorten,
};

use super::exception::readable;
use super::ffi::{RawFrame, RawPlace, altair_frames};
use super::process::Interrupted;
use super::{bytes, text};

const NO_FRAME: RawFrame = RawFrame {
    class_name: std::ptr::null(),
    function_name: std::ptr::null(),
    is_static: false,
    file: std::ptr::null(),
    line: 0,
};

/// One more than the number of frames shown, to know whether there are more.
const FRAMES: usize = MAX_TRACE_FRAMES + 1;

struct Walk {
    place: RawPlace,
    frames: [RawFrame; FRAMES],
    count: usize,
}

impl Walk {
    /// Returns whether any code is running: PHP code, or a built-in function without a caller.
    fn is_somewhere(&self) -> bool {
        self.count > 0 || !self.place.file.is_null()
    }
}

fn walk(interrupted: Interrupted) -> Walk {
    let mut walk = Walk {
        place: RawPlace {
            file: std::ptr::null(),
            line: 0,
        },
        frames: [NO_FRAME; FRAMES],
        count: 0,
    };
    let (place, frames) = (&raw mut walk.place, walk.frames.as_mut_ptr());
    // SAFETY: there is room for as many frames as are asked for; the walk only reads, and follows
    // what was in the register only where that is an instruction of the innermost frame.
    walk.count = unsafe { altair_frames(place, frames, FRAMES, interrupted.in_register()) };
    walk
}

/// The file name of the snippet's code (`ALTAIR_SNIPPET`).
const SNIPPET: &[u8] = b"snippet";

/// The current position; `None` if no PHP code is running.
#[must_use]
pub fn current() -> Option<Location> {
    let walk = walk(Interrupted::NOT);
    // SAFETY: the strings of frames that are still on the engine's stack.
    unsafe {
        let frames: Vec<Frame> = walk.frames[..walk.count]
            .iter()
            .map(|raw| frame(raw))
            .collect();
        walk.is_somewhere().then(|| Location {
            file: shorten(&text(walk.place.file), STRING_MAX),
            line: walk.place.line,
            stack_trace: format_frames(&frames),
        })
    }
}

/// The innermost line of the application itself: in the project at `root`, except its `vendor/`, or
/// in the snippet. Otherwise the innermost line; `None` if no PHP code is running.
#[must_use]
pub fn line_of_application(root: &[u8]) -> Option<String> {
    let walk = walk(Interrupted::NOT);
    let places = walk.frames[..walk.count].iter();
    let places = places
        .filter(|raw| !raw.file.is_null())
        .map(|raw| (raw.file, raw.line));
    let mut innermost = None;
    for (file, line) in places {
        // SAFETY: the strings of frames that are still on the engine's stack.
        let file = unsafe { bytes(file) };
        let inside = file
            .strip_prefix(root)
            .and_then(|path| path.strip_prefix(b"/"));
        let own = match inside {
            Some(path) => Some(path).filter(|path| !path.starts_with(b"vendor/")),
            None => Some(file).filter(|file| *file == SNIPPET),
        };
        let shown = |path: &[u8]| format!("{}:{line}", String::from_utf8_lossy(path));
        if let Some(own) = own {
            return Some(shown(own));
        }
        innermost = innermost.or_else(|| Some(shown(inside.unwrap_or(file))));
    }
    innermost
}

/// The reported location of an error, with the current frames.
#[must_use]
pub fn current_at(file: String, line: u32) -> Location {
    let stack_trace = current()
        .map(|location| location.stack_trace)
        .unwrap_or_default();
    Location {
        file: shorten(&file, STRING_MAX),
        line,
        stack_trace,
    }
}

/// # Safety
///
/// The strings of `raw` are alive.
unsafe fn frame(raw: &RawFrame) -> Frame {
    // SAFETY: the caller's promise.
    unsafe {
        let mut function = String::new();
        if !raw.class_name.is_null() {
            function = readable(text(raw.class_name)) + if raw.is_static { "::" } else { "->" };
        }
        function += if raw.function_name.is_null() {
            "include"
        } else {
            ""
        };
        function += &text(raw.function_name);
        let place = (!raw.file.is_null()).then(|| (text(raw.file), raw.line));
        Frame { function, place }
    }
}

/// Bytes for the texts of one position. Frames that do not fit are left out.
const ARENA_BYTES: usize = 16 * 1024;

/// A buffer for one position, allocated in advance, since a signal handler cannot allocate.
pub struct Arena {
    bytes: [u8; ARENA_BYTES],
    used: usize,
}

impl Arena {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Box<Self> {
        Box::new(Self {
            bytes: [0; ARENA_BYTES],
            used: 0,
        })
    }

    /// Writes the place that a signal has interrupted into the room and hands it on. Allocates nothing.
    pub fn with_interrupted<R>(
        &mut self,
        interrupted: Interrupted,
        then: impl FnOnce(Option<LocationRef<'_>>) -> R,
    ) -> R {
        let walk = walk(interrupted);
        if !walk.is_somewhere() {
            return then(None);
        }
        // SAFETY: the strings of frames that are on the engine's stack; the code they belong to
        // is interrupted, not gone.
        let spans = unsafe {
            let file = self.keep(|arena| arena.lossy(bytes(walk.place.file)));
            let mut spans = [(0, 0); FRAMES];
            let mut count = 0;
            for raw in &walk.frames[..walk.count] {
                spans[count] = match count == MAX_TRACE_FRAMES {
                    true => self.keep(|arena| arena.write_str(TRUNCATED)),
                    false => self.keep(|arena| arena.frame(raw)),
                };
                count += 1;
            }
            (file, spans, count)
        };
        let (file, spans, count) = spans;
        let get =
            |(from, to): (usize, usize)| std::str::from_utf8(&self.bytes[from..to]).unwrap_or("");
        let mut trace = [""; FRAMES];
        for (line, span) in trace.iter_mut().zip(&spans[..count]) {
            *line = get(*span);
        }
        then(Some(LocationRef {
            file: get(file),
            line: walk.place.line,
            stack_trace: &trace[..count],
        }))
    }

    fn keep(&mut self, write: impl FnOnce(&mut Self) -> fmt::Result) -> (usize, usize) {
        let from = self.used;
        if write(self).is_err() {
            self.used = from;
        }
        (from, self.used)
    }

    fn lossy(&mut self, bytes: &[u8]) -> fmt::Result {
        for chunk in bytes.utf8_chunks() {
            self.write_str(chunk.valid())?;
            if !chunk.invalid().is_empty() {
                self.write_char(char::REPLACEMENT_CHARACTER)?;
            }
        }
        Ok(())
    }

    /// # Safety
    ///
    /// The strings of `raw` are alive.
    unsafe fn frame(&mut self, raw: &RawFrame) -> fmt::Result {
        // SAFETY: the caller's promise.
        unsafe {
            if !raw.class_name.is_null() {
                // Up to the NUL in the name of an anonymous class.
                let name = bytes(raw.class_name).split(|byte| *byte == 0).next();
                self.lossy(name.unwrap_or_default())?;
                self.write_str(if raw.is_static { "::" } else { "->" })?;
            }
            if raw.function_name.is_null() {
                self.write_str("include")?;
            }
            self.lossy(bytes(raw.function_name))?;
            if raw.file.is_null() {
                return self.write_str(" (<internal>)");
            }
            self.write_str(" (")?;
            self.lossy(bytes(raw.file))?;
        }
        write!(self, ":{})", raw.line)
    }
}

impl Write for Arena {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self
            .bytes
            .get_mut(self.used..self.used + text.len())
            .ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.used += text.len();
        Ok(())
    }
}
