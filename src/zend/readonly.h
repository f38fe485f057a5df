/* What readonly.c and the files for each client share. */
#ifndef ALTAIR_READONLY_H
#define ALTAIR_READONLY_H

#include "confine.h"

/* The same numbers as `Dialect` in readonly.rs. */
enum altair_dialect {
	ALTAIR_MYSQL,
	ALTAIR_POSTGRESQL,
	ALTAIR_SQLITE,
	ALTAIR_SQLITE_IN_MEMORY,
};

/* What puts a PostgreSQL session into its read-only mode. It is what the session goes by when a
 * transaction begins. */
#define ALTAIR_POSTGRESQL_READ_ONLY "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"

/* Whether a text of statements is refused; throws where it is. */
bool altair_refuses_sql(enum altair_dialect dialect, const char *text, size_t len);
/* Refuses something else that would write. */
void altair_refuse_write(const char *what);
/* Notes that the database itself has refused a write. */
void altair_note_write(void);

/* Whether MySQL's clients are watched, all of which are mysqlnd's then. */
extern bool altair_mysqlnd_is_watched;

/* Of libpq's transactions: PQTRANS_IDLE and PQTRANS_ACTIVE (libpq-fe.h). */
#define TRANSACTION_IDLE 0
#define TRANSACTION_ACTIVE 1

/* Where a client cannot be watched, it opens nothing. */
void altair_refuse_unwatched(void);
void altair_refuse_constructor(const char *class_name);
void altair_refuse_functions(const char *one, const char *other);

/* Each has the sessions of one client made read-only, from now on. */
void altair_watch_mysqlnd(void);
void altair_watch_pdo(void);
void altair_watch_pgsql(void);

#endif
