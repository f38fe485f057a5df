//! `Altair\Eval\EvalRequest`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use altair_engine::{
    DEFAULT_MEMORY_MB, DEFAULT_TIMEOUT_MS, Database, EvalError, EvalRequest, MAX_MEMORY_MB,
    MAX_TIMEOUT_MS, MIN_MEMORY_MB, MIN_TIMEOUT_MS, MemoryLimit, Timeout,
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
        ];
        if !parse(ex, 2, &mut args) {
            return Ok(());
        }
        let bounds = EvalRequest::new("", "")
            .with_timeout_ms(timeout)
            .with_memory_limit_mb(memory);
        let snippet = json::string(snippet)?;
        let root = json::string(root)?;
        let bootstrap = bootstrap.map_or_else(|| Ok(Zval::null()), json::string)?;
        let database = database.map_or_else(|| Ok(Zval::null()), json::string)?;
        let readable = match readable {
            Some(paths) => paths.shallow_clone(),
            None => json::array(Vec::new())?,
        };
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
        Ok(())
    });
}

/// An integer value.
pub fn int(n: impl Into<i64>) -> Zval {
    let mut zval = Zval::new();
    zval.set_long(n.into());
    zval
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

/// Invalid UTF-8 is replaced: no service has such a name, and the engine then reports it.
fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// The request that an object describes. `None` with a pending exception if it was never
/// constructed or has an invalid value.
pub fn read(request: &ZendObject) -> Result<Option<EvalRequest>, Bailout> {
    if property(request, "queries").is_none() {
        throw_error("The EvalRequest was never constructed");
        return Ok(None);
    }
    let (Some(readable), Some(services)) = (
        texts(request, "readablePaths", "readable paths"),
        texts(request, "services", "services"),
    ) else {
        return Ok(None);
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
        timeout: Timeout::clamped_ms(object::int(request, "timeoutMs")),
        memory_limit: MemoryLimit::clamped_mb(object::int(request, "memoryLimitMb")),
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
