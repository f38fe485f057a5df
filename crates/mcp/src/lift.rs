//! What allows something that a run was refused, as an agent can act on it: the engine names flags
//! of the command line, which an agent has none of.

use altair_engine::Blocked;

use crate::tool::{DATABASE, NETWORK, WRITES};

/// Names the arguments of the tool instead of flags. What no call can have has nothing that lifts
/// it.
pub fn name_arguments(blocked: &mut [Blocked]) {
    for entry in blocked {
        entry.lift = entry.lift.take().and_then(|flag| argument(&flag));
    }
}

fn argument(flag: &str) -> Option<String> {
    let (flag, value) = flag.split_once('=').unwrap_or((flag, ""));
    match flag {
        "--writes" => Some(WRITES.to_owned()),
        "--network" => Some(NETWORK.to_owned()),
        "--rollback" => Some(format!("{DATABASE}: rollback")),
        // A socket has no address: the open network does not reach it.
        "--service" if value.starts_with('/') => Some(format!(
            "the person who runs the server can name {value} as a service"
        )),
        "--service" => Some(format!(
            "{NETWORK}, or the person who runs the server can name {value} as a service"
        )),
        // --read, --unsafe
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_flag_of_the_command_line_is_left() {
        for (flag, lift) in [
            ("--writes", Some("allow_writes")),
            ("--network", Some("allow_network")),
            ("--rollback", Some("database: rollback")),
            ("--unsafe", None),
            ("--read=/etc/shadow", None),
            (
                "--service=127.0.0.1:80",
                Some(
                    "allow_network, or the person who runs the server can name 127.0.0.1:80 as a service",
                ),
            ),
            (
                "--service=/run/x.sock",
                Some("the person who runs the server can name /run/x.sock as a service"),
            ),
        ] {
            assert_eq!(argument(flag).as_deref(), lift, "{flag}");
        }
    }
}
