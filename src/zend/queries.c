/* The queries of a run. The clients' hooks report statements and answers here; the record itself
 * is kept by Rust (engine/queries). */

#include "database.h"

static altair_recorder recorder;
static bool records;

void altair_record_queries(const altair_recorder *own)
{
	recorder = *own;
	records = true;
}

altair_text altair_text_of(enum altair_dialect dialect, altair_reading reading, const char *text, size_t len)
{
	return records ? recorder.text((int) dialect, reading.plain_backslash, reading.whole_ascii, text, len) : 0;
}

void altair_query_begins(altair_query *query, altair_text text)
{
	*query = (altair_query) {text, text == 0 ? 0 : recorder.begins(text), false};
}

static void answer(altair_query *query, const void *session, uint64_t rows, bool has_failed)
{
	if (query->text != 0) {
		query->since = recorder.answers(session, query->text, rows, query->since, !query->is_answered, has_failed);
		query->is_answered = true;
	}
}

void altair_query_answers(altair_query *query, const void *session, uint64_t rows)
{
	answer(query, session, rows, false);
}

void altair_query_gives(altair_query *query, const void *session, uint64_t rows)
{
	query->since = 0;
	answer(query, session, rows, false);
	query->since = 0;
}

void altair_query_fails(altair_query *query, const void *session)
{
	answer(query, session, 0, true);
	query->text = 0;
}

void altair_query_undoes(const altair_query *query, const void *session)
{
	if (query->text != 0) {
		recorder.undoes(session, query->text);
	}
}

void altair_query_counted(const void *session, bool is_first, const char *table, uint64_t inserted,
	uint64_t updated, uint64_t deleted)
{
	if (records) {
		recorder.counted(session, is_first, table, inserted, updated, deleted);
	}
}

void altair_session_ends(const void *session)
{
	if (records) {
		recorder.ends(session);
	}
}
