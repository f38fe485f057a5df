/* MySQL: rolled-back sessions. Such a session is in one XA transaction from beginning to end.
 * Its name is known only here, and nothing can end it without the name. In it the server refuses
 * whatever would commit, also within procedures and triggers. It is rolled back when the session
 * ends. The application's own transactions are savepoints in it, and the application sees the
 * transaction status that it would see without it. */

#include "database_mysqlnd.h"

#ifdef ALTAIR_HAS_MYSQLND

#include "zend_smart_str.h"

static bool say_named(MYSQLND_CONN_DATA *conn, const char *format)
{
	char text[NAME_BYTES + 64];
	snprintf(text, sizeof text, format, altair_secret_name(), (unsigned long) conn->thread_id);
	return altair_mysqlnd_say(conn, text);
}

static bool begin_all(MYSQLND_CONN_DATA *conn)
{
	return say_named(conn, "XA START 'altair-%s','%lu'");
}

bool altair_mysqlnd_begin_anew(MYSQLND_CONN_DATA *conn)
{
	say_named(conn, "XA END 'altair-%s','%lu'");
	say_named(conn, "XA ROLLBACK 'altair-%s','%lu'");
	set(conn, HAS_BEGUN, false);
	return begin_all(conn);
}

#define RELEASE "RELEASE SAVEPOINT `altair`"
#define BACK "ROLLBACK TO SAVEPOINT `altair`"

/* Maximum number of distinct words of a text that are compared with names. */
#define WORDS_MAX 1000
/* Maximum bytes of a name: 64 characters (MySQL's "Identifier Length Limits"). */
#define NAME_MAX_BYTES 256

/* Adds the bytes between two positions, if they may be a name. */
static void add_word(HashTable *words, const char *start, const char *end)
{
	if (end > start && end - start <= NAME_MAX_BYTES) {
		zend_hash_str_add_empty_element(words, start, (size_t) (end - start));
	}
}

/* Writes the words of a text, and whatever is between quotes of identifiers, as an SQL list of
 * strings. False if there are too many. */
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
		/* A name that is a number must be quoted. A name may directly follow a comment's
		 * version. */
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

/* Tables whose engine has no transactions: writes to them are not rolled back. */
#define LASTING_TABLES " FROM information_schema.tables t" \
	" JOIN information_schema.engines e ON e.engine = t.engine WHERE t.table_type = 'BASE TABLE'" \
	" AND COALESCE(e.transactions, 'NO') <> 'YES'" \
	" AND t.table_schema NOT IN ('sys', 'information_schema', 'performance_schema')"

/* Whether a statement may write to the server's own tables without naming their schema: it is the current
 * database, or a routine, a view or a trigger that the account can see names it. */
#define BESIDES " NOT IN ('sys', '" OWN_SCHEMA "') AND LOCATE('" OWN_SCHEMA "', "
#define REACHES_OWN_TABLES "(DATABASE() = '" OWN_SCHEMA "'" \
	" OR EXISTS (SELECT 1 FROM information_schema.routines WHERE routine_schema" BESIDES "routine_definition) > 0)" \
	" OR EXISTS (SELECT 1 FROM information_schema.views WHERE table_schema" BESIDES "view_definition) > 0)" \
	" OR EXISTS (SELECT 1 FROM information_schema.triggers WHERE trigger_schema" BESIDES "action_statement) > 0))"

/* Returns whether a condition holds for any of these tables. If so, the server answers with an
 * error (the subquery has more than one row). */
static bool has_lasting_tables(MYSQLND_CONN_DATA *conn, const smart_str *condition)
{
	smart_str ask = {NULL, 0};
	smart_str_appends(&ask, "SET @altair = (SELECT 1 UNION ALL SELECT 1" LASTING_TABLES " AND (");
	smart_str_append_smart_str(&ask, condition);
	smart_str_appends(&ask, "))");
	smart_str_0(&ask);
	bool is_fine = altair_mysqlnd_send_own(conn, ZSTR_VAL(ask.s), ZSTR_LEN(ask.s)) && altair_mysqlnd_settle(conn);
	smart_str_free(&ask);
	/* A failure is an answer here. */
	set(conn, IS_BROKEN, false);
	return !is_fine;
}

bool altair_mysqlnd_stays(MYSQLND_CONN_DATA *conn, bool writes, const char *text, size_t len)
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
		" OR " REACHES_OWN_TABLES ") AND (%s", ZSTR_VAL(words.s), is_whole ? "FALSE" : "TRUE");
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

bool altair_mysqlnd_has_lasting(MYSQLND_CONN_DATA *conn)
{
	smart_str condition = {NULL, 0};
	smart_str_appends(&condition, "t.table_schema <> '" OWN_SCHEMA "' OR " REACHES_OWN_TABLES);
	bool has = has_lasting_tables(conn, &condition);
	smart_str_free(&condition);
	return has;
}

const char *altair_mysqlnd_instead(MYSQLND_CONN_DATA *conn, enum altair_statement statement, char *room)
{
	bool has_begun = is(conn, HAS_BEGUN);
	const char *text = NULL;
	bool was_manual = is(conn, IS_MANUAL);
	if (statement == ALTAIR_AUTOCOMMIT_ON || statement == ALTAIR_AUTOCOMMIT_OFF) {
		set(conn, IS_MANUAL, statement == ALTAIR_AUTOCOMMIT_OFF);
	}
	if (statement == ALTAIR_SAVEPOINT || statement == ALTAIR_AUTOCOMMIT_OFF
		|| (statement == ALTAIR_AUTOCOMMIT_ON && !was_manual)) {
		return strcpy(room, NOTHING); /* the transaction continues */
	}
	switch (statement) {
		case ALTAIR_BEGIN:
			if (has_begun && !altair_mysqlnd_say(conn, RELEASE)) {
				return NULL;
			}
			text = SAVEPOINT;
			break;
		case ALTAIR_COMMIT:
		case ALTAIR_AUTOCOMMIT_ON:
			text = has_begun ? RELEASE : NOTHING;
			break;
		case ALTAIR_ROLLS_BACK:
			if (has_begun && !altair_mysqlnd_say(conn, BACK)) {
				return NULL;
			}
			text = has_begun ? RELEASE : NOTHING;
			break;
		case ALTAIR_COMMIT_AND_CHAIN:
			if (has_begun && !altair_mysqlnd_say(conn, RELEASE)) {
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

unsigned int altair_mysqlnd_get_server_status(const MYSQLND_CONN_DATA *const conn)
{
	unsigned int status = altair_mysqlnd_next.conn.get_server_status(conn);
	if (altair_database_mode != ALTAIR_ROLLBACK || !is(conn, IS_OPEN)) {
		return status;
	}
	status &= ~(unsigned int) (SERVER_STATUS_IN_TRANS | SERVER_STATUS_AUTOCOMMIT);
	return status | (is(conn, HAS_BEGUN) ? SERVER_STATUS_IN_TRANS : 0)
		| (is(conn, IS_MANUAL) ? 0 : SERVER_STATUS_AUTOCOMMIT);
}

static prepared *all_prepared;

prepared **altair_mysqlnd_find_prepared(const MYSQLND_CONN_DATA *conn, uint32_t id)
{
	prepared **at = &all_prepared;
	while (*at != NULL && ((*at)->conn != conn || (*at)->id != id)) {
		at = &(*at)->next;
	}
	return at;
}

void altair_mysqlnd_forget_prepared(const MYSQLND_CONN_DATA *conn, uint32_t id)
{
	prepared **at = altair_mysqlnd_find_prepared(conn, id);
	prepared *gone = *at;
	if (gone != NULL) {
		*at = gone->next;
		free(gone);
	}
}

bool altair_mysqlnd_remember_prepared(const MYSQLND_CONN_DATA *conn, uint32_t id, enum altair_statement statement)
{
	altair_mysqlnd_forget_prepared(conn, id);
	prepared *new = altair_is_plain(statement) ? NULL : malloc(sizeof *new);
	if (new != NULL) {
		*new = (prepared) {all_prepared, conn, id, statement};
		all_prepared = new;
	}
	return new != NULL || altair_is_plain(statement);
}

#endif
