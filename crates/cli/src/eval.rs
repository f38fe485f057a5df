//! `altair eval`: turns arguments into a request, and a result into an exit code.

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use altair_engine::answer::{self, Answer};
use altair_engine::arguments::{Arguments, Datum};
use altair_engine::audit::Actor;
use altair_engine::guards::Selection;
use altair_engine::{Bounded, Database, EvalError, EvalRequest, Evaluator, MemoryLimit, Timeout};

use crate::args::{EvalArgs, ResultFormat, services};
use crate::exit::Exit;
use crate::failure::{Failure, reason};
use crate::host::Host;
use crate::human::{self, Theme};
use crate::progress::Progress;
use crate::root::Root;
use crate::{extension, json, output};

/// Evaluates and prints; the exit code says whether the run was clean.
///
/// # Errors
///
/// Wrong usage, and what keeps the child from starting.
pub fn run(args: Box<EvalArgs>, host: &Host) -> Result<Exit, Failure> {
    let (format, verbose) = (args.format, args.verbose);
    let root = Root::of(args.root.clone())?;
    root.check_to_run()?;
    let mut evaluator = evaluator(&args, host)?;
    if root.is_found {
        evaluator = evaluator.with_sockets_of_project_only();
    }
    let request = request(args, &root)?;
    let deadline = Duration::from_millis(request.timeout_ms().into());
    let evaluated = {
        // Dropped at its end, so the progress line is gone before anything else is printed.
        let mut progress = Progress::on_stderr(deadline);
        evaluator.evaluate(&request, &mut progress)
    };
    let result = evaluated.map_err(|error| match error {
        EvalError::InvalidRequest(message) | EvalError::Launch(message) => Failure::new(message),
        EvalError::Interrupted => Failure::new("the evaluation was interrupted"),
    })?;
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

fn evaluator(args: &EvalArgs, host: &Host) -> Result<Evaluator, Failure> {
    let evaluator = Evaluator::new(host.php(&args.php), Actor::Cli)
        .with_guards(Selection::new(args.require.clone(), Vec::new()));
    Ok(match extension::find(host)? {
        Some(path) => evaluator.with_extension(path),
        None => evaluator,
    })
}

fn request(args: Box<EvalArgs>, project: &Root) -> Result<EvalRequest, Failure> {
    // All of both is named: what is new has to be placed.
    let EvalArgs {
        snippet: given,
        file,
        timeout_ms,
        memory_mb,
        writes,
        rollback,
        database,
        queries,
        arg,
        arg_json,
        depth,
        max_items,
        max_string,
        diff,
        network,
        unconfined,
        bootstrap,
        root: _, // `project`
        php: _,
        read,
        service,
        cold: _, // each run of the command is
        no_redact,
        require: _,
        format: _,
        verbose: _,
    } = *args;
    let readable = read.iter().map(|path| absolute(path));
    Ok(EvalRequest {
        snippet: snippet(given, file.as_deref())?,
        project_root: project.path.clone(),
        timeout: Timeout::clamped(timeout_ms),
        memory_limit: MemoryLimit::clamped(memory_mb),
        allow_writes: writes,
        allow_network: network,
        unconfined,
        bootstrap,
        services: services(service),
        readable_paths: readable.collect::<Result<_, _>>()?,
        redact: !no_redact,
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

/// A path as the child sees it, whose working directory is the project.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| {
        let (shown, why) = (path.display(), reason(&error));
        Failure::new(format!("--read={shown} cannot be used: {why}"))
    })
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
