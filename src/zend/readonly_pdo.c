/* Read-only sessions of SQLite and PostgreSQL through PDO: a handle's driver methods are replaced as
 * it is made. MySQL's are mysqlnd's. */

#include "readonly.h"

#if __has_include("ext/pdo/php_pdo_driver.h")
#include <dlfcn.h>
#include "ext/pdo/php_pdo_driver.h"

/* The methods of one kind of handle, as they were and as they are now. */
typedef struct {
	const struct pdo_dbh_methods *was;
	struct pdo_dbh_methods is;
	const struct pdo_stmt_methods *stmt_was;
	struct pdo_stmt_methods stmt_is;
	enum altair_dialect dialect;
} watched_driver;

/* SQLite's, those of databases in memory, PostgreSQL's. */
#define DRIVERS_MAX 3

static watched_driver drivers[DRIVERS_MAX];
static size_t driver_count;

/* ---- libpq, which the driver has loaded ---- */

#define TRANSACTION_IDLE 0 /* PQTRANS_IDLE (libpq-fe.h) */

static const char *(*parameter_status)(const void *server, const char *name);
static int (*transaction_status)(const void *server);

/* The driver's own data begins with its connection (ext/pdo_pgsql/php_pdo_pgsql_int.h; the same from
 * 8.0 to 8.5). */
static const void *server_of(const pdo_dbh_t *dbh)
{
	return *(const void **) dbh->driver_data;
}

/* Whether the session's next transaction reads only, as far as the server has told (14 and later
 * tell of each change). Within one, what it began as is not to be changed. */
static bool is_read_only(const pdo_dbh_t *dbh)
{
	if (parameter_status == NULL || transaction_status == NULL) {
		return false;
	}
	const void *server = server_of(dbh);
	const char *on = parameter_status(server, "default_transaction_read_only");
	return (on != NULL && strcmp(on, "on") == 0) || transaction_status(server) != TRANSACTION_IDLE;
}

/* ---- a handle ---- */

static watched_driver *driver_of(const pdo_dbh_t *dbh)
{
	return (watched_driver *) ((char *) dbh->methods - offsetof(watched_driver, is));
}

static bool say(pdo_dbh_t *dbh, const watched_driver *driver, const char *text)
{
	zend_string *sql = zend_string_init(text, strlen(text), false);
	bool sent = driver->was->doer(dbh, sql) != -1;
	zend_string_release(sql);
	return sent;
}

/* What code in the server, a function that a statement calls, may have lifted since. */
static bool stays_read_only(pdo_dbh_t *dbh, const watched_driver *driver)
{
	return driver->dialect != ALTAIR_POSTGRESQL || is_read_only(dbh)
		|| say(dbh, driver, ALTAIR_POSTGRESQL_READ_ONLY);
}

/* Notes where it was the database that refused a write. */
static void note_failure(pdo_dbh_t *dbh, pdo_stmt_t *stmt, const watched_driver *driver)
{
	const char *state = stmt != NULL ? stmt->error_code : dbh->error_code;
	bool refused = strcmp(state, "25006") == 0; /* read_only_sql_transaction */
	if (driver->dialect == ALTAIR_SQLITE && driver->was->fetch_err != NULL) {
		zval info;
		array_init(&info);
		driver->was->fetch_err(dbh, stmt, &info);
		const zval *code = zend_hash_index_find(Z_ARRVAL(info), 0);
		refused = code != NULL && Z_TYPE_P(code) == IS_LONG && (Z_LVAL_P(code) & 0xff) == 8; /* SQLITE_READONLY */
		zval_ptr_dtor(&info);
	}
	if (refused) {
		altair_note_write();
	}
}

static int executer(pdo_stmt_t *stmt)
{
	watched_driver *driver = driver_of(stmt->dbh);
	/* Where PDO itself has put the values into the text. */
	const zend_string *sql = stmt->active_query_string;
	if ((sql != NULL && altair_refuses_sql(driver->dialect, ZSTR_VAL(sql), ZSTR_LEN(sql)))
		|| !stays_read_only(stmt->dbh, driver)) {
		return 0;
	}
	int done = driver->stmt_was->executer(stmt);
	if (!done) {
		note_failure(stmt->dbh, stmt, driver);
	}
	return done;
}

static bool preparer(pdo_dbh_t *dbh, zend_string *sql, pdo_stmt_t *stmt, zval *options)
{
	watched_driver *driver = driver_of(dbh);
	if (altair_refuses_sql(driver->dialect, ZSTR_VAL(sql), ZSTR_LEN(sql)) || !driver->was->preparer(dbh, sql, stmt, options)) {
		return false;
	}
	if (driver->stmt_was == NULL) {
		driver->stmt_was = stmt->methods;
		driver->stmt_is = *stmt->methods;
		driver->stmt_is.executer = executer;
	}
	if (stmt->methods == driver->stmt_was) {
		stmt->methods = &driver->stmt_is;
	}
	return true;
}

static zend_long doer(pdo_dbh_t *dbh, const zend_string *sql)
{
	watched_driver *driver = driver_of(dbh);
	if (altair_refuses_sql(driver->dialect, ZSTR_VAL(sql), ZSTR_LEN(sql)) || !stays_read_only(dbh, driver)) {
		return -1;
	}
	zend_long done = driver->was->doer(dbh, sql);
	if (done == -1) {
		note_failure(dbh, NULL, driver);
	}
	return done;
}

static bool begin(pdo_dbh_t *dbh)
{
	watched_driver *driver = driver_of(dbh);
	return stays_read_only(dbh, driver) && driver->was->begin(dbh);
}

/* ---- methods of PostgreSQL's handles that write without a statement ---- */

/* What a method that writes is called, in both spellings, and whether its second argument says so. */
static const struct {
	const char *name;
	bool by_mode;
} writing[] = {
	{"pgsqlCopyFromArray", false}, {"copyFromArray", false},
	{"pgsqlCopyFromFile", false}, {"copyFromFile", false},
	{"pgsqlLOBCreate", false}, {"lobCreate", false},
	{"pgsqlLOBUnlink", false}, {"lobUnlink", false},
	{"pgsqlLOBOpen", true}, {"lobOpen", true},
};
#define WRITING (sizeof writing / sizeof *writing)

/* What the last two of them did: one for each spelling. */
static zif_handler next_open[WRITING];

static ZEND_NAMED_FUNCTION(refuse_writing)
{
	const char *name = ZSTR_VAL(execute_data->func->common.function_name);
	for (size_t i = 0; i < WRITING; i++) {
		if (zend_binary_strcasecmp(name, strlen(name), writing[i].name, strlen(writing[i].name)) != 0) {
			continue;
		}
		const zval *mode = ZEND_NUM_ARGS() >= 2 ? ZEND_CALL_ARG(execute_data, 2) : NULL;
		bool reads = mode == NULL
			|| (Z_TYPE_P(mode) == IS_STRING && strpbrk(Z_STRVAL_P(mode), "waxc+") == NULL);
		if (writing[i].by_mode && reads && next_open[i] != NULL) {
			next_open[i](INTERNAL_FUNCTION_PARAM_PASSTHRU);
			return;
		}
	}
	char what[ALTAIR_WHAT_BYTES];
	snprintf(what, sizeof what, "PDO::%s()", name);
	altair_refuse_write(what);
}

static bool is_writing(const char *name, size_t *index)
{
	for (*index = 0; *index < WRITING; (*index)++) {
		if (strcasecmp(name, writing[*index].name) == 0) {
			return true;
		}
	}
	return false;
}

#define METHODS_MAX 32

/* Before PHP 8.4 these methods are no class's, but the handle's. */
static const zend_function_entry *get_driver_methods(pdo_dbh_t *dbh, int kind)
{
	static zend_function_entry entries[METHODS_MAX + 1];
	const zend_function_entry *own = driver_of(dbh)->was->get_driver_methods(dbh, kind);
	if (own == NULL || kind != PDO_DBH_DRIVER_METHOD_KIND_DBH || driver_of(dbh)->dialect != ALTAIR_POSTGRESQL) {
		return own;
	}
	size_t count = 0;
	for (; own[count].fname != NULL && count < METHODS_MAX; count++) {
		size_t index;
		entries[count] = own[count];
		if (is_writing(own[count].fname, &index)) {
			next_open[index] = own[count].handler;
			entries[count].handler = refuse_writing;
		}
	}
	memset(&entries[count], 0, sizeof *entries);
	return entries;
}

static void refuse_writing_methods(zend_class_entry *ce)
{
	for (size_t i = 0; i < WRITING; i++) {
		zend_function *method =
			zend_hash_str_find_ptr_lc(&ce->function_table, writing[i].name, strlen(writing[i].name));
		if (method != NULL && method->type == ZEND_INTERNAL_FUNCTION
			&& method->internal_function.handler != refuse_writing) {
			next_open[i] = method->internal_function.handler;
			method->internal_function.handler = refuse_writing;
		}
	}
}

/* ---- a new handle ---- */

static bool is_in_memory(const char *name)
{
	/* One without a name is a file of SQLite's own, gone when it is closed. */
	return *name == '\0' || strcmp(name, ":memory:") == 0
		|| (strncmp(name, "file:", 5) == 0
			&& (strncmp(name + 5, ":memory:", 8) == 0 || strstr(name, "mode=memory") != NULL));
}

static bool dialect_of(const pdo_dbh_t *dbh, enum altair_dialect *dialect)
{
	const char *name = dbh->driver->driver_name;
	if (strcmp(name, "pgsql") == 0) {
		*dialect = ALTAIR_POSTGRESQL;
		return true;
	}
	if (strcmp(name, "sqlite") == 0) {
		*dialect = is_in_memory(dbh->data_source) ? ALTAIR_SQLITE_IN_MEMORY : ALTAIR_SQLITE;
		return true;
	}
	return false;
}

static watched_driver *watch(const struct pdo_dbh_methods *methods, enum altair_dialect dialect)
{
	for (size_t i = 0; i < driver_count; i++) {
		if (drivers[i].was == methods && drivers[i].dialect == dialect) {
			return &drivers[i];
		}
	}
	if (driver_count == DRIVERS_MAX) {
		return NULL;
	}
	watched_driver *driver = &drivers[driver_count++];
	*driver = (watched_driver) {.was = methods, .is = *methods, .dialect = dialect};
	driver->is.preparer = preparer;
	driver->is.doer = doer;
	if (methods->begin != NULL) {
		driver->is.begin = begin;
	}
	if (methods->get_driver_methods != NULL) {
		driver->is.get_driver_methods = get_driver_methods;
	}
	return driver;
}

static bool is_watched(const pdo_dbh_t *dbh)
{
	for (size_t i = 0; i < driver_count; i++) {
		if (dbh->methods == &drivers[i].is) {
			return true;
		}
	}
	return false;
}

/* One whose driver is none of these is none of ours. A persistent one may be watched already. */
static void make_read_only(zend_object *object)
{
	pdo_dbh_t *dbh = php_pdo_dbh_fetch_inner(object);
	enum altair_dialect dialect;
	if (dbh == NULL || dbh->driver == NULL || dbh->methods == NULL || is_watched(dbh) || !dialect_of(dbh, &dialect)) {
		return;
	}
	const watched_driver *driver = watch(dbh->methods, dialect);
	bool done = driver != NULL;
	if (done && dialect == ALTAIR_POSTGRESQL) {
		if (parameter_status == NULL) {
			*(void **) &parameter_status = dlsym(RTLD_DEFAULT, "PQparameterStatus");
			*(void **) &transaction_status = dlsym(RTLD_DEFAULT, "PQtransactionStatus");
		}
		done = say(dbh, driver, ALTAIR_POSTGRESQL_READ_ONLY);
	} else if (done && dialect == ALTAIR_SQLITE) {
		done = say(dbh, driver, "PRAGMA query_only = 1");
	}
	if (!done) {
		zend_throw_error(NULL, "The database session cannot be made read-only, as it has to be in a confined run; --writes does without");
		return;
	}
	dbh->methods = &driver->is;
}

static zif_handler next_construct;
static zif_handler next_connect;

static ZEND_NAMED_FUNCTION(pdo_construct)
{
	next_construct(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (!EG(exception)) {
		make_read_only(Z_OBJ_P(ZEND_THIS));
	}
}

/* PDO::connect(), from PHP 8.4 on. */
static ZEND_NAMED_FUNCTION(pdo_connect)
{
	next_connect(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (!EG(exception) && Z_TYPE_P(return_value) == IS_OBJECT) {
		make_read_only(Z_OBJ_P(return_value));
	}
}

/* Built-in classes have copies of what they inherit. */
static void replace_method(const zend_class_entry *ce, const char *name, zif_handler *was, zif_handler is)
{
	zend_function *method = zend_hash_str_find_ptr(&ce->function_table, name, strlen(name));
	if (method != NULL && method->type == ZEND_INTERNAL_FUNCTION && method->internal_function.handler != is) {
		*was = method->internal_function.handler;
		method->internal_function.handler = is;
	}
}

void altair_watch_pdo(void)
{
	const zend_class_entry *pdo = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("pdo"));
	if (pdo == NULL) {
		return;
	}
	zend_class_entry *ce;
	ZEND_HASH_FOREACH_PTR(CG(class_table), ce) {
		if (ce->type == ZEND_INTERNAL_CLASS && instanceof_function(ce, pdo)) {
			replace_method(ce, "__construct", &next_construct, pdo_construct);
			replace_method(ce, "connect", &next_connect, pdo_connect);
			if (zend_string_equals_literal_ci(ce->name, "Pdo\\Pgsql")) {
				refuse_writing_methods(ce);
			}
		}
	} ZEND_HASH_FOREACH_END();
}

#else

void altair_watch_pdo(void)
{
}

#endif
