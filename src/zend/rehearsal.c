/* What every run begins with, done for nothing by a fork that waits for its task. The first use of a page costs it a
 * microsecond or two, and so does code that no cache of the processor holds. */

#include "shim.h"
#include "zend_alloc_sizes.h"
#include "zend_extensions.h"

/* Whether nobody sees it: an extension that looks at all code, or the memory limit, which it would exceed. */
static bool may_rehearse(void)
{
	const uint32_t looks = ZEND_EXTENSIONS_HAVE_OP_ARRAY_CTOR | ZEND_EXTENSIONS_HAVE_OP_ARRAY_DTOR
		| ZEND_EXTENSIONS_HAVE_OP_ARRAY_HANDLER;
	size_t room = (size_t) PG(memory_limit) - zend_memory_usage(true); /* -1 is no limit */
	return zend_ast_process == NULL && (zend_extension_flags & looks) == 0 && room >= 2 * ZEND_MM_CHUNK_SIZE;
}

void altair_rehearse(void)
{
	/* Names of one letter are interned from the start, and so are those of functions. No loop and no function: with
	 * the first one, the compiler allocates a stack that it keeps. */
	static const char text[] = "$a = [1, 'b' => $x]; if ($a) { echo $a['b'] . $x; } return strlen($x) + 1;";
	if (!may_rehearse()) {
		return;
	}
	zend_string *source = zend_string_init(text, sizeof(text) - 1, 0);
	/* Not zend_compile_string: behind it are those who look, and what refuses eval() in a run. */
	zend_op_array *code = compile_string(source, "rehearsal", ZEND_COMPILE_POSITION_AFTER_OPEN_TAG);
	zend_string_release(source);
	if (code != NULL) {
		destroy_op_array(code);
		efree(code);
	}
}
