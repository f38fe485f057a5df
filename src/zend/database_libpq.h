/* Shared by database_libpq.c and libpq_*.c. */
#ifndef ALTAIR_DATABASE_LIBPQ_H
#define ALTAIR_DATABASE_LIBPQ_H

#include "database.h"

/* libpq-fe.h */
#define CONNECTION_OK 0
#define TRANSACTION_IDLE 0
#define TRANSACTION_ACTIVE 1
#define IN_TRANSACTION 2
#define IN_ERROR 3
#define COMMAND_OK 1
#define TUPLES_OK 2
#define COPY_OUT 3
#define COPY_IN 4
#define COPY_BOTH 8
#define SINGLE_TUPLE 9
/* postgres_ext.h */
#define DIAG_SQLSTATE 'C'

typedef void connection;
typedef void result;

#define EXECUTION int, const char *const *, const int *, const int *, int
#define PARAMETERS int, const unsigned *, const char *const *, const int *, const int *, int

/* The functions of libpq that we call: type, name, prefix of the name, parameters. */
#define OF_LIBPQ(each) \
	each(int, status, PQ, (const connection *)) \
	each(int, transactionStatus, PQ, (const connection *)) \
	each(const char *, parameterStatus, PQ, (const connection *, const char *)) \
	each(result *, exec, PQ, (connection *, const char *)) \
	each(result *, execParams, PQ, (connection *, const char *, PARAMETERS)) \
	each(result *, prepare, PQ, (connection *, const char *, const char *, int, const unsigned *)) \
	each(result *, execPrepared, PQ, (connection *, const char *, EXECUTION)) \
	each(int, sendQuery, PQ, (connection *, const char *)) \
	each(int, sendQueryParams, PQ, (connection *, const char *, PARAMETERS)) \
	each(int, sendPrepare, PQ, (connection *, const char *, const char *, int, const unsigned *)) \
	each(int, sendQueryPrepared, PQ, (connection *, const char *, EXECUTION)) \
	each(result *, getResult, PQ, (connection *)) \
	each(int, resultStatus, PQ, (const result *)) \
	each(char *, resultErrorField, PQ, (const result *, int)) \
	each(const char *, cmdStatus, PQ, (result *)) \
	each(const char *, cmdTuples, PQ, (result *)) \
	each(int, ntuples, PQ, (const result *)) \
	each(char *, getvalue, PQ, (const result *, int, int)) \
	each(int, setClientEncoding, PQ, (connection *, const char *)) \
	each(void, clear, PQ, (result *)) \
	each(void, finish, PQ, (connection *)) \
	each(int, setErrorContextVisibility, PQ, (connection *, int)) \
	each(int, lo_open, , (connection *, unsigned, int)) \
	each(int, lo_creat, , (connection *, int)) \
	each(int, lo_create, , (connection *, unsigned)) \
	each(int, lo_import, , (connection *, const char *)) \
	each(int, lo_import_with_oid, , (connection *, const char *, unsigned)) \
	each(int, lo_unlink, , (connection *, unsigned)) \
	each(int, lo_write, , (connection *, int, const char *, size_t)) \
	each(int, lo_truncate, , (connection *, int, size_t)) \
	each(int, lo_truncate64, , (connection *, int, int64_t))

#define DECLARED(type, name, prefix, arguments) type (*name) arguments;

/* libpq's own functions. */
extern struct altair_libpq_functions {
	OF_LIBPQ(DECLARED)
} altair_libpq;

/* A prepared statement. */
typedef struct prepared {
	altair_text asked;
	enum altair_statement statement;
	/* Only if it begins or ends a transaction, or sets something: the server then has a
	 * statement that does nothing under its name. */
	char text[];
} prepared;

typedef struct session {
	const connection *of;
	struct session *next;
	HashTable prepared; /* by name */
	altair_query query;
	bool is_plain;    /* errors do not show their context */
	int visibility;   /* the setting for that before */
	bool is_checked;  /* read-only: its transaction is known to be read-only */
	bool is_open;     /* rollback: the outer transaction has begun */
	bool has_begun;   /* rollback: the application is in a transaction of its own */
	bool has_point;   /* rollback: there is a savepoint for a single statement */
} session;

extern session *altair_libpq_sessions;

/* ---- libpq_session.c ---- */

/* The session of a connection, made on the first call. NULL if memory is exhausted. */
session *altair_libpq_session_of(const connection *server);
const prepared *altair_libpq_find_prepared(const session *session, const char *name);
/* Returns whether another statement is sent instead of the application's. */
bool altair_libpq_is_replaced(const prepared *known);
/* False if memory is exhausted. */
bool altair_libpq_remember(
	session *session, const char *name, const char *text, altair_text asked, enum altair_statement statement);
/* Executes a statement of ours. Returns whether it succeeded. */
bool altair_libpq_say(connection *server, const char *text);
/* Waits for the end of what was sent before, and discards its results. libpq does the same with
 * results that nobody has read, and with copies. */
void altair_libpq_come_to_rest(connection *server);

/* ---- libpq_read_only.c ---- */

/* Returns whether the server will execute the next statement read-only. If not, `message` says
 * why. */
bool altair_libpq_only_reads(connection *server, session *session, enum altair_statement statement, char *message);

/* ---- libpq_rollback.c ---- */

#define NOTHING "SELECT WHERE false"

/* Prepares the session so that the next statement can be rolled back. If that fails, `message` says
 * why. */
bool altair_libpq_can_be_undone(connection *server, session *session, char *message);
/* The text to send in place of a statement about transactions. */
const char *altair_libpq_instead(connection *server, session *session, enum altair_statement statement);
/* Hook: the transaction status that the application would see without the outer transaction. */
int altair_libpq_transactionStatus(const connection *server);

/* ---- libpq_texts.c ---- */

/* Size of the buffer `room` for a text to send. */
#define SENT_BYTES (2 * ALTAIR_MESSAGE_BYTES + 128)

/* The text sent last: whether it may contain several statements, and whether we refused it. */
extern bool altair_libpq_was_several;
extern bool altair_libpq_was_refused;

/* The text that has the server raise a refusal, with `message` as the only words of the error. */
const char *altair_libpq_refusal(connection *server, const char *message, char *room);
/* The session, once the server waits for its next statement. NULL if the connection is broken,
 * so that nothing is sent, or if memory is exhausted. */
session *altair_libpq_at_rest(connection *server);
/* The text to send for the application's: usually the same. */
const char *altair_libpq_sent_for(connection *server, const char *text, char *room);
/* The text to prepare for the application's. It is checked now; a statement about transactions
 * takes effect when it is executed. */
const char *altair_libpq_prepared_for(connection *server, const char *name, const char *text, char *room);
/* The text to send in place of a prepared statement. NULL: execute the statement itself. */
const char *altair_libpq_sent_for_prepared(connection *server, const char *name, char *room);

/* ---- libpq_queries.c ---- */

/* Records the answer to a statement. */
void altair_libpq_note(connection *server, result *answer, bool has_failed);
/* Asks the server what the outer transaction has changed, including by triggers and functions
 * (monitoring-stats, "pg_stat_xact_user_tables"). */
void altair_libpq_count(const session *session);

#endif
