/* Read-only sessions of MySQL and MariaDB: all of PHP's clients send their statements through
 * mysqlnd, whose methods are there to be replaced (mysqlnd_ext_plugin.h). */

#include "readonly.h"
#include "zend_exceptions.h"

#if __has_include("ext/mysqlnd/mysqlnd_ext_plugin.h")
#include <dlfcn.h>
#include "ext/mysqlnd/mysqlnd.h"
#include "ext/mysqlnd/mysqlnd_structs.h"
#include "ext/mysqlnd/mysqlnd_ext_plugin.h"

/* Each transaction that begins in the session goes by it, those of single statements included
 * (MySQL 5.6.5, MariaDB 10.0). */
#define READ_ONLY "SET SESSION TRANSACTION READ ONLY"

/* ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION (mysqld_error.h). */
#define REFUSED_BY_SERVER 1792

bool altair_mysqlnd_is_watched;

static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) next;
static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_stmt) next_stmt;

static enum_func_status make_read_only(MYSQLND_CONN_DATA *conn)
{
	/* Past the methods that are here: what PHP code an error of it runs (a handler of the
	 * application's) is looked at as ever. */
	return next.send_query(conn, READ_ONLY, sizeof READ_ONLY - 1, NULL, NULL) == PASS
		&& next.reap_query(conn) == PASS ? PASS : FAIL;
}

/* Whether a text begins with words, whatever is between them. */
static bool begins_with(const char *text, size_t len, const char *words)
{
	const char *end = text + len;
	for (; *words != '\0'; words++) {
		if (*words == ' ') {
			while (text < end && isspace((unsigned char) *text)) {
				text++;
			}
		} else if (text == end || toupper((unsigned char) *text++) != *words) {
			return false;
		}
	}
	return true;
}

/* What a statement has called in the server, a function or a view, may have lifted the mode of the
 * session for all that come after it: MySQL does not tell. A transaction stays what it began as. */
static enum_func_status keep_read_only(MYSQLND_CONN_DATA *conn, const char *text, size_t len)
{
	bool is_one = memchr(text, ';', len) == NULL;
	bool in_transaction = (conn->upsert_status->server_status & SERVER_STATUS_IN_TRANS) != 0;
	/* These end the transaction that they are in, also behind a comment. */
	bool begins = !begins_with(text, len, " SELECT") && !begins_with(text, len, " COMMIT")
		&& !begins_with(text, len, " ROLLBACK") && !begins_with(text, len, " SAVEPOINT");
	/* A statement in between would leave nothing for these to show. */
	bool looks_back = begins_with(text, len, " SHOW WARNINGS") || begins_with(text, len, " SHOW ERRORS")
		|| begins_with(text, len, " SHOW COUNT");
	return is_one && ((in_transaction && !begins) || looks_back) ? PASS : make_read_only(conn);
}

static enum_func_status seen(enum_func_status result, const MYSQLND_CONN_DATA *conn)
{
	if (result != PASS && conn->error_info->error_no == REFUSED_BY_SERVER) {
		altair_note_write();
	}
	return result;
}

/* Whether a text is refused. What the connection had to say before is not the reason. */
static bool is_refused(MYSQLND_ERROR_INFO *said, const char *text, size_t len)
{
	bool refused = altair_refuses_sql(ALTAIR_MYSQL, text, len);
	if (refused) {
		said->m->reset(said);
	}
	return refused;
}

/* Every statement that is no prepared one passes here, those that mysqlnd itself makes, too. */
static enum_func_status send_query(
	MYSQLND_CONN_DATA *conn, const char *const query, const size_t len, zval *read_cb, zval *err_cb)
{
	return is_refused(conn->error_info, query, len) || keep_read_only(conn, query, len) != PASS
		? FAIL : next.send_query(conn, query, len, read_cb, err_cb);
}

static enum_func_status reap_query(MYSQLND_CONN_DATA *conn)
{
	return seen(next.reap_query(conn), conn);
}

static enum_func_status prepare(MYSQLND_STMT *const stmt, const char *const query, const size_t len)
{
	return is_refused(stmt->data->error_info, query, len) ? FAIL : next_stmt.prepare(stmt, query, len);
}

static enum_func_status execute(MYSQLND_STMT *const stmt)
{
	/* Its text is not here any more: it may begin a transaction. */
	if (stmt->data != NULL && stmt->data->conn != NULL && make_read_only(stmt->data->conn) != PASS) {
		const MYSQLND_ERROR_INFO *why = stmt->data->conn->error_info;
		stmt->data->error_info->m->set_client_error(
			stmt->data->error_info, why->error_no, why->sqlstate, why->error);
		return FAIL;
	}
	enum_func_status result = next_stmt.execute(stmt);
	if (result != PASS && stmt->data != NULL && stmt->data->error_info->error_no == REFUSED_BY_SERVER) {
		altair_note_write();
	}
	return result;
}

/* A session begins here: before the commands that the application has for its beginning. */
static enum_func_status execute_init_commands(MYSQLND_CONN_DATA *conn)
{
	if (make_read_only(conn) != PASS) {
		return FAIL;
	}
	enum_func_status result = next.execute_init_commands(conn);
	if (result != PASS && EG(exception) != NULL) {
		/* The client says what the connection says, as it could not be made. */
		zval unused;
		const zval *message = zend_read_property_ex(
			zend_ce_error, EG(exception), ZSTR_KNOWN(ZEND_STR_MESSAGE), true, &unused);
		const char *text = Z_TYPE_P(message) == IS_STRING ? Z_STRVAL_P(message) : "refused";
		conn->error_info->m->set_client_error(conn->error_info, REFUSED_BY_SERVER, "25006", text);
	}
	return result;
}

/* And here, as the server resets what the session was. */
static enum_func_status change_user(MYSQLND_CONN_DATA *const conn, const char *user, const char *password,
	const char *database, bool silent, size_t password_len)
{
	enum_func_status result = next.change_user(conn, user, password, database, silent, password_len);
	return result == PASS ? make_read_only(conn) : result;
}

/* Commands of the protocol that are no statements. */
static enum_func_status refuse_command(const char *what)
{
	altair_refuse_write(what);
	return FAIL;
}

static enum_func_status refresh_server(MYSQLND_CONN_DATA *const conn, uint8_t options)
{
	(void) conn, (void) options;
	return refuse_command("mysqli::refresh()");
}

static enum_func_status kill_connection(MYSQLND_CONN_DATA *conn, unsigned int pid)
{
	(void) conn, (void) pid;
	return refuse_command("mysqli::kill()");
}

void altair_watch_mysqlnd(void)
{
	/* Not there where PHP was built without, or where the extension is not loaded. */
	struct st_mysqlnd_plugin_methods_xetters *methods = dlsym(RTLD_DEFAULT, "mysqlnd_plugin_methods_xetters");
	if (methods == NULL) {
		return;
	}
	altair_mysqlnd_is_watched = true;
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) *conn = methods->connection_data.get();
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_stmt) *stmt = methods->statement.get();
	next = *conn;
	next_stmt = *stmt;
	conn->send_query = send_query;
	conn->reap_query = reap_query;
	conn->execute_init_commands = execute_init_commands;
	conn->change_user = change_user;
	conn->refresh_server = refresh_server;
	conn->kill_connection = kill_connection;
	stmt->prepare = prepare;
	stmt->execute = execute;
}

#else

bool altair_mysqlnd_is_watched;

/* This was built for a PHP without mysqlnd: what has come since cannot be watched. */
void altair_watch_mysqlnd(void)
{
	altair_refuse_functions("mysqli_connect", "mysqli_real_connect");
	altair_refuse_constructor("mysqli");
}

#endif
