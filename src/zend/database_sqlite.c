/* Records the statements of SQLite, which the library itself traces for all of PHP's clients
 * (sqlite3.h, "SQL Trace Hook"). */

#include "database.h"
#include <dlfcn.h>

/* Events (sqlite3_trace_v2()). */
#define TRACE_STMT 0x01
#define TRACE_PROFILE 0x02
#define TRACE_ROW 0x04
#define TRACE_CLOSE 0x08
/* Result codes, the lowest byte of extended ones. */
#define SQLITE_OK 0
#define SQLITE_ROW 100
#define SQLITE_DONE 101

static int (*trace)(void *database, unsigned events, int (*)(unsigned, void *, void *, void *), void *context);
static void *(*database_of)(void *statement);
/* Rows that the last statement changed itself; and rows changed by all statements, with triggers
 * and cascades. */
static int (*changes)(void *database);
static int (*total_changes)(void *database);
static int (*error_code)(void *database);

/* A running statement. */
typedef struct running {
	struct running *next;
	void *statement;
	altair_query query;
	uint64_t rows;
	int changes; /* total before it */
} running;

static running *all;

static running **find(const void *statement)
{
	running **at = &all;
	while (*at != NULL && (*at)->statement != statement) {
		at = &(*at)->next;
	}
	return at;
}

static void begin(void *statement, const char *text)
{
	/* Statements of triggers are traced as comments. */
	altair_text known = text == NULL || strncmp(text, "--", 2) == 0
		? 0 : altair_text_of(ALTAIR_SQLITE, (altair_reading) {true, true}, text, strlen(text));
	running *new = known == 0 || *find(statement) != NULL ? NULL : calloc(1, sizeof *new);
	if (new != NULL) {
		new->next = all;
		new->statement = statement;
		new->changes = total_changes(database_of(statement));
		all = new;
		altair_query_begins(&new->query, known);
	}
}

static void end(void *statement)
{
	running **at = find(statement);
	running *gone = *at;
	if (gone == NULL) {
		return;
	}
	void *database = database_of(statement);
	int code = error_code(database) & 0xff;
	if (total_changes(database) != gone->changes) {
		altair_query_answers(&gone->query, database, (uint64_t) changes(database));
	} else if (gone->rows == 0 && code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) {
		altair_query_fails(&gone->query, database);
	} else {
		altair_query_answers(&gone->query, database, gone->rows);
	}
	*at = gone->next;
	free(gone);
}

static int tell(unsigned event, void *context, void *of, void *what)
{
	(void) context;
	running *one;
	switch (event) {
		case TRACE_STMT:
			begin(of, what);
			break;
		case TRACE_ROW:
			one = *find(of);
			if (one != NULL) {
				one->rows++;
			}
			break;
		case TRACE_PROFILE:
			end(of);
			break;
		case TRACE_CLOSE:
			altair_session_ends(of);
			break;
		default:
			break;
	}
	return 0;
}

/* Called for each new connection. */
static int opened(void *database, char **error, const void *api)
{
	(void) error, (void) api;
	trace(database, TRACE_STMT | TRACE_PROFILE | TRACE_ROW | TRACE_CLOSE, tell, NULL);
	return 0;
}

void altair_watch_sqlite(void)
{
	int (*each)(void (*)(void)) = (int (*)(void (*)(void))) dlsym(RTLD_DEFAULT, "sqlite3_auto_extension");
	*(void **) &trace = dlsym(RTLD_DEFAULT, "sqlite3_trace_v2");
	*(void **) &database_of = dlsym(RTLD_DEFAULT, "sqlite3_db_handle");
	*(void **) &changes = dlsym(RTLD_DEFAULT, "sqlite3_changes");
	*(void **) &total_changes = dlsym(RTLD_DEFAULT, "sqlite3_total_changes");
	*(void **) &error_code = dlsym(RTLD_DEFAULT, "sqlite3_errcode");
	if (each != NULL && trace != NULL && database_of != NULL && changes != NULL && total_changes != NULL
		&& error_code != NULL) {
		each((void (*)(void)) opened);
	}
}
