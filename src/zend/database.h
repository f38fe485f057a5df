/* What database.c and the files for each client library share. */
#ifndef ALTAIR_DATABASE_H
#define ALTAIR_DATABASE_H

#include "confine.h"

/* The same numbers as in database.rs. */
enum altair_dialect {
	ALTAIR_MYSQL,
	ALTAIR_POSTGRESQL,
};

/* What sessions may do; the same numbers as in database.rs. */
enum altair_mode {
	ALTAIR_READ_ONLY,
	ALTAIR_ROLLBACK,
};

/* What a text is; the same numbers as in database.rs. */
enum altair_statement {
	ALTAIR_REFUSED,
	ALTAIR_SENT,
	ALTAIR_WRITES,
	ALTAIR_SETS,
	ALTAIR_BEGIN,
	ALTAIR_COMMIT,
	ALTAIR_COMMIT_AND_CHAIN,
	ALTAIR_ROLLS_BACK,
	ALTAIR_ROLLS_BACK_AND_CHAIN,
	ALTAIR_AUTOCOMMIT_ON,
	ALTAIR_AUTOCOMMIT_OFF,
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
	return statement == ALTAIR_SENT || statement == ALTAIR_WRITES || statement == ALTAIR_SETS;
}

/* Looks at a text. Where it is refused, that is noted, and `message` says it. */
enum altair_statement altair_look_at(
	enum altair_dialect dialect, altair_reading reading, const char *text, size_t len, char *message);
/* Notes that something is refused, and says it in `message`. */
void altair_refuse_database(const char *what, char *message);
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

/* ---- interpose.c ---- */

typedef struct {
	const char *name;
	void *with;
} altair_interposed;

/* Has all that is loaded, but for the library at `library` itself, call other functions in the place of
 * these. Gives how many calls it has found. */
size_t altair_interpose(const void *library, const altair_interposed *functions, size_t count);

#endif
