//! Short names of classes: `User::count()` where the project has one class of that name, as if the
//! snippet had imported it.

use std::path::Path;

use altair_engine::channel::{Message, RESOLVED_MAX_BYTES};

use super::channel_link::Voice;
use super::project_classes;
use crate::zend::child::Cut;
use crate::zend::snippet::{self, Code, Compiled, Import, MissingClass};

/// Classes that an error lists.
const LISTED: usize = 10;

/// Compiles the snippet, and tells the host of the names that were found.
///
/// # Errors
///
/// How that was cut short: by a parse error, by a name that several classes of the project have, or
/// by an autoloader that ended the run.
pub fn compile(source: &[u8], root: &Path, voice: &Voice) -> Result<Code, Cut> {
    match snippet::compile(source)? {
        Compiled::Code(code) => Ok(code),
        Compiled::Missing(missing) => {
            let imports = imports(missing, root)?;
            let names = imports.iter();
            let names = names.map(|import| (import.name.clone(), import.class.clone()));
            let names: Vec<_> = names.collect();
            if !names.is_empty() {
                voice.send(&Message::Resolved(names));
            }
            snippet::compile_with(source, &imports)
        }
    }
}

/// Finds the classes that exist in the project only.
fn imports(missing: Vec<MissingClass>, root: &Path) -> Result<Vec<Import>, Cut> {
    let mut unknown = Vec::new();
    for class in missing {
        match snippet::class_exists(&class.name) {
            Ok(true) => {}
            Ok(false) => unknown.push(class),
            // What an autoloader throws for a name, it throws again when the snippet uses it.
            Err(Cut::Threw(thrown)) => std::mem::forget(thrown),
            Err(cut) => return Err(cut),
        }
    }
    let names: Vec<&str> = unknown.iter().map(|class| class.name.as_str()).collect();
    let found = project_classes::find(root, &names);
    let mut imports = Vec::new();
    for (class, found) in unknown.iter().zip(found) {
        let MissingClass { name, line } = class;
        match found.as_slice() {
            [] => {}
            [class] if class.len() > RESOLVED_MAX_BYTES => {}
            [class] => imports.push(Import {
                name: name.clone(),
                class: class.clone(),
            }),
            several => {
                let listed = several[..several.len().min(LISTED)].join(", ");
                let more = match several.len().saturating_sub(LISTED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let message = format!(
                    "Class \"{name}\" is not there, and the project has several of that name: {listed}{more}"
                );
                if let Some(cut) = snippet::error_at(&message, *line) {
                    return Err(cut);
                }
            }
        }
    }
    Ok(imports)
}
