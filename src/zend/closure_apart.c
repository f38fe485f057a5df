/* Compiles a file's bytes apart from what runs: nobody is told of errors and warnings, nothing is declared, and unless
 * it is to run here, nothing stays. Closures are numbered as they stand in the source, whatever is compiled of them. */

#include "closure_apart.h"
#include "ast_children.h"
#include "zend_constants.h"
#include "zend_exceptions.h"
#include "zend_ini.h"
#include "Optimizer/zend_optimizer.h"

/* The compilation of this thread. */
ZEND_TLS altair_apart *now;

/* ---- hooks, for the time of a compilation ---- */

static void (*next_error)(int, zend_string *, const uint32_t, zend_string *);
static zend_ast_process_t next_ast_process;
static void (*next_throw_hook)(zend_object *);
#ifdef ZTS
static MUTEX_T hooks_lock;
static uint32_t hooked_threads;
#endif

static void on_error(int type, zend_string *file, const uint32_t line, zend_string *message)
{
	if (now == NULL) {
		next_error(type, file, line, message);
		return;
	}
	if (type & (E_ERROR | E_PARSE | E_CORE_ERROR | E_COMPILE_ERROR | E_USER_ERROR | E_RECOVERABLE_ERROR)) {
		snprintf(now->error, now->error_size, "%.*s on line %u",
			(int) MIN(ZSTR_LEN(message), 500), ZSTR_VAL(message), (unsigned) line);
		zend_bailout();
	}
}

static bool is_closure(const zend_ast *ast)
{
	return ast->kind == ZEND_AST_CLOSURE || ast->kind == ZEND_AST_ARROW_FUNC;
}

/* Notes what the compiled code does not tell, and has the code carry its number. */
static uint32_t mark(altair_apart *apart, zend_ast_decl *decl)
{
	char text[sizeof ALTAIR_MARK + 10];
	if (apart->count == apart->size) {
		apart->size = apart->size * 2 + 16;
		apart->marks = safe_perealloc(apart->marks, apart->size, sizeof *apart->marks, 0, true);
	}
	altair_mark *added = &apart->marks[apart->count];
	added->doc = decl->doc_comment;
	added->yield_line = 0;
	int len = snprintf(text, sizeof text, ALTAIR_MARK "%u", (unsigned) apart->count);
	decl->doc_comment = zend_string_init(text, (size_t) len, 0);
	return apart->count++;
}

/* `around` is the closure in which a node stands, UINT32_MAX for none. */
static void mark_closures(altair_apart *apart, zend_ast *ast, uint32_t around)
{
	if (ast == NULL) {
		return;
	}
	if ((ast->kind == ZEND_AST_YIELD || ast->kind == ZEND_AST_YIELD_FROM) && around != UINT32_MAX
		&& apart->marks[around].yield_line == 0) {
		apart->marks[around].yield_line = ast->lineno;
	}
	if (is_closure(ast)) {
		around = mark(apart, (zend_ast_decl *) ast);
	} else if (altair_is_declaration(ast) && ast->kind != ZEND_AST_CLASS) {
		around = UINT32_MAX;
	}
	zend_ast **child = NULL;
	uint32_t count = altair_ast_children(ast, &child);
	for (uint32_t i = 0; i < count; i++) {
		mark_closures(apart, child[i], around);
	}
}

static void on_ast(zend_ast *ast)
{
	if (now != NULL) {
		mark_closures(now, ast, UINT32_MAX);
	}
	if (next_ast_process) {
		next_ast_process(ast);
	}
}

static void on_throw(zend_object *exception)
{
	if (now == NULL && next_throw_hook) {
		next_throw_hook(exception);
	}
}

/* The hooks are the whole process's, and others set theirs at any time: these are there only while they are needed. */
static void set_hooks(void)
{
#ifdef ZTS
	tsrm_mutex_lock(hooks_lock);
	if (hooked_threads++ > 0) {
		tsrm_mutex_unlock(hooks_lock);
		return;
	}
#endif
	next_error = zend_error_cb;
	next_ast_process = zend_ast_process;
	next_throw_hook = zend_throw_exception_hook;
	zend_error_cb = on_error;
	zend_ast_process = on_ast;
	zend_throw_exception_hook = on_throw;
#ifdef ZTS
	tsrm_mutex_unlock(hooks_lock);
#endif
}

static void unset_hooks(void)
{
#ifdef ZTS
	tsrm_mutex_lock(hooks_lock);
	if (--hooked_threads > 0) {
		tsrm_mutex_unlock(hooks_lock);
		return;
	}
#endif
	zend_error_cb = next_error;
	zend_ast_process = next_ast_process;
	zend_throw_exception_hook = next_throw_hook;
#ifdef ZTS
	tsrm_mutex_unlock(hooks_lock);
#endif
}

void altair_closure_startup(void)
{
#ifdef ZTS
	hooks_lock = tsrm_mutex_alloc();
#endif
}

/* ---- what is known ---- */

static bool is_hidden(const char *hidden, size_t len, char kind, const zend_string *name)
{
	for (const char *at = hidden; at < hidden + len; at += strlen(at) + 1) {
		if (*at == kind && strlen(at + 1) == ZSTR_LEN(name) && memcmp(at + 1, ZSTR_VAL(name), ZSTR_LEN(name)) == 0) {
			return true;
		}
	}
	return false;
}

/* Copies of the tables, without what the file itself declares and what was not known. */
static void copy_tables(altair_apart *apart, const char *file, size_t file_len, bool internal_only, const char *hidden,
	size_t hidden_len)
{
	zend_string *name;
	zend_function *function;
	zend_class_entry *ce;
	zend_constant *constant;
	zend_hash_init(&apart->functions, zend_hash_num_elements(EG(function_table)) + 64, NULL, NULL, 0);
	ZEND_HASH_FOREACH_STR_KEY_PTR(EG(function_table), name, function) {
		if (name == NULL || (function->type == ZEND_USER_FUNCTION && (internal_only
			|| zend_string_equals_cstr(function->op_array.filename, file, file_len)
			|| is_hidden(hidden, hidden_len, 'f', name)))) {
			continue;
		}
		zend_hash_add_new_ptr(&apart->functions, name, function);
	} ZEND_HASH_FOREACH_END();
	zend_hash_init(&apart->classes, zend_hash_num_elements(EG(class_table)) + 64, NULL, NULL, 0);
	ZEND_HASH_FOREACH_STR_KEY_PTR(EG(class_table), name, ce) {
		if (name == NULL || (ce->type == ZEND_USER_CLASS && (internal_only
			|| (ce->info.user.filename != NULL && zend_string_equals_cstr(ce->info.user.filename, file, file_len))
			|| is_hidden(hidden, hidden_len, 'k', name)))) {
			continue;
		}
		zend_hash_add_new_ptr(&apart->classes, name, ce);
	} ZEND_HASH_FOREACH_END();
	zend_hash_init(&apart->constants, zend_hash_num_elements(EG(zend_constants)) + 8, NULL, NULL, 0);
	ZEND_HASH_FOREACH_STR_KEY_PTR(EG(zend_constants), name, constant) {
		if (name != NULL && !is_hidden(hidden, hidden_len, 'c', name)) {
			zend_hash_add_new_ptr(&apart->constants, name, constant);
		}
	} ZEND_HASH_FOREACH_END();
}

static void free_constant(zend_constant *constant)
{
	zval_ptr_dtor(&constant->value);
	if (constant->name) {
		zend_string_release(constant->name);
	}
	efree(constant);
}

/* What the compilation has made, the last first: a class is bound to one that was made before. */
static void free_made(altair_apart *apart)
{
	zend_string *key;
	zval *entry;
	ZEND_HASH_REVERSE_FOREACH_STR_KEY_VAL(&apart->classes, key, entry) {
		if (altair_is_new(EG(class_table), key, Z_PTR_P(entry))) {
			destroy_zend_class(entry);
		}
	} ZEND_HASH_FOREACH_END();
	ZEND_HASH_REVERSE_FOREACH_STR_KEY_VAL(&apart->functions, key, entry) {
		if (altair_is_new(EG(function_table), key, Z_PTR_P(entry))) {
			destroy_op_array(Z_PTR_P(entry));
		}
	} ZEND_HASH_FOREACH_END();
	ZEND_HASH_REVERSE_FOREACH_STR_KEY_VAL(&apart->constants, key, entry) {
		if (altair_is_new(EG(zend_constants), key, Z_PTR_P(entry))) {
			free_constant(Z_PTR_P(entry));
		}
	} ZEND_HASH_FOREACH_END();
	if (apart->main != NULL) {
		destroy_op_array(apart->main);
		efree(apart->main);
	}
}

/* ---- compiling ---- */

static void set(altair_apart *apart, bool short_tags, uint32_t options)
{
	CG(active_class_entry) = CG(current_linking_class) = NULL;
	CG(active_op_array) = NULL;
	CG(function_table) = EG(function_table) = &apart->functions;
	CG(class_table) = EG(class_table) = &apart->classes;
	EG(zend_constants) = &apart->constants;
	CG(in_compilation) = false;
	CG(short_tags) = short_tags;
	CG(skip_shebang) = false;
	CG(doc_comment) = NULL;
	CG(extra_fn_flags) = 0;
	CG(compiler_options) = options;
	CG(memoized_exprs) = NULL;
	CG(memoize_mode) = 0;
	CG(delayed_variance_obligations) = CG(delayed_autoloads) = CG(unlinked_uses) = NULL;
	EG(error_reporting) = 0;
	ZVAL_UNDEF(&EG(user_error_handler));
	EG(record_errors) = false;
	EG(exception) = EG(prev_exception) = NULL;
}

static uint32_t options_of(enum altair_closure_way way)
{
	/* Handlers of other extensions are for code that runs. */
	uint32_t own = CG(compiler_options) & ~(uint32_t) ZEND_COMPILE_HANDLE_OP_ARRAY;
	switch (way) {
		case ALTAIR_WAY_OPCACHE: {
			/* opcache_compile_file() */
			const char *file_cache = zend_ini_string_ex("opcache.file_cache", sizeof("opcache.file_cache") - 1, 0, NULL);
			return own | ZEND_COMPILE_IGNORE_INTERNAL_CLASSES | ZEND_COMPILE_DELAYED_BINDING
				| ZEND_COMPILE_NO_CONSTANT_SUBSTITUTION
				| ZEND_COMPILE_IGNORE_OTHER_FILES | ZEND_COMPILE_IGNORE_OBSERVER
				| (file_cache != NULL && *file_cache != '\0' ? ZEND_COMPILE_WITH_FILE_CACHE : 0);
		}
		case ALTAIR_WAY_LITERAL:
			return own | ZEND_COMPILE_IGNORE_INTERNAL_FUNCTIONS | ZEND_COMPILE_IGNORE_USER_FUNCTIONS
				| ZEND_COMPILE_IGNORE_INTERNAL_CLASSES | ZEND_COMPILE_IGNORE_OTHER_FILES
				| ZEND_COMPILE_DELAYED_BINDING | ZEND_COMPILE_NO_CONSTANT_SUBSTITUTION
				| ZEND_COMPILE_NO_PERSISTENT_CONSTANT_SUBSTITUTION | ZEND_COMPILE_NO_BUILTINS;
		case ALTAIR_WAY_RECEIVING:
			/* The functions and classes of the file itself are not there when its closures run. */
			return CG(compiler_options) | ZEND_COMPILE_IGNORE_USER_FUNCTIONS | ZEND_COMPILE_IGNORE_OTHER_FILES
				| ZEND_COMPILE_IGNORE_INTERNAL_CLASSES | ZEND_COMPILE_DELAYED_BINDING
				| ZEND_COMPILE_NO_CONSTANT_SUBSTITUTION;
		default:
			return own;
	}
}

/* As opcache does with what it has compiled. */
static void optimise(altair_apart *apart, const altair_engine_state *saved)
{
	zend_string *key;
	void *entry;
	zend_script script;
	script.filename = apart->main->filename;
	script.main_op_array = *apart->main;
	zend_hash_init(&script.function_table, 8, NULL, NULL, 0);
	zend_hash_init(&script.class_table, 8, NULL, NULL, 0);
	ZEND_HASH_FOREACH_STR_KEY_PTR(&apart->functions, key, entry) {
		if (altair_is_new(saved->executed_functions, key, entry)) {
			zend_hash_add_new_ptr(&script.function_table, key, entry);
		}
	} ZEND_HASH_FOREACH_END();
	ZEND_HASH_FOREACH_STR_KEY_PTR(&apart->classes, key, entry) {
		if (altair_is_new(saved->executed_classes, key, entry)) {
			zend_hash_add_new_ptr(&script.class_table, key, entry);
		}
	} ZEND_HASH_FOREACH_END();
	zend_optimize_script(&script, zend_ini_long("opcache.optimization_level",
		sizeof("opcache.optimization_level") - 1, 0), 0);
	*apart->main = script.main_op_array;
	zend_hash_destroy(&script.function_table);
	zend_hash_destroy(&script.class_table);
}

/* Takes the message of a parse error, which is an exception. */
static void note_exception(altair_apart *apart)
{
	zval unused;
	zend_object *exception = EG(exception);
	if (exception == NULL) {
		return;
	}
	zval *message = zend_read_property(zend_ce_error, exception, ZEND_STRL("message"), true, &unused);
	zval *line = zend_read_property(zend_ce_error, exception, ZEND_STRL("line"), true, &unused);
	if (Z_TYPE_P(message) == IS_STRING && Z_TYPE_P(line) == IS_LONG) {
		snprintf(apart->error, apart->error_size, "%.*s on line %u", (int) MIN(Z_STRLEN_P(message), 500),
			Z_STRVAL_P(message), (unsigned) Z_LVAL_P(line));
	}
	EG(exception) = NULL;
	OBJ_RELEASE(exception);
}

static bool compile(altair_apart *apart, zend_string *source, const char *file, enum altair_closure_way way,
	const altair_engine_state *saved)
{
	volatile bool is_whole = false;
	zend_try {
		/* Skips a first line with `#!`, and nothing else. */
		apart->main = compile_string(source, file, ZEND_COMPILE_POSITION_AT_SHEBANG);
		if (apart->main != NULL && way == ALTAIR_WAY_OPCACHE) {
			optimise(apart, saved);
		}
		is_whole = apart->main != NULL && EG(exception) == NULL;
		note_exception(apart);
	} zend_end_try();
	return is_whole;
}

static void free_apart(altair_apart *apart)
{
	for (uint32_t i = 0; i < apart->count; i++) {
		if (apart->marks[i].doc != NULL) {
			zend_string_release(apart->marks[i].doc);
		}
	}
	zend_hash_destroy(&apart->functions);
	zend_hash_destroy(&apart->classes);
	zend_hash_destroy(&apart->constants);
	free(apart->marks);
	free(apart);
}

altair_apart *altair_apart_compile(const char *file, size_t file_len, const char *source, size_t source_len,
	bool short_tags, enum altair_closure_way way, const char *hidden, size_t hidden_len, char *error, size_t error_size)
{
	altair_engine_state saved;
	altair_apart *apart = calloc(1, sizeof *apart);
	if (apart == NULL) {
		snprintf(error, error_size, "there is not enough memory");
		return NULL;
	}
	apart->is_kept = way == ALTAIR_WAY_RECEIVING;
	apart->error = error;
	apart->error_size = error_size;
	snprintf(error, error_size, "it cannot be compiled");
	/* With a table of its own, a number of the table of slots means nothing: names too are compared as text. */
	copy_tables(apart, file, file_len, way != ALTAIR_WAY_PLAIN, hidden, hidden_len);
	zend_string *text = zend_string_init(source, source_len, 0);
	altair_save_state(&saved);
	if (!apart->is_kept) {
		altair_leave_behind(&apart->outer);
	}
	set(apart, short_tags, options_of(way));
	set_hooks();
	now = apart;
	bool is_whole = compile(apart, text, file, way, &saved);
	now = NULL;
	unset_hooks();
	bool was_cut_short = CG(ast_arena) != NULL && !is_whole && CG(ast_arena) != saved.ast_arena;
	if (was_cut_short) {
		zend_arena_destroy(CG(ast_arena));
	}
	altair_restore_state(&saved);
	zend_string_release(text);
	if (is_whole) {
		return apart;
	}
	if (apart->is_kept) {
		apart->main = NULL;
		free_apart(apart);
		return NULL;
	}
	/* What was made is in no state to be taken apart; PHP drops it with the request. */
	apart->count = 0;
	altair_bring_back(&apart->outer);
	free_apart(apart);
	return NULL;
}

void altair_apart_end(altair_apart *apart)
{
	if (!apart->is_kept) {
		free_made(apart);
	}
	altair_left_behind outer = apart->outer;
	bool is_kept = apart->is_kept;
	free_apart(apart);
	if (!is_kept) {
		altair_bring_back(&outer);
	}
}
