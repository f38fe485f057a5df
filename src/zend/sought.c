/* Keeps the names of variables of the environment that PHP code looks for and that are not there. The
 * host knows which of them it has and has withheld. Does not use PHP's memory, which may be exhausted. */

#include "confine.h"

/* As many, and as long, as a host reads (channel/message.rs: SOUGHT_MAX, SOUGHT_NAME_MAX_BYTES). */
#define SOUGHT_MAX 256
#define NAME_BYTES 255

static char *sought[SOUGHT_MAX];
static size_t count;
/* How many of them the host knows. */
static size_t told;

static zif_handler next_getenv;

static void note(const char *name, size_t len)
{
	if (len == 0 || len > NAME_BYTES || count == SOUGHT_MAX || memchr(name, '\0', len) != NULL) {
		return;
	}
	for (size_t i = 0; i < count; i++) {
		if (strcmp(sought[i], name) == 0) {
			return;
		}
	}
	char *kept = strdup(name);
	if (kept != NULL) {
		sought[count++] = kept;
	}
}

static ZEND_NAMED_FUNCTION(noting_getenv)
{
	next_getenv(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (ZEND_NUM_ARGS() == 0 || Z_TYPE_P(return_value) != IS_FALSE) {
		return;
	}
	const zval *name = ZEND_CALL_ARG(execute_data, 1);
	ZVAL_DEREF(name);
	if (Z_TYPE_P(name) == IS_STRING) {
		note(Z_STRVAL_P(name), Z_STRLEN_P(name));
	}
}

void altair_note_sought(void)
{
	if (next_getenv == NULL) {
		next_getenv = altair_replace(ZEND_STRL("getenv"), noting_getenv);
	}
}

const char *altair_next_sought(void)
{
	return told < count ? sought[told++] : NULL;
}

void altair_forget_sought(void)
{
	while (count > 0) {
		free(sought[--count]);
	}
	told = 0;
}
