/* Functions that are refused after boot. */

#include "confine.h"
#include "zend_closures.h"
#include "zend_exceptions.h"

/* A replaced handler. The function stays where it is, since compiled code has pointers to it. */
typedef struct {
	const zend_function *function;
	zif_handler was;
	zif_handler is;
} replaced_function;

typedef struct {
	const zend_function *function; /* the one in the function table */
	zif_handler handler;           /* the original */
	bool snippet_only;
	const char *lift;
} refused_function;

#define REPLACED_MAX (ALTAIR_REFUSED_MAX + 32)

static replaced_function replaced[REPLACED_MAX];
static uint32_t replaced_count;
static refused_function refused[ALTAIR_REFUSED_MAX];
static uint32_t refused_count;
static zif_handler next_function_exists;
static zif_handler next_is_callable;
static zif_handler next_error_log;

/* ---- who calls ---- */

bool altair_is_snippet(const zend_execute_data *ex)
{
	/* All code of one compilation shares the same string as its file name. */
	return ex != NULL && ex->func != NULL && ZEND_USER_CODE(ex->func->type)
		&& altair_is_name_of_snippet(ex->func->op_array.filename);
}

bool altair_from_snippet(const zend_execute_data *ex)
{
	while (ex != NULL && (ex->func == NULL || !ZEND_USER_CODE(ex->func->type))) {
		ex = ex->prev_execute_data;
	}
	return ex == NULL || altair_is_snippet(ex);
}

/* ---- replacing ---- */

static zif_handler replace(zend_function *function, zif_handler with)
{
	if (function == NULL || function->type != ZEND_INTERNAL_FUNCTION || replaced_count == REPLACED_MAX) {
		return NULL;
	}
	zif_handler was = function->internal_function.handler;
	replaced[replaced_count++] = (replaced_function) {function, was, with};
	function->internal_function.handler = with;
	return was;
}

zif_handler altair_replace(const char *name, size_t len, zif_handler with)
{
	return replace(zend_hash_str_find_ptr(EG(function_table), name, len), with);
}

void altair_replace_method(const zend_class_entry *ce, const char *name, zif_handler *was, zif_handler is)
{
	zend_function *method = zend_hash_str_find_ptr(&ce->function_table, name, strlen(name));
	if (method != NULL && method->type == ZEND_INTERNAL_FUNCTION && method->internal_function.handler != is) {
		*was = method->internal_function.handler;
		method->internal_function.handler = is;
	}
}

/* The private structure of Zend/zend_closures.c; the same from 8.0 to 8.5. */
#if PHP_VERSION_ID >= 80600 && !defined(ALTAIR_EVAL_UNTRIED_PHP)
# error "Compare zend_closure in Zend/zend_closures.c of this PHP with the structure below."
#endif
typedef struct {
	zend_object std;
	zend_function func;
	zval this_ptr;
	zend_class_entry *called_scope;
	zif_handler orig_internal_handler;
} closure;

/* A closure of a built-in function holds a copy of the function, with the handler at the time
 * when the closure was made. */
static void replace_in_closure(closure *of)
{
	for (uint32_t i = 0; i < replaced_count; i++) {
		const zend_function *function = replaced[i].function;
		if (of->orig_internal_handler == replaced[i].was
			&& of->func.common.scope == function->common.scope
			&& zend_string_equals(of->func.common.function_name, function->common.function_name)) {
			/* Goes on: what took its place may have been replaced itself. */
			of->orig_internal_handler = replaced[i].is;
		}
	}
}

/* ---- refusing ---- */

static refused_function *find_refused(const char *name, size_t len, const zend_class_entry *scope)
{
	for (uint32_t i = 0; i < refused_count; i++) {
		const zend_string *other = refused[i].function->common.function_name;
		if (ZSTR_LEN(other) == len && refused[i].function->common.scope == scope
			&& zend_binary_strcasecmp(ZSTR_VAL(other), len, name, len) == 0) {
			return &refused[i];
		}
	}
	return NULL;
}

static refused_function *refusal_of(const zend_function *function)
{
	const zend_string *name = function->common.function_name;
	return find_refused(ZSTR_VAL(name), ZSTR_LEN(name), function->common.scope);
}

static bool applies(const refused_function *entry, const zend_execute_data *caller)
{
	return !entry->snippet_only || altair_from_snippet(caller);
}

/* The class of the error to throw. FFI has its own subclass of Error, which code that can do
 * without FFI catches. */
static zend_class_entry *error_of(const zend_class_entry *scope)
{
	return scope == NULL || !zend_string_equals_literal(scope->name, "FFI") ? NULL
		: zend_hash_str_find_ptr(EG(class_table), ZEND_STRL("ffi\\exception"));
}

static ZEND_NAMED_FUNCTION(refuse)
{
	const zend_function *function = execute_data->func;
	const zend_class_entry *scope = function->common.scope;
	refused_function *entry = refusal_of(function);
	if (entry != NULL && !applies(entry, execute_data->prev_execute_data)) {
		entry->handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	const char *lift = entry != NULL ? entry->lift : "--unsafe";
	char what[ALTAIR_WHAT_BYTES];
	char service[ALTAIR_WHAT_BYTES];
	altair_describe(execute_data, what);
	if (altair_service(what, service)) {
		lift = service;
	}
	altair_blocked(what, lift);
	char clause[ALTAIR_CLAUSE_BYTES];
	altair_clause(lift, clause);
	zend_throw_error(error_of(scope), "%s%s%s() is refused in a confined run%s%s",
		scope != NULL ? ZSTR_VAL(scope->name) : "", scope != NULL ? "::" : "",
		ZSTR_VAL(function->common.function_name),
		entry != NULL && entry->snippet_only ? " to code of the snippet" : "", clause);
}

/* The function or method named by `name`, a function or Class::method. */
static zend_function *find_function(const char *name, size_t len)
{
	const char *colons = zend_memnstr(name, ZEND_STRL("::"), name + len);
	if (colons == NULL) {
		return zend_hash_str_find_ptr(EG(function_table), name, len);
	}
	zend_class_entry *ce = zend_hash_str_find_ptr_lc(EG(class_table), name, (size_t) (colons - name));
	const char *method = colons + 2;
	return ce == NULL ? NULL
		: zend_hash_str_find_ptr_lc(&ce->function_table, method, (size_t) (name + len - method));
}

void altair_refuse(const char *name, size_t len, bool snippet_only, const char *lift)
{
	zend_function *function = find_function(name, len);
	if (function == NULL || refused_count == ALTAIR_REFUSED_MAX
		|| refusal_of(function) != NULL) {
		return;
	}
	zif_handler handler = replace(function, refuse);
	if (handler != NULL) {
		refused[refused_count++] = (refused_function) {function, handler, snippet_only, lift};
	}
}

/* ---- functions that are changed ---- */

/* Returns whether the first argument of a call names a function that is refused to its caller. */
static bool asks_for_refused(zend_execute_data *call)
{
	zval *name = ZEND_CALL_ARG(call, 1);
	ZVAL_DEREF(name);
	if (Z_TYPE_P(name) != IS_STRING) {
		return false;
	}
	size_t skip = Z_STRLEN_P(name) > 0 && Z_STRVAL_P(name)[0] == '\\';
	const refused_function *entry = find_refused(Z_STRVAL_P(name) + skip, Z_STRLEN_P(name) - skip, NULL);
	return entry != NULL && applies(entry, call->prev_execute_data);
}

static ZEND_NAMED_FUNCTION(function_exists)
{
	if (ZEND_NUM_ARGS() == 1 && asks_for_refused(execute_data)) {
		RETURN_FALSE;
	}
	next_function_exists(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_NAMED_FUNCTION(is_callable)
{
	if (ZEND_NUM_ARGS() == 1 && asks_for_refused(execute_data)) {
		RETURN_FALSE;
	}
	next_is_callable(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* error_log() of type 1 sends mail. The other types only log. */
static ZEND_NAMED_FUNCTION(mailing_error_log)
{
	if (ZEND_NUM_ARGS() >= 2 && zval_get_long(ZEND_CALL_ARG(execute_data, 2)) == 1) {
		altair_blocked("error_log()", "--unsafe");
		char clause[ALTAIR_CLAUSE_BYTES];
		altair_clause("--unsafe", clause);
		zend_throw_error(NULL, "error_log() that sends mail is refused in a confined run%s", clause);
		return;
	}
	next_error_log(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* ---- the end of boot ---- */

void altair_refuse_everywhere(const char *root, size_t len)
{
	next_function_exists = altair_replace(ZEND_STRL("function_exists"), function_exists);
	next_is_callable = altair_replace(ZEND_STRL("is_callable"), is_callable);
	next_error_log = altair_replace(ZEND_STRL("error_log"), mailing_error_log);
	altair_refuse_strings();
	altair_note_urls();
	altair_note_outside(root, len);
	/* This function is refused if the run has neither a service nor the network. */
	if (find_refused(ZEND_STRL("stream_socket_client"), NULL) != NULL) {
		altair_refuse_connections();
	}
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (IS_OBJ_VALID(object) && object->ce == zend_ce_closure
			&& ((closure *) object)->func.type == ZEND_INTERNAL_FUNCTION) {
			replace_in_closure((closure *) object);
		}
	}
}
