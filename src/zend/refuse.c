/* Functions that are refused once boot is over, and eval() in the snippet. */

#include "shim.h"
#include "zend_closures.h"
#include "zend_exceptions.h"

static zend_op_array *(*next_compile_string)(zend_string *, const char *, zend_compile_position);

typedef struct {
	zend_function *function; /* the one in the function table */
	zif_handler handler;     /* what it did */
	bool snippet_only;
	const char *lift;
} refused_function;

static refused_function refused[ALTAIR_REFUSED_MAX];
static uint32_t refused_count;
static bool was_refused[ALTAIR_REFUSED_MAX + 2];
static zif_handler next_function_exists;
static zif_handler next_error_log;

static bool is_snippet(const zend_execute_data *ex)
{
	return zend_string_equals_literal(ex->func->op_array.filename, ALTAIR_SNIPPET);
}

/* Whether the nearest PHP code around a call is the snippet's, or there is none at all. */
static bool from_snippet(const zend_execute_data *ex)
{
	while (ex != NULL && (ex->func == NULL || !ZEND_USER_CODE(ex->func->type))) {
		ex = ex->prev_execute_data;
	}
	return ex == NULL || is_snippet(ex);
}

static refused_function *find_refused(const zend_string *name)
{
	for (uint32_t i = 0; i < refused_count; i++) {
		if (zend_string_equals_ci(refused[i].function->common.function_name, name)) {
			return &refused[i];
		}
	}
	return NULL;
}

static bool applies(const refused_function *entry, const zend_execute_data *caller)
{
	return !entry->snippet_only || from_snippet(caller);
}

static ZEND_NAMED_FUNCTION(refuse)
{
	refused_function *entry = find_refused(execute_data->func->common.function_name);
	if (entry != NULL && !applies(entry, execute_data->prev_execute_data)) {
		entry->handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	if (entry != NULL) {
		was_refused[entry - refused] = true;
	}
	zend_throw_error(NULL, "%s() is refused in a confined run%s; %s allows it",
		ZSTR_VAL(execute_data->func->common.function_name),
		entry != NULL && entry->snippet_only ? " to code of the snippet" : "",
		entry != NULL ? entry->lift : "--unsafe");
}

static ZEND_NAMED_FUNCTION(function_exists)
{
	if (ZEND_NUM_ARGS() == 1) {
		zval *name = ZEND_CALL_ARG(execute_data, 1);
		ZVAL_DEREF(name);
		if (Z_TYPE_P(name) == IS_STRING) {
			const char *text = Z_STRVAL_P(name);
			size_t skip = Z_STRLEN_P(name) > 0 && text[0] == '\\';
			zend_string *bare = zend_string_init(text + skip, Z_STRLEN_P(name) - skip, 0);
			refused_function *entry = find_refused(bare);
			zend_string_release(bare);
			if (entry != NULL && applies(entry, execute_data->prev_execute_data)) {
				RETURN_FALSE;
			}
		}
	}
	next_function_exists(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* error_log() of type 1 sends mail; of the others, it is as good as any logging. */
static ZEND_NAMED_FUNCTION(mailing_error_log)
{
	if (ZEND_NUM_ARGS() >= 2 && zval_get_long(ZEND_CALL_ARG(execute_data, 2)) == 1) {
		was_refused[ALTAIR_MAIL_INDEX] = true;
		zend_throw_error(NULL,
			"error_log() that sends mail is refused in a confined run; --unsafe allows it");
		return;
	}
	next_error_log(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void wrap(const char *name, size_t len, zif_handler handler, zif_handler *next)
{
	zend_function *function = zend_hash_str_find_ptr(EG(function_table), name, len);
	if (function != NULL && function->type == ZEND_INTERNAL_FUNCTION) {
		*next = function->internal_function.handler;
		function->internal_function.handler = handler;
	}
}

bool altair_refuse(const char *name, size_t len, bool snippet_only, const char *lift)
{
	zend_function *function = zend_hash_str_find_ptr(EG(function_table), name, len);
	if (function == NULL || function->type != ZEND_INTERNAL_FUNCTION || refused_count == ALTAIR_REFUSED_MAX) {
		return false;
	}
	refused[refused_count++] = (refused_function) {
		function, function->internal_function.handler, snippet_only, lift,
	};
	/* In place: compiled code keeps pointers to the function itself. */
	function->internal_function.handler = refuse;
	return true;
}

static zend_op_array *refuse_eval(zend_string *code, const char *name, zend_compile_position at)
{
	const zend_execute_data *caller = EG(current_execute_data);
	if (caller != NULL && caller->func != NULL && ZEND_USER_CODE(caller->func->type) && is_snippet(caller)) {
		was_refused[ALTAIR_EVAL_INDEX] = true;
		zend_throw_error(NULL,
			"eval() is refused in a confined run to code of the snippet; --unsafe allows it");
		return NULL;
	}
	return next_compile_string(code, name, at);
}

/* A closure as Zend/zend_closures.c has it, which keeps it to itself; the same from 8.0 to 8.5. */
typedef struct {
	zend_object std;
	zend_function func;
	zval this_ptr;
	zend_class_entry *called_scope;
	zif_handler orig_internal_handler;
} closure;

void altair_refuse_everywhere(void)
{
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (!IS_OBJ_VALID(object) || object->ce != zend_ce_closure) {
			continue;
		}
		/* A closure of a built-in function holds a copy of it, and calls the handler that the
		 * function had when the closure was made. */
		closure *of = (closure *) object;
		if (of->func.type != ZEND_INTERNAL_FUNCTION || of->func.common.scope != NULL) {
			continue;
		}
		for (uint32_t j = 0; j < refused_count; j++) {
			if (of->orig_internal_handler == refused[j].handler
				&& zend_string_equals(of->func.common.function_name, refused[j].function->common.function_name)) {
				of->orig_internal_handler = refuse;
			}
		}
	}
	wrap(ZEND_STRL("function_exists"), function_exists, &next_function_exists);
	wrap(ZEND_STRL("error_log"), mailing_error_log, &next_error_log);
	next_compile_string = zend_compile_string;
	zend_compile_string = refuse_eval;
}

bool altair_was_refused(uint32_t index)
{
	return index <= ALTAIR_MAIL_INDEX && was_refused[index];
}
