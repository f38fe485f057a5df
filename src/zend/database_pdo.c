/* Sessions through PDO. SQLite calls an authorizer for each action of a statement. Drivers whose
 * library is not watched may not open a session. MySQL uses mysqlnd, and PostgreSQL libpq. */

#include "database.h"

#if __has_include("ext/pdo/php_pdo_driver.h")
#include <dlfcn.h>
#include "ext/pdo/php_pdo_driver.h"

/* ---- libsqlite3, which the driver has loaded ---- */

#define SQLITE_OK 0
#define SQLITE_DENY 1
/* Result codes, the lowest byte of extended ones (sqlite3.h). */
#define SQLITE_READONLY 8
#define SQLITE_AUTH 23

static int (*set_authorizer)(void *database, int (*)(void *, int, const char *, const char *, const char *, const char *), void *);
static const char *(*file_name)(void *database, const char *schema);
static int (*execute)(void *database, const char *sql, void *callback, void *context, char **error);
static int (*error_code)(void *database);

static bool find_sqlite(void)
{
	if (set_authorizer == NULL) {
		*(void **) &set_authorizer = dlsym(RTLD_DEFAULT, "sqlite3_set_authorizer");
		*(void **) &file_name = dlsym(RTLD_DEFAULT, "sqlite3_db_filename");
		*(void **) &execute = dlsym(RTLD_DEFAULT, "sqlite3_exec");
		*(void **) &error_code = dlsym(RTLD_DEFAULT, "sqlite3_errcode");
	}
	return set_authorizer != NULL && file_name != NULL && execute != NULL && error_code != NULL;
}

/* The driver's data begins with the library's connection (ext/pdo_sqlite/php_pdo_sqlite_int.h;
 * the same from 8.0 to 8.5). */
#if PHP_VERSION_ID >= 80600 && !defined(ALTAIR_EVAL_UNTRIED_PHP)
# error "Compare pdo_sqlite_db_handle in ext/pdo_sqlite/php_pdo_sqlite_int.h of this PHP with what is read here."
#endif
static void *connection_of(const pdo_dbh_t *dbh)
{
	return *(void **) dbh->driver_data;
}

static bool is_in_memory(const pdo_dbh_t *dbh)
{
	/* A database without a name is in memory, or a temporary file that SQLite deletes on close. */
	const char *name = file_name(connection_of(dbh), "main");
	return name == NULL || *name == '\0';
}

/* The message of the last refusal. The driver itself only reports "not authorized". */
static char message[ALTAIR_MESSAGE_BYTES];

static int authorizer(void *in_memory, int action, const char *first, const char *second, const char *schema, const char *inner)
{
	char what[ALTAIR_WHAT_BYTES];
	(void) schema, (void) inner;
	if (altair_authorizes(in_memory != NULL, action, first, second, what)) {
		return SQLITE_OK;
	}
	altair_refuse_database(what, message);
	return SQLITE_DENY;
}

/* ---- a handle of SQLite's ---- */

static const struct pdo_dbh_methods *next;
static struct pdo_dbh_methods own;
static const struct pdo_stmt_methods *next_stmt;
static struct pdo_stmt_methods own_stmt;

/* Gives a refusal of SQLite the SQLSTATE that other databases use. */
static void note(pdo_dbh_t *dbh, pdo_stmt_t *stmt)
{
	int code = error_code(connection_of(dbh)) & 0xff;
	if (code == SQLITE_READONLY) {
		altair_note_write();
	}
	if (code == SQLITE_READONLY || code == SQLITE_AUTH) {
		strcpy(stmt != NULL ? stmt->error_code : dbh->error_code, "25006"); /* read_only_sql_transaction */
	}
}

static int executer(pdo_stmt_t *stmt)
{
	int done = next_stmt->executer(stmt);
	if (!done) {
		note(stmt->dbh, stmt);
	}
	return done;
}

static bool preparer(pdo_dbh_t *dbh, zend_string *sql, pdo_stmt_t *stmt, zval *options)
{
	if (!next->preparer(dbh, sql, stmt, options)) {
		note(dbh, NULL);
		return false;
	}
	if (next_stmt == NULL) {
		next_stmt = stmt->methods;
		own_stmt = *next_stmt;
		own_stmt.executer = executer;
	}
	if (stmt->methods == next_stmt) {
		stmt->methods = &own_stmt;
	}
	return true;
}

static zend_long doer(pdo_dbh_t *dbh, const zend_string *sql)
{
	zend_long done = next->doer(dbh, sql);
	if (done == -1) {
		note(dbh, NULL);
	}
	return done;
}

/* Completes `info`, which holds the SQLSTATE, with the driver's code and message. */
static void fetch_err(pdo_dbh_t *dbh, pdo_stmt_t *stmt, zval *info)
{
	next->fetch_err(dbh, stmt, info);
	const zval *code = zend_hash_index_find(Z_ARRVAL_P(info), 1);
	if (code != NULL && Z_TYPE_P(code) == IS_LONG && (Z_LVAL_P(code) & 0xff) == SQLITE_AUTH && message[0] != '\0') {
		zval text;
		ZVAL_STRING(&text, message);
		zend_hash_index_update(Z_ARRVAL_P(info), 2, &text);
	}
}

static bool watch_sqlite(pdo_dbh_t *dbh)
{
	if (dbh->methods == &own) {
		return true; /* a persistent one */
	}
	if (!find_sqlite() || dbh->methods->fetch_err == NULL || (next != NULL && next != dbh->methods)) {
		return false;
	}
	bool in_memory = is_in_memory(dbh);
	if (!in_memory && execute(connection_of(dbh), "PRAGMA query_only = 1", NULL, NULL, NULL) != SQLITE_OK) {
		return false;
	}
	static char mark;
	if (set_authorizer(connection_of(dbh), authorizer, in_memory ? &mark : NULL) != SQLITE_OK) {
		return false;
	}
	next = dbh->methods;
	own = *next;
	own.fetch_err = fetch_err;
	own.preparer = preparer;
	own.doer = doer;
	dbh->methods = &own;
	return true;
}

/* ---- a new handle ---- */

/* Called even if the constructor has thrown, since it may have opened the connection before. */
static void look_at(zend_object *object)
{
	pdo_dbh_t *dbh = php_pdo_dbh_fetch_inner(object);
	if (dbh == NULL || dbh->driver == NULL || dbh->methods == NULL || dbh->driver_data == NULL) {
		return;
	}
	const char *name = dbh->driver->driver_name;
	bool is_watched = (strcmp(name, "mysql") == 0 && altair_mysqlnd_is_watched)
		|| (strcmp(name, "pgsql") == 0 && altair_libpq_is_watched)
		|| (strcmp(name, "sqlite") == 0 && (!altair_keeps_sqlite || watch_sqlite(dbh)));
	if (!is_watched) {
		/* PDO then reports for each call that the object is not initialized, and closes the
		 * connection together with it. */
		dbh->driver = NULL;
		if (!EG(exception)) {
			altair_refuse_unwatched();
		}
	}
}

/* Called before a driver opens anything. Returns false if its library is not watched. */
static bool may_open(const zval *dsn)
{
	static const char *const unwatched[] = {
		"odbc:", "dblib:", "sybase:", "mssql:", "sqlsrv:", "firebird:", "oci:", "ibm:", "informix:", "cubrid:",
	};
	for (size_t i = 0; Z_TYPE_P(dsn) == IS_STRING && i < sizeof unwatched / sizeof *unwatched; i++) {
		if (strncasecmp(Z_STRVAL_P(dsn), unwatched[i], strlen(unwatched[i])) == 0) {
			altair_refuse_unwatched();
			return false;
		}
	}
	return true;
}

static zif_handler next_construct;
static zif_handler next_connect;

static ZEND_NAMED_FUNCTION(pdo_construct)
{
	if (ZEND_NUM_ARGS() == 0 || may_open(ZEND_CALL_ARG(execute_data, 1))) {
		next_construct(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		look_at(Z_OBJ_P(ZEND_THIS));
	}
}

/* PDO::connect(), from PHP 8.4 on. */
static ZEND_NAMED_FUNCTION(pdo_connect)
{
	if (ZEND_NUM_ARGS() > 0 && !may_open(ZEND_CALL_ARG(execute_data, 1))) {
		return;
	}
	next_connect(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) == IS_OBJECT) {
		look_at(Z_OBJ_P(return_value));
	}
}

/* Pdo\Sqlite::setAuthorizer(), from PHP 8.5 on, would replace our authorizer. */
static ZEND_NAMED_FUNCTION(keep_authorizer)
{
	char refused[ALTAIR_MESSAGE_BYTES];
	(void) execute_data, (void) return_value;
	altair_refuse_database("Pdo\\Sqlite::setAuthorizer()", refused);
	zend_throw_error(NULL, "%s", refused);
}

void altair_watch_pdo(void)
{
	const zend_class_entry *pdo = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("pdo"));
	if (pdo == NULL) {
		return;
	}
	zif_handler unused;
	zend_class_entry *ce;
	ZEND_HASH_FOREACH_PTR(CG(class_table), ce) {
		if (ce->type == ZEND_INTERNAL_CLASS && instanceof_function(ce, pdo)) {
			altair_replace_method(ce, "__construct", &next_construct, pdo_construct);
			altair_replace_method(ce, "connect", &next_connect, pdo_connect);
			altair_replace_method(ce, "setauthorizer", &unused, keep_authorizer);
		}
	} ZEND_HASH_FOREACH_END();
}

#else

/* Built for a PHP without PDO. If PDO was added later, it cannot be watched. */
void altair_watch_pdo(void)
{
	altair_refuse_constructor("pdo");
}

#endif
