/* PostgreSQL: the text that is sent in place of the application's. */

#include "database_libpq.h"

bool altair_libpq_was_several;
bool altair_libpq_was_refused;

/* Escapes a string within a string: a quote becomes four. Backslashes are replaced, since their
 * meaning depends on a setting. */
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

/* PQSHOW_CONTEXT_NEVER */
#define NO_CONTEXT 0

const char *altair_libpq_refusal(connection *server, const char *message, char *room)
{
	char quoted[2 * ALTAIR_MESSAGE_BYTES];
	session *session = altair_libpq_session_of(server);
	char unused[ALTAIR_MESSAGE_BYTES];
	if (session != NULL && altair_database_mode == ALTAIR_ROLLBACK) {
		/* Like any failing statement outside of a transaction, it rolls back only itself. */
		altair_libpq_can_be_undone(server, session, unused);
	}
	if (session != NULL && !session->is_plain) {
		session->is_plain = true;
		session->visibility = altair_libpq.setErrorContextVisibility(server, NO_CONTEXT);
	}
	altair_libpq_was_refused = true;
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
	const char *plain = altair_libpq.parameterStatus(server, "standard_conforming_strings");
	const char *encoding = altair_libpq.parameterStatus(server, "client_encoding");
	bool whole = encoding != NULL;
	for (size_t i = 0; whole && i < sizeof shifting / sizeof *shifting; i++) {
		whole = strcasecmp(encoding, shifting[i]) != 0;
	}
	return (altair_reading) {plain != NULL && strcmp(plain, "on") == 0, whole};
}

session *altair_libpq_at_rest(connection *server)
{
	session *session = altair_libpq.status(server) == CONNECTION_OK ? altair_libpq_session_of(server) : NULL;
	altair_libpq_was_refused = altair_libpq_was_several = false;
	if (session == NULL || altair_database_mode == ALTAIR_WRITE) {
		return session;
	}
	altair_libpq_come_to_rest(server);
	if (session->is_plain) {
		session->is_plain = false;
		altair_libpq.setErrorContextVisibility(server, session->visibility);
	}
	return session;
}

/* The text to send if there is no session. */
static const char *without_session(connection *server, const char *text, char *room)
{
	char message[ALTAIR_MESSAGE_BYTES];
	if (text == NULL || altair_libpq.status(server) != CONNECTION_OK) {
		return text;
	}
	altair_refuse_database("a session for which there is no memory", message);
	return altair_libpq_refusal(server, message, room);
}

/* The text to send for a statement: `text`, which is NULL for an unchanged prepared statement, or
 * another. */
static const char *executed(
	connection *server, session *session, const char *text, enum altair_statement statement, char *room)
{
	char message[ALTAIR_MESSAGE_BYTES];
	bool is_plain = altair_is_plain(statement);
	if (altair_database_mode == ALTAIR_WRITE) {
		return text;
	}
	if (altair_database_mode == ALTAIR_READ_ONLY) {
		if (!altair_libpq_only_reads(server, session, statement, message)) {
			return altair_libpq_refusal(server, message, room);
		}
		/* The next transaction may have another mode. */
		session->is_checked = session->is_checked && is_plain;
		return text;
	}
	if (!altair_libpq_can_be_undone(server, session, message)) {
		return altair_libpq_refusal(server, message, room);
	}
	return is_plain ? text : altair_libpq_instead(server, session, statement);
}

/* Classifies a text. If it is refused, `message` says why. */
static enum altair_statement look_at(
	connection *server, const char *text, altair_text *asked, char *message)
{
	size_t len = strlen(text);
	altair_reading reading = reading_of(server);
	*asked = altair_text_of(ALTAIR_POSTGRESQL, reading, text, len);
	if (altair_database_mode == ALTAIR_WRITE) {
		return ALTAIR_SENT;
	}
	altair_libpq_was_several = altair_may_be_several(text, len);
	return altair_look_at(ALTAIR_POSTGRESQL, reading, text, len, message);
}

const char *altair_libpq_sent_for(connection *server, const char *text, char *room)
{
	char message[ALTAIR_MESSAGE_BYTES];
	altair_text asked;
	session *session = text == NULL ? NULL : altair_libpq_at_rest(server);
	if (session == NULL) {
		return without_session(server, text, room);
	}
	enum altair_statement statement = look_at(server, text, &asked, message);
	const char *sent = statement == ALTAIR_REFUSED
		? altair_libpq_refusal(server, message, room) : executed(server, session, text, statement, room);
	altair_query_begins(&session->query, altair_libpq_was_refused ? 0 : asked);
	return sent;
}

const char *altair_libpq_prepared_for(connection *server, const char *name, const char *text, char *room)
{
	char message[ALTAIR_MESSAGE_BYTES];
	altair_text asked;
	session *session = text == NULL || name == NULL ? NULL : altair_libpq_at_rest(server);
	if (session == NULL) {
		return without_session(server, text, room);
	}
	session->query = (altair_query) {0};
	enum altair_statement statement = look_at(server, text, &asked, message);
	if (statement == ALTAIR_REFUSED || !altair_libpq_remember(session, name, text, asked, statement)) {
		return altair_libpq_refusal(server, message, room);
	}
	/* An error while preparing aborts the transaction, too. */
	if (altair_database_mode == ALTAIR_ROLLBACK && !altair_libpq_can_be_undone(server, session, message)) {
		return altair_libpq_refusal(server, message, room);
	}
	return altair_libpq_is_replaced(altair_libpq_find_prepared(session, name)) ? NOTHING : text;
}

const char *altair_libpq_sent_for_prepared(connection *server, const char *name, char *room)
{
	session *session = altair_libpq_at_rest(server);
	if (session == NULL) {
		return without_session(server, altair_libpq.status(server) == CONNECTION_OK ? "" : NULL, room);
	}
	const prepared *known = altair_libpq_find_prepared(session, name == NULL ? "" : name);
	const char *sent = executed(server, session, altair_libpq_is_replaced(known) ? known->text : NULL,
		known == NULL ? ALTAIR_SENT : known->statement, room);
	altair_query_begins(&session->query, known == NULL || altair_libpq_was_refused ? 0 : known->asked);
	return sent;
}
