//! `Altair\Sandbox\Data\ExecResult` and `ExitCodes`.

use altair_command::{Outcome, exit_codes};
use ext_php_rs::exception::PhpException;
use ext_php_rs::types::{ZendObject, Zval};
use ext_php_rs::zend::{ExecuteData, ce};
use serde_json::Value;

use super::layers::{self, Layer, Refusal};
use super::timeout_reason;
use crate::classes::eval_request::{boolean, int};
use crate::classes::exceptions::throw_error;
use crate::zend::class::{Class, Param, Slot, Type, logic_exception, runtime_exception};
use crate::zend::object::{self, init, new_object, property, share, this, throw_never_constructed};
use crate::zend::params::{Arg, parse};
use crate::zend::{Bailout, host, json};

/// The class of results.
pub const NAME: &str = "Altair\\Sandbox\\Data\\ExecResult";

static CLASS: Slot = Slot::new();
static EXIT_CODES: Slot = Slot::new();

/// The properties, each with a method of its name, and the key in `toArray()` of those that are in
/// it. `fileChanges` follows, which is no parameter of the constructor.
const PROPERTIES: [(&str, Type, Option<&str>); 9] = [
    ("stdout", Type::STRING, Some("stdout")),
    ("stderr", Type::STRING, Some("stderr")),
    ("exitCode", Type::INT, Some("exit_code")),
    ("duration", Type::FLOAT, Some("duration")),
    ("timedOut", Type::BOOL, Some("timed_out")),
    ("truncatedStdout", Type::BOOL, Some("truncated_stdout")),
    ("truncatedStderr", Type::BOOL, Some("truncated_stderr")),
    (
        "timeoutReason",
        Type::class(timeout_reason::NAME).or_null(),
        None,
    ),
    ("blocked", Type::ARRAY, None),
];

const FILE_CHANGES: &str = "fileChanges";

/// Registers the two classes.
pub fn register() {
    Class::new("Altair\\Sandbox\\Data\\ExitCodes")
        .constant("TIMEOUT", exit_codes::TIMEOUT.into())
        .constant("COMMAND_NOT_FOUND", exit_codes::COMMAND_NOT_FOUND.into())
        .private_constructor()
        .register(&EXIT_CODES);
    let mut class = Class::readonly(NAME).held_by_clones(layers::freed, layers::cloned);
    for (name, ty, _) in PROPERTIES {
        class = class.accessor(name, ty);
    }
    let default = |name| match name {
        "stdout" | "stderr" | "exitCode" | "duration" => None,
        "timeoutReason" => Some("null"),
        "blocked" => Some("[]"),
        _ => Some("false"),
    };
    let param = |(name, ty, _): (&'static str, Type, _)| match default(name) {
        Some(default) => Param::optional(name, ty, default),
        None => Param::required(name, ty),
    };
    class
        .accessor(FILE_CHANGES, Type::ARRAY.or_null())
        .constructor(construct, PROPERTIES.map(param).into())
        .method("success", success, vec![], Type::BOOL)
        .method("combinedOutput", combined_output, vec![], Type::STRING)
        .method("toArray", to_array, vec![], Type::ARRAY)
        .method("apply", apply, vec![], Type::VOID)
        .method("discard", discard, vec![], Type::VOID)
        .method("__serialize", serialize, vec![], Type::ARRAY)
        .register(&CLASS);
}

extern "C" fn construct(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        let (mut stdout, mut stderr): (&[u8], &[u8]) = Default::default();
        let (mut exit_code, mut duration) = (0_i64, 0.0);
        let (mut timed_out, mut truncated_stdout, mut truncated_stderr) = (false, false, false);
        let (mut reason, mut blocked) = (None, None);
        let mut args = [
            Arg::Bytes(&mut stdout),
            Arg::Bytes(&mut stderr),
            Arg::Int(&mut exit_code),
            Arg::Float(&mut duration),
            Arg::Bool(&mut timed_out),
            Arg::Bool(&mut truncated_stdout),
            Arg::Bool(&mut truncated_stderr),
            Arg::OfOrNull(timeout_reason::class(), &mut reason),
            Arg::Array(&mut blocked),
        ];
        if !parse(ex, 4, &mut args) {
            return Ok(());
        }
        let values = [
            json::string(stdout)?,
            json::string(stderr)?,
            int(exit_code),
            float(duration),
            boolean(timed_out),
            boolean(truncated_stdout),
            boolean(truncated_stderr),
            reason.map_or_else(Zval::null, share),
            match blocked {
                Some(blocked) => blocked.shallow_clone(),
                None => json::array(Vec::new())?,
            },
        ];
        let object = this(ex);
        if property(object, "stdout").is_some() {
            throw_error(
                "Cannot modify readonly property Altair\\Sandbox\\Data\\ExecResult::$stdout",
            );
            return Ok(());
        }
        fill(object, values, Zval::null());
        Ok(())
    });
}

fn fill(object: &mut ZendObject, values: [Zval; 9], file_changes: Zval) {
    for ((name, ..), value) in PROPERTIES.iter().zip(values) {
        init(object, name, value);
    }
    init(object, FILE_CHANGES, file_changes);
}

fn float(number: f64) -> Zval {
    let mut zval = Zval::new();
    zval.set_double(number);
    zval
}

/// What a result says besides its outcome. The default is that of a driver that says nothing.
#[derive(Default)]
pub struct Details {
    /// What was refused, as `diagnostics.blocked` has it.
    pub blocked: Vec<Value>,
    /// What the run wrote, as `diagnostics.file_changes` has it; `None` without a layer.
    pub file_changes: Option<Value>,
    /// The layer that it was written to.
    pub layer: Option<Box<dyn Layer>>,
}

/// The outcome as an object of the class.
pub fn write(outcome: &Outcome, details: Details) -> Result<Zval, Bailout> {
    let values = [
        json::string(&outcome.stdout)?,
        json::string(&outcome.stderr)?,
        int(outcome.exit_code),
        float(outcome.duration.as_secs_f64()),
        boolean(outcome.timeout.is_some()),
        boolean(outcome.truncated_stdout),
        boolean(outcome.truncated_stderr),
        timeout_reason::write(outcome.timeout)?,
        json::to_zval(&Value::Array(details.blocked))?,
    ];
    let file_changes = json::to_zval(&details.file_changes.unwrap_or(Value::Null))?;
    let mut zval = new_object(&CLASS);
    if let Some(object) = zval.object_mut() {
        fill(object, values, file_changes);
        if let Some(layer) = details.layer {
            layers::attach(object.handle, layer);
        }
    }
    Ok(zval)
}

/// The result that a method was called on; `None`, with an exception pending, if it was never
/// constructed.
fn constructed(ex: &mut ExecuteData) -> Option<&ZendObject> {
    if !parse(ex, 0, &mut []) {
        return None;
    }
    let object = this(ex);
    // The one that is initialised last.
    if property(object, FILE_CHANGES).is_none() {
        throw_never_constructed(object);
        return None;
    }
    Some(object)
}

fn is_success(result: &ZendObject) -> bool {
    object::int(result, "exitCode") == 0 && !object::bool(result, "timedOut")
}

extern "C" fn success(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        if let Some(result) = constructed(ex) {
            returned.set_bool(is_success(result));
        }
        Ok(())
    });
}

extern "C" fn combined_output(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let Some(result) = constructed(ex) else {
            return Ok(());
        };
        let (stdout, stderr) = (
            object::bytes(result, "stdout"),
            object::bytes(result, "stderr"),
        );
        // What is written to standard error begins on a line of its own.
        let is_mid_line = stdout.last().is_some_and(|last| *last != b'\n');
        let between: &[u8] = if is_mid_line && !stderr.is_empty() {
            b"\n"
        } else {
            b""
        };
        *returned = json::string(&[stdout, between, stderr].concat())?;
        Ok(())
    });
}

extern "C" fn to_array(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let Some(result) = constructed(ex) else {
            return Ok(());
        };
        let entry = |(name, _, key): &(&str, Type, Option<&'static str>)| {
            Some(((*key)?, property(result, name)?.shallow_clone()))
        };
        let mut entries: Vec<_> = PROPERTIES.iter().filter_map(entry).collect();
        entries.push(("success", boolean(is_success(result))));
        *returned = json::array(entries)?;
        Ok(())
    });
}

extern "C" fn apply(ex: &mut ExecuteData, _: &mut Zval) {
    finish(ex, layers::apply);
}

extern "C" fn discard(ex: &mut ExecuteData, _: &mut Zval) {
    finish(ex, layers::discard);
}

/// Does something with the layer of the result, or throws why not.
fn finish(ex: &mut ExecuteData, how: fn(u32) -> Result<(), Refusal>) {
    host::method(|| {
        let Some(result) = constructed(ex) else {
            return Ok(());
        };
        let (message, class) = match how(result.handle) {
            Ok(()) => return Ok(()),
            Err(Refusal::Misuse(why)) => (why.to_owned(), logic_exception()),
            Err(Refusal::Failed(why)) => (why, runtime_exception()),
        };
        PhpException::new(message, 0, class).throw();
        Ok(())
    });
}

/// A layer cannot leave its process. What is left of a result is a plain value.
extern "C" fn serialize(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let Some(result) = constructed(ex) else {
            return Ok(());
        };
        if layers::is_open(result.handle) {
            let message = format!("Serialization of '{NAME}' with a layer is not allowed");
            PhpException::new(message, 0, ce::exception()).throw();
            return Ok(());
        }
        let names = PROPERTIES.iter().map(|(name, ..)| *name);
        let entries = names
            .chain([FILE_CHANGES])
            .filter_map(|name| Some((name, property(result, name)?.shallow_clone())));
        *returned = json::array(entries.collect())?;
        Ok(())
    });
}
