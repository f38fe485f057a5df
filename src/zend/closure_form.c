/* The form of code: bytes by which two compilations of one source are compared. What differs between them and means
 * nothing is left out: handlers, slots of the runtime's cache, operands that nobody reads. */

#include "closure.h"
#include "zend_attributes.h"
#include "zend_constants.h"

void altair_put(altair_buffer *to, const void *bytes, size_t len)
{
	if (to->len + len > to->size) {
		size_t size = (to->len + len) * 2 + 256;
		char *grown = realloc(to->bytes, size);
		if (grown == NULL) {
			return;
		}
		to->bytes = grown;
		to->size = size;
	}
	memcpy(to->bytes + to->len, bytes, len);
	to->len += len;
}

void altair_put_number(altair_buffer *to, uint64_t number)
{
	/* Seven bits a byte: most numbers are small, and forms are kept. */
	unsigned char bytes[10];
	size_t len = 0;
	do {
		bytes[len] = (unsigned char) ((number & 0x7f) | (number > 0x7f ? 0x80 : 0));
		number >>= 7;
		len++;
	} while (number != 0);
	altair_put(to, bytes, len);
}

void altair_put_text(altair_buffer *to, const zend_string *text)
{
	if (text == NULL) {
		altair_put_number(to, 0);
		return;
	}
	altair_put_number(to, ZSTR_LEN(text) + 1);
	altair_put(to, ZSTR_VAL(text), ZSTR_LEN(text));
}

/* ---- values ---- */

static void put_value(altair_buffer *to, const zval *value);

static void put_expression(altair_buffer *to, const zend_ast *ast)
{
	if (ast == NULL) {
		altair_put_number(to, 0);
		return;
	}
	altair_put_number(to, (uint64_t) ast->kind + 1);
	altair_put_number(to, ast->attr);
	if (ast->kind == ZEND_AST_ZVAL) {
		put_value(to, zend_ast_get_zval((zend_ast *) ast));
		return;
	}
	if (ast->kind == ZEND_AST_CONSTANT) {
		altair_put_text(to, zend_ast_get_constant_name((zend_ast *) ast));
		return;
	}
	if (zend_ast_is_special((zend_ast *) ast)) {
		return; /* code, which no rule allows here */
	}
	bool is_list = zend_ast_is_list((zend_ast *) ast);
	zend_ast *const *child = is_list ? zend_ast_get_list((zend_ast *) ast)->child : ast->child;
	uint32_t count = is_list ? zend_ast_get_list((zend_ast *) ast)->children : zend_ast_get_num_children((zend_ast *) ast);
	altair_put_number(to, count);
	for (uint32_t i = 0; i < count; i++) {
		put_expression(to, child[i]);
	}
}

static void put_value(altair_buffer *to, const zval *value)
{
	altair_put_number(to, Z_TYPE_P(value));
	switch (Z_TYPE_P(value)) {
		case IS_LONG:
			altair_put_number(to, (uint64_t) Z_LVAL_P(value));
			break;
		case IS_DOUBLE:
			altair_put(to, &Z_DVAL_P(value), sizeof(double));
			break;
		case IS_STRING:
			altair_put_text(to, Z_STR_P(value));
			break;
		case IS_ARRAY: {
			zend_ulong index;
			zend_string *key;
			zval *item;
			altair_put_number(to, zend_hash_num_elements(Z_ARRVAL_P(value)));
			ZEND_HASH_FOREACH_KEY_VAL(Z_ARRVAL_P(value), index, key, item) {
				altair_put_text(to, key);
				if (key == NULL) {
					altair_put_number(to, index);
				}
				put_value(to, item);
			} ZEND_HASH_FOREACH_END();
			break;
		}
		case IS_CONSTANT_AST:
			put_expression(to, Z_ASTVAL_P(value));
			break;
		default:
			break;
	}
}

static void put_type(altair_buffer *to, const zend_type *type)
{
	const uint32_t marks = _ZEND_TYPE_ITERABLE_BIT | _ZEND_TYPE_INTERSECTION_BIT | _ZEND_TYPE_UNION_BIT;
	/* The bits beyond are of arguments: by reference, variadic, promoted. */
	altair_put_number(to, ZEND_TYPE_PURE_MASK(*type) | (type->type_mask & marks)
		| (type->type_mask & ~(uint32_t) _ZEND_TYPE_MASK));
	if (ZEND_TYPE_HAS_NAME(*type)) {
		altair_put_text(to, ZEND_TYPE_NAME(*type));
	} else if (ZEND_TYPE_HAS_LIST(*type)) {
		const zend_type *part;
		altair_put_number(to, ZEND_TYPE_LIST(*type)->num_types);
		ZEND_TYPE_LIST_FOREACH(ZEND_TYPE_LIST(*type), part) {
			put_type(to, part);
		} ZEND_TYPE_LIST_FOREACH_END();
	} else {
		altair_put_number(to, 0);
	}
}

static void put_attributes(altair_buffer *to, const HashTable *attributes)
{
	const zend_attribute *attribute;
	altair_put_number(to, attributes == NULL ? 0 : zend_hash_num_elements(attributes));
	if (attributes == NULL) {
		return;
	}
	ZEND_HASH_FOREACH_PTR((HashTable *) attributes, attribute) {
		altair_put_text(to, attribute->name);
		altair_put_number(to, attribute->offset);
		altair_put_number(to, attribute->argc);
		for (uint32_t i = 0; i < attribute->argc; i++) {
			altair_put_text(to, attribute->args[i].name);
			put_value(to, &attribute->args[i].value);
		}
	} ZEND_HASH_FOREACH_END();
}

/* ---- instructions ---- */

static void put_operand(altair_buffer *to, const zend_op_array *code, const zend_op *op, uint8_t type,
	const znode_op *operand, uint32_t flags)
{
	altair_put_number(to, type);
	switch (type) {
		case IS_CONST:
			put_value(to, RT_CONSTANT(op, *operand));
			return;
		case IS_CV: case IS_TMP_VAR: case IS_VAR:
			altair_put_number(to, operand->var);
			return;
		default:
			break;
	}
	switch (flags & ZEND_VM_OP_MASK) {
		case ZEND_VM_OP_JMP_ADDR:
			altair_put_number(to, (uint64_t) (OP_JMP_ADDR(op, *operand) - code->opcodes));
			return;
		case ZEND_VM_OP_NUM:
			/* The stack that the called function needs, which is of another file. */
			if (op->opcode == ZEND_INIT_FCALL && operand == &op->op1) {
				return;
			}
			ZEND_FALLTHROUGH;
		case ZEND_VM_OP_TRY_CATCH: case ZEND_VM_OP_CLASS_FETCH: case ZEND_VM_OP_CONST_FETCH:
			altair_put_number(to, operand->num);
			return;
		default:
			return; /* it may hold anything */
	}
}

static void put_extended(
	altair_buffer *to, const zend_op_array *code, const zend_op *op, uint32_t flags, bool is_strict)
{
	if ((flags & ZEND_VM_EXT_MASK) == ZEND_VM_EXT_JMP_ADDR) {
		altair_put_number(to, (uint64_t) (ZEND_OFFSET_TO_OPLINE(op, op->extended_value) - code->opcodes));
	} else if (is_strict || op->opcode == ZEND_BIND_STATIC) {
		altair_put_number(to, op->extended_value);
	} else if ((flags & ZEND_VM_EXT_MASK) == ZEND_VM_EXT_LAST_CATCH) {
		altair_put_number(to, op->extended_value & ZEND_LAST_CATCH);
	} else if (flags & ZEND_VM_EXT_CACHE_SLOT) {
		altair_put_number(to, op->extended_value & (sizeof(void *) - 1)); /* what is beside the slot */
	} else if (flags & (ZEND_VM_EXT_MASK | ZEND_VM_EXT_VAR_FETCH | ZEND_VM_EXT_ISSET | ZEND_VM_EXT_ARRAY_INIT
			| ZEND_VM_EXT_REF | ZEND_VM_EXT_FETCH_REF | ZEND_VM_EXT_DIM_WRITE)) {
		altair_put_number(to, op->extended_value);
	}
}

static void put_instruction(altair_buffer *to, const zend_op_array *code, const zend_op *op, bool is_strict)
{
	uint32_t flags = zend_get_opcode_flags(op->opcode);
	const uint8_t kinds = IS_CONST | IS_TMP_VAR | IS_VAR | IS_CV; /* without the marks of a following jump */
	altair_put_number(to, op->opcode);
	altair_put_number(to, op->lineno);
	put_operand(to, code, op, op->op1_type, &op->op1, ZEND_VM_OP1_FLAGS(flags));
	put_operand(to, code, op, op->op2_type, &op->op2, ZEND_VM_OP2_FLAGS(flags));
	altair_put_number(to, op->result_type & kinds);
	if (op->result_type & kinds) {
		altair_put_number(to, op->result.var);
	}
	put_extended(to, code, op, flags, is_strict);
}

/* ---- code ---- */

static void put_statics(altair_buffer *to, const zend_op_array *code, bool is_strict)
{
	const HashTable *statics = code->static_variables;
	altair_put_number(to, statics == NULL ? 0 : zend_hash_num_elements(statics));
	if (statics == NULL) {
		return;
	}
	/* A closure has values of its own, which may have changed since; a variable that an arrow function names and that
	 * was nowhere has none. */
	for (uint32_t i = 0; i < statics->nNumUsed; i++) {
		const Bucket *one = &statics->arData[i];
		altair_put_text(to, one->key);
		if (is_strict) {
			put_value(to, &one->val);
		}
	}
}

static void put_signature(altair_buffer *to, const zend_op_array *code)
{
	const uint32_t flags = ZEND_ACC_RETURN_REFERENCE | ZEND_ACC_VARIADIC | ZEND_ACC_GENERATOR | ZEND_ACC_STRICT_TYPES
		| ZEND_ACC_HAS_RETURN_TYPE | ZEND_ACC_CLOSURE;
	altair_put_number(to, code->fn_flags & flags);
	altair_put_text(to, code->function_name);
	altair_put_number(to, code->line_start);
	altair_put_number(to, code->line_end);
	altair_put_number(to, code->num_args);
	altair_put_number(to, code->required_num_args);
	const zend_arg_info *args = code->arg_info;
	if (code->fn_flags & ZEND_ACC_HAS_RETURN_TYPE) {
		put_type(to, &args[-1].type);
	}
	uint32_t count = code->num_args + ((code->fn_flags & ZEND_ACC_VARIADIC) != 0);
	for (uint32_t i = 0; i < count; i++) {
		altair_put_text(to, args[i].name);
		put_type(to, &args[i].type);
	}
}

void altair_form(altair_buffer *to, const zend_op_array *code, bool is_strict, const zend_string *doc)
{
	put_signature(to, code);
	altair_put_number(to, (uint64_t) code->last_var);
	for (int i = 0; i < code->last_var; i++) {
		altair_put_text(to, code->vars[i]);
	}
	put_statics(to, code, is_strict);
	altair_put_number(to, code->last);
	for (uint32_t i = 0; i < code->last; i++) {
		put_instruction(to, code, &code->opcodes[i], is_strict);
	}
	altair_put_number(to, (uint64_t) code->last_try_catch);
	for (int i = 0; i < code->last_try_catch; i++) {
		const zend_try_catch_element *element = &code->try_catch_array[i];
		altair_put_number(to, element->try_op);
		altair_put_number(to, element->catch_op);
		altair_put_number(to, element->finally_op);
		altair_put_number(to, element->finally_end);
	}
	if (is_strict) {
		altair_put_text(to, doc);
		put_attributes(to, code->attributes);
	}
	altair_put_number(to, code->num_dynamic_func_defs);
	for (uint32_t i = 0; i < code->num_dynamic_func_defs; i++) {
		altair_form(to, code->dynamic_func_defs[i], is_strict, NULL);
	}
}

/* ---- names that were not known ---- */

static void put_name(altair_buffer *to, char kind, const zend_string *name)
{
	if (memchr(ZSTR_VAL(name), '\0', ZSTR_LEN(name)) == NULL) {
		altair_put(to, &kind, 1);
		altair_put(to, ZSTR_VAL(name), ZSTR_LEN(name) + 1);
	}
}

static void unknown_constant(altair_buffer *to, const zend_string *name)
{
	const zend_constant *constant = zend_hash_find_ptr(EG(zend_constants), (zend_string *) name);
	if (constant != NULL && ZEND_CONSTANT_MODULE_NUMBER(constant) == PHP_USER_CONSTANT) {
		put_name(to, 'c', name);
	}
}

static void unknown_in(altair_buffer *to, const zval *value);

static void unknown_in_expression(altair_buffer *to, const zend_ast *ast)
{
	if (ast == NULL) {
		return;
	}
	if (ast->kind == ZEND_AST_CONSTANT) {
		unknown_constant(to, zend_ast_get_constant_name((zend_ast *) ast));
	} else if (ast->kind == ZEND_AST_ZVAL) {
		unknown_in(to, zend_ast_get_zval((zend_ast *) ast));
	}
	if (zend_ast_is_special((zend_ast *) ast)) {
		return;
	}
	bool is_list = zend_ast_is_list((zend_ast *) ast);
	zend_ast *const *child = is_list ? zend_ast_get_list((zend_ast *) ast)->child : ast->child;
	uint32_t count = is_list ? zend_ast_get_list((zend_ast *) ast)->children : zend_ast_get_num_children((zend_ast *) ast);
	for (uint32_t i = 0; i < count; i++) {
		unknown_in_expression(to, child[i]);
	}
}

static void unknown_in(altair_buffer *to, const zval *value)
{
	if (Z_TYPE_P(value) == IS_CONSTANT_AST) {
		unknown_in_expression(to, Z_ASTVAL_P(value));
	}
}

/* A class of which a constant was not put in its place, though that can be done now. */
static void unknown_class(altair_buffer *to, const zval *class_name, const zval *name)
{
	const zend_class_entry *ce = zend_hash_find_ptr(EG(class_table), Z_STR(class_name[1]));
	if (ce == NULL || ce->type != ZEND_USER_CLASS || Z_TYPE_P(name) != IS_STRING) {
		return;
	}
	const zend_class_constant *constant = zend_hash_find_ptr((HashTable *) &ce->constants_table, Z_STR_P(name));
	if (constant != NULL && Z_TYPE(constant->value) < IS_OBJECT) {
		put_name(to, 'k', Z_STR(class_name[1]));
	}
}

void altair_unknown_names(altair_buffer *to, const zend_op_array *code)
{
	zval *value;
	for (uint32_t i = 0; i < code->last; i++) {
		const zend_op *op = &code->opcodes[i];
		if (op->opcode == ZEND_FETCH_CONSTANT) {
			unknown_constant(to, Z_STR_P(RT_CONSTANT(op, op->op2)));
		} else if (op->opcode == ZEND_DEFINED) {
			unknown_constant(to, Z_STR_P(RT_CONSTANT(op, op->op1)));
		} else if (op->opcode == ZEND_INIT_FCALL_BY_NAME && op->op2_type == IS_CONST) {
			const zend_string *lower = Z_STR(RT_CONSTANT(op, op->op2)[1]);
			const zend_function *function = zend_hash_find_ptr(EG(function_table), (zend_string *) lower);
			if (function != NULL && function->type == ZEND_USER_FUNCTION) {
				put_name(to, 'f', lower);
			}
		} else if (op->opcode == ZEND_FETCH_CLASS_CONSTANT && op->op1_type == IS_CONST && op->op2_type == IS_CONST) {
			unknown_class(to, RT_CONSTANT(op, op->op1), RT_CONSTANT(op, op->op2));
		} else if (op->opcode == ZEND_RECV_INIT) {
			unknown_in(to, RT_CONSTANT(op, op->op2));
		}
	}
	if (code->static_variables != NULL) {
		ZEND_HASH_FOREACH_VAL(code->static_variables, value) {
			unknown_in(to, value);
		} ZEND_HASH_FOREACH_END();
	}
}
