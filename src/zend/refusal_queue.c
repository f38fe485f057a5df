/* Reports refusals once each, in order of occurrence. Does not use PHP's memory, which may be
 * exhausted. */

#include "confine.h"

/* The number that a result shows. */
#define BLOCKED_MAX 20
/* More than a result shows, since the host leaves out some. */
#define OUTSIDE_MAX 32

static altair_refused_hook refused_hook;
static altair_outside_hook outside_hook;

static char blocked[BLOCKED_MAX][ALTAIR_WHAT_BYTES];
static size_t blocked_count;

static struct {
	char *path;
	bool write;
} outside[OUTSIDE_MAX];
static size_t outside_count;

void altair_on_refusal(altair_refused_hook refused, altair_outside_hook missed)
{
	refused_hook = refused;
	outside_hook = missed;
}

static altair_way_hook way_hook;

void altair_name_ways(altair_way_hook way)
{
	way_hook = way;
}

bool altair_way(const char *flag, char *way)
{
	if (way_hook != NULL) {
		return way_hook(flag, way, ALTAIR_WAY_BYTES);
	}
	snprintf(way, ALTAIR_WAY_BYTES, "%s", flag);
	return true;
}

void altair_clause(const char *flag, char *clause)
{
	char way[ALTAIR_WAY_BYTES];
	*clause = '\0';
	if (altair_way(flag, way)) {
		snprintf(clause, ALTAIR_CLAUSE_BYTES, "; %s allows it", way);
	}
}

void altair_forget_refusals(void)
{
	blocked_count = 0;
	while (outside_count > 0) {
		free(outside[--outside_count].path);
	}
}

void altair_blocked(const char *what, const char *lift)
{
	for (size_t i = 0; i < blocked_count; i++) {
		if (strcmp(blocked[i], what) == 0) {
			return;
		}
	}
	if (blocked_count < BLOCKED_MAX && refused_hook != NULL) {
		snprintf(blocked[blocked_count++], ALTAIR_WHAT_BYTES, "%s", what);
		refused_hook(what, lift);
	}
}

void altair_outside(const char *path, bool write, int error)
{
	for (size_t i = 0; i < outside_count; i++) {
		if (strcmp(outside[i].path, path) == 0 && outside[i].write == write) {
			return;
		}
	}
	char *kept = outside_count < OUTSIDE_MAX && outside_hook != NULL ? strdup(path) : NULL;
	if (kept != NULL) {
		outside[outside_count].path = kept;
		outside[outside_count++].write = write;
		outside_hook(path, write, error);
	}
}
