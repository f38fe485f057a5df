//! `Altair\Eval\Encoder\ValueEncoder` and `ExceptionEncoder`.

use altair_engine::encode::{
    ITERABLE_PREVIEW, Key, MAX_DEPTH, MAX_PREVIOUS_CHAIN, MAX_TRACE_FRAMES, Options, STRING_MAX,
    encode_exception, encode_value,
};
use ext_php_rs::types::Zval;
use ext_php_rs::zend::{ExecuteData, ce};

use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::node::{ZvalNode, entries};
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
            vec![
                Param::required("value", Type::MIXED),
                Param::optional("seen", Type::ARRAY, "[]"),
                Param::optional("depth", Type::INT, "0"),
            ],
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
        let (mut subject, mut seen, mut depth) = (None, None, 0_i64);
        let mut args = [
            Arg::Value(&mut subject),
            Arg::Array(&mut seen),
            Arg::Int(&mut depth),
        ];
        if !parse(ex, 1, &mut args) {
            return Ok(());
        }
        let Some(subject) = subject else {
            return Ok(());
        };
        let options = Options {
            seen: seen.map_or_else(Vec::new, ids),
            depth: usize::try_from(depth.max(0)).unwrap_or(usize::MAX),
            ..Options::default()
        };
        match encode_value(&ZvalNode::new(subject), options) {
            Ok(encoded) => *returned = json::encoded_to_zval(&encoded)?,
            // `exit` goes on by itself, a bailout has to be sent on.
            Err(_) if host::has_exception() => {}
            Err(_) => return Err(Bailout),
        }
        Ok(())
    });
}

/// The ids of the objects in a list: each itself, its id, or its id as a key of `true`.
fn ids(seen: &Zval) -> Vec<u32> {
    let Some(seen) = seen.array() else {
        return Vec::new();
    };
    let found = entries(seen, usize::MAX)
        .into_iter()
        .filter_map(|(key, value)| {
            let value = value.value();
            match (key, value.object(), value.long(), value.bool()) {
                (_, Some(object), ..) => Some(object.get_id()),
                (_, _, Some(id), _) => u32::try_from(id).ok(),
                (Key::Int(id), _, _, Some(true)) => u32::try_from(id).ok(),
                _ => None,
            }
        });
    found.collect()
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
