//! What allows something that a run was refused, as an agent can act on it: the engine names flags
//! of the command line, which an agent does not have.

use serde_json::Value;

/// Names the arguments of the tool instead of flags, in `diagnostics.blocked`. What no call can have
/// is null.
pub(super) fn name_arguments(diagnostics: &mut Value) {
    let blocked = diagnostics.get_mut("blocked").and_then(Value::as_array_mut);
    let lifts = blocked.into_iter().flatten();
    for lift in lifts.filter_map(|entry| entry.get_mut("lift")) {
        *lift = lift.as_str().and_then(argument).into();
    }
}

fn argument(flag: &str) -> Option<String> {
    let (flag, value) = flag.split_once('=').unwrap_or((flag, ""));
    match flag {
        "--writes" => Some("allow_writes".to_owned()),
        "--network" => Some("allow_network".to_owned()),
        "--rollback" => Some("database: rollback".to_owned()),
        // A socket has no address: the open network does not reach it.
        "--service" if value.starts_with('/') => Some(format!(
            "the person who runs the server can name {value} as a service"
        )),
        "--service" => Some(format!(
            "allow_network, or the person who runs the server can name {value} as a service"
        )),
        "--env" => Some(format!(
            "the person who runs the server can pass {value} on (--env={value})"
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
            (
                "--env=A_TOKEN",
                Some("the person who runs the server can pass A_TOKEN on (--env=A_TOKEN)"),
            ),
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

    #[test]
    fn the_arguments_are_those_of_the_table_of_options() {
        let table = include_str!("../../options.json");
        for flag in ["--writes", "--network", "--rollback"] {
            let lift = argument(flag).unwrap_or_default();
            let name = lift.split(':').next().unwrap_or_default();
            assert!(table.contains(&format!(r#""mcp": "{name}""#)), "{lift}");
        }
    }
}
