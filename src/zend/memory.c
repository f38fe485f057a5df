/* ini settings and memory. */

#include "shim.h"
#ifdef __GLIBC__
# include <malloc.h>
# include <unistd.h>
#endif
#include "SAPI.h"
#include "zend_ini.h"

bool altair_set_ini(const char *name, size_t name_len, const char *value, size_t value_len)
{
	zend_string *key = zend_string_init(name, name_len, 0);
	zend_string *text = zend_string_init(value, value_len, 0);
	/* Like the activation of a request: may also change system settings. */
	bool ok = zend_alter_ini_entry_ex(key, text, PHP_INI_SYSTEM, PHP_INI_STAGE_ACTIVATE, 1) == SUCCESS;
	zend_string_release(key);
	zend_string_release(text);
	return ok;
}

bool altair_set_memory_limit(size_t bytes)
{
	if (zend_set_memory_limit(bytes) != SUCCESS) {
		return false;
	}
	PG(memory_limit) = (zend_long) bytes;
	return true;
}

zend_long altair_ini_quantity(const char *text, size_t len)
{
	zend_string *value = zend_string_init(text, len, false), *error = NULL;
	zend_long quantity = zend_ini_parse_quantity(value, &error);
	if (error != NULL) {
		zend_string_release(error);
	}
	zend_string_release(value);
	return quantity;
}

void altair_ini_options(altair_ini_options_found *options)
{
	options->path = sapi_module.php_ini_path_override;
	options->entries = sapi_module.ini_entries;
	options->ignores_files = sapi_module.php_ini_ignore;
}

const char *altair_ini_directory(void)
{
	return PHP_CONFIG_FILE_PATH;
}

const char *altair_programs_directory(void)
{
	return PHP_BINDIR;
}

#ifdef __GLIBC__
# if __GLIBC_PREREQ(2, 33)
#  define HAS_MALLINFO2
# endif
#endif

#ifdef HAS_MALLINFO2
/* Allocates the free pieces between used ones and never frees them. Allocations of a fork then
 * come from the end of the heap, next to each other, and not from scattered pages, each of which
 * would have to be copied. */
static void fill_holes(void)
{
	/* In bytes. From half of the size from which the C library uses mmap (mallopt(3),
	 * M_MMAP_THRESHOLD) down to its smallest piece. `most` is the limit in total, since each
	 * piece dirties a page. */
	const size_t largest = 64 * 1024, cached = 1032, smallest = 24, most = 8 * 1024 * 1024;
	const char *end = (char *) sbrk(0) - mallinfo2().keepcost;
	size_t filled = 0;
	for (size_t size = largest; size >= smallest; size -= size > cached ? size / 8 : 16) {
		char *piece;
		while ((piece = malloc(size)) != NULL && piece < end && filled < most) {
			filled += size;
		}
		/* The last piece is from the end of the heap. It is not freed if the library would cache it
		 * for the next allocation of its size. */
		if (size > cached) {
			free(piece);
		}
	}
}
#else
static void fill_holes(void) {}
#endif

void altair_trim_memory(void)
{
	zend_mm_gc(zend_mm_get_heap());
#ifdef __GLIBC__
	malloc_trim(0);
#endif
	fill_holes();
}

size_t altair_memory_peak(void)
{
	return zend_memory_peak_usage(true);
}

size_t altair_memory_usage(void)
{
	return zend_memory_usage(true);
}
