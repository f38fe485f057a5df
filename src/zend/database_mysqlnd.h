/* Shared by database_mysqlnd.c and mysqlnd_*.c. */
#ifndef ALTAIR_DATABASE_MYSQLND_H
#define ALTAIR_DATABASE_MYSQLND_H

#include "database.h"

/* Defined if the PHP that this is built for has mysqlnd. */
#if __has_include("ext/mysqlnd/mysqlnd_ext_plugin.h")
#define ALTAIR_HAS_MYSQLND
#include "ext/mysqlnd/mysqlnd.h"
#include "ext/mysqlnd/mysqlnd_structs.h"
#include "ext/mysqlnd/mysqlnd_ext_plugin.h"
#include "ext/mysqlnd/mysqlnd_wireprotocol.h"

/* Applies to every transaction that begins in the session, including those of single statements
 * (MySQL 5.6.5, MariaDB 10.0). */
#define READ_ONLY "SET SESSION TRANSACTION READ ONLY"

/* Errors (mysqld_error.h). */
#define ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION 1792
/* read_only_sql_transaction */
#define SQLSTATE "25006"

/* Size of the buffer for the text sent in place of a statement. */
#define NAME_BYTES 96
#define SAVEPOINT "SAVEPOINT `altair`"
#define NOTHING "DO 0"

/* The server's own schema. Its tables count only if a statement can reach them (mysqlnd_rollback.c). If they
 * always counted, the server would have to be asked before each statement of each session. */
#define OWN_SCHEMA "mysql"

/* mysqlnd's own methods, which the hooks call. */
extern struct altair_mysqlnd_methods {
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) conn;
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_stmt) stmt;
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_res) result;
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_protocol_payload_decoder_factory) protocol;
} altair_mysqlnd_next;

extern unsigned int altair_mysqlnd_plugin;
extern struct st_mysqlnd_plugin__plugin_area_getters *altair_mysqlnd_areas;

enum {
	IS_OPEN = 1,       /* the application may send statements */
	IS_PENDING = 2,    /* the answer to a statement of ours has not been read */
	HAS_BEGUN = 4,     /* rollback: the application is in a transaction of its own */
	IS_MANUAL = 8,     /* rollback: the application has turned autocommit off */
	IS_BROKEN = 16,    /* the session must be set up again before the next command */
	WAS_SEVERAL = 32,  /* the last text may contain several statements */
	MAY_SHIFT = 64,    /* a statement has set a charset in which ASCII may be part of a character */
	HAS_LASTING = 128, /* rollback: there may be tables whose writes are not rolled back */
};

typedef struct {
	unsigned state;
	altair_text next; /* of the prepared statement being executed */
	altair_query query;
} session;

static inline session *session_of(const MYSQLND_CONN_DATA *conn)
{
	session **area = (session **) altair_mysqlnd_areas->get_connection_data_area(conn, altair_mysqlnd_plugin);
	if (*area == NULL) {
		*area = pecalloc(1, sizeof **area, true);
	}
	return *area;
}

static inline bool is(const MYSQLND_CONN_DATA *conn, unsigned what)
{
	return (session_of(conn)->state & what) != 0;
}

static inline void set(const MYSQLND_CONN_DATA *conn, unsigned what, bool on)
{
	session *session = session_of(conn);
	session->state = on ? session->state | what : session->state & ~what;
}

static inline void fail(MYSQLND_ERROR_INFO *error, unsigned int number, const char *state, const char *text)
{
	error->m->set_client_error(error, number, state, text);
}

/* The text of a prepared statement. It is stored in the pointer of the statement's plugin area. */
static inline altair_text *text_of(const MYSQLND_STMT *stmt)
{
	_Static_assert(sizeof(altair_text) <= sizeof(void *), "a text is as long as a pointer");
	return (altair_text *) altair_mysqlnd_areas->get_stmt_area(stmt, altair_mysqlnd_plugin);
}

/* ---- mysqlnd_session.c ---- */

/* Sends a statement of ours, whatever the client is waiting for. */
bool altair_mysqlnd_send_own(MYSQLND_CONN_DATA *conn, const char *text, size_t len);
/* Reads the answer to it. False if it has failed; conn->error_info says why. */
bool altair_mysqlnd_settle(MYSQLND_CONN_DATA *conn);
/* Does both. */
bool altair_mysqlnd_say(MYSQLND_CONN_DATA *conn, const char *text);

/* ---- mysqlnd_read_only.c ---- */

/* Called before a statement is sent. If the current transaction may write, rolls it back, sets
 * `error` and returns false. */
bool altair_mysqlnd_is_read_only(MYSQLND_CONN_DATA *conn, MYSQLND_ERROR_INFO *error);

/* ---- mysqlnd_rollback.c ---- */

/* A prepared statement that begins or ends a transaction. The server has one that does nothing in
 * its place. */
typedef struct prepared {
	struct prepared *next;
	const MYSQLND_CONN_DATA *conn;
	uint32_t id;
	enum altair_statement statement;
} prepared;

/* Begins the session's XA transaction. Ends the previous one, if the server has rolled it back. */
bool altair_mysqlnd_begin_anew(MYSQLND_CONN_DATA *conn);
/* Returns whether writes of a statement may survive the rollback: it names a routine, or a view
 * if any view uses a routine. If the statement itself writes, also: it names a table without
 * transactions, an updatable view, or a table with triggers. A name with other than plain
 * characters counts as named, and so does any name if the text has too many words. */
bool altair_mysqlnd_stays(MYSQLND_CONN_DATA *conn, bool writes, const char *text, size_t len);
/* Returns whether the application's databases have any table without transactions. */
bool altair_mysqlnd_has_lasting(MYSQLND_CONN_DATA *conn);
/* Carries out a statement about transactions up to its last step, and returns the text to send in
 * its place, which is in `room` (NAME_BYTES). NULL on failure; conn->error_info says why. */
const char *altair_mysqlnd_instead(MYSQLND_CONN_DATA *conn, enum altair_statement statement, char *room);
/* Hook: the transaction status that the application sees. */
unsigned int altair_mysqlnd_get_server_status(const MYSQLND_CONN_DATA *const conn);
prepared **altair_mysqlnd_find_prepared(const MYSQLND_CONN_DATA *conn, uint32_t id);
void altair_mysqlnd_forget_prepared(const MYSQLND_CONN_DATA *conn, uint32_t id);
/* False if memory is exhausted. */
bool altair_mysqlnd_remember_prepared(const MYSQLND_CONN_DATA *conn, uint32_t id, enum altair_statement statement);

/* ---- mysqlnd_queries.c: hooks ---- */

MYSQLND_RES *altair_mysqlnd_store_result(MYSQLND_CONN_DATA *const conn);
MYSQLND_RES *altair_mysqlnd_stmt_store_result(MYSQLND_STMT *const stmt);
MYSQLND_RES *altair_mysqlnd_stmt_get_result(MYSQLND_STMT *const stmt);
void altair_mysqlnd_free_result_buffers(MYSQLND_RES *result);
enum_func_status altair_mysqlnd_send_execute(
	MYSQLND_STMT *const stmt, const enum_mysqlnd_send_execute_type type, zval *read_cb, zval *err_cb);

#endif
#endif
