//! Closures that run in another PHP: the rules for them, their source, and closures made of a source.
//!
//! What travels is a whole file and a closure's place in it. So one has to be sure that the file still
//! is what the closure was made from: it is compiled again, apart from everything that runs, and its
//! closures are compared with the given one.

mod file;
mod known;
mod survey;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use ext_php_rs::types::{ZendObject, Zval};

use super::{attempt, bytes, ffi};

/// Where a closure is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The file, as PHP names it.
    pub file: Vec<u8>,
    /// All of its bytes.
    pub source: Arc<[u8]>,
    /// Whether `<?` begins code there.
    pub short_tags: bool,
    /// Which of the file's closures and arrow functions it is, from 0, as they begin.
    pub number: u32,
    /// Its first and its last line.
    pub lines: (u32, u32),
}

/// Why a closure cannot be an entry point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// An instruction that no entry point has.
    Rule(String),
    /// It cannot be sent.
    Source(String),
}

/// Prepares the module. Called once, at its start.
pub fn startup() {
    // SAFETY: only makes a lock.
    unsafe { ffi::altair_closure_startup() };
}

/// Forgets all closures. Called at the end of a request, whose memory they are in.
pub fn forget() {
    known::forget();
}

/// Returns what the return type and the arguments of a closure say against it.
///
/// # Errors
///
/// The message of the `Error` for the first of them.
pub fn check_types(closure: &ZendObject) -> Result<(), String> {
    let mut argument = 0;
    // SAFETY: a closure; only looks at its signature.
    let rule = unsafe { ffi::altair_closure_types(&raw const *closure, &raw mut argument) };
    Err(match rule {
        0 => return Ok(()),
        1 => format!("illegal type (object) accepted by sandbox at argument {argument}"),
        2 => format!("illegal variable (reference) accepted by to sandbox at argument {argument}"),
        3 => "illegal type (object) returned by sandbox".into(),
        _ => "illegal variable (reference) returned by sandbox".into(),
    })
}

/// An instruction that no entry point has, and its line within the closure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Illegal {
    Lexical,
    Class(u32),
    NewClass(u32),
    Function(u32),
    Yield(u32),
    Callable,
}

impl Illegal {
    /// From `altair_closure_rule`.
    fn from_raw(rule: c_int, line: u32) -> Option<Self> {
        match rule {
            0 => None,
            1 => Some(Self::Lexical),
            2 => Some(Self::Class(line)),
            3 => Some(Self::NewClass(line)),
            4 => Some(Self::Function(line)),
            5 => Some(Self::Yield(line)),
            _ => Some(Self::Callable),
        }
    }

    fn refuse(self) -> Refused {
        let (what, line) = match self {
            Self::Lexical => ("lexical", None),
            Self::Callable => ("callable", None),
            Self::Class(line) => ("class", Some(line)),
            Self::NewClass(line) => ("new class", Some(line)),
            Self::Function(line) => ("function", Some(line)),
            Self::Yield(line) => ("yield", Some(line)),
        };
        let place = line.map_or_else(
            || "in entry point".to_owned(),
            |line| format!("on line {line} of entry point"),
        );
        Refused::Rule(format!("illegal instruction ({what}) {place}"))
    }
}

/// Checks the instructions of a closure and finds its source.
///
/// The answer is kept until the request ends: for a closure that was found before, nothing is read and
/// nothing compiled, and a change of its file means nothing.
///
/// # Errors
///
/// [`Refused`], the rules first.
pub fn find(closure: &ZendObject) -> Result<Arc<Found>, Refused> {
    // What this very closure has captured is not a matter of its code.
    let mut line = 0;
    // SAFETY: a closure; only looks at its code.
    let rule = unsafe { ffi::altair_closure_instructions(&raw const *closure, &raw mut line) };
    let illegal = Illegal::from_raw(rule, line);
    match illegal {
        // A function has no source; and what a closure captures, it captures first, which the walk of its
        // source cannot see.
        Some(illegal @ (Illegal::Callable | Illegal::Lexical)) => Err(illegal.refuse()),
        // An optimiser may have removed one before it, and a `yield` that is never reached has no line here.
        Some(illegal) => match known::find(closure) {
            Err(refused @ Refused::Rule(_)) => Err(refused),
            _ => Err(illegal.refuse()),
        },
        None => known::find(closure),
    }
}

/// A compiled file, for the life of the process.
pub struct Unit(*mut c_void);

/// The longest message of the compiler that is told.
const ERROR_BYTES: usize = 600;

/// Compiles a file's bytes. Its functions and classes are not declared.
///
/// # Errors
///
/// What the compiler says.
pub fn compile(file: &[u8], source: &[u8], short_tags: bool) -> Result<Unit, String> {
    let name = c_text(file);
    let mut error: [c_char; ERROR_BYTES] = [0; ERROR_BYTES];
    // SAFETY: the texts live for the call, which catches bailouts itself.
    let unit = unsafe {
        ffi::altair_closure_compile(
            name.as_ptr().cast(),
            file.len(),
            source.as_ptr().cast(),
            source.len(),
            short_tags,
            error.as_mut_ptr(),
            error.len(),
        )
    };
    if unit.is_null() {
        return Err(message(&error));
    }
    Ok(Unit(unit))
}

/// Makes the closure with this number and these lines, without scope and with fresh static variables.
///
/// # Errors
///
/// A text where there is no such closure.
pub fn make(unit: &Unit, number: u32, lines: (u32, u32)) -> Result<Zval, String> {
    let mut closure = Zval::new();
    let result = &raw mut closure;
    // SAFETY: a unit of `compile`, which is never freed; the closure owns nothing with a destructor.
    let made =
        attempt(|| unsafe { ffi::altair_closure_make(unit.0, number, lines.0, lines.1, result) });
    match made {
        Ok(true) => Ok(closure),
        _ => Err(format!(
            "There is no closure {number} on lines {}-{} of the file as it is compiled here.",
            lines.0, lines.1
        )),
    }
}

/// The bytes with a NUL behind them.
fn c_text(text: &[u8]) -> Vec<u8> {
    let mut text = text.to_vec();
    text.push(0);
    text
}

/// A message that C has written.
fn message(text: &[c_char; ERROR_BYTES]) -> String {
    // SAFETY: `snprintf` ends it with a NUL.
    let text = unsafe { CStr::from_ptr(text.as_ptr()) };
    text.to_string_lossy().into_owned()
}

/// Where the code of a closure is from.
struct Origin {
    opcodes: usize,
    count: u32,
    file: Vec<u8>,
    lines: (u32, u32),
    /// It is in the memory of opcache.
    is_shared: bool,
}

impl Origin {
    /// Of a closure that is written in PHP.
    fn of(closure: &ZendObject) -> Self {
        let mut raw = ffi::RawClosureOrigin {
            opcodes: std::ptr::null(),
            file: std::ptr::null(),
            count: 0,
            first_line: 0,
            last_line: 0,
            is_shared: false,
        };
        // SAFETY: only looks at the closure's code, and its file's name lives as long.
        let file = unsafe {
            ffi::altair_closure_origin_of(&raw const *closure, &raw mut raw);
            bytes(raw.file)
        };
        Self {
            opcodes: raw.opcodes as usize,
            count: raw.count,
            file: file.to_vec(),
            lines: (raw.first_line, raw.last_line),
            is_shared: raw.is_shared,
        }
    }

    /// A refusal that names the closure.
    fn refuse(&self, why: &str) -> Refused {
        let lines = match self.lines {
            (first, last) if first == last => format!("line {first}"),
            (first, last) => format!("lines {first}-{last}"),
        };
        let file = String::from_utf8_lossy(&self.file);
        Refused::Source(format!(
            "The closure on {lines} of {file} cannot be sent: {why}."
        ))
    }
}

extern "C" fn append(context: *mut c_void, bytes: *const c_char, len: usize) {
    if len == 0 {
        return;
    }
    // SAFETY: a vector of the caller, and C's bytes, for the time of the call.
    unsafe {
        (*context.cast::<Vec<u8>>())
            .extend_from_slice(std::slice::from_raw_parts(bytes.cast::<u8>(), len));
    }
}
