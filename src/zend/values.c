/* PHP's values, looked at without running code and by running it, and made. */

#include "shim.h"
#include "zend_closures.h"
#include "zend_enum.h"
#include "zend_interfaces.h"
#include "zend_exceptions.h"
#include "zend_smart_str.h"
#include "ext/date/php_date.h"
#include "ext/json/php_json.h"

/* ---- values, looked at without running code ---- */

void altair_entries(zend_array *array, size_t max, altair_each each, void *context)
{
	zend_ulong index;
	zend_string *key;
	zval *value;
	ZEND_HASH_FOREACH_KEY_VAL(array, index, key, value) {
		if (max-- == 0) {
			break;
		}
		each(context, key ? ZSTR_VAL(key) : NULL, key ? ZSTR_LEN(key) : 0, (zend_long) index, value);
	} ZEND_HASH_FOREACH_END();
}

/* What a table of properties holds beyond the declared ones, private and protected ones left out. */
static void dynamic_properties(zend_array *table, size_t max, altair_each each, void *context)
{
	zend_ulong index;
	zend_string *key;
	zval *value;
	ZEND_HASH_FOREACH_KEY_VAL(table, index, key, value) {
		if (Z_TYPE_P(value) == IS_INDIRECT) {
			continue; /* a declared one */
		}
		if (max == 0) {
			break;
		}
		if (key == NULL || ZSTR_LEN(key) == 0 || ZSTR_VAL(key)[0] != '\0') {
			max--;
			each(context, key ? ZSTR_VAL(key) : NULL, key ? ZSTR_LEN(key) : 0, (zend_long) index, value);
		}
	} ZEND_HASH_FOREACH_END();
}

void altair_public_properties(zend_object *object, size_t max, altair_each each, void *context)
{
	zend_string *key;
	zend_property_info *info;
	/* Straight from the slots: no hook, no initialiser of a lazy object runs. */
	ZEND_HASH_FOREACH_STR_KEY_PTR(&object->ce->properties_info, key, info) {
		if (key == NULL || (info->flags & ZEND_ACC_STATIC) || !(info->flags & ZEND_ACC_PUBLIC)) {
			continue;
		}
#ifdef ZEND_ACC_VIRTUAL
		if (info->flags & ZEND_ACC_VIRTUAL) {
			continue;
		}
#endif
		zval *value = OBJ_PROP(object, info->offset);
		if (Z_TYPE_P(value) != IS_UNDEF && max > 0) {
			max--;
			each(context, ZSTR_VAL(key), ZSTR_LEN(key), 0, value);
		}
	} ZEND_HASH_FOREACH_END();
	if (object->handlers->get_properties != zend_std_get_properties) {
		/* A built-in class that makes its properties up, as DateInterval does. No user code. */
		zend_array *table = object->handlers->get_properties(object);
		if (table != NULL) {
			dynamic_properties(table, max, each, context);
		}
	} else if (object->properties != NULL) {
		dynamic_properties(object->properties, max, each, context);
	}
}

enum altair_kind altair_object_kind(zend_object *object)
{
	zend_class_entry *ce = object->ce;
	if (ce->ce_flags & ZEND_ACC_ENUM) {
		return ALTAIR_ENUM;
	}
	if (ce == zend_ce_closure) {
		return ALTAIR_CLOSURE;
	}
	if (instanceof_function(ce, php_date_get_interface_ce())) {
		return ALTAIR_DATE;
	}
	return instanceof_function(ce, zend_ce_traversable) ? ALTAIR_TRAVERSABLE : ALTAIR_PLAIN;
}

bool altair_is_countable(zend_object *object)
{
	return instanceof_function(object->ce, zend_ce_countable);
}

bool altair_array_is_list(zend_array *array)
{
	return zend_array_is_list(array);
}

zval *altair_enum_case(zend_object *object)
{
	return zend_enum_fetch_case_name(object);
}

zval *altair_enum_backing(zend_object *object)
{
	return object->ce->enum_backing_type == IS_UNDEF ? NULL : zend_enum_fetch_case_value(object);
}

bool altair_closure_place(zend_object *object, altair_place *place)
{
	const zend_function *func = zend_get_closure_method_def(object);
	if (func->type != ZEND_USER_FUNCTION) {
		return false;
	}
	place->file = func->op_array.filename;
	place->line = func->op_array.line_start;
	return true;
}

const zend_string *altair_closure_name(zend_object *object)
{
	return zend_get_closure_method_def(object)->common.function_name;
}

const char *altair_resource_kind(zval *resource)
{
	return zend_rsrc_list_get_rsrc_type(Z_RES_P(resource));
}

/* ---- values, looked at by running code ---- */

bool altair_has_method(zend_object *object, const char *name, size_t len)
{
	zend_function *func = zend_hash_str_find_ptr(&object->ce->function_table, name, len);
	return func != NULL && (func->common.fn_flags & ZEND_ACC_PUBLIC)
		&& !(func->common.fn_flags & ZEND_ACC_STATIC);
}

bool altair_call_method(zend_object *object, const char *name, size_t len, zval *result)
{
	ZVAL_UNDEF(result);
	zend_function *func = zend_hash_str_find_ptr(&object->ce->function_table, name, len);
	if (func == NULL) {
		return false;
	}
	zend_call_known_function(func, object, object->ce, result, 0, NULL, NULL);
	return true;
}

void altair_format_date(zend_object *object, zval *result)
{
	zend_class_entry *ce = instanceof_function(object->ce, php_date_get_immutable_ce())
		? php_date_get_immutable_ce() : php_date_get_date_ce();
	zend_function *format = zend_hash_str_find_ptr(&ce->function_table, ZEND_STRL("format"));
	zval pattern, micros;
	ZVAL_UNDEF(result);
	ZVAL_UNDEF(&micros);
	ZVAL_STRINGL(&pattern, "u", 1);
	zend_call_known_function(format, object, object->ce, &micros, 1, &pattern, NULL);
	zval_ptr_dtor(&pattern);
	bool whole = Z_TYPE(micros) != IS_STRING || zend_string_equals_literal(Z_STR(micros), "000000");
	zval_ptr_dtor(&micros);
	if (EG(exception)) {
		return;
	}
	ZVAL_STRING(&pattern, whole ? "Y-m-d\\TH:i:sP" : "Y-m-d\\TH:i:s.uP");
	zend_call_known_function(format, object, object->ce, result, 1, &pattern, NULL);
	zval_ptr_dtor(&pattern);
}

void *altair_iterator(zend_object *object)
{
	zval zv;
	ZVAL_OBJ(&zv, object);
	return object->ce->get_iterator(object->ce, &zv, 0);
}

int altair_iterator_step(void *handle, bool first, zval *key, zval *value)
{
	zend_object_iterator *it = handle;
	const zend_object_iterator_funcs *funcs = it->funcs;
	ZVAL_UNDEF(key);
	ZVAL_UNDEF(value);
	if (first) {
		it->index = 0;
		if (funcs->rewind) {
			funcs->rewind(it);
		}
	} else {
		it->index++;
		funcs->move_forward(it);
	}
	if (EG(exception)) {
		return -1;
	}
	bool valid = funcs->valid(it) == SUCCESS;
	if (EG(exception)) {
		return -1;
	}
	if (!valid) {
		return 0;
	}
	zval *current = funcs->get_current_data(it);
	if (EG(exception) || current == NULL) {
		return EG(exception) ? -1 : 0;
	}
	ZVAL_COPY_DEREF(value, current);
	if (funcs->get_current_key) {
		funcs->get_current_key(it, key);
	} else {
		ZVAL_LONG(key, (zend_long) it->index);
	}
	return EG(exception) ? -1 : 1;
}

void altair_iterator_free(void *handle)
{
	zend_iterator_dtor(handle);
}

/* ---- making values ---- */

void altair_make_string(zval *value, const char *text, size_t len)
{
	ZVAL_STRINGL_FAST(value, text, len);
}

void altair_make_array(zval *value, uint32_t size)
{
	array_init_size(value, size);
}

void altair_array_push(zval *array, zval *item)
{
	add_next_index_zval(array, item);
}

void altair_array_set(zval *array, const char *key, size_t len, zval *item)
{
	if (len == 0) { /* Rust's pointer of an empty text may not be read, not even its first byte */
		zend_hash_update(Z_ARRVAL_P(array), ZSTR_EMPTY_ALLOC(), item);
	} else {
		zend_symtable_str_update(Z_ARRVAL_P(array), key, len, item);
	}
}

void altair_array_set_index(zval *array, zend_long key, zval *item)
{
	zend_hash_index_update(Z_ARRVAL_P(array), (zend_ulong) key, item);
}

void altair_keep_as_object(zval *array)
{
	if (!zend_array_is_list(Z_ARRVAL_P(array))) {
		return;
	}
	zend_array *items = Z_ARRVAL_P(array);
	zend_object *object = zend_objects_new(zend_standard_class_def);
	object->properties = zend_symtable_to_proptable(items);
	zend_array_release(items);
	ZVAL_OBJ(array, object);
}

void altair_json_encode(zval *value, zval *text)
{
	smart_str json = {0};
	php_json_encode(&json, value, PHP_JSON_PRETTY_PRINT | PHP_JSON_UNESCAPED_SLASHES
		| PHP_JSON_UNESCAPED_UNICODE | PHP_JSON_INVALID_UTF8_SUBSTITUTE
		| PHP_JSON_PARTIAL_OUTPUT_ON_ERROR | PHP_JSON_PRESERVE_ZERO_FRACTION);
	smart_str_appendc(&json, '\n');
	ZVAL_STR(text, smart_str_extract(&json));
}
