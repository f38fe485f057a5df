/* Database sessions that only read.
 *
 * A session is put into the database's own read-only mode as it opens, and a statement that would
 * lift that mode, or that does harm which the mode does not stop, is not sent. The database decides
 * about the rest. What the statements mean is looked at in Rust (engine/sql); here is where they
 * pass: mysqlnd for MySQL (PDO and mysqli alike), the drivers of PDO, the functions of pgsql. */

#include "readonly.h"
#include "zend_exceptions.h"

static altair_vet_hook vet;

bool altair_refuses_sql(enum altair_dialect dialect, const char *text, size_t len)
{
	char what[ALTAIR_WHAT_BYTES];
	if (!vet((int) dialect, text, len, what, sizeof what)) {
		return false;
	}
	altair_refuse_write(what);
	return true;
}

void altair_refuse_write(const char *what)
{
	altair_blocked(what, "--writes");
	zend_throw_error(NULL, "%s is refused in a confined run, whose database sessions are read-only; --writes allows it", what);
}

void altair_note_write(void)
{
	altair_blocked("write to the database", "--writes");
}

void altair_read_only(altair_vet_hook hook)
{
	vet = hook;
	altair_watch_mysqlnd();
	altair_watch_pdo();
	altair_watch_pgsql();
}
