/*
 * Stands in for functions that the inline functions of a later patch release's headers call, and that the
 * earlier releases of the same minor version do not have. build.rs gives them these names.
 *
 * The originals may be told to fail (`fallible`); nothing here does, so these end the request where there
 * is no memory, as the functions do that they call.
 */

#include "shim.h"
#include "zend_smart_str.h"

void *ZEND_FASTCALL altair_femalloc(size_t size ZEND_FILE_LINE_DC ZEND_FILE_LINE_ORIG_DC)
{
	return emalloc_rel(size);
}

void *ZEND_FASTCALL altair_fecalloc(size_t count, size_t size ZEND_FILE_LINE_DC ZEND_FILE_LINE_ORIG_DC)
{
	return ecalloc_rel(count, size);
}

void *ZEND_FASTCALL altair_ferealloc(void *memory, size_t size ZEND_FILE_LINE_DC ZEND_FILE_LINE_ORIG_DC)
{
	return erealloc_rel(memory, size);
}

void *ZEND_FASTCALL altair_ferealloc2(void *memory, size_t size, size_t kept ZEND_FILE_LINE_DC ZEND_FILE_LINE_ORIG_DC)
{
	return erealloc2_rel(memory, size, kept);
}

void *ZEND_FASTCALL altair_safe_femalloc(
	size_t count, size_t size, size_t more ZEND_FILE_LINE_DC ZEND_FILE_LINE_ORIG_DC)
{
	return safe_emalloc_rel(count, size, more);
}

void *ZEND_FASTCALL altair_safe_ferealloc(
	void *memory, size_t count, size_t size, size_t more ZEND_FILE_LINE_DC ZEND_FILE_LINE_ORIG_DC)
{
	return safe_erealloc_rel(memory, count, size, more);
}

bool ZEND_FASTCALL altair_smart_str_ferealloc(smart_str *str, size_t len, bool fallible)
{
	(void) fallible;
	smart_str_erealloc(str, len);
	return true;
}

bool ZEND_FASTCALL altair_smart_str_frealloc(smart_str *str, size_t len, bool fallible)
{
	(void) fallible;
	smart_str_realloc(str, len);
	return true;
}
