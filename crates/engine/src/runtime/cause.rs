//! Why an entry was cut short, and why a runtime has ended, in words for the user.

use std::time::Duration;

use altair_sandbox::{Ended, Status};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::channel::Ending;
use crate::child_messages::ChildMessages;
use crate::encode::{read_exception, shorten};
use crate::result::{Location, Outcome};
use crate::{EvalResult, exit_codes};

/// Bytes of a cause to show.
const SHOWN: usize = 4096;

/// A text of the runtime's, as it is shown.
pub(super) fn shown(text: &str) -> String {
    shorten(text, SHOWN)
}

/// Why an entry was cut short.
pub(super) fn of_ending(ending: &Ending) -> String {
    match ending {
        Ending::Returned(_) => "it returned".into(),
        Ending::Threw(exception) => match read_exception(exception) {
            Some(exception) => of_exception(&exception),
            None => "an exception left it".into(),
        },
        Ending::Exited(status) => format!("it called exit({status})"),
        Ending::Fatal { message, location } => at(&shown(message), Some(location)),
        Ending::OutOfMemory { message, location } => at(&shown(message), location.as_ref()),
        Ending::BootFailed { message, exception } => {
            let exception = exception.as_deref().and_then(read_exception);
            let thrown = exception.map(|thrown| format!(" {}", of_exception(&thrown)));
            format!("{}{}", shown(message), thrown.unwrap_or_default())
        }
    }
}

/// An exception in its public shape, in one line.
fn of_exception(exception: &Value) -> String {
    let text = |key| {
        exception
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let line = exception.get("line").and_then(Value::as_u64).unwrap_or(0);
    let thrown = format!("{}: {}", text("class"), text("message"));
    format!("{} in {}:{line}", shown(&thrown), text("file"))
}

fn at(message: &str, location: Option<&Location>) -> String {
    match location {
        Some(location) if !location.file.is_empty() => {
            let message = message.trim_end_matches('.');
            format!("{message} in {}:{}", location.file, location.line)
        }
        _ => message.to_owned(),
    }
}

/// Why a runtime has ended. The deadline comes first, then the kernel's status, then what the
/// runtime has reported itself.
pub(super) fn of_end(ended: &Ended, heard: &ChildMessages, timeout: Option<Duration>) -> String {
    if ended.interrupted {
        return "its caller was interrupted while it waited".into();
    }
    if ended.timed_out {
        let location = heard.stopped.as_ref().and_then(|(_, at, _)| at.as_ref());
        return passed(timeout.unwrap_or_default(), location);
    }
    match (ended.status, &heard.report) {
        (Status::Signalled(signal), _) => {
            let name = Signal::try_from(signal).map_or("", Signal::as_str);
            match name {
                "" => format!("it was ended by signal {signal}"),
                name => format!("it was ended by signal {signal} ({name})"),
            }
        }
        (Status::Exited(code), Some(report))
            if report.ending.exit_code() == code || code == exit_codes::EXHAUSTED =>
        {
            of_ending(&report.ending)
        }
        (Status::Exited(code), _) => match &heard.unable {
            Some(why) => why.clone(),
            None => format!("it ended with status {code}"),
        },
    }
}

/// That a deadline has passed.
fn passed(timeout: Duration, location: Option<&Location>) -> String {
    let passed = format!("the deadline of {} ms passed", timeout.as_millis());
    at(&passed, location)
}

/// Why a start did not end as it should, in one line.
pub(super) fn words(result: &EvalResult, timeout: Duration) -> String {
    if result.timed_out {
        return passed(timeout, result.diagnostics.location.as_ref());
    }
    let message = result.diagnostics.message.as_deref().map(shown);
    let exception = result.exception.as_ref().map(of_exception);
    match (result.diagnostics.outcome, message, exception) {
        (Outcome::Exited, ..) => format!("it called exit({})", result.exit_code),
        (_, Some(message), Some(exception)) => format!("{message} {exception}"),
        (_, Some(text), None) | (_, None, Some(text)) => {
            at(&text, result.diagnostics.location.as_ref())
        }
        (_, None, None) => format!("it ended with status {}", result.exit_code),
    }
}
