/* What database.c and the files for each client library share. */
#ifndef ALTAIR_DATABASE_H
#define ALTAIR_DATABASE_H

#include "confine.h"

/* The same numbers as in database.rs. */
enum altair_dialect {
	ALTAIR_MYSQL,
	ALTAIR_POSTGRESQL,
	ALTAIR_SQLITE,
};

/* What sessions may do; the same numbers as in database.rs. */
enum altair_mode {
	ALTAIR_READ_ONLY,
	ALTAIR_ROLLBACK,
	ALTAIR_WRITE, /* all that the account may; statements are recorded */
};

/* What a text is; the same numbers as in database.rs. */
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

/* How the server reads a text, as far as it tells: `Reading` in engine/sql. */
typedef struct {
	bool plain_backslash;
	bool whole_ascii;
} altair_reading;

extern enum altair_mode altair_database_mode;
/* Whether SQLite's sessions only read. Where they are rolled back, the project's layer does it. */
extern bool altair_keeps_sqlite;

/* What a refusal says, with the switches that allow what is refused. */
#define ALTAIR_MESSAGE_BYTES 400

/* Whether it is about no transaction. */
static inline bool altair_is_plain(enum altair_statement statement)
{
	return statement > ALTAIR_REFUSED && statement < ALTAIR_BEGIN;
}

/* Looks at a text. Where it is refused, that is noted, and `message` says it. */
enum altair_statement altair_look_at(
	enum altair_dialect dialect, altair_reading reading, const char *text, size_t len, char *message);
/* Notes that something is refused, and says it in `message`. */
void altair_refuse_database(const char *what, char *message);
/* The same for what a session may do that is rolled back. */
void altair_refuse_write(const char *what, char *message);
/* Notes that the database itself has refused a write. */
void altair_note_write(void);
/* Whether SQLite may do something (sqlite3_set_authorizer()); where not, what it would have done, in
 * ALTAIR_WHAT_BYTES. */
bool altair_authorizes(bool in_memory, int action, const char *first, const char *second, char *what);
/* Whether there is anything behind what may end a statement. */
bool altair_may_be_several(const char *text, size_t len);
/* Text that nobody can guess: letters and digits, the same as long as the process lives. */
const char *altair_secret_name(void);

/* Where a client cannot be watched, it opens nothing. */
void altair_refuse_unwatched(void);
void altair_refuse_functions(const char *one, const char *other);
void altair_refuse_constructor(const char *class_name);

/* Whether MySQL's clients are watched, all of which are mysqlnd's then. */
extern bool altair_mysqlnd_is_watched;
/* Whether PostgreSQL's clients are, all of which are libpq's then. */
extern bool altair_libpq_is_watched;

/* Each has the sessions of one library watched, from now on. */
void altair_watch_mysqlnd(void);
void altair_watch_libpq(void);
void altair_watch_pdo(void);

/* ---- queries.c ---- */

/* What is known of a text; 0 where nothing is recorded. */
typedef uint64_t altair_text;

/* A statement that is under way in a session. Zeros for none. */
typedef struct {
	altair_text text;
	uint64_t since; /* when the time began that is not told yet, in nanoseconds; 0 for none */
	bool is_answered;
} altair_query;

altair_text altair_text_of(enum altair_dialect dialect, altair_reading reading, const char *text, size_t len);
/* It is sent. */
void altair_query_begins(altair_query *query, altair_text text);
/* An answer is there, or a part of it: so many rows that were read or changed. */
void altair_query_answers(altair_query *query, const void *session, uint64_t rows);
/* Rows that the application has taken from an answer as they came, which is no time of the server's. */
void altair_query_gives(altair_query *query, const void *session, uint64_t rows);
void altair_query_fails(altair_query *query, const void *session);
/* A transaction was rolled back, and may have been to be committed. Before the answer. */
void altair_query_undoes(const altair_query *query, const void *session);
/* What the server itself counts of a session, table by table: it takes the place of what was known. */
void altair_query_counted(const void *session, bool is_first, const char *table, uint64_t inserted,
	uint64_t updated, uint64_t deleted);
void altair_session_ends(const void *session);
/* Has SQLite tell of statements, in databases that are opened from now on. */
void altair_watch_sqlite(void);

/* ---- interpose.c ---- */

typedef struct {
	const char *name;
	void *with;
} altair_interposed;

/* Has all that is loaded, but for the library at `library` itself, call other functions in the place of
 * these. Gives how many calls it has found. */
size_t altair_interpose(const void *library, const altair_interposed *functions, size_t count);

#endif
