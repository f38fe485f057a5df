//! `Altair\Sandbox\Config\ExecutionPolicy`.

use std::ffi::OsString;

use altair_command::{CommandError, ExecutionPolicy, Memory};
use ext_php_rs::types::{ZendObject, Zval};
use ext_php_rs::zend::{ClassEntry, ExecuteData};

use super::{arrays, throw};
use crate::classes::eval_request::{boolean, int};
use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::object::{self, init, new_object, property, this, throw_never_constructed};
use crate::zend::params::{Arg, parse};
use crate::zend::{Bailout, host, json};

/// The class.
pub const NAME: &str = "Altair\\Sandbox\\Config\\ExecutionPolicy";

static CLASS: Slot = Slot::new();

/// The base directory of `default()`.
const DEFAULT_BASE_DIR: &str = "/tmp";

/// Whether nobody chose a memory limit: the driver `host` enforces none then.
const MEMORY_IS_DEFAULT: &str = "memoryIsDefault";

/// What an accessor says, in the order of `with()`'s parameters.
const ACCESSORS: [(&str, Type); 11] = [
    ("baseDir", Type::STRING),
    ("timeoutSeconds", Type::INT),
    ("idleTimeoutSeconds", Type::INT.or_null()),
    ("memoryLimit", Type::STRING),
    ("readablePaths", Type::ARRAY),
    ("writablePaths", Type::ARRAY),
    ("env", Type::ARRAY),
    ("inheritEnv", Type::BOOL),
    ("networkEnabled", Type::BOOL),
    ("stdoutLimitBytes", Type::INT),
    ("stderrLimitBytes", Type::INT),
];

/// Registers the class.
pub fn register() {
    let own = Type::class(NAME);
    let mut class = Class::readonly(NAME).private_constructor();
    for (name, ty) in ACCESSORS {
        class = class.accessor(name, ty);
    }
    let named = |(name, ty): (&str, Type)| Param::optional(name, ty.or_null(), "null");
    let strings = |name| vec![Param::variadic(name, Type::STRING)];
    class
        .accessor("layers", Type::ARRAY)
        .accessor("services", Type::ARRAY)
        .private_property(MEMORY_IS_DEFAULT, Type::BOOL)
        .static_method(
            "in",
            in_dir,
            vec![Param::required("baseDir", Type::STRING)],
            own,
        )
        .static_method("default", default, vec![], own)
        .method("with", with, ACCESSORS.map(named).into(), own)
        .method(
            "withTimeout",
            with_timeout,
            vec![Param::required("seconds", Type::INT)],
            own,
        )
        .method(
            "withIdleTimeout",
            with_idle_timeout,
            vec![Param::required("seconds", Type::INT.or_null())],
            own,
        )
        .method(
            "withMemory",
            with_memory,
            vec![Param::required("limit", Type::STRING)],
            own,
        )
        .method(
            "withReadablePaths",
            with_readable_paths,
            strings("paths"),
            own,
        )
        .method(
            "withWritablePaths",
            with_writable_paths,
            strings("paths"),
            own,
        )
        .method(
            "withEnv",
            with_env,
            vec![
                Param::required("env", Type::ARRAY),
                Param::optional("inherit", Type::BOOL.or_null(), "null"),
            ],
            own,
        )
        .method(
            "inheritEnvironment",
            inherit_environment,
            vec![Param::optional("inherit", Type::BOOL, "true")],
            own,
        )
        .method(
            "withNetwork",
            with_network,
            vec![Param::required("enabled", Type::BOOL)],
            own,
        )
        .method(
            "withOutputCaps",
            with_output_caps,
            vec![
                Param::required("stdoutBytes", Type::INT),
                Param::required("stderrBytes", Type::INT),
            ],
            own,
        )
        .method("withLayer", with_layer, strings("paths"), own)
        .method("withServices", with_services, strings("addresses"), own)
        .register(&CLASS);
}

/// The class's entry.
pub fn class() -> &'static ClassEntry {
    CLASS.get()
}

/// The policy as an object of the class.
pub fn write(policy: &ExecutionPolicy) -> Result<Zval, Bailout> {
    let number = |n: u64| int(i64::try_from(n).unwrap_or(i64::MAX));
    let seconds = |seconds: Option<u64>| seconds.map_or_else(Zval::null, number);
    let values = [
        arrays::string(&policy.base_dir)?,
        seconds(policy.timeout_seconds),
        seconds(policy.idle_timeout_seconds),
        json::string(policy.memory.to_string().as_bytes())?,
        arrays::list(&policy.readable_paths)?,
        arrays::list(&policy.writable_paths)?,
        arrays::by_name(&policy.env)?,
        boolean(policy.inherit_env),
        boolean(policy.network),
        number(policy.stdout_limit_bytes),
        number(policy.stderr_limit_bytes),
    ];
    let (layers, services) = (
        arrays::list(&policy.layers)?,
        arrays::list(&policy.services)?,
    );
    let mut zval = new_object(&CLASS);
    if let Some(object) = zval.object_mut() {
        for ((name, _), value) in ACCESSORS.iter().zip(values) {
            init(object, name, value);
        }
        init(object, "layers", layers);
        init(object, "services", services);
        let is_default = policy.memory == Memory::Default;
        init(object, MEMORY_IS_DEFAULT, boolean(is_default));
    }
    Ok(zval)
}

/// The policy that an object describes. `None` with a pending exception if it was never
/// constructed, or was unserialised from what no policy is.
pub fn read(object: &ZendObject) -> Result<Option<ExecutionPolicy>, Bailout> {
    // The one that is initialised last.
    if property(object, MEMORY_IS_DEFAULT).is_none() {
        throw_never_constructed(object);
        return Ok(None);
    }
    let env = match property(object, "env") {
        Some(env) => arrays::variables(env)?,
        None => Ok(Vec::new()),
    };
    let policy = env.and_then(|env| described(object)?.with_env(env));
    Ok(policy.map_err(|error| throw(&error)).ok())
}

/// All but the environment. The setters look at each value again, since `unserialize` does not.
fn described(object: &ZendObject) -> Result<ExecutionPolicy, CommandError> {
    let strings = |name, what| match property(object, name) {
        Some(array) => arrays::strings(array, what),
        None => Ok(Vec::new()),
    };
    let idle = property(object, "idleTimeoutSeconds").and_then(Zval::long);
    let caps = ["stdoutLimitBytes", "stderrLimitBytes"].map(|name| object::int(object, name));
    let mut policy = ExecutionPolicy::in_dir("")
        .with_base_dir(arrays::os(object::bytes(object, "baseDir")))?
        .with_timeout_seconds(object::int(object, "timeoutSeconds"))
        .with_idle_timeout_seconds(idle)
        .with_readable_paths(strings("readablePaths", READABLE)?)?
        .with_writable_paths(strings("writablePaths", WRITABLE)?)?
        .with_layers(strings("layers", "layers")?)?
        .with_services(strings("services", "services")?)?
        .with_output_caps(caps[0], caps[1]);
    if !object::bool(object, MEMORY_IS_DEFAULT) {
        policy = policy.with_memory(&lossy(object::bytes(object, "memoryLimit")))?;
    }
    policy.inherit_env = object::bool(object, "inheritEnv");
    policy.network = object::bool(object, "networkEnabled");
    Ok(policy)
}

const READABLE: &str = "readable paths";
const WRITABLE: &str = "writable paths";

/// No limit holds what is no UTF-8: the message then shows what was given.
fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Returns a policy to PHP, or throws.
fn give(policy: Result<ExecutionPolicy, CommandError>, returned: &mut Zval) -> Result<(), Bailout> {
    match policy {
        Ok(policy) => *returned = write(&policy)?,
        Err(error) => throw(&error),
    }
    Ok(())
}

/// Returns what `change` makes of the policy of a call.
fn changed(
    ex: &mut ExecuteData,
    returned: &mut Zval,
    change: impl FnOnce(ExecutionPolicy) -> Result<ExecutionPolicy, CommandError>,
) -> Result<(), Bailout> {
    match read(this(ex))? {
        Some(policy) => give(change(policy), returned),
        None => Ok(()),
    }
}

extern "C" fn in_dir(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut base_dir: &[u8] = &[];
        if !parse(ex, 1, &mut [Arg::Bytes(&mut base_dir)]) {
            return Ok(());
        }
        let policy = ExecutionPolicy::in_dir("").with_base_dir(arrays::os(base_dir));
        give(policy, returned)
    });
}

extern "C" fn default(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        if !parse(ex, 0, &mut []) {
            return Ok(());
        }
        give(Ok(ExecutionPolicy::in_dir(DEFAULT_BASE_DIR)), returned)
    });
}

extern "C" fn with(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let (mut base_dir, mut memory) = (None, None);
        let (mut timeout, mut idle) = (None, None);
        let (mut readable, mut writable, mut env) = (None, None, None);
        let (mut inherit, mut network) = (None, None);
        let (mut stdout, mut stderr) = (None, None);
        let mut args = [
            Arg::BytesOrNull(&mut base_dir),
            Arg::IntOrNull(&mut timeout),
            Arg::IntOrNull(&mut idle),
            Arg::BytesOrNull(&mut memory),
            Arg::ArrayOrNull(&mut readable),
            Arg::ArrayOrNull(&mut writable),
            Arg::ArrayOrNull(&mut env),
            Arg::BoolOrNull(&mut inherit),
            Arg::BoolOrNull(&mut network),
            Arg::IntOrNull(&mut stdout),
            Arg::IntOrNull(&mut stderr),
        ];
        if !parse(ex, 0, &mut args) {
            return Ok(());
        }
        let env = env.map(arrays::variables).transpose()?;
        changed(ex, returned, |mut policy| {
            if let Some(base_dir) = base_dir {
                policy = policy.with_base_dir(arrays::os(base_dir))?;
            }
            if let Some(seconds) = timeout {
                policy = policy.with_timeout_seconds(seconds);
            }
            if idle.is_some() {
                policy = policy.with_idle_timeout_seconds(idle);
            }
            if let Some(limit) = memory {
                policy = policy.with_memory(&lossy(limit))?;
            }
            if let Some(paths) = readable {
                policy = policy.with_readable_paths(arrays::strings(paths, READABLE)?)?;
            }
            if let Some(paths) = writable {
                policy = policy.with_writable_paths(arrays::strings(paths, WRITABLE)?)?;
            }
            if let Some(env) = env {
                policy = policy.with_env(env?)?;
            }
            policy.inherit_env = inherit.unwrap_or(policy.inherit_env);
            policy.network = network.unwrap_or(policy.network);
            // What is left out stays: a limit is within the bounds of its setter.
            let kept = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
            let stdout = stdout.unwrap_or_else(|| kept(policy.stdout_limit_bytes));
            let stderr = stderr.unwrap_or_else(|| kept(policy.stderr_limit_bytes));
            Ok(policy.with_output_caps(stdout, stderr))
        })
    });
}

extern "C" fn with_timeout(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut seconds = 0;
        if !parse(ex, 1, &mut [Arg::Int(&mut seconds)]) {
            return Ok(());
        }
        changed(ex, returned, |policy| {
            Ok(policy.with_timeout_seconds(seconds))
        })
    });
}

extern "C" fn with_idle_timeout(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut seconds = None;
        if !parse(ex, 1, &mut [Arg::IntOrNull(&mut seconds)]) {
            return Ok(());
        }
        changed(ex, returned, |policy| {
            Ok(policy.with_idle_timeout_seconds(seconds))
        })
    });
}

extern "C" fn with_memory(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut limit: &[u8] = &[];
        if !parse(ex, 1, &mut [Arg::Bytes(&mut limit)]) {
            return Ok(());
        }
        changed(ex, returned, |policy| policy.with_memory(&lossy(limit)))
    });
}

/// Returns the policy of a call with the strings that are its arguments.
fn with_strings(
    ex: &mut ExecuteData,
    returned: &mut Zval,
    set: fn(ExecutionPolicy, Vec<OsString>) -> Result<ExecutionPolicy, CommandError>,
) {
    host::method(|| {
        let mut texts = Vec::new();
        if !parse(ex, 0, &mut [Arg::Rest(&mut texts)]) {
            return Ok(());
        }
        let texts = texts.into_iter().map(arrays::os).collect();
        changed(ex, returned, |policy| set(policy, texts))
    });
}

extern "C" fn with_readable_paths(ex: &mut ExecuteData, returned: &mut Zval) {
    with_strings(ex, returned, ExecutionPolicy::with_readable_paths);
}

extern "C" fn with_writable_paths(ex: &mut ExecuteData, returned: &mut Zval) {
    with_strings(ex, returned, ExecutionPolicy::with_writable_paths);
}

extern "C" fn with_layer(ex: &mut ExecuteData, returned: &mut Zval) {
    with_strings(ex, returned, ExecutionPolicy::with_layers);
}

extern "C" fn with_services(ex: &mut ExecuteData, returned: &mut Zval) {
    with_strings(ex, returned, ExecutionPolicy::with_services);
}

extern "C" fn with_env(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let (mut env, mut inherit) = (None, None);
        let mut args = [Arg::Array(&mut env), Arg::BoolOrNull(&mut inherit)];
        if !parse(ex, 1, &mut args) {
            return Ok(());
        }
        let env = env.map_or(Ok(Ok(Vec::new())), arrays::variables)?;
        changed(ex, returned, |mut policy| {
            policy.inherit_env = inherit.unwrap_or(policy.inherit_env);
            policy.with_env(env?)
        })
    });
}

extern "C" fn inherit_environment(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut inherit_env = true;
        if !parse(ex, 0, &mut [Arg::Bool(&mut inherit_env)]) {
            return Ok(());
        }
        changed(ex, returned, |policy| {
            Ok(ExecutionPolicy {
                inherit_env,
                ..policy
            })
        })
    });
}

extern "C" fn with_network(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut network = false;
        if !parse(ex, 1, &mut [Arg::Bool(&mut network)]) {
            return Ok(());
        }
        changed(ex, returned, |policy| {
            Ok(ExecutionPolicy { network, ..policy })
        })
    });
}

extern "C" fn with_output_caps(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let (mut stdout, mut stderr) = (0, 0);
        let mut args = [Arg::Int(&mut stdout), Arg::Int(&mut stderr)];
        if !parse(ex, 2, &mut args) {
            return Ok(());
        }
        changed(ex, returned, |policy| {
            Ok(policy.with_output_caps(stdout, stderr))
        })
    });
}
