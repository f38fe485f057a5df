/* Sessions of PostgreSQL: all of PHP's clients are libpq's, and whatever they say to a server passes a few
 * functions of it, as it is sent. Those stand in the place of libpq's here.
 *
 * A text in which there may be several statements goes by the extended protocol, which takes one. A text
 * that is refused goes, too, as one that has the server say so: the client's errors are the database's own.
 *
 * A session that only reads has `default_transaction_read_only`: the server tells of each change of it
 * (from version 14 on), and it is set again before the next statement. A transaction of several statements
 * is asked what it is before the first of them that is no `SET`; from that question on it stays so, as a
 * mode is changed before the first query only.
 *
 * A session that is rolled back is in a transaction from its first statement to its end. The application's
 * own transactions are savepoints in it, a statement outside of them is one by itself, and what clients are
 * told of them is what they would be told without. */

#define _GNU_SOURCE
#include "database.h"
#include <dlfcn.h>

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

bool altair_libpq_is_watched;

typedef void connection;
typedef void result;

#define EXECUTION int, const char *const *, const int *, const int *, int
#define PARAMETERS int, const unsigned *, const char *const *, const int *, const int *, int

/* What is called of libpq: how it is declared, where, and its name there. */
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
#define NAMED(type, name, prefix, arguments) {#prefix #name, &pq.name},

static struct {
	OF_LIBPQ(DECLARED)
} pq;

static const struct {
	const char *name;
	void *place;
} needed[] = {
	OF_LIBPQ(NAMED)
};

/* ---- what is known of a session ---- */

/* What is known of a statement under the name that it was prepared with. */
typedef struct prepared {
	altair_text asked;
	enum altair_statement statement;
	/* Of one that begins or ends a transaction, or sets something. The server has another one under the name,
	 * which does nothing. */
	char text[];
} prepared;

typedef struct session {
	const connection *of;
	struct session *next;
	HashTable prepared; /* by name */
	altair_query query;
	bool is_plain;    /* where in the server's code an error was is not said */
	int visibility;   /* what was said of that before */
	bool is_checked;  /* reading: its transaction has been asked what it is */
	bool is_open;     /* rollback: the transaction around all has begun */
	bool has_begun;   /* rollback: the application is in one of its own */
	bool has_point;   /* rollback: there is a savepoint for a statement */
} session;

static session *sessions;

static void free_prepared(zval *entry)
{
	free(Z_PTR_P(entry));
}

static session *session_of(const connection *server)
{
	for (session *one = sessions; one != NULL; one = one->next) {
		if (one->of == server) {
			return one;
		}
	}
	session *new = calloc(1, sizeof *new);
	if (new != NULL) {
		new->of = server;
		new->next = sessions;
		zend_hash_init(&new->prepared, 8, NULL, free_prepared, true);
		sessions = new;
	}
	return new;
}

static const prepared *find_prepared(const session *session, const char *name)
{
	return zend_hash_str_find_ptr(&session->prepared, name, strlen(name));
}

/* Whether another statement is sent than the application's. */
static bool is_replaced(const prepared *known)
{
	return known != NULL && known->statement != ALTAIR_SENT && known->statement != ALTAIR_WRITES;
}

/* False where there is no memory. */
static bool remember(
	session *session, const char *name, const char *text, altair_text asked, enum altair_statement statement)
{
	prepared about = {asked, statement};
	size_t bytes = is_replaced(&about) ? strlen(text) + 1 : 0;
	zend_hash_str_del(&session->prepared, name, strlen(name));
	if (asked == 0 && bytes == 0) {
		return true;
	}
	prepared *new = malloc(sizeof *new + bytes);
	if (new != NULL) {
		*new = about;
		memcpy(new->text, text, bytes);
		zend_hash_str_add_ptr(&session->prepared, name, strlen(name), new);
	}
	return new != NULL;
}

/* ---- statements of ours ---- */

static bool say(connection *server, const char *text)
{
	result *said = pq.exec(server, text);
	int status = pq.resultStatus(said);
	pq.clear(said);
	return status == COMMAND_OK || status == TUPLES_OK;
}

/* What was sent before is not over: waited for, and left, as libpq does with results that nobody has taken,
 * and with copies. */
static void come_to_rest(connection *server)
{
	while (pq.transactionStatus(server) == TRANSACTION_ACTIVE) {
		result *left = pq.getResult(server);
		int status = left == NULL ? COPY_OUT : pq.resultStatus(left);
		pq.clear(left);
		if (status == COPY_OUT || status == COPY_IN || status == COPY_BOTH) {
			say(server, "");
			return;
		}
	}
}

/* ---- a session that only reads ---- */

#define READ_ONLY "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"

/* Whether the server will take what comes next as something that only reads. Where not, `message` says
 * why. */
static bool only_reads(connection *server, session *session, enum altair_statement statement, char *message)
{
	int status = pq.transactionStatus(server);
	if (status == TRANSACTION_IDLE) {
		const char *on = pq.parameterStatus(server, "default_transaction_read_only");
		session->is_checked = false;
		if ((on != NULL && strcmp(on, "on") == 0) || say(server, READ_ONLY)) {
			return true;
		}
		altair_refuse_database("a session that cannot be made read-only", message);
		return false;
	}
	/* One that has failed does nothing but end. */
	if (status != IN_TRANSACTION || session->is_checked || statement == ALTAIR_SETS) {
		return true;
	}
	result *said = pq.exec(server, "SELECT pg_catalog.current_setting('transaction_read_only')");
	bool reads = pq.resultStatus(said) == TUPLES_OK && strcmp(pq.getvalue(said, 0, 0), "on") == 0;
	pq.clear(said);
	session->is_checked = reads;
	if (!reads) {
		altair_refuse_write("a transaction that may write", message);
		say(server, "ROLLBACK");
		say(server, READ_ONLY);
	}
	return reads;
}

/* ---- a session that is rolled back ---- */

#define NOTHING "SELECT WHERE false"

/* Savepoints: of the application's transaction, of a statement by itself, and for a look at constraints. */
#define POINT "altair_transaction"
#define POINT_OF_ONE "altair_statement"
#define POINT_OF_LOOK "altair_constraints"

/* Sees that the session can undo what comes next. */
static bool can_be_undone(connection *server, session *session, char *message)
{
	int status = pq.transactionStatus(server);
	if (status == TRANSACTION_IDLE) {
		session->is_open = session->has_begun = session->has_point = false;
		/* A standby only reads, and says so of what writes. */
		session->is_open = say(server, "BEGIN READ WRITE") || say(server, "BEGIN");
	} else if (status == IN_ERROR && !session->has_begun) {
		/* A statement by itself has failed. */
		session->is_open = session->has_point && say(server, "ROLLBACK TO SAVEPOINT " POINT_OF_ONE);
	}
	if (!session->is_open) {
		altair_refuse_database("a session that has ended its transaction", message);
		return false;
	}
	if (session->has_begun) {
		return true;
	}
	session->has_point = say(server, session->has_point
		? "RELEASE SAVEPOINT " POINT_OF_ONE "; SAVEPOINT " POINT_OF_ONE : "SAVEPOINT " POINT_OF_ONE);
	return session->has_point;
}

#define CHECK_CONSTRAINTS "SET CONSTRAINTS ALL IMMEDIATE"

/* Whether what was deferred to the end of the transaction holds. It stays deferred. */
static bool holds(connection *server)
{
	bool holds = say(server, "SAVEPOINT " POINT_OF_LOOK) && say(server, CHECK_CONSTRAINTS);
	return say(server, "ROLLBACK TO SAVEPOINT " POINT_OF_LOOK) && holds;
}

/* What is sent for a statement about transactions. */
static const char *instead(connection *server, session *session, enum altair_statement statement)
{
	bool chains = statement == ALTAIR_COMMIT_AND_CHAIN || statement == ALTAIR_ROLLS_BACK_AND_CHAIN;
	bool commits = statement == ALTAIR_COMMIT || statement == ALTAIR_COMMIT_AND_CHAIN;
	bool had_begun = session->has_begun;
	if (statement == ALTAIR_BEGIN) {
		session->has_begun = true;
		return had_begun ? NOTHING : "SAVEPOINT " POINT;
	}
	if (!had_begun) {
		return NOTHING;
	}
	session->has_begun = false;
	/* What has failed is rolled back by COMMIT, too. */
	const char *text = "ROLLBACK TO SAVEPOINT " POINT;
	if (commits && pq.transactionStatus(server) != IN_ERROR) {
		if (!holds(server)) {
			return CHECK_CONSTRAINTS; /* it fails once more, as COMMIT would */
		}
		text = "RELEASE SAVEPOINT " POINT;
	}
	if (chains) {
		session->has_begun = say(server, text);
		text = "SAVEPOINT " POINT;
	}
	return text;
}

/* ---- a text ---- */

/* What was sent last: whether there may be several statements in it, and whether it was refused here. */
static bool was_several;
static bool was_refused;

/* As a string within a string: a quote is four of them. What a backslash is depends on a setting. */
static void quote(const char *text, char *room, size_t size)
{
	size_t at = 0;
	for (; *text != '\0' && at + 5 < size; text++) {
		for (int times = *text == '\'' ? 4 : 1; times > 0; times--) {
			room[at++] = *text == '\\' ? '/' : *text;
		}
	}
	room[at] = '\0';
}

#define SENT_BYTES (2 * ALTAIR_MESSAGE_BYTES + 128)

/* PQSHOW_CONTEXT_NEVER */
#define NO_CONTEXT 0

/* What has the server say that something is refused, in the words of `message`, and in no others. */
static const char *refusal(connection *server, const char *message, char *room)
{
	char quoted[2 * ALTAIR_MESSAGE_BYTES];
	session *session = session_of(server);
	char unused[ALTAIR_MESSAGE_BYTES];
	if (session != NULL && altair_database_mode == ALTAIR_ROLLBACK) {
		/* As any statement that fails it ends no more than itself. */
		can_be_undone(server, session, unused);
	}
	if (session != NULL && !session->is_plain) {
		session->is_plain = true;
		session->visibility = pq.setErrorContextVisibility(server, NO_CONTEXT);
	}
	was_refused = true;
	quote(message, quoted, sizeof quoted);
	snprintf(room, SENT_BYTES,
		"DO LANGUAGE plpgsql 'BEGIN RAISE EXCEPTION USING ERRCODE = ''25006'', MESSAGE = ''%s''; END'", quoted);
	return room;
}

static altair_reading reading_of(const connection *server)
{
	static const char *const shifting[] = {
		"BIG5", "GBK", "GB18030", "JOHAB", "SJIS", "SHIFT_JIS_2004", "UHC",
	};
	const char *plain = pq.parameterStatus(server, "standard_conforming_strings");
	const char *encoding = pq.parameterStatus(server, "client_encoding");
	bool whole = encoding != NULL;
	for (size_t i = 0; whole && i < sizeof shifting / sizeof *shifting; i++) {
		whole = strcasecmp(encoding, shifting[i]) != 0;
	}
	return (altair_reading) {plain != NULL && strcmp(plain, "on") == 0, whole};
}

/* A session of which the server waits for the next statement; NULL where there is none any more, and
 * nothing is sent, or no memory for it. */
static session *at_rest(connection *server)
{
	session *session = pq.status(server) == CONNECTION_OK ? session_of(server) : NULL;
	was_refused = was_several = false;
	if (session == NULL || altair_database_mode == ALTAIR_WRITE) {
		return session;
	}
	come_to_rest(server);
	if (session->is_plain) {
		session->is_plain = false;
		pq.setErrorContextVisibility(server, session->visibility);
	}
	return session;
}

/* What is sent where there is no session: nothing, as a rule. */
static const char *without_session(connection *server, const char *text, char *room)
{
	char message[ALTAIR_MESSAGE_BYTES];
	if (text == NULL || pq.status(server) != CONNECTION_OK) {
		return text;
	}
	altair_refuse_database("a session for which there is no memory", message);
	return refusal(server, message, room);
}

/* What is sent for a statement with this text, or one that was prepared and has none here. */
static const char *executed(
	connection *server, session *session, const char *text, enum altair_statement statement, char *room)
{
	char message[ALTAIR_MESSAGE_BYTES];
	bool is_plain = altair_is_plain(statement);
	if (altair_database_mode == ALTAIR_WRITE) {
		return text;
	}
	if (altair_database_mode == ALTAIR_READ_ONLY) {
		if (!only_reads(server, session, statement, message)) {
			return refusal(server, message, room);
		}
		/* The next transaction may be another one. */
		session->is_checked = session->is_checked && is_plain;
		return text;
	}
	if (!can_be_undone(server, session, message)) {
		return refusal(server, message, room);
	}
	return is_plain ? text : instead(server, session, statement);
}

/* Looks at a text of a session at rest. Where it is refused, `message` says why. */
static enum altair_statement look_at(
	connection *server, const char *text, altair_text *asked, char *message)
{
	size_t len = strlen(text);
	altair_reading reading = reading_of(server);
	*asked = altair_text_of(ALTAIR_POSTGRESQL, reading, text, len);
	if (altair_database_mode == ALTAIR_WRITE) {
		return ALTAIR_SENT;
	}
	was_several = altair_may_be_several(text, len);
	return altair_look_at(ALTAIR_POSTGRESQL, reading, text, len, message);
}

/* The text that is sent for one of the application's, which is itself as a rule. */
static const char *sent_for(connection *server, const char *text, char *room)
{
	char message[ALTAIR_MESSAGE_BYTES];
	altair_text asked;
	session *session = text == NULL ? NULL : at_rest(server);
	if (session == NULL) {
		return without_session(server, text, room);
	}
	enum altair_statement statement = look_at(server, text, &asked, message);
	const char *sent = statement == ALTAIR_REFUSED
		? refusal(server, message, room) : executed(server, session, text, statement, room);
	altair_query_begins(&session->query, was_refused ? 0 : asked);
	return sent;
}

/* The same for one that is prepared: looked at now, and seen to as it is executed. */
static const char *prepared_for(connection *server, const char *name, const char *text, char *room)
{
	char message[ALTAIR_MESSAGE_BYTES];
	altair_text asked;
	session *session = text == NULL || name == NULL ? NULL : at_rest(server);
	if (session == NULL) {
		return without_session(server, text, room);
	}
	session->query = (altair_query) {0};
	enum altair_statement statement = look_at(server, text, &asked, message);
	if (statement == ALTAIR_REFUSED || !remember(session, name, text, asked, statement)) {
		return refusal(server, message, room);
	}
	/* To prepare a statement is one, too: an error ends the transaction that it is in. */
	if (altair_database_mode == ALTAIR_ROLLBACK && !can_be_undone(server, session, message)) {
		return refusal(server, message, room);
	}
	return is_replaced(find_prepared(session, name)) ? NOTHING : text;
}

/* What is sent for a prepared statement; NULL: itself. */
static const char *sent_for_prepared(connection *server, const char *name, char *room)
{
	session *session = at_rest(server);
	if (session == NULL) {
		return without_session(server, pq.status(server) == CONNECTION_OK ? "" : NULL, room);
	}
	const prepared *known = find_prepared(session, name == NULL ? "" : name);
	const char *sent = executed(server, session, is_replaced(known) ? known->text : NULL,
		known == NULL ? ALTAIR_SENT : known->statement, room);
	altair_query_begins(&session->query, known == NULL || was_refused ? 0 : known->asked);
	return sent;
}

/* Notes what has come of a statement. */
static void note(connection *server, result *answer, bool has_failed)
{
	session *session = session_of(server);
	altair_query *query = session == NULL ? NULL : &session->query;
	int status = pq.resultStatus(answer);
	if (query == NULL || query->text == 0 || status == COPY_IN || status == COPY_OUT || status == COPY_BOTH) {
		return;
	}
	if (has_failed) {
		altair_query_fails(query, server);
		return;
	}
	const char *changed = pq.cmdTuples(answer);
	uint64_t rows = changed != NULL && *changed != '\0' ? strtoull(changed, NULL, 10) : (uint64_t) pq.ntuples(answer);
	if (status == SINGLE_TUPLE && query->is_answered) {
		altair_query_gives(query, server, rows);
		return;
	}
	if (strcmp(pq.cmdStatus(answer), "ROLLBACK") == 0) {
		altair_query_undoes(query, server);
	}
	altair_query_answers(query, server, rows);
}

/* Notes what the server has refused. What was refused here is noted already. */
static result *heard(connection *server, result *answer)
{
	const char *state = answer == NULL ? NULL : pq.resultErrorField(answer, DIAG_SQLSTATE);
	if (answer != NULL) {
		note(server, answer, state != NULL);
	}
	if (state == NULL || altair_database_mode == ALTAIR_WRITE) {
		return answer;
	}
	if (strcmp(state, "25006") == 0 && !was_refused) {
		altair_note_write();
	}
	if (strcmp(state, "42601") == 0 && was_several) { /* syntax_error */
		altair_blocked("several statements in one text", "--writes");
	}
	/* active_sql_transaction, invalid_transaction_termination: it is the transaction around all. */
	if (altair_database_mode == ALTAIR_ROLLBACK && (strcmp(state, "25001") == 0 || strcmp(state, "2D000") == 0)) {
		altair_blocked("a statement that commits by itself", "--writes");
	}
	return answer;
}

/* ---- in the place of libpq's ---- */

/* By the extended protocol, which takes one statement. A text in which none can end is one: it goes by the
 * simple protocol, which is quicker. */
static bool goes_plainly(const char *text)
{
	return altair_database_mode == ALTAIR_WRITE || (text != NULL && !altair_may_be_several(text, strlen(text)));
}

static result *one(connection *server, const char *text)
{
	return goes_plainly(text) ? pq.exec(server, text) : pq.execParams(server, text, 0, NULL, NULL, NULL, NULL, 0);
}

static int send_one(connection *server, const char *text)
{
	return goes_plainly(text) ? pq.sendQuery(server, text) : pq.sendQueryParams(server, text, 0, NULL, NULL, NULL, NULL, 0);
}

static result *own_exec(connection *server, const char *text)
{
	char room[SENT_BYTES];
	return heard(server, one(server, sent_for(server, text, room)));
}

static int own_sendQuery(connection *server, const char *text)
{
	char room[SENT_BYTES];
	return send_one(server, sent_for(server, text, room));
}

static result *own_execParams(connection *server, const char *text, int count, const unsigned *types,
	const char *const *values, const int *lengths, const int *formats, int format)
{
	char room[SENT_BYTES];
	const char *sent = sent_for(server, text, room);
	return heard(server, sent != text ? one(server, sent)
		: pq.execParams(server, text, count, types, values, lengths, formats, format));
}

static int own_sendQueryParams(connection *server, const char *text, int count, const unsigned *types,
	const char *const *values, const int *lengths, const int *formats, int format)
{
	char room[SENT_BYTES];
	const char *sent = sent_for(server, text, room);
	return sent != text ? send_one(server, sent)
		: pq.sendQueryParams(server, text, count, types, values, lengths, formats, format);
}

static result *own_prepare(connection *server, const char *name, const char *text, int count, const unsigned *types)
{
	char room[SENT_BYTES];
	const char *sent = prepared_for(server, name, text, room);
	return heard(server, was_refused ? one(server, sent) : pq.prepare(server, name, sent, count, types));
}

static int own_sendPrepare(connection *server, const char *name, const char *text, int count, const unsigned *types)
{
	char room[SENT_BYTES];
	const char *sent = prepared_for(server, name, text, room);
	return was_refused ? send_one(server, sent) : pq.sendPrepare(server, name, sent, count, types);
}

static result *own_execPrepared(connection *server, const char *name, int count, const char *const *values,
	const int *lengths, const int *formats, int format)
{
	char room[SENT_BYTES];
	const char *sent = sent_for_prepared(server, name, room);
	return heard(server, sent != NULL ? one(server, sent)
		: pq.execPrepared(server, name, count, values, lengths, formats, format));
}

static int own_sendQueryPrepared(connection *server, const char *name, int count, const char *const *values,
	const int *lengths, const int *formats, int format)
{
	char room[SENT_BYTES];
	const char *sent = sent_for_prepared(server, name, room);
	return sent != NULL ? send_one(server, sent)
		: pq.sendQueryPrepared(server, name, count, values, lengths, formats, format);
}

static result *own_getResult(connection *server)
{
	return heard(server, pq.getResult(server));
}

/* What the application would be told without a transaction around all. */
static int own_transactionStatus(const connection *server)
{
	int status = pq.transactionStatus(server);
	if (altair_database_mode != ALTAIR_ROLLBACK || (status != IN_TRANSACTION && status != IN_ERROR)) {
		return status;
	}
	const session *session = session_of(server);
	return session != NULL && session->has_begun ? status : TRANSACTION_IDLE;
}

/* Has the server tell what the transaction around all has changed, triggers and functions included
 * (monitoring-stats, "pg_stat_xact_user_tables"). */
static void count(const session *session)
{
	connection *server = (connection *) session->of;
	if (altair_database_mode != ALTAIR_ROLLBACK || !session->is_open
		|| pq.transactionStatus(server) != IN_TRANSACTION) {
		return;
	}
	result *said = pq.exec(server, "SELECT CASE schemaname WHEN 'public' THEN '' ELSE schemaname || '.' END || relname,"
		" n_tup_ins, n_tup_upd, n_tup_del FROM pg_catalog.pg_stat_xact_user_tables"
		" WHERE n_tup_ins + n_tup_upd + n_tup_del > 0 ORDER BY 1 LIMIT 1000");
	for (int row = 0; row < pq.ntuples(said); row++) {
		uint64_t rows[3];
		for (int column = 0; column < 3; column++) {
			rows[column] = strtoull(pq.getvalue(said, row, column + 1), NULL, 10);
		}
		altair_query_counted(server, row == 0, pq.getvalue(said, row, 0), rows[0], rows[1], rows[2]);
	}
	pq.clear(said);
}

void altair_count_changes(void)
{
	for (const session *one = sessions; one != NULL; one = one->next) {
		count(one);
	}
}

static void own_finish(connection *server)
{
	for (session **at = &sessions; *at != NULL; at = &(*at)->next) {
		if ((*at)->of == server) {
			session *gone = *at;
			count(gone);
			altair_session_ends(server);
			*at = gone->next;
			zend_hash_destroy(&gone->prepared);
			free(gone);
			break;
		}
	}
	pq.finish(server);
}

/* Refuses what is no statement: the server says so all the same. */
static void refuse_call(connection *server, const char *what, bool can_be_undone)
{
	char message[ALTAIR_MESSAGE_BYTES];
	char room[SENT_BYTES];
	(can_be_undone ? altair_refuse_write : altair_refuse_database)(what, message);
	pq.clear(one(server, refusal(server, message, room)));
}

/* libpq makes a statement of the name (fe-connect.c). */
static int own_setClientEncoding(connection *server, const char *name)
{
	static const char of_names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	if (name == NULL || strspn(name, of_names) == strlen(name)) {
		return pq.setClientEncoding(server, name);
	}
	refuse_call(server, "an encoding of such a name", false);
	return -1;
}

/* Between the statements of a pipeline nobody can look. */
static int own_enterPipelineMode(connection *server)
{
	refuse_call(server, "the pipeline mode of PostgreSQL", false);
	return 0;
}

static result *own_changePassword(connection *server, const char *user, const char *password)
{
	(void) user, (void) password;
	refuse_call(server, "a change of the password", false);
	return NULL;
}

/* Functions of the server that are called by number. */
static result *own_fn(connection *server, int function, int *buffer, int *length, int is_int, const void *arguments, int count)
{
	(void) function, (void) buffer, (void) length, (void) is_int, (void) arguments, (void) count;
	refuse_call(server, "PQfn()", false);
	return NULL;
}

/* Large objects. A read-only transaction does not stop what writes them before version 16, and libpq calls
 * the server's functions by number. */
#define LARGE_OBJECT(name, arguments, passed, failed) \
	static int own_##name arguments \
	{ \
		char message[ALTAIR_MESSAGE_BYTES]; \
		session *session = at_rest(server); \
		bool undone = altair_database_mode == ALTAIR_ROLLBACK; \
		if (session == NULL || !undone || !can_be_undone(server, session, message)) { \
			refuse_call(server, "writing a large object", true); \
			return failed; \
		} \
		return pq.name passed; \
	}

LARGE_OBJECT(lo_creat, (connection *server, int mode), (server, mode), 0)
LARGE_OBJECT(lo_create, (connection *server, unsigned id), (server, id), 0)
LARGE_OBJECT(lo_import, (connection *server, const char *file), (server, file), 0)
LARGE_OBJECT(lo_import_with_oid, (connection *server, const char *file, unsigned id), (server, file, id), 0)
LARGE_OBJECT(lo_unlink, (connection *server, unsigned id), (server, id), -1)
LARGE_OBJECT(lo_write, (connection *server, int fd, const char *bytes, size_t len), (server, fd, bytes, len), -1)
LARGE_OBJECT(lo_truncate, (connection *server, int fd, size_t len), (server, fd, len), -1)
LARGE_OBJECT(lo_truncate64, (connection *server, int fd, int64_t len), (server, fd, len), -1)

/* libpq/libpq-fs.h */
#define INV_WRITE 0x20000

static int own_lo_open(connection *server, unsigned id, int mode)
{
	if (altair_database_mode == ALTAIR_READ_ONLY && (mode & INV_WRITE) != 0) {
		refuse_call(server, "opening a large object to write it", true);
		return -1;
	}
	return pq.lo_open(server, id, mode);
}

/* ---- where libpq is ---- */

#define OWN(name) {"PQ" #name, (void *) own_##name}
#define OWN_LO(name) {#name, (void *) own_##name}

/* The first are those of statements, which are all that is seen where nothing is guarded. */
#define OF_STATEMENTS 10

static const altair_interposed interposed[] = {
	OWN(exec), OWN(sendQuery), OWN(execParams), OWN(sendQueryParams), OWN(prepare), OWN(sendPrepare),
	OWN(execPrepared), OWN(sendQueryPrepared), OWN(getResult), OWN(finish),
	OWN(transactionStatus), OWN(setClientEncoding), OWN(enterPipelineMode), OWN(changePassword), OWN(fn),
	OWN_LO(lo_creat), OWN_LO(lo_create), OWN_LO(lo_import), OWN_LO(lo_import_with_oid), OWN_LO(lo_unlink),
	OWN_LO(lo_write), OWN_LO(lo_truncate), OWN_LO(lo_truncate64), OWN_LO(lo_open),
};

static bool find_library(void)
{
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
		void *found = dlsym(RTLD_DEFAULT, needed[i].name);
		if (found == NULL) {
			return false;
		}
		*(void **) needed[i].place = found;
	}
	return true;
}

void altair_watch_libpq(void)
{
	size_t count = altair_database_mode == ALTAIR_WRITE ? OF_STATEMENTS : sizeof interposed / sizeof *interposed;
	altair_libpq_is_watched = find_library() && altair_interpose((void *) pq.exec, interposed, count) > 0;
	if (!altair_libpq_is_watched) {
		altair_refuse_functions("pg_connect", "pg_pconnect");
	}
}
