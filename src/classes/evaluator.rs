//! `Altair\Eval\Evaluator`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use altair_engine::audit::Actor;
use altair_engine::programs::{Programs, Unconfined};
use altair_engine::{
    Answered, EvalError, EvalRequest, Evaluator, Observer, Pool, beyond_system, php_binary,
};
use altair_pool::Client;
use altair_sandbox::Stream;
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ExecuteData;

use super::eval_request::{self, boolean};
use super::eval_result;
use super::evaluations::Evaluations;
use super::exceptions::{throw, throw_error};
use super::run_threads::{Crew, Event, lost};
use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::host::{self, Wants};
use crate::zend::object::{self, init, property, this};
use crate::zend::params::{Arg, parse};
use crate::zend::{Bailout, json, startup};
use crate::{settings, started_with};

static CLASS: Slot = Slot::new();

/// The `PHP_INI_SCAN_DIR` that this process was started with. The application may change it later.
static INI_SCAN_DIR: OnceLock<Option<OsString>> = OnceLock::new();

/// Registers the class.
pub fn register() {
    INI_SCAN_DIR.get_or_init(|| std::env::var_os("PHP_INI_SCAN_DIR"));
    // Now, since the path may be relative, and the application may change the directory.
    extension_path();
    Class::readonly("Altair\\Eval\\Evaluator")
        .not_serializable()
        .held(freed)
        .property("phpBinary", Type::STRING)
        .property("warm", Type::BOOL)
        .constructor(
            construct,
            vec![
                Param::optional("runner", Type::OBJECT.or_null(), "null"),
                Param::optional("builder", Type::OBJECT.or_null(), "null"),
                Param::optional("phpBinary", Type::STRING, "'php'"),
                Param::optional("warm", Type::BOOL.or_null(), "null"),
            ],
        )
        .method(
            "evaluate",
            evaluate,
            vec![
                Param::required("request", Type::class(eval_request::NAME)),
                Param::optional("onOutput", Type::CALLABLE.or_null(), "null"),
            ],
            Type::class(eval_result::NAME),
        )
        .method(
            "evaluateMany",
            evaluate_many,
            vec![
                Param::required("requests", Type::ITERABLE),
                Param::optional("concurrency", Type::INT, "0"),
            ],
            Type::class("Iterator"),
        )
        .register(&CLASS);
}

extern "C" fn construct(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        let mut binary = php_binary::DEFAULT.as_bytes();
        let mut warm = None;
        let mut args = [
            Arg::ObjectOrNull,
            Arg::ObjectOrNull,
            Arg::Bytes(&mut binary),
            Arg::BoolOrNull(&mut warm),
        ];
        if !parse(ex, 0, &mut args) {
            return Ok(());
        }
        if crate::child::is_child() {
            let message = "A snippet cannot evaluate: it already runs inside an evaluation.";
            throw(&EvalError::Launch(message.into()));
            return Ok(());
        }
        let binary = json::string(binary)?;
        let object = this(ex);
        if property(object, "phpBinary").is_some() {
            throw_error("Cannot modify readonly property Altair\\Eval\\Evaluator::$phpBinary");
            return Ok(());
        }
        init(object, "phpBinary", binary);
        init(object, "warm", boolean(warm.unwrap_or_else(settings::warm)));
        Ok(())
    });
}

thread_local! {
    /// The templates of each object, by its handle.
    static POOLS: RefCell<HashMap<u32, Arc<Pool>>> = RefCell::default();
}

/// Ends the templates of a freed object.
extern "C" fn freed(handle: u32) {
    // Removed before they are dropped, since ending them takes a moment. At the end of the thread,
    // all templates end.
    let pool = POOLS.try_with(|pools| pools.borrow_mut().remove(&handle));
    drop(pool);
}

/// The templates of an object. In a fork of the process, a new and empty pool.
fn pool(handle: u32) -> Arc<Pool> {
    POOLS.with_borrow_mut(|pools| {
        let pool = pools.entry(handle).or_default();
        if !pool.is_own() {
            *pool = Arc::default();
        }
        Arc::clone(pool)
    })
}

/// The engine's evaluator for an object. `None` with a pending exception if the object was never
/// constructed, if an ini setting names an unknown guard, or if its PHP may not be started.
fn engine(ex: &mut ExecuteData) -> Option<Evaluator> {
    let object = this(ex);
    if property(object, "phpBinary").is_none() {
        throw_error("The Evaluator was never constructed");
        return None;
    }
    let mut evaluator = match host_evaluator(object::bytes(object, "phpBinary")) {
        Ok(evaluator) => evaluator,
        Err(error) => {
            throw(&error);
            return None;
        }
    };
    if property(object, "warm").is_some_and(Zval::is_true) {
        evaluator = evaluator
            .with_pool(pool(object.handle))
            .with_idle(settings::idle())
            .with_elsewhere(Arc::new(Client::new(
                settings::pool(),
                extension_path().cloned(),
                started_with::environment(),
            )));
    }
    Some(evaluator)
}

/// An evaluator with what this process knows: its PHP, its extension, its guards.
///
/// # Errors
///
/// An ini setting names an unknown guard, or `php` another PHP than may be started.
pub fn host_evaluator(php: &[u8]) -> Result<Evaluator, EvalError> {
    let programs = settings::programs();
    let evaluator = Evaluator::new(permitted(OsStr::from_bytes(php), programs)?, Actor::Script)
        .with_programs(programs)
        .with_started_with(started_with::environment())
        .with_running(host::running_binary())
        .with_own_programs(startup::own_programs())
        .with_ini_scan_dir(INI_SCAN_DIR.get().cloned().flatten())
        .with_known_paths(known_paths())
        .with_guards(settings::selection()?);
    Ok(match extension_path() {
        Some(path) => evaluator.with_extension(path.clone()),
        None => evaluator,
    })
}

/// The name of the PHP that a child is. A host that may start only confined programs has its own alone,
/// under whatever name: a child takes the last of its guards itself.
///
/// # Errors
///
/// It names another one, or none.
fn permitted(php: &OsStr, programs: Programs) -> Result<&OsStr, EvalError> {
    let own = OsStr::new(php_binary::DEFAULT);
    let (Err(forbidden), true) = (programs.permit(Unconfined::OtherPhp), php != own) else {
        return Ok(php);
    };
    let file = |name| -> Result<_, EvalError> {
        let found = php_binary::resolve(
            name,
            host::running_binary().as_deref(),
            started_with::value("PATH").as_deref(),
            startup::own_programs().as_deref(),
        )?;
        let file = found.metadata().ok();
        Ok(file.map(|file| (file.dev(), file.ino())))
    };
    match (file(own)?, file(php)?) {
        // By its own name: another path may lead elsewhere by now.
        (Some(own_file), Some(file)) if own_file == file => Ok(own),
        _ => Err(forbidden.into()),
    }
}

/// What a child must be shown of this PHP, beside the extension.
fn known_paths() -> Arc<[PathBuf]> {
    static PATHS: OnceLock<Arc<[PathBuf]>> = OnceLock::new();
    let paths = PATHS.get_or_init(|| {
        let mut paths = beyond_system(startup::paths());
        paths.retain(|path| Some(path) != extension_path());
        paths.into()
    });
    Arc::clone(paths)
}

/// The file this extension was loaded from.
fn extension_path() -> Option<&'static PathBuf> {
    static PATH: OnceLock<Option<PathBuf>> = OnceLock::new();
    PATH.get_or_init(host::own_file).as_ref()
}

extern "C" fn evaluate(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let (mut request, mut on_output) = (None, None);
        let mut args = [
            Arg::Of(eval_request::class(), &mut request),
            Arg::CallableOrNull(&mut on_output),
        ];
        if !parse(ex, 1, &mut args) {
            return Ok(());
        }
        let Some(evaluator) = engine(ex) else {
            return Ok(());
        };
        let Some(request) = request.map(eval_request::read).transpose()?.flatten() else {
            return Ok(());
        };
        match on_output {
            None => finish(run(&evaluator, &request), returned),
            Some(on_output) => finish(run_watched(&evaluator, &request, on_output), returned),
        }
    });
}

/// The outcome of a call that waits for a run.
pub type Waited = Result<Result<Answered, EvalError>, Wants>;

/// Returns the result of a run to PHP, or throws.
pub fn finish(waited: Waited, returned: &mut Zval) -> Result<(), Bailout> {
    match waited {
        Ok(Ok(Answered::Here(result))) => *returned = eval_result::write(&result)?,
        Ok(Ok(Answered::Elsewhere(told))) => {
            if let Some(result) = eval_result::write_told(&told)? {
                *returned = result;
            }
        }
        Ok(Err(error)) => throw(&error),
        Err(Wants::Throw) => {}
        Err(Wants::Bailout) => return Err(Bailout),
    }
    Ok(())
}

/// Lets the host's own code interrupt a run: signal handlers, `max_execution_time`.
struct Interruptible(Result<(), Wants>);

impl Observer for Interruptible {
    fn listens(&self) -> bool {
        false
    }

    fn output(&mut self, _: Stream, _: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn tick(&mut self) -> ControlFlow<()> {
        self.0 = host::interrupts();
        if self.0.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn run(evaluator: &Evaluator, request: &EvalRequest) -> Waited {
    let mut observer = Interruptible(Ok(()));
    let result = evaluator.answer(request, &mut observer);
    observer.0.map(|()| result)
}

/// Runs on a thread of its own, so that a slow callback delays neither the deadline nor the
/// reading of output.
fn run_watched(evaluator: &Evaluator, request: &EvalRequest, on_output: &Zval) -> Waited {
    let prepared = match evaluator.prepare(request) {
        Ok(prepared) => prepared,
        Err(error) => return Ok(Err(error)),
    };
    let started = Crew::new(1, true).and_then(|mut crew| {
        crew.start(0, prepared)?;
        Ok(crew)
    });
    let mut crew = match started {
        Ok(crew) => crew,
        Err(error) => {
            return Ok(Err(EvalError::Launch(format!(
                "No thread could be started: {error}."
            ))));
        }
    };
    loop {
        match crew.next()? {
            Some((_, Event::Output(stream, chunk))) => {
                let kind: &[u8] = if stream == Stream::Stdout {
                    b"out"
                } else {
                    b"err"
                };
                host::call(on_output, kind, &chunk)?;
            }
            Some((_, Event::Done(result))) => {
                return Ok(result.map(|result| Answered::Here(Box::new(result))));
            }
            None => return Ok(Err(lost())),
        }
    }
}

extern "C" fn evaluate_many(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let (mut requests, mut concurrency) = (None, 0_i64);
        if !parse(
            ex,
            1,
            &mut [Arg::Iterable(&mut requests), Arg::Int(&mut concurrency)],
        ) {
            return Ok(());
        }
        let Some(evaluator) = engine(ex) else {
            return Ok(());
        };
        let Some(requests) = requests else {
            return Ok(());
        };
        let concurrency = match usize::try_from(concurrency) {
            Ok(0) => std::thread::available_parallelism().map_or(1, usize::from),
            Ok(n) => n,
            Err(_) => {
                host::throw_value_error(
                    "Altair\\Eval\\Evaluator::evaluateMany(): Argument #2 ($concurrency) must be at least 0",
                );
                return Ok(());
            }
        };
        *returned = Evaluations::over(evaluator, requests, concurrency)?;
        Ok(())
    });
}
