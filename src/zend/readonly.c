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

void altair_refuse_unwatched(void)
{
	zend_throw_error(NULL, "The database session cannot be made read-only, as it has to be in a confined run;"
		" --writes does without");
}

static ZEND_NAMED_FUNCTION(refuse_unwatched)
{
	(void) execute_data, (void) return_value;
	altair_refuse_unwatched();
}

void altair_refuse_functions(const char *one, const char *other)
{
	altair_replace(one, strlen(one), refuse_unwatched);
	altair_replace(other, strlen(other), refuse_unwatched);
}

void altair_refuse_constructor(const char *class_name)
{
	zend_class_entry *ce = zend_hash_str_find_ptr(CG(class_table), class_name, strlen(class_name));
	if (ce != NULL && ce->constructor != NULL && ce->constructor->type == ZEND_INTERNAL_FUNCTION) {
		ce->constructor->internal_function.handler = refuse_unwatched;
	}
}

void altair_read_only(altair_vet_hook hook)
{
	vet = hook;
	altair_watch_mysqlnd();
	altair_watch_pdo();
	altair_watch_pgsql();
}
