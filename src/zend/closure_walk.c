/* Finds the closures of a compiled file, wherever they are in it. */

#include "closure_apart.h"
#include "zend_attributes.h"

typedef struct {
	altair_apart *apart;
	altair_each_code each;
	void *context;
} search;

static void look_at(const search *in, zend_op_array *code);

#if PHP_VERSION_ID >= 80500
/* Closures in constant expressions are in the expression. */
static void look_at_value(const search *in, const zval *value);

static void look_at_expression(const search *in, zend_ast *ast)
{
	if (ast == NULL) {
		return;
	}
	if (ast->kind == ZEND_AST_OP_ARRAY) {
		look_at(in, zend_ast_get_op_array(ast)->op_array);
	} else if (ast->kind == ZEND_AST_ZVAL) {
		look_at_value(in, zend_ast_get_zval(ast));
	} else if (zend_ast_is_list(ast)) {
		for (uint32_t i = 0; i < zend_ast_get_list(ast)->children; i++) {
			look_at_expression(in, zend_ast_get_list(ast)->child[i]);
		}
	} else if (!zend_ast_is_special(ast)) {
		for (uint32_t i = 0; i < zend_ast_get_num_children(ast); i++) {
			look_at_expression(in, ast->child[i]);
		}
	}
}

static void look_at_value(const search *in, const zval *value)
{
	if (Z_TYPE_P(value) == IS_CONSTANT_AST) {
		look_at_expression(in, Z_ASTVAL_P(value));
	}
}

static void look_at_attributes(const search *in, const HashTable *attributes)
{
	const zend_attribute *attribute;
	if (attributes == NULL) {
		return;
	}
	ZEND_HASH_FOREACH_PTR((HashTable *) attributes, attribute) {
		for (uint32_t i = 0; i < attribute->argc; i++) {
			look_at_value(in, &attribute->args[i].value);
		}
	} ZEND_HASH_FOREACH_END();
}

static void look_at_expressions(const search *in, const zend_op_array *code)
{
	zval *value;
	look_at_attributes(in, code->attributes);
	for (int i = 0; i < code->last_literal; i++) {
		look_at_value(in, &code->literals[i]);
	}
	if (code->static_variables != NULL) {
		ZEND_HASH_FOREACH_VAL(code->static_variables, value) {
			look_at_value(in, value);
		} ZEND_HASH_FOREACH_END();
	}
}

static void look_at_expressions_of_class(const search *in, const zend_class_entry *ce)
{
	const zend_class_constant *constant;
	const zend_property_info *property;
	look_at_attributes(in, ce->attributes);
	ZEND_HASH_FOREACH_PTR((HashTable *) &ce->constants_table, constant) {
		if (constant->ce == ce) {
			look_at_value(in, &constant->value);
			look_at_attributes(in, constant->attributes);
		}
	} ZEND_HASH_FOREACH_END();
	ZEND_HASH_FOREACH_PTR((HashTable *) &ce->properties_info, property) {
		if (property->ce == ce) {
			look_at_attributes(in, property->attributes);
		}
	} ZEND_HASH_FOREACH_END();
	for (int i = 0; i < ce->default_properties_count; i++) {
		look_at_value(in, &ce->default_properties_table[i]);
	}
	for (int i = 0; i < ce->default_static_members_count; i++) {
		look_at_value(in, &ce->default_static_members_table[i]);
	}
}
#endif

static void look_at_code(const search *in, zend_op_array *code)
{
	for (uint32_t i = 0; i < code->num_dynamic_func_defs; i++) {
		look_at(in, code->dynamic_func_defs[i]);
	}
#if PHP_VERSION_ID >= 80500
	look_at_expressions(in, code);
#endif
}

static void look_at(const search *in, zend_op_array *code)
{
	const size_t len = sizeof ALTAIR_MARK - 1;
	const zend_string *doc = code->doc_comment;
	if (doc != NULL && ZSTR_LEN(doc) > len && memcmp(ZSTR_VAL(doc), ALTAIR_MARK, len) == 0) {
		uint32_t number = (uint32_t) strtoul(ZSTR_VAL(doc) + len, NULL, 10);
		if (number < in->apart->count) {
			in->each(in->context, number, code, &in->apart->marks[number]);
		}
	}
	look_at_code(in, code);
}

static void look_at_class(const search *in, const zend_class_entry *ce)
{
	zend_function *function;
	ZEND_HASH_FOREACH_PTR((HashTable *) &ce->function_table, function) {
		if (function->type == ZEND_USER_FUNCTION && function->common.scope == ce) {
			look_at(in, &function->op_array);
		}
	} ZEND_HASH_FOREACH_END();
#if PHP_VERSION_ID >= 80500
	look_at_expressions_of_class(in, ce);
#endif
#if PHP_VERSION_ID >= 80400
	zend_property_info *property;
	ZEND_HASH_FOREACH_PTR((HashTable *) &ce->properties_info, property) {
		for (uint32_t i = 0; property->ce == ce && property->hooks != NULL && i < ZEND_PROPERTY_HOOK_COUNT; i++) {
			if (property->hooks[i] != NULL && property->hooks[i]->type == ZEND_USER_FUNCTION) {
				look_at(in, &property->hooks[i]->op_array);
			}
		}
	} ZEND_HASH_FOREACH_END();
#endif
}

void altair_apart_closures(altair_apart *apart, altair_each_code each, void *context)
{
	const search in = {apart, each, context};
	zend_string *key;
	zend_function *function;
	zend_class_entry *ce;
	look_at_code(&in, apart->main);
	ZEND_HASH_FOREACH_STR_KEY_PTR(&apart->functions, key, function) {
		if (function->type == ZEND_USER_FUNCTION && altair_is_new(EG(function_table), key, function)) {
			look_at(&in, &function->op_array);
		}
	} ZEND_HASH_FOREACH_END();
	ZEND_HASH_FOREACH_STR_KEY_PTR(&apart->classes, key, ce) {
		if (ce->type == ZEND_USER_CLASS && altair_is_new(EG(class_table), key, ce)) {
			look_at_class(&in, ce);
		}
	} ZEND_HASH_FOREACH_END();
}
