/* The PHP that this was built against, and calls that the host's side makes. */

#include "shim.h"
#include "zend_exceptions.h"
#include "zend_interfaces.h"

/* ---- what this was built against ---- */

const char *altair_php_version(void)
{
	return PHP_VERSION;
}

bool altair_php_is_zts(void)
{
#ifdef ZTS
	return true;
#else
	return false;
#endif
}

bool altair_php_is_debug(void)
{
	return ZEND_DEBUG;
}

/* ---- the host's side ---- */

bool altair_interrupts(void)
{
	if (!zend_atomic_bool_load_ex(&EG(vm_interrupt))) {
		return false;
	}
	zend_atomic_bool_store_ex(&EG(vm_interrupt), false);
	if (zend_atomic_bool_load_ex(&EG(timed_out))) {
		zend_timeout();
	} else if (zend_interrupt_function) {
		zend_interrupt_function(EG(current_execute_data));
	}
	return true;
}

bool altair_starts_programs(void)
{
	/* A function that is disabled is removed from the table, and the application may then declare one of
	 * that name (zend_disable_functions). */
	const zend_function *function = zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("proc_open"));
	return function != NULL && function->type == ZEND_INTERNAL_FUNCTION;
}

void altair_wrong_type(uint32_t number, const char *expected, zval *given)
{
	zend_argument_type_error(number, "must be of type %s, %s given", expected, zend_zval_type_name(given));
}

zend_array *altair_extra_named(zend_execute_data *call)
{
	return ZEND_CALL_INFO(call) & ZEND_CALL_HAS_EXTRA_NAMED_PARAMS ? call->extra_named_params : NULL;
}

const zend_string *altair_called_name(zend_execute_data *call)
{
	return call->func->common.function_name;
}

bool altair_parse_callable(uint32_t number, zval *value)
{
	char *error = NULL;
	if (Z_TYPE_P(value) == IS_NULL || zend_is_callable_ex(value, NULL, 0, NULL, NULL, &error)) {
		if (error != NULL) {
			efree(error);
		}
		return true;
	}
	zend_argument_type_error(number, "must be a valid callback or null, %s", error ? error : "no callable given");
	if (error != NULL) {
		efree(error);
	}
	return false;
}

bool altair_call(zval *callable, uint32_t count, zval *arguments, zval *result)
{
	zend_fcall_info fci = {0};
	zend_fcall_info_cache fcc = {0};
	ZVAL_UNDEF(result);
	if (zend_fcall_info_init(callable, 0, &fci, &fcc, NULL, NULL) != SUCCESS) {
		return false;
	}
	fci.retval = result;
	fci.param_count = count;
	fci.params = arguments;
	return zend_call_function(&fci, &fcc) == SUCCESS && EG(exception) == NULL;
}
