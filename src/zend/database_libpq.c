/* Sessions of PostgreSQL: the hooks. All of PHP's clients use libpq, and whatever they send to a
 * server passes through a few of its functions. The functions here replace those.
 *
 * A text that may contain several statements is sent by the extended protocol, which accepts
 * one. Instead of a refused text, one is sent that has the server raise the refusal: clients
 * only get errors of the database itself. libpq_read_only.c and libpq_rollback.c explain what is
 * sent in addition or instead. */

#define _GNU_SOURCE
#include "database_libpq.h"
#include <dlfcn.h>

bool altair_libpq_is_watched;
struct altair_libpq_functions altair_libpq;

/* Notes refusals of the server. Our own are noted already. */
static result *heard(connection *server, result *answer)
{
	const char *state = answer == NULL ? NULL : altair_libpq.resultErrorField(answer, DIAG_SQLSTATE);
	if (answer != NULL) {
		altair_libpq_note(server, answer, state != NULL);
	}
	if (state == NULL || altair_database_mode == ALTAIR_WRITE) {
		return answer;
	}
	if (strcmp(state, "25006") == 0 && !altair_libpq_was_refused) {
		altair_note_write();
	}
	if (strcmp(state, "42601") == 0 && altair_libpq_was_several) { /* syntax_error */
		altair_blocked("several statements in one text", "--writes");
	}
	/* active_sql_transaction, invalid_transaction_termination: because of the outer transaction. */
	if (altair_database_mode == ALTAIR_ROLLBACK && (strcmp(state, "25001") == 0 || strcmp(state, "2D000") == 0)) {
		altair_blocked("a statement that commits by itself", "--writes");
	}
	return answer;
}

/* ---- replacements of libpq's functions ---- */

/* Returns whether a text is sent by the simple protocol, which is faster: a text that can only
 * be one statement. Others are sent by the extended protocol, which accepts one statement. */
static bool goes_plainly(const char *text)
{
	return altair_database_mode == ALTAIR_WRITE || (text != NULL && !altair_may_be_several(text, strlen(text)));
}

static result *one(connection *server, const char *text)
{
	return goes_plainly(text) ? altair_libpq.exec(server, text)
		: altair_libpq.execParams(server, text, 0, NULL, NULL, NULL, NULL, 0);
}

static int send_one(connection *server, const char *text)
{
	return goes_plainly(text) ? altair_libpq.sendQuery(server, text)
		: altair_libpq.sendQueryParams(server, text, 0, NULL, NULL, NULL, NULL, 0);
}

static result *own_exec(connection *server, const char *text)
{
	char room[SENT_BYTES];
	return heard(server, one(server, altair_libpq_sent_for(server, text, room)));
}

static int own_sendQuery(connection *server, const char *text)
{
	char room[SENT_BYTES];
	return send_one(server, altair_libpq_sent_for(server, text, room));
}

static result *own_execParams(connection *server, const char *text, int count, const unsigned *types,
	const char *const *values, const int *lengths, const int *formats, int format)
{
	char room[SENT_BYTES];
	const char *sent = altair_libpq_sent_for(server, text, room);
	return heard(server, sent != text ? one(server, sent)
		: altair_libpq.execParams(server, text, count, types, values, lengths, formats, format));
}

static int own_sendQueryParams(connection *server, const char *text, int count, const unsigned *types,
	const char *const *values, const int *lengths, const int *formats, int format)
{
	char room[SENT_BYTES];
	const char *sent = altair_libpq_sent_for(server, text, room);
	return sent != text ? send_one(server, sent)
		: altair_libpq.sendQueryParams(server, text, count, types, values, lengths, formats, format);
}

static result *own_prepare(connection *server, const char *name, const char *text, int count, const unsigned *types)
{
	char room[SENT_BYTES];
	const char *sent = altair_libpq_prepared_for(server, name, text, room);
	return heard(server, altair_libpq_was_refused ? one(server, sent)
		: altair_libpq.prepare(server, name, sent, count, types));
}

static int own_sendPrepare(connection *server, const char *name, const char *text, int count, const unsigned *types)
{
	char room[SENT_BYTES];
	const char *sent = altair_libpq_prepared_for(server, name, text, room);
	return altair_libpq_was_refused ? send_one(server, sent)
		: altair_libpq.sendPrepare(server, name, sent, count, types);
}

static result *own_execPrepared(connection *server, const char *name, int count, const char *const *values,
	const int *lengths, const int *formats, int format)
{
	char room[SENT_BYTES];
	const char *sent = altair_libpq_sent_for_prepared(server, name, room);
	return heard(server, sent != NULL ? one(server, sent)
		: altair_libpq.execPrepared(server, name, count, values, lengths, formats, format));
}

static int own_sendQueryPrepared(connection *server, const char *name, int count, const char *const *values,
	const int *lengths, const int *formats, int format)
{
	char room[SENT_BYTES];
	const char *sent = altair_libpq_sent_for_prepared(server, name, room);
	return sent != NULL ? send_one(server, sent)
		: altair_libpq.sendQueryPrepared(server, name, count, values, lengths, formats, format);
}

static result *own_getResult(connection *server)
{
	return heard(server, altair_libpq.getResult(server));
}

static void own_finish(connection *server)
{
	for (session **at = &altair_libpq_sessions; *at != NULL; at = &(*at)->next) {
		if ((*at)->of == server) {
			session *gone = *at;
			altair_libpq_count(gone);
			altair_session_ends(server);
			*at = gone->next;
			zend_hash_destroy(&gone->prepared);
			free(gone);
			break;
		}
	}
	altair_libpq.finish(server);
}

/* Refuses a call that is not a statement. The server raises this error, too. */
static void refuse_call(connection *server, const char *what, bool can_be_undone)
{
	char message[ALTAIR_MESSAGE_BYTES];
	char room[SENT_BYTES];
	(can_be_undone ? altair_refuse_write : altair_refuse_database)(what, message);
	altair_libpq.clear(one(server, altair_libpq_refusal(server, message, room)));
}

/* libpq inserts the name into a statement (fe-connect.c). */
static int own_setClientEncoding(connection *server, const char *name)
{
	static const char of_names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	if (name == NULL || strspn(name, of_names) == strlen(name)) {
		return altair_libpq.setClientEncoding(server, name);
	}
	refuse_call(server, "an encoding of such a name", false);
	return -1;
}

/* Nothing can be checked between the statements of a pipeline. */
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

/* Calls a function of the server by number. */
static result *own_fn(connection *server, int function, int *buffer, int *length, int is_int, const void *arguments, int count)
{
	(void) function, (void) buffer, (void) length, (void) is_int, (void) arguments, (void) count;
	refuse_call(server, "PQfn()", false);
	return NULL;
}

/* Large objects. Before version 16, a read-only transaction does not prevent writes to them, and
 * libpq calls the server's functions by number. */
#define LARGE_OBJECT(name, arguments, passed, failed) \
	static int own_##name arguments \
	{ \
		char message[ALTAIR_MESSAGE_BYTES]; \
		session *session = altair_libpq_at_rest(server); \
		bool undone = altair_database_mode == ALTAIR_ROLLBACK; \
		if (session == NULL || !undone || !altair_libpq_can_be_undone(server, session, message)) { \
			refuse_call(server, "writing a large object", true); \
			return failed; \
		} \
		return altair_libpq.name passed; \
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
	return altair_libpq.lo_open(server, id, mode);
}

/* ---- installation ---- */

#define OWN(name) {"PQ" #name, (void *) own_##name}
#define OWN_LO(name) {#name, (void *) own_##name}

/* The first of them are needed to record statements. Only these are replaced if nothing is
 * guarded. */
#define OF_STATEMENTS 10

static const altair_interposed interposed[] = {
	OWN(exec), OWN(sendQuery), OWN(execParams), OWN(sendQueryParams), OWN(prepare), OWN(sendPrepare),
	OWN(execPrepared), OWN(sendQueryPrepared), OWN(getResult), OWN(finish),
	{"PQtransactionStatus", (void *) altair_libpq_transactionStatus},
	OWN(setClientEncoding), OWN(enterPipelineMode), OWN(changePassword), OWN(fn),
	OWN_LO(lo_creat), OWN_LO(lo_create), OWN_LO(lo_import), OWN_LO(lo_import_with_oid), OWN_LO(lo_unlink),
	OWN_LO(lo_write), OWN_LO(lo_truncate), OWN_LO(lo_truncate64), OWN_LO(lo_open),
};

#define NAMED(type, name, prefix, arguments) {#prefix #name, &altair_libpq.name},

static const struct {
	const char *name;
	void *place;
} needed[] = {
	OF_LIBPQ(NAMED)
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
	altair_libpq_is_watched = find_library() && altair_interpose((void *) altair_libpq.exec, interposed, count) > 0;
	if (!altair_libpq_is_watched) {
		altair_refuse_functions("pg_connect", "pg_pconnect");
	}
}
