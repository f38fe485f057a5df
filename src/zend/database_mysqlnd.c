/* Sessions of MySQL and MariaDB: the hooks. All of PHP's clients use mysqlnd, and each command
 * that they send to a server passes through one function of it (mysqlnd_ext_plugin.h).
 * mysqlnd_read_only.c and mysqlnd_rollback.c explain what is sent in addition or instead. */

#include "database_mysqlnd.h"

bool altair_mysqlnd_is_watched;

/* Refuses to open sessions that cannot be watched: mysqlnd is missing, has changed, or was added
 * after this was built. */
static void refuse_mysqli(void)
{
	altair_refuse_functions("mysqli_connect", "mysqli_real_connect");
	altair_refuse_constructor("mysqli");
}

#ifdef ALTAIR_HAS_MYSQLND
#include <dlfcn.h>

/* Errors (mysqld_error.h). */
#define ER_PARSE_ERROR 1064
#define ER_LOCK_DEADLOCK 1213
#define ER_XAER_RMFAIL 1399
#define ER_XA_RBROLLBACK 1402
#define ER_XA_RBTIMEOUT 1613
#define ER_XA_RBDEADLOCK 1614

struct altair_mysqlnd_methods altair_mysqlnd_next;
unsigned int altair_mysqlnd_plugin;
struct st_mysqlnd_plugin__plugin_area_getters *altair_mysqlnd_areas;

/* What send_command() has found out about the text being prepared. */
static enum altair_statement preparing;
static altair_text preparing_text;

/* Sets the session up, or sets it up again. */
static bool mend(MYSQLND_CONN_DATA *conn)
{
	bool is_mended = altair_database_mode == ALTAIR_WRITE
		|| (altair_database_mode == ALTAIR_READ_ONLY
			? altair_mysqlnd_say(conn, READ_ONLY) : altair_mysqlnd_begin_anew(conn));
	set(conn, IS_BROKEN, !is_mended);
	return is_mended;
}

/* ---- sending ---- */
/* Fails a command with the error of a statement of ours. */
static enum_func_status fail_as(MYSQLND_CONN_DATA *conn, MYSQLND_ERROR_INFO *error)
{
	const MYSQLND_ERROR_INFO *why = conn->error_info;
	if (error != why) {
		fail(error, why->error_no, why->sqlstate, why->error);
	}
	return FAIL;
}

static altair_reading reading_of(const MYSQLND_CONN_DATA *conn)
{
	unsigned int status = conn->upsert_status->server_status;
	const char *charset = conn->charset != NULL ? conn->charset->name : "";
	bool shifts = strcmp(charset, "big5") == 0 || strcmp(charset, "gbk") == 0 || strcmp(charset, "gb18030") == 0
		|| strcmp(charset, "sjis") == 0 || strcmp(charset, "cp932") == 0;
	return (altair_reading) {(status & SERVER_STATUS_NO_BACKSLASH_ESCAPES) != 0, !shifts && !is(conn, MAY_SHIFT)};
}

/* A statement may write to the server's own tables once the application has named their schema. */
static void look_for_own_schema(MYSQLND_CONN_DATA *conn, const char *text, size_t len)
{
	if (php_memnistr(text, OWN_SCHEMA, strlen(OWN_SCHEMA), text + len) != NULL) {
		set(conn, HAS_LASTING, true);
	}
}

static uint32_t id_of(const zend_uchar *command)
{
	return command[0] | (uint32_t) command[1] << 8 | (uint32_t) command[2] << 16 | (uint32_t) command[3] << 24;
}

static enum_func_status send_command(MYSQLND_PROTOCOL_PAYLOAD_DECODER_FACTORY *protocol,
	const enum php_mysqlnd_server_command command, const zend_uchar *const arg, const size_t arg_len, const bool silent,
	MYSQLND_CONNECTION_STATE *connection_state, MYSQLND_ERROR_INFO *error, MYSQLND_UPSERT_STATUS *upsert_status,
	MYSQLND_STATS *stats, func_mysqlnd_conn_data__send_close send_close, void *send_close_ctx)
{
	MYSQLND_CONN_DATA *conn = protocol->conn;
	const char *text = (const char *) arg;
	size_t len = arg_len;
	char message[ALTAIR_MESSAGE_BYTES];
	char room[NAME_BYTES];
	bool executes = false;
	bool is_application = altair_database_mode == ALTAIR_ROLLBACK; /* its own statement is sent unchanged */
	/* If the client is not ready, mysqlnd itself reports that. */
	bool is_ready = connection_state->m->get(connection_state) == CONN_READY;
	session *session = session_of(conn);
	altair_text known = 0;
	if (!is(conn, IS_OPEN) || !is_ready || command == COM_QUIT) {
		return altair_mysqlnd_next.protocol.send_command(protocol, command, arg, arg_len, silent, connection_state,
			error, upsert_status, stats, send_close, send_close_ctx);
	}
	if (!altair_mysqlnd_settle(conn) || (is(conn, IS_BROKEN) && !mend(conn))) {
		return fail_as(conn, error);
	}
	switch (command) {
		case COM_QUERY:
		case COM_STMT_PREPARE: {
			known = altair_text_of(ALTAIR_MYSQL, reading_of(conn), text, len);
			preparing_text = known;
			executes = command == COM_QUERY;
			if (altair_database_mode == ALTAIR_WRITE) {
				break;
			}
			enum altair_statement statement = altair_look_at(ALTAIR_MYSQL, reading_of(conn), text, len, message);
			if (statement == ALTAIR_REFUSED) {
				preparing = ALTAIR_REFUSED;
				fail(error, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, SQLSTATE, message);
				return FAIL;
			}
			set(conn, MAY_SHIFT, statement == ALTAIR_SETS_CHARSET || is(conn, MAY_SHIFT));
			set(conn, WAS_SEVERAL, altair_may_be_several(text, len));
			if (altair_database_mode != ALTAIR_ROLLBACK) {
				break;
			}
			/* Outside of a transaction, a savepoint does not outlive its statement. */
			bool stands = statement == ALTAIR_SAVEPOINT && (is(conn, HAS_BEGUN) || is(conn, IS_MANUAL));
			bool is_plain = stands || altair_is_plain(statement);
			preparing = stands ? ALTAIR_SENT : statement;
			if (!is_plain && !executes) {
				text = NOTHING;
				len = strlen(text);
				break;
			}
			look_for_own_schema(conn, text, len);
			if (is_plain && is(conn, HAS_LASTING) && altair_mysqlnd_stays(conn, statement == ALTAIR_WRITES, text, len)) {
				altair_refuse_database("a statement on a table whose engine has no transactions", message);
				fail(error, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, SQLSTATE, message);
				return FAIL;
			}
			if (!is_plain) {
				is_application = false;
				text = altair_mysqlnd_instead(conn, statement, room);
				if (text == NULL) {
					return fail_as(conn, error);
				}
				len = strlen(text);
			}
			break;
		}
		case COM_STMT_EXECUTE: {
			const prepared *own = arg_len < 4 ? NULL : *altair_mysqlnd_find_prepared(conn, id_of(arg));
			executes = true;
			known = session->next;
			is_application = is_application && own == NULL;
			if (own != NULL
				&& (altair_mysqlnd_instead(conn, own->statement, room) == NULL || !altair_mysqlnd_say(conn, room))) {
				return fail_as(conn, error);
			}
			break;
		}
		case COM_INIT_DB:
			look_for_own_schema(conn, text, len);
			break;
		case COM_FIELD_LIST: case COM_STATISTICS: case COM_PING: case COM_CHANGE_USER:
		case COM_STMT_SEND_LONG_DATA: case COM_STMT_RESET: case COM_STMT_FETCH:
			break;
		case COM_STMT_CLOSE:
			if (arg_len >= 4) {
				altair_mysqlnd_forget_prepared(conn, id_of(arg));
			}
			break;
		default:
			if (altair_database_mode == ALTAIR_WRITE) {
				break;
			}
			altair_refuse_database("a command of the protocol", message);
			fail(error, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, SQLSTATE, message);
			return FAIL;
	}
	bool reads = altair_database_mode == ALTAIR_READ_ONLY;
	if (executes && reads && !altair_mysqlnd_is_read_only(conn, error)) {
		return FAIL;
	}
	if (executes && is_application && is(conn, IS_MANUAL) && !is(conn, HAS_BEGUN)) {
		if (!altair_mysqlnd_say(conn, SAVEPOINT)) {
			return fail_as(conn, error);
		}
		set(conn, HAS_BEGUN, true);
	}
	if (executes) {
		altair_query_begins(&session->query, known);
	}
	enum_func_status sent = altair_mysqlnd_next.protocol.send_command(protocol, command, (const zend_uchar *) text, len,
		silent, connection_state, error, upsert_status, stats, send_close, send_close_ctx);
	if (sent != PASS && executes) {
		altair_query_fails(&session->query, conn);
	}
	if (sent == PASS && executes && reads && !altair_mysqlnd_send_own(conn, READ_ONLY, sizeof READ_ONLY - 1)) {
		return fail_as(conn, error);
	}
	return sent;
}

/* ---- answers ---- */

static void hear(MYSQLND_CONN_DATA *conn, MYSQLND_ERROR_INFO *error)
{
	char message[ALTAIR_MESSAGE_BYTES];
	if (altair_database_mode == ALTAIR_WRITE) {
		return;
	}
	switch (error->error_no) {
		case ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION:
			altair_note_write();
			break;
		case ER_PARSE_ERROR:
			if (is(conn, WAS_SEVERAL)) {
				altair_blocked("several statements in one text", "--writes");
			}
			break;
		case ER_XAER_RMFAIL:
			altair_refuse_database("a statement that commits by itself", message);
			fail(error, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, SQLSTATE, message);
			break;
		case ER_LOCK_DEADLOCK: case ER_XA_RBROLLBACK: case ER_XA_RBTIMEOUT: case ER_XA_RBDEADLOCK:
			set(conn, IS_BROKEN, altair_database_mode == ALTAIR_ROLLBACK);
			break;
		default:
			break;
	}
}

static enum_func_status query_read_result_set_header(MYSQLND_CONN_DATA *conn, MYSQLND_STMT *stmt)
{
	enum_func_status result = altair_mysqlnd_next.conn.query_read_result_set_header(conn, stmt);
	altair_query *query = &session_of(conn)->query;
	if (result != PASS) {
		altair_query_fails(query, conn);
		hear(conn, conn->error_info);
	} else {
		/* The rows of a SELECT follow. */
		bool gives_rows = conn->last_query_type == QUERY_SELECT;
		altair_query_answers(query, conn, gives_rows ? 0 : conn->upsert_status->affected_rows);
	}
	return result;
}

static enum_func_status prepare(MYSQLND_STMT *const stmt, const char *const query, const size_t len)
{
	preparing = ALTAIR_SENT;
	preparing_text = 0;
	enum_func_status result = altair_mysqlnd_next.stmt.prepare(stmt, query, len);
	if (stmt->data == NULL || stmt->data->conn == NULL) {
		return result;
	}
	*text_of(stmt) = preparing_text;
	if (result != PASS && preparing != ALTAIR_REFUSED) {
		hear(stmt->data->conn, stmt->data->error_info);
	} else if (result == PASS
		&& !altair_mysqlnd_remember_prepared(stmt->data->conn, (uint32_t) stmt->data->stmt_id, preparing)) {
		return FAIL;
	}
	return result;
}

/* ---- beginning and end of a session ---- */

/* One statement at a time: the server accepts several only if the client has set this flag. */
static unsigned int get_updated_connect_flags(MYSQLND_CONN_DATA *conn, unsigned int flags)
{
	unsigned int without = altair_database_mode == ALTAIR_WRITE ? ~0U : ~(unsigned int) CLIENT_MULTI_STATEMENTS;
	return altair_mysqlnd_next.conn.get_updated_connect_flags(conn, flags & without) & without;
}

/* Reports success without a change. Texts with one statement can be sent anyway. */
static enum_func_status set_server_option(MYSQLND_CONN_DATA *const conn, enum_mysqlnd_server_option option)
{
	return altair_database_mode == ALTAIR_WRITE ? altair_mysqlnd_next.conn.set_server_option(conn, option) : PASS;
}

static bool open_session(MYSQLND_CONN_DATA *conn)
{
	session_of(conn)->state = IS_OPEN | IS_BROKEN;
	bool is_open = mend(conn);
	set(conn, HAS_LASTING, is_open && altair_database_mode == ALTAIR_ROLLBACK && altair_mysqlnd_has_lasting(conn));
	return is_open;
}

/* Runs before the application's own init commands. */
static enum_func_status execute_init_commands(MYSQLND_CONN_DATA *conn)
{
	return open_session(conn) ? altair_mysqlnd_next.conn.execute_init_commands(conn) : FAIL;
}

/* The server resets the session. */
static enum_func_status change_user(MYSQLND_CONN_DATA *const conn, const char *user, const char *password,
	const char *database, bool silent, size_t password_len)
{
	if (!altair_mysqlnd_settle(conn)) {
		return FAIL;
	}
	enum_func_status result = altair_mysqlnd_next.conn.change_user(conn, user, password, database, silent, password_len);
	/* Also if it fails: MariaDB has reset the session by then, and keeps it open. */
	set(conn, IS_BROKEN, true);
	return result == PASS && !open_session(conn) ? FAIL : result;
}

static void dtor(MYSQLND_CONN_DATA *conn)
{
	session *gone = session_of(conn);
	altair_session_ends(conn);
	altair_mysqlnd_next.conn.dtor(conn);
	pefree(gone, true);
}

void altair_watch_mysqlnd(void)
{
	/* Missing if PHP was built without mysqlnd, or if the extension is not loaded. */
	struct st_mysqlnd_plugin_methods_xetters *methods = dlsym(RTLD_DEFAULT, "mysqlnd_plugin_methods_xetters");
	unsigned int (*new_plugin)(void) = (unsigned int (*)(void)) dlsym(RTLD_DEFAULT, "mysqlnd_plugin_register");
	altair_mysqlnd_areas = dlsym(RTLD_DEFAULT, "mysqlnd_plugin_area_getters");
	if (methods == NULL || new_plugin == NULL || altair_mysqlnd_areas == NULL) {
		refuse_mysqli();
		return;
	}
	altair_mysqlnd_plugin = new_plugin();
	altair_mysqlnd_is_watched = true;
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) *conn = methods->connection_data.get();
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_stmt) *stmt = methods->statement.get();
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_protocol_payload_decoder_factory) *protocol = methods->protocol.get();
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_res) *result = methods->result.get();
	altair_mysqlnd_next = (struct altair_mysqlnd_methods) {*conn, *stmt, *result, *protocol};
	conn->query_read_result_set_header = query_read_result_set_header;
	conn->get_updated_connect_flags = get_updated_connect_flags;
	conn->set_server_option = set_server_option;
	conn->get_server_status = altair_mysqlnd_get_server_status;
	conn->execute_init_commands = execute_init_commands;
	conn->change_user = change_user;
	conn->store_result = altair_mysqlnd_store_result;
	conn->dtor = dtor;
	stmt->prepare = prepare;
	stmt->send_execute = altair_mysqlnd_send_execute;
	stmt->store_result = altair_mysqlnd_stmt_store_result;
	stmt->get_result = altair_mysqlnd_stmt_get_result;
	result->free_result_buffers = altair_mysqlnd_free_result_buffers;
	protocol->send_command = send_command;
}

#else

void altair_watch_mysqlnd(void)
{
	refuse_mysqli();
}

#endif
