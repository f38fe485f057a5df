/* A function's name and parameters as text, in room of the caller's: `find(int $id, ?User $for = null)`. */

#include "shim.h"

typedef struct {
	char *text;
	size_t used, size;
	const zend_string *own_class; /* whose namespace is left out */
} out;

static void put(out *to, const char *text, size_t len)
{
	if (len > to->size - to->used) {
		len = to->size - to->used;
	}
	memcpy(to->text + to->used, text, len);
	to->used += len;
}

static void put_str(out *to, const char *text)
{
	put(to, text, strlen(text));
}

static void put_class(out *to, const zend_string *name)
{
	if (to->own_class != NULL) {
		const char *class = ZSTR_VAL(to->own_class);
		const char *last = zend_memrchr(class, '\\', ZSTR_LEN(to->own_class));
		size_t namespace = last == NULL ? 0 : (size_t) (last - class) + 1;
		if (namespace > 0 && ZSTR_LEN(name) > namespace && memcmp(ZSTR_VAL(name), class, namespace) == 0
			&& memchr(ZSTR_VAL(name) + namespace, '\\', ZSTR_LEN(name) - namespace) == NULL) {
			put(to, ZSTR_VAL(name) + namespace, ZSTR_LEN(name) - namespace);
			return;
		}
	}
	put(to, ZSTR_VAL(name), ZSTR_LEN(name));
}

static void put_part(out *to, size_t begin, const char *between)
{
	if (to->used > begin) {
		put_str(to, between);
	}
}

/* As zend_type_to_string(), which allocates. */
static void put_type(out *to, zend_type type)
{
	size_t begin = to->used;
	if (ZEND_TYPE_HAS_LIST(type)) {
		const char *between = ZEND_TYPE_IS_INTERSECTION(type) ? "&" : "|";
		const zend_type *part;
		ZEND_TYPE_LIST_FOREACH(ZEND_TYPE_LIST(type), part) {
			put_part(to, begin, between);
			if (ZEND_TYPE_HAS_LIST(*part)) {
				put_str(to, "(");
				put_type(to, *part);
				put_str(to, ")");
			} else if (ZEND_TYPE_HAS_NAME(*part)) {
				put_class(to, ZEND_TYPE_NAME(*part));
			}
		} ZEND_TYPE_LIST_FOREACH_END();
	} else if (ZEND_TYPE_HAS_NAME(type)) {
		put_class(to, ZEND_TYPE_NAME(type));
	}
	uint32_t mask = ZEND_TYPE_PURE_MASK(type);
	if (mask == MAY_BE_ANY) {
		put_part(to, begin, "|");
		put_str(to, "mixed");
		return;
	}
	static const struct {
		uint32_t mask;
		const char *name;
	} builtin[] = {
		{MAY_BE_STATIC, "static"}, {MAY_BE_ARRAY, "array"}, {MAY_BE_STRING, "string"}, {MAY_BE_LONG, "int"},
		{MAY_BE_DOUBLE, "float"}, {MAY_BE_BOOL, "bool"}, {MAY_BE_FALSE, "false"}, {MAY_BE_TRUE, "true"},
		{MAY_BE_OBJECT, "object"}, {MAY_BE_CALLABLE, "callable"}, {MAY_BE_VOID, "void"}, {MAY_BE_NEVER, "never"},
	};
	for (size_t i = 0; i < sizeof(builtin) / sizeof(*builtin); i++) {
		if ((mask & builtin[i].mask) == builtin[i].mask) {
			mask &= ~builtin[i].mask;
			put_part(to, begin, "|");
			put_str(to, builtin[i].name);
		}
	}
	if (mask & MAY_BE_NULL) {
		put_part(to, begin, "|");
		put_str(to, "null");
	}
}

/* A type that is one or null, as people write it. */
static void put_declared(out *to, zend_type type)
{
	if (!ZEND_TYPE_IS_SET(type)) {
		return;
	}
	size_t begin = to->used;
	put_type(to, type);
	size_t len = to->used - begin;
	char *text = to->text + begin;
	const size_t tail = sizeof("|null") - 1;
	if (len > tail && memcmp(text + len - tail, "|null", tail) == 0
		&& memchr(text, '|', len - tail) == NULL && memchr(text, '&', len) == NULL) {
		memmove(text + 1, text, len - tail);
		text[0] = '?';
		to->used -= tail - 1;
	}
	put_str(to, " ");
}

static void put_value(out *to, const zval *value)
{
	char number[24];
	switch (Z_TYPE_P(value)) {
		case IS_NULL:
			put_str(to, "null");
			return;
		case IS_FALSE:
			put_str(to, "false");
			return;
		case IS_TRUE:
			put_str(to, "true");
			return;
		case IS_LONG:
			put(to, number, (size_t) snprintf(number, sizeof number, ZEND_LONG_FMT, Z_LVAL_P(value)));
			return;
		case IS_ARRAY:
			put_str(to, zend_hash_num_elements(Z_ARRVAL_P(value)) == 0 ? "[]" : "[...]");
			return;
		case IS_STRING:
			if (Z_STRLEN_P(value) <= 20) {
				put_str(to, "'");
				put(to, Z_STRVAL_P(value), Z_STRLEN_P(value));
				put_str(to, "'");
				return;
			}
			ZEND_FALLTHROUGH;
		default:
			put_str(to, "...");
	}
}

/* The default of a parameter that has one. */
static void put_default(out *to, const zend_function *function, uint32_t number)
{
	if (function->type == ZEND_INTERNAL_FUNCTION) {
		put_str(to, " = ");
		const char *value = ((const zend_internal_arg_info *) function->common.arg_info)[number].default_value;
		put_str(to, value != NULL && strlen(value) <= 40 ? value : "...");
		return;
	}
	const zend_op_array *code = &function->op_array;
	for (uint32_t i = 0; i < code->last; i++) {
		const zend_op *at = &code->opcodes[i];
		if (at->opcode == ZEND_RECV_INIT && at->op1.num == number + 1) {
			put_str(to, " = ");
			put_value(to, RT_CONSTANT(at, at->op2));
			return;
		}
	}
}

size_t altair_signature(const void *of, char *text, size_t size)
{
	const zend_function *function = of;
	out to = {.text = text, .size = size};
	if (function->common.scope != NULL) {
		to.own_class = function->common.scope->name;
	}
	bool is_native = function->type == ZEND_INTERNAL_FUNCTION
		&& !(function->common.fn_flags & ZEND_ACC_USER_ARG_INFO);
	uint32_t count = function->common.num_args;
	if (function->common.fn_flags & ZEND_ACC_VARIADIC) {
		count++;
	}
	put(&to, ZSTR_VAL(function->common.function_name), ZSTR_LEN(function->common.function_name));
	put_str(&to, "(");
	for (uint32_t i = 0; i < count && to.used < size; i++) {
		const zend_arg_info *info = &function->common.arg_info[i];
		if (i > 0) {
			put_str(&to, ", ");
		}
		put_declared(&to, info->type);
		put_str(&to, ZEND_ARG_SEND_MODE(info) ? "&" : "");
		put_str(&to, ZEND_ARG_IS_VARIADIC(info) ? "..." : "");
		put_str(&to, "$");
		if (is_native) {
			put_str(&to, ((const zend_internal_arg_info *) info)->name);
		} else {
			put(&to, ZSTR_VAL(info->name), ZSTR_LEN(info->name));
		}
		if (i >= function->common.required_num_args && !ZEND_ARG_IS_VARIADIC(info)) {
			put_default(&to, function, i);
		}
	}
	put_str(&to, ")");
	return to.used;
}
