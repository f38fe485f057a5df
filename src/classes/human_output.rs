//! `Altair\Eval\Support\HumanOutput`.

use altair_cli::escape;
use altair_cli::human::{Theme, headline, render};
use ext_php_rs::types::Zval;
use ext_php_rs::zend::ExecuteData;

use super::eval_result;
use crate::zend::class::{Class, Param, Slot, Type};
use crate::zend::params::{Arg, parse};
use crate::zend::{host, json};

static CLASS: Slot = Slot::new();

/// Registers the class.
pub fn register() {
    let result = || Param::required("result", Type::class(eval_result::NAME));
    Class::new("Altair\\Eval\\Support\\HumanOutput")
        .static_method(
            "render",
            of_result,
            vec![result(), Param::optional("color", Type::BOOL, "false")],
            Type::STRING,
        )
        .static_method("headline", headline_of, vec![result()], Type::STRING)
        .static_method(
            "line",
            line,
            vec![Param::required("text", Type::STRING)],
            Type::STRING,
        )
        .register(&CLASS);
}

extern "C" fn of_result(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let (mut result, mut color) = (None, false);
        let mut args = [
            Arg::Of(eval_result::class(), &mut result),
            Arg::Bool(&mut color),
        ];
        if parse(ex, 1, &mut args)
            && let Some(result) = result.map(eval_result::read).transpose()?.flatten()
        {
            *returned = json::string(render(&result, Theme::new(color)).as_bytes())?;
        }
        Ok(())
    });
}

extern "C" fn headline_of(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut result = None;
        if parse(ex, 1, &mut [Arg::Of(eval_result::class(), &mut result)])
            && let Some(result) = result.map(eval_result::read).transpose()?.flatten()
        {
            *returned = json::string(headline(&result).as_bytes())?;
        }
        Ok(())
    });
}

extern "C" fn line(ex: &mut ExecuteData, returned: &mut Zval) {
    host::method(|| {
        let mut text: &[u8] = &[];
        if parse(ex, 1, &mut [Arg::Bytes(&mut text)]) {
            let text = String::from_utf8_lossy(text);
            *returned = json::string(escape::line(&text).as_bytes())?;
        }
        Ok(())
    });
}
