//! `Altair\Eval\Runner\SubprocessRunner` and `SubprocessResult`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use altair_engine::encode::Key;
use altair_engine::programs::Unconfined;
use altair_engine::{OUTPUT_LIMIT, command};
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ExecuteData;

use super::eval_request::{boolean, int};
use super::exceptions::{throw_error, throw_runtime};
use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::host::{self, Wants};
use crate::zend::node::entries;
use crate::zend::object::{init, new_object, property, string_bytes, this};
use crate::zend::params::{Arg, parse};
use crate::zend::{Bailout, json};
use crate::{settings, started_with};

const RESULT: &str = "Altair\\Eval\\Runner\\SubprocessResult";

static RESULT_CLASS: Slot = Slot::new();
static RUNNER_CLASS: Slot = Slot::new();

/// Registers the two classes.
pub fn register() {
    Class::readonly(RESULT)
        .property("exitCode", Type::INT)
        .property("stdout", Type::STRING)
        .property("stderr", Type::STRING)
        .property("timedOut", Type::BOOL)
        .property("durationMs", Type::INT)
        .constructor(
            construct_result,
            vec![
                Param::required("exitCode", Type::INT),
                Param::required("stdout", Type::STRING),
                Param::required("stderr", Type::STRING),
                Param::required("timedOut", Type::BOOL),
                Param::required("durationMs", Type::INT),
            ],
        )
        .register(&RESULT_CLASS);
    Class::new("Altair\\Eval\\Runner\\SubprocessRunner")
        .constant(
            "OUTPUT_LIMIT",
            i64::try_from(OUTPUT_LIMIT).unwrap_or(i64::MAX),
        )
        .method(
            "run",
            run,
            vec![
                Param::required("command", Type::ARRAY),
                Param::required("cwd", Type::STRING.or_null()),
                Param::required("env", Type::ARRAY),
                Param::required("timeoutMs", Type::INT),
            ],
            Type::class(RESULT),
        )
        .register(&RUNNER_CLASS);
}

extern "C" fn construct_result(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        let (mut exit_code, mut duration, mut timed_out) = (0_i64, 0_i64, false);
        let (mut stdout, mut stderr): (&[u8], &[u8]) = Default::default();
        let mut args = [
            Arg::Int(&mut exit_code),
            Arg::Bytes(&mut stdout),
            Arg::Bytes(&mut stderr),
            Arg::Bool(&mut timed_out),
            Arg::Int(&mut duration),
        ];
        if !parse(ex, 5, &mut args) {
            return Ok(());
        }
        let (stdout, stderr) = (json::string(stdout)?, json::string(stderr)?);
        let object = this(ex);
        if property(object, "exitCode").is_some() {
            throw_error(
                "Cannot modify readonly property Altair\\Eval\\Runner\\SubprocessResult::$exitCode",
            );
            return Ok(());
        }
        init(object, "exitCode", int(exit_code));
        init(object, "stdout", stdout);
        init(object, "stderr", stderr);
        init(object, "timedOut", boolean(timed_out));
        init(object, "durationMs", int(duration));
        Ok(())
    });
}

extern "C" fn run(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let (mut words, mut cwd, mut env, mut timeout_ms) = (None, None, None, 0_i64);
        let mut args = [
            Arg::Array(&mut words),
            Arg::BytesOrNull(&mut cwd),
            Arg::Array(&mut env),
            Arg::Int(&mut timeout_ms),
        ];
        if !parse(ex, 4, &mut args) {
            return Ok(());
        }
        let Some(words) = words.and_then(strings) else {
            host::throw_type_error_message(
                "Altair\\Eval\\Runner\\SubprocessRunner::run(): Argument #1 ($command) must be a list of strings",
            );
            return Ok(());
        };
        let Some((program, args)) = words.split_first() else {
            host::throw_value_error(
                "Altair\\Eval\\Runner\\SubprocessRunner::run(): Argument #1 ($command) must not be empty",
            );
            return Ok(());
        };
        let Some(env) = env.and_then(variables) else {
            host::throw_type_error_message(
                "Altair\\Eval\\Runner\\SubprocessRunner::run(): Argument #3 ($env) must be an array of strings by name",
            );
            return Ok(());
        };
        if let Err(forbidden) = settings::programs().permit(Unconfined::Subprocess) {
            throw_runtime(&forbidden);
            return Ok(());
        }
        let command = command::Command {
            search_path: started_with::value("PATH"),
            program: program.clone(),
            args: args.to_vec(),
            cwd: cwd.map(|cwd| PathBuf::from(OsStr::from_bytes(cwd))),
            env,
            timeout: Duration::from_millis(u64::try_from(timeout_ms).unwrap_or_default()),
        };
        let mut wants = Ok(());
        let ended = command.run(&mut || {
            wants = host::interrupts();
            wants.is_ok()
        });
        match (wants, ended) {
            (Err(Wants::Bailout), _) => return Err(Bailout),
            (Err(Wants::Throw), _) | (Ok(()), None) => {}
            (Ok(()), Some(ended)) => {
                let (stdout, stderr) = (
                    json::string(ended.stdout.as_bytes())?,
                    json::string(ended.stderr.as_bytes())?,
                );
                let mut zval = new_object(&RESULT_CLASS);
                if let Some(object) = zval.object_mut() {
                    init(object, "exitCode", int(ended.exit_code));
                    init(object, "stdout", stdout);
                    init(object, "stderr", stderr);
                    init(object, "timedOut", boolean(ended.timed_out));
                    init(
                        object,
                        "durationMs",
                        int(i64::try_from(ended.duration_ms).unwrap_or(i64::MAX)),
                    );
                }
                *returned = zval;
            }
        }
        Ok(())
    });
}

/// The items of an array as arguments of a command line; `None` if one is not a scalar.
fn strings(array: &Zval) -> Option<Vec<OsString>> {
    array.array()?.values().map(word).collect()
}

fn word(value: &Zval) -> Option<OsString> {
    let value = value.dereference();
    match (
        value.is_string(),
        value.long(),
        value.double(),
        value.bool(),
    ) {
        (true, ..) => Some(OsStr::from_bytes(string_bytes(value)).to_owned()),
        (_, Some(n), ..) => Some(n.to_string().into()),
        (_, _, Some(f), _) => Some(f.to_string().into()),
        (_, _, _, Some(b)) => Some(if b { "1" } else { "" }.into()),
        _ => None,
    }
}

fn variables(array: &Zval) -> Option<Vec<(OsString, OsString)>> {
    entries(array.array()?, usize::MAX)
        .into_iter()
        .map(|(name, value)| {
            let name = match name {
                Key::Int(n) => n.to_string().into(),
                Key::Bytes(bytes) => OsString::from_vec(bytes),
            };
            Some((name, word(value.value())?))
        })
        .collect()
}
