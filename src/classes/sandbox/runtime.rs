//! `Altair\Sandbox\Runtime`: enter a closure in an isolated PHP. Also known as `sandbox\Runtime`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use altair_engine::runtime::{
    Entered, Entry, Runtime, RuntimeStart, Source, VALUE_MAX_BYTES, project_here,
};
use altair_engine::{EvalError, EvalRequest, MIN_MEMORY_MB, Observer, Pool, Silent};
use altair_sandbox::Stream;
use ext_php_rs::exception::PhpException;
use ext_php_rs::types::{ZendObject, Zval};
use ext_php_rs::zend::{ClassEntry, ExecuteData, ce};
use serde_json::Value;

use super::runtime_ini;
use crate::classes::evaluator::{host_evaluator, ini_flag};
use crate::classes::exceptions::throw as throw_evaluation;
use crate::classes::{eval_request, exceptions};
use crate::zend::by_value::{self, Unencodable};
use crate::zend::class::{Class, Handler, Param, Slot, Type};
use crate::zend::closure::{self, Refused};
use crate::zend::host::{self, Wants};
use crate::zend::object::{new_object, this};
use crate::zend::params::{self, Arg, parse};
use crate::zend::runtime::{memory_left, write};
use crate::zend::{Bailout, json};

/// The class.
pub const NAME: &str = "Altair\\Sandbox\\Runtime";
/// Its other name, which is a class of its own: a trace shows the name that was used.
const OTHER_NAME: &str = "sandbox\\Runtime";
const EXCEPTION: &str = "Altair\\Sandbox\\Exception";
const OTHER_EXCEPTION: &str = "sandbox\\Exception";

const WRONG_SETTINGS: &str = "optional configuration array expected";
const WRONG_ARGUMENTS: &str = "Closure, or Closure and args expected";

static CLASS: Slot = Slot::new();
static OTHER: Slot = Slot::new();
static FAILED: Slot = Slot::new();
static OTHER_FAILED: Slot = Slot::new();

/// Registers the classes.
pub fn register() {
    Class::extending_class(EXCEPTION, (ce::error_exception, "ErrorException")).register(&FAILED);
    let failed = (failed as fn() -> &'static ClassEntry, EXCEPTION);
    Class::extending_class(OTHER_EXCEPTION, failed).register(&OTHER_FAILED);
    let own: [Handler; 2] = [construct, from_request];
    let other: [Handler; 2] = [construct, other_from_request];
    for (name, slot, [construct, from_request]) in
        [(NAME, &CLASS, own), (OTHER_NAME, &OTHER, other)]
    {
        Class::new(name)
            .not_serializable()
            .held_alone(freed)
            .constructor(
                construct,
                vec![
                    Param::optional("ini", Type::ARRAY, "[]"),
                    Param::optional("guarded", Type::BOOL, "true"),
                    Param::optional("root", Type::STRING.or_null(), "null"),
                    Param::optional("services", Type::ARRAY, "[]"),
                ],
            )
            .static_method(
                "fromRequest",
                from_request,
                vec![Param::required("request", Type::class(eval_request::NAME))],
                Type::class(name),
            )
            .method(
                "enter",
                enter,
                vec![
                    Param::required("closure", Type::class("Closure")),
                    Param::optional("argv", Type::ARRAY, "[]"),
                    Param::optional("timeoutMs", Type::INT.or_null(), "null"),
                    Param::optional("memoryLimitMb", Type::INT.or_null(), "null"),
                ],
                Type::MIXED,
            )
            .method("close", close, vec![], Type::VOID)
            .method("fileChanges", file_changes, vec![], Type::ARRAY)
            .method("blocked", blocked, vec![], Type::ARRAY)
            .register(slot);
    }
}

fn failed() -> &'static ClassEntry {
    FAILED.get()
}

/// A runtime of an object.
enum Held {
    Resting(Box<Runtime>),
    /// It is being entered, further up in this thread.
    Entered,
    Closed,
}

thread_local! {
    /// The runtime of each object, by its handle.
    static RUNTIMES: RefCell<HashMap<u32, Held>> = RefCell::default();
    /// Templates for all of them.
    static POOL: RefCell<Option<Arc<Pool>>> = const { RefCell::new(None) };
}

/// Ends the runtime of a freed object.
extern "C" fn freed(handle: u32) {
    // Removed before it is dropped, since ending it takes a moment. At the end of the thread, all
    // are.
    let held = RUNTIMES.try_with(|runtimes| runtimes.borrow_mut().remove(&handle));
    if let Ok(Some(Held::Resting(mut runtime))) = held {
        runtime.close(&mut Silent);
    }
}

/// The templates of this process. A fork of the process that made them gets its own.
fn pool() -> Arc<Pool> {
    POOL.with_borrow_mut(|kept| {
        let own = kept.take().filter(|pool| pool.is_own()).unwrap_or_default();
        *kept = Some(Arc::clone(&own));
        own
    })
}

fn is_other(object: &ZendObject) -> bool {
    std::ptr::eq(object.ce, &raw const *OTHER.get())
}

/// Throws the exception of a class: `sandbox unusable`, and so on.
fn throw(is_other: bool, message: &str) {
    let class = match is_other {
        true => &OTHER_FAILED,
        false => &FAILED,
    };
    // A message cannot hold a NUL byte, and may show what the isolated PHP says.
    let message = message.replace('\0', "\\0");
    PhpException::new(message, 0, class.get()).throw();
}

/// Throws the `Error` of a closure or an argument that the rules forbid.
fn throw_rule(message: &str) {
    exceptions::throw_error(message);
}

/// Throws what became of a start.
fn throw_start(is_other: bool, error: &EvalError) {
    match error {
        EvalError::Launch(why) => throw(is_other, &format!("sandbox unusable: {why}")),
        EvalError::InvalidRequest(_) => throw_evaluation(error),
        EvalError::Interrupted if host::has_exception() => {}
        EvalError::Interrupted => throw(is_other, "sandbox unusable: its start was interrupted"),
    }
}

/// Whether a call has no more arguments than that; throws if it has.
fn has_at_most(ex: &mut ExecuteData, most: usize, message: &str) -> bool {
    let has = params::given(ex) <= most;
    if !has {
        throw(is_other(this(ex)), message);
    }
    has
}

/// Whether a runtime can be made in this process; throws if not.
fn may_be_made(is_other: bool) -> bool {
    let is_child = crate::child::is_child();
    if is_child {
        throw(is_other, "sandboxes cannot create sandboxes");
    }
    !is_child
}

extern "C" fn construct(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        let (mut ini, mut guarded, mut root, mut services) = (None, None, None, None);
        let mut args = [
            Arg::Value(&mut ini),
            Arg::Value(&mut guarded),
            Arg::Value(&mut root),
            Arg::Value(&mut services),
        ];
        if !has_at_most(ex, args.len(), WRONG_SETTINGS) || !parse(ex, 0, &mut args) {
            return Ok(());
        }
        let object = this(ex);
        let is_other = is_other(object);
        if !may_be_made(is_other) {
            return Ok(());
        }
        if RUNTIMES.with_borrow(|runtimes| runtimes.contains_key(&object.handle)) {
            throw(is_other, "sandbox unusable: it was made before");
            return Ok(());
        }
        let is_one_array = ini.is_none_or(Zval::is_array)
            && guarded.is_none_or(Zval::is_bool)
            && root.is_none_or(|root| root.is_null() || root.is_string())
            && services.is_none_or(Zval::is_array);
        if !is_one_array {
            throw(is_other, WRONG_SETTINGS);
            return Ok(());
        }
        let settings = match ini.map(runtime_ini::read).transpose()? {
            Some(Ok(settings)) => settings,
            Some(Err(message)) => {
                throw(is_other, &message);
                return Ok(());
            }
            None => Vec::new(),
        };
        if host::has_exception() {
            return Ok(()); // a setting's own __toString() has thrown
        }
        let is_guarded = guarded.is_none_or(Zval::is_true);
        let Some(services) = services.map_or(Some(Vec::new()), strings) else {
            throw(is_other, "services: a list of addresses expected");
            return Ok(());
        };
        let root = root
            .and_then(Zval::zend_str)
            .map(|root| path(root.as_bytes()));
        let made = start_plain(settings, is_guarded, root, services);
        keep(object.handle, is_other, made)
    });
}

/// Starts an isolated PHP without an application.
fn start_plain(
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
    let memory_limit_bytes = runtime_ini::memory_limit(&settings);
    let (ini, scan_dir) = runtime_ini::of_host(settings);
    let start = RuntimeStart::Plain {
        ini,
        memory_limit_bytes,
        root,
    };
    start_runtime(&request, start, scan_dir)
}

fn start_runtime(
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
    if ini_flag(c"altair_eval.warm") {
        evaluator = evaluator.with_pool(pool());
    }
    let mut observer = Caller(Ok(()));
    let started = evaluator.start_runtime(request, start, &mut observer);
    observer.0.map(|()| started)
}

/// Keeps the runtime of an object, or throws why there is none.
fn keep(
    handle: u32,
    is_other: bool,
    made: Result<Result<Runtime, EvalError>, Wants>,
) -> Result<(), Bailout> {
    match made {
        Ok(Ok(runtime)) => {
            let held = Held::Resting(Box::new(runtime));
            RUNTIMES.with_borrow_mut(|runtimes| runtimes.insert(handle, held));
        }
        Ok(Err(error)) => throw_start(is_other, &error),
        Err(Wants::Throw) => {}
        Err(Wants::Bailout) => return Err(Bailout),
    }
    Ok(())
}

extern "C" fn from_request(ex: &mut ExecuteData, returned: &mut Zval) {
    of_request(ex, returned, false);
}

extern "C" fn other_from_request(ex: &mut ExecuteData, returned: &mut Zval) {
    of_request(ex, returned, true);
}

fn of_request(ex: &mut ExecuteData, returned: &mut Zval, is_other: bool) {
    host::method(|| {
        let mut request = None;
        let mut args = [Arg::Of(eval_request::class(), &mut request)];
        if !parse(ex, 1, &mut args) || !may_be_made(is_other) {
            return Ok(());
        }
        let Some(request) = request.map(eval_request::read).transpose()?.flatten() else {
            return Ok(());
        };
        let made = start_runtime(&request, RuntimeStart::Application, None);
        let class = match is_other {
            true => &OTHER,
            false => &CLASS,
        };
        let object = new_object(class);
        let handle = object.object().map_or(0, |object| object.handle);
        keep(handle, is_other, made)?;
        if !host::has_exception() {
            *returned = object;
        }
        Ok(())
    });
}

/// The runtime of an object, for a call that is not made while it is entered. Throws where there is
/// none.
fn take(object: &ZendObject) -> Option<Box<Runtime>> {
    let held = RUNTIMES.with_borrow_mut(|runtimes| {
        let held = runtimes.get_mut(&object.handle)?;
        Some(std::mem::replace(held, Held::Entered))
    });
    let why = match held {
        Some(Held::Resting(runtime)) => return Some(runtime),
        Some(Held::Entered) => "it is being entered",
        Some(Held::Closed) => {
            put(object.handle, Held::Closed);
            "it was closed"
        }
        None => "it was never constructed",
    };
    throw(is_other(object), &format!("sandbox unusable: {why}"));
    None
}

fn put(handle: u32, held: Held) {
    // Where the object was freed meanwhile, nobody is left to use it.
    let _ = RUNTIMES.try_with(|runtimes| runtimes.borrow_mut().insert(handle, held));
}

extern "C" fn enter(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let (mut given, mut argv, mut timeout, mut memory) = (None, None, None, None);
        let mut args = [
            Arg::Value(&mut given),
            Arg::Value(&mut argv),
            Arg::IntOrNull(&mut timeout),
            Arg::IntOrNull(&mut memory),
        ];
        if !has_at_most(ex, args.len(), WRONG_ARGUMENTS) || !parse(ex, 0, &mut args) {
            return Ok(());
        }
        let object = this(ex);
        let is_other = is_other(object);
        let given = given
            .and_then(Zval::object)
            .filter(|given| closure::is_closure(given));
        let (Some(given), true) = (given, argv.is_none_or(Zval::is_array)) else {
            throw(is_other, WRONG_ARGUMENTS);
            return Ok(());
        };
        if !are_positive(&[("timeoutMs", timeout), ("memoryLimitMb", memory)]) {
            return Ok(());
        }
        let Some(mut runtime) = take(object) else {
            return Ok(());
        };
        let handle = object.handle;
        let entered = prepare(given, argv, timeout, memory, runtime.memory_limit_bytes())
            .map(|prepared| serve(&mut runtime, prepared));
        put(handle, Held::Resting(runtime));
        match entered {
            Ok(entered) => finish(is_other, entered, returned),
            Err(NotSent::Rule(message)) => {
                throw_rule(&message);
                Ok(())
            }
            Err(NotSent::Source(why)) => {
                throw(is_other, &why);
                Ok(())
            }
        }
    });
}

/// Throws a `ValueError` for a number that is not positive.
fn are_positive(numbers: &[(&str, Option<i64>)]) -> bool {
    for (index, (name, number)) in numbers.iter().enumerate() {
        if number.is_some_and(|number| number < 1) {
            host::throw_value_error(&format!(
                "{NAME}::enter(): Argument #{} (${name}) must be at least 1",
                index + 3
            ));
            return false;
        }
    }
    true
}

/// An entry that may be made.
struct Prepared {
    found: Arc<closure::Found>,
    arguments: Vec<u8>,
    timeout: Option<Duration>,
    memory_limit_bytes: Option<u64>,
    value_max_bytes: u64,
}

/// Why an entry may not be made.
enum NotSent {
    /// A rule of entry points forbids it.
    Rule(String),
    /// Its source cannot be sent.
    Source(String),
}

/// Checks a closure and its arguments, in the order of the contract. `memory_limit`: that of entries
/// that ask for none, in bytes.
fn prepare(
    given: &ZendObject,
    argv: Option<&Zval>,
    timeout: Option<i64>,
    memory: Option<i64>,
    memory_limit: u64,
) -> Result<Prepared, NotSent> {
    closure::check_types(given).map_err(NotSent::Rule)?;
    let memory_limit_bytes = memory.map(|mb| {
        let mb = u64::try_from(mb.max(MIN_MEMORY_MB)).unwrap_or(u64::MAX);
        mb.saturating_mul(1 << 20)
    });
    // What travels fits into the memory of both sides. An array that holds another many times does
    // not show its size, so that the limit also bounds the time it takes.
    let of_entry = memory_limit_bytes.unwrap_or(memory_limit);
    let value_max_bytes = memory_left()
        .unwrap_or(VALUE_MAX_BYTES)
        .min(of_entry)
        .min(VALUE_MAX_BYTES);
    let most = usize::try_from(value_max_bytes).unwrap_or(usize::MAX);
    let none = Zval::new();
    let arguments = match argv {
        Some(argv) => by_value::encode_arguments(argv, most).map_err(NotSent::of_argument)?,
        None => by_value::encode(&none, by_value::Objects::Refuse, most)
            .map_err(|why| NotSent::of_argument((0, why)))?,
    };
    let found = closure::find(given).map_err(|refused| match refused {
        Refused::Rule(message) => NotSent::Rule(message),
        Refused::Source(why) => NotSent::Source(why),
    })?;
    Ok(Prepared {
        found,
        arguments,
        timeout: timeout.map(|ms| Duration::from_millis(ms.unsigned_abs())),
        memory_limit_bytes,
        value_max_bytes,
    })
}

impl NotSent {
    fn of_argument((number, why): (usize, Unencodable)) -> Self {
        let what = match why {
            Unencodable::Object => "object",
            Unencodable::Resource => "resource",
            Unencodable::TooDeep => "nested too deeply, or in itself",
            Unencodable::TooLarge => "larger than the memory limit",
        };
        Self::Rule(format!(
            "illegal variable ({what}) passed to sandbox at argument {number}"
        ))
    }
}

/// What became of an entry: the engine's answer, or what the caller's own code wants.
type Served = Result<Result<Entered, EvalError>, Wants>;

fn serve(runtime: &mut Runtime, prepared: Prepared) -> Served {
    let found = &prepared.found;
    let entry = Entry {
        source: Source {
            name: &found.file,
            text: &found.source,
            short_tags: found.short_tags,
        },
        number: found.number,
        lines: found.lines,
        arguments: prepared.arguments,
        timeout: prepared.timeout,
        memory_limit_bytes: prepared.memory_limit_bytes,
        value_max_bytes: prepared.value_max_bytes,
    };
    let mut observer = Caller(Ok(()));
    let entered = runtime.enter(entry, &mut observer);
    observer.0.map(|()| entered)
}

/// Returns the value of an entry, or throws.
fn finish(is_other: bool, served: Served, returned: &mut Zval) -> Result<(), Bailout> {
    match served {
        Ok(Ok(Entered::Returned(value))) => {
            // A short value can need much memory, and who sends it may want to exhaust the caller's.
            let most = memory_left().unwrap_or(VALUE_MAX_BYTES);
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            match by_value::decode(&value, most) {
                Ok(value) => *returned = value,
                Err(by_value::Undecodable::Bailout) => return Err(Bailout),
                Err(by_value::Undecodable::Memory) => throw(
                    is_other,
                    "sandbox bailed out: its value is larger than the memory limits of the entry and the caller allow",
                ),
                Err(by_value::Undecodable::Malformed(_)) => {
                    throw(is_other, "sandbox bailed out: its value cannot be read");
                }
            }
        }
        Ok(Ok(Entered::CutShort(why) | Entered::Refused(why))) => {
            throw(is_other, &format!("sandbox bailed out: {why}"));
        }
        Ok(Ok(Entered::Ended(why))) => throw(is_other, &format!("sandbox unusable: {why}")),
        Ok(Err(error)) => throw_start(is_other, &error),
        Err(Wants::Throw) => {}
        Err(Wants::Bailout) => return Err(Bailout),
    }
    Ok(())
}

extern "C" fn close(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        if !parse(ex, 0, &mut []) {
            return Ok(());
        }
        let object = this(ex);
        let Some(mut runtime) = take(object) else {
            return Ok(());
        };
        put(object.handle, Held::Closed);
        let mut observer = Caller(Ok(()));
        runtime.close(&mut observer);
        match observer.0 {
            Err(Wants::Bailout) => Err(Bailout),
            Ok(()) | Err(Wants::Throw) => Ok(()),
        }
    });
}

extern "C" fn file_changes(ex: &mut ExecuteData, returned: &mut Zval) {
    told(ex, returned, |runtime| {
        let changes = runtime.file_changes();
        changes.map_or(Ok(Value::Array(Vec::new())), serde_json::to_value)
    });
}

extern "C" fn blocked(ex: &mut ExecuteData, returned: &mut Zval) {
    told(ex, returned, |runtime| {
        serde_json::to_value(runtime.blocked())
    });
}

/// Returns something that the host knows of a runtime.
fn told(
    ex: &mut ExecuteData,
    returned: &mut Zval,
    tell: impl FnOnce(&Runtime) -> serde_json::Result<Value>,
) {
    host::method(|| {
        if !parse(ex, 0, &mut []) {
            return Ok(());
        }
        let object = this(ex);
        let Some(runtime) = take(object) else {
            return Ok(());
        };
        let value = tell(&runtime);
        put(object.handle, Held::Resting(runtime));
        *returned = json::to_zval(&value.unwrap_or_default())?;
        Ok(())
    });
}

/// The caller of a runtime: its output layer, its standard error, its pending interrupts.
struct Caller(Result<(), Wants>);

impl Observer for Caller {
    fn output(&mut self, stream: Stream, chunk: &[u8]) -> ControlFlow<()> {
        match stream {
            Stream::Stdout => self.0 = write(chunk),
            Stream::Stderr => write_error(chunk),
        }
        match self.0 {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    fn tick(&mut self) -> ControlFlow<()> {
        if self.0.is_ok() {
            self.0 = host::interrupts();
        }
        match self.0 {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// Writes to the process's standard error, as far as it takes it.
fn write_error(mut chunk: &[u8]) {
    use std::io::Write;
    let mut stderr = std::io::stderr();
    while !chunk.is_empty() {
        match stderr.write(chunk) {
            Ok(0) => return,
            Ok(count) => chunk = chunk.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}

/// The strings of an array; `None` if it holds anything else.
fn strings(array: &Zval) -> Option<Vec<String>> {
    let array = array.array()?;
    let texts = array.values().map(|value| {
        let text = value.zend_str()?;
        Some(String::from_utf8_lossy(text.as_bytes()).into_owned())
    });
    texts.collect()
}
