//! From the options about the application to an evaluator and a request.

use std::path::{Path, PathBuf};

use altair_engine::arguments::Arguments;
use altair_engine::audit::Actor;
use altair_engine::guards::Selection;
use altair_engine::{EvalRequest, Evaluator, MemoryLimit, Timeout};

use crate::args::{Application, services};
use crate::extension;
use crate::failure::{Failure, reason};
use crate::host::Host;
use crate::root::Root;

/// What evaluates for this application.
///
/// # Errors
///
/// If the extension is named and is none.
pub fn evaluator(application: &Application, host: &Host) -> Result<Evaluator, Failure> {
    let selection = Selection::new(application.require.clone(), Vec::new());
    let evaluator = Evaluator::new(host.php(&application.php), Actor::Cli)
        .with_guards(selection.with_unsafe_runs(host.unsafe_runs));
    Ok(match extension::find(host)? {
        Some(path) => evaluator.with_extension(path),
        None => evaluator,
    })
}

/// A request to run `snippet` against this application; what no option of it says is as by default.
///
/// # Errors
///
/// If a path cannot be made absolute.
pub fn request(
    application: Application,
    snippet: Vec<u8>,
    project: &Root,
) -> Result<EvalRequest, Failure> {
    // All of both is named: what is new has to be placed.
    let Application {
        timeout_ms,
        memory_mb,
        writes,
        network,
        bootstrap,
        root: _, // `project`
        php: _,
        read,
        service,
        env,
        no_redact,
        require: _,
    } = application;
    let readable = read.iter().map(|path| absolute(path));
    Ok(EvalRequest {
        snippet,
        project_root: project.path.clone(),
        timeout: Timeout::clamped(timeout_ms),
        memory_limit: MemoryLimit::clamped(memory_mb),
        allow_writes: writes,
        allow_network: network,
        unconfined: false,
        bootstrap,
        services: services(service),
        readable_paths: readable.collect::<Result<_, _>>()?,
        redact: !no_redact,
        database: None,
        queries: false,
        arguments: Arguments::default(),
        depth: None,
        max_items: None,
        max_string: None,
        diff: false,
        env,
    })
}

/// A path as the child sees it, whose working directory is the project.
fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| {
        let (shown, why) = (path.display(), reason(&error));
        Failure::new(format!("--read={shown} cannot be used: {why}"))
    })
}
