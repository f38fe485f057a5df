//! `Altair\Sandbox\Value\Argv`, `CommandSpec` and `Altair\Sandbox\Data\Mount`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use altair_command::CommandError;
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ExecuteData;

use super::{arrays, throw};
use crate::classes::exceptions::throw_error;
use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::object::{self, init, new_object, property, share, this, throw_never_constructed};
use crate::zend::params::{Arg, parse};
use crate::zend::{Bailout, host, json};

const ARGV: &str = "Altair\\Sandbox\\Value\\Argv";
const COMMAND_SPEC: &str = "Altair\\Sandbox\\Value\\CommandSpec";
const MOUNT: &str = "Altair\\Sandbox\\Data\\Mount";

static ARGV_CLASS: Slot = Slot::new();
static COMMAND_SPEC_CLASS: Slot = Slot::new();
static MOUNT_CLASS: Slot = Slot::new();

/// Registers the three classes.
pub fn register() {
    let argv = Type::class(ARGV);
    Class::readonly(ARGV)
        .private_constructor()
        .property("arguments", Type::ARRAY)
        .static_method(
            "of",
            argv_of,
            vec![Param::required("argv", Type::ARRAY)],
            argv,
        )
        .method(
            "with",
            argv_with,
            vec![Param::required("argument", Type::STRING)],
            argv,
        )
        .method("toArray", argv_to_array, vec![], Type::ARRAY)
        .register(&ARGV_CLASS);
    Class::readonly(COMMAND_SPEC)
        .accessor("argv", argv)
        .accessor("stdin", Type::STRING.or_null())
        .constructor(
            construct_command_spec,
            vec![
                Param::required("argv", argv),
                Param::optional("stdin", Type::STRING.or_null(), "null"),
            ],
        )
        .register(&COMMAND_SPEC_CLASS);
    let texts = ["host", "container", "options"];
    let mut mount = Class::readonly(MOUNT);
    for name in texts {
        mount = mount.accessor(name, Type::STRING);
    }
    let params = texts.map(|name| Param::required(name, Type::STRING));
    mount
        .constructor(construct_mount, params.into())
        .method("toVolumeArg", to_volume_arg, vec![], Type::STRING)
        .register(&MOUNT_CLASS);
}

/// The command that an array of PHP's is: its program and its arguments.
///
/// # Errors
///
/// It is empty, or holds what no program can be told.
pub fn command(argv: &Zval) -> Result<Vec<OsString>, CommandError> {
    let argv = arrays::strings(argv, "arguments of the command")?;
    if argv.is_empty() {
        return Err(CommandError::Invalid(
            "The command must not be empty.".into(),
        ));
    }
    argv.iter().try_for_each(|argument| checked(argument))?;
    Ok(argv)
}

/// An argument that a program can be told.
fn checked(argument: &OsStr) -> Result<(), CommandError> {
    if argument.as_bytes().contains(&0) {
        let shown = argument.display().to_string().escape_debug().to_string();
        return Err(CommandError::Invalid(format!(
            "The argument \"{shown}\" of the command holds a NUL byte."
        )));
    }
    Ok(())
}

/// Returns an `Argv` to PHP, or throws.
fn give(argv: Result<Vec<OsString>, CommandError>, returned: &mut Zval) -> Result<(), Bailout> {
    match argv {
        Ok(argv) => {
            let list = arrays::list(&argv)?;
            let mut zval = new_object(&ARGV_CLASS);
            if let Some(object) = zval.object_mut() {
                init(object, "arguments", list);
            }
            *returned = zval;
        }
        Err(error) => throw(&error),
    }
    Ok(())
}

extern "C" fn argv_of(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut argv = None;
        if !parse(ex, 1, &mut [Arg::Array(&mut argv)]) {
            return Ok(());
        }
        argv.map_or(Ok(()), |argv| give(command(argv), returned))
    });
}

extern "C" fn argv_with(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut argument: &[u8] = &[];
        if !parse(ex, 1, &mut [Arg::Bytes(&mut argument)]) {
            return Ok(());
        }
        let object = this(ex);
        let Some(argv) = property(object, "arguments") else {
            throw_never_constructed(object);
            return Ok(());
        };
        let argument = arrays::os(argument);
        let longer = checked(&argument).and_then(|()| {
            let mut argv = command(argv)?;
            argv.push(argument);
            Ok(argv)
        });
        give(longer, returned)
    });
}

extern "C" fn argv_to_array(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        if !parse(ex, 0, &mut []) {
            return Ok(());
        }
        let object = this(ex);
        match property(object, "arguments") {
            Some(argv) => *returned = argv.shallow_clone(),
            None => throw_never_constructed(object),
        }
        Ok(())
    });
}

extern "C" fn construct_command_spec(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        let (mut argv, mut stdin) = (None, None);
        let mut args = [
            Arg::Of(ARGV_CLASS.get(), &mut argv),
            Arg::BytesOrNull(&mut stdin),
        ];
        if !parse(ex, 1, &mut args) {
            return Ok(());
        }
        let stdin = stdin.map_or_else(|| Ok(Zval::null()), json::string)?;
        let object = this(ex);
        if property(object, "argv").is_some() {
            throw_error(&format!(
                "Cannot modify readonly property {COMMAND_SPEC}::$argv"
            ));
            return Ok(());
        }
        if let Some(argv) = argv {
            init(object, "argv", share(argv));
            init(object, "stdin", stdin);
        }
        Ok(())
    });
}

extern "C" fn construct_mount(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        let (mut at_host, mut container, mut options): (&[u8], &[u8], &[u8]) = Default::default();
        let mut args = [
            Arg::Bytes(&mut at_host),
            Arg::Bytes(&mut container),
            Arg::Bytes(&mut options),
        ];
        if !parse(ex, 3, &mut args) {
            return Ok(());
        }
        let (at_host, container, options) = (
            json::string(at_host)?,
            json::string(container)?,
            json::string(options)?,
        );
        let object = this(ex);
        if property(object, "host").is_some() {
            throw_error(&format!("Cannot modify readonly property {MOUNT}::$host"));
            return Ok(());
        }
        init(object, "host", at_host);
        init(object, "container", container);
        init(object, "options", options);
        Ok(())
    });
}

extern "C" fn to_volume_arg(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        if !parse(ex, 0, &mut []) {
            return Ok(());
        }
        let object = this(ex);
        if property(object, "options").is_none() {
            throw_never_constructed(object);
            return Ok(());
        }
        let parts = ["host", "container", "options"].map(|name| object::bytes(object, name));
        *returned = json::string(&parts.join(&b':'))?;
        Ok(())
    });
}
