/* What Rust needs of the engine and ext-php-rs does not reach: macros, inline functions. */

#include "shim.h"
#ifdef __GLIBC__
# include <malloc.h>
# include <unistd.h>
#endif
#include "zend_closures.h"
#include "zend_enum.h"
#include "zend_exceptions.h"
#include "zend_interfaces.h"
#include "zend_ini.h"
#include "zend_smart_str.h"
#include "ext/date/php_date.h"
#include "ext/json/php_json.h"

/* ---- frames ---- */

static uint32_t line_of(const zend_execute_data *ex)
{
	const zend_op_array *code = &ex->func->op_array;
	const zend_op *at = ex->opline;
	/* The virtual machine keeps the current instruction in a register and writes it back only
	 * before what can throw: in a signal handler this one may be stale, or stand on the engine's
	 * own instructions for exceptions. */
	if (at < code->opcodes || at >= code->opcodes + code->last) {
		at = EG(opline_before_exception);
		if (at < code->opcodes || at >= code->opcodes + code->last) {
			return code->line_start;
		}
	}
	return at->lineno;
}

static bool is_user_code(const zend_execute_data *ex)
{
	return ex->func != NULL && ZEND_USER_CODE(ex->func->type);
}

size_t altair_frames(altair_place *place, altair_frame *frames, size_t max)
{
	size_t count = 0;
	const zend_execute_data *ex = EG(current_execute_data);
	place->file = NULL;
	place->line = 0;
	for (; ex != NULL && count < max; ex = ex->prev_execute_data) {
		if (ex->func == NULL) {
			continue;
		}
		if (is_user_code(ex) && place->file == NULL) {
			place->file = ex->func->op_array.filename;
			place->line = line_of(ex);
		}
		const zend_execute_data *caller = ex->prev_execute_data;
		bool called_by_code = caller != NULL && is_user_code(caller);
		if (ex->func->common.function_name == NULL && !called_by_code) {
			continue; /* the snippet itself, or a file that boot requires */
		}
		altair_frame *frame = &frames[count++];
		frame->function_name = ex->func->common.function_name;
		frame->class_name = ex->func->common.scope ? ex->func->common.scope->name : NULL;
		frame->is_static = (ex->func->common.fn_flags & ZEND_ACC_STATIC) != 0;
		if (frame->function_name == NULL) {
			frame->class_name = NULL;
		}
		frame->file = called_by_code ? caller->func->op_array.filename : NULL;
		frame->line = called_by_code ? line_of(caller) : 0;
	}
	return count;
}

/* ---- classes ---- */

void altair_declare_readonly(zend_class_entry *ce, const char *name, size_t len, uint32_t mask, const char *class_name)
{
	zval undef;
	ZVAL_UNDEF(&undef);
	zend_string *key = zend_string_init_interned(name, len, 1);
	zend_type type = ZEND_TYPE_INIT_MASK(mask);
	if (class_name != NULL) {
		zend_string *type_name = zend_string_init_interned(class_name, strlen(class_name), 1);
		type = (zend_type) ZEND_TYPE_INIT_CLASS(type_name, 0, 0);
	}
	zend_declare_typed_property(ce, key, &undef, ZEND_ACC_PUBLIC | ZEND_ACC_READONLY, NULL, type);
	zend_string_release(key);
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
	/* A class below the base keeps the base's slots, whatever it declares itself. */
	zval *slot = OBJ_PROP(exception, info->offset);
	ZVAL_DEREF(slot);
	return Z_TYPE_P(slot) == IS_UNDEF ? NULL : slot;
}

/* ---- ini, memory ---- */

bool altair_set_ini(const char *name, size_t name_len, const char *value, size_t value_len)
{
	zend_string *key = zend_string_init(name, name_len, 0);
	zend_string *text = zend_string_init(value, value_len, 0);
	/* As the activation of a request would: system settings can be changed, too. */
	bool ok = zend_alter_ini_entry_ex(key, text, PHP_INI_SYSTEM, PHP_INI_STAGE_ACTIVATE, 1) == SUCCESS;
	zend_string_release(key);
	zend_string_release(text);
	return ok;
}

bool altair_set_memory_limit(size_t bytes)
{
	if (zend_set_memory_limit(bytes) != SUCCESS) {
		return false;
	}
	PG(memory_limit) = (zend_long) bytes;
	return true;
}

const char *altair_ini_directory(void)
{
	return PHP_CONFIG_FILE_PATH;
}

#ifdef __GLIBC__
# if __GLIBC_PREREQ(2, 33)
#  define HAS_MALLINFO2
# endif
#endif

#ifdef HAS_MALLINFO2
/* Takes what is free between what is not, for good: what a fork allocates then comes from the end of
 * the heap, side by side, and not from a hole here and there, each in a page that has to be copied. */
static void fill_holes(void)
{
	/* From half of what the C library takes a mapping for (mallopt(3), M_MMAP_THRESHOLD) to the
	 * smallest piece that it has. Bytes at most: each piece is a page that is written to. */
	const size_t largest = 64 * 1024, cached = 1032, smallest = 24, most = 8 * 1024 * 1024;
	const char *end = (char *) sbrk(0) - mallinfo2().keepcost;
	size_t filled = 0;
	for (size_t size = largest; size >= smallest; size -= size > cached ? size / 8 : 16) {
		char *piece;
		while ((piece = malloc(size)) != NULL && piece < end && filled < most) {
			filled += size;
		}
		/* From the end. One that the library would keep for the next of its size stays taken. */
		if (size > cached) {
			free(piece);
		}
	}
}
#else
static void fill_holes(void) {}
#endif

void altair_trim_memory(void)
{
	zend_mm_gc(zend_mm_get_heap());
#ifdef __GLIBC__
	malloc_trim(0);
#endif
	fill_holes();
}

size_t altair_memory_peak(void)
{
	return zend_memory_peak_usage(true);
}

size_t altair_memory_usage(void)
{
	return zend_memory_usage(true);
}

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

void altair_wrong_type(uint32_t number, const char *expected, zval *given)
{
	zend_argument_type_error(number, "must be of type %s, %s given", expected, zend_zval_type_name(given));
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
