//! `altair eval`: turns arguments into a request, and a result into an exit code.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use altair_engine::answer::{self, Answer};
use altair_engine::arguments::{Arguments, Datum};
use altair_engine::{Bounded, Database, EvalRequest};

use crate::args::{EvalArgs, ResultFormat};
use crate::exit::Exit;
use crate::failure::{Failure, reason};
use crate::host::Host;
use crate::human::{self, Theme};
use crate::progress::Progress;
use crate::root::Root;
use crate::{application, json, output, pool};

/// Evaluates and prints; the exit code says whether the run was clean.
///
/// # Errors
///
/// Wrong usage, and what keeps the child from starting.
pub fn run(args: Box<EvalArgs>, host: &Host) -> Result<Exit, Failure> {
    let (format, verbose) = (args.format, args.verbose);
    let root = Root::of(args.application.root.clone())?;
    root.check_to_run()?;
    let mut evaluator = application::evaluator(&args.application, host)?;
    if root.is_found {
        evaluator = evaluator.with_sockets_of_project_only();
    }
    if !args.cold {
        evaluator = evaluator.with_elsewhere(Arc::new(pool::client().once()));
    }
    let request = request(args, &root)?;
    let deadline = Duration::from_millis(request.timeout_ms().into());
    let evaluated = {
        // Dropped at its end, so the progress line is gone before anything else is printed.
        let mut progress = Progress::on_stderr(deadline);
        evaluator.evaluate(&request, &mut progress)
    };
    let result = evaluated.map_err(|error| Failure::new(error.to_string()))?;
    root.show();
    let text = match format {
        ResultFormat::Human => human::render(&result, Theme::new(output::takes_color())),
        ResultFormat::Json => {
            json::result(&answer::public(&result, verbose), output::is_terminal())
        }
        ResultFormat::Compact => {
            let answer = Answer {
                verbose,
                ..Answer::default()
            };
            json::result(&answer.of(&result), output::is_terminal())
        }
    };
    // A reader that has closed the pipe does not change how the run ended.
    output::print(text.as_bytes())?;
    Ok(if result.ok() {
        Exit::Clean
    } else {
        Exit::NotClean
    })
}

fn request(args: Box<EvalArgs>, project: &Root) -> Result<EvalRequest, Failure> {
    // All of it is named: what is new has to be placed.
    let EvalArgs {
        snippet: given,
        file,
        application,
        rollback,
        database,
        queries,
        arg,
        arg_json,
        depth,
        max_items,
        max_string,
        diff,
        unconfined,
        cold: _, // the evaluator's
        format: _,
        verbose: _,
    } = *args;
    let snippet = snippet(given, file.as_deref())?;
    Ok(EvalRequest {
        unconfined,
        database: match (rollback, database) {
            (true, _) => Some(Database::Rollback),
            (false, Some(name)) => Database::named(&name),
            (false, None) => None,
        },
        queries,
        arguments: arguments(arg, arg_json)?,
        depth: depth.map(Bounded::clamped),
        max_items: max_items.map(Bounded::clamped),
        max_string: max_string.map(Bounded::clamped),
        diff,
        ..application::request(application, snippet, project)?
    })
}

/// The variables of the snippet: texts as they are, and JSON.
fn arguments(texts: Vec<OsString>, json: Vec<String>) -> Result<Arguments, Failure> {
    let mut given = Vec::new();
    for argument in texts {
        let bytes = argument.into_vec();
        let split = bytes.iter().position(|b| *b == b'=').ok_or_else(|| {
            let shown = String::from_utf8_lossy(&bytes);
            Failure::new(format!("--arg={shown} has no value: write --arg name=text"))
        })?;
        let name = String::from_utf8(bytes[..split].to_vec()).map_err(|error| {
            let shown = String::from_utf8_lossy(error.as_bytes());
            Failure::new(format!(
                "--arg {shown}=… has a name that is not UTF-8, which no variable can have"
            ))
        })?;
        given.push((name, Datum::Bytes(bytes[split + 1..].to_vec())));
    }
    for argument in json {
        let (name, value) = argument.split_once('=').ok_or_else(|| {
            Failure::new(format!(
                "--arg-json={argument} has no value: write --arg-json name=json"
            ))
        })?;
        let value: serde_json::Value = serde_json::from_str(value).map_err(|error| {
            Failure::new(format!(
                "the value of --arg-json {name}=… is no JSON: {error}"
            ))
        })?;
        given.push((name.to_owned(), value.into()));
    }
    Arguments::new(given).map_err(|error| Failure::new(error.to_string()))
}

fn snippet(argument: Option<OsString>, file: Option<&Path>) -> Result<Vec<u8>, Failure> {
    match (argument, file) {
        (Some(_), Some(_)) => Err(Failure::new(
            "both a snippet and --file are given; leave one of them out",
        )),
        (None, None) => Err(Failure::new(
            "nothing to run: give a snippet, as in altair eval 'return 1;', or --file=<path>",
        )),
        (Some(snippet), None) => Ok(snippet.into_vec()),
        (None, Some(path)) => read(path).map_err(|error| {
            let (shown, why) = (path.display(), reason(&error));
            Failure::new(format!(
                "cannot read the snippet from --file={shown}: {why}"
            ))
        }),
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut snippet = Vec::new();
        io::stdin().lock().read_to_end(&mut snippet)?;
        return Ok(snippet);
    }
    std::fs::read(path)
}
