/* Database sessions of a run that must not change what others see.
 *
 * The server enforces this: a read-only session is in the database's own read-only mode, a
 * rolled-back session is in a transaction that is never committed, and both accept one statement
 * at a time. Whatever this does not prevent is recognised by its first words and by names
 * (engine/sql). Statements are intercepted in mysqlnd for MySQL, in libpq for PostgreSQL, and in
 * PDO for SQLite and all others. */

#include "database.h"
#include "zend_exceptions.h"

enum altair_mode altair_database_mode;
bool altair_keeps_sqlite;

static altair_look_hook look;
static altair_authorize_hook authorize;
static char secret_name[ALTAIR_SECRET_NAME_BYTES];

static void refuse(const char *what, bool can_be_undone, char *message)
{
	altair_blocked(what, can_be_undone ? "--rollback" : "--writes");
	char way[ALTAIR_WAY_BYTES], clause[ALTAIR_CLAUSE_BYTES];
	altair_clause("--writes", clause);
	if (altair_database_mode == ALTAIR_ROLLBACK) {
		snprintf(message, ALTAIR_MESSAGE_BYTES, "%s cannot be rolled back at the end of the run%s", what, clause);
	} else if (can_be_undone && altair_way("--rollback", way)) {
		snprintf(message, ALTAIR_MESSAGE_BYTES,
			"%s is refused in a confined run, whose database sessions are read-only;"
			" %s tries it and undoes it at the end,%s", what, way, *clause != '\0' ? clause + 1 : "");
	} else {
		snprintf(message, ALTAIR_MESSAGE_BYTES,
			"%s is refused in a confined run, whose database sessions are read-only%s", what, clause);
	}
}

void altair_refuse_database(const char *what, char *message)
{
	refuse(what, false, message);
}

void altair_refuse_write(const char *what, char *message)
{
	refuse(what, altair_database_mode == ALTAIR_READ_ONLY, message);
}

enum altair_statement altair_look_at(
	enum altair_dialect dialect, altair_reading reading, const char *text, size_t len, char *message)
{
	char what[ALTAIR_WHAT_BYTES];
	char unused[ALTAIR_WHAT_BYTES];
	int statement = look((int) dialect, (int) altair_database_mode, reading.plain_backslash, reading.whole_ascii,
		text, len, what, sizeof what);
	if (statement == ALTAIR_REFUSED) {
		refuse(what, altair_database_mode == ALTAIR_READ_ONLY && look((int) dialect, ALTAIR_ROLLBACK,
			reading.plain_backslash, reading.whole_ascii, text, len, unused, sizeof unused) != ALTAIR_REFUSED, message);
	}
	return (enum altair_statement) statement;
}

bool altair_may_be_several(const char *text, size_t len)
{
	const char *end = text + len;
	const char *at = memchr(text, ';', len);
	while (at != NULL && ++at < end && isspace((unsigned char) *at)) {
	}
	return at != NULL && at < end;
}

bool altair_authorizes(bool in_memory, int action, const char *first, const char *second, char *what)
{
	return authorize(in_memory, action, first, second, what, ALTAIR_WHAT_BYTES);
}

void altair_note_write(void)
{
	altair_blocked("write to the database", altair_database_mode == ALTAIR_READ_ONLY ? "--rollback" : "--writes");
}

const char *altair_secret_name(void)
{
	return secret_name;
}

void altair_refuse_unwatched(void)
{
	altair_blocked("a database session that cannot be watched", "--writes");
	char clause[ALTAIR_CLAUSE_BYTES];
	altair_clause("--writes", clause);
	zend_throw_error(NULL, "The database session cannot be made read-only, which a confined run requires%s", clause);
}

static ZEND_NAMED_FUNCTION(refuse_unwatched)
{
	(void) execute_data, (void) return_value;
	altair_refuse_unwatched();
}

void altair_refuse_functions(const char *one, const char *other)
{
	if (altair_database_mode == ALTAIR_WRITE) {
		return;
	}
	altair_replace(one, strlen(one), refuse_unwatched);
	altair_replace(other, strlen(other), refuse_unwatched);
}

void altair_refuse_constructor(const char *class_name)
{
	if (altair_database_mode == ALTAIR_WRITE) {
		return;
	}
	zend_class_entry *ce = zend_hash_str_find_ptr(CG(class_table), class_name, strlen(class_name));
	if (ce != NULL && ce->constructor != NULL && ce->constructor->type == ZEND_INTERNAL_FUNCTION) {
		ce->constructor->internal_function.handler = refuse_unwatched;
	}
}

/* Refuses the functions that open sessions of other client libraries. */
static void refuse_others(void)
{
	static const char *const openers[] = {
		"odbc_connect", "odbc_pconnect", "sqlsrv_connect", "db2_connect", "db2_pconnect",
		"oci_connect", "oci_pconnect", "oci_new_connect", "ibase_connect", "ibase_pconnect",
		"fbird_connect", "fbird_pconnect", "cubrid_connect", "cubrid_pconnect",
	};
	for (size_t i = 0; i < sizeof openers / sizeof *openers; i++) {
		altair_replace(openers[i], strlen(openers[i]), refuse_unwatched);
	}
}

void altair_watch_databases(
	int mode, bool keeps_sqlite, const char *name, altair_look_hook looks, altair_authorize_hook authorizes)
{
	altair_database_mode = (enum altair_mode) mode;
	altair_keeps_sqlite = keeps_sqlite;
	snprintf(secret_name, sizeof secret_name, "%s", name);
	look = looks;
	authorize = authorizes;
	altair_watch_mysqlnd();
	altair_watch_libpq();
	altair_watch_sqlite();
	if (altair_database_mode != ALTAIR_WRITE) {
		altair_watch_pdo();
		refuse_others();
	}
}
