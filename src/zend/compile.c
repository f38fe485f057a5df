/* Code of the snippet that compiles other code from a string: eval(), and an include of
 * something that is not a file. */

#include "confine.h"
#include "zend_exceptions.h"
#include "zend_stream.h"
#include "php_streams.h"

static zend_op_array *(*next_compile_string)(zend_string *, const char *, zend_compile_position);
static zend_result (*next_stream_open)(zend_file_handle *);

/* ---- eval ---- */

static zend_op_array *refuse_eval(zend_string *code, const char *name, zend_compile_position at)
{
	/* The current frame is the code that contains `eval`. */
	if (altair_is_snippet(EG(current_execute_data))) {
		altair_blocked("eval()", "--unsafe");
		char clause[ALTAIR_CLAUSE_BYTES];
		altair_clause("--unsafe", clause);
		zend_throw_error(NULL, "eval() is refused in a confined run to code of the snippet%s", clause);
		return NULL;
	}
	return next_compile_string(code, name, at);
}

/* ---- wrappers that the snippet has registered ---- */

/* Schemes in lower case. The snippet generates their content, so it is a string, not a file. */
static HashTable snippet_schemes;

static zif_handler next_register, next_unregister, next_restore;

/* Calls `next`. If that has changed the wrapper of a scheme, notes whether it is the snippet's. */
static void change_wrapper(INTERNAL_FUNCTION_PARAMETERS, zif_handler next, bool registers)
{
	/* A copy, since the call releases its arguments. */
	zend_string *scheme = ZEND_NUM_ARGS() >= 1 && Z_TYPE_P(ZEND_CALL_ARG(execute_data, 1)) == IS_STRING
		? zend_string_tolower(Z_STR_P(ZEND_CALL_ARG(execute_data, 1))) : NULL;
	next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (scheme == NULL) {
		return;
	}
	if (Z_TYPE_P(return_value) == IS_TRUE) {
		if (registers && altair_from_snippet(execute_data->prev_execute_data)) {
			zend_hash_add_empty_element(&snippet_schemes, scheme);
		} else {
			zend_hash_del(&snippet_schemes, scheme);
		}
	}
	zend_string_release(scheme);
}

static ZEND_NAMED_FUNCTION(register_wrapper)
{
	change_wrapper(INTERNAL_FUNCTION_PARAM_PASSTHRU, next_register, true);
}

static ZEND_NAMED_FUNCTION(unregister_wrapper)
{
	change_wrapper(INTERNAL_FUNCTION_PARAM_PASSTHRU, next_unregister, false);
}

static ZEND_NAMED_FUNCTION(restore_wrapper)
{
	change_wrapper(INTERNAL_FUNCTION_PARAM_PASSTHRU, next_restore, false);
}

/* ---- include ---- */

/* The scheme of a path, lower case, as php_stream_locate_url_wrapper() reads it. */
static zend_string *scheme_of(const zend_string *path)
{
	const char *text = ZSTR_VAL(path);
	size_t len = 0;
	while (isalnum((unsigned char) text[len]) || (text[len] != '\0' && strchr("+-.", text[len]))) {
		len++;
	}
	bool is_url = text[len] == ':' && len > 1
		&& (strncmp(text + len + 1, "//", 2) == 0 || (len == 4 && strncasecmp(text, "data", 4) == 0));
	zend_string *scheme = is_url ? zend_string_init(text, len, 0) : zend_string_init(ZEND_STRL("file"), 0);
	zend_str_tolower(ZSTR_VAL(scheme), ZSTR_LEN(scheme));
	return scheme;
}

/* Returns whether the content behind a scheme is not a file: it comes from the network, is part
 * of the URL, or was written by the snippet. The application's own wrappers count as files. */
static bool is_no_file(zend_string *scheme)
{
	const php_stream_wrapper *wrapper =
		zend_hash_find_ptr(php_stream_get_url_stream_wrappers_hash(), scheme);
	return zend_hash_exists(&snippet_schemes, scheme) || zend_string_equals_literal(scheme, "php")
		|| (wrapper != NULL && wrapper->is_url);
}

static zend_result refuse_include(zend_file_handle *file)
{
	/* For an include, the current frame is the code that contains it. */
	if (file->filename == NULL || !altair_is_snippet(EG(current_execute_data))) {
		return next_stream_open(file);
	}
	zend_string *scheme = scheme_of(file->filename);
	if (!is_no_file(scheme)) {
		zend_string_release(scheme);
		return next_stream_open(file);
	}
	char what[ALTAIR_WHAT_BYTES];
	snprintf(what, sizeof what, "include of a %s: URL", ZSTR_VAL(scheme));
	zend_string_release(scheme);
	altair_blocked(what, "--unsafe");
	char clause[ALTAIR_CLAUSE_BYTES];
	altair_clause("--unsafe", clause);
	zend_throw_error(NULL, "%s is refused in a confined run to code of the snippet%s", what, clause);
	return FAILURE;
}

void altair_refuse_strings(void)
{
	zend_hash_init(&snippet_schemes, 0, NULL, NULL, 0);
	next_register = altair_replace(ZEND_STRL("stream_wrapper_register"), register_wrapper);
	altair_replace(ZEND_STRL("stream_register_wrapper"), register_wrapper); /* alias */
	next_unregister = altair_replace(ZEND_STRL("stream_wrapper_unregister"), unregister_wrapper);
	next_restore = altair_replace(ZEND_STRL("stream_wrapper_restore"), restore_wrapper);
	next_compile_string = zend_compile_string;
	zend_compile_string = refuse_eval;
	next_stream_open = zend_stream_open_function;
	zend_stream_open_function = refuse_include;
}
