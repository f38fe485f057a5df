//! The start of a runtime: what the caller's settings and rights mean for the engine.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;

use altair_engine::runtime::{Runtime, RuntimeStart, project_here};
use altair_engine::{EvalError, EvalRequest, Pool};

use super::caller::Caller;
use super::ini;
use crate::classes::evaluator::host_evaluator;
use crate::settings;
use crate::zend::host::Wants;

thread_local! {
    /// Templates for all runtimes of this process.
    static POOL: RefCell<Option<Arc<Pool>>> = const { RefCell::new(None) };
}

/// The templates of this process. A fork of the process that made them gets its own.
fn pool() -> Arc<Pool> {
    POOL.with_borrow_mut(|kept| {
        let own = kept.take().filter(|pool| pool.is_own()).unwrap_or_default();
        *kept = Some(Arc::clone(&own));
        own
    })
}

/// Starts an isolated PHP without an application.
pub(super) fn start_plain(
    settings: Vec<(String, Vec<u8>)>,
    is_guarded: bool,
    root: Option<PathBuf>,
    services: Vec<String>,
) -> Result<Result<Runtime, EvalError>, Wants> {
    let here = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let root = match (root, is_guarded) {
        (Some(root), _) => Some(root),
        (None, true) => project_here(&here),
        (None, false) => Some(here),
    };
    let mut request = EvalRequest::new("", "");
    request.unconfined = !is_guarded;
    request.services = Some(services);
    let memory_limit_bytes = ini::memory_limit(&settings);
    let (ini, scan_dir) = ini::of_host(settings);
    let start = RuntimeStart::Plain {
        ini,
        memory_limit_bytes,
        root,
    };
    start_runtime(&request, start, scan_dir)
}

pub(super) fn start_runtime(
    request: &EvalRequest,
    start: RuntimeStart,
    scan_dir: Option<std::ffi::OsString>,
) -> Result<Result<Runtime, EvalError>, Wants> {
    let mut evaluator = match host_evaluator(b"php") {
        Ok(evaluator) => evaluator,
        Err(error) => return Ok(Err(error)),
    };
    if scan_dir.is_some() {
        evaluator = evaluator.with_ini_scan_dir(scan_dir);
    }
    if settings::warm() {
        evaluator = evaluator.with_pool(pool());
    }
    let mut observer = Caller(Ok(()));
    let started = evaluator.start_runtime(request, start, &mut observer);
    observer.0.map(|()| started)
}
