/* What a line of a session says of names holds for the lines after it, too: its namespace and its imports. */

#include "shim.h"

typedef struct {
	uint32_t type; /* ZEND_SYMBOL_* */
	zend_string *name;
	zend_string *alias; /* as it is written */
} import;

typedef struct {
	zend_string *namespace; /* NULL for none */
	import *imports;
	uint32_t count;
} names;

static bool keeps;
static names kept, next;

static void release(names *of)
{
	if (of->namespace != NULL) {
		zend_string_release(of->namespace);
	}
	for (uint32_t i = 0; i < of->count; i++) {
		zend_string_release(of->imports[i].name);
		zend_string_release(of->imports[i].alias);
	}
	if (of->imports != NULL) {
		efree(of->imports);
	}
	memset(of, 0, sizeof *of);
}

static bool is_same(const import *a, uint32_t type, const zend_string *alias)
{
	/* Names of constants differ by case. */
	return a->type == type && (type == ZEND_SYMBOL_CONST ? zend_string_equals(a->alias, alias)
		: zend_string_equals_ci(a->alias, alias));
}

/* A later import of the same name takes the place of an earlier one. */
static void add(names *to, uint32_t type, zend_string *name, zend_string *alias)
{
	for (uint32_t i = 0; i < to->count; i++) {
		if (is_same(&to->imports[i], type, alias)) {
			zend_string_release(to->imports[i].name);
			to->imports[i].name = zend_string_copy(name);
			return;
		}
	}
	to->imports = safe_erealloc(to->imports, to->count + 1, sizeof(import), 0);
	to->imports[to->count++] = (import) {type, zend_string_copy(name), zend_string_copy(alias)};
}

static zend_string *last_part(zend_string *name)
{
	const char *last = zend_memrchr(ZSTR_VAL(name), '\\', ZSTR_LEN(name));
	return last == NULL ? zend_string_copy(name)
		: zend_string_init(last + 1, (size_t) (ZSTR_VAL(name) + ZSTR_LEN(name) - last - 1), 0);
}

static zend_string *text_of(zend_ast *ast)
{
	return Z_STR_P(zend_ast_get_zval(ast));
}

/* The imports of one statement. `prefix` is that of a group, or NULL. */
static void note_list(zend_ast *ast, uint32_t type_of_group, zend_string *prefix)
{
	zend_ast_list *list = zend_ast_get_list(ast);
	for (uint32_t i = 0; i < list->children; i++) {
		zend_ast *element = list->child[i];
		uint32_t type = type_of_group ? type_of_group : list->attr ? list->attr : element->attr;
		zend_string *name = text_of(element->child[0]);
		zend_string *alias = element->child[1] != NULL ? zend_string_copy(text_of(element->child[1])) : last_part(name);
		zend_string *whole = prefix == NULL ? zend_string_copy(name) : zend_string_concat3(
			ZSTR_VAL(prefix), ZSTR_LEN(prefix), ZEND_STRL("\\"), ZSTR_VAL(name), ZSTR_LEN(name));
		add(&next, type, whole, alias);
		zend_string_release(alias);
		zend_string_release(whole);
	}
}

static void note_statement(zend_ast *ast)
{
	if (ast->kind == ZEND_AST_USE) {
		note_list(ast, 0, NULL);
	} else if (ast->kind == ZEND_AST_GROUP_USE) {
		note_list(ast->child[1], ast->attr, text_of(ast->child[0]));
	} else if (ast->kind == ZEND_AST_NAMESPACE && ast->child[1] == NULL) {
		release(&next); /* imports hold for the namespace in which they stand */
		next.namespace = ast->child[0] != NULL ? zend_string_copy(text_of(ast->child[0])) : NULL;
	}
}

/* Whether a line has a namespace of its own, with braces or without. */
static bool has_namespace(const zend_ast_list *statements)
{
	for (uint32_t i = 0; i < statements->children; i++) {
		if (statements->child[i] != NULL && statements->child[i]->kind == ZEND_AST_NAMESPACE) {
			return true;
		}
	}
	return false;
}

static zend_ast *name_ast(zend_string *name)
{
	zval value;
	ZVAL_STR_COPY(&value, name);
	return zend_ast_create_zval(&value);
}

/* The statements, with the kept names before the first, but behind what has to be first. `own` are the line's. They
 * stand at the top, where the compiler wants a namespace to be, and where the last statement is looked for. */
static zend_ast *with_kept(zend_ast_list *statements, const names *own)
{
	zend_ast *list = zend_ast_create_list(0, ZEND_AST_STMT_LIST);
	uint32_t at = 0;
	for (; at < statements->children; at++) {
		zend_ast *one = statements->child[at];
		if (one != NULL && !(one->kind == ZEND_AST_DECLARE && one->child[1] == NULL)) {
			break;
		}
		list = zend_ast_list_add(list, one);
	}
	if (kept.namespace != NULL) {
		list = zend_ast_list_add(list, zend_ast_create(ZEND_AST_NAMESPACE, name_ast(kept.namespace), NULL));
	}
	for (uint32_t i = 0; i < kept.count; i++) {
		const import *one = &kept.imports[i];
		bool is_own = false;
		for (uint32_t j = 0; j < own->count && !is_own; j++) {
			is_own = is_same(&own->imports[j], one->type, one->alias);
		}
		if (!is_own) {
			zend_ast *use = zend_ast_create_list(1, ZEND_AST_USE,
				zend_ast_create(ZEND_AST_USE_ELEM, name_ast(one->name), name_ast(one->alias)));
			use->attr = one->type;
			list = zend_ast_list_add(list, use);
		}
	}
	for (; at < statements->children; at++) {
		list = zend_ast_list_add(list, statements->child[at]);
	}
	return list;
}

void altair_keep_names(void)
{
	keeps = true;
}

void altair_bring_names(zend_ast **ast)
{
	if (!keeps) {
		return;
	}
	zend_ast_list *statements = zend_ast_get_list(*ast);
	names own = {0};
	release(&next);
	for (uint32_t i = 0; i < statements->children; i++) {
		if (statements->child[i] != NULL) {
			note_statement(statements->child[i]);
		}
	}
	own = next;
	memset(&next, 0, sizeof next);
	if (has_namespace(statements)) {
		next = own; /* what was said before holds no longer */
		return;
	}
	if (kept.namespace != NULL || kept.count > 0) {
		*ast = with_kept(statements, &own);
	}
	next.namespace = kept.namespace != NULL ? zend_string_copy(kept.namespace) : NULL;
	for (uint32_t i = 0; i < kept.count; i++) {
		add(&next, kept.imports[i].type, kept.imports[i].name, kept.imports[i].alias);
	}
	for (uint32_t i = 0; i < own.count; i++) {
		add(&next, own.imports[i].type, own.imports[i].name, own.imports[i].alias);
	}
	release(&own);
}

void altair_took_names(void)
{
	if (keeps) {
		release(&kept);
		kept = next;
		memset(&next, 0, sizeof next);
	}
}
