/* PostgreSQL: read-only sessions. The session has `default_transaction_read_only` on. The server
 * reports each change of it (from version 14 on), and it is set again before the next statement.
 * In a transaction of several statements, the server is asked for the mode before the first
 * statement that is not a `SET`. After this query the mode cannot be changed to writing any
 * more. */

#include "database_libpq.h"

#define READ_ONLY "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"

bool altair_libpq_only_reads(connection *server, session *session, enum altair_statement statement, char *message)
{
	int status = altair_libpq.transactionStatus(server);
	if (status == TRANSACTION_IDLE) {
		const char *on = altair_libpq.parameterStatus(server, "default_transaction_read_only");
		session->is_checked = false;
		if ((on != NULL && strcmp(on, "on") == 0) || altair_libpq_say(server, READ_ONLY)) {
			return true;
		}
		altair_refuse_database("a session that cannot be made read-only", message);
		return false;
	}
	/* A failed transaction can only end. */
	if (status != IN_TRANSACTION || session->is_checked || statement == ALTAIR_SETS) {
		return true;
	}
	result *said = altair_libpq.exec(server, "SELECT pg_catalog.current_setting('transaction_read_only')");
	bool reads = altair_libpq.resultStatus(said) == TUPLES_OK && strcmp(altair_libpq.getvalue(said, 0, 0), "on") == 0;
	altair_libpq.clear(said);
	session->is_checked = reads;
	if (!reads) {
		altair_refuse_write("a transaction that may write", message);
		altair_libpq_say(server, "ROLLBACK");
		altair_libpq_say(server, READ_ONLY);
	}
	return reads;
}
