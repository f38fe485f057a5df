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
	struct pdo_dbh_methods dead; /* of one that could not be made read-only */
	const struct pdo_stmt_methods *stmt_was;
	struct pdo_stmt_methods stmt_is;
	enum altair_dialect dialect;
} watched_driver;

/* SQLite's, those of databases in memory, PostgreSQL's; MySQL's that cannot be watched. */
#define DRIVERS_MAX 4

static watched_driver drivers[DRIVERS_MAX];
static size_t driver_count;

/* ---- libpq and libsqlite3, which the drivers have loaded ---- */

static const char *(*parameter_status)(const void *server, const char *name);
static int (*transaction_status)(const void *server);
static const char *(*file_name)(void *database, const char *schema);

static void find_libraries(void)
{
	*(void **) &parameter_status = dlsym(RTLD_DEFAULT, "PQparameterStatus");
	*(void **) &transaction_status = dlsym(RTLD_DEFAULT, "PQtransactionStatus");
	*(void **) &file_name = dlsym(RTLD_DEFAULT, "sqlite3_db_filename");
}

/* The data of both drivers begins with what the library calls a connection
 * (ext/pdo_pgsql/php_pdo_pgsql_int.h, ext/pdo_sqlite/php_pdo_sqlite_int.h; the same from 8.0 to 8.5). */
static void *connection_of(const pdo_dbh_t *dbh)
{
	return *(void **) dbh->driver_data;
}

/* ---- a handle ---- */

static watched_driver *driver_of(const pdo_dbh_t *dbh)
{
	return (watched_driver *) ((char *) dbh->methods - offsetof(watched_driver, is));
}

static bool is_watched(const pdo_dbh_t *dbh)
{
	for (size_t i = 0; i < driver_count; i++) {
		if (dbh->methods == &drivers[i].is || dbh->methods == &drivers[i].dead) {
			return true;
		}
	}
	return false;
}

static bool say(pdo_dbh_t *dbh, const watched_driver *driver, const char *text)
{
	zend_string *sql = zend_string_init(text, strlen(text), false);
	bool sent = driver->was->doer(dbh, sql) != -1;
	zend_string_release(sql);
	return sent;
}

/* Whether the session's next transaction reads only, as far as the server has told (14 and later
 * tell of each change, with the results). Within one, what it began as is not to be changed. */
static bool is_read_only(pdo_dbh_t *dbh, const watched_driver *driver)
{
	if (parameter_status == NULL || transaction_status == NULL) {
		return driver->was->in_transaction != NULL && driver->was->in_transaction(dbh);
	}
	int status = transaction_status(connection_of(dbh));
	if (status != TRANSACTION_IDLE) {
		return status != TRANSACTION_ACTIVE;
	}
	const char *on = parameter_status(connection_of(dbh), "default_transaction_read_only");
	return on != NULL && strcmp(on, "on") == 0;
}

/* What code in the server, a function that a statement calls, may have lifted since. */
static bool stays_read_only(pdo_dbh_t *dbh, const watched_driver *driver)
{
	return driver->dialect != ALTAIR_POSTGRESQL || is_read_only(dbh, driver)
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

/* ---- a handle that could not be made read-only ---- */

static bool refuse_preparer(pdo_dbh_t *dbh, zend_string *sql, pdo_stmt_t *stmt, zval *options)
{
	(void) dbh, (void) sql, (void) stmt, (void) options;
	altair_refuse_unwatched();
	return false;
}

static zend_long refuse_doer(pdo_dbh_t *dbh, const zend_string *sql)
{
	(void) dbh, (void) sql;
	altair_refuse_unwatched();
	return -1;
}

static bool refuse_begin(pdo_dbh_t *dbh)
{
	(void) dbh;
	altair_refuse_unwatched();
	return false;
}

static const zend_function_entry *no_driver_methods(pdo_dbh_t *dbh, int kind)
{
	(void) dbh, (void) kind;
	return NULL;
}

/* ---- methods of PostgreSQL's handles that make their own statements ---- */

enum kind {
	WRITES,   /* writes */
	BY_MODE,  /* opens a large object, to write as its second argument says */
	COPIES,   /* copies what its first argument names out of the database */
};

/* What they are called, in both spellings, and what they did. */
static struct {
	const char *name;
	enum kind kind;
	zif_handler next;
} writing[] = {
	{"pgsqlCopyFromArray", WRITES, NULL}, {"copyFromArray", WRITES, NULL},
	{"pgsqlCopyFromFile", WRITES, NULL}, {"copyFromFile", WRITES, NULL},
	{"pgsqlLOBCreate", WRITES, NULL}, {"lobCreate", WRITES, NULL},
	{"pgsqlLOBUnlink", WRITES, NULL}, {"lobUnlink", WRITES, NULL},
	{"pgsqlLOBOpen", BY_MODE, NULL}, {"lobOpen", BY_MODE, NULL},
	{"pgsqlCopyToArray", COPIES, NULL}, {"copyToArray", COPIES, NULL},
	{"pgsqlCopyToFile", COPIES, NULL}, {"copyToFile", COPIES, NULL},
};
#define WRITING (sizeof writing / sizeof *writing)

/* Whether all texts among the arguments are names, of which no statement but the one that is meant
 * can be made; a second one says to which file, which is the run's own. */
static bool names_only(const zend_execute_data *call, uint32_t file)
{
	for (uint32_t i = 1; i <= ZEND_CALL_NUM_ARGS(call); i++) {
		const zval *value = ZEND_CALL_ARG(call, i);
		ZVAL_DEREF(value);
		if (i == file || Z_TYPE_P(value) == IS_NULL || Z_TYPE_P(value) == IS_UNDEF) {
			continue;
		}
		if (Z_TYPE_P(value) != IS_STRING || strlen(Z_STRVAL_P(value)) != Z_STRLEN_P(value)
			|| strpbrk(Z_STRVAL_P(value), "'();$-/*") != NULL) {
			return false;
		}
	}
	return true;
}

static bool is_writing(const char *name, size_t *index);

static ZEND_NAMED_FUNCTION(guarded)
{
	const char *name = ZSTR_VAL(execute_data->func->common.function_name);
	size_t i;
	bool is_fine = false;
	if (is_writing(name, &i) && writing[i].next != NULL) {
		const zval *mode = ZEND_NUM_ARGS() >= 2 ? ZEND_CALL_ARG(execute_data, 2) : NULL;
		bool reads = mode == NULL
			|| (Z_TYPE_P(mode) == IS_STRING && strpbrk(Z_STRVAL_P(mode), "waxc+") == NULL);
		bool to_file = strstr(name, "File") != NULL || strstr(name, "file") != NULL;
		is_fine = writing[i].kind == BY_MODE ? reads
			: writing[i].kind == COPIES && names_only(execute_data, to_file ? 2 : 0);
	}
	if (!is_fine) {
		char what[ALTAIR_WHAT_BYTES];
		snprintf(what, sizeof what, "PDO::%s()%s", name,
			i < WRITING && writing[i].kind == COPIES ? " of anything but a table" : "");
		altair_refuse_write(what);
		return;
	}
	pdo_dbh_t *dbh = php_pdo_dbh_fetch_inner(Z_OBJ_P(ZEND_THIS));
	if (dbh == NULL || !is_watched(dbh) || !stays_read_only(dbh, driver_of(dbh))) {
		altair_refuse_unwatched();
		return;
	}
	writing[i].next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
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
			writing[index].next = own[count].handler;
			entries[count].handler = guarded;
		}
	}
	memset(&entries[count], 0, sizeof *entries);
	return entries;
}

static void guard_methods(zend_class_entry *ce)
{
	for (size_t i = 0; i < WRITING; i++) {
		zend_function *method =
			zend_hash_str_find_ptr_lc(&ce->function_table, writing[i].name, strlen(writing[i].name));
		if (method != NULL && method->type == ZEND_INTERNAL_FUNCTION
			&& method->internal_function.handler != guarded) {
			writing[i].next = method->internal_function.handler;
			method->internal_function.handler = guarded;
		}
	}
}

/* ---- a new handle ---- */

static bool is_in_memory(const pdo_dbh_t *dbh)
{
	/* One without a name is in memory, or a file of SQLite's own that is gone when it is closed. */
	const char *name = file_name != NULL ? file_name(connection_of(dbh), "main") : dbh->data_source;
	return name == NULL || *name == '\0' || strcmp(name, ":memory:") == 0;
}

static bool dialect_of(const pdo_dbh_t *dbh, enum altair_dialect *dialect)
{
	const char *name = dbh->driver->driver_name;
	if (strcmp(name, "pgsql") == 0) {
		*dialect = ALTAIR_POSTGRESQL;
		return true;
	}
	if (strcmp(name, "sqlite") == 0) {
		*dialect = is_in_memory(dbh) ? ALTAIR_SQLITE_IN_MEMORY : ALTAIR_SQLITE;
		return true;
	}
	/* Through another library than mysqlnd there is no way to look. */
	*dialect = ALTAIR_MYSQL;
	return strcmp(name, "mysql") == 0 && !altair_mysqlnd_is_watched;
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
	driver->dead = *methods;
	driver->dead.preparer = refuse_preparer;
	driver->dead.doer = refuse_doer;
	driver->dead.begin = refuse_begin;
	driver->dead.get_driver_methods = no_driver_methods;
	return driver;
}

/* One whose driver is none of these is none of ours. A persistent one may be watched already. Also
 * where the constructor has thrown, as it may have opened the connection before. */
static void make_read_only(zend_object *object)
{
	pdo_dbh_t *dbh = php_pdo_dbh_fetch_inner(object);
	enum altair_dialect dialect;
	if (dbh == NULL || dbh->driver == NULL || dbh->methods == NULL || dbh->driver_data == NULL || is_watched(dbh)) {
		return;
	}
	if (parameter_status == NULL || file_name == NULL) {
		find_libraries();
	}
	if (!dialect_of(dbh, &dialect)) {
		return;
	}
	watched_driver *driver = watch(dbh->methods, dialect);
	if (driver == NULL) {
		dbh->driver = NULL; /* there are no more kinds than there is room for */
		altair_refuse_unwatched();
		return;
	}
	dbh->methods = &driver->is;
	bool done = dialect == ALTAIR_SQLITE_IN_MEMORY
		|| (dialect == ALTAIR_POSTGRESQL && say(dbh, driver, ALTAIR_POSTGRESQL_READ_ONLY))
		|| (dialect == ALTAIR_SQLITE && say(dbh, driver, "PRAGMA query_only = 1"));
	if (!done) {
		dbh->methods = &driver->dead;
		if (!EG(exception)) {
			altair_refuse_unwatched();
		}
	}
}

static zif_handler next_construct;
static zif_handler next_connect;

static ZEND_NAMED_FUNCTION(pdo_construct)
{
	next_construct(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	make_read_only(Z_OBJ_P(ZEND_THIS));
}

/* PDO::connect(), from PHP 8.4 on. */
static ZEND_NAMED_FUNCTION(pdo_connect)
{
	next_connect(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) == IS_OBJECT) {
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
				guard_methods(ce);
			}
		}
	} ZEND_HASH_FOREACH_END();
}

#else

/* This was built for a PHP without PDO: what has come since cannot be watched. */
void altair_watch_pdo(void)
{
	altair_refuse_constructor("pdo");
}

#endif
