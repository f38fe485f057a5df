//! What a message of PHP's is about.

/// What does not exist, as a message of PHP's names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A function.
    Function(String),
    /// A method.
    Method {
        /// The class.
        class: String,
        /// The method.
        name: String,
    },
    /// A class, an interface, a trait or an enum.
    Class(String),
    /// A constant of no class.
    Constant(String),
    /// A constant of a class, or a case of an enum.
    ClassConstant {
        /// The class.
        class: String,
        /// The constant.
        name: String,
    },
    /// A static property.
    StaticProperty {
        /// The class.
        class: String,
        /// The property, without its `$`.
        name: String,
    },
    /// A variable, without its `$`.
    Variable(String),
    /// A key of an array.
    Key(String),
    /// An integer key of an array.
    Index(i64),
    /// A property.
    Property {
        /// The class.
        class: String,
        /// The property.
        name: String,
    },
}

impl Subject {
    /// What an exception's message is about. Frameworks that forward calls use PHP's own words.
    #[must_use]
    pub fn of_exception(message: &str) -> Option<Self> {
        if let Some(name) = between(message, "Call to undefined function ", "()") {
            return Some(Self::Function(name));
        }
        // The second is that of Illuminate's Macroable, and of reflection.
        for (start, end) in [
            ("Call to undefined method ", "()"),
            ("Method ", " does not exist."),
            ("Method ", "() does not exist"),
        ] {
            if let Some((class, name)) = between(message, start, end).and_then(member) {
                return Some(Self::Method { class, name });
            }
        }
        let (message, is_callback) = callback(message);
        if is_callback
            && let Some(rest) = message.strip_prefix("class ")
            && let Some((class, name)) = rest
                .strip_suffix('"')
                .and_then(|rest| rest.split_once(" does not have a method \""))
        {
            let (class, name) = (class.to_owned(), name.to_owned());
            return Some(Self::Method { class, name });
        }
        if let Some(name) = between(
            message,
            "function \"",
            "\" not found or invalid function name",
        ) {
            return Some(Self::Function(name));
        }
        for kind in ["Class", "class", "Interface", "Trait", "Enum"] {
            for end in ["\" not found", "\" does not exist"] {
                if let Some(name) = between(message, &format!("{kind} \""), end) {
                    return Some(Self::Class(name));
                }
            }
        }
        if let Some(name) = between(message, "Undefined constant \"", "\"") {
            return Some(match member(name.clone()) {
                Some((class, name)) => Self::ClassConstant { class, name },
                None => Self::Constant(name),
            });
        }
        if let Some((class, name)) = between(message, "Undefined constant ", "").and_then(member) {
            return Some(Self::ClassConstant { class, name });
        }
        let property = between(message, "Access to undeclared static property ", "");
        let (class, name) = property.and_then(member)?;
        let name = name.strip_prefix('$')?.to_owned();
        Some(Self::StaticProperty { class, name })
    }

    /// What a warning is about.
    #[must_use]
    pub fn of_warning(message: &str) -> Option<Self> {
        let message = message.strip_prefix("compact(): ").unwrap_or(message);
        if let Some(name) = between(message, "Undefined variable $", "") {
            return Some(Self::Variable(name));
        }
        if let Some(name) = between(message, "Undefined array key \"", "\"") {
            return Some(Self::Key(name));
        }
        if let Some(index) = between(message, "Undefined array key ", "") {
            return index.parse().ok().map(Self::Index);
        }
        let property = between(message, "Undefined property: ", "");
        let (class, name) = property.and_then(member)?;
        let name = name.strip_prefix('$')?.to_owned();
        Some(Self::Property { class, name })
    }

    /// The name that does not exist, as the message has it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Function(name) => format!("{name}()"),
            Self::Method { class, name } => format!("{class}::{name}()"),
            Self::Class(name) | Self::Constant(name) | Self::Key(name) => name.clone(),
            Self::ClassConstant { class, name } => format!("{class}::{name}"),
            Self::StaticProperty { class, name } | Self::Property { class, name } => {
                format!("{class}::${name}")
            }
            Self::Variable(name) => format!("${name}"),
            Self::Index(index) => index.to_string(),
        }
    }
}

/// What is wrong with an argument that is to be a callback, and whether it is one.
fn callback(message: &str) -> (&str, bool) {
    for start in [
        "must be a valid callback, ",
        "must be a valid callback or null, ",
    ] {
        if let Some((_, why)) = message.split_once(start) {
            return (why, true);
        }
    }
    (message, false)
}

/// What stands in `message` between these two, of which one begins it and the other ends it.
fn between(message: &str, start: &str, end: &str) -> Option<String> {
    let name = message.strip_prefix(start)?.strip_suffix(end)?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// A class and what it should have.
fn member(name: String) -> Option<(String, String)> {
    let (class, member) = name.split_once("::")?;
    let is_name = !class.contains(' ') && !member.is_empty();
    is_name.then(|| (class.to_owned(), member.to_owned()))
}
