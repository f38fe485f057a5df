/* Compiles the snippet: an expression becomes a result, and container() calls our function. */

#include "shim.h"
#include "zend_exceptions.h"
#include "zend_language_scanner.h"

static zend_ast_process_t next_ast_process;
static bool compiling;
static const zend_string *name_of_snippet;

static bool is_expression;
static bool declares_container;

static bool is_decl(const zend_ast *ast)
{
	return ast->kind >= ZEND_AST_FUNC_DECL && ast->kind <= ZEND_AST_ARROW_FUNC;
}

static bool is_leaf(const zend_ast *ast)
{
	return ast->kind == ZEND_AST_ZVAL || ast->kind == ZEND_AST_CONSTANT || ast->kind == ZEND_AST_ZNODE;
}

/* Returns whether a statement is an expression. The list is from zend_compile_stmt(), whose default
 * case compiles an expression. */
static bool is_expression_statement(const zend_ast *ast)
{
	switch (ast->kind) {
		case ZEND_AST_STMT_LIST: case ZEND_AST_GLOBAL: case ZEND_AST_UNSET: case ZEND_AST_RETURN:
		case ZEND_AST_ECHO: case ZEND_AST_BREAK: case ZEND_AST_CONTINUE: case ZEND_AST_GOTO:
		case ZEND_AST_LABEL: case ZEND_AST_WHILE: case ZEND_AST_DO_WHILE: case ZEND_AST_FOR:
		case ZEND_AST_FOREACH: case ZEND_AST_IF: case ZEND_AST_SWITCH: case ZEND_AST_TRY:
		case ZEND_AST_DECLARE: case ZEND_AST_FUNC_DECL: case ZEND_AST_METHOD: case ZEND_AST_CLASS:
		case ZEND_AST_PROP_GROUP: case ZEND_AST_CLASS_CONST_GROUP: case ZEND_AST_ENUM_CASE:
		case ZEND_AST_USE_TRAIT: case ZEND_AST_USE: case ZEND_AST_GROUP_USE:
		case ZEND_AST_CONST_DECL: case ZEND_AST_NAMESPACE: case ZEND_AST_HALT_COMPILER:
		case ZEND_AST_STATIC:
#if PHP_VERSION_ID >= 80500
		case ZEND_AST_CAST_VOID:
#endif
			return false;
		default:
			return true;
	}
}

static bool is_named_container(const zend_ast *name)
{
	if (name == NULL || name->kind != ZEND_AST_ZVAL || Z_TYPE_P(zend_ast_get_zval((zend_ast *) name)) != IS_STRING) {
		return false;
	}
	const zend_string *text = Z_STR_P(zend_ast_get_zval((zend_ast *) name));
	return zend_string_equals_literal_ci(text, "container");
}

typedef void (*visitor)(zend_ast *ast);

static void visit(zend_ast *ast, visitor each)
{
	if (ast == NULL) {
		return;
	}
	each(ast);
	zend_ast **child;
	uint32_t count;
	if (is_leaf(ast)) {
		return;
	} else if (is_decl(ast)) {
		child = ((zend_ast_decl *) ast)->child;
		count = 5;
	} else if (zend_ast_is_list(ast)) {
		child = zend_ast_get_list(ast)->child;
		count = zend_ast_get_list(ast)->children;
	} else if (!zend_ast_is_special(ast)) {
		child = ast->child;
		count = zend_ast_get_num_children(ast);
	} else {
		return; /* a special node of a later PHP, which contains no code of the snippet */
	}
	for (uint32_t i = 0; i < count; i++) {
		visit(child[i], each);
	}
}

/* Returns whether an import makes container() a function of its own. */
static bool imports_container(const zend_ast *import, uint32_t type)
{
	const zend_ast *alias = import->child[1];
	if (type != ZEND_SYMBOL_FUNCTION) {
		return false;
	}
	if (alias != NULL || import->child[0]->kind != ZEND_AST_ZVAL) {
		return is_named_container(alias);
	}
	const zend_string *name = Z_STR_P(zend_ast_get_zval(import->child[0]));
	const char *last = zend_memrchr(ZSTR_VAL(name), '\\', ZSTR_LEN(name));
	return strcasecmp(last ? last + 1 : ZSTR_VAL(name), "container") == 0;
}

/* The type of an import is stored in the group, in the list, or, for a mixed group, in the
 * import. */
static void note_imports(zend_ast *ast, uint32_t type_of_group)
{
	zend_ast_list *imports = zend_ast_get_list(ast);
	for (uint32_t i = 0; i < imports->children; i++) {
		const zend_ast *import = imports->child[i];
		uint32_t type = type_of_group ? type_of_group : imports->attr ? imports->attr : import->attr;
		declares_container |= imports_container(import, type);
	}
}

/* Notes whether the snippet declares or imports a container() of its own. */
static void note_own_container(zend_ast *ast)
{
	if (ast->kind == ZEND_AST_FUNC_DECL) {
		declares_container |= zend_string_equals_literal_ci(((zend_ast_decl *) ast)->name, "container");
	} else if (ast->kind == ZEND_AST_USE) {
		note_imports(ast, 0);
	} else if (ast->kind == ZEND_AST_GROUP_USE) {
		note_imports(ast->child[1], ast->attr);
	}
}

static void point_to_our_container(zend_ast *ast)
{
	if (ast->kind == ZEND_AST_CALL && is_named_container(ast->child[0])
		&& ast->child[0]->attr != ZEND_NAME_RELATIVE) { /* not namespace\container() */
		zval *name = zend_ast_get_zval(ast->child[0]);
		zval_ptr_dtor_str(name);
		ZVAL_STR(name, zend_string_init(ALTAIR_CONTAINER_KEY, sizeof(ALTAIR_CONTAINER_KEY) - 1, 0));
		ast->child[0]->attr = ZEND_NAME_FQ;
	}
}

static void on_snippet_ast(zend_ast *ast)
{
	zend_ast_list *statements = zend_ast_get_list(ast);
	zend_ast **only = NULL;
	uint32_t count = 0;
	for (uint32_t i = 0; i < statements->children; i++) {
		if (statements->child[i] != NULL) { /* NULL is a lone semicolon */
			only = &statements->child[i];
			count++;
		}
	}
	is_expression = count == 1 && is_expression_statement(*only);
	if (is_expression) {
		*only = zend_ast_create(ZEND_AST_RETURN, *only);
	}
	declares_container = false;
	visit(ast, note_own_container);
	if (!declares_container) {
		visit(ast, point_to_our_container);
	}
	if (next_ast_process) {
		next_ast_process(ast);
	}
}

/* Where the scanner was when it, or the parser, gave up: bytes into the snippet, -1 where neither did for good. */
static zend_long parse_error_offset = -1;
static void (*next_throw_hook)(zend_object *);

static void on_parse_error(zend_object *exception)
{
	/* Nothing else of the snippet has run yet. */
	if (exception != NULL && exception->ce == zend_ce_parse_error && parse_error_offset < 0) {
		parse_error_offset = LANG_SCNG(yy_text) - LANG_SCNG(yy_start);
	}
	if (next_throw_hook) {
		next_throw_hook(exception);
	}
}

ptrdiff_t altair_parse_error_offset(void)
{
	return parse_error_offset;
}

static zend_op_array *compile(const char *text, size_t len, const char *tail)
{
	zend_string *source = zend_string_concat2(text, len, tail, strlen(tail));
	zend_op_array *code = NULL;
	next_ast_process = zend_ast_process;
	zend_ast_process = on_snippet_ast;
	next_throw_hook = zend_throw_exception_hook;
	zend_throw_exception_hook = on_parse_error;
	compiling = true;
	code = zend_compile_string(source, ALTAIR_SNIPPET, ZEND_COMPILE_POSITION_AFTER_OPEN_TAG);
	zend_ast_process = next_ast_process;
	zend_throw_exception_hook = next_throw_hook;
	compiling = false;
	zend_string_release(source);
	if (code != NULL) {
		name_of_snippet = code->filename;
	}
	return code;
}

const zend_string *altair_snippet_name(void)
{
	return name_of_snippet;
}

zend_op_array *altair_compile_snippet(const char *text, size_t len)
{
	zend_op_array *code = compile(text, len, "");
	if (code != NULL || EG(exception) == NULL || EG(exception)->ce != zend_ce_parse_error) {
		return code;
	}
	/* `User::count()` without a semicolon is allowed. Other code without one stays an error. */
	zend_object *error = altair_take_exception();
	is_expression = false;
	code = compile(text, len, "\n;");
	if (code != NULL && is_expression) {
		OBJ_RELEASE(error);
		parse_error_offset = -1;
		return code;
	}
	if (code != NULL) {
		destroy_op_array(code);
		efree(code);
	}
	if (EG(exception)) {
		zend_clear_exception();
	}
	zend_throw_exception_internal(error);
	return NULL;
}

void altair_leave_compiler(void)
{
	if (compiling) {
		compiling = false;
		zend_ast_process = next_ast_process;
		zend_throw_exception_hook = next_throw_hook;
	}
}
