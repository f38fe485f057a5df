/* The directory for temporary files of a template and its forks, where nothing can be mounted: the
 * path of a descriptor, a link that leads each of them to another directory. What boot computes
 * with realpath() has to lead there, too: Symfony's compiled container keeps the real path of its
 * directory for logs. So realpath() keeps the link. */

#include "confine.h"

#include <unistd.h>

static const char *temp;
static zif_handler next_realpath;

static ZEND_FUNCTION(keeping_realpath)
{
	next_realpath(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) != IS_STRING) {
		return;
	}
	char target[MAXPATHLEN];
	ssize_t len = readlink(temp, target, sizeof target);
	const char *real = Z_STRVAL_P(return_value);
	if (len <= 0 || len >= (ssize_t) sizeof target || Z_STRLEN_P(return_value) < (size_t) len
		|| memcmp(real, target, len) != 0 || (real[len] != '/' && real[len] != '\0')) {
		return;
	}
	zend_string *kept = zend_string_concat2(
		temp, strlen(temp), real + len, Z_STRLEN_P(return_value) - len);
	zval_ptr_dtor_str(return_value);
	RETVAL_NEW_STR(kept);
}

void altair_keep_temp_path(const char *path)
{
	temp = path;
	next_realpath = altair_replace(ZEND_STRL("realpath"), ZEND_FN(keeping_realpath));
}
