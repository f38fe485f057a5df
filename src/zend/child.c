/* The child's side: entry, boot, compile, run, refuse, end. */

#include "shim.h"
#include "SAPI.h"
#include "zend_closures.h"
#include "zend_exceptions.h"
#include "zend_interfaces.h"
#include "zend_language_scanner.h"
#include "zend_vm.h"
#include "zend_weakrefs.h"
#include "ext/standard/basic_functions.h"

/* The name that the snippet is compiled under. */
#define SNIPPET "snippet"

/* The function-table key of `container()`. No PHP source can name it: it starts with a NUL. */
#define CONTAINER_KEY "\0altair\\container"

static zend_op_array *(*next_compile_string)(zend_string *, const char *, zend_compile_position);
static void (*entry_point)(void);
static zend_execute_data bottom;
static zend_array *scope;
static zval container;
static HashTable boot_objects;

/* ---- entry ---- */

static zend_op_array *first_compile(zend_string *code, const char *name, zend_compile_position at)
{
	(void) code, (void) name, (void) at;
	zend_compile_string = next_compile_string;
	entry_point(); /* does not return */
	return NULL;
}

void altair_on_first_compile(void (*entry)(void))
{
	entry_point = entry;
	next_compile_string = zend_compile_string;
	zend_compile_string = first_compile;
}

void altair_begin(void)
{
	zval empty, zero;
	/* A frame without a function is what the engine itself used where it was called from
	 * outside of any code. It keeps an exception pending that would be fatal without a frame. */
	memset(&bottom, 0, sizeof bottom);
	EG(current_execute_data) = &bottom;
	ZVAL_UNDEF(&container);
	ZVAL_EMPTY_ARRAY(&empty);
	ZVAL_LONG(&zero, 0);
	zend_hash_str_update(&EG(symbol_table), ZEND_STRL("argv"), &empty);
	zend_hash_str_update(&EG(symbol_table), ZEND_STRL("argc"), &zero);
	zval *server = zend_hash_str_find(&EG(symbol_table), ZEND_STRL("_SERVER"));
	if (server != NULL && Z_TYPE_P(server) == IS_ARRAY) {
		SEPARATE_ARRAY(server);
		zend_hash_str_update(Z_ARRVAL_P(server), ZEND_STRL("argv"), &empty);
		zend_hash_str_update(Z_ARRVAL_P(server), ZEND_STRL("argc"), &zero);
	}
	SG(request_info).argc = 0;
}

/* ---- fatal errors ---- */

static void (*next_error)(int, zend_string *, const uint32_t, zend_string *);
static altair_fatal_hook fatal_hook;

static void on_error(int type, zend_string *file, const uint32_t line, zend_string *message)
{
	if (type & E_FATAL_ERRORS) {
		/* Set while the memory manager reports that its limit, or the system's, was reached. */
		fatal_hook(zend_alloc_in_memory_limit_error_reporting(), file, line, message);
	}
	next_error(type, file, line, message);
}

void altair_on_fatal(altair_fatal_hook hook)
{
	fatal_hook = hook;
	next_error = zend_error_cb;
	zend_error_cb = on_error;
}

/* ---- unusual ends ---- */

static zend_ast_process_t next_ast_process;
static bool compiling_snippet;

void altair_recover(void)
{
	EG(current_execute_data) = &bottom;
	CG(in_compilation) = 0;
	CG(unclean_shutdown) = 0;
	if (compiling_snippet) {
		compiling_snippet = false;
		zend_ast_process = next_ast_process;
	}
}

static void (*exit_hook)(int);

#ifdef __GLIBC__
static void on_process_exit(int status, void *unused)
{
	(void) unused;
	exit_hook(status);
}
#endif

void altair_on_exit(void (*hook)(int))
{
	exit_hook = hook;
#ifdef __GLIBC__
	on_exit(on_process_exit, NULL);
#endif
}

/* ---- running code ---- */

/* What `include` does, but for a given scope and from outside of any code. */
static void run(zend_op_array *code, zend_array *symbols, zval *result)
{
	ZVAL_NULL(result);
	zend_execute_data *frame = zend_vm_stack_push_call_frame(
		ZEND_CALL_TOP_CODE | ZEND_CALL_HAS_SYMBOL_TABLE, (zend_function *) code, 0, NULL);
	frame->symbol_table = symbols;
	frame->prev_execute_data = EG(current_execute_data);
	zend_init_code_execute_data(frame, code, result);
	zend_execute_ex(frame);
	zend_vm_stack_free_call_frame(frame);
	if (EG(exception)) {
		ZVAL_UNDEF(result);
	}
}

void altair_require(const char *path, size_t len, zval *result)
{
	zend_file_handle file;
	zend_string *name = zend_string_init(path, len, 0);
	ZVAL_UNDEF(result);
	zend_stream_init_filename_ex(&file, name);
	zend_op_array *code = zend_compile_file(&file, ZEND_REQUIRE);
	if (code != NULL) {
		zend_hash_add_empty_element(&EG(included_files), file.opened_path ? file.opened_path : name);
	}
	zend_destroy_file_handle(&file);
	zend_string_release(name);
	if (code != NULL) {
		run(code, &EG(symbol_table), result);
	}
}

void altair_run_own(const char *text, size_t len, zval *result)
{
	zend_string *source = zend_string_init(text, len, 0);
	zend_op_array *code =
		zend_compile_string(source, "altair", ZEND_COMPILE_POSITION_AFTER_OPEN_TAG);
	zend_string_release(source);
	ZVAL_UNDEF(result);
	if (code != NULL) {
		zend_array *symbols = zend_new_array(0);
		run(code, symbols, result);
		zend_array_release(symbols);
	}
}

/* ---- the snippet's syntax tree ---- */

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

/* Whether a statement is an expression. The list is that of zend_compile_stmt(), whose default
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
		return; /* a special node of a later PHP, without code of the snippet's in it */
	}
	for (uint32_t i = 0; i < count; i++) {
		visit(child[i], each);
	}
}

/* Whether the snippet has a container() of its own, declared or imported. */
static void note_own_container(zend_ast *ast)
{
	if (ast->kind == ZEND_AST_FUNC_DECL) {
		declares_container |= zend_string_equals_literal_ci(((zend_ast_decl *) ast)->name, "container");
	} else if (ast->kind == ZEND_AST_USE_ELEM) {
		const zend_ast *alias = ast->child[1];
		declares_container |= is_named_container(alias);
		if (alias == NULL && ast->child[0]->kind == ZEND_AST_ZVAL) {
			const zend_string *name = Z_STR_P(zend_ast_get_zval(ast->child[0]));
			const char *last = zend_memrchr(ZSTR_VAL(name), '\\', ZSTR_LEN(name));
			last = last ? last + 1 : ZSTR_VAL(name);
			declares_container |= strcasecmp(last, "container") == 0;
		}
	}
}

static void point_to_our_container(zend_ast *ast)
{
	if (ast->kind == ZEND_AST_CALL && is_named_container(ast->child[0])) {
		zval *name = zend_ast_get_zval(ast->child[0]);
		zval_ptr_dtor_str(name);
		ZVAL_STR(name, zend_string_init(CONTAINER_KEY, sizeof(CONTAINER_KEY) - 1, 0));
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

static zend_op_array *compile(const char *text, size_t len, const char *tail)
{
	zend_string *source = zend_string_concat2(text, len, tail, strlen(tail));
	zend_op_array *code = NULL;
	next_ast_process = zend_ast_process;
	zend_ast_process = on_snippet_ast;
	compiling_snippet = true;
	code = zend_compile_string(source, SNIPPET, ZEND_COMPILE_POSITION_AFTER_OPEN_TAG);
	zend_ast_process = next_ast_process;
	compiling_snippet = false;
	zend_string_release(source);
	return code;
}

zend_op_array *altair_compile_snippet(const char *text, size_t len)
{
	zend_op_array *code = compile(text, len, "");
	if (code != NULL || EG(exception) == NULL || EG(exception)->ce != zend_ce_parse_error) {
		return code;
	}
	/* `User::count()` without its semicolon. Anything else that only lacks one stays an error. */
	zend_object *error = altair_take_exception();
	is_expression = false;
	code = compile(text, len, "\n;");
	if (code != NULL && is_expression) {
		OBJ_RELEASE(error);
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

void altair_run_snippet(zend_op_array *code, zval *result)
{
	scope = zend_new_array(0);
	run(code, scope, result);
}

void altair_release_scope(void)
{
	if (scope != NULL) {
		zend_array *symbols = scope;
		scope = NULL;
		zend_array_release(symbols);
	}
}

/* ---- container() ---- */

ZEND_BEGIN_ARG_INFO_EX(container_arginfo, 0, 0, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, id, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

static ZEND_FUNCTION(altair_container)
{
	zval *id = NULL;
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_ZVAL(id)
	ZEND_PARSE_PARAMETERS_END();
	if (id == NULL || Z_TYPE_P(id) == IS_NULL) {
		RETURN_COPY(&container);
	}
	if (Z_TYPE_P(id) != IS_STRING) {
		zend_argument_type_error(1, "must be of type ?string, %s given", zend_zval_type_name(id));
		RETURN_THROWS();
	}
	zend_call_method_with_1_params(Z_OBJ(container), Z_OBJCE(container), NULL, "get", return_value, id);
}

void altair_set_container(zval *value)
{
	static const zend_function_entry entry[] = {
		ZEND_NAMED_FE(container, ZEND_FN(altair_container), container_arginfo)
		ZEND_FE_END
	};
	ZVAL_COPY(&container, value);
	/* Registered in a table of its own and moved: under its own name it would collide with an
	 * application's function. */
	HashTable table;
	zend_hash_init(&table, 1, NULL, NULL, 1);
	zend_register_functions(NULL, entry, &table, MODULE_PERSISTENT);
	zend_function *function = zend_hash_str_find_ptr(&table, ZEND_STRL("container"));
	zend_string *key = zend_string_init(CONTAINER_KEY, sizeof(CONTAINER_KEY) - 1, 1);
	zend_hash_add_ptr(EG(function_table), key, function);
	zend_string_release(key);
	zend_hash_destroy(&table);
}

/* ---- the end of boot, the end of the run ---- */

void altair_end_boot(void)
{
	/* What boot registered is not the run's to call; the process ends without freeing it. */
	BG(user_shutdown_function_names) = NULL;
	zend_hash_init(&boot_objects, 8, NULL, NULL, 0);
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		/* Weak, so that an object that the snippet drops and replaces is not mistaken for it. */
		if (IS_OBJ_VALID(object)
			&& (object->handlers->dtor_obj != zend_objects_destroy_object || object->ce->destructor)) {
			zval mark;
			ZVAL_NULL(&mark);
			zend_weakrefs_hash_add(&boot_objects, object, &mark);
		}
	}
}

void altair_call_shutdown_functions(void)
{
	php_call_shutdown_functions();
}

static bool is_boot_object(zend_object *object)
{
	return zend_hash_index_exists(&boot_objects, zend_object_to_weakref_key(object));
}

void altair_call_destructors(void)
{
	for (uint32_t i = 1; i < EG(objects_store).top && EG(exception) == NULL; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (!IS_OBJ_VALID(object) || (OBJ_FLAGS(object) & IS_OBJ_DESTRUCTOR_CALLED) || is_boot_object(object)) {
			continue;
		}
		GC_ADD_FLAGS(object, IS_OBJ_DESTRUCTOR_CALLED);
		GC_ADDREF(object);
		object->handlers->dtor_obj(object);
		GC_DELREF(object);
	}
}

void altair_flush_output(void)
{
	php_output_end_all();
}

zend_long altair_exit_status(void)
{
	return EG(exit_status);
}

/* ---- refusing functions ---- */

typedef struct {
	zend_function *function; /* the one in the function table */
	zif_handler handler;     /* what it did */
	bool snippet_only;
	const char *lift;
} refused_function;

static refused_function refused[ALTAIR_REFUSED_MAX];
static uint32_t refused_count;
static bool was_refused[ALTAIR_REFUSED_MAX + 1];
static zif_handler next_function_exists;

static bool is_snippet(const zend_execute_data *ex)
{
	return zend_string_equals_literal(ex->func->op_array.filename, SNIPPET);
}

/* Whether the nearest PHP code around a call is the snippet's, or there is none at all. */
static bool from_snippet(const zend_execute_data *ex)
{
	while (ex != NULL && (ex->func == NULL || !ZEND_USER_CODE(ex->func->type))) {
		ex = ex->prev_execute_data;
	}
	return ex == NULL || is_snippet(ex);
}

static refused_function *find_refused(const zend_string *name)
{
	for (uint32_t i = 0; i < refused_count; i++) {
		if (zend_string_equals_ci(refused[i].function->common.function_name, name)) {
			return &refused[i];
		}
	}
	return NULL;
}

static bool applies(const refused_function *entry, const zend_execute_data *caller)
{
	return !entry->snippet_only || from_snippet(caller);
}

static ZEND_NAMED_FUNCTION(refuse)
{
	refused_function *entry = find_refused(execute_data->func->common.function_name);
	if (entry != NULL && !applies(entry, execute_data->prev_execute_data)) {
		entry->handler(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	if (entry != NULL) {
		was_refused[entry - refused] = true;
	}
	zend_throw_error(NULL, "%s() is refused in a confined run%s; %s allows it",
		ZSTR_VAL(execute_data->func->common.function_name),
		entry != NULL && entry->snippet_only ? " to code of the snippet" : "",
		entry != NULL ? entry->lift : "--unsafe");
}

static ZEND_NAMED_FUNCTION(function_exists)
{
	if (ZEND_NUM_ARGS() == 1) {
		zval *name = ZEND_CALL_ARG(execute_data, 1);
		ZVAL_DEREF(name);
		if (Z_TYPE_P(name) == IS_STRING) {
			const char *text = Z_STRVAL_P(name);
			size_t skip = Z_STRLEN_P(name) > 0 && text[0] == '\\';
			zend_string *bare = zend_string_init(text + skip, Z_STRLEN_P(name) - skip, 0);
			refused_function *entry = find_refused(bare);
			zend_string_release(bare);
			if (entry != NULL && applies(entry, execute_data->prev_execute_data)) {
				RETURN_FALSE;
			}
		}
	}
	next_function_exists(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

bool altair_refuse(const char *name, size_t len, bool snippet_only, const char *lift)
{
	zend_function *function = zend_hash_str_find_ptr(EG(function_table), name, len);
	if (function == NULL || function->type != ZEND_INTERNAL_FUNCTION || refused_count == ALTAIR_REFUSED_MAX) {
		return false;
	}
	refused[refused_count++] = (refused_function) {
		function, function->internal_function.handler, snippet_only, lift,
	};
	/* In place: compiled code keeps pointers to the function itself. */
	function->internal_function.handler = refuse;
	return true;
}

static zend_op_array *refuse_eval(zend_string *code, const char *name, zend_compile_position at)
{
	const zend_execute_data *caller = EG(current_execute_data);
	if (caller != NULL && caller->func != NULL && ZEND_USER_CODE(caller->func->type) && is_snippet(caller)) {
		was_refused[ALTAIR_EVAL_INDEX] = true;
		zend_throw_error(NULL,
			"eval() is refused in a confined run to code of the snippet; --unsafe allows it");
		return NULL;
	}
	return next_compile_string(code, name, at);
}

/* A closure as Zend/zend_closures.c has it, which keeps it to itself; the same from 8.0 to 8.5. */
typedef struct {
	zend_object std;
	zend_function func;
	zval this_ptr;
	zend_class_entry *called_scope;
	zif_handler orig_internal_handler;
} closure;

void altair_refuse_everywhere(void)
{
	for (uint32_t i = 1; i < EG(objects_store).top; i++) {
		zend_object *object = EG(objects_store).object_buckets[i];
		if (!IS_OBJ_VALID(object) || object->ce != zend_ce_closure) {
			continue;
		}
		/* A closure of a built-in function holds a copy of it, and calls the handler that the
		 * function had when the closure was made. */
		closure *of = (closure *) object;
		if (of->func.type != ZEND_INTERNAL_FUNCTION || of->func.common.scope != NULL) {
			continue;
		}
		for (uint32_t j = 0; j < refused_count; j++) {
			if (of->orig_internal_handler == refused[j].handler
				&& zend_string_equals(of->func.common.function_name, refused[j].function->common.function_name)) {
				of->orig_internal_handler = refuse;
			}
		}
	}
	zend_function *exists = zend_hash_str_find_ptr(EG(function_table), ZEND_STRL("function_exists"));
	if (exists != NULL && exists->type == ZEND_INTERNAL_FUNCTION) {
		next_function_exists = exists->internal_function.handler;
		exists->internal_function.handler = function_exists;
	}
	next_compile_string = zend_compile_string;
	zend_compile_string = refuse_eval;
}

bool altair_was_refused(uint32_t index)
{
	return index <= ALTAIR_REFUSED_MAX && was_refused[index];
}
