/* Shared by database.c and the files for each client library. */
#ifndef ALTAIR_DATABASE_H
#define ALTAIR_DATABASE_H

#include "confine.h"

/* The numbers are those of database.rs. */
enum altair_dialect {
	ALTAIR_MYSQL,
	ALTAIR_POSTGRESQL,
	ALTAIR_SQLITE,
};

/* What sessions may do. The numbers are those of database.rs. */
enum altair_mode {
	ALTAIR_READ_ONLY,
	ALTAIR_ROLLBACK,
	ALTAIR_WRITE, /* everything that the account may; statements are recorded */
};

/* What a text is. The numbers are those of database.rs. */
enum altair_statement {
	ALTAIR_REFUSED,
	ALTAIR_SENT,
	ALTAIR_WRITES,
	ALTAIR_SETS,
	ALTAIR_SETS_CHARSET,
	ALTAIR_BEGIN,
	ALTAIR_COMMIT,
	ALTAIR_COMMIT_AND_CHAIN,
	ALTAIR_ROLLS_BACK,
	ALTAIR_ROLLS_BACK_AND_CHAIN,
	ALTAIR_AUTOCOMMIT_ON,
	ALTAIR_AUTOCOMMIT_OFF,
	ALTAIR_SAVEPOINT,
};

/* How the server reads a text, as far as is known: `Reading` in engine/sql. */
typedef struct {
	bool plain_backslash;
	bool whole_ascii;
} altair_reading;

extern enum altair_mode altair_database_mode;
/* Whether SQLite's sessions are read-only. To roll them back, the project's layer is enough. */
extern bool altair_keeps_sqlite;

/* Size of the buffer for the message of a refusal, which names the options that allow it. */
#define ALTAIR_MESSAGE_BYTES 400

/* Returns whether a statement is allowed and does not begin or end a transaction. */
static inline bool altair_is_plain(enum altair_statement statement)
{
	return statement > ALTAIR_REFUSED && statement < ALTAIR_BEGIN;
}

/* Classifies a text. If it is refused, notes that and writes `message`. */
enum altair_statement altair_look_at(
	enum altair_dialect dialect, altair_reading reading, const char *text, size_t len, char *message);
/* Notes a refusal, and writes `message`. */
void altair_refuse_database(const char *what, char *message);
/* The same for something that a rolled-back session may do. */
void altair_refuse_write(const char *what, char *message);
/* Notes that the database itself refused a write. */
void altair_note_write(void);
/* Returns whether SQLite may perform an action (sqlite3_set_authorizer()). If not, `what`
 * describes it (ALTAIR_WHAT_BYTES). */
bool altair_authorizes(bool in_memory, int action, const char *first, const char *second, char *what);
/* Returns whether anything but space follows the first semicolon, which may end a statement. */
bool altair_may_be_several(const char *text, size_t len);
/* A secret of letters and digits, the same for the life of the process. */
const char *altair_secret_name(void);

/* Refuse to open sessions of a client that cannot be watched. */
void altair_refuse_unwatched(void);
void altair_refuse_functions(const char *one, const char *other);
void altair_refuse_constructor(const char *class_name);

/* Whether MySQL's clients are watched, all of which then use mysqlnd. */
extern bool altair_mysqlnd_is_watched;
/* Whether PostgreSQL's clients are watched, all of which then use libpq. */
extern bool altair_libpq_is_watched;

/* Watch the sessions of one library that are opened from now on. */
void altair_watch_mysqlnd(void);
void altair_watch_libpq(void);
void altair_watch_pdo(void);

/* ---- queries.c ---- */

/* The number of a text in the record; 0 if it is not recorded. */
typedef uint64_t altair_text;

/* The current statement of a session. All zeros for none. */
typedef struct {
	altair_text text;
	uint64_t since; /* start of the time not yet recorded, in nanoseconds; 0 for none */
	bool is_answered;
} altair_query;

altair_text altair_text_of(enum altair_dialect dialect, altair_reading reading, const char *text, size_t len);
/* The statement is sent. */
void altair_query_begins(altair_query *query, altair_text text);
/* An answer, or a part of it, has arrived: the number of rows read or changed. */
void altair_query_answers(altair_query *query, const void *session, uint64_t rows);
/* Rows that the application has fetched one by one. This time is not the server's. */
void altair_query_gives(altair_query *query, const void *session, uint64_t rows);
void altair_query_fails(altair_query *query, const void *session);
/* A transaction was rolled back, perhaps by a COMMIT. Called before the answer. */
void altair_query_undoes(const altair_query *query, const void *session);
/* The server's own counts for a session, table by table. They replace those known before. */
void altair_query_counted(const void *session, bool is_first, const char *table, uint64_t inserted,
	uint64_t updated, uint64_t deleted);
void altair_session_ends(const void *session);
/* Traces the statements of SQLite databases that are opened from now on. */
void altair_watch_sqlite(void);

/* ---- interpose.c ---- */

typedef struct {
	const char *name;
	void *with;
} altair_interposed;

/* Redirects the calls of these functions in all loaded objects, except in the library that
 * contains the address `library`. Returns the number of slots replaced. */
size_t altair_interpose(const void *library, const altair_interposed *functions, size_t count);

#endif
