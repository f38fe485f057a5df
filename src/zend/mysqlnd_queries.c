/* MySQL: what the record of queries needs besides send_command(): the rows of results, and the
 * text of a prepared statement that is executed. */

#include "database_mysqlnd.h"

#ifdef ALTAIR_HAS_MYSQLND

/* Records the rows of a buffered result. */
static MYSQLND_RES *stored(MYSQLND_CONN_DATA *conn, MYSQLND_RES *result)
{
	if (result != NULL && result->stored_data != NULL) {
		altair_query_answers(&session_of(conn)->query, conn, result->stored_data->row_count);
	}
	return result;
}

MYSQLND_RES *altair_mysqlnd_store_result(MYSQLND_CONN_DATA *const conn)
{
	return stored(conn, altair_mysqlnd_next.conn.store_result(conn));
}

MYSQLND_RES *altair_mysqlnd_stmt_store_result(MYSQLND_STMT *const stmt)
{
	MYSQLND_RES *result = altair_mysqlnd_next.stmt.store_result(stmt);
	return result == NULL ? NULL : stored(stmt->data->conn, result);
}

MYSQLND_RES *altair_mysqlnd_stmt_get_result(MYSQLND_STMT *const stmt)
{
	MYSQLND_RES *result = altair_mysqlnd_next.stmt.get_result(stmt);
	return result == NULL ? NULL : stored(stmt->data->conn, result);
}

/* Records the rows of an unbuffered result that were read so far. */
void altair_mysqlnd_free_result_buffers(MYSQLND_RES *result)
{
	if (result->unbuf != NULL && result->conn != NULL) {
		altair_query_gives(&session_of(result->conn)->query, result->conn, result->unbuf->row_count);
	}
	altair_mysqlnd_next.result.free_result_buffers(result);
}

enum_func_status altair_mysqlnd_send_execute(
	MYSQLND_STMT *const stmt, const enum_mysqlnd_send_execute_type type, zval *read_cb, zval *err_cb)
{
	if (stmt->data != NULL && stmt->data->conn != NULL) {
		session_of(stmt->data->conn)->next = *text_of(stmt);
	}
	return altair_mysqlnd_next.stmt.send_execute(stmt, type, read_cb, err_cb);
}

#endif
