/* The current position of the code. Allocates nothing; usable in a signal handler. */

#include "shim.h"
#include "zend_closures.h"
#include "zend_exceptions.h"
#if PHP_VERSION_ID >= 80400
#include "zend_frameless_function.h"
#endif

static bool is_in(const zend_op_array *code, const zend_op *at)
{
	uintptr_t first = (uintptr_t) code->opcodes, address = (uintptr_t) at;
	return address >= first && address < first + (size_t) code->last * sizeof(zend_op)
		&& (address - first) % sizeof(zend_op) == 0;
}

/* The instruction that a frame is at; NULL where that is not known. `in_register` is what the engine's
 * register had, for the innermost frame of a run that a signal has interrupted. */
static const zend_op *instruction_of(const zend_execute_data *ex, const zend_op *in_register)
{
	const zend_op_array *code = &ex->func->op_array;
	/* The virtual machine keeps the current instruction in a register and writes it back only
	 * before what can throw: in a signal handler the one in memory may be that of an earlier statement.
	 * Where native code uses the register for something else, the one in memory was written before. */
	if (is_in(code, in_register)) {
		return in_register;
	}
	if (is_in(code, ex->opline)) {
		return ex->opline;
	}
	/* It stands on the engine's own instructions for exceptions. */
	return is_in(code, EG(opline_before_exception)) ? EG(opline_before_exception) : NULL;
}

static uint32_t line_of(const zend_execute_data *ex, const zend_op *at)
{
	return at != NULL ? at->lineno : ex->func->op_array.line_start;
}

/* The function that an instruction calls without a frame of its own, from PHP 8.4 on. */
static const zend_function *called_without_frame(const zend_op *at)
{
#if PHP_VERSION_ID >= 80400
	if (at != NULL && ZEND_OP_IS_FRAMELESS_ICALL(at->opcode)) {
		return ZEND_FLF_FUNC(at);
	}
#else
	(void) at;
#endif
	return NULL;
}

static bool is_user_code(const zend_execute_data *ex)
{
	return ex->func != NULL && ZEND_USER_CODE(ex->func->type);
}

size_t altair_frames(altair_place *place, altair_frame *frames, size_t max, const void *in_register)
{
	size_t count = 0;
	const zend_op *interrupted = in_register;
	const zend_execute_data *ex = EG(current_execute_data);
	place->file = NULL;
	place->line = 0;
	for (; ex != NULL && count < max; ex = ex->prev_execute_data, interrupted = NULL) {
		if (ex->func == NULL) {
			continue;
		}
		if (is_user_code(ex)) {
			const zend_op *at = instruction_of(ex, interrupted);
			if (place->file == NULL) {
				place->file = ex->func->op_array.filename;
				place->line = line_of(ex, at);
			}
			const zend_function *function = called_without_frame(at);
			if (function != NULL) {
				frames[count++] = (altair_frame) {
					.function_name = function->common.function_name,
					.file = ex->func->op_array.filename,
					.line = line_of(ex, at),
				};
				if (count == max) {
					break;
				}
			}
		}
		const zend_execute_data *caller = ex->prev_execute_data;
		bool called_by_code = caller != NULL && is_user_code(caller);
		const zend_op *call = called_by_code ? instruction_of(caller, NULL) : NULL;
		if (called_without_frame(call) != NULL) {
			called_by_code = false; /* by that function */
		}
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
		frame->line = called_by_code ? line_of(caller, call) : 0;
	}
	return count;
}
