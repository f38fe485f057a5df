/* Reading PHP's values, without running code and by running code, and making values. */

#include "shim.h"
#include "zend_closures.h"
#if PHP_VERSION_ID >= 80400
# include "zend_lazy_objects.h"
#endif
#include "zend_enum.h"
#include "zend_interfaces.h"
#include "zend_exceptions.h"
#include "zend_smart_str.h"
#include "ext/date/php_date.h"
#include "ext/json/php_json.h"
#include "ext/standard/file.h"
#include "php_streams.h"

/* ---- reading values without running code ---- */

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

/* A built-in class that makes its properties up, as DateInterval does, from what it holds. Others fetch them, or show
 * what they hold as if it were theirs. */
static bool makes_properties_up(zend_object *object)
{
	return object->handlers->get_properties != zend_std_get_properties
		&& (instanceof_function(object->ce, php_date_get_interval_ce())
			|| instanceof_function(object->ce, php_date_get_period_ce()));
}

/* What a class itself says of a slot, which a class above may have declared. */
static zend_property_info *own_info(zend_class_entry *ce, zend_property_info *declared, const char *name, size_t len)
{
	zend_property_info *own = zend_hash_str_find_ptr(&ce->properties_info, name, len);
	return own != NULL && !(own->flags & ZEND_ACC_STATIC) && own->offset == declared->offset ? own : NULL;
}

static bool is_virtual(const zend_property_info *info)
{
#ifdef ZEND_ACC_VIRTUAL
	return info->flags & ZEND_ACC_VIRTUAL;
#else
	(void) info;
	return false;
#endif
}

size_t altair_slots(zend_object *object, size_t max, altair_property_seen each, void *context)
{
	zend_class_entry *ce = object->ce;
	size_t count = 0;
	zend_array *table = object->properties;
	/* Straight from the slots: no hook, no initialiser of a lazy object runs. */
	for (int slot = 0; slot < ce->default_properties_count; slot++) {
		zend_property_info *info = ce->properties_info_table ? ce->properties_info_table[slot] : NULL;
		if (info == NULL || (info->flags & ZEND_ACC_STATIC) || is_virtual(info)) {
			continue;
		}
		const char *class_name, *name;
		size_t len;
		if (zend_unmangle_property_name_ex(info->name, &class_name, &name, &len) != SUCCESS) {
			continue;
		}
		zend_property_info *own = own_info(ce, info, name, len);
		zval *value = OBJ_PROP(object, info->offset);
		if (own != NULL) {
			info = own;
		}
		if (Z_TYPE_P(value) == IS_UNDEF
				&& (!(Z_PROP_FLAG_P(value) & IS_PROP_UNINIT) || info->ce->type == ZEND_INTERNAL_CLASS)) {
			continue; /* was unset, as lazy objects do; or PHP's own class answers for it */
		}
		ZVAL_DEREF(value);
		if (count++ < max) {
			int visibility = info->flags & ZEND_ACC_PUBLIC ? 0 : info->flags & ZEND_ACC_PROTECTED ? 1 : 2;
			each(context, visibility, own ? NULL : info->ce->name, name, len, 0,
				Z_TYPE_P(value) == IS_UNDEF ? NULL : value);
		}
	}
	if (makes_properties_up(object)) {
		table = object->handlers->get_properties(object);
	}
	if (table == NULL) {
		return count;
	}
	zend_ulong index;
	zend_string *key;
	zval *value;
	ZEND_HASH_FOREACH_KEY_VAL(table, index, key, value) {
		if (Z_TYPE_P(value) == IS_INDIRECT) {
			continue; /* a declared one */
		}
		if (key != NULL && ZSTR_LEN(key) != 0 && ZSTR_VAL(key)[0] == '\0') {
			continue; /* not a dynamic one */
		}
		ZVAL_DEREF(value);
		if (count++ < max) {
			each(context, 0, NULL, key ? ZSTR_VAL(key) : NULL, key ? ZSTR_LEN(key) : 0, (zend_long) index, value);
		}
	} ZEND_HASH_FOREACH_END();
	return count;
}

static bool is_named(const zend_class_entry *ce, const char *name, size_t len)
{
	return ZSTR_LEN(ce->name) == len && zend_binary_strcasecmp(ZSTR_VAL(ce->name), len, name, len) == 0;
}

bool altair_is_a(zend_object *object, const char *class_name, size_t len)
{
	for (zend_class_entry *ce = object->ce; ce != NULL; ce = ce->parent) {
		if (is_named(ce, class_name, len)) {
			return true;
		}
	}
	for (uint32_t i = 0; i < object->ce->num_interfaces; i++) {
		if (is_named(object->ce->interfaces[i], class_name, len)) {
			return true;
		}
	}
	return false;
}

bool altair_declares(zend_object *object, const char *name, size_t len)
{
	zend_property_info *info = zend_hash_str_find_ptr(&object->ce->properties_info, name, len);
	return info != NULL && !(info->flags & ZEND_ACC_STATIC) && !is_virtual(info);
}

zval *altair_slot(zend_object *object, const char *class_name, size_t class_len, const char *name, size_t len)
{
	for (zend_class_entry *ce = object->ce; ce != NULL; ce = ce->parent) {
		if (class_len != 0 && !is_named(ce, class_name, class_len)) {
			continue;
		}
		zend_property_info *info = zend_hash_str_find_ptr(&ce->properties_info, name, len);
		if (info == NULL || (info->flags & ZEND_ACC_STATIC) || is_virtual(info)) {
			continue;
		}
		zval *value = OBJ_PROP(object, info->offset);
		ZVAL_DEREF(value);
		return Z_TYPE_P(value) == IS_UNDEF ? NULL : value;
	}
	return NULL;
}

bool altair_has_user_method(zend_object *object, const char *name, size_t len)
{
	zend_function *func = zend_hash_str_find_ptr(&object->ce->function_table, name, len);
	return func != NULL && func->type == ZEND_USER_FUNCTION;
}

int altair_laziness(zend_object *object, zend_object **instance)
{
#if PHP_VERSION_ID >= 80400
	if (zend_object_is_lazy(object)) {
		if (!zend_lazy_object_initialized(object)) {
			return 1;
		}
		if (zend_object_is_lazy_proxy(object)) {
			/* Of one that is initialised, this only gives what it stands for; what does no more is not exported. */
			*instance = zend_lazy_object_init(object);
			return 2;
		}
	}
#else
	(void) object, (void) instance;
#endif
	return 0;
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

zval *altair_closure_variable(zend_object *object, const char *name, size_t len)
{
	const zend_function *func = zend_get_closure_method_def(object);
	if (object->ce != zend_ce_closure || func->type != ZEND_USER_FUNCTION) {
		return NULL;
	}
	zend_array *variables = ZEND_MAP_PTR_GET(func->op_array.static_variables_ptr);
	zval *value = variables ? zend_hash_str_find(variables, name, len) : NULL;
	if (value != NULL) {
		ZVAL_DEREF(value);
	}
	return value;
}

const char *altair_resource_kind(zval *resource)
{
	return zend_rsrc_list_get_rsrc_type(Z_RES_P(resource));
}

zend_long altair_stream_length(zval *resource)
{
	php_stream *stream = zend_fetch_resource2(Z_RES_P(resource), NULL, php_file_le_stream(), php_file_le_pstream());
	php_stream_statbuf stat;
	/* Others may be the application's own, or far away. */
	if (stream == NULL || (stream->ops != &php_stream_memory_ops && stream->ops != &php_stream_temp_ops
			&& stream->ops != &php_stream_stdio_ops)) {
		return -1;
	}
	return php_stream_stat(stream, &stat) == 0 && S_ISREG(stat.sb.st_mode) ? (zend_long) stat.sb.st_size : -1;
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

bool altair_call_built_in(
	zend_object *object, const char *class_name, const char *name, const char *argument, zval *result)
{
	ZVAL_UNDEF(result);
	zend_class_entry *ce = object->ce;
	while (ce != NULL && !is_named(ce, class_name, strlen(class_name))) {
		ce = ce->parent;
	}
	zend_function *func = ce ? zend_hash_str_find_ptr(&ce->function_table, name, strlen(name)) : NULL;
	if (func == NULL || func->type != ZEND_INTERNAL_FUNCTION) {
		return false;
	}
	zval text;
	ZVAL_UNDEF(&text);
	if (argument != NULL) {
		ZVAL_STRING(&text, argument);
	}
	zend_call_known_function(func, object, object->ce, result, argument ? 1 : 0, argument ? &text : NULL, NULL);
	zval_ptr_dtor(&text);
	return true;
}

void altair_xml(zend_object *object, zval *result)
{
	ZVAL_UNDEF(result);
	if (altair_call_built_in(object, "SimpleXMLElement", "asxml", NULL, result)) {
		return;
	}
	/* A document knows how to write its nodes. `ownerDocument` is no slot, and the class that answers is PHP's. */
	zval owner, node;
	ZVAL_UNDEF(&owner);
	ZVAL_OBJ(&node, object);
	zend_class_entry *ce = object->ce;
	zend_string *name = zend_string_init(ZEND_STRL("ownerDocument"), 0);
	zval *found = object->handlers->read_property(object, name, BP_VAR_R, NULL, &owner);
	zend_string_release(name);
	if (EG(exception)) {
		return;
	}
	ZVAL_DEREF(found);
	zend_object *document = Z_TYPE_P(found) == IS_OBJECT ? Z_OBJ_P(found) : object;
	for (ce = document->ce; ce != NULL && ce->type != ZEND_INTERNAL_CLASS; ce = ce->parent) {
	}
	zend_function *save = ce ? zend_hash_str_find_ptr(&ce->function_table, ZEND_STRL("savexml")) : NULL;
	if (save != NULL && save->type == ZEND_INTERNAL_FUNCTION) {
		zend_call_known_function(
			save, document, document->ce, result, document == object ? 0 : 1, document == object ? NULL : &node, NULL);
	}
	zval_ptr_dtor(&owner);
}

bool altair_clone(zend_object *object, zval *result)
{
	ZVAL_UNDEF(result);
	if (object->handlers->clone_obj == NULL) {
		return false;
	}
	zend_object *copy = object->handlers->clone_obj(object);
	if (copy == NULL) {
		return false;
	}
	ZVAL_OBJ(result, copy);
	return true;
}

/* The default of a parameter, where it is short and simple. */
static void append_default(smart_str *text, const zend_op_array *code, uint32_t number)
{
	for (uint32_t i = 0; i < code->last; i++) {
		const zend_op *op = &code->opcodes[i];
		if (op->opcode != ZEND_RECV_INIT || op->op1.num != number) {
			continue;
		}
		zval *value = RT_CONSTANT(op, op->op2);
		if (Z_TYPE_P(value) == IS_STRING && Z_STRLEN_P(value) <= 40) {
			smart_str_appendc(text, '\'');
			smart_str_append(text, Z_STR_P(value));
			smart_str_appendc(text, '\'');
		} else if (Z_TYPE_P(value) <= IS_DOUBLE) {
			smart_str_append_scalar(text, value, 40);
		} else if (Z_TYPE_P(value) == IS_ARRAY && zend_hash_num_elements(Z_ARRVAL_P(value)) == 0) {
			smart_str_appends(text, "[]");
		} else {
			smart_str_appends(text, "...");
		}
		return;
	}
	smart_str_appends(text, "...");
}

void altair_closure_parameters(
	zend_object *object, void (*each)(void *context, const char *text, size_t len), void *context)
{
	const zend_function *func = zend_get_closure_method_def(object);
	bool is_user = func->type == ZEND_USER_FUNCTION;
	uint32_t count = func->common.num_args + (func->common.fn_flags & ZEND_ACC_VARIADIC ? 1 : 0);
	for (uint32_t i = 0; i < count; i++) {
		const zend_arg_info *info = &func->common.arg_info[i];
		smart_str text = {0};
		if (ZEND_TYPE_IS_SET(info->type)) {
			zend_string *type = zend_type_to_string(info->type);
			smart_str_append(&text, type);
			smart_str_appendc(&text, ' ');
			zend_string_release(type);
		}
		if (ZEND_ARG_SEND_MODE(info) != ZEND_SEND_BY_VAL) {
			smart_str_appendc(&text, '&');
		}
		if (ZEND_ARG_IS_VARIADIC(info)) {
			smart_str_appends(&text, "...");
		}
		smart_str_appendc(&text, '$');
		if (is_user) {
			smart_str_append(&text, info->name);
		} else {
			smart_str_appends(&text, ((const zend_internal_arg_info *) info)->name);
		}
		if (i >= func->common.required_num_args && !ZEND_ARG_IS_VARIADIC(info)) {
			smart_str_appends(&text, " = ");
			const char *built_in = is_user ? NULL : ((const zend_internal_arg_info *) info)->default_value;
			if (is_user) {
				append_default(&text, &func->op_array, i + 1);
			} else {
				smart_str_appends(&text, built_in ? built_in : "...");
			}
		}
		smart_str_0(&text);
		each(context, ZSTR_VAL(text.s), ZSTR_LEN(text.s));
		smart_str_free(&text);
	}
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

void altair_scalar_text(zval *value, zval *text)
{
	ZVAL_STR(text, zval_get_string(value));
}

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
	if (len == 0) { /* Rust's pointer to an empty text must not be dereferenced */
		zend_hash_update(Z_ARRVAL_P(array), ZSTR_EMPTY_ALLOC(), item);
	} else {
		zend_symtable_str_update(Z_ARRVAL_P(array), key, len, item);
	}
}

void altair_array_set_index(zval *array, zend_long key, zval *item)
{
	zend_hash_index_update(Z_ARRVAL_P(array), (zend_ulong) key, item);
}

/* PHP's own json_encode() goes no deeper by default. */
#define JSON_DEPTH 512

void altair_keep_as_object(zval *map)
{
	if (Z_TYPE_P(map) == IS_ARRAY && zend_array_is_list(Z_ARRVAL_P(map))) {
		zend_object *object = zend_objects_new(zend_standard_class_def);
		object->properties = zend_symtable_to_proptable(Z_ARRVAL_P(map));
		zval_ptr_dtor(map);
		ZVAL_OBJ(map, object);
	}
}

static bool has_text(zend_array *array, const char *key, size_t len, const char *text)
{
	zval *value = zend_hash_str_find(array, key, len);
	return value != NULL && Z_TYPE_P(value) == IS_STRING && strcmp(Z_STRVAL_P(value), text) == 0;
}

/* Makes what is a map in an encoded value an object, which JSON would show as a list otherwise. The arrays of the
 * value are its own by then. */
static void keep_maps(zval *value, int depth)
{
	static const char *const maps[] = {"properties", "protected", "private", "key_bytes"};
	if (Z_TYPE_P(value) != IS_ARRAY || depth == 0 || zend_hash_num_elements(Z_ARRVAL_P(value)) == 0) {
		return;
	}
	zval *item;
	SEPARATE_ARRAY(value);
	ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(value), item) {
		keep_maps(item, depth - 1);
	} ZEND_HASH_FOREACH_END();
	if (has_text(Z_ARRVAL_P(value), ZEND_STRL("type"), "object")) {
		for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
			item = zend_hash_str_find(Z_ARRVAL_P(value), maps[i], strlen(maps[i]));
			if (item != NULL) {
				altair_keep_as_object(item);
			}
		}
	} else if (has_text(Z_ARRVAL_P(value), ZEND_STRL("type"), "array")) {
		zval *is_list = zend_hash_str_find(Z_ARRVAL_P(value), ZEND_STRL("is_list"));
		if (is_list != NULL && Z_TYPE_P(is_list) == IS_FALSE) {
			item = zend_hash_str_find(Z_ARRVAL_P(value), ZEND_STRL("value"));
			if (item != NULL) {
				altair_keep_as_object(item);
			}
		}
	}
}

void altair_json_encode(zval *value, zval *text)
{
	smart_str json = {0};
	zval maps;
	ZVAL_COPY(&maps, value);
	keep_maps(&maps, JSON_DEPTH);
	php_json_encode(&json, &maps, PHP_JSON_PRETTY_PRINT | PHP_JSON_UNESCAPED_SLASHES
		| PHP_JSON_UNESCAPED_UNICODE | PHP_JSON_INVALID_UTF8_SUBSTITUTE
		| PHP_JSON_PARTIAL_OUTPUT_ON_ERROR | PHP_JSON_PRESERVE_ZERO_FRACTION);
	zval_ptr_dtor(&maps);
	smart_str_appendc(&json, '\n');
	ZVAL_STR(text, smart_str_extract(&json));
}
