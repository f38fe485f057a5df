/* An isolated PHP: entering a closure, and leaving it in whatever way it ends. */

#include "confine.h"
#include "zend_exceptions.h"
#include "php_output.h"

/* ---- which code was entered ---- */

/* The instructions of the closures that were entered, by their address. They live as long as the process. */
static HashTable entered;
static bool has_entered;

static void know_code(const zend_function *function)
{
	if (!has_entered) {
		zend_hash_init(&entered, 8, NULL, NULL, 1);
		has_entered = true;
	}
	zend_hash_index_add_empty_element(&entered, (zend_ulong) (uintptr_t) function->op_array.opcodes);
}

bool altair_is_entered(const zend_execute_data *ex)
{
	return has_entered && ex->func != NULL && ZEND_USER_CODE(ex->func->type)
		&& zend_hash_index_exists(&entered, (zend_ulong) (uintptr_t) ex->func->op_array.opcodes);
}

/* ---- the engine's stack ---- */

/* A bailout leaves the frames of the code that it has cut short on the engine's stack. A process that goes on
 * has to give them back. */
static struct {
	zend_vm_stack stack;
	zval *top;
	zval *end;
} before;

void altair_mark_stack(void)
{
	before.stack = EG(vm_stack);
	before.top = EG(vm_stack_top);
	before.end = EG(vm_stack_end);
}

void altair_unwind_stack(void)
{
	while (EG(vm_stack) != before.stack) {
		zend_vm_stack page = EG(vm_stack);
		EG(vm_stack) = page->prev;
		efree(page);
	}
	EG(vm_stack_top) = before.top;
	EG(vm_stack_end) = before.end;
}

/* ---- entering ---- */

void altair_enter_closure(zval *closure, zval *arguments, zval *result)
{
	zend_fcall_info fci;
	zend_fcall_info_cache fcc;
	ZVAL_UNDEF(result);
	EG(exit_status) = 0; /* an earlier entry may have left its own, which exit('text') would not replace */
	if (zend_fcall_info_init(closure, 0, &fci, &fcc, NULL, NULL) != SUCCESS) {
		return;
	}
	know_code(fcc.function_handler);
	fci.retval = result;
	if (Z_TYPE_P(arguments) == IS_ARRAY) {
		zend_fcall_info_args(&fci, arguments);
	}
	zend_call_function(&fci, &fcc);
	zend_fcall_info_args_clear(&fci, true);
}

void altair_print_uncaught(zend_object *exception)
{
	GC_ADDREF(exception); /* given back by the call */
	zend_exception_error(exception, E_ERROR);
}

/* ---- ending a line ---- */

static void (*next_interrupt)(zend_execute_data *);
static void (*line_interrupted)(void);
static volatile sig_atomic_t has_to_end;

/* At the next instruction that looks for interrupts: as exit() does, so that no code of the line catches it. */
static void on_interrupt(zend_execute_data *execute_data)
{
	if (has_to_end) {
		has_to_end = 0;
		line_interrupted();
		if (EG(exception) == NULL) {
			zend_throw_unwind_exit();
		}
	} else if (next_interrupt) {
		next_interrupt(execute_data);
	}
}

void altair_watch_interrupts(void (*interrupted)(void))
{
	line_interrupted = interrupted;
	next_interrupt = zend_interrupt_function;
	zend_interrupt_function = on_interrupt;
}

void altair_end_line(void)
{
	has_to_end = 1;
	zend_atomic_bool_store_ex(&EG(vm_interrupt), true);
}

void altair_line_has_ended(void)
{
	has_to_end = 0;
}

/* ---- in the caller ---- */

void altair_write(const char *text, size_t len)
{
	php_output_write(text, len);
}

bool altair_may_use_memory(size_t *bytes)
{
	if (PG(memory_limit) <= 0) {
		return false;
	}
	size_t limit = (size_t) PG(memory_limit), used = zend_memory_usage(true);
	*bytes = used < limit ? limit - used : 0;
	return true;
}
