//! Reports wrong usage in one line, condensed from `clap`'s paragraph.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::Cli;
use crate::exit::Exit;
use crate::failure::Failure;

/// Prints help or the version if `error` stands for them, otherwise one line about what is wrong.
/// `arguments` are those that could not be parsed.
pub fn report(error: &clap::Error, arguments: &[OsString]) -> Exit {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A reader that has closed the pipe, as after `| head -1`, has seen enough.
            let _ = error.print();
            if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Clean
            }
        }
        _ => Failure::new(condense(error, arguments)).report(),
    }
}

/// What is wrong, a suggestion, and where to read more.
fn condense(error: &clap::Error, arguments: &[OsString]) -> String {
    let hint = match suggestion(error) {
        Some(meant) => format!("; did you mean '{meant}'?"),
        None => alternatives(error),
    };
    format!(
        "{}{hint} (see {} --help)",
        complaint(error),
        asked(arguments)
    )
}

fn complaint(error: &clap::Error) -> String {
    let argument = text(error, ContextKind::InvalidArg);
    match (error.kind(), argument) {
        (ErrorKind::UnknownArgument, Some(name)) if name.starts_with('-') => {
            format!("unknown option '{name}'")
        }
        (ErrorKind::UnknownArgument, Some(name)) => {
            format!("unexpected argument '{name}'; quote what belongs together")
        }
        (ErrorKind::InvalidSubcommand, _) => {
            let name = text(error, ContextKind::InvalidSubcommand).unwrap_or_default();
            format!("unknown command '{name}'")
        }
        (ErrorKind::MissingRequiredArgument, Some(name)) => format!("{name} is missing"),
        (ErrorKind::TooManyValues, Some(name)) => format!("'{name}' takes no value"),
        (ErrorKind::InvalidValue, Some(name)) => {
            match text(error, ContextKind::InvalidValue).filter(|value| !value.is_empty()) {
                Some(value) => format!("invalid value '{value}' for '{name}'"),
                None => format!("'{name}' needs a value"),
            }
        }
        _ => first_line(error),
    }
}

/// A hint at what would be accepted instead.
fn alternatives(error: &clap::Error) -> String {
    let values = strings(error, ContextKind::ValidValue).unwrap_or_default();
    match (error.kind(), text(error, ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, _) => "; to run PHP: altair eval '<snippet>'".into(),
        // Altair has no options with one dash, but an expression may start with one.
        (ErrorKind::UnknownArgument, Some(name))
            if name.starts_with('-') && !name.starts_with("--") =>
        {
            "; put -- before a snippet that starts with a dash".into()
        }
        _ if values.is_empty() => String::new(),
        _ => format!("; use one of: {}", values.join(", ")),
    }
}

/// The command that was asked for, if it exists: `altair eval`.
fn asked(arguments: &[OsString]) -> String {
    let first = arguments.get(1).and_then(|name| name.to_str());
    match first.and_then(|name| Some(Cli::command().find_subcommand(name)?.get_name().to_owned())) {
        Some(name) => format!("altair {name}"),
        None => "altair".into(),
    }
}

/// `clap`'s own first line, without its label.
fn first_line(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let line = rendered.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn suggestion(error: &clap::Error) -> Option<String> {
    // PHP where a command is expected is no slip of the pen.
    let is_word = |name: &str| {
        name.bytes()
            .all(|b| b.is_ascii_lowercase() || b":-".contains(&b))
    };
    if text(error, ContextKind::InvalidSubcommand).is_some_and(|name| !is_word(&name)) {
        return None;
    }
    [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ]
    .into_iter()
    // `clap` sorts suggestions from the least to the most similar.
    .find_map(|kind| strings(error, kind)?.pop())
}

/// The first value of `kind` in `error`.
fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    strings(error, kind)?.into_iter().next()
}

/// The values of `kind` in `error`, if any.
fn strings(error: &clap::Error, kind: ContextKind) -> Option<Vec<String>> {
    match error.get(kind)? {
        ContextValue::String(one) => Some(vec![one.clone()]),
        ContextValue::Strings(many) if !many.is_empty() => Some(many.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::args;

    fn condensed(arguments: &[&str]) -> String {
        let arguments: Vec<OsString> = std::iter::once("altair")
            .chain(arguments.iter().copied())
            .map(Into::into)
            .collect();
        condense(&args::parse(&arguments).unwrap_err(), &arguments)
    }

    #[test]
    fn a_slip_of_the_pen_gets_a_suggestion() {
        assert_eq!(
            condensed(&["eval", "--wirtes", "x"]),
            "unknown option '--wirtes'; did you mean '--writes'? (see altair eval --help)"
        );
        assert_eq!(
            condensed(&["evl", "x"]),
            "unknown command 'evl'; did you mean 'eval'? (see altair --help)"
        );
        assert_eq!(
            condensed(&["eval", "--format=jsn", "x"]),
            "invalid value 'jsn' for '--format <format>'; did you mean 'json'? (see altair eval --help)"
        );
    }

    #[test]
    fn what_would_be_right_is_named() {
        assert_eq!(
            condensed(&["events:tail", "--format=xml"]),
            "invalid value 'xml' for '--format <format>'; use one of: human, json (see altair events:tail --help)"
        );
        assert_eq!(
            condensed(&["eval", "--require=luck", "x"]),
            format!(
                "invalid value 'luck' for '--require <guard>'; use one of: {} (see altair eval --help)",
                altair_engine::guards::Guard::names().join(", ")
            )
        );
        assert_eq!(
            condensed(&["eval", "--timeout-ms=1.5", "x"]),
            "invalid value '1.5' for '--timeout-ms <n>': a whole number is needed (see altair eval --help)"
        );
        assert_eq!(
            condensed(&["eval", "-1 + 2"]),
            "unknown option '-1'; put -- before a snippet that starts with a dash (see altair eval --help)"
        );
        assert_eq!(
            condensed(&["eval", "return", "1;"]),
            "unexpected argument '1;'; quote what belongs together (see altair eval --help)"
        );
        assert_eq!(
            condensed(&["return 1;"]),
            "unknown command 'return 1;'; to run PHP: altair eval '<snippet>' (see altair --help)"
        );
    }

    #[test]
    fn what_is_missing_or_too_much_is_named() {
        assert_eq!(
            condensed(&["completions"]),
            "<shell> is missing (see altair completions --help)"
        );
        assert_eq!(
            condensed(&["eval", "--timeout-ms"]),
            "'--timeout-ms <n>' needs a value (see altair eval --help)"
        );
        assert_eq!(
            condensed(&["eval", "--writes=1", "x"]),
            "'--writes' takes no value (see altair eval --help)"
        );
    }
}
