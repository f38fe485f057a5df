/* A run's own directories, where nothing can be mounted.
 *
 * A template and its forks have one for temporary files at the path of a descriptor, a link that
 * leads each of them to another directory. What boot computes with realpath() has to lead there,
 * too: Symfony's compiled container keeps the real path of its directory for logs. So realpath()
 * keeps the link.
 *
 * The mode of files cannot be changed, since Landlock does not govern that: the filter refuses it
 * for all files of the user. In a run's own directories a mode matters to nobody, and Laravel does
 * not boot if it cannot set one. */

#include "confine.h"

#include <errno.h>
#include <unistd.h>

#define OWN_MAX 2

static char *link_to_temp;
static char *own[OWN_MAX];
static size_t own_count;
static zif_handler next_realpath;
static zif_handler next_chmod;

static bool is_below(const char *path, const char *directory, size_t len)
{
	return strncmp(path, directory, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static ZEND_FUNCTION(keeping_realpath)
{
	next_realpath(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (Z_TYPE_P(return_value) != IS_STRING) {
		return;
	}
	char target[MAXPATHLEN];
	ssize_t len = readlink(link_to_temp, target, sizeof target);
	if (len > 0 && len < (ssize_t) sizeof target && is_below(Z_STRVAL_P(return_value), target, (size_t) len)) {
		const char *below = Z_STRVAL_P(return_value) + len;
		zend_string *kept = zend_string_concat2(
			link_to_temp, strlen(link_to_temp), below, Z_STRLEN_P(return_value) - (size_t) len);
		zval_ptr_dtor_str(return_value);
		RETVAL_NEW_STR(kept);
	}
}

static bool is_own(const char *path)
{
	char real[MAXPATHLEN], directory[MAXPATHLEN];
	if (VCWD_REALPATH(path, real) == NULL) {
		return false;
	}
	for (size_t i = 0; i < own_count; i++) {
		if (VCWD_REALPATH(own[i], directory) != NULL && is_below(real, directory, strlen(directory))) {
			return true;
		}
	}
	return false;
}

static ZEND_FUNCTION(lenient_chmod)
{
	const zval *path = ZEND_NUM_ARGS() == 2 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
	const zval *mode = ZEND_NUM_ARGS() == 2 ? ZEND_CALL_ARG(execute_data, 2) : NULL;
	if (path != NULL && Z_TYPE_P(path) == IS_STRING && Z_TYPE_P(mode) == IS_LONG
		&& strlen(Z_STRVAL_P(path)) == Z_STRLEN_P(path) && is_own(Z_STRVAL_P(path))
		&& (VCWD_CHMOD(Z_STRVAL_P(path), (mode_t) Z_LVAL_P(mode)) == 0 || errno == EPERM)) {
		RETURN_TRUE;
	}
	next_chmod(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

void altair_keep_link(const char *path, size_t len)
{
	link_to_temp = strndup(path, len);
	next_realpath = link_to_temp == NULL ? NULL : altair_replace(ZEND_STRL("realpath"), ZEND_FN(keeping_realpath));
}

void altair_own_directory(const char *path, size_t len)
{
	if (own_count < OWN_MAX && (own[own_count] = strndup(path, len)) != NULL && own_count++ == 0) {
		next_chmod = altair_replace(ZEND_STRL("chmod"), ZEND_FN(lenient_chmod));
	}
}
