/* Compiling the snippet: its last expression becomes its result, container() becomes ours, a missing last
 * semicolon is forgiven, and classes that it names shortly are imported. */

#include "shim.h"
#include "ast_children.h"
#include "zend_exceptions.h"
#include "zend_language_scanner.h"

static zend_ast_process_t next_ast_process;
static bool compiling;

/* The file names of all code that was compiled as a snippet, by their address: each compilation has its own. A session
 * compiles one for each line, and what an earlier line has declared is still code of the snippet. */
static HashTable names_of_snippets;
static const zend_string *name_of_snippet; /* the last one */

static bool declares_container;

/* What is compiled, and how it went. */
static struct {
	bool has_added_semicolon;
	bool is_given_up;
	bool misses_classes;
	bool is_quiet;      /* what the scanner says was said before */
	bool is_judged;     /* only whether it is whole is asked */
	bool is_whole;
	size_t written;     /* bytes, without what we add */
	bool ends_too_early; /* the parser gave up at the end of what was written */
	int error_reporting;
	altair_missing_class missing;
	void *context;
	const altair_import *imports;
	size_t imports_count;
} now;

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
	zend_ast **child = NULL;
	uint32_t count = altair_ast_children(ast, &child);
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

/* ---- the last statement ---- */

/* The last of the statements that is more than a semicolon. */
static zend_ast **last_of(zend_ast_list *statements)
{
	for (uint32_t i = statements->children; i > 0; i--) {
		if (statements->child[i - 1] != NULL) {
			return &statements->child[i - 1];
		}
	}
	return NULL;
}

/* The list in which the last statement at the top level stands: that of a namespace with braces is its own. */
static zend_ast_list *last_list(zend_ast *ast)
{
	zend_ast_list *statements = zend_ast_get_list(ast);
	zend_ast **last = last_of(statements);
	return last != NULL && (*last)->kind == ZEND_AST_NAMESPACE && (*last)->child[1] != NULL
		? last_list((*last)->child[1]) : statements;
}

/* Whether a statement does nothing when it is its turn: what it says holds for the code around it. */
static bool is_about_code(const zend_ast *ast)
{
	return ast->kind == ZEND_AST_USE || ast->kind == ZEND_AST_GROUP_USE
		|| (ast->kind == ZEND_AST_NAMESPACE && ast->child[1] == NULL)
		|| (ast->kind == ZEND_AST_DECLARE && ast->child[1] == NULL);
}

static zend_ast *name_of(const char *text, size_t len)
{
	zval name;
	ZVAL_STRINGL(&name, text, len);
	zend_ast *ast = zend_ast_create_zval(&name);
	ast->attr = ZEND_NAME_FQ;
	return ast;
}

/* The last statement's value is the result, where it is an expression. */
static void return_last(zend_ast *ast)
{
	zend_ast_list *statements = last_list(ast);
	zend_ast **last = last_of(statements);
	if (last == NULL || !is_expression_statement(*last)) {
		return;
	}
	uint32_t line = zend_ast_get_lineno(*last);
	bool is_only = statements == zend_ast_get_list(ast);
	for (uint32_t i = 0; is_only && &statements->child[i] != last; i++) {
		is_only = statements->child[i] == NULL || is_about_code(statements->child[i]);
	}
	*last = zend_ast_create(ZEND_AST_RETURN, *last);
	(*last)->lineno = line;
	if (!is_only) {
		zend_ast *note = zend_ast_create(ZEND_AST_CALL,
			name_of(ALTAIR_LAST_KEY, sizeof(ALTAIR_LAST_KEY) - 1), zend_ast_create_list(0, ZEND_AST_ARG_LIST));
		note->lineno = line;
		*last = zend_ast_create_list(2, ZEND_AST_STMT_LIST, note, *last);
	}
}

/* Whether a semicolon that was added at the very end ends an expression, `return`, `echo` or `throw`, and is
 * no statement of its own: that would be all that a `while` does. */
static bool ends_with_value(const zend_ast *ast)
{
	if (ast == NULL) {
		return false;
	}
	switch (ast->kind) {
		case ZEND_AST_STMT_LIST: {
			/* The parts of an `echo`; not a block. */
			const zend_ast_list *list = zend_ast_get_list((zend_ast *) ast);
			return list->children > 0 && list->child[0] != NULL && list->child[0]->kind == ZEND_AST_ECHO;
		}
		case ZEND_AST_ECHO: case ZEND_AST_RETURN:
			return true;
		case ZEND_AST_WHILE:
			return ends_with_value(ast->child[1]);
		case ZEND_AST_FOR: case ZEND_AST_FOREACH:
			return ends_with_value(ast->child[3]);
		case ZEND_AST_IF: {
			const zend_ast_list *list = zend_ast_get_list((zend_ast *) ast);
			return ends_with_value(list->child[list->children - 1]->child[1]);
		}
		default:
			return is_expression_statement(ast);
	}
}

/* ---- classes ---- */

static bool is_name(const zend_ast *ast)
{
	return ast != NULL && ast->kind == ZEND_AST_ZVAL && Z_TYPE_P(zend_ast_get_zval((zend_ast *) ast)) == IS_STRING;
}

static HashTable known_classes;
static bool may_make_classes;

static void know_class(const zend_string *name)
{
	zend_string *lower = zend_string_tolower((zend_string *) name);
	zend_hash_add_empty_element(&known_classes, lower);
	zend_string_release(lower);
}

/* The name by which an import is known from then on. */
static void know_import(const zend_ast *import)
{
	const zend_string *name = Z_STR_P(zend_ast_get_zval(import->child[import->child[1] != NULL]));
	const char *last = zend_memrchr(ZSTR_VAL(name), '\\', ZSTR_LEN(name));
	zend_string *alias = last == NULL ? zend_string_copy((zend_string *) name)
		: zend_string_init(last + 1, (size_t) (ZSTR_VAL(name) + ZSTR_LEN(name) - last - 1), 0);
	know_class(alias);
	zend_string_release(alias);
}

/* What the snippet declares or imports; and whether it can make classes by other means. */
static void know_classes(zend_ast *ast)
{
	static const char *const makers[] = {"class_alias", "spl_autoload_register"};
	const zend_ast *imports = ast->kind == ZEND_AST_USE ? ast
		: ast->kind == ZEND_AST_GROUP_USE ? ast->child[1] : NULL;
	if (imports != NULL) {
		const zend_ast_list *list = zend_ast_get_list((zend_ast *) imports);
		for (uint32_t i = 0; i < list->children; i++) {
			know_import(list->child[i]); /* also of functions: those are seldom called as a class is */
		}
	} else if (ast->kind == ZEND_AST_CLASS && ((zend_ast_decl *) ast)->name != NULL) {
		know_class(((zend_ast_decl *) ast)->name);
	} else if (ast->kind == ZEND_AST_INCLUDE_OR_EVAL || ast->kind == ZEND_AST_NAMESPACE) {
		may_make_classes = true; /* in a namespace, no name has only one part */
	} else if (ast->kind == ZEND_AST_CALL && is_name(ast->child[0])) {
		const zend_string *name = Z_STR_P(zend_ast_get_zval(ast->child[0]));
		for (size_t i = 0; i < sizeof(makers) / sizeof(*makers); i++) {
			may_make_classes |= zend_binary_strcasecmp(
				ZSTR_VAL(name), ZSTR_LEN(name), makers[i], strlen(makers[i])) == 0;
		}
	}
}

/* Names that stand where a class's may, and are none (zend_compile.c, reserved_class_names). */
static bool is_reserved(const zend_string *name)
{
	static const char *const names[] = {"self", "parent", "static", "bool", "false", "float", "int", "null", "true",
		"string", "void", "never", "iterable", "object", "mixed", "array", "callable"};
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (zend_binary_strcasecmp(ZSTR_VAL(name), ZSTR_LEN(name), names[i], strlen(names[i])) == 0) {
			return true;
		}
	}
	return false;
}

static void look_at_class(const zend_ast *ast)
{
	if (!is_name(ast) || (ast->attr & 3) != ZEND_NAME_NOT_FQ) {
		return;
	}
	const zend_string *name = Z_STR_P(zend_ast_get_zval((zend_ast *) ast));
	if (is_reserved(name) || memchr(ZSTR_VAL(name), '\\', ZSTR_LEN(name)) != NULL) {
		return;
	}
	zend_string *lower = zend_string_tolower((zend_string *) name);
	if (!zend_hash_exists(EG(class_table), lower) && zend_hash_add_empty_element(&known_classes, lower)) {
		now.misses_classes = true;
		now.missing(now.context, ZSTR_VAL(name), ZSTR_LEN(name), zend_ast_get_lineno((zend_ast *) ast));
	}
	zend_string_release(lower);
}

/* Where a node names classes. */
static void look_at_classes(zend_ast *ast)
{
	switch (ast->kind) {
		case ZEND_AST_NEW: case ZEND_AST_STATIC_CALL: case ZEND_AST_STATIC_PROP: case ZEND_AST_CLASS_CONST:
		case ZEND_AST_CLASS_NAME: case ZEND_AST_PARAM: case ZEND_AST_PROP_GROUP:
			look_at_class(ast->child[0]);
			break;
		case ZEND_AST_INSTANCEOF:
			look_at_class(ast->child[1]);
			break;
#if PHP_VERSION_ID >= 80300
		case ZEND_AST_CLASS_CONST_GROUP:
			look_at_class(ast->child[2]);
			break;
#endif
		case ZEND_AST_CLASS:
			look_at_class(((zend_ast_decl *) ast)->child[0]);
			break;
		case ZEND_AST_FUNC_DECL: case ZEND_AST_CLOSURE: case ZEND_AST_METHOD: case ZEND_AST_ARROW_FUNC:
			look_at_class(((zend_ast_decl *) ast)->child[3]);
			break;
		case ZEND_AST_NAME_LIST: case ZEND_AST_TYPE_UNION: case ZEND_AST_TYPE_INTERSECTION: {
			const zend_ast_list *list = zend_ast_get_list(ast);
			for (uint32_t i = 0; i < list->children; i++) {
				look_at_class(list->child[i]);
			}
			break;
		}
		default:
			break;
	}
}

/* Tells of the classes that are not there. */
static void look_for_missing(zend_ast *ast)
{
	zend_hash_init(&known_classes, 8, NULL, NULL, 0);
	may_make_classes = false;
	visit(ast, know_classes);
	if (!may_make_classes) {
		visit(ast, look_at_classes);
	}
	zend_hash_destroy(&known_classes);
}

/* Puts imports before the first statement, but behind what has to be first. */
static void import_classes(zend_ast *ast)
{
	zend_ast_list *statements = zend_ast_get_list(ast);
	uint32_t first = 0;
	while (first < statements->children
		&& (statements->child[first] == NULL || (statements->child[first]->kind == ZEND_AST_DECLARE
			&& statements->child[first]->child[1] == NULL))) {
		first++;
	}
	if (now.imports_count == 0 || first == statements->children) {
		return;
	}
	zend_ast *list = zend_ast_create_list(0, ZEND_AST_STMT_LIST);
	for (size_t i = 0; i < now.imports_count; i++) {
		const altair_import *import = &now.imports[i];
		zend_ast *element = zend_ast_create(ZEND_AST_USE_ELEM, name_of(import->class_name, import->class_len),
			name_of(import->name, import->name_len));
		zend_ast *use = zend_ast_create_list(1, ZEND_AST_USE, element);
		use->attr = ZEND_SYMBOL_CLASS;
		list = zend_ast_list_add(list, use);
	}
	statements->child[first] = zend_ast_list_add(list, statements->child[first]);
}

bool altair_class_exists(const char *name, size_t len)
{
	zend_string *class_name = zend_string_init(name, len, 0);
	bool exists = zend_lookup_class(class_name) != NULL;
	zend_string_release(class_name);
	return exists;
}

/* ---- compiling ---- */

/* Has nothing compiled, and so nothing declared. */
static void give_up(zend_ast *ast)
{
	zend_ast_list *statements = zend_ast_get_list(ast);
	for (uint32_t i = 0; i < statements->children; i++) {
		zend_ast_destroy(statements->child[i]);
	}
	statements->children = 0;
	now.is_given_up = true;
}

static void (*next_throw_hook)(zend_object *);

static void leave_scanner(void)
{
	zend_ast_process = next_ast_process;
	zend_throw_exception_hook = next_throw_hook;
	if (now.is_quiet) {
		now.is_quiet = false;
		EG(error_reporting) = now.error_reporting;
	}
}

/* Whether what is being compiled is the snippet. A handler of the application's can be called while it is
 * scanned, for a deprecation, and compile other files. */
static bool is_of_snippet(void)
{
	const zend_string *file = zend_get_compiled_filename();
	return file != NULL && zend_string_equals_literal(file, ALTAIR_SNIPPET);
}

/* Before anything of it is declared: a fatal error later on leaves the functions that were declared by then. */
static void know_name(zend_string *name)
{
	if (names_of_snippets.nTableSize == 0) {
		zend_hash_init(&names_of_snippets, 8, NULL, NULL, 1);
	}
	if (zend_hash_index_add_empty_element(&names_of_snippets, (zend_ulong) (uintptr_t) name) != NULL) {
		zend_string_addref(name); /* no other name comes to be at this address */
	}
	name_of_snippet = name;
}

static void on_snippet_ast(zend_ast *ast)
{
	if (!is_of_snippet()) {
		if (next_ast_process) {
			next_ast_process(ast);
		}
		return;
	}
	know_name(zend_get_compiled_filename());
	leave_scanner(); /* what is compiled from here on is of other files */
	altair_bring_names(&CG(ast));
	ast = CG(ast);
	zend_ast **last = last_of(zend_ast_get_list(ast));
	if (now.has_added_semicolon && !ends_with_value(last != NULL ? *last : NULL)) {
		give_up(ast);
		return;
	}
	if (now.is_judged) {
		now.is_whole = true;
		give_up(ast);
		return;
	}
	if (now.missing != NULL) {
		look_for_missing(ast);
		if (now.misses_classes) {
			give_up(ast);
			return;
		}
	}
	declares_container = false;
	visit(ast, note_own_container);
	if (!declares_container) {
		visit(ast, point_to_our_container);
	}
	return_last(ast);
	import_classes(ast);
	if (next_ast_process) {
		next_ast_process(ast);
	}
}

/* Where the scanner was when it, or the parser, gave up: bytes into the snippet, -1 where neither did for good. */
static zend_long parse_error_offset = -1;

static void on_parse_error(zend_object *exception)
{
	/* Nothing else of the snippet has run yet. */
	if (exception != NULL && exception->ce == zend_ce_parse_error && parse_error_offset < 0 && is_of_snippet()) {
		parse_error_offset = LANG_SCNG(yy_text) - LANG_SCNG(yy_start);
		/* A string or a heredoc that is open goes to the end. */
		now.ends_too_early = (size_t) parse_error_offset >= now.written
			|| LANG_SCNG(yy_cursor) >= LANG_SCNG(yy_limit);
	}
	if (next_throw_hook) {
		next_throw_hook(exception);
	}
}

ptrdiff_t altair_parse_error_offset(void)
{
	return parse_error_offset;
}

static zend_op_array *compile(const char *text, size_t len, const char *tail, bool is_quiet)
{
	zend_string *source = zend_string_concat2(text, len, tail, strlen(tail));
	zend_op_array *code = NULL;
	next_ast_process = zend_ast_process;
	zend_ast_process = on_snippet_ast;
	next_throw_hook = zend_throw_exception_hook;
	zend_throw_exception_hook = on_parse_error;
	compiling = true;
	now.has_added_semicolon = *tail != '\0';
	now.written = len;
	now.is_given_up = now.misses_classes = false;
	now.is_quiet = is_quiet;
	if (is_quiet) {
		now.error_reporting = EG(error_reporting);
		EG(error_reporting) = 0;
	}
	code = zend_compile_string(source, ALTAIR_SNIPPET, ZEND_COMPILE_POSITION_AFTER_OPEN_TAG);
	leave_scanner();
	compiling = false;
	zend_string_release(source);
	if (code != NULL && now.is_given_up) {
		destroy_op_array(code);
		efree(code);
		return NULL;
	}
	return code;
}

const zend_string *altair_snippet_name(void)
{
	return name_of_snippet;
}

bool altair_is_name_of_snippet(const zend_string *name)
{
	return name == name_of_snippet || (names_of_snippets.nTableSize != 0
		&& zend_hash_index_exists(&names_of_snippets, (zend_ulong) (uintptr_t) name));
}

zend_op_array *altair_compile_snippet(const char *text, size_t len, altair_missing_class missing, void *context,
	const altair_import *imports, size_t count)
{
	now.missing = missing;
	now.context = context;
	now.imports = imports;
	now.imports_count = count;
	parse_error_offset = -1;
	zend_op_array *code = compile(text, len, "", missing == NULL);
	if (code != NULL || EG(exception) == NULL || EG(exception)->ce != zend_ce_parse_error) {
		return code;
	}
	/* Without its last semicolon, perhaps. On a line of its own: a comment may be the last. */
	zend_object *error = altair_take_exception();
	code = compile(text, len, "\n;", true);
	if (code != NULL || now.misses_classes) {
		OBJ_RELEASE(error);
		parse_error_offset = -1;
		return code;
	}
	if (EG(exception)) {
		zend_clear_exception();
	}
	zend_throw_exception_internal(error);
	return NULL;
}

bool altair_is_whole(const char *text, size_t len)
{
	now.missing = NULL;
	now.imports_count = 0;
	now.is_judged = true;
	now.is_whole = now.ends_too_early = false;
	compile(text, len, "", true);
	if (!now.is_whole) {
		zend_clear_exception();
		parse_error_offset = -1;
		now.ends_too_early = false;
		compile(text, len, "\n;", true);
	}
	zend_clear_exception();
	parse_error_offset = -1;
	now.is_judged = false;
	/* Where a statement is complete but for what it does, nothing was wrong and nothing is whole. */
	return now.is_whole || (!now.is_given_up && !now.ends_too_early);
}

void altair_leave_compiler(void)
{
	now.is_judged = false;
	if (compiling) {
		compiling = false;
		leave_scanner();
	}
}

void altair_throw_error(const char *message, size_t len, uint32_t line)
{
	zval place;
	zend_throw_error(NULL, "%.*s", (int) len, message);
	zend_object *error = EG(exception);
	ZVAL_STRING(&place, ALTAIR_SNIPPET);
	zend_update_property_ex(zend_ce_error, error, ZSTR_KNOWN(ZEND_STR_FILE), &place);
	zval_ptr_dtor(&place);
	ZVAL_LONG(&place, line);
	zend_update_property_ex(zend_ce_error, error, ZSTR_KNOWN(ZEND_STR_LINE), &place);
}
