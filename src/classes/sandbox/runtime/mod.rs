//! `Altair\Sandbox\Runtime`: enter a closure in an isolated PHP. Also known as `sandbox\Runtime`.

mod caller;
mod entry;
mod exceptions;
mod ini;
mod start;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;

use altair_engine::runtime::{Runtime, RuntimeStart};
use altair_engine::{EvalError, Silent};
use ext_php_rs::types::{ZendObject, Zval};
use ext_php_rs::zend::ExecuteData;
use serde_json::Value;

use crate::classes::eval_request;
use crate::zend::class::{Class, Handler, Param, Slot, Type};
use crate::zend::closure;
use crate::zend::host::{self, Wants};
use crate::zend::object::{new_object, this};
use crate::zend::params::{self, Arg, parse};
use crate::zend::{Bailout, json};
use caller::Caller;
use entry::{NotSent, are_positive, finish, prepare, serve};
use exceptions::{throw, throw_rule, throw_start};
use start::{start_plain, start_runtime};

/// The class.
pub const NAME: &str = "Altair\\Sandbox\\Runtime";
/// Its other name, which is a class of its own: a trace shows the name that was used.
const OTHER_NAME: &str = "sandbox\\Runtime";

const WRONG_SETTINGS: &str = "optional configuration array expected";
const WRONG_ARGUMENTS: &str = "Closure, or Closure and args expected";

static CLASS: Slot = Slot::new();
static OTHER: Slot = Slot::new();

/// Registers the classes.
pub fn register() {
    exceptions::register();
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

fn is_other(object: &ZendObject) -> bool {
    std::ptr::eq(object.ce, &raw const *OTHER.get())
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
        let settings = match ini.map(ini::read).transpose()? {
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
