/* Which closures can be entry points of a runtime: their types, and their instructions. */

#include "closure.h"
#include "zend_closures.h"

const zend_op_array *altair_closure_code(const zend_object *closure)
{
	const zend_function *function = zend_get_closure_method_def((zend_object *) closure);
	if (function->type != ZEND_USER_FUNCTION || !(function->common.fn_flags & ZEND_ACC_CLOSURE)
		|| (function->common.fn_flags & ZEND_ACC_FAKE_CLOSURE)) {
		return NULL;
	}
	return &function->op_array;
}

/* ---- types ---- */

/* `iterable` is `Traversable|array` with a mark, since PHP 8.2. */
static bool is_iterable_part(const zend_type *type)
{
	return ZEND_TYPE_IS_ITERABLE_FALLBACK(*type) && ZEND_TYPE_HAS_NAME(*type)
		&& zend_string_equals_literal_ci(ZEND_TYPE_NAME(*type), "Traversable");
}

static bool accepts_object(const zend_type *type)
{
	uint32_t mask = ZEND_TYPE_PURE_MASK(*type);
	if (ZEND_TYPE_HAS_NAME(*type)) {
		return !is_iterable_part(type);
	}
	if (ZEND_TYPE_HAS_LIST(*type)) {
		const zend_type *part;
		ZEND_TYPE_LIST_FOREACH(ZEND_TYPE_LIST(*type), part) {
			if (accepts_object(part)) {
				return true;
			}
		} ZEND_TYPE_LIST_FOREACH_END();
	}
	return mask != MAY_BE_ANY && (mask & (MAY_BE_OBJECT | MAY_BE_STATIC)) != 0;
}

enum altair_type_rule altair_closure_types(const zend_object *closure, uint32_t *argument)
{
	const zend_function *function = zend_get_closure_method_def((zend_object *) closure);
	const zend_arg_info *args = function->common.arg_info;
	*argument = 0;
	if ((function->common.fn_flags & ZEND_ACC_HAS_RETURN_TYPE) && accepts_object(&args[-1].type)) {
		return ALTAIR_RETURNS_OBJECT;
	}
	if (function->common.fn_flags & ZEND_ACC_RETURN_REFERENCE) {
		return ALTAIR_RETURNS_REFERENCE;
	}
	uint32_t count = function->common.num_args + ((function->common.fn_flags & ZEND_ACC_VARIADIC) != 0);
	for (uint32_t i = 0; i < count; i++) {
		*argument = i + 1;
		if (accepts_object(&args[i].type)) {
			return ALTAIR_TAKES_OBJECT;
		}
		if (ZEND_ARG_SEND_MODE(&args[i]) & ZEND_SEND_BY_REF) {
			return ALTAIR_TAKES_REFERENCE;
		}
	}
	*argument = 0;
	return ALTAIR_TYPES_ALLOWED;
}

/* ---- instructions ---- */

/* Whether an unused operand means the class around the code. */
static bool is_own_class(uint8_t type, znode_op operand, uint32_t flags)
{
	uint32_t fetch = operand.num & ZEND_FETCH_CLASS_MASK;
	return type == IS_UNUSED && (flags & ZEND_VM_OP_MASK) == ZEND_VM_OP_CLASS_FETCH
		&& (fetch == ZEND_FETCH_CLASS_SELF || fetch == ZEND_FETCH_CLASS_PARENT || fetch == ZEND_FETCH_CLASS_STATIC);
}

static bool is_this(uint8_t type, uint32_t flags)
{
	return type == IS_UNUSED && (flags & ZEND_VM_OP_MASK) == ZEND_VM_OP_THIS;
}

static bool names_own_class(const zend_ast *name)
{
	if (name == NULL || name->kind != ZEND_AST_ZVAL || Z_TYPE_P(zend_ast_get_zval((zend_ast *) name)) != IS_STRING) {
		return false;
	}
	const zend_string *text = Z_STR_P(zend_ast_get_zval((zend_ast *) name));
	return zend_string_equals_literal_ci(text, "self") || zend_string_equals_literal_ci(text, "parent")
		|| zend_string_equals_literal_ci(text, "static");
}

/* What an expression that is evaluated later means by itself: defaults, initial values. */
static enum altair_closure_rule expression_rule(const zend_ast *ast)
{
	if (ast == NULL || ast->kind == ZEND_AST_ZVAL || ast->kind == ZEND_AST_CONSTANT) {
		return ALTAIR_ALLOWED;
	}
	if (ast->kind == ZEND_AST_CONSTANT_CLASS) {
		return ALTAIR_LEXICAL; /* `__CLASS__` where the class is not known yet */
	}
#if PHP_VERSION_ID >= 80500
	if (ast->kind == ZEND_AST_OP_ARRAY) {
		return ALTAIR_FUNCTION;
	}
#endif
	if (ast->kind == ZEND_AST_CLASS_NAME
		|| ((ast->kind == ZEND_AST_CLASS_CONST || ast->kind == ZEND_AST_NEW) && names_own_class(ast->child[0]))) {
		return ALTAIR_LEXICAL;
	}
	if (zend_ast_is_special((zend_ast *) ast)) {
		return ALTAIR_ALLOWED;
	}
	bool is_list = zend_ast_is_list((zend_ast *) ast);
	zend_ast *const *child = is_list ? zend_ast_get_list((zend_ast *) ast)->child : ast->child;
	uint32_t count = is_list ? zend_ast_get_list((zend_ast *) ast)->children : zend_ast_get_num_children((zend_ast *) ast);
	for (uint32_t i = 0; i < count; i++) {
		enum altair_closure_rule rule = expression_rule(child[i]);
		if (rule != ALTAIR_ALLOWED) {
			return rule;
		}
	}
	return ALTAIR_ALLOWED;
}

static enum altair_closure_rule value_rule(const zval *value)
{
	if (Z_TYPE_P(value) == IS_CONSTANT_AST) {
		return expression_rule(Z_ASTVAL_P(value));
	}
	if (Z_TYPE_P(value) == IS_ARRAY) {
		zval *item;
		ZEND_HASH_FOREACH_VAL(Z_ARRVAL_P(value), item) {
			enum altair_closure_rule rule = value_rule(item);
			if (rule != ALTAIR_ALLOWED) {
				return rule;
			}
		} ZEND_HASH_FOREACH_END();
	}
	return ALTAIR_ALLOWED;
}

/* Whether an instruction takes a variable of the code around. An arrow function says so for every variable that it
 * names; one that did not exist there was not taken. */
static bool captures(const zend_op *op, const zend_object *closure)
{
	if (op->extended_value & ZEND_BIND_EXPLICIT) {
		return true;
	}
	if (!(op->extended_value & ZEND_BIND_IMPLICIT)) {
		return false;
	}
	if (closure == NULL) {
		return false; /* the closure itself was looked at, or will be */
	}
	const zend_op_array *code = altair_closure_code(closure);
	const HashTable *statics = code == NULL ? NULL : ZEND_MAP_PTR_GET(code->static_variables_ptr);
	if (statics == NULL) {
		return true;
	}
	uint32_t offset = op->extended_value & ~(uint32_t) (ZEND_BIND_REF | ZEND_BIND_IMPLICIT | ZEND_BIND_EXPLICIT);
	const zval *value = (const zval *) ((const char *) statics->arData + offset);
	return Z_TYPE_P(value) != IS_UNDEF;
}

static enum altair_closure_rule rule_of(const zend_op_array *code, const zend_op *op, const zend_object *closure)
{
	uint32_t flags = zend_get_opcode_flags(op->opcode);
	uint32_t first = ZEND_VM_OP1_FLAGS(flags), second = ZEND_VM_OP2_FLAGS(flags);
	(void) code; /* on 64 bits a constant is found from its instruction */
	switch (op->opcode) {
		case ZEND_BIND_STATIC:
			return captures(op, closure) ? ALTAIR_LEXICAL : ALTAIR_ALLOWED;
		case ZEND_FETCH_THIS: case ZEND_ISSET_ISEMPTY_THIS:
			return ALTAIR_LEXICAL;
		case ZEND_DECLARE_CLASS: case ZEND_DECLARE_CLASS_DELAYED:
			return ALTAIR_CLASS;
		case ZEND_DECLARE_ANON_CLASS:
			return ALTAIR_NEW_CLASS;
		case ZEND_DECLARE_FUNCTION: case ZEND_DECLARE_LAMBDA_FUNCTION:
			return ALTAIR_FUNCTION;
		case ZEND_YIELD: case ZEND_YIELD_FROM:
			return ALTAIR_YIELD;
		case ZEND_RECV_INIT: {
			enum altair_closure_rule rule = value_rule(RT_CONSTANT(op, op->op2));
			if (rule != ALTAIR_ALLOWED) {
				return rule;
			}
			break;
		}
		default:
			break;
	}
	if (is_this(op->op1_type, first) || is_this(op->op2_type, second)
		|| is_own_class(op->op1_type, op->op1, first) || is_own_class(op->op2_type, op->op2, second)) {
		return ALTAIR_LEXICAL;
	}
	return ALTAIR_ALLOWED;
}

enum altair_closure_rule altair_instruction_rule(
	const zend_op_array *code, const zend_object *closure, uint32_t yield_line, uint32_t *line)
{
	*line = 0;
	for (uint32_t i = 0; i < code->last; i++) {
		enum altair_closure_rule rule = rule_of(code, &code->opcodes[i], closure);
		if (rule != ALTAIR_ALLOWED) {
			*line = code->opcodes[i].lineno - code->line_start;
			return rule;
		}
	}
	if (code->fn_flags & ZEND_ACC_GENERATOR) {
		*line = yield_line > code->line_start ? yield_line - code->line_start : 0;
		return ALTAIR_YIELD;
	}
	zval *value;
	if (code->static_variables != NULL) {
		ZEND_HASH_FOREACH_VAL(code->static_variables, value) {
			enum altair_closure_rule rule = value_rule(value);
			if (rule != ALTAIR_ALLOWED) {
				return rule;
			}
		} ZEND_HASH_FOREACH_END();
	}
	return ALTAIR_ALLOWED;
}

enum altair_closure_rule altair_closure_instructions(const zend_object *closure, uint32_t *line)
{
	const zend_op_array *code = altair_closure_code(closure);
	if (code == NULL) {
		*line = 0;
		return ALTAIR_CALLABLE;
	}
	return altair_instruction_rule(code, closure, 0, line);
}
