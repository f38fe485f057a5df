/* Notes unavailable files: those outside of the project, and those in it that cannot be written.
 * PHP's own file functions pass through here; their behaviour does not change. The host, which
 * sees all files, decides whether a guard is the reason. */

#include "confine.h"
#include "php_streams.h"
#include "php_open_temporary_file.h"
#include "ext/standard/php_fopen_wrappers.h"

#include <errno.h>

static const php_stream_wrapper_ops *plain;
static php_stream_wrapper_ops noting;
static char *root;
static size_t root_len;

/* ---- where a path leads ---- */

static bool is_below(const char *path, const char *directory, size_t len)
{
	while (len > 0 && directory[len - 1] == '/') {
		len--;
	}
	return strncmp(path, directory, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

static bool is_temporary(const char *path)
{
	const char *directory = php_get_temporary_directory();
	return directory != NULL && is_below(path, directory, strlen(directory));
}

/* Whether a path in the project goes through a link, which may lead out of it. */
static bool has_link(const char *path)
{
	char until[MAXPATHLEN];
	for (const char *end = path + root_len; *end != '\0';) {
		end += strcspn(end + 1, "/") + 1;
		zend_stat_t stat;
		snprintf(until, sizeof until, "%.*s", (int) (end - path), path);
		if (VCWD_LSTAT(until, &stat) != 0) {
			return false;
		}
		if (S_ISLNK(stat.st_mode)) {
			return true;
		}
	}
	return false;
}

/* Which paths may be the cause of a failure. */
enum where { OUTSIDE_ONLY, ANYWHERE };

/* Notes a path after an attempt has failed with `error`, if its location is the cause. Returns
 * whether. */
static bool note(const char *path, bool write, int error, enum where where)
{
	bool is_missing = error == ENOENT;
	bool is_refused = error == EACCES || error == EPERM || error == EROFS;
	/* A file of a user that the layer's file system cannot represent. */
	bool is_foreign = error == EOVERFLOW;
	if (!is_missing && !is_refused && !is_foreign) {
		return false;
	}
	char absolute[MAXPATHLEN];
	if (strncasecmp(path, "file://", sizeof "file://" - 1) == 0) {
		path += sizeof "file://" - 1;
	}
	/* A link whose target is not there cannot be resolved. */
	if (*path == '\0' || (expand_filepath(path, absolute) == NULL
			&& expand_filepath_with_mode(path, absolute, NULL, 0, CWD_EXPAND) == NULL)) {
		return false;
	}
	/* A run may do anything in its own directory for temporary files, but the host's files are
	 * missing there, and paths that are shown there are read-only. The host can tell whether it
	 * was one of its files. */
	bool in_project = is_below(absolute, root, root_len);
	if (!in_project && is_temporary(absolute) && (write ? error != EROFS : !is_missing)) {
		return false;
	}
	if (in_project && !write) {
		if (is_foreign || !has_link(absolute)) {
			return false;
		}
	} else if (in_project ? where == OUTSIDE_ONLY || is_missing : is_foreign) {
		return false;
	}
	/* open_basedir also fails with EPERM. */
	bool by_php = error == EPERM && php_check_open_basedir_ex(path, 0) != 0;
	altair_outside(absolute, write, by_php ? 0 : error);
	return true;
}

/* ---- the wrapper of plain files ---- */

static bool is_for_writing(const char *mode)
{
	return strpbrk(mode, "waxc+") != NULL;
}

static php_stream *open_file(php_stream_wrapper *wrapper, const char *path, const char *mode,
	int options, zend_string **opened, php_stream_context *context STREAMS_DC)
{
	errno = 0;
	php_stream *stream = plain->stream_opener(wrapper, path, mode, options, opened, context STREAMS_REL_CC);
	/* Class loaders and include paths try many places. */
	bool searches = (options & STREAM_OPEN_FOR_INCLUDE)
		|| ((options & USE_PATH) && !IS_ABSOLUTE_PATH(path, strlen(path)));
	if (stream == NULL && !searches) {
		int error = errno;
		note(path, is_for_writing(mode), error, ANYWHERE);
		errno = error;
	}
	return stream;
}

static php_stream *open_directory(php_stream_wrapper *wrapper, const char *path, const char *mode,
	int options, zend_string **opened, php_stream_context *context STREAMS_DC)
{
	errno = 0;
	php_stream *stream = plain->dir_opener(wrapper, path, mode, options, opened, context STREAMS_REL_CC);
	if (stream == NULL) {
		int error = errno;
		note(path, false, error, ANYWHERE);
		errno = error;
	}
	return stream;
}

/* Notes a failed change. PHP has already reported it. This leaves errno unchanged, unless it
 * called an error handler of the application; then the failure may go unnoted. */
static int noted(int done, const char *path)
{
	if (!done) {
		int error = errno;
		note(path, true, error, ANYWHERE);
		errno = error;
	}
	return done;
}

static int unlink_file(php_stream_wrapper *wrapper, const char *url, int options, php_stream_context *context)
{
	errno = 0;
	return noted(plain->unlink(wrapper, url, options, context), url);
}

/* Returns whether a rename was of a directory within the project. A layer cannot rename a
 * directory of the layer below: the kernel fails with EXDEV, and PHP then tries to copy it like
 * a file. */
static bool renames_directory(const char *from, const char *to)
{
	char absolute[MAXPATHLEN];
	zend_stat_t stat;
	return expand_filepath(to, absolute) != NULL && is_below(absolute, root, root_len)
		&& VCWD_LSTAT(absolute, &stat) != 0
		&& expand_filepath(from, absolute) != NULL && is_below(absolute, root, root_len)
		&& VCWD_LSTAT(absolute, &stat) == 0 && S_ISDIR(stat.st_mode)
		&& VCWD_ACCESS(absolute, W_OK) == 0;
}

static int rename_file(php_stream_wrapper *wrapper, const char *from, const char *to, int options, php_stream_context *context)
{
	errno = 0;
	int done = plain->rename(wrapper, from, to, options, context);
	if (!done && renames_directory(from, to)) {
		char absolute[MAXPATHLEN];
		if (expand_filepath(from, absolute) != NULL) {
			altair_outside(absolute, true, EXDEV);
		}
	} else if (!done) {
		int error = errno;
		bool leaves = note(from, true, error, OUTSIDE_ONLY);
		note(to, true, error, leaves ? OUTSIDE_ONLY : ANYWHERE);
		errno = error;
	}
	return done;
}

static int make_directory(php_stream_wrapper *wrapper, const char *url, int mode, int options, php_stream_context *context)
{
	errno = 0;
	return noted(plain->stream_mkdir(wrapper, url, mode, options, context), url);
}

static int remove_directory(php_stream_wrapper *wrapper, const char *url, int options, php_stream_context *context)
{
	errno = 0;
	return noted(plain->stream_rmdir(wrapper, url, options, context), url);
}

static int change_metadata(php_stream_wrapper *wrapper, const char *url, int option, void *value, php_stream_context *context)
{
	errno = 0;
	return noted(plain->stream_metadata(wrapper, url, option, value, context), url);
}

/* ---- functions that bypass the wrapper for plain files ---- */

static struct {
	const char *name;
	zif_handler next;
} changing[] = {
	{"touch", NULL}, {"chmod", NULL}, {"chown", NULL}, {"chgrp", NULL}, {"lchown", NULL}, {"lchgrp", NULL},
};

static ZEND_NAMED_FUNCTION(change_file)
{
	const char *name = ZSTR_VAL(execute_data->func->common.function_name);
	zval *path = ZEND_NUM_ARGS() >= 1 ? ZEND_CALL_ARG(execute_data, 1) : NULL;
	for (size_t i = 0; i < sizeof changing / sizeof *changing; i++) {
		if (strcmp(changing[i].name, name) == 0) {
			errno = 0;
			changing[i].next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
			break;
		}
	}
	if (Z_TYPE_P(return_value) == IS_FALSE && path != NULL && Z_TYPE_P(path) == IS_STRING) {
		noted(false, Z_STRVAL_P(path));
	}
}

void altair_note_outside(const char *project, size_t len)
{
	root = malloc(len + 1);
	if (root == NULL) {
		return;
	}
	memcpy(root, project, len);
	root[len] = '\0';
	root_len = len;
	plain = php_plain_files_wrapper.wops;
	noting = *plain;
	noting.stream_opener = open_file;
	noting.dir_opener = open_directory;
	noting.unlink = unlink_file;
	noting.rename = rename_file;
	noting.stream_mkdir = make_directory;
	noting.stream_rmdir = remove_directory;
	noting.stream_metadata = change_metadata;
	php_plain_files_wrapper.wops = &noting;
	for (size_t i = 0; i < sizeof changing / sizeof *changing; i++) {
		changing[i].next = altair_replace(changing[i].name, strlen(changing[i].name), change_file);
	}
}
