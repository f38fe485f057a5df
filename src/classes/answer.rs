//! `Altair\Eval\Support\Answer`.

use altair_cli::json as text;
use altair_engine::answer;
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ExecuteData;

use super::eval_result;
use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::params::{Arg, parse};
use crate::zend::{host, json};

static CLASS: Slot = Slot::new();

/// Registers the class.
pub fn register() {
    let flag = |name| Param::optional(name, Type::BOOL, "false");
    let result = || Param::required("result", Type::class(eval_result::NAME));
    let of_agent = vec![result(), flag("verbose"), flag("typed")];
    let of_program = vec![result(), flag("compact"), flag("verbose"), flag("pretty")];
    Class::new("Altair\\Eval\\Support\\Answer")
        .static_method("toAgent", to_agent, of_agent, Type::ARRAY)
        .static_method("toJson", to_json, of_program, Type::STRING)
        .register(&CLASS);
}

extern "C" fn to_agent(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let (mut result, mut verbose, mut typed) = (None, false, false);
        let mut args = [
            Arg::Of(eval_result::class(), &mut result),
            Arg::Bool(&mut verbose),
            Arg::Bool(&mut typed),
        ];
        if parse(ex, 1, &mut args)
            && let Some(result) = result.map(eval_result::read).transpose()?.flatten()
        {
            let answer = answer::Answer {
                verbose,
                typed,
                reader: answer::Reader::Agent,
            };
            *returned = json::to_zval(&answer.of(&result))?;
        }
        Ok(())
    });
}

extern "C" fn to_json(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut result = None;
        let (mut compact, mut verbose, mut pretty) = (false, false, false);
        let mut args = [
            Arg::Of(eval_result::class(), &mut result),
            Arg::Bool(&mut compact),
            Arg::Bool(&mut verbose),
            Arg::Bool(&mut pretty),
        ];
        if parse(ex, 1, &mut args)
            && let Some(result) = result.map(eval_result::read).transpose()?.flatten()
        {
            let answer = match compact {
                true => answer::Answer {
                    verbose,
                    ..answer::Answer::default()
                }
                .of(&result),
                false => answer::public(&result, verbose),
            };
            *returned = json::string(text::result(&answer, pretty).as_bytes())?;
        }
        Ok(())
    });
}
