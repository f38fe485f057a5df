//! What may stand at the end of a text that is being typed: names from the engine's tables, from the
//! session's variables, from the container and from the project's classes. Runs no code.

use std::collections::BTreeSet;

use altair_engine::shell::{Completion, NAMES_MAX, Name, NameKind};

use super::hints::container_ids;
use crate::zend::tables::{self, Class};

/// The longest name that is offered, in bytes.
const NAME_MAX_BYTES: usize = 200;

/// What may stand at the end of `text`.
pub fn at_end_of(text: &[u8]) -> Completion {
    let (from, wanted) = Wanted::of(text);
    let mut offers = Offers::default();
    wanted.offer(&mut offers);
    Completion {
        from,
        names: offers.best(),
    }
}

/// What the end of a text asks for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted<'t> {
    /// A variable, by the beginning of its name.
    Variable(&'t [u8]),
    /// A member of what an expression is, by the beginning of its name.
    Member(Of<'t>, &'t [u8]),
    /// A member of a class, by the beginning of its name.
    Static(&'t [u8], &'t [u8]),
    /// An entry of the container.
    Entry(&'t [u8]),
    /// A function, a class or a constant.
    Name(&'t [u8]),
    /// Nothing is known here.
    Nothing,
}

/// What a member is asked of.
#[derive(Debug, PartialEq, Eq)]
enum Of<'t> {
    /// The value of a variable.
    Variable(&'t [u8]),
    /// An object that the container gives for a class.
    Entry(&'t [u8]),
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The name at the end of a text, in which backslashes may stand, and what is before it.
fn last_name(text: &[u8], with_namespace: bool) -> (&[u8], &[u8]) {
    let is_part = |byte: &u8| is_of_name(*byte) || with_namespace && *byte == b'\\';
    let start = text
        .iter()
        .rposition(|byte| !is_part(byte))
        .map_or(0, |at| at + 1);
    text.split_at(start)
}

impl<'t> Wanted<'t> {
    /// From which byte on the text is replaced, and by what.
    fn of(text: &'t [u8]) -> (usize, Self) {
        let (before, name) = last_name(text, false);
        if let Some(before) = before.strip_suffix(b"$") {
            return (before.len(), Self::Variable(name));
        }
        let arrow = before.strip_suffix(b"->");
        if let Some(object) = arrow.map(|object| object.strip_suffix(b"?").unwrap_or(object)) {
            let member = Of::expression(object).map(|of| Self::Member(of, name));
            return (before.len(), member.unwrap_or(Self::Nothing));
        }
        if let Some(class) = before.strip_suffix(b"::") {
            let (_, class) = last_name(class, true);
            return (before.len(), Self::Static(class, name));
        }
        let (before, name) = last_name(text, true);
        if let Some(call) = before.strip_suffix(b"'").or(before.strip_suffix(b"\""))
            && call.trim_ascii_end().ends_with(b"container(")
        {
            return (before.len(), Self::Entry(name));
        }
        match name.is_empty() || name.first().is_some_and(u8::is_ascii_digit) {
            true => (text.len(), Self::Nothing),
            false => (before.len(), Self::Name(name)),
        }
    }

    fn offer(&self, offers: &mut Offers) {
        match self {
            Self::Variable(begun) => {
                tables::own_variables(|name, _| {
                    offers.offer(name, begun, b"$", NameKind::Variable);
                });
            }
            Self::Member(of, begun) => {
                if let Some(class) = of.class() {
                    class.methods(|name, _| offers.offer(name, begun, b"", NameKind::Method));
                    class.properties(None, false, |name| {
                        offers.offer(name, begun, b"", NameKind::Property);
                    });
                }
            }
            Self::Static(class, begun) => {
                if let Some(class) = class_named(class) {
                    class.constants(|name| offers.offer(name, begun, b"", NameKind::Constant));
                    class.methods(|name, _| offers.offer(name, begun, b"", NameKind::Method));
                }
            }
            Self::Entry(begun) => {
                container_ids(|id| offers.offer(id, begun, b"", NameKind::ContainerId));
            }
            Self::Name(begun) => {
                let absolute = begun.strip_prefix(b"\\").unwrap_or(begun);
                let lead = &begun[..begun.len() - absolute.len()];
                tables::functions(|name| {
                    offers.offer(name, absolute, lead, NameKind::Function);
                });
                tables::classes(|name| offers.offer(name, absolute, lead, NameKind::Class));
                tables::constants(|name| offers.offer(name, absolute, lead, NameKind::Constant));
            }
            Self::Nothing => {}
        }
    }
}

impl<'t> Of<'t> {
    /// What the end of a text is, where that can be told without running it.
    fn expression(text: &'t [u8]) -> Option<Self> {
        let (before, name) = last_name(text, false);
        if before.ends_with(b"$") && !name.is_empty() {
            return Some(Self::Variable(name));
        }
        let call = text.strip_suffix(b")")?.trim_ascii_end();
        let class = call.strip_suffix(b"::class")?;
        let (before, class) = last_name(class, true);
        before
            .ends_with(b"container(")
            .then_some(Self::Entry(class))
    }

    fn class(&self) -> Option<Class> {
        match self {
            Self::Variable(wanted) => {
                let mut found = None;
                tables::own_variables(|name, value| {
                    if name == *wanted {
                        found = value.class();
                    }
                });
                found
            }
            Self::Entry(class) => class_named(class),
        }
    }
}

/// A class that is there, by a name that is text.
fn class_named(name: &[u8]) -> Option<Class> {
    Class::named(std::str::from_utf8(name).ok()?)
}

/// The names that fit, each once.
#[derive(Default)]
struct Offers {
    names: BTreeSet<(u8, String, u8)>,
}

/// The kinds in the order in which they are offered.
const KINDS: [NameKind; 7] = [
    NameKind::Variable,
    NameKind::Property,
    NameKind::Method,
    NameKind::Constant,
    NameKind::Function,
    NameKind::Class,
    NameKind::ContainerId,
];

impl Offers {
    /// Takes a name that begins as was typed. `lead` is put before it.
    fn offer(&mut self, name: &[u8], begun: &[u8], lead: &[u8], kind: NameKind) {
        let Some(head) = name.get(..begun.len()) else {
            return;
        };
        // Whoever types no upper case means any.
        let is_same = head == begun;
        if !is_same && !head.eq_ignore_ascii_case(begun) || name.len() > NAME_MAX_BYTES {
            return;
        }
        // Names of our own begin with a NUL; those of anonymous classes hold one.
        if name.contains(&0) {
            return;
        }
        let Ok(text) = String::from_utf8([lead, name].concat()) else {
            return;
        };
        let place = KINDS.iter().position(|one| *one == kind).unwrap_or(0);
        let place = u8::try_from(place).unwrap_or(u8::MAX);
        self.names.insert((u8::from(!is_same), text, place));
    }

    /// The first of them: those that are written as was typed come first.
    fn best(self) -> Vec<Name> {
        let names = self.names.into_iter().take(NAMES_MAX);
        names
            .map(|(_, text, place)| Name {
                text,
                kind: KINDS[usize::from(place) % KINDS.len()],
            })
            .collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> (usize, Wanted<'_>) {
        Wanted::of(text.as_bytes())
    }

    #[test]
    fn the_end_of_a_text_says_what_is_asked_for() {
        assert_eq!(wanted("echo $us"), (5, Wanted::Variable(b"us")));
        assert_eq!(wanted("$"), (0, Wanted::Variable(b"")));
        assert_eq!(
            wanted("$user->na"),
            (7, Wanted::Member(Of::Variable(b"user"), b"na"))
        );
        assert_eq!(
            wanted("$user?->"),
            (8, Wanted::Member(Of::Variable(b"user"), b""))
        );
        assert_eq!(
            wanted("container(Shop\\Users::class)->find"),
            (29, Wanted::Member(Of::Entry(b"Shop\\Users"), b"find"))
        );
        assert_eq!(
            wanted("new A(); Shop\\Kind::A"),
            (20, Wanted::Static(b"Shop\\Kind", b"A"))
        );
        assert_eq!(wanted("container('mail"), (11, Wanted::Entry(b"mail")));
        assert_eq!(wanted("array_m"), (0, Wanted::Name(b"array_m")));
        assert_eq!(wanted("new \\Shop\\U"), (4, Wanted::Name(b"\\Shop\\U")));
        assert_eq!(wanted("f()->x"), (5, Wanted::Nothing));
        assert_eq!(wanted("1 + 2"), (5, Wanted::Nothing));
    }

    #[test]
    fn what_was_typed_in_its_own_case_comes_first() {
        let mut offers = Offers::default();
        offers.offer(b"arrayobject", b"Arr", b"", NameKind::Class);
        offers.offer(b"ArrayObject", b"Arr", b"", NameKind::Class);
        offers.offer(b"Other", b"Arr", b"", NameKind::Class);
        offers.offer(b"Arr\0x", b"Arr", b"", NameKind::Class);
        let names = offers.best();
        let names: Vec<&str> = names.iter().map(|name| name.text.as_str()).collect();
        assert_eq!(names, ["ArrayObject", "arrayobject"]);
    }
}
