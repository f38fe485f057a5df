//! `Altair\Sandbox\Sandbox`, which makes drivers.

use altair_command::Driver;
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ExecuteData;

use super::{can_execute_command, drivers, execution_policy, sandbox_driver, throw};
use crate::classes::exceptions::throw_error;
use crate::zend::class::{Class, Handler, Param, Slot, Type};
use crate::zend::host;
use crate::zend::object::{
    init, new_object, property, share, string_bytes, this, throw_never_constructed,
};
use crate::zend::params::{Arg, parse};

/// The class.
const NAME: &str = "Altair\\Sandbox\\Sandbox";

static CLASS: Slot = Slot::new();

const POLICY: &str = "policy";

/// Registers the class.
pub fn register() {
    let policy = || vec![Param::required(POLICY, Type::class(execution_policy::NAME))];
    let made = Type::class(can_execute_command::NAME);
    let mut class = Class::readonly(NAME)
        .private_property(POLICY, Type::class(execution_policy::NAME))
        .constructor(construct, policy())
        .static_method("fromPolicy", from_policy, policy(), Type::class(NAME))
        .method_or_string(
            "using",
            using,
            Param::required("driver", Type::class(sandbox_driver::NAME)),
            made,
        );
    let factories: [(Driver, Handler); 6] = [
        (Driver::Host, host_factory),
        (Driver::Docker, docker),
        (Driver::Podman, podman),
        (Driver::Firejail, firejail),
        (Driver::Bubblewrap, bubblewrap),
        (Driver::Native, native),
    ];
    for (driver, factory) in factories {
        class = class.static_method(driver.name(), factory, drivers::params(driver), made);
    }
    class.register(&CLASS);
}

/// The policy that a call was given; `None`: PHP has thrown.
fn policy_argument(ex: &mut ExecuteData) -> Option<Zval> {
    let mut policy = None;
    let mut args = [Arg::Of(execution_policy::class(), &mut policy)];
    parse(ex, 1, &mut args).then(|| policy.map_or_else(Zval::null, share))
}

extern "C" fn construct(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        let Some(policy) = policy_argument(ex) else {
            return Ok(());
        };
        let object = this(ex);
        if property(object, POLICY).is_some() {
            throw_error("Cannot modify readonly property Altair\\Sandbox\\Sandbox::$policy");
            return Ok(());
        }
        init(object, POLICY, policy);
        Ok(())
    });
}

extern "C" fn from_policy(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let Some(policy) = policy_argument(ex) else {
            return Ok(());
        };
        let mut zval = new_object(&CLASS);
        if let Some(object) = zval.object_mut() {
            init(object, POLICY, policy);
        }
        *returned = zval;
        Ok(())
    });
}

extern "C" fn using(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut named = None;
        if !parse(ex, 1, &mut [Arg::Value(&mut named)]) {
            return Ok(());
        }
        let object = this(ex);
        let Some(policy) = property(object, POLICY).and_then(Zval::object) else {
            throw_never_constructed(object);
            return Ok(());
        };
        let Some(named) = named else { return Ok(()) };
        let driver = match named.object() {
            Some(case) => sandbox_driver::read(case),
            None if named.is_string() => {
                match String::from_utf8_lossy(string_bytes(named)).parse::<Driver>() {
                    Ok(driver) => Some(driver),
                    Err(error) => {
                        throw(&error);
                        return Ok(());
                    }
                }
            }
            None => None,
        };
        match driver {
            Some(driver) => *returned = drivers::with_policy(driver, policy)?,
            None => host::throw_type_error_message(
                "Altair\\Sandbox\\Sandbox::using(): Argument #1 ($driver) must be of type Altair\\Sandbox\\Enums\\SandboxDriver|string",
            ),
        }
        Ok(())
    });
}

fn factory(ex: &mut ExecuteData, returned: &mut Zval, driver: Driver) {
    host::method(|| {
        if let Some(given) = drivers::given(ex, driver) {
            *returned = drivers::make(driver, &given)?;
        }
        Ok(())
    });
}

extern "C" fn host_factory(ex: &mut ExecuteData, returned: &mut Zval) {
    factory(ex, returned, Driver::Host);
}

extern "C" fn docker(ex: &mut ExecuteData, returned: &mut Zval) {
    factory(ex, returned, Driver::Docker);
}

extern "C" fn podman(ex: &mut ExecuteData, returned: &mut Zval) {
    factory(ex, returned, Driver::Podman);
}

extern "C" fn firejail(ex: &mut ExecuteData, returned: &mut Zval) {
    factory(ex, returned, Driver::Firejail);
}

extern "C" fn bubblewrap(ex: &mut ExecuteData, returned: &mut Zval) {
    factory(ex, returned, Driver::Bubblewrap);
}

extern "C" fn native(ex: &mut ExecuteData, returned: &mut Zval) {
    factory(ex, returned, Driver::Native);
}
