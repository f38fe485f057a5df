/* MySQL: read-only sessions. `SET SESSION TRANSACTION READ ONLY` is sent directly after each
 * statement, and its answer is read before the next statement is sent. It restores the mode if a
 * function on the server has lifted it, without another round trip. In a transaction, the server
 * reports with each answer whether the transaction is read-only. */

#include "database_mysqlnd.h"

#ifdef ALTAIR_HAS_MYSQLND

/* SERVER_STATUS_IN_TRANS_READONLY, a flag of the status in each answer (mysql_com.h). */
#define IN_READ_ONLY_TRANSACTION 8192

bool altair_mysqlnd_is_read_only(MYSQLND_CONN_DATA *conn, MYSQLND_ERROR_INFO *error)
{
	unsigned int status = conn->upsert_status->server_status;
	if ((status & SERVER_STATUS_IN_TRANS) == 0 || (status & IN_READ_ONLY_TRANSACTION) != 0) {
		return true;
	}
	char message[ALTAIR_MESSAGE_BYTES];
	altair_refuse_write("a transaction that may write", message);
	if (altair_mysqlnd_say(conn, "ROLLBACK") && altair_mysqlnd_say(conn, READ_ONLY)) {
		conn->upsert_status->server_status &= ~(unsigned int) SERVER_STATUS_IN_TRANS;
	}
	fail(error, ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, SQLSTATE, message);
	return false;
}

#endif
