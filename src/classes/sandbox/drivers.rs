//! The drivers: `Altair\Sandbox\Drivers\HostSandbox` and the others, which run commands.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use altair_command::{Driver, Sandbox};
use ext_php_rs::types::{ZendObject, Zval};
use ext_php_rs::zend::{ClassEntry, ExecuteData};

use super::{can_execute_command, exec_result, execution, execution_policy};
use crate::classes::exceptions::throw_error;
use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::object::{self, init, new_object, property, share, this, throw_never_constructed};
use crate::zend::params::{Arg, parse};
use crate::zend::{Bailout, host, json};

/// The classes, in the order of [`Driver::ALL`].
static CLASSES: [Slot; 6] = [const { Slot::new() }; 6];

const POLICY: &str = "policy";
const IMAGE: &str = "image";
const BINARY: &str = "binary";

/// What a constructor takes besides the policy, and the property that it goes to.
fn options(driver: Driver) -> &'static [(&'static str, &'static str)] {
    match driver {
        Driver::Host | Driver::Native => &[],
        Driver::Docker => &[("image", IMAGE), ("dockerBin", BINARY)],
        Driver::Podman => &[("image", IMAGE), ("podmanBin", BINARY)],
        Driver::Firejail => &[("firejailBin", BINARY)],
        Driver::Bubblewrap => &[("bubblewrapBin", BINARY)],
    }
}

fn slot(driver: Driver) -> &'static Slot {
    let at = Driver::ALL.iter().position(|known| *known == driver);
    &CLASSES[at.unwrap_or_default()]
}

fn class_name(driver: Driver) -> String {
    let mut name = driver.name().to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!("Altair\\Sandbox\\Drivers\\{name}Sandbox")
}

/// The parameters of a constructor or of a factory.
pub fn params(driver: Driver) -> Vec<Param> {
    let policy = Param::required(POLICY, Type::class(execution_policy::NAME));
    let options = options(driver).iter();
    let options = options.map(|(name, _)| Param::optional(name, Type::STRING.or_null(), "null"));
    [policy].into_iter().chain(options).collect()
}

/// Registers the classes.
pub fn register() {
    for driver in Driver::ALL {
        let interface = (
            can_execute_command::interface as fn() -> &'static ClassEntry,
            can_execute_command::NAME,
        );
        let mut class = Class::readonly(&class_name(driver))
            .implements(interface)
            .accessor(POLICY, Type::class(execution_policy::NAME));
        for (_, name) in options(driver) {
            class = class.private_property(name, Type::STRING.or_null());
        }
        let execute_params = vec![
            Param::required("argv", Type::ARRAY),
            Param::optional("stdin", Type::MIXED, "null"),
            Param::optional("onOutput", Type::CALLABLE.or_null(), "null"),
        ];
        class
            .constructor(construct, params(driver))
            .method(
                "execute",
                execute,
                execute_params,
                Type::class(exec_result::NAME),
            )
            .register(slot(driver));
    }
}

/// The driver that a class is.
fn driver_of(class: *const ClassEntry) -> Driver {
    let is_it = |driver: &Driver| std::ptr::eq(slot(*driver).get(), class);
    Driver::ALL
        .into_iter()
        .find(is_it)
        .unwrap_or(Driver::Native)
}

/// What a constructor or a factory was called with.
pub struct Given<'a> {
    policy: Option<&'a ZendObject>,
    options: [Option<&'a [u8]>; 2],
}

/// Parses what a constructor or a factory was called with; `None` with an exception pending.
pub fn given(ex: &mut ExecuteData, driver: Driver) -> Option<Given<'_>> {
    let (mut policy, mut first, mut second) = (None, None, None);
    let mut args = vec![Arg::Of(execution_policy::class(), &mut policy)];
    let count = options(driver).len();
    let optional = [Arg::BytesOrNull(&mut first), Arg::BytesOrNull(&mut second)];
    args.extend(optional.into_iter().take(count));
    if !parse(ex, 1, &mut args) {
        return None;
    }
    drop(args);
    Some(Given {
        policy,
        options: [first, second],
    })
}

/// A new object of a driver's class.
pub fn make(driver: Driver, given: &Given<'_>) -> Result<Zval, Bailout> {
    let values = values(driver, given)?;
    let mut zval = new_object(slot(driver));
    if let Some(object) = zval.object_mut() {
        for (name, value) in values {
            init(object, name, value);
        }
    }
    Ok(zval)
}

/// A new object of a driver's class that has only a policy.
pub fn with_policy(driver: Driver, policy: &ZendObject) -> Result<Zval, Bailout> {
    let given = Given {
        policy: Some(policy),
        options: [None, None],
    };
    make(driver, &given)
}

fn values(driver: Driver, given: &Given<'_>) -> Result<Vec<(&'static str, Zval)>, Bailout> {
    let policy = given.policy.map_or_else(Zval::null, share);
    let mut values = vec![(POLICY, policy)];
    for ((_, name), value) in options(driver).iter().zip(given.options) {
        let value = match value {
            Some(text) => json::string(text)?,
            None => Zval::null(),
        };
        values.push((name, value));
    }
    Ok(values)
}

extern "C" fn construct(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        let driver = driver_of(this(ex).ce);
        let Some(given) = given(ex, driver) else {
            return Ok(());
        };
        let values = values(driver, &given)?;
        let object = this(ex);
        if property(object, POLICY).is_some() {
            throw_error(&format!(
                "Cannot modify readonly property {}::$policy",
                class_name(driver)
            ));
            return Ok(());
        }
        for (name, value) in values {
            init(object, name, value);
        }
        Ok(())
    });
}

extern "C" fn execute(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let (mut argv, mut stdin, mut on_output) = (None, None, None);
        let mut args = [
            Arg::Array(&mut argv),
            Arg::Value(&mut stdin),
            Arg::CallableOrNull(&mut on_output),
        ];
        if !parse(ex, 1, &mut args) {
            return Ok(());
        }
        let object = this(ex);
        let Some(policy) = property(object, POLICY).and_then(Zval::object) else {
            throw_never_constructed(object);
            return Ok(());
        };
        let Some(policy) = execution_policy::read(policy)? else {
            return Ok(());
        };
        let text = |name| {
            let bytes = property(object, name).map(|_| object::bytes(object, name));
            bytes.filter(|bytes| !bytes.is_empty())
        };
        let driver = driver_of(object.ce);
        let sandbox = Sandbox {
            driver,
            binary: text(BINARY).map(|name| OsString::from(std::ffi::OsStr::from_bytes(name))),
            image: text(IMAGE).map(|name| String::from_utf8_lossy(name).into_owned()),
        };
        match argv {
            Some(argv) => execution::execute(sandbox, policy, argv, stdin, on_output, returned),
            None => Ok(()),
        }
    });
}
