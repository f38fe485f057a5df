//! Describes variables that a run looked for, and that its host has and withheld.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::environment::{Filtered, Withheld};
use crate::guards::Guard;
use crate::result::Blocked;

/// The entries for variables, in the order in which they were looked for. Of a terminal's and a
/// session's nothing is told: libraries ask for them to learn what a terminal can do, and there is none.
/// Nor of those for loaders, which no application uses.
pub(super) fn withheld(sought: &[Vec<u8>], given: &Filtered) -> impl Iterator<Item = Blocked> {
    sought.iter().filter_map(|name| {
        let mut withheld = given.withheld.iter();
        let (_, why) = withheld.find(|(own, _)| own == OsStr::from_bytes(name))?;
        let name = std::str::from_utf8(name).ok()?;
        let (what, lift) = match why {
            Withheld::Credential | Withheld::Hosts => ("", Some(format!("--env={name}"))),
            Withheld::CloudKey => (
                ": no run gets this key; the application reads its own from the project's .env",
                None,
            ),
            Withheld::Session | Withheld::Loader => return None,
        };
        Some(Blocked {
            what: format!("get the environment variable {name}{what}"),
            guard: Guard::Environment,
            lift,
        })
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_host_has_and_was_looked_for_is_told() {
        let given = Filtered {
            variables: Vec::new(),
            withheld: [
                ("GITHUB_TOKEN", Withheld::Credential),
                ("DATABASE_URL", Withheld::Hosts),
                ("AWS_SECRET_ACCESS_KEY", Withheld::CloudKey),
                ("TERM", Withheld::Session),
                ("LD_PRELOAD", Withheld::Loader),
                ("OPENAI_API_KEY", Withheld::Credential),
            ]
            .map(|(name, why)| (name.into(), why))
            .into(),
        };
        let sought = [
            "DATABASE_URL",
            "NOTHING",
            "TERM",
            "GITHUB_TOKEN",
            "LD_PRELOAD",
            "AWS_SECRET_ACCESS_KEY",
        ];
        let sought = sought.map(|name| name.as_bytes().to_vec());
        let told: Vec<_> = withheld(&sought, &given)
            .map(|entry| (entry.what, entry.lift))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "get the environment variable DATABASE_URL".to_owned(),
                    Some("--env=DATABASE_URL".to_owned())
                ),
                (
                    "get the environment variable GITHUB_TOKEN".to_owned(),
                    Some("--env=GITHUB_TOKEN".to_owned())
                ),
                (
                    "get the environment variable AWS_SECRET_ACCESS_KEY: no run gets this key; the application reads its own from the project's .env".to_owned(),
                    None
                ),
            ]
        );
    }
}
