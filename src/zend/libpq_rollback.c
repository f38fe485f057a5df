/* PostgreSQL: rolled-back sessions. Such a session is in one outer transaction from its first
 * statement to its end. The application's own transactions are savepoints in it, a statement
 * outside of them has a savepoint of its own, and clients see the transaction status that they
 * would see without it. */

#include "database_libpq.h"

/* Savepoints: of the application's transaction, of a single statement, and for a check of
 * constraints. */
#define POINT "altair_transaction"
#define POINT_OF_ONE "altair_statement"
#define POINT_OF_LOOK "altair_constraints"

bool altair_libpq_can_be_undone(connection *server, session *session, char *message)
{
	int status = altair_libpq.transactionStatus(server);
	if (status == TRANSACTION_IDLE) {
		session->is_open = session->has_begun = session->has_point = false;
		/* A standby refuses READ WRITE; it reports writes itself. */
		session->is_open = altair_libpq_say(server, "BEGIN READ WRITE") || altair_libpq_say(server, "BEGIN");
	} else if (status == IN_ERROR && !session->has_begun) {
		/* A single statement has failed. */
		session->is_open = session->has_point && altair_libpq_say(server, "ROLLBACK TO SAVEPOINT " POINT_OF_ONE);
	}
	if (!session->is_open) {
		altair_refuse_database("a session that has ended its transaction", message);
		return false;
	}
	if (session->has_begun) {
		return true;
	}
	session->has_point = altair_libpq_say(server, session->has_point
		? "RELEASE SAVEPOINT " POINT_OF_ONE "; SAVEPOINT " POINT_OF_ONE : "SAVEPOINT " POINT_OF_ONE);
	return session->has_point;
}

#define CHECK_CONSTRAINTS "SET CONSTRAINTS ALL IMMEDIATE"

/* Returns whether the deferred constraints hold. They stay deferred. */
static bool holds(connection *server)
{
	bool holds = altair_libpq_say(server, "SAVEPOINT " POINT_OF_LOOK) && altair_libpq_say(server, CHECK_CONSTRAINTS);
	return altair_libpq_say(server, "ROLLBACK TO SAVEPOINT " POINT_OF_LOOK) && holds;
}

const char *altair_libpq_instead(connection *server, session *session, enum altair_statement statement)
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
	/* COMMIT also rolls back a failed transaction. */
	const char *text = "ROLLBACK TO SAVEPOINT " POINT;
	if (commits && altair_libpq.transactionStatus(server) != IN_ERROR) {
		if (!holds(server)) {
			return CHECK_CONSTRAINTS; /* fails again, as COMMIT would */
		}
		text = "RELEASE SAVEPOINT " POINT;
	}
	if (chains) {
		session->has_begun = altair_libpq_say(server, text);
		text = "SAVEPOINT " POINT;
	}
	return text;
}

int altair_libpq_transactionStatus(const connection *server)
{
	int status = altair_libpq.transactionStatus(server);
	if (altair_database_mode != ALTAIR_ROLLBACK || (status != IN_TRANSACTION && status != IN_ERROR)) {
		return status;
	}
	const session *session = altair_libpq_session_of(server);
	return session != NULL && session->has_begun ? status : TRANSACTION_IDLE;
}
