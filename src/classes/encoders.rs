//! `Altair\Eval\Encoder\ValueEncoder` and `ExceptionEncoder`.

use altair_engine::encode::{
    ITERABLE_PREVIEW, Limits, MAX_DEPTH, MAX_PREVIOUS_CHAIN, MAX_TRACE_FRAMES, STRING_MAX,
    encode_exception, encode_value,
};
use ext_php_rs::types::Zval;
use ext_php_rs::zend::{ExecuteData, ce};

use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::node::ZvalNode;
use crate::zend::params::{Arg, parse};
use crate::zend::{Bailout, exception, host, json};

static VALUE: Slot = Slot::new();
static EXCEPTION: Slot = Slot::new();

/// Registers the two classes.
pub fn register() {
    Class::new("Altair\\Eval\\Encoder\\ValueEncoder")
        .constant("MAX_DEPTH", constant(MAX_DEPTH))
        .constant("ITERABLE_PREVIEW", constant(ITERABLE_PREVIEW))
        .constant("STRING_MAX", constant(STRING_MAX))
        .static_method(
            "encode",
            encode_a_value,
            vec![Param::required("value", Type::MIXED)],
            Type::ARRAY,
        )
        .register(&VALUE);
    let throwable = Param::required("throwable", Type::class("Throwable"));
    Class::new("Altair\\Eval\\Encoder\\ExceptionEncoder")
        .constant("MAX_PREVIOUS_CHAIN", constant(MAX_PREVIOUS_CHAIN))
        .constant("MAX_TRACE_FRAMES", constant(MAX_TRACE_FRAMES))
        .static_method("encode", encode_a_throwable, vec![throwable], Type::ARRAY)
        .register(&EXCEPTION);
}

fn constant(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

extern "C" fn encode_a_value(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut subject = None;
        parse(ex, 1, &mut [Arg::Value(&mut subject)]);
        let Some(subject) = subject else {
            return Ok(());
        };
        match encode_value(&ZvalNode::new(subject), Limits::default()) {
            Ok(encoded) => *returned = json::to_zval(&encoded)?,
            // `exit` is a pending exception and continues by itself; a bailout is passed on.
            Err(_) if host::has_exception() => {}
            Err(_) => return Err(Bailout),
        }
        Ok(())
    });
}

extern "C" fn encode_a_throwable(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut throwable = None;
        parse(ex, 1, &mut [Arg::Of(ce::throwable(), &mut throwable)]);
        if let Some(throwable) = throwable {
            *returned = json::to_zval(&encode_exception(&exception::view(throwable)))?;
        }
        Ok(())
    });
}
