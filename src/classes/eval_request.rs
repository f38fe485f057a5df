//! `Altair\Eval\EvalRequest`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use altair_engine::arguments::{ARGUMENTS_MAX, ARGUMENTS_MAX_DEPTH, Arguments, Datum};
use altair_engine::encode::{Key, Node, Shape};
use altair_engine::{
    DEFAULT_MEMORY_MB, DEFAULT_TIMEOUT_MS, Database, Depth, EvalError, EvalRequest, MAX_MEMORY_MB,
    MAX_TIMEOUT_MS, MIN_MEMORY_MB, MIN_TIMEOUT_MS, MemoryLimit, ShownItems, ShownString, Timeout,
};
use ext_php_rs::types::{ZendObject, Zval};
use ext_php_rs::zend::ExecuteData;

use super::exceptions::{throw, throw_error};
use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::node::{ZvalNode, entries};
use crate::zend::object::{self, init, property, this};
use crate::zend::params::{Arg, parse};
use crate::zend::{Bailout, host, json};

/// The class.
pub const NAME: &str = "Altair\\Eval\\EvalRequest";

static CLASS: Slot = Slot::new();

/// Registers the class.
pub fn register() {
    let timeout = DEFAULT_TIMEOUT_MS.to_string();
    let memory = DEFAULT_MEMORY_MB.to_string();
    Class::readonly(NAME)
        .not_serializable()
        .constant("DEFAULT_TIMEOUT_MS", DEFAULT_TIMEOUT_MS)
        .constant("MIN_TIMEOUT_MS", MIN_TIMEOUT_MS)
        .constant("MAX_TIMEOUT_MS", MAX_TIMEOUT_MS)
        .constant("DEFAULT_MEMORY_MB", DEFAULT_MEMORY_MB)
        .constant("MIN_MEMORY_MB", MIN_MEMORY_MB)
        .constant("MAX_MEMORY_MB", MAX_MEMORY_MB)
        .property("snippet", Type::STRING)
        .property("projectRoot", Type::STRING)
        .property("timeoutMs", Type::INT)
        .property("memoryLimitMb", Type::INT)
        .property("allowWrites", Type::BOOL)
        .property("allowNetwork", Type::BOOL)
        .property("unsafe", Type::BOOL)
        .property("bootstrap", Type::STRING.or_null())
        .property("services", Type::ARRAY.or_null())
        .property("readablePaths", Type::ARRAY)
        .property("redact", Type::BOOL)
        .property("database", Type::STRING.or_null())
        .property("queries", Type::BOOL)
        .property("arguments", Type::ARRAY)
        .property("depth", Type::INT.or_null())
        .property("maxItems", Type::INT.or_null())
        .property("maxString", Type::INT.or_null())
        .property("diff", Type::BOOL)
        .property("env", Type::ARRAY)
        .constructor(
            construct,
            vec![
                Param::required("snippet", Type::STRING),
                Param::required("projectRoot", Type::STRING),
                Param::optional("timeoutMs", Type::INT, &timeout),
                Param::optional("memoryLimitMb", Type::INT, &memory),
                Param::optional("allowWrites", Type::BOOL, "false"),
                Param::optional("allowNetwork", Type::BOOL, "false"),
                Param::optional("unsafe", Type::BOOL, "false"),
                Param::optional("bootstrap", Type::STRING.or_null(), "null"),
                Param::optional("services", Type::ARRAY.or_null(), "null"),
                Param::optional("readablePaths", Type::ARRAY, "[]"),
                Param::optional("redact", Type::BOOL, "true"),
                Param::optional("database", Type::STRING.or_null(), "null"),
                Param::optional("queries", Type::BOOL, "false"),
                Param::optional("arguments", Type::ARRAY, "[]"),
                Param::optional("depth", Type::INT.or_null(), "null"),
                Param::optional("maxItems", Type::INT.or_null(), "null"),
                Param::optional("maxString", Type::INT.or_null(), "null"),
                Param::optional("diff", Type::BOOL, "false"),
                Param::optional("env", Type::ARRAY, "[]"),
            ],
        )
        .register(&CLASS);
}

extern "C" fn construct(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        let (mut snippet, mut root): (&[u8], &[u8]) = Default::default();
        let mut timeout = DEFAULT_TIMEOUT_MS;
        let mut memory = DEFAULT_MEMORY_MB;
        let (mut writes, mut network, mut unconfined) = (false, false, false);
        let mut bootstrap = None;
        let (mut services, mut readable) = (None, None);
        let mut redact = true;
        let mut database = None;
        let mut queries = false;
        let mut arguments = None;
        let (mut depth, mut max_items, mut max_string) = (None, None, None);
        let mut diff = false;
        let mut env = None;
        let mut args = [
            Arg::Bytes(&mut snippet),
            Arg::Bytes(&mut root),
            Arg::Int(&mut timeout),
            Arg::Int(&mut memory),
            Arg::Bool(&mut writes),
            Arg::Bool(&mut network),
            Arg::Bool(&mut unconfined),
            Arg::BytesOrNull(&mut bootstrap),
            Arg::ArrayOrNull(&mut services),
            Arg::Array(&mut readable),
            Arg::Bool(&mut redact),
            Arg::BytesOrNull(&mut database),
            Arg::Bool(&mut queries),
            Arg::Array(&mut arguments),
            Arg::IntOrNull(&mut depth),
            Arg::IntOrNull(&mut max_items),
            Arg::IntOrNull(&mut max_string),
            Arg::Bool(&mut diff),
            Arg::Array(&mut env),
        ];
        if !parse(ex, 2, &mut args) {
            return Ok(());
        }
        let asked = EvalRequest::new("", std::ffi::OsStr::from_bytes(root))
            .with_timeout_ms(timeout)
            .with_memory_limit_mb(memory);
        let bounds = match asked.within_bounds() {
            Ok(bounds) => bounds,
            Err(error) => {
                throw(&error);
                return Ok(());
            }
        };
        let snippet = json::string(snippet)?;
        let root = json::string(root)?;
        let bootstrap = bootstrap.map_or_else(|| Ok(Zval::null()), json::string)?;
        let database = database.map_or_else(|| Ok(Zval::null()), json::string)?;
        let or_empty = |given: Option<&Zval>| match given {
            Some(array) => Ok(array.shallow_clone()),
            None => json::array(Vec::new()),
        };
        let readable = or_empty(readable)?;
        let arguments = or_empty(arguments)?;
        let env = or_empty(env)?;
        let object = this(ex);
        if property(object, "snippet").is_some() {
            throw_error("Cannot modify readonly property Altair\\Eval\\EvalRequest::$snippet");
            return Ok(());
        }
        init(object, "snippet", snippet);
        init(object, "projectRoot", root);
        init(object, "timeoutMs", int(bounds.timeout_ms()));
        init(object, "memoryLimitMb", int(bounds.memory_limit_mb()));
        init(object, "allowWrites", boolean(writes));
        init(object, "allowNetwork", boolean(network));
        init(object, "unsafe", boolean(unconfined));
        init(object, "bootstrap", bootstrap);
        let services = services.map_or_else(Zval::null, Zval::shallow_clone);
        init(object, "services", services);
        init(object, "readablePaths", readable);
        init(object, "redact", boolean(redact));
        init(object, "database", database);
        init(object, "queries", boolean(queries));
        init(object, "arguments", arguments);
        let depth = depth.map(|n| Depth::clamped(n).get());
        init(object, "depth", int_or_null(depth));
        let max_items = max_items.map(|n| ShownItems::clamped(n).get());
        init(object, "maxItems", int_or_null(max_items));
        let max_string = max_string.map(|n| ShownString::clamped(n).get());
        init(object, "maxString", int_or_null(max_string));
        init(object, "diff", boolean(diff));
        init(object, "env", env);
        Ok(())
    });
}

/// An integer value.
pub fn int(n: impl Into<i64>) -> Zval {
    let mut zval = Zval::new();
    zval.set_long(n.into());
    zval
}

/// An integer value, or null.
fn int_or_null(n: Option<u32>) -> Zval {
    n.map_or_else(Zval::null, int)
}

/// A boolean value.
pub fn boolean(b: bool) -> Zval {
    let mut zval = Zval::new();
    zval.set_bool(b);
    zval
}

/// The values of an array property; none if it is null.
fn items(request: &ZendObject, name: &str) -> Vec<ZvalNode> {
    let array = property(request, name).and_then(Zval::array);
    let entries = array.map_or_else(Vec::new, |array| entries(array, usize::MAX));
    entries.into_iter().map(|(_, value)| value).collect()
}

/// The strings of an array property; `None` with a pending exception if a value is not a string.
fn texts(request: &ZendObject, property: &str, what: &str) -> Option<Vec<Vec<u8>>> {
    let items = items(request, property);
    let texts: Option<_> = items
        .iter()
        .map(|item| Some(item.value().zend_str()?.as_bytes().to_vec()))
        .collect();
    if texts.is_none() {
        throw(&EvalError::InvalidRequest(format!(
            "Each of the {what} has to be a string."
        )));
    }
    texts
}

/// An integer property; `None` where it is null.
fn number(request: &ZendObject, name: &str) -> Option<i64> {
    property(request, name).and_then(Zval::long)
}

/// The variables of the snippet.
fn arguments(request: &ZendObject) -> Result<Arguments, EvalError> {
    let array = property(request, "arguments").and_then(Zval::array);
    let entries = array.map_or_else(Vec::new, |array| entries(array, ARGUMENTS_MAX + 1));
    let mut left = ARGUMENTS_MAX;
    let given = entries.into_iter().map(|(key, value)| {
        let name = match key {
            Key::Int(n) => n.to_string(),
            Key::Bytes(bytes) => String::from_utf8(bytes).map_err(|error| {
                let shown = lossy(error.as_bytes());
                EvalError::InvalidRequest(format!(
                    "\"{shown}\" cannot be an argument's name: it is not UTF-8."
                ))
            })?,
        };
        let datum = datum(&value, 0, &mut left).map_err(|what| {
            EvalError::InvalidRequest(format!(
                "The argument ${name} holds {what}: arguments are null, booleans, numbers, strings, and arrays of \
                 these."
            ))
        })?;
        Ok((name, datum))
    });
    Arguments::new(given.collect::<Result<_, EvalError>>()?)
}

/// A value as it travels; what it holds that cannot. `left`: how many values there may be. Arrays that share
/// their items can hold more than would ever end.
fn datum(value: &ZvalNode, depth: usize, left: &mut usize) -> Result<Datum, String> {
    *left = left
        .checked_sub(1)
        .ok_or_else(|| format!("more than {ARGUMENTS_MAX} values"))?;
    Ok(match value.shape() {
        Shape::Null => Datum::Null,
        Shape::Bool(b) => Datum::Bool(b),
        Shape::Int(n) => Datum::Int(n),
        Shape::Float(f) => Datum::Float(f),
        Shape::Bytes(bytes) => Datum::Bytes(bytes.into_owned()),
        Shape::Array { .. } if depth > ARGUMENTS_MAX_DEPTH => {
            return Err(format!("arrays nested deeper than {ARGUMENTS_MAX_DEPTH}"));
        }
        Shape::Array { .. } => {
            let array = value.value().array();
            let items = array.map_or_else(Vec::new, |array| entries(array, *left + 1));
            let items = items.into_iter();
            Datum::Array(
                items
                    .map(|(key, item)| Ok((key, datum(&item, depth + 1, left)?)))
                    .collect::<Result<_, String>>()?,
            )
        }
        Shape::Object(object) => return Err(format!("an object ({})", object.class)),
        Shape::Resource(kind) => return Err(format!("a resource ({kind})")),
    })
}

/// No service has a name that is no UTF-8: the engine then says which one cannot be used.
fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// The request that an object describes. `None` with a pending exception if it was never
/// constructed or has an invalid value.
pub fn read(request: &ZendObject) -> Result<Option<EvalRequest>, Bailout> {
    if property(request, "env").is_none() {
        throw_error("The EvalRequest was never constructed");
        return Ok(None);
    }
    let (Some(readable), Some(services), Some(env)) = (
        texts(request, "readablePaths", "readable paths"),
        texts(request, "services", "services"),
        texts(request, "env", "names of variables"),
    ) else {
        return Ok(None);
    };
    let arguments = match arguments(request) {
        Ok(arguments) => arguments,
        Err(error) => {
            throw(&error);
            return Ok(None);
        }
    };
    let path = |name| OsStr::from_bytes(object::bytes(request, name));
    let database = match property(request, "database").and_then(|value| value.zend_str()) {
        None => None,
        Some(name) => {
            let name = lossy(name.as_bytes());
            let named = Database::named(&name);
            if named.is_none() {
                throw(&EvalError::InvalidRequest(format!(
                    "The database mode must be one of {}, not \"{name}\".",
                    Database::ALL.map(Database::name).join(", ")
                )));
                return Ok(None);
            }
            named
        }
    };
    Ok(Some(EvalRequest {
        snippet: object::bytes(request, "snippet").to_vec(),
        project_root: path("projectRoot").into(),
        timeout: Timeout::clamped(object::int(request, "timeoutMs")),
        memory_limit: MemoryLimit::clamped(object::int(request, "memoryLimitMb")),
        allow_writes: object::bool(request, "allowWrites"),
        allow_network: object::bool(request, "allowNetwork"),
        unconfined: object::bool(request, "unsafe"),
        bootstrap: property(request, "bootstrap")
            .filter(|value| value.is_string())
            .map(|_| path("bootstrap").into()),
        services: property(request, "services")
            .filter(|value| value.is_array())
            .map(|_| services.iter().map(|text| lossy(text)).collect()),
        readable_paths: readable
            .iter()
            .map(|path| OsStr::from_bytes(path).into())
            .collect(),
        redact: object::bool(request, "redact"),
        database,
        queries: object::bool(request, "queries"),
        arguments,
        depth: number(request, "depth").map(Depth::clamped),
        max_items: number(request, "maxItems").map(ShownItems::clamped),
        max_string: number(request, "maxString").map(ShownString::clamped),
        diff: object::bool(request, "diff"),
        env: env.iter().map(|name| lossy(name)).collect(),
    }))
}

/// The registered class.
pub fn class() -> &'static ext_php_rs::zend::ClassEntry {
    CLASS.get()
}

/// The request in a value; `None` with a pending `TypeError` if the value is not a request.
pub fn from_value(value: &Zval) -> Result<Option<EvalRequest>, Bailout> {
    match value
        .object()
        .filter(|object| std::ptr::eq(object.ce, class()))
    {
        Some(request) => read(request),
        None => {
            host::throw_type_error_message(&format!(
                "Altair\\Eval\\Evaluator::evaluateMany(): each request must be of type {NAME}"
            ));
            Ok(None)
        }
    }
}
