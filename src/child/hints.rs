//! Hints: what a run that failed may have meant. Made of the names in the engine's tables, of what an
//! undefined thing was looked for in, of Composer's loaded class maps and of the directory of a class's own
//! namespace. No code of the application's runs for it.
//!
//! They are for the exception that ended the run, and for warnings of the snippet's own code. A warning is
//! looked at while it is raised, because only then is it known what was read from; one of the application's
//! code counts where its handler has made the exception of it that ended the run.

mod class_names;
mod container;
mod members;

pub use container::ids as container_ids;

use std::sync::{Mutex, PoisonError};

use altair_engine::channel::Ending;
use altair_engine::hints::{
    HINTS_MAX, Hint, LIST_MAX, NAME_MAX_BYTES, Nearest, ParseErrorLine, Subject, told as in_words,
};
use ext_php_rs::types::ZendObject;

use crate::zend::exception;
use crate::zend::tables::{self, Warned};

/// Exceptions of a chain to look at: frameworks wrap them.
const CHAIN_MAX: usize = 4;
/// Names to compare for all warnings of a run, so that one on large arrays takes no time.
const NAMES_MAX: usize = 2_000;

struct Found {
    /// Of the exception that ended the run.
    of_exception: Vec<Hint>,
    /// Of warnings, with what PHP said.
    of_warnings: Vec<Warning>,
    /// Names that may still be compared.
    names_left: usize,
}

struct Warning {
    message: String,
    is_of_snippet: bool,
    hints: Vec<Hint>,
}

static FOUND: Mutex<Found> = Mutex::new(Found {
    of_exception: Vec::new(),
    of_warnings: Vec::new(),
    names_left: NAMES_MAX,
});

/// From now on, warnings are looked at.
pub fn begin() {
    tables::on_warning(on_warning);
}

/// The hints of a run that ended so. After memory ran out there are none.
pub fn told(ending: &Ending) -> Vec<String> {
    if matches!(ending, Ending::OutOfMemory { .. }) {
        return Vec::new();
    }
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let mut hints = std::mem::take(&mut found.of_exception);
    for warning in std::mem::take(&mut found.of_warnings) {
        if warning.is_of_snippet {
            hints.extend(warning.hints);
        }
    }
    match hints.is_empty() {
        true => Vec::new(),
        false => in_words(&hints),
    }
}

/// Looks at the exception that ends the run.
pub fn of_exception(thrown: &ZendObject, snippet: &[u8]) {
    let mut hints = Vec::new();
    let mut next = Some(thrown);
    for _ in 0..CHAIN_MAX {
        let Some(exception) = next.filter(|_| hints.is_empty()) else {
            break;
        };
        hints = of_one(exception, snippet);
        next = exception::previous(exception);
    }
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    found.of_exception = hints;
}

fn of_one(exception: &ZendObject, snippet: &[u8]) -> Vec<Hint> {
    if exception::class_name(exception) == "ParseError"
        && let Some(offset) = tables::parse_error_offset()
    {
        let line = ParseErrorLine::of(snippet, offset);
        return vec![Hint::sentence("", line.to_string())];
    }
    let message = exception::message(exception);
    if message.len() > 4 * NAME_MAX_BYTES {
        return Vec::new();
    }
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    // A handler of the application's has made it of the warning, whose text some put something before.
    let warning = found.of_warnings.iter_mut();
    if let Some(warning) = warning
        .rev()
        .find(|warning| message.ends_with(&warning.message))
    {
        return std::mem::take(&mut warning.hints);
    }
    drop(found);
    match Subject::of_exception(&message) {
        Some(subject) => of_subject(&subject),
        None => container::of_missing(exception, &message),
    }
}

fn of_subject(subject: &Subject) -> Vec<Hint> {
    let about = subject.name();
    let near = |nearest: Nearest| Vec::from_iter(Hint::did_you_mean(&about, &nearest.names()));
    match subject {
        Subject::Function(name) => {
            let mut nearest = Nearest::to(last_part(name.as_bytes()));
            tables::functions(|name| {
                let called = [name, b"()"].concat();
                nearest.offer_as(last_part(name), &called, 0);
            });
            near(nearest)
        }
        Subject::Constant(name) => {
            let mut nearest = Nearest::to(last_part(name.as_bytes()));
            tables::constants(|name| nearest.offer_as(last_part(name), name, 0));
            near(nearest)
        }
        Subject::Class(name) => near(class_names::near(name)),
        Subject::Method { class, name } => members::methods(&about, class, name),
        Subject::ClassConstant { class, name } => members::constants(&about, class, name),
        Subject::StaticProperty { class, name } => members::static_properties(&about, class, name),
        // These are told in warnings.
        Subject::Variable(_) | Subject::Key(_) | Subject::Index(_) | Subject::Property { .. } => {
            Vec::new()
        }
    }
}

/// The name without its namespace.
fn last_part(name: &[u8]) -> &[u8] {
    name.rsplit(|byte| *byte == b'\\').next().unwrap_or(name)
}

fn on_warning(warned: &Warned<'_>) {
    let Some(subject) = Subject::of_warning(warned.message) else {
        return;
    };
    let Ok(mut found) = FOUND.try_lock() else {
        return;
    };
    let mut left = found.names_left;
    let hints = of_warning(&subject, warned, &mut left);
    found.names_left = left;
    let own = |warning: &Warning| warning.is_of_snippet;
    match warned.is_of_snippet {
        true if found.of_warnings.iter().filter(|w| own(w)).count() >= HINTS_MAX => return,
        true => {}
        // Of the application's, the one that ends the run is the last.
        false => found.of_warnings.retain(own),
    }
    found.of_warnings.push(Warning {
        message: warned.message.to_owned(),
        is_of_snippet: warned.is_of_snippet,
        hints,
    });
}

fn of_warning(subject: &Subject, warned: &Warned<'_>, left: &mut usize) -> Vec<Hint> {
    let about = subject.name();
    let mut names = Vec::new();
    let mut nearest;
    match (subject, warned.operand) {
        (Subject::Variable(name), _) => {
            nearest = Nearest::to(name.as_bytes());
            warned.variables(|name| {
                if take(left) {
                    nearest.offer_as(name, &[b"$", name].concat(), 0);
                }
            });
        }
        (Subject::Key(name), Some(array)) => {
            let Some(count) = array.count() else {
                return Vec::new();
            };
            nearest = Nearest::to(name.as_bytes()).or_a_part();
            array.items(*left, |key, _| {
                *left -= 1;
                nearest.offer(key.unwrap_or_default());
                if count <= LIST_MAX {
                    names.extend(key.map(|key| String::from_utf8_lossy(key).into_owned()));
                }
            });
            if count == 0 {
                return vec![Hint::sentence(&about, "the array is empty".into())];
            }
        }
        (Subject::Index(_), Some(array)) => {
            let text = match array.count() {
                Some(0) => "the array is empty".into(),
                Some(count) if array.is_list() => {
                    format!("the list has the keys 0 to {}", count - 1)
                }
                _ => return Vec::new(),
            };
            return vec![Hint::sentence(&about, text)];
        }
        (Subject::Property { class, name }, operand) => {
            let class = operand
                .and_then(|object| object.class())
                .or_else(|| tables::Class::named(class));
            nearest = Nearest::to(name.as_bytes()).or_a_part();
            let mut count = 0_usize;
            let mut offer = |name: &[u8]| {
                if take(left) {
                    nearest.offer(name);
                    count += 1;
                    if count <= LIST_MAX {
                        names.push(String::from_utf8_lossy(name).into_owned());
                    }
                }
            };
            if let Some(class) = class {
                class.properties(warned.scope(), false, &mut offer);
            }
            if let Some(object) = operand {
                object.own_properties(NAMES_MAX, &mut offer);
            }
            if count > LIST_MAX {
                names.clear();
            }
        }
        _ => return Vec::new(),
    }
    let near = nearest.names();
    match near.is_empty() {
        false => Vec::from_iter(Hint::did_you_mean(&about, &near)),
        true => {
            names.retain(|name| name.len() <= NAME_MAX_BYTES);
            names.sort();
            names.dedup();
            Vec::from_iter(Hint::list(
                &about,
                &format!("instead of {about} there is"),
                &names,
            ))
        }
    }
}

/// Takes one of what is left; `false` where nothing is.
fn take(left: &mut usize) -> bool {
    let is_left = *left > 0;
    *left = left.saturating_sub(1);
    is_left
}
