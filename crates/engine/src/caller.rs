//! Who has started an isolated PHP, and by which names that caller can allow what is refused there.

use serde::{Deserialize, Serialize};

/// Who has started an isolated PHP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Caller {
    /// PHP code, without an application: `new Runtime()`.
    Constructor,
    /// PHP code, with the application of a request: `Runtime::fromRequest()`.
    Request,
    /// The command line: `altair shell`.
    Session,
}

impl Caller {
    /// Whether the application is booted.
    #[must_use]
    pub fn boots(self) -> bool {
        match self {
            Self::Constructor => false,
            Self::Request | Self::Session => true,
        }
    }

    /// What this caller has in place of a flag of `altair eval`, which refusals name; `None` if it
    /// has nothing that allows the same.
    fn way(self, flag: &str) -> Option<String> {
        let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
        let list = |parameter: &str| format!("{parameter}: ['{}']", quoted(value));
        Some(match (self, name) {
            (Self::Session, "--unsafe" | "--rollback") | (Self::Constructor, "--rollback") => {
                return None;
            }
            (Self::Session, _) => flag.into(),
            (_, "--service") => list("services"),
            (Self::Constructor, "--read") => format!("root: '{}'", quoted(value)),
            (Self::Constructor, _) => "guarded: false".into(),
            (Self::Request, "--read") => list("readablePaths"),
            (Self::Request, "--writes") => "allowWrites: true".into(),
            (Self::Request, "--network") => "allowNetwork: true".into(),
            (Self::Request, "--rollback") => "database: 'rollback'".into(),
            (Self::Request, "--unsafe") => "unsafe: true".into(),
            (Self::Request, "--env") => list("env"),
            (Self::Request, _) => return None,
        })
    }
}

/// What lifts all guards, by any caller's name.
const LIFT_ALL: &[&str] = &["--unsafe", "unsafe: true", "guarded: false"];

/// What allows something for which refusals name a flag of `altair eval`: in the words of the caller of
/// an isolated PHP, if it is one, and nothing that a host refuses which makes no unsafe runs.
#[must_use]
pub fn way(caller: Option<Caller>, unsafe_runs: bool, flag: &str) -> Option<String> {
    let way = match caller {
        Some(caller) => caller.way(flag)?,
        None => flag.into(),
    };
    (unsafe_runs || !LIFT_ALL.contains(&way.as_str())).then_some(way)
}

/// A text between single quotes of PHP.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_told_what_it_has() {
        let table = [
            (
                "--unsafe",
                [Some("guarded: false"), Some("unsafe: true"), None],
            ),
            ("--rollback", [None, Some("database: 'rollback'"), None]),
            (
                "--writes",
                [
                    Some("guarded: false"),
                    Some("allowWrites: true"),
                    Some("--writes"),
                ],
            ),
            (
                "--network",
                [
                    Some("guarded: false"),
                    Some("allowNetwork: true"),
                    Some("--network"),
                ],
            ),
            (
                "--service=db:3306",
                [
                    Some("services: ['db:3306']"),
                    Some("services: ['db:3306']"),
                    Some("--service=db:3306"),
                ],
            ),
            (
                "--env=A_TOKEN",
                [
                    Some("guarded: false"),
                    Some("env: ['A_TOKEN']"),
                    Some("--env=A_TOKEN"),
                ],
            ),
            (
                "--read=/it's",
                [
                    Some("root: '/it\\'s'"),
                    Some("readablePaths: ['/it\\'s']"),
                    Some("--read=/it's"),
                ],
            ),
        ];
        for (flag, ways) in table {
            let callers = [Caller::Constructor, Caller::Request, Caller::Session];
            for (caller, way) in callers.into_iter().zip(ways) {
                assert_eq!(caller.way(flag).as_deref(), way, "{caller:?} {flag}");
            }
        }
    }
}
