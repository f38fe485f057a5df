/* What there is in the engine's tables, for hints: reads only. Runs no code, loads no class and, but for
 * altair_may_read(), allocates nothing, so nothing here can bail out. */

#include "shim.h"
#include "zend_closures.h"
#include "zend_exceptions.h"
#include "zend_observer.h"

/* ---- names ---- */

void altair_each_function(altair_name each, void *context)
{
	const zend_string *key;
	zend_function *function;
	ZEND_HASH_FOREACH_STR_KEY_PTR(EG(function_table), key, function) {
		/* A key that begins with a NUL is no name that code could call. */
		if (key != NULL && ZSTR_VAL(key)[0] != '\0') {
			const zend_string *name = function->common.function_name;
			each(context, ZSTR_VAL(name), ZSTR_LEN(name), function);
		}
	} ZEND_HASH_FOREACH_END();
}

void altair_each_class(altair_name each, void *context)
{
	const zend_string *key;
	const zend_class_entry *ce;
	ZEND_HASH_FOREACH_STR_KEY_PTR(EG(class_table), key, ce) {
		/* A key that begins with a NUL is that of a declaration that code has not come to yet. */
		if (key != NULL && ZSTR_VAL(key)[0] != '\0' && !(ce->ce_flags & ZEND_ACC_ANON_CLASS)) {
			each(context, ZSTR_VAL(ce->name), ZSTR_LEN(ce->name), ce);
		}
	} ZEND_HASH_FOREACH_END();
}

void altair_each_constant(altair_name each, void *context)
{
	zend_constant *constant;
	ZEND_HASH_FOREACH_PTR(EG(zend_constants), constant) {
		each(context, ZSTR_VAL(constant->name), ZSTR_LEN(constant->name), constant);
	} ZEND_HASH_FOREACH_END();
}

const zend_class_entry *altair_find_class(const char *lower_case, size_t len)
{
	return zend_hash_str_find_ptr(EG(class_table), lower_case, len);
}

const zend_string *altair_class_name(const zend_class_entry *ce)
{
	return ce->name;
}

void altair_each_method(const zend_class_entry *ce, altair_name each, void *context)
{
	const zend_function *method;
	ZEND_HASH_FOREACH_PTR((HashTable *) &ce->function_table, method) {
		const zend_string *name = method->common.function_name;
		bool is_magic = ZSTR_LEN(name) > 2 && memcmp(ZSTR_VAL(name), "__", 2) == 0;
		if ((method->common.fn_flags & ZEND_ACC_PUBLIC) && !is_magic) {
			each(context, ZSTR_VAL(name), ZSTR_LEN(name), method);
		}
	} ZEND_HASH_FOREACH_END();
}

void altair_each_class_constant(const zend_class_entry *ce, altair_name each, void *context)
{
	const zend_string *name;
	const zend_class_constant *constant;
	ZEND_HASH_FOREACH_STR_KEY_PTR((HashTable *) &ce->constants_table, name, constant) {
		if (ZEND_CLASS_CONST_FLAGS(constant) & ZEND_ACC_PUBLIC) {
			each(context, ZSTR_VAL(name), ZSTR_LEN(name), constant);
		}
	} ZEND_HASH_FOREACH_END();
}

/* ---- properties ---- */

static bool is_visible(const zend_property_info *info, const zend_class_entry *scope)
{
	if (info->flags & ZEND_ACC_PUBLIC) {
		return true;
	}
	if (scope == NULL || (info->flags & ZEND_ACC_PRIVATE)) {
		return scope == info->ce;
	}
	return instanceof_function(scope, info->ce) || instanceof_function(info->ce, scope);
}

void altair_each_property(const zend_class_entry *ce, const zend_class_entry *scope, bool is_static,
	altair_name each, void *context)
{
	const zend_string *name;
	const zend_property_info *info;
	ZEND_HASH_FOREACH_STR_KEY_PTR((HashTable *) &ce->properties_info, name, info) {
		if (!(info->flags & ZEND_ACC_STATIC) == !is_static && is_visible(info, scope)) {
			each(context, ZSTR_VAL(name), ZSTR_LEN(name), info);
		}
	} ZEND_HASH_FOREACH_END();
}

const zend_class_entry *altair_class_of(const zval *value)
{
	return Z_TYPE_P(value) == IS_OBJECT ? Z_OBJCE_P(value) : NULL;
}

bool altair_is_instance(const zend_object *object, const zend_class_entry *of)
{
	return instanceof_function(object->ce, of);
}

const zend_string *altair_string_of(const zval *value)
{
	return Z_TYPE_P(value) == IS_STRING ? Z_STR_P(value) : NULL;
}

zend_array *altair_own_properties(const zval *value)
{
	return Z_TYPE_P(value) == IS_OBJECT ? Z_OBJ_P(value)->properties : NULL;
}

static zval *filled(zval *slot)
{
	if (slot != NULL && Z_TYPE_P(slot) == IS_INDIRECT) {
		slot = Z_INDIRECT_P(slot);
	}
	if (slot != NULL) {
		ZVAL_DEREF(slot);
	}
	return slot != NULL && Z_TYPE_P(slot) != IS_UNDEF ? slot : NULL;
}

/* What the class of this name, lower case, has declared under `name`; also where it is private to it. */
static const zend_property_info *declared(
	const zend_class_entry *ce, const char *lower_case, size_t lower_len, const char *name, size_t len)
{
	const zend_class_entry *owner = altair_find_class(lower_case, lower_len);
	if (owner == NULL || !instanceof_function(ce, owner)) {
		return NULL;
	}
	return zend_hash_str_find_ptr(&owner->properties_info, name, len);
}

zval *altair_declared_property(
	const zval *value, const char *lower_case, size_t lower_len, const char *name, size_t len)
{
	if (Z_TYPE_P(value) != IS_OBJECT) {
		return NULL;
	}
	const zend_property_info *info = declared(Z_OBJCE_P(value), lower_case, lower_len, name, len);
	if (info == NULL || (info->flags & ZEND_ACC_STATIC)) {
		return NULL;
	}
#ifdef ZEND_ACC_VIRTUAL
	if (info->flags & ZEND_ACC_VIRTUAL) {
		return NULL;
	}
#endif
	return filled(OBJ_PROP(Z_OBJ_P(value), info->offset));
}

zval *altair_static_property(const char *lower_case, size_t lower_len, const char *name, size_t len)
{
	const zend_class_entry *ce = altair_find_class(lower_case, lower_len);
	if (ce == NULL || ZEND_MAP_PTR(ce->static_members_table) == NULL || CE_STATIC_MEMBERS(ce) == NULL) {
		return NULL;
	}
	const zend_property_info *info = zend_hash_str_find_ptr(&ce->properties_info, name, len);
	if (info == NULL || !(info->flags & ZEND_ACC_STATIC)) {
		return NULL;
	}
	return filled(CE_STATIC_MEMBERS(ce) + info->offset);
}

zend_array *altair_array_of(const zval *value)
{
	return Z_TYPE_P(value) == IS_ARRAY ? Z_ARRVAL_P(value) : NULL;
}

bool altair_may_read(const char *path)
{
	return php_check_open_basedir_ex(path, 0) == 0;
}

/* ---- variables ---- */

void altair_each_variable_of(const void *frame, altair_name each, void *context)
{
	const zend_execute_data *ex = frame;
	const zend_op_array *code = &ex->func->op_array;
	for (int i = 0; i < code->last_var; i++) {
		if (filled(ZEND_CALL_VAR_NUM(ex, i)) != NULL) {
			each(context, ZSTR_VAL(code->vars[i]), ZSTR_LEN(code->vars[i]), NULL);
		}
	}
	if (ZEND_CALL_INFO(ex) & ZEND_CALL_HAS_SYMBOL_TABLE) {
		const zend_string *name;
		zval *value;
		ZEND_HASH_FOREACH_STR_KEY_VAL(ex->symbol_table, name, value) {
			if (name != NULL && filled(value) != NULL) {
				each(context, ZSTR_VAL(name), ZSTR_LEN(name), NULL);
			}
		} ZEND_HASH_FOREACH_END();
	}
}

const zend_class_entry *altair_scope_of(const void *frame)
{
	return ((const zend_execute_data *) frame)->func->common.scope;
}

/* ---- warnings ---- */

static altair_warned_hook warned_hook;

/* What an instruction reads from; NULL where that is not known. */
static zval *operand_of(zend_execute_data *ex, const zend_op *at)
{
	switch (at->opcode) {
		case ZEND_FETCH_DIM_R: case ZEND_FETCH_DIM_RW: case ZEND_FETCH_DIM_FUNC_ARG:
		case ZEND_FETCH_LIST_R: case ZEND_FETCH_LIST_W: case ZEND_ASSIGN_DIM_OP:
		case ZEND_FETCH_OBJ_R: case ZEND_FETCH_OBJ_RW: case ZEND_FETCH_OBJ_FUNC_ARG:
		case ZEND_ASSIGN_OBJ_OP: case ZEND_PRE_INC_OBJ: case ZEND_PRE_DEC_OBJ:
		case ZEND_POST_INC_OBJ: case ZEND_POST_DEC_OBJ:
			break;
		default:
			return NULL;
	}
	switch (at->op1_type) {
		case IS_CONST:
			return RT_CONSTANT(at, at->op1);
		case IS_UNUSED:
			return filled(&ex->This);
		default:
			return filled(ZEND_CALL_VAR(ex, at->op1.var));
	}
}

/* Instructions that have warned already: one in a loop is looked at once. */
static const zend_op *seen[ALTAIR_LOOKS_MAX];
static size_t looks;

static void on_error(int type, zend_string *file, uint32_t line, zend_string *message)
{
	(void) line;
	if (type != E_WARNING || !(EG(error_reporting) & type) || looks == ALTAIR_LOOKS_MAX) {
		return;
	}
	/* The message of a key can be as long as the key. */
	if (ZSTR_LEN(message) > ALTAIR_WARNING_BYTES
		|| (strncmp(ZSTR_VAL(message), ZEND_STRL("Undefined ")) != 0
			&& strncmp(ZSTR_VAL(message), ZEND_STRL("compact(): Undefined ")) != 0)) {
		return;
	}
	zend_execute_data *ex = EG(current_execute_data);
	bool is_native = false;
	while (ex != NULL && (ex->func == NULL || !ZEND_USER_CODE(ex->func->type))) {
		is_native |= ex->func != NULL;
		ex = ex->prev_execute_data;
	}
	if (ex == NULL) {
		return;
	}
	const zend_op_array *code = &ex->func->op_array;
	if (ex->opline < code->opcodes || ex->opline >= code->opcodes + code->last) {
		return;
	}
	for (size_t i = 0; i < looks; i++) {
		if (seen[i] == ex->opline) {
			return;
		}
	}
	seen[looks++] = ex->opline;
	const zend_string *snippet = altair_snippet_name();
	bool is_own = file != NULL && snippet != NULL && zend_string_equals(file, (zend_string *) snippet);
	warned_hook(message, is_own, ex, is_native ? NULL : operand_of(ex, ex->opline));
}

void altair_on_warning(altair_warned_hook hook)
{
	warned_hook = hook;
	/* Told before a handler of the application's makes an exception of it. */
	zend_observer_error_register(on_error);
}
