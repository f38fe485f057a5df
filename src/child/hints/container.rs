//! What a container knows instead of what was asked of it, as far as that can be read without running code.

use altair_engine::hints::{Hint, NAME_MAX_BYTES, Nearest};
use ext_php_rs::types::ZendObject;

use super::{class_names, last_part};
use crate::zend::exception;
use crate::zend::tables::{self, Class, Value};

/// Containers, and the arrays whose keys are what they know.
const CONTAINERS: [(&str, &[&str]); 2] = [
    (
        "Symfony\\Component\\DependencyInjection\\Container",
        &["services", "fileMap", "methodMap", "aliases"],
    ),
    (
        "Illuminate\\Container\\Container",
        &["bindings", "instances", "aliases"],
    ),
];
/// Keys of each array to look at.
const IDS_MAX: usize = 20_000;
/// Quoted names in a message to look at.
const QUOTED_MAX: usize = 3;

/// Where an exception says that a container has no such entry: the entries and classes that are near.
pub fn of_missing(thrown: &ZendObject, message: &str) -> Vec<Hint> {
    if !is_not_found(thrown, message) {
        return Vec::new();
    }
    let known = known();
    for wanted in wanted(message) {
        if known.iter().any(|(_, ids)| has(*ids, wanted)) {
            continue; // it needs the missing one
        }
        let mut nearest = Nearest::to(wanted.as_bytes()).or_a_part();
        let short = last_part(wanted.as_bytes());
        let mut nearest_short = Nearest::to(short);
        for (_, ids) in &known {
            ids.items(IDS_MAX, |id, _| {
                // One that begins with a dot is Symfony's own.
                let id = id
                    .filter(|id| id.first() != Some(&b'.'))
                    .unwrap_or_default();
                nearest.offer(id);
                if short.len() < wanted.len() {
                    nearest_short.offer_as(last_part(id), id, 0);
                }
            });
        }
        let mut names = nearest.names();
        names.extend(nearest_short.names());
        names.dedup();
        names.truncate(3);
        if let Some(hint) = Hint::list(wanted, "container knows", &names) {
            return vec![hint];
        }
        if wanted.contains('\\')
            && Class::named(wanted).is_none()
            && let Some(hint) = Hint::did_you_mean(wanted, &class_names::near(wanted).names())
        {
            return vec![hint];
        }
    }
    Vec::new()
}

/// Whether it is PSR-11's exception for this, or says so.
fn is_not_found(thrown: &ZendObject, message: &str) -> bool {
    let is = |interface: &str| {
        Class::named(&format!("Psr\\Container\\{interface}"))
            .is_some_and(|interface| tables::is_instance(thrown, interface))
    };
    let class = exception::class_name(thrown);
    let is_named = class.ends_with("NotFound") || class.ends_with("NotFoundException");
    // That of Illuminate's container, for a class that it was to make.
    let is_target = message.starts_with("Target class [");
    is("NotFoundExceptionInterface") || is_named || is_target && is("ContainerExceptionInterface")
}

/// The names in a message: those in quotes, or all of one that is nothing but a name.
fn wanted(message: &str) -> Vec<&str> {
    let mut wanted = Vec::new();
    if !message.contains(' ') {
        wanted.push(message);
    }
    for (open, close) in [('"', '"'), ('\'', '\''), ('[', ']'), ('`', '`')] {
        let quoted = message
            .split_once(open)
            .and_then(|(_, rest)| rest.split_once(close));
        wanted.extend(quoted.map(|(name, _)| name));
        // The second, where the first is what needs it.
        let second = quoted.and_then(|(_, rest)| rest.split_once(open)?.1.split_once(close));
        wanted.extend(second.map(|(name, _)| name));
    }
    wanted.retain(|name| !name.is_empty() && name.len() <= NAME_MAX_BYTES);
    wanted.truncate(QUOTED_MAX);
    wanted
}

/// Every entry that the container knows.
pub fn ids(mut each: impl FnMut(&[u8])) {
    for (_, ids) in known() {
        ids.items(IDS_MAX, |id, _| {
            // One that begins with a dot is Symfony's own.
            if let Some(id) = id.filter(|id| id.first() != Some(&b'.')) {
                each(id);
            }
        });
    }
}

/// The tables of the application's container.
fn known() -> Vec<(&'static str, Value)> {
    let Some(container) = Value::container() else {
        return Vec::new();
    };
    // That of Symfony's tests has no entries of its own: its kernel's has them.
    let kernel = container.property(
        "Symfony\\Bundle\\FrameworkBundle\\Test\\TestContainer",
        "kernel",
    );
    let of_kernel = kernel
        .and_then(|kernel| kernel.property("Symfony\\Component\\HttpKernel\\Kernel", "container"));
    let mut known = Vec::new();
    for container in [Some(container), of_kernel].into_iter().flatten() {
        for (class, names) in CONTAINERS {
            let tables = names
                .iter()
                .filter_map(|name| Some((*name, container.property(class, name)?)));
            known.extend(tables);
        }
    }
    known
}

fn has(ids: Value, wanted: &str) -> bool {
    let mut has = false;
    ids.items(IDS_MAX, |id, _| has |= id == Some(wanted.as_bytes()));
    has
}
