//! `Altair\Eval\Support\Json`.

use ext_php_rs::types::Zval;
use ext_php_rs::zend::ExecuteData;

use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::params::{Arg, parse};
use crate::zend::{host, json};

static JSON: Slot = Slot::new();

/// Registers the class.
pub fn register() {
    let params = vec![Param::required("data", Type::ARRAY)];
    Class::new("Altair\\Eval\\Support\\Json")
        .static_method("encode", encode, params, Type::STRING)
        .register(&JSON);
}

extern "C" fn encode(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut data = None;
        parse(ex, 1, &mut [Arg::Array(&mut data)]);
        if let Some(data) = data {
            *returned = json::encode_pretty(data)?;
        }
        Ok(())
    });
}
