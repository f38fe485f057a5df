/* The child's side: entry, boot, run, end. */

#include "shim.h"
#include "SAPI.h"
#include "zend_exceptions.h"
#include "zend_interfaces.h"
#include "zend_vm.h"
#include "zend_weakrefs.h"
#include "ext/standard/basic_functions.h"

static zend_op_array *(*next_compile_string)(zend_string *, const char *, zend_compile_position);
static void (*entry_point)(void);
static zend_execute_data bottom;
static zend_array *scope;
static HashTable boot_objects;

/* ---- entry ---- */

static zend_op_array *first_compile(zend_string *code, const char *name, zend_compile_position at)
{
	(void) code, (void) name, (void) at;
	zend_compile_string = next_compile_string;
	entry_point(); /* does not return */
	return NULL;
}

void altair_on_first_compile(void (*entry)(void))
{
	entry_point = entry;
	next_compile_string = zend_compile_string;
	zend_compile_string = first_compile;
}

void altair_begin(void)
{
	zval empty, zero;
	/* The engine itself used a frame without a function for calls from outside of any code. With
	 * it, an exception stays pending that would be fatal without a frame. */
	memset(&bottom, 0, sizeof bottom);
	EG(current_execute_data) = &bottom;
	ZVAL_EMPTY_ARRAY(&empty);
	ZVAL_LONG(&zero, 0);
	zend_hash_str_update(&EG(symbol_table), ZEND_STRL("argv"), &empty);
	zend_hash_str_update(&EG(symbol_table), ZEND_STRL("argc"), &zero);
	zval *server = zend_hash_str_find(&EG(symbol_table), ZEND_STRL("_SERVER"));
	if (server != NULL && Z_TYPE_P(server) == IS_ARRAY) {
		SEPARATE_ARRAY(server);
		zend_hash_str_update(Z_ARRVAL_P(server), ZEND_STRL("argv"), &empty);
		zend_hash_str_update(Z_ARRVAL_P(server), ZEND_STRL("argc"), &zero);
	}
	SG(request_info).argc = 0;
	altair_watch_declarations();
}

/* ---- fatal errors ---- */

static void (*next_error)(int, zend_string *, const uint32_t, zend_string *);
static altair_fatal_hook fatal_hook;

static void on_error(int type, zend_string *file, const uint32_t line, zend_string *message)
{
	if (type & E_FATAL_ERRORS) {
		/* True while the memory manager reports that its limit or the system's is reached. */
		fatal_hook(zend_alloc_in_memory_limit_error_reporting(), file, line, message);
	}
	next_error(type, file, line, message);
}

void altair_on_fatal(altair_fatal_hook hook)
{
	fatal_hook = hook;
	next_error = zend_error_cb;
	zend_error_cb = on_error;
}

/* ---- bailout and exit() ---- */

void altair_recover(void)
{
	EG(current_execute_data) = &bottom;
	CG(in_compilation) = 0;
	CG(unclean_shutdown) = 0;
	altair_leave_compiler();
	altair_show_container();
}

static void (*exit_hook)(int);

#ifdef __GLIBC__
static void on_process_exit(int status, void *unused)
{
	(void) unused;
	exit_hook(status);
}
#endif

void altair_on_exit(void (*hook)(int))
{
	exit_hook = hook;
#ifdef __GLIBC__
	on_exit(on_process_exit, NULL);
#endif
}

/* ---- running code ---- */

/* What `include` does, but for a given scope and from outside of any code. */
static void run(zend_op_array *code, zend_array *symbols, zval *result)
{
	ZVAL_NULL(result);
	zend_execute_data *frame = zend_vm_stack_push_call_frame(
		ZEND_CALL_TOP_CODE | ZEND_CALL_HAS_SYMBOL_TABLE, (zend_function *) code, 0, NULL);
	frame->symbol_table = symbols;
	frame->prev_execute_data = EG(current_execute_data);
	zend_init_code_execute_data(frame, code, result);
	zend_execute_ex(frame);
	zend_vm_stack_free_call_frame(frame);
	if (EG(exception)) {
		ZVAL_UNDEF(result);
	}
}

void altair_require(const char *path, size_t len, zval *result)
{
	zend_file_handle file;
	zend_string *name = zend_string_init(path, len, 0);
	ZVAL_UNDEF(result);
	zend_stream_init_filename_ex(&file, name);
	zend_op_array *code = zend_compile_file(&file, ZEND_REQUIRE);
	if (code != NULL) {
		zend_hash_add_empty_element(&EG(included_files), file.opened_path ? file.opened_path : name);
	}
	zend_destroy_file_handle(&file);
	zend_string_release(name);
	if (code != NULL) {
		run(code, &EG(symbol_table), result);
	}
}

/* The file name of our own code; exception.rs compares with it. */
#define OWN_CODE "(altair)"

void altair_run_own(const char *text, size_t len, const char *root, size_t root_len,
	const char *caches, size_t caches_len, zval *result)
{
	zend_string *source = zend_string_init(text, len, 0);
	zend_op_array *code =
		zend_compile_string(source, OWN_CODE, ZEND_COMPILE_POSITION_AFTER_OPEN_TAG);
	zend_string_release(source);
	ZVAL_UNDEF(result);
	if (code != NULL) {
		zval directory;
		ZVAL_STRINGL(&directory, root, root_len);
		zend_array *symbols = zend_new_array(0);
		zend_hash_str_add_new(symbols, ZEND_STRL("root"), &directory);
		ZVAL_NULL(&directory);
		if (caches != NULL) {
			ZVAL_STRINGL(&directory, caches, caches_len);
		}
		zend_hash_str_add_new(symbols, ZEND_STRL("caches"), &directory);
		run(code, symbols, result);
		zend_array_release(symbols);
	}
}

void altair_set_variable(const char *name, size_t len, zval *value)
{
	if (scope == NULL) {
		scope = zend_new_array(0);
	}
	zend_hash_str_update(scope, name, len, value);
}

bool altair_run_snippet(zend_op_array *code, zval *result)
{
	if (scope == NULL) {
		scope = zend_new_array(0);
	}
	altair_know_container();
	run(code, scope, result);
	return altair_took_last_statement();
}

void altair_each_own_variable(altair_name each, void *context)
{
	zend_string *name;
	zval *value;
	if (scope == NULL) {
		return;
	}
	ZEND_HASH_FOREACH_STR_KEY_VAL_IND(scope, name, value) {
		if (name != NULL && Z_TYPE_P(value) != IS_UNDEF) {
			ZVAL_DEREF(value);
			each(context, ZSTR_VAL(name), ZSTR_LEN(name), value);
		}
	} ZEND_HASH_FOREACH_END();
}

size_t altair_each_included(size_t from, altair_name each, void *context)
{
	size_t number = 0;
	zend_string *path;
	ZEND_HASH_FOREACH_STR_KEY(&EG(included_files), path) {
		if (path != NULL && number++ >= from) {
			each(context, ZSTR_VAL(path), ZSTR_LEN(path), NULL);
		}
	} ZEND_HASH_FOREACH_END();
	return number;
}

void altair_release_scope(void)
{
	if (scope != NULL) {
		zend_array *symbols = scope;
		scope = NULL;
		zend_array_release(symbols);
	}
}

/* ---- variables ---- */

void altair_each_variable(altair_variable_seen seen, void *context)
{
	static const char *const arrays[] = {"_ENV", "_SERVER"};
	for (size_t i = 0; i < sizeof(arrays) / sizeof(*arrays); i++) {
		/* The engine makes these arrays when code first uses them. */
		zval *array = zend_hash_str_find_ind(&EG(symbol_table), arrays[i], strlen(arrays[i]));
		if (array == NULL) {
			continue;
		}
		ZVAL_DEREF(array);
		if (Z_TYPE_P(array) != IS_ARRAY) {
			continue;
		}
		zend_string *name;
		zval *value;
		ZEND_HASH_FOREACH_STR_KEY_VAL_IND(Z_ARRVAL_P(array), name, value) {
			ZVAL_DEREF(value);
			if (name != NULL && Z_TYPE_P(value) == IS_STRING) {
				seen(context, ZSTR_VAL(name), ZSTR_LEN(name), Z_STRVAL_P(value), Z_STRLEN_P(value));
			}
		} ZEND_HASH_FOREACH_END();
	}
}

/* ---- the end of boot, the end of the run ---- */

static bool has_destructor(zend_object *object)
{
	return object->handlers->dtor_obj != zend_objects_destroy_object || object->ce->destructor != NULL;
}

void altair_end_boot(void)
{
	/* The run does not call what boot registered. The process ends without freeing it. */
	BG(user_shutdown_function_names) = NULL;
	zend_hash_init(&boot_objects, 8, NULL, NULL, 0);
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		/* Weak, so that a new object of the snippet in the same place is not mistaken for it. */
		if (IS_OBJ_VALID(object) && has_destructor(object)) {
			zval mark;
			ZVAL_NULL(&mark);
			zend_weakrefs_hash_add(&boot_objects, object, &mark);
		}
	}
}

void altair_each_object(const char *class_name, void (*each)(void *context, zend_object *object), void *context)
{
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (IS_OBJ_VALID(object) && zend_string_equals_cstr(object->ce->name, class_name, strlen(class_name))) {
			each(context, object);
		}
	}
}

void altair_call_shutdown_functions(void)
{
	php_call_shutdown_functions();
}

static bool is_boot_object(zend_object *object)
{
	return zend_hash_index_exists(&boot_objects, zend_object_to_weakref_key(object));
}

void altair_call_destructors(void)
{
	for (uint32_t i = 1; i < EG(objects_store).top && EG(exception) == NULL; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		/* Objects without a destructor are not written to. In the fork of a template that would
		 * copy their pages, which for all objects of boot would take longer than the rest of the
		 * run. */
		if (!IS_OBJ_VALID(object) || (OBJ_FLAGS(object) & IS_OBJ_DESTRUCTOR_CALLED) || !has_destructor(object)
			|| is_boot_object(object)) {
			continue;
		}
		GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
		GC_ADDREF(object);
		object->handlers->dtor_obj(object);
		GC_DELREF(object);
	}
}

void altair_flush_output(void)
{
	php_output_end_all();
}

zend_long altair_exit_status(void)
{
	return EG(exit_status);
}
