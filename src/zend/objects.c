/* Our classes and their properties, and exceptions. */

#include "shim.h"
#include "zend_exceptions.h"
#include "zend_enum.h"
#include "zend_interfaces.h"

/* ---- classes ---- */

void altair_declare_readonly(
	zend_class_entry *ce, const char *name, size_t len, uint32_t mask, const char *class_name, bool is_private)
{
	zval undef;
	ZVAL_UNDEF(&undef);
	zend_string *key = zend_string_init_interned(name, len, 1);
	zend_type type = ZEND_TYPE_INIT_MASK(mask);
	if (class_name != NULL) {
		zend_string *type_name = zend_string_init_interned(class_name, strlen(class_name), 1);
		type = (zend_type) ZEND_TYPE_INIT_CLASS(type_name, (mask & MAY_BE_NULL) != 0, 0);
	}
	int flags = (is_private ? ZEND_ACC_PRIVATE : ZEND_ACC_PUBLIC) | ZEND_ACC_READONLY;
	zend_declare_typed_property(ce, key, &undef, flags, NULL, type);
	zend_string_release(key);
}

void altair_or_string(zend_class_entry *ce, const char *method, size_t len)
{
	zend_function *function = zend_hash_str_find_ptr(&ce->function_table, method, len);
	if (function != NULL && function->common.num_args > 0) {
		ZEND_TYPE_FULL_MASK(function->common.arg_info[0].type) |= MAY_BE_STRING;
	}
}

zend_class_entry *altair_register_enum(const char *name)
{
	zend_class_entry *ce = zend_register_internal_enum(name, IS_STRING, NULL);
	/* As an enum in PHP is; not every version does this itself. */
	ce->ce_flags |= ZEND_ACC_FINAL;
	return ce;
}

void altair_add_case(zend_class_entry *ce, const char *name, const char *value)
{
	zval backing;
	ZVAL_STR(&backing, zend_string_init_interned(value, strlen(value), 1));
	zend_enum_add_case_cstr(ce, name, &backing);
}

zend_object *altair_case_named(zend_class_entry *ce, const char *name)
{
	return zend_enum_get_case_cstr(ce, name);
}

zend_object *altair_new_object(zend_class_entry *ce)
{
	if (ce->create_object != NULL) {
		return ce->create_object(ce);
	}
	zend_object *object = zend_objects_new(ce);
	object_properties_init(object, ce);
	return object;
}

static zend_property_info *info_of(zend_object *object, const char *name, size_t len)
{
	return zend_hash_str_find_ptr(&object->ce->properties_info, name, len);
}

void altair_init_property(zend_object *object, const char *name, size_t len, zval *value)
{
	zend_property_info *info = info_of(object, name, len);
	zval *slot = OBJ_PROP(object, info->offset);
	ZVAL_COPY_VALUE(slot, value);
	Z_PROP_FLAG_P(slot) = 0;
}

zval *altair_property(zend_object *object, const char *name, size_t len)
{
	zend_property_info *info = info_of(object, name, len);
	if (info == NULL) {
		return NULL;
	}
	zval *slot = OBJ_PROP(object, info->offset);
	return Z_TYPE_P(slot) == IS_UNDEF ? NULL : slot;
}

/* ---- exceptions ---- */

zend_object *altair_take_exception(void)
{
	zend_object *exception = EG(exception);
	if (exception != NULL) {
		GC_ADDREF(exception);
		zend_clear_exception();
	}
	return exception;
}

void altair_throw(zend_object *exception)
{
	zend_throw_exception_internal(exception);
}

bool altair_is_unwind_exit(zend_object *exception)
{
	return zend_is_unwind_exit(exception);
}

zval *altair_exception_property(zend_object *exception, const char *name, size_t len)
{
	zend_class_entry *base = instanceof_function(exception->ce, zend_ce_exception)
		? zend_ce_exception : zend_ce_error;
	zend_property_info *info = zend_hash_str_find_ptr(&base->properties_info, name, len);
	if (info == NULL) {
		return NULL;
	}
	/* A subclass keeps the slots of the base class, whatever it declares. */
	zval *slot = OBJ_PROP(exception, info->offset);
	ZVAL_DEREF(slot);
	return Z_TYPE_P(slot) == IS_UNDEF ? NULL : slot;
}
