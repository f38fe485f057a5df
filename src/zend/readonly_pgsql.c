/* Read-only sessions of PostgreSQL through the functions of pgsql. A session is put into its read-only
 * mode as it opens, and before each statement it is seen to be in it still. What is asked for that is
 * asked of libpq itself: no code of PHP's runs meanwhile. */

#include "readonly.h"
#include <dlfcn.h>

/* What a function does. */
enum kind {
	OPENS,    /* opens a connection */
	POLLS,    /* goes on with opening one */
	TEXT,     /* runs or prepares a statement; `after` arguments follow its text */
	PREPARED, /* runs one that was looked at */
	MAKES,    /* makes its own of names, values and flags */
	COPIES,   /* copies what its second argument names out of the database */
	ENCODES,  /* makes a statement of the name of an encoding */
	WRITES,   /* writes */
	BY_MODE,  /* opens a large object, to write as its last argument says */
};

static struct {
	const char *name;
	enum kind kind;
	uint32_t after;
	zif_handler next;
} functions[] = {
	{"pg_connect", OPENS, 0, NULL}, {"pg_pconnect", OPENS, 0, NULL},
	{"pg_connect_poll", POLLS, 0, NULL},
	{"pg_connection_reset", POLLS, 0, NULL}, {"pg_ping", POLLS, 0, NULL},
	{"pg_query", TEXT, 0, NULL}, {"pg_exec", TEXT, 0, NULL},
	{"pg_query_params", TEXT, 1, NULL},
	{"pg_prepare", TEXT, 0, NULL},
	{"pg_send_query", TEXT, 0, NULL},
	{"pg_send_query_params", TEXT, 1, NULL},
	{"pg_send_prepare", TEXT, 0, NULL},
	{"pg_execute", PREPARED, 0, NULL},
	{"pg_send_execute", PREPARED, 0, NULL},
	{"pg_insert", MAKES, 0, NULL}, {"pg_update", MAKES, 0, NULL},
	{"pg_delete", MAKES, 0, NULL}, {"pg_select", MAKES, 0, NULL},
	{"pg_copy_to", COPIES, 0, NULL},
	{"pg_set_client_encoding", ENCODES, 0, NULL}, {"pg_setclientencoding", ENCODES, 0, NULL},
	{"pg_copy_from", WRITES, 0, NULL},
	{"pg_change_password", WRITES, 0, NULL}, /* from 8.4 on */
	{"pg_enter_pipeline_mode", WRITES, 0, NULL}, /* from 8.4 on: nobody can look in between */
	/* A read-only transaction does not stop these before PostgreSQL 16. */
	{"pg_lo_create", WRITES, 0, NULL}, {"pg_locreate", WRITES, 0, NULL},
	{"pg_lo_import", WRITES, 0, NULL}, {"pg_loimport", WRITES, 0, NULL},
	{"pg_lo_unlink", WRITES, 0, NULL}, {"pg_lounlink", WRITES, 0, NULL},
	{"pg_lo_write", WRITES, 0, NULL}, {"pg_lowrite", WRITES, 0, NULL},
	{"pg_lo_truncate", WRITES, 0, NULL},
	{"pg_lo_open", BY_MODE, 0, NULL}, {"pg_loopen", BY_MODE, 0, NULL},
};
#define FUNCTIONS (sizeof functions / sizeof *functions)

/* ---- libpq ---- */

/* libpq-fe.h */
#define CONNECTION_OK 0
#define COMMAND_OK 1
#define COPY_OUT 3
#define COPY_IN 4
#define COPY_BOTH 8

/* Flags of pg_insert() and its like (ext/pgsql/php_pgsql.h). */
#define DML_NO_CONV (1 << 8)
#define DML_ESCAPE (1 << 12)

static struct {
	int (*status)(const void *server);
	int (*transaction_status)(const void *server);
	const char *(*parameter_status)(const void *server, const char *name);
	char *(*error)(const void *server);
	void *(*exec)(void *server, const char *text);
	void *(*get_result)(void *server);
	int (*result_status)(const void *result);
	void (*clear)(void *result);
} pq;

static bool find_library(void)
{
	*(void **) &pq.status = dlsym(RTLD_DEFAULT, "PQstatus");
	*(void **) &pq.transaction_status = dlsym(RTLD_DEFAULT, "PQtransactionStatus");
	*(void **) &pq.parameter_status = dlsym(RTLD_DEFAULT, "PQparameterStatus");
	*(void **) &pq.error = dlsym(RTLD_DEFAULT, "PQerrorMessage");
	*(void **) &pq.exec = dlsym(RTLD_DEFAULT, "PQexec");
	*(void **) &pq.get_result = dlsym(RTLD_DEFAULT, "PQgetResult");
	*(void **) &pq.result_status = dlsym(RTLD_DEFAULT, "PQresultStatus");
	*(void **) &pq.clear = dlsym(RTLD_DEFAULT, "PQclear");
	return pq.status != NULL && pq.transaction_status != NULL && pq.parameter_status != NULL && pq.error != NULL
		&& pq.exec != NULL && pq.get_result != NULL && pq.result_status != NULL && pq.clear != NULL;
}

/* The connection that was opened last, which functions go by that are given none. */
static zend_object *last;

static bool is_connection(const zval *value)
{
	return Z_TYPE_P(value) == IS_OBJECT && zend_string_equals_literal(Z_OBJCE_P(value)->name, "PgSql\\Connection");
}

/* An object of a connection has libpq's before it, as the first of its own data (ext/pgsql/php_pgsql.h;
 * the same from 8.1 to 8.5). NULL where it is closed. */
static void *server_of(zend_object *connection)
{
	return connection == NULL ? NULL : *(void **) ((char *) connection - connection->handlers->offset);
}

/* ---- a session ---- */

/* What it has been sent is not over, and may lift the mode: waited for, and left, as the functions
 * themselves do with results that nobody has taken. False where it is a copy. */
static bool has_come_to_rest(void *server)
{
	while (pq.transaction_status(server) == TRANSACTION_ACTIVE) {
		void *result = pq.get_result(server);
		if (result == NULL) {
			return pq.transaction_status(server) != TRANSACTION_ACTIVE;
		}
		int status = pq.result_status(result);
		pq.clear(result);
		if (status == COPY_OUT || status == COPY_IN || status == COPY_BOTH) {
			return false;
		}
	}
	return true;
}

/* False with an exception pending where it cannot be made read-only. */
static bool stays_read_only(zend_object *connection)
{
	void *server = server_of(connection);
	/* A connection that is none is the function's own to tell of. */
	if (server == NULL || pq.status(server) != CONNECTION_OK || !has_come_to_rest(server)
		|| pq.transaction_status(server) != TRANSACTION_IDLE) {
		return true; /* a transaction stays what it began as */
	}
	/* Told by the server, from 14 on, without being asked. */
	const char *on = pq.parameter_status(server, "default_transaction_read_only");
	if (on != NULL && strcmp(on, "on") == 0) {
		return true;
	}
	void *result = pq.exec(server, ALTAIR_POSTGRESQL_READ_ONLY);
	bool done = pq.result_status(result) == COMMAND_OK;
	pq.clear(result);
	if (!done && pq.status(server) == CONNECTION_OK) {
		altair_refuse_unwatched();
		return false;
	}
	return true;
}

static void note_failure(zend_object *connection, const zval *returned)
{
	void *server = server_of(connection);
	if (Z_TYPE_P(returned) == IS_FALSE && server != NULL
		&& strstr(pq.error(server), "read-only transaction") != NULL) {
		altair_note_write();
	}
}

/* ---- arguments ---- */

/* The text of an argument, as the function will see it: what is an object becomes the text that it
 * is now, and is not asked for another. NULL where it is none. */
static const zend_string *text_of(zend_execute_data *call, uint32_t number)
{
	zval *text = ZEND_CALL_ARG(call, number);
	ZVAL_DEREF(text);
	if (Z_TYPE_P(text) == IS_OBJECT && !is_connection(text) && !ZEND_ARG_USES_STRICT_TYPES()) {
		zend_string *now = zval_try_get_string(text);
		if (now == NULL) {
			return NULL;
		}
		zval_ptr_dtor(text);
		ZVAL_STR(text, now);
	}
	return Z_TYPE_P(text) == IS_STRING ? Z_STR_P(text) : NULL;
}

static bool is_refused(zend_execute_data *call, uint32_t number)
{
	const zend_string *text = text_of(call, number);
	return EG(exception) != NULL
		|| (text != NULL && altair_refuses_sql(ALTAIR_POSTGRESQL, ZSTR_VAL(text), ZSTR_LEN(text)));
}

/* Values that are not escaped are statements (PGSQL_DML_NO_CONV without PGSQL_DML_ESCAPE). */
static bool pastes_values(const zend_execute_data *call)
{
	for (uint32_t i = 4; i <= ZEND_CALL_NUM_ARGS(call); i++) {
		const zval *flags = ZEND_CALL_ARG(call, i);
		ZVAL_DEREF(flags);
		if (Z_TYPE_P(flags) != IS_ARRAY && Z_TYPE_P(flags) != IS_UNDEF) {
			zend_long set = zval_get_long((zval *) flags);
			if ((set & DML_NO_CONV) != 0 && (set & DML_ESCAPE) == 0) {
				return true;
			}
		}
	}
	return false;
}

/* As the function makes its statement: COPY, with a separator and a text for NULL that it pastes. */
static bool is_copy_refused(zend_execute_data *call)
{
	const zend_string *texts[3] = {NULL, NULL, NULL};
	for (uint32_t i = 2; i <= 4 && i <= ZEND_CALL_NUM_ARGS(call); i++) {
		texts[i - 2] = text_of(call, i);
	}
	if (EG(exception) != NULL || texts[0] == NULL) {
		return EG(exception) != NULL;
	}
	for (size_t i = 1; i < 3; i++) {
		if (texts[i] != NULL && strpbrk(ZSTR_VAL(texts[i]), "'") != NULL) {
			altair_refuse_write("pg_copy_to() with a quote in what it pastes");
			return true;
		}
	}
	zend_string *made = strpprintf(0, "COPY %s TO STDOUT", ZSTR_VAL(texts[0]));
	bool refused = altair_refuses_sql(ALTAIR_POSTGRESQL, ZSTR_VAL(made), ZSTR_LEN(made));
	zend_string_release(made);
	/* What follows the name is not to follow a comment. */
	if (!refused && (strstr(ZSTR_VAL(texts[0]), "--") != NULL || strchr(ZSTR_VAL(texts[0]), ';') != NULL)) {
		altair_refuse_write("pg_copy_to() of anything but a table or a query");
		return true;
	}
	return refused;
}

static bool is_name_of_encoding(zend_execute_data *call)
{
	static const char of_names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	const zend_string *name = text_of(call, ZEND_CALL_NUM_ARGS(call));
	return name == NULL || strspn(ZSTR_VAL(name), of_names) == ZSTR_LEN(name);
}

/* ---- the functions ---- */

/* Whether a call is refused; throws where it is. */
static bool refuses(zend_execute_data *call, size_t i)
{
	uint32_t count = ZEND_CALL_NUM_ARGS(call);
	bool writes = functions[i].kind == WRITES;
	switch (functions[i].kind) {
		case TEXT:
			return count > functions[i].after && is_refused(call, count - functions[i].after);
		case COPIES:
			return count >= 2 && is_copy_refused(call);
		case MAKES:
			writes = pastes_values(call);
			break;
		case ENCODES:
			writes = count > 0 && !is_name_of_encoding(call);
			break;
		case BY_MODE: {
			const zend_string *mode = count > 0 ? text_of(call, count) : NULL;
			writes = mode == NULL || strpbrk(ZSTR_VAL(mode), "w+") != NULL;
			break;
		}
		default:
			break;
	}
	if (writes && EG(exception) == NULL) {
		char what[ALTAIR_WHAT_BYTES];
		snprintf(what, sizeof what, "%s()%s", functions[i].name,
			functions[i].kind == MAKES ? " of values that are not escaped" : "");
		altair_refuse_write(what);
	}
	return writes || EG(exception) != NULL;
}

static void remember(zend_object *connection)
{
	if (last != connection) {
		zend_object *before = last;
		GC_ADDREF(connection);
		last = connection;
		if (before != NULL) {
			OBJ_RELEASE(before);
		}
	}
}

static ZEND_NAMED_FUNCTION(guarded)
{
	const char *name = ZSTR_VAL(execute_data->func->common.function_name);
	size_t i = 0;
	while (i < FUNCTIONS - 1 && strcasecmp(name, functions[i].name) != 0) {
		i++;
	}
	zif_handler next = functions[i].next;
	if (functions[i].kind == OPENS) {
		next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		if (is_connection(return_value)) {
			remember(Z_OBJ_P(return_value));
			stays_read_only(last);
		}
		return;
	}
	const zval *first = ZEND_NUM_ARGS() > 0 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
	zend_object *connection = first != NULL && is_connection(first) ? Z_OBJ_P(first) : last;
	if (functions[i].kind == POLLS) {
		next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		stays_read_only(connection);
		return;
	}
	if (refuses(execute_data, i) || !stays_read_only(connection)) {
		return;
	}
	next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	note_failure(connection, return_value);
}

void altair_watch_pgsql(void)
{
	if (zend_hash_str_find_ptr(CG(function_table), ZEND_STRL("pg_connect")) == NULL) {
		return;
	}
	if (!find_library()) {
		altair_refuse_functions("pg_connect", "pg_pconnect");
		return;
	}
	for (size_t i = 0; i < FUNCTIONS; i++) {
		zend_function *function =
			zend_hash_str_find_ptr(CG(function_table), functions[i].name, strlen(functions[i].name));
		if (function != NULL && function->type == ZEND_INTERNAL_FUNCTION) {
			functions[i].next = function->internal_function.handler;
			function->internal_function.handler = guarded;
		}
	}
}
