/* PostgreSQL: the record of queries. */

#include "database_libpq.h"

void altair_libpq_note(connection *server, result *answer, bool has_failed)
{
	session *session = altair_libpq_session_of(server);
	altair_query *query = session == NULL ? NULL : &session->query;
	int status = altair_libpq.resultStatus(answer);
	if (query == NULL || query->text == 0 || status == COPY_IN || status == COPY_OUT || status == COPY_BOTH) {
		return;
	}
	if (has_failed) {
		altair_query_fails(query, server);
		return;
	}
	const char *changed = altair_libpq.cmdTuples(answer);
	uint64_t rows = changed != NULL && *changed != '\0'
		? strtoull(changed, NULL, 10) : (uint64_t) altair_libpq.ntuples(answer);
	if (status == SINGLE_TUPLE && query->is_answered) {
		altair_query_gives(query, server, rows);
		return;
	}
	if (strcmp(altair_libpq.cmdStatus(answer), "ROLLBACK") == 0) {
		altair_query_undoes(query, server);
	}
	altair_query_answers(query, server, rows);
}

void altair_libpq_count(const session *session)
{
	connection *server = (connection *) session->of;
	if (altair_database_mode != ALTAIR_ROLLBACK || !session->is_open
		|| altair_libpq.transactionStatus(server) != IN_TRANSACTION) {
		return;
	}
	result *said = altair_libpq.exec(server,
		"SELECT CASE schemaname WHEN 'public' THEN '' ELSE schemaname || '.' END || relname,"
		" n_tup_ins, n_tup_upd, n_tup_del FROM pg_catalog.pg_stat_xact_user_tables"
		" WHERE n_tup_ins + n_tup_upd + n_tup_del > 0 ORDER BY 1 LIMIT 1000");
	for (int row = 0; row < altair_libpq.ntuples(said); row++) {
		uint64_t rows[3];
		for (int column = 0; column < 3; column++) {
			rows[column] = strtoull(altair_libpq.getvalue(said, row, column + 1), NULL, 10);
		}
		altair_query_counted(server, row == 0, altair_libpq.getvalue(said, row, 0), rows[0], rows[1], rows[2]);
	}
	altair_libpq.clear(said);
}

void altair_count_changes(void)
{
	for (const session *one = altair_libpq_sessions; one != NULL; one = one->next) {
		altair_libpq_count(one);
	}
}
