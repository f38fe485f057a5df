//! The variables that apply to an application, from its environment and its files.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use crate::dotenv::Entry;
use crate::services::Variables;

/// The variables that apply: those of the environment take precedence over those of files.
pub(super) struct Effective<'a> {
    /// Names, in the order in which they were found.
    names: Vec<&'a [u8]>,
    /// Value, and the file that sets it; `None` for the environment.
    values: HashMap<&'a [u8], (&'a [u8], Option<&'a str>)>,
    /// The names of variables of the environment that are not the user's.
    set_later: &'a [OsString],
}

impl<'a> Effective<'a> {
    pub(super) fn new(
        environment: &'a [(OsString, OsString)],
        set_later: &'a [OsString],
        read: &'a [(String, Vec<Entry>)],
    ) -> Self {
        let mut plain = Self::of_environment(environment, set_later);
        plain.add(read, ".env.local");
        plain.add(read, ".env");
        // The defaults of Symfony and Laravel.
        let of = match plain.value("APP_ENV") {
            Some((of, _)) => vec![of],
            None => vec!["dev".to_owned(), "local".to_owned()],
        };
        let mut effective = Self::of_environment(environment, set_later);
        for of in &of {
            effective.add(read, &format!(".env.{of}.local"));
        }
        effective.add(read, ".env.local");
        for of in &of {
            effective.add(read, &format!(".env.{of}"));
        }
        effective.add(read, ".env");
        effective
    }

    fn of_environment(environment: &'a [(OsString, OsString)], set_later: &'a [OsString]) -> Self {
        let mut effective = Self {
            names: Vec::new(),
            values: HashMap::new(),
            set_later,
        };
        for (name, value) in environment {
            effective.set(name.as_bytes(), value.as_bytes(), None);
        }
        effective
    }

    /// Adds the variables of a file that are not set yet.
    fn add(&mut self, read: &'a [(String, Vec<Entry>)], file: &str) {
        let Some((file, entries)) = read.iter().find(|(own, _)| own == file) else {
            return;
        };
        for entry in entries {
            if let Some(value) = entry.values.first() {
                self.set(&entry.name, value, Some(file));
            }
        }
    }

    fn set(&mut self, name: &'a [u8], value: &'a [u8], file: Option<&'a str>) {
        if !self.values.contains_key(name) {
            self.names.push(name);
            self.values.insert(name, (value, file));
        }
    }
}

impl Variables for Effective<'_> {
    fn value(&self, name: &str) -> Option<(String, Option<String>)> {
        let (value, file) = self.values.get(name.as_bytes())?;
        let value = std::str::from_utf8(value).ok()?;
        Some((value.to_owned(), file.map(ToOwned::to_owned)))
    }

    fn is_of_user(&self, name: &str) -> bool {
        let is_of_environment = matches!(self.values.get(name.as_bytes()), Some((_, None)));
        is_of_environment && !self.set_later.iter().any(|later| later == name)
    }

    fn names(&self) -> Vec<&str> {
        let names = self.names.iter();
        names
            .filter_map(|name| std::str::from_utf8(name).ok())
            .collect()
    }
}
