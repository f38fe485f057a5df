/* The current position of the code. Allocates nothing; usable in a signal handler. */

#include "shim.h"
#include "zend_closures.h"
#include "zend_exceptions.h"

static uint32_t line_of(const zend_execute_data *ex)
{
	const zend_op_array *code = &ex->func->op_array;
	const zend_op *at = ex->opline;
	/* The virtual machine keeps the current instruction in a register, and writes it back only
	 * before an instruction that can throw. In a signal handler, this one may be stale, or be
	 * one of the engine's own instructions for exceptions. */
	if (at < code->opcodes || at >= code->opcodes + code->last) {
		at = EG(opline_before_exception);
		if (at < code->opcodes || at >= code->opcodes + code->last) {
			return code->line_start;
		}
	}
	return at->lineno;
}

static bool is_user_code(const zend_execute_data *ex)
{
	return ex->func != NULL && ZEND_USER_CODE(ex->func->type);
}

size_t altair_frames(altair_place *place, altair_frame *frames, size_t max)
{
	size_t count = 0;
	const zend_execute_data *ex = EG(current_execute_data);
	place->file = NULL;
	place->line = 0;
	for (; ex != NULL && count < max; ex = ex->prev_execute_data) {
		if (ex->func == NULL) {
			continue;
		}
		if (is_user_code(ex) && place->file == NULL) {
			place->file = ex->func->op_array.filename;
			place->line = line_of(ex);
		}
		const zend_execute_data *caller = ex->prev_execute_data;
		bool called_by_code = caller != NULL && is_user_code(caller);
		if (ex->func->common.function_name == NULL && !called_by_code) {
			continue; /* the snippet itself, or a file that boot requires */
		}
		altair_frame *frame = &frames[count++];
		frame->function_name = ex->func->common.function_name;
		frame->class_name = ex->func->common.scope ? ex->func->common.scope->name : NULL;
		frame->is_static = (ex->func->common.fn_flags & ZEND_ACC_STATIC) != 0;
		if (frame->function_name == NULL) {
			frame->class_name = NULL;
		}
		frame->file = called_by_code ? caller->func->op_array.filename : NULL;
		frame->line = called_by_code ? line_of(caller) : 0;
	}
	return count;
}
