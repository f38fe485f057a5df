//! What a file has of closures, and which of them a given one is.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use ext_php_rs::types::ZendObject;

use super::file::{self, Stamp};
use super::{ERROR_BYTES, Found, Illegal, Origin, Refused, append, c_text, message};
use crate::zend::ffi;

/// How the file is compiled (`altair_closure_way`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As PHP does.
    Plain = 0,
    /// As opcache does.
    Opcache = 1,
    /// With nothing put in the place of a name.
    Literal = 2,
}

/// A closure of a compiled file.
struct Seen {
    number: u32,
    lines: (u32, u32),
    illegal: Option<Illegal>,
    form: Box<[u8]>,
}

/// A file that is compiled as its closures may have been.
struct Compiled {
    way: Way,
    /// The names that were not known, as C has them.
    unknown: Vec<u8>,
    closures: Vec<Seen>,
}

/// Ways of compiling one file that are kept.
const COMPILED_MAX: usize = 8;

/// A file and its closures.
pub struct Survey {
    file: Vec<u8>,
    source: Arc<[u8]>,
    stamp: Stamp,
    short_tags: bool,
    /// Compiled so that equal code means the same in every PHP; or why it cannot be compiled.
    literal: Result<Vec<Seen>, String>,
    compiled: Vec<Compiled>,
}

impl Survey {
    /// Reads and compiles a file.
    ///
    /// # Errors
    ///
    /// Why it cannot be read.
    pub fn of(file: &[u8]) -> Result<Self, String> {
        let (source, stamp) = file::read(file)?;
        // SAFETY: only looks.
        let short_tags = unsafe { ffi::altair_closure_short_tags() };
        let literal = compile(file, &source, Way::Literal, &[]);
        Ok(Self {
            file: file.to_vec(),
            source: source.into(),
            stamp,
            short_tags,
            literal,
            compiled: Vec::new(),
        })
    }

    /// Whether it is of this file.
    pub fn is_of(&self, file: &[u8]) -> bool {
        self.file == file
    }

    /// Whether the file is still the same, and read as it was.
    pub fn holds(&self) -> bool {
        // SAFETY: only looks.
        let short_tags = unsafe { ffi::altair_closure_short_tags() };
        short_tags == self.short_tags
            && match &self.stamp {
                Stamp::None => {
                    file::read(&self.file).is_ok_and(|(bytes, _)| bytes[..] == self.source[..])
                }
                stamp => *stamp == file::stamp(&self.file),
            }
    }

    /// The bytes that it keeps, about.
    pub fn size(&self) -> usize {
        let forms = self.compiled.iter().map(|compiled| &compiled.closures);
        let literal = self.literal.iter();
        let seen = forms.chain(literal).flatten();
        self.source.len() + seen.map(|seen| seen.form.len() + 64).sum::<usize>()
    }

    /// Which of its closures the given one is.
    ///
    /// # Errors
    ///
    /// An instruction that it must not have, or why it cannot be told.
    pub fn find(&mut self, closure: &ZendObject, origin: &Origin) -> Result<Found, Refused> {
        let literal = match &self.literal {
            Ok(closures) => closures,
            Err(why) => {
                return Err(origin.refuse(&format!("its file cannot be compiled again ({why})")));
            }
        };
        if !literal.iter().any(|seen| seen.lines == origin.lines) {
            return Err(origin.refuse("its file has changed since it was loaded"));
        }
        let matches = self.matches(closure, origin);
        let Ok(literal) = &self.literal else {
            return Err(origin.refuse("its file cannot be compiled again"));
        };
        let candidates: Vec<&Seen> = literal
            .iter()
            .filter(|seen| matches.contains(&seen.number))
            .collect();
        let Some((first, others)) = candidates.split_first() else {
            return Err(origin.refuse(match origin.is_shared {
                true => {
                    "its file has changed since it was loaded, or opcache has optimised it in a way that \
                     cannot be repeated here"
                }
                false => {
                    "its file has changed since it was loaded, or was loaded when PHP knew other functions, \
                     classes and constants"
                }
            }));
        };
        if others.iter().any(|other| other.form != first.form) {
            return Err(origin.refuse(
                "it cannot be told apart from another one there (write them on lines of their own)",
            ));
        }
        if let Some(illegal) = first.illegal {
            return Err(illegal.refuse());
        }
        Ok(Found {
            file: self.file.clone(),
            source: Arc::clone(&self.source),
            short_tags: self.short_tags,
            number: first.number,
            lines: first.lines,
        })
    }

    /// The numbers of the closures that are, compiled as the given one was, what it is.
    fn matches(&mut self, closure: &ZendObject, origin: &Origin) -> Vec<u32> {
        let (form, unknown) = form(closure);
        for way in ways(origin) {
            for unknown in guesses(way, &unknown) {
                let Some(compiled) = self.compiled(way, &unknown) else {
                    continue;
                };
                let same = |seen: &&Seen| seen.lines == origin.lines && seen.form[..] == form[..];
                let matches: Vec<u32> = compiled
                    .iter()
                    .filter(same)
                    .map(|seen| seen.number)
                    .collect();
                if !matches.is_empty() {
                    return matches;
                }
            }
        }
        Vec::new()
    }

    /// The file's closures as compiled in a way, while some names were unknown.
    fn compiled(&mut self, way: Way, unknown: &[u8]) -> Option<&[Seen]> {
        let is = |compiled: &Compiled| compiled.way == way && compiled.unknown == unknown;
        let at = match self.compiled.iter().position(is) {
            Some(at) => at,
            None => {
                let closures = compile(&self.file, &self.source, way, unknown).unwrap_or_default();
                if self.compiled.len() == COMPILED_MAX {
                    self.compiled.remove(0);
                }
                let unknown = unknown.to_vec();
                self.compiled.push(Compiled {
                    way,
                    unknown,
                    closures,
                });
                self.compiled.len() - 1
            }
        };
        self.compiled.get(at).map(|compiled| &compiled.closures[..])
    }
}

/// The ways in which a closure's file may have been compiled, the likeliest first.
fn ways(origin: &Origin) -> Vec<Way> {
    // SAFETY: only looks.
    let opcache = unsafe { ffi::altair_closure_opcache_is_on() };
    match (origin.is_shared, opcache) {
        (true, _) => vec![Way::Opcache],
        // What opcache does not keep, it may have optimised all the same.
        (false, true) => vec![Way::Plain, Way::Opcache],
        (false, false) => vec![Way::Plain],
    }
}

/// What may have been unknown: the names that the closure looks up when it runs. A class may also have been known, and
/// its constant have had no value yet.
fn guesses(way: Way, unknown: &[u8]) -> Vec<Vec<u8>> {
    if way != Way::Plain {
        return vec![Vec::new()];
    }
    let mut names: Vec<&[u8]> = unknown
        .split_inclusive(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    names.dedup();
    let known_classes: Vec<u8> = names
        .iter()
        .filter(|name| name.first() != Some(&b'k'))
        .flat_map(|name| name.iter().copied())
        .collect();
    let mut guesses = vec![names.concat()];
    if known_classes != guesses[0] {
        guesses.push(known_classes);
    }
    guesses
}

/// The form of a closure's code, and the names that were unknown when it was compiled.
fn form(closure: &ZendObject) -> (Vec<u8>, Vec<u8>) {
    extern "C" fn take_form(context: *mut c_void, bytes: *const c_char, len: usize) {
        // SAFETY: the pair below.
        let pair = unsafe { &mut *context.cast::<(Vec<u8>, Vec<u8>)>() };
        append((&raw mut pair.0).cast(), bytes, len);
    }
    extern "C" fn take_unknown(context: *mut c_void, bytes: *const c_char, len: usize) {
        // SAFETY: the pair below.
        let pair = unsafe { &mut *context.cast::<(Vec<u8>, Vec<u8>)>() };
        append((&raw mut pair.1).cast(), bytes, len);
    }
    let mut pair: (Vec<u8>, Vec<u8>) = (Vec::new(), Vec::new());
    // SAFETY: a closure that is written in PHP; only looks at its code. The pair outlives the call.
    unsafe {
        ffi::altair_closure_form(
            &raw const *closure,
            take_form,
            take_unknown,
            (&raw mut pair).cast(),
        );
    }
    pair
}

/// Compiles a file for a moment.
fn compile(file: &[u8], source: &[u8], way: Way, unknown: &[u8]) -> Result<Vec<Seen>, String> {
    extern "C" fn see(context: *mut c_void, closure: *const ffi::RawClosureSeen) {
        // SAFETY: the vector below, and what C tells, for the time of the call.
        let (seen, closure) = unsafe { (&mut *context.cast::<Vec<Seen>>(), &*closure) };
        let mut form: Vec<u8> = Vec::new();
        append((&raw mut form).cast(), closure.form, closure.form_len);
        seen.push(Seen {
            number: closure.number,
            lines: (closure.first_line, closure.last_line),
            illegal: Illegal::from_raw(closure.rule, closure.rule_line),
            form: form.into_boxed_slice(),
        });
    }
    let name = c_text(file);
    let mut seen: Vec<Seen> = Vec::new();
    let mut error: [c_char; ERROR_BYTES] = [0; ERROR_BYTES];
    // SAFETY: the texts and the vector outlive the call, which catches bailouts itself, before it calls back.
    let is_whole = unsafe {
        ffi::altair_closure_survey(
            name.as_ptr().cast(),
            file.len(),
            source.as_ptr().cast(),
            source.len(),
            way as c_int,
            unknown.as_ptr().cast(),
            unknown.len(),
            see,
            (&raw mut seen).cast(),
            error.as_mut_ptr(),
            error.len(),
        )
    };
    match is_whole {
        true => Ok(seen),
        false => Err(message(&error)),
    }
}
