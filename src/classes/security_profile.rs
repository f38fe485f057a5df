//! `Altair\Eval\Runner\SecurityProfile`.

use altair_engine::profile::SecurityProfile;
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ExecuteData;
use serde_json::Value;

use super::eval_request;
use super::exceptions::throw_error;
use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::object::{init, property, share, this};
use crate::zend::params::{Arg, ini, parse};
use crate::zend::{Bailout, host, json};

static CLASS: Slot = Slot::new();

/// Registers the class.
pub fn register() {
    Class::readonly("Altair\\Eval\\Runner\\SecurityProfile")
        .property("request", Type::class(eval_request::NAME))
        .constructor(
            construct,
            vec![Param::required("request", Type::class(eval_request::NAME))],
        )
        .method(
            "phpFlags",
            php_flags,
            vec![Param::required("allowedBaseDir", Type::STRING)],
            Type::ARRAY,
        )
        .method("envVars", env_vars, vec![], Type::ARRAY)
        .register(&CLASS);
}

extern "C" fn construct(ex: &mut ExecuteData, _: &mut Zval) {
    host::method(|| {
        let mut request = None;
        if !parse(ex, 1, &mut [Arg::Of(eval_request::class(), &mut request)]) {
            return Ok(());
        }
        let object = this(ex);
        if property(object, "request").is_some() {
            throw_error(
                "Cannot modify readonly property Altair\\Eval\\Runner\\SecurityProfile::$request",
            );
            return Ok(());
        }
        if let Some(request) = request {
            init(object, "request", share(request));
        }
        Ok(())
    });
}

fn profile(ex: &mut ExecuteData) -> Result<Option<SecurityProfile>, Bailout> {
    match property(this(ex), "request").and_then(Zval::object) {
        Some(request) => Ok(eval_request::read(request)?
            .as_ref()
            .map(SecurityProfile::from)),
        None => {
            throw_error("The SecurityProfile was never constructed");
            Ok(None)
        }
    }
}

extern "C" fn php_flags(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut base: &[u8] = &[];
        if !parse(ex, 1, &mut [Arg::Bytes(&mut base)]) {
            return Ok(());
        }
        let base = String::from_utf8_lossy(base);
        if let Some(profile) = profile(ex)? {
            let flags = profile.php_flags(&base, &ini(c"disable_functions"));
            *returned = json::to_zval(&flags.into())?;
        }
        Ok(())
    });
}

extern "C" fn env_vars(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        if parse(ex, 0, &mut [])
            && let Some(profile) = profile(ex)?
        {
            let vars = profile
                .env_vars()
                .map(|(name, value)| (name.to_owned(), Value::from(value)));
            *returned = json::to_zval(&Value::Object(vars.into_iter().collect()))?;
        }
        Ok(())
    });
}
