/* PostgreSQL: sessions, and the statements that we send in them ourselves. */

#include "database_libpq.h"

session *altair_libpq_sessions;

static void free_prepared(zval *entry)
{
	free(Z_PTR_P(entry));
}

session *altair_libpq_session_of(const connection *server)
{
	for (session *one = altair_libpq_sessions; one != NULL; one = one->next) {
		if (one->of == server) {
			return one;
		}
	}
	session *new = calloc(1, sizeof *new);
	if (new != NULL) {
		new->of = server;
		new->next = altair_libpq_sessions;
		zend_hash_init(&new->prepared, 8, NULL, free_prepared, true);
		altair_libpq_sessions = new;
	}
	return new;
}

const prepared *altair_libpq_find_prepared(const session *session, const char *name)
{
	return zend_hash_str_find_ptr(&session->prepared, name, strlen(name));
}

bool altair_libpq_is_replaced(const prepared *known)
{
	return known != NULL && known->statement != ALTAIR_SENT && known->statement != ALTAIR_WRITES;
}

bool altair_libpq_remember(
	session *session, const char *name, const char *text, altair_text asked, enum altair_statement statement)
{
	prepared about = {asked, statement};
	size_t bytes = altair_libpq_is_replaced(&about) ? strlen(text) + 1 : 0;
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

bool altair_libpq_say(connection *server, const char *text)
{
	result *said = altair_libpq.exec(server, text);
	int status = altair_libpq.resultStatus(said);
	altair_libpq.clear(said);
	return status == COMMAND_OK || status == TUPLES_OK;
}

void altair_libpq_come_to_rest(connection *server)
{
	while (altair_libpq.transactionStatus(server) == TRANSACTION_ACTIVE) {
		result *left = altair_libpq.getResult(server);
		int status = left == NULL ? COPY_OUT : altair_libpq.resultStatus(left);
		altair_libpq.clear(left);
		if (status == COPY_OUT || status == COPY_IN || status == COPY_BOTH) {
			altair_libpq_say(server, "");
			return;
		}
	}
}
