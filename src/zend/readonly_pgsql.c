/* Read-only sessions of PostgreSQL through the functions of pgsql. Before each statement the session
 * is seen to be in its read-only mode: as it was opened, or as what it has run has left it. */

#include "readonly.h"

/* What a function does. */
enum kind {
	TEXT,    /* runs or prepares a statement; `after` arguments follow its text */
	PREPARED, /* runs one that was looked at, or makes its own */
	WRITES,  /* writes a large object, which a read-only transaction does not stop before 16 */
	OPENS,   /* opens one, to write as its third argument says */
};

static struct {
	const char *name;
	enum kind kind;
	uint32_t after;
	zif_handler next;
} functions[] = {
	{"pg_query", TEXT, 0, NULL}, {"pg_exec", TEXT, 0, NULL},
	{"pg_query_params", TEXT, 1, NULL},
	{"pg_prepare", TEXT, 0, NULL},
	{"pg_send_query", TEXT, 0, NULL},
	{"pg_send_query_params", TEXT, 1, NULL},
	{"pg_send_prepare", TEXT, 0, NULL},
	{"pg_execute", PREPARED, 0, NULL},
	{"pg_send_execute", PREPARED, 0, NULL},
	{"pg_insert", PREPARED, 0, NULL},
	{"pg_update", PREPARED, 0, NULL},
	{"pg_delete", PREPARED, 0, NULL},
	{"pg_select", PREPARED, 0, NULL},
	{"pg_copy_from", PREPARED, 0, NULL},
	{"pg_lo_create", WRITES, 0, NULL}, {"pg_locreate", WRITES, 0, NULL},
	{"pg_lo_import", WRITES, 0, NULL}, {"pg_loimport", WRITES, 0, NULL},
	{"pg_lo_unlink", WRITES, 0, NULL}, {"pg_lounlink", WRITES, 0, NULL},
	{"pg_lo_write", WRITES, 0, NULL}, {"pg_lowrite", WRITES, 0, NULL},
	{"pg_lo_truncate", WRITES, 0, NULL},
	{"pg_lo_open", OPENS, 0, NULL}, {"pg_loopen", OPENS, 0, NULL},
};
#define FUNCTIONS (sizeof functions / sizeof *functions)

/* While we ask ourselves. */
static bool asking;

/* Calls a function of pgsql's, with a connection or for want of one with the last that was opened. */
static void ask(const char *name, zval *connection, const char *text, zval *result)
{
	ZVAL_UNDEF(result);
	zend_function *function = zend_hash_str_find_ptr(CG(function_table), name, strlen(name));
	if (function == NULL) {
		return;
	}
	zval arguments[2];
	uint32_t count = 0;
	if (connection != NULL) {
		ZVAL_COPY_VALUE(&arguments[count++], connection);
	}
	if (text != NULL) {
		ZVAL_STRING(&arguments[count++], text);
	}
	/* The last that was opened is deprecated, and a failure is the caller's statement's to tell. */
	int reporting = EG(error_reporting);
	EG(error_reporting) = 0;
	asking = true;
	zend_call_known_function(function, NULL, NULL, result, count, arguments, NULL);
	asking = false;
	EG(error_reporting) = reporting;
	if (text != NULL) {
		zval_ptr_dtor(&arguments[count - 1]);
	}
}

static bool is_text(const zval *value, const char *text)
{
	return Z_TYPE_P(value) == IS_STRING && strcmp(Z_STRVAL_P(value), text) == 0;
}

/* Whether the last error of a connection has these words. */
static bool says(zval *connection, const char *words)
{
	zval said;
	ask("pg_last_error", connection, NULL, &said);
	bool has = Z_TYPE(said) == IS_STRING && strstr(Z_STRVAL(said), words) != NULL;
	zval_ptr_dtor(&said);
	return has;
}

/* False with an exception pending where the session cannot be made read-only. */
static bool stays_read_only(zval *connection)
{
	zval result;
	/* Told by the server, from 14 on, without being asked. */
	ask("pg_parameter_status", connection, "default_transaction_read_only", &result);
	bool is = is_text(&result, "on");
	zval_ptr_dtor(&result);
	if (is || EG(exception)) {
		return !EG(exception);
	}
	/* A transaction stays what it began as. That of the last connection cannot be asked for. */
	if (connection != NULL) {
		ask("pg_transaction_status", connection, NULL, &result);
		if (Z_TYPE(result) != IS_LONG || Z_LVAL(result) != 0 /* PGSQL_TRANSACTION_IDLE */) {
			zval_ptr_dtor(&result);
			return !EG(exception);
		}
	}
	ask("pg_query", connection, ALTAIR_POSTGRESQL_READ_ONLY, &result);
	is = Z_TYPE(result) == IS_OBJECT || (connection == NULL && says(connection, "transaction is aborted"));
	zval_ptr_dtor(&result);
	if (!is && !EG(exception)) {
		zend_throw_error(NULL, "The database session cannot be made read-only, as it has to be in a confined run; --writes does without");
	}
	return is;
}

static void note_failure(zval *connection, const zval *returned)
{
	if (Z_TYPE_P(returned) == IS_FALSE && !EG(exception) && says(connection, "read-only transaction")) {
		altair_note_write();
	}
}

/* The text of a statement, as the function will see it: what is an object becomes the text that it
 * is now, and is not asked for another. */
static bool is_refused(zval *text)
{
	ZVAL_DEREF(text);
	if (Z_TYPE_P(text) == IS_OBJECT) {
		zend_string *now = zval_try_get_string(text);
		if (now == NULL) {
			return true;
		}
		zval_ptr_dtor(text);
		ZVAL_STR(text, now);
	}
	return Z_TYPE_P(text) == IS_STRING
		&& altair_refuses_sql(ALTAIR_POSTGRESQL, Z_STRVAL_P(text), Z_STRLEN_P(text));
}

static ZEND_NAMED_FUNCTION(guarded)
{
	const char *name = ZSTR_VAL(execute_data->func->common.function_name);
	size_t i = 0;
	while (i < FUNCTIONS - 1 && strcasecmp(name, functions[i].name) != 0) {
		i++;
	}
	zif_handler next = functions[i].next;
	if (asking) {
		next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	uint32_t count = ZEND_NUM_ARGS();
	zval *first = count > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
	zval *connection = first != NULL && Z_TYPE_P(first) == IS_OBJECT ? first : NULL;
	if (functions[i].kind == TEXT && count > functions[i].after
		&& is_refused(ZEND_CALL_ARG(execute_data, count - functions[i].after))) {
		return;
	}
	const zval *mode = functions[i].kind == OPENS && count > 0 ? ZEND_CALL_ARG(execute_data, count) : NULL;
	bool opens_to_write = mode != NULL && Z_TYPE_P(mode) == IS_STRING && strchr(Z_STRVAL_P(mode), 'w') != NULL;
	if (functions[i].kind == WRITES || opens_to_write) {
		char what[ALTAIR_WHAT_BYTES];
		snprintf(what, sizeof what, "%s()", name);
		altair_refuse_write(what);
		return;
	}
	/* Where there is no connection, the function itself says so. */
	if (count > 0 && !stays_read_only(connection)) {
		return;
	}
	next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	note_failure(connection, return_value);
}

void altair_watch_pgsql(void)
{
	for (size_t i = 0; i < FUNCTIONS; i++) {
		zend_function *function =
			zend_hash_str_find_ptr(CG(function_table), functions[i].name, strlen(functions[i].name));
		if (function != NULL && function->type == ZEND_INTERNAL_FUNCTION) {
			functions[i].next = function->internal_function.handler;
			function->internal_function.handler = guarded;
		}
	}
}
