//! What a class has instead of what was asked of it.

use altair_engine::hints::{Hint, LIST_MAX, Nearest};

use crate::zend::tables::Class;

/// The methods that are near, with their parameters; and all of a class that has few.
pub fn methods(about: &str, class: &str, wanted: &str) -> Vec<Hint> {
    let Some(class) = Class::named(class) else {
        return Vec::new();
    };
    let mut nearest = Nearest::to(wanted.as_bytes()).or_a_part();
    let mut few = Vec::new();
    let mut count = 0;
    class.methods(|name, method| {
        nearest.offer(name);
        count += 1;
        if count <= LIST_MAX {
            few.push(method);
        }
    });
    let near = nearest.names();
    // Only now: a class may have hundreds.
    let mut signatures = vec![String::new(); near.len()];
    class.methods(|name, method| {
        let at = near.iter().position(|near| near.as_bytes() == name);
        if let Some(signature) = at.and_then(|at| signatures.get_mut(at)) {
            *signature = method.signature();
        }
    });
    signatures.retain(|signature| !signature.is_empty());
    let mut hints = Vec::from_iter(Hint::did_you_mean(about, &signatures));
    if count <= LIST_MAX {
        let few: Vec<String> = few.into_iter().map(|method| method.signature()).collect();
        hints.extend(Hint::list(about, &format!("{} has", class.name()), &few));
    }
    hints
}

/// The constants and cases that are near.
pub fn constants(about: &str, class: &str, wanted: &str) -> Vec<Hint> {
    let mut names = Vec::new();
    let mut nearest = Nearest::to(wanted.as_bytes()).or_a_part();
    let Some(class) = Class::named(class) else {
        return Vec::new();
    };
    class.constants(|name| {
        nearest.offer(name);
        few(&mut names, name);
    });
    near_or_all(about, &class.name(), nearest, names)
}

/// The static properties that are near.
pub fn static_properties(about: &str, class: &str, wanted: &str) -> Vec<Hint> {
    let mut names = Vec::new();
    let mut nearest = Nearest::to(wanted.as_bytes()).or_a_part();
    let Some(class) = Class::named(class) else {
        return Vec::new();
    };
    class.properties(None, true, |name| {
        let shown = [b"$", name].concat();
        nearest.offer_as(name, &shown, 0);
        few(&mut names, &shown);
    });
    near_or_all(about, &class.name(), nearest, names)
}

/// Keeps one name more than is shown, so that it is known whether there are more.
fn few(names: &mut Vec<String>, name: &[u8]) {
    if names.len() <= LIST_MAX {
        names.push(String::from_utf8_lossy(name).into_owned());
    }
}

fn near_or_all(about: &str, class: &str, nearest: Nearest, names: Vec<String>) -> Vec<Hint> {
    let near = nearest.names();
    let hint = match near.is_empty() {
        false => Hint::did_you_mean(about, &near),
        true if names.len() > LIST_MAX => None,
        true => Hint::list(about, &format!("{class} has"), &names),
    };
    Vec::from_iter(hint)
}
