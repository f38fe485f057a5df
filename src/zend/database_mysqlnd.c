/* Sessions of MySQL and MariaDB: all of PHP's clients are mysqlnd's, and whatever they say to a server
 * passes one function of it, as it is sent (mysqlnd_ext_plugin.h).
 *
 * A session that only reads. `SET SESSION TRANSACTION READ ONLY` follows each statement at once, and its
 * answer is taken before the next one is sent: what a function has lifted in the server is set again, at
 * no further round trip. In a transaction the server tells with each answer whether it only reads.
 *
 * A session that is rolled back is in an XA transaction from its beginning to its end. Its name is
 * known only here, and without the name nothing ends it. In it the server refuses all that would commit, also
 * within procedures and triggers. It is rolled back as the session ends. The application's own transactions are savepoints in it, and what it
 * is told of them is what it would be told without. */

#include "database.h"
#include "zend_smart_str.h"

bool altair_mysqlnd_is_watched;

/* What cannot be watched opens nothing: mysqlnd has changed, or has come since this was built. */
static void refuse_mysqli(void)
{
	altair_refuse_functions("mysqli_connect", "mysqli_real_connect");
	altair_refuse_constructor("mysqli");
}

#if __has_include("ext/mysqlnd/mysqlnd_ext_plugin.h")
#include <dlfcn.h>
#include "ext/mysqlnd/mysqlnd.h"
#include "ext/mysqlnd/mysqlnd_structs.h"
#include "ext/mysqlnd/mysqlnd_ext_plugin.h"
#include "ext/mysqlnd/mysqlnd_wireprotocol.h"

/* Each transaction that begins in the session goes by it, those of single statements included
 * (MySQL 5.6.5, MariaDB 10.0). */
#define READ_ONLY "SET SESSION TRANSACTION READ ONLY"

/* Of a server's status, with each answer (mysql_com.h). */
#define IN_READ_ONLY_TRANSACTION 8192

/* Errors (mysqld_error.h). */
#define ER_PARSE_ERROR 1064
#define ER_LOCK_DEADLOCK 1213
#define ER_XAER_RMFAIL 1399
#define ER_XA_RBROLLBACK 1402
#define ER_XA_RBTIMEOUT 1613
#define ER_XA_RBDEADLOCK 1614
#define ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION 1792
/* read_only_sql_transaction */
#define SQLSTATE "25006"

static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) next;
static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_stmt) next_stmt;
static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_res) next_result;
static MYSQLND_CLASS_METHODS_TYPE(mysqlnd_protocol_payload_decoder_factory) next_protocol;

/* ---- what is known of a session ---- */

static unsigned int plugin;
static struct st_mysqlnd_plugin__plugin_area_getters *areas;

enum {
	IS_OPEN = 1,     /* the application's own statements may be sent */
	IS_PENDING = 2,  /* an answer to a statement of ours is to be taken */
	HAS_BEGUN = 4,   /* rollback: the application is in a transaction of its own */
	IS_MANUAL = 8,   /* rollback: it has turned autocommit off */
	IS_BROKEN = 16,  /* the session is not what it has to be: it is set up before the next command */
	WAS_SEVERAL = 32, /* there may be several statements in the last text */
	MAY_SHIFT = 64,  /* a statement has set a character set in which ASCII may be part of a character */
	HAS_LASTING = 128, /* rollback: there may be tables in which what is written stays */
};

typedef struct {
	unsigned state;
	altair_text next; /* of the prepared statement that is executed */
	altair_query query;
} session;

static session *session_of(const MYSQLND_CONN_DATA *conn)
{
	session **area = (session **) areas->get_connection_data_area(conn, plugin);
	if (*area == NULL) {
		*area = pecalloc(1, sizeof **area, true);
	}
	return *area;
}

static bool is(const MYSQLND_CONN_DATA *conn, unsigned what)
{
	return (session_of(conn)->state & what) != 0;
}

static void set(const MYSQLND_CONN_DATA *conn, unsigned what, bool on)
{
	session *session = session_of(conn);
	session->state = on ? session->state | what : session->state & ~what;
}

/* ---- statements of ours ---- */

static void fail(MYSQLND_ERROR_INFO *error, unsigned int number, const char *state, const char *text)
{
	error->m->set_client_error(error, number, state, text);
}

/* Sends a statement, whatever the client waits for at the moment. */
static bool send_own(MYSQLND_CONN_DATA *conn, const char *text, size_t len)
{
	MYSQLND_PFC_DATA *frames = conn->protocol_frame_codec->data;
	zend_uchar number = frames->packet_no;
	zend_uchar envelope = frames->compressed_envelope_packet_no;
	MYSQLND_CONNECTION_STATE ready = conn->state;
	MYSQLND_UPSERT_STATUS unused = *conn->upsert_status;
	ready.state = CONN_READY;
	bool is_sent = next_protocol.send_command(conn->payload_decoder_factory, COM_QUERY, (const zend_uchar *) text, len,
		false, &ready, conn->error_info, &unused, conn->stats, conn->m->send_close, conn) == PASS;
	if (!is_sent) {
		conn->state.state = ready.state;
	}
	/* The client goes on where it was. */
	frames->packet_no = number;
	frames->compressed_envelope_packet_no = envelope;
	set(conn, IS_PENDING, is_sent);
	return is_sent;
}

/* Takes the answer to it. False where it has failed; conn->error_info says why. */
static bool settle(MYSQLND_CONN_DATA *conn)
{
	if (!is(conn, IS_PENDING)) {
		return true;
	}
	set(conn, IS_PENDING, false);
	MYSQLND_PFC_DATA *frames = conn->protocol_frame_codec->data;
	MYSQLND_PROTOCOL_PAYLOAD_DECODER_FACTORY *protocol = conn->payload_decoder_factory;
	MYSQLND_UPSERT_STATUS unused = *conn->upsert_status;
	MYSQLND_STRING message = {NULL, 0};
	frames->packet_no = 1;
	frames->compressed_envelope_packet_no = 1;
	bool is_fine = protocol->m.send_command_handle_response(
		protocol, PROT_OK_PACKET, true, COM_QUERY, true, conn->error_info, &unused, &message) == PASS;
	/* What it was to do is to be done before anything else. */
	set(conn, IS_BROKEN, !is_fine || is(conn, IS_BROKEN));
	return is_fine;
}

static bool say(MYSQLND_CONN_DATA *conn, const char *text)
{
	return send_own(conn, text, strlen(text)) && settle(conn);
}

/* ---- a session that only reads ---- */

/* Before a statement: a transaction that may write is over. */
static bool is_read_only(MYSQLND_CONN_DATA *conn, MYSQLND_ERROR_INFO *error)
{
	unsigned int status = conn->upsert_status->server_status;
	if ((status & SERVER_STATUS_IN_TRANS) == 0 || (status & IN_READ_ONLY_TRANSACTION) != 0) {
		return true;
	}
	char message[ALTAIR_MESSAGE_BYTES];
	altair_refuse_write("a transaction that may write", message);
	if (say(conn, "ROLLBACK") && say(conn, READ_ONLY)) {
		conn->upsert_status->server_status &= ~(unsigned int) SERVER_STATUS_IN_TRANS;
	}
	fail(error, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, SQLSTATE, message);
	return false;
}

/* ---- a session that is rolled back ---- */

#define NAME_BYTES 96

static bool say_named(MYSQLND_CONN_DATA *conn, const char *format)
{
	char text[NAME_BYTES + 64];
	snprintf(text, sizeof text, format, altair_secret_name(), (unsigned long) conn->thread_id);
	return say(conn, text);
}

static bool begin_all(MYSQLND_CONN_DATA *conn)
{
	return say_named(conn, "XA START 'altair-%s','%lu'");
}

/* The server has rolled back all there was. */
static bool begin_anew(MYSQLND_CONN_DATA *conn)
{
	say_named(conn, "XA END 'altair-%s','%lu'");
	say_named(conn, "XA ROLLBACK 'altair-%s','%lu'");
	set(conn, HAS_BEGUN, false);
	return begin_all(conn);
}

/* Sees that a session that is not what it has to be becomes so. */
static bool mend(MYSQLND_CONN_DATA *conn)
{
	bool is_mended = altair_database_mode == ALTAIR_WRITE
		|| (altair_database_mode == ALTAIR_READ_ONLY ? say(conn, READ_ONLY) : begin_anew(conn));
	set(conn, IS_BROKEN, !is_mended);
	return is_mended;
}

#define SAVEPOINT "SAVEPOINT `altair`"
#define RELEASE "RELEASE SAVEPOINT `altair`"
#define BACK "ROLLBACK TO SAVEPOINT `altair`"
#define NOTHING "DO 0"

/* Words of a text, each once, among which names are looked for. */
#define WORDS_MAX 1000
/* Bytes of a name: 64 characters (MySQL's "Identifier Length Limits"). */
#define NAME_MAX_BYTES 256

/* Adds what is between two places, where it may be a name. */
static void add_word(HashTable *words, const char *start, const char *end)
{
	if (end > start && end - start <= NAME_MAX_BYTES) {
		zend_hash_str_add_empty_element(words, start, (size_t) (end - start));
	}
}

/* The words of a text, and what is between quotes of names, as a list of strings. False where there are too
 * many. */
static bool words_of(const char *text, size_t len, smart_str *list)
{
	HashTable words;
	const char *const end = text + len;
	const char *word = text;
	const char *quoted = text;
	bool is_number = true;
	zend_hash_init(&words, 64, NULL, NULL, false);
	for (const char *at = text; at <= end && zend_hash_num_elements(&words) <= WORDS_MAX; at++) {
		bool is_end = at == end;
		if (!is_end && (isalnum((unsigned char) *at) || *at == '_' || *at == '$')) {
			is_number = is_number && isdigit((unsigned char) *at);
			continue;
		}
		/* A name that is a number is in quotes. Behind the version of a comment a name may stand at once. */
		add_word(&words, is_number ? at : word, at);
		for (int digits = 5; digits <= 6 && !is_number && word + digits < at; digits++) {
			add_word(&words, strspn(word, "0123456789") >= (size_t) digits ? word + digits : at, at);
		}
		word = at + 1;
		is_number = true;
		if (!is_end && strchr("`\"[]", *at) != NULL) {
			add_word(&words, quoted, at);
			quoted = at + 1;
		}
	}
	bool is_whole = zend_hash_num_elements(&words) <= WORDS_MAX;
	zend_string *one;
	ZEND_HASH_FOREACH_STR_KEY(&words, one) {
		smart_str_appends(list, list->s == NULL ? "CONVERT(X'" : "'USING utf8mb4),CONVERT(X'");
		for (size_t i = 0; i < ZSTR_LEN(one); i++) {
			smart_str_append_printf(list, "%02x", (unsigned char) ZSTR_VAL(one)[i]);
		}
	} ZEND_HASH_FOREACH_END();
	smart_str_appends(list, list->s == NULL ? "NULL" : "'USING utf8mb4)");
	smart_str_0(list);
	zend_hash_destroy(&words);
	return is_whole;
}

/* Tables whose engine has no transactions: what is written there stays. The server's own are named with
 * their schema. */
#define LASTING_TABLES " FROM information_schema.tables t" \
	" JOIN information_schema.engines e ON e.engine = t.engine WHERE t.table_type = 'BASE TABLE'" \
	" AND COALESCE(e.transactions, 'NO') <> 'YES'" \
	" AND t.table_schema NOT IN ('sys', 'information_schema', 'performance_schema')"
#define OWN_SCHEMA "mysql"

/* Whether there is anything that a condition on these tables holds for. The server's answer is an error where
 * there is. */
static bool has_lasting_tables(MYSQLND_CONN_DATA *conn, const smart_str *condition)
{
	smart_str ask = {NULL, 0};
	smart_str_appends(&ask, "SET @altair = (SELECT 1 UNION ALL SELECT 1" LASTING_TABLES " AND (");
	smart_str_append_smart_str(&ask, condition);
	smart_str_appends(&ask, "))");
	smart_str_0(&ask);
	bool is_fine = send_own(conn, ZSTR_VAL(ask.s), ZSTR_LEN(ask.s)) && settle(conn);
	smart_str_free(&ask);
	/* That it fails is an answer. */
	set(conn, IS_BROKEN, false);
	return !is_fine;
}

/* Whether what a statement writes may stay: it names a routine, or a view where there are some with routines; or,
 * if the statement itself writes, such a table, a view, or a table with triggers. A name that is not of plain
 * characters is taken for named, as is any where the text has too many words. */
static bool stays(MYSQLND_CONN_DATA *conn, bool writes, const char *text, size_t len)
{
	static const struct {
		const char *before, *column, *after;
	} named[] = {
		{"EXISTS (SELECT 1 FROM information_schema.routines WHERE routine_schema <> 'sys' AND ", "routine_name", ")"},
		{"EXISTS (SELECT 1 FROM information_schema.views v JOIN information_schema.routines r ON"
			" v.view_definition = '' OR LOCATE(r.routine_name, v.view_definition) > 0 WHERE v.table_schema <> 'sys'"
			" AND r.routine_schema <> 'sys') AND EXISTS (SELECT 1 FROM information_schema.views"
			" WHERE table_schema <> 'sys' AND ", "table_name", ")"},
		{"", "t.table_name", ""},
		{"EXISTS (SELECT 1 FROM information_schema.views WHERE table_schema <> 'sys' AND ", "table_name", " AND is_updatable <> 'NO')"},
		{"EXISTS (SELECT 1 FROM information_schema.triggers WHERE trigger_schema <> 'sys' AND ", "event_object_table", ")"},
	};
	size_t count = writes ? sizeof named / sizeof *named : 2;
	smart_str words = {NULL, 0};
	smart_str condition = {NULL, 0};
	bool is_whole = words_of(text, len, &words);
	smart_str_append_printf(&condition, "(t.table_schema <> '" OWN_SCHEMA "' OR '" OWN_SCHEMA "' IN (%s)"
		" OR DATABASE() = '" OWN_SCHEMA "') AND (%s", ZSTR_VAL(words.s), is_whole ? "FALSE" : "TRUE");
	for (size_t i = 0; i < count; i++) {
		smart_str_append_printf(&condition, " OR %s(%s REGEXP '[^ -~]|[`\"]' OR %s IN (%s))%s", named[i].before,
			named[i].column, named[i].column, ZSTR_VAL(words.s), named[i].after);
	}
	smart_str_appendc(&condition, ')');
	bool stays = has_lasting_tables(conn, &condition);
	smart_str_free(&words);
	smart_str_free(&condition);
	return stays;
}

/* Whether there is anything in the application's databases that may stay. */
static bool has_lasting(MYSQLND_CONN_DATA *conn)
{
	smart_str condition = {NULL, 0};
	smart_str_appends(&condition, "t.table_schema <> '" OWN_SCHEMA "'");
	bool has = has_lasting_tables(conn, &condition);
	smart_str_free(&condition);
	return has;
}

/* Does what there is to do for a statement, and gives what is sent in its place; NULL where that has
 * failed, and conn->error_info says why. */
static const char *instead(MYSQLND_CONN_DATA *conn, enum altair_statement statement, char *room)
{
	bool has_begun = is(conn, HAS_BEGUN);
	const char *text = NULL;
	bool was_manual = is(conn, IS_MANUAL);
	if (statement == ALTAIR_AUTOCOMMIT_ON || statement == ALTAIR_AUTOCOMMIT_OFF) {
		set(conn, IS_MANUAL, statement == ALTAIR_AUTOCOMMIT_OFF);
	}
	if (statement == ALTAIR_SAVEPOINT || statement == ALTAIR_AUTOCOMMIT_OFF
		|| (statement == ALTAIR_AUTOCOMMIT_ON && !was_manual)) {
		return strcpy(room, NOTHING); /* the transaction goes on */
	}
	switch (statement) {
		case ALTAIR_BEGIN:
			if (has_begun && !say(conn, RELEASE)) {
				return NULL;
			}
			text = SAVEPOINT;
			break;
		case ALTAIR_COMMIT:
		case ALTAIR_AUTOCOMMIT_ON:
			text = has_begun ? RELEASE : NOTHING;
			break;
		case ALTAIR_ROLLS_BACK:
			if (has_begun && !say(conn, BACK)) {
				return NULL;
			}
			text = has_begun ? RELEASE : NOTHING;
			break;
		case ALTAIR_COMMIT_AND_CHAIN:
			if (has_begun && !say(conn, RELEASE)) {
				return NULL;
			}
			text = SAVEPOINT;
			break;
		case ALTAIR_ROLLS_BACK_AND_CHAIN:
			text = has_begun ? BACK : SAVEPOINT;
			break;
		default:
			text = NOTHING;
	}
	set(conn, HAS_BEGUN, statement == ALTAIR_BEGIN || statement == ALTAIR_COMMIT_AND_CHAIN
		|| statement == ALTAIR_ROLLS_BACK_AND_CHAIN);
	snprintf(room, NAME_BYTES, "%s", text);
	return room;
}

/* What the application is told of the transaction that it is in. */
static unsigned int get_server_status(const MYSQLND_CONN_DATA *const conn)
{
	unsigned int status = next.get_server_status(conn);
	if (altair_database_mode != ALTAIR_ROLLBACK || !is(conn, IS_OPEN)) {
		return status;
	}
	status &= ~(unsigned int) (SERVER_STATUS_IN_TRANS | SERVER_STATUS_AUTOCOMMIT);
	return status | (is(conn, HAS_BEGUN) ? SERVER_STATUS_IN_TRANS : 0)
		| (is(conn, IS_MANUAL) ? 0 : SERVER_STATUS_AUTOCOMMIT);
}

/* Prepared statements that begin or end a transaction. What is prepared for them does nothing. */
typedef struct prepared {
	struct prepared *next;
	const MYSQLND_CONN_DATA *conn;
	uint32_t id;
	enum altair_statement statement;
} prepared;

static prepared *all_prepared;
/* What the text is that is prepared, as far as that makes a difference. */
static enum altair_statement preparing;
static altair_text preparing_text;

/* Kept with the statement, in the place of a pointer. */
static altair_text *text_of(const MYSQLND_STMT *stmt)
{
	_Static_assert(sizeof(altair_text) <= sizeof(void *), "a text is as long as a pointer");
	return (altair_text *) areas->get_stmt_area(stmt, plugin);
}

static uint32_t id_of(const zend_uchar *command)
{
	return command[0] | (uint32_t) command[1] << 8 | (uint32_t) command[2] << 16 | (uint32_t) command[3] << 24;
}

static prepared **find_prepared(const MYSQLND_CONN_DATA *conn, uint32_t id)
{
	prepared **at = &all_prepared;
	while (*at != NULL && ((*at)->conn != conn || (*at)->id != id)) {
		at = &(*at)->next;
	}
	return at;
}

static void forget_prepared(const MYSQLND_CONN_DATA *conn, uint32_t id)
{
	prepared **at = find_prepared(conn, id);
	prepared *gone = *at;
	if (gone != NULL) {
		*at = gone->next;
		free(gone);
	}
}

/* False where there is no memory. */
static bool remember_prepared(const MYSQLND_CONN_DATA *conn, uint32_t id, enum altair_statement statement)
{
	forget_prepared(conn, id);
	prepared *new = altair_is_plain(statement) ? NULL : malloc(sizeof *new);
	if (new != NULL) {
		*new = (prepared) {all_prepared, conn, id, statement};
		all_prepared = new;
	}
	return new != NULL || altair_is_plain(statement);
}

/* ---- what is sent ---- */

/* Has a command fail for what a statement of ours has failed for. */
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
	bool is_application = altair_database_mode == ALTAIR_ROLLBACK; /* its own statement is sent as it is */
	/* Where the client is not ready, that is what it has to say. */
	bool is_ready = connection_state->m->get(connection_state) == CONN_READY;
	session *session = session_of(conn);
	altair_text known = 0;
	if (!is(conn, IS_OPEN) || !is_ready || command == COM_QUIT) {
		return next_protocol.send_command(protocol, command, arg, arg_len, silent, connection_state, error,
			upsert_status, stats, send_close, send_close_ctx);
	}
	if (!settle(conn) || (is(conn, IS_BROKEN) && !mend(conn))) {
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
			/* Outside of a transaction there is none after it. */
			bool stands = statement == ALTAIR_SAVEPOINT && (is(conn, HAS_BEGUN) || is(conn, IS_MANUAL));
			bool is_plain = stands || altair_is_plain(statement);
			preparing = stands ? ALTAIR_SENT : statement;
			if (!is_plain && !executes) {
				text = NOTHING;
				len = strlen(text);
				break;
			}
			if (php_memnistr(text, OWN_SCHEMA, strlen(OWN_SCHEMA), text + len) != NULL) {
				set(conn, HAS_LASTING, true);
			}
			if (is_plain && is(conn, HAS_LASTING) && stays(conn, statement == ALTAIR_WRITES, text, len)) {
				altair_refuse_database("a statement on a table whose engine has no transactions", message);
				fail(error, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, SQLSTATE, message);
				return FAIL;
			}
			if (!is_plain) {
				is_application = false;
				text = instead(conn, statement, room);
				if (text == NULL) {
					return fail_as(conn, error);
				}
				len = strlen(text);
			}
			break;
		}
		case COM_STMT_EXECUTE: {
			const prepared *own = arg_len < 4 ? NULL : *find_prepared(conn, id_of(arg));
			executes = true;
			known = session->next;
			is_application = is_application && own == NULL;
			if (own != NULL && (instead(conn, own->statement, room) == NULL || !say(conn, room))) {
				return fail_as(conn, error);
			}
			break;
		}
		case COM_INIT_DB: case COM_FIELD_LIST: case COM_STATISTICS: case COM_PING:
		case COM_STMT_SEND_LONG_DATA: case COM_STMT_RESET: case COM_STMT_FETCH:
			break;
		case COM_STMT_CLOSE:
			if (arg_len >= 4) {
				forget_prepared(conn, id_of(arg));
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
	if (executes && reads && !is_read_only(conn, error)) {
		return FAIL;
	}
	if (executes && is_application && is(conn, IS_MANUAL) && !is(conn, HAS_BEGUN)) {
		if (!say(conn, SAVEPOINT)) {
			return fail_as(conn, error);
		}
		set(conn, HAS_BEGUN, true);
	}
	if (executes) {
		altair_query_begins(&session->query, known);
	}
	enum_func_status sent = next_protocol.send_command(protocol, command, (const zend_uchar *) text, len, silent,
		connection_state, error, upsert_status, stats, send_close, send_close_ctx);
	if (sent != PASS && executes) {
		altair_query_fails(&session->query, conn);
	}
	if (sent == PASS && executes && reads && !send_own(conn, READ_ONLY, sizeof READ_ONLY - 1)) {
		return fail_as(conn, error);
	}
	return sent;
}

/* ---- what is answered ---- */

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
	enum_func_status result = next.query_read_result_set_header(conn, stmt);
	altair_query *query = &session_of(conn)->query;
	if (result != PASS) {
		altair_query_fails(query, conn);
		hear(conn, conn->error_info);
	} else {
		/* Rows that are read come behind it. */
		bool gives_rows = conn->last_query_type == QUERY_SELECT;
		altair_query_answers(query, conn, gives_rows ? 0 : conn->upsert_status->affected_rows);
	}
	return result;
}

/* Rows that have come at once. */
static MYSQLND_RES *stored(MYSQLND_CONN_DATA *conn, MYSQLND_RES *result)
{
	if (result != NULL && result->stored_data != NULL) {
		altair_query_answers(&session_of(conn)->query, conn, result->stored_data->row_count);
	}
	return result;
}

static MYSQLND_RES *store_result(MYSQLND_CONN_DATA *const conn)
{
	return stored(conn, next.store_result(conn));
}

static MYSQLND_RES *stmt_store_result(MYSQLND_STMT *const stmt)
{
	MYSQLND_RES *result = next_stmt.store_result(stmt);
	return result == NULL ? NULL : stored(stmt->data->conn, result);
}

static MYSQLND_RES *stmt_get_result(MYSQLND_STMT *const stmt)
{
	MYSQLND_RES *result = next_stmt.get_result(stmt);
	return result == NULL ? NULL : stored(stmt->data->conn, result);
}

/* Those that have come one by one, up to here. */
static void free_result_buffers(MYSQLND_RES *result)
{
	if (result->unbuf != NULL && result->conn != NULL) {
		altair_query_gives(&session_of(result->conn)->query, result->conn, result->unbuf->row_count);
	}
	next_result.free_result_buffers(result);
}

static enum_func_status send_execute(
	MYSQLND_STMT *const stmt, const enum_mysqlnd_send_execute_type type, zval *read_cb, zval *err_cb)
{
	if (stmt->data != NULL && stmt->data->conn != NULL) {
		session_of(stmt->data->conn)->next = *text_of(stmt);
	}
	return next_stmt.send_execute(stmt, type, read_cb, err_cb);
}

static enum_func_status prepare(MYSQLND_STMT *const stmt, const char *const query, const size_t len)
{
	preparing = ALTAIR_SENT;
	preparing_text = 0;
	enum_func_status result = next_stmt.prepare(stmt, query, len);
	if (stmt->data == NULL || stmt->data->conn == NULL) {
		return result;
	}
	*text_of(stmt) = preparing_text;
	if (result != PASS && preparing != ALTAIR_REFUSED) {
		hear(stmt->data->conn, stmt->data->error_info);
	} else if (result == PASS && !remember_prepared(stmt->data->conn, (uint32_t) stmt->data->stmt_id, preparing)) {
		return FAIL;
	}
	return result;
}

/* ---- a session's beginning ---- */

/* One statement at a time: the server takes several only where the client has said that it may. */
static unsigned int get_updated_connect_flags(MYSQLND_CONN_DATA *conn, unsigned int flags)
{
	unsigned int without = altair_database_mode == ALTAIR_WRITE ? ~0U : ~(unsigned int) CLIENT_MULTI_STATEMENTS;
	return next.get_updated_connect_flags(conn, flags & without) & without;
}

/* It stays as it is; a text with one statement is sent all the same. */
static enum_func_status set_server_option(MYSQLND_CONN_DATA *const conn, enum_mysqlnd_server_option option)
{
	return altair_database_mode == ALTAIR_WRITE ? next.set_server_option(conn, option) : PASS;
}

static bool open_session(MYSQLND_CONN_DATA *conn)
{
	session_of(conn)->state = IS_OPEN | IS_BROKEN;
	bool is_own = conn->connect_or_select_db.s != NULL && strcmp(conn->connect_or_select_db.s, OWN_SCHEMA) == 0;
	bool is_open = mend(conn);
	set(conn, HAS_LASTING, is_open && altair_database_mode == ALTAIR_ROLLBACK && (is_own || has_lasting(conn)));
	return is_open;
}

/* Before the commands that the application has for its beginning. */
static enum_func_status execute_init_commands(MYSQLND_CONN_DATA *conn)
{
	return open_session(conn) ? next.execute_init_commands(conn) : FAIL;
}

/* The server resets what the session was. */
static enum_func_status change_user(MYSQLND_CONN_DATA *const conn, const char *user, const char *password,
	const char *database, bool silent, size_t password_len)
{
	if (!settle(conn)) {
		return FAIL;
	}
	/* Also where that fails: MariaDB has reset the session by then, and keeps it. */
	set(conn, IS_BROKEN, true);
	enum_func_status result = next.change_user(conn, user, password, database, silent, password_len);
	return result == PASS && !open_session(conn) ? FAIL : result;
}

static void dtor(MYSQLND_CONN_DATA *conn)
{
	session *gone = session_of(conn);
	altair_session_ends(conn);
	next.dtor(conn);
	pefree(gone, true);
}

void altair_watch_mysqlnd(void)
{
	/* Not there where PHP was built without, or where the extension is not loaded. */
	struct st_mysqlnd_plugin_methods_xetters *methods = dlsym(RTLD_DEFAULT, "mysqlnd_plugin_methods_xetters");
	unsigned int (*new_plugin)(void) = (unsigned int (*)(void)) dlsym(RTLD_DEFAULT, "mysqlnd_plugin_register");
	areas = dlsym(RTLD_DEFAULT, "mysqlnd_plugin_area_getters");
	if (methods == NULL || new_plugin == NULL || areas == NULL) {
		refuse_mysqli();
		return;
	}
	plugin = new_plugin();
	altair_mysqlnd_is_watched = true;
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_conn_data) *conn = methods->connection_data.get();
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_stmt) *stmt = methods->statement.get();
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_protocol_payload_decoder_factory) *protocol = methods->protocol.get();
	MYSQLND_CLASS_METHODS_TYPE(mysqlnd_res) *result = methods->result.get();
	next = *conn;
	next_result = *result;
	next_stmt = *stmt;
	next_protocol = *protocol;
	conn->query_read_result_set_header = query_read_result_set_header;
	conn->get_updated_connect_flags = get_updated_connect_flags;
	conn->set_server_option = set_server_option;
	conn->get_server_status = get_server_status;
	conn->execute_init_commands = execute_init_commands;
	conn->change_user = change_user;
	conn->store_result = store_result;
	conn->dtor = dtor;
	stmt->prepare = prepare;
	stmt->send_execute = send_execute;
	stmt->store_result = stmt_store_result;
	stmt->get_result = stmt_get_result;
	result->free_result_buffers = free_result_buffers;
	protocol->send_command = send_command;
}

#else

void altair_watch_mysqlnd(void)
{
	refuse_mysqli();
}

#endif
