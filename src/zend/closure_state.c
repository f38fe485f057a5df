/* The engine's state around a compilation apart: what it uses is put back as it was, and what it would leave behind is
 * made and thrown away. */

#include "closure_apart.h"

void altair_save_state(altair_engine_state *to)
{
	zend_save_lexical_state(&to->scanner);
	to->loop_vars = CG(loop_var_stack).top;
	to->delayed_oplines = CG(delayed_oplines_stack).top;
	to->short_circuits = CG(short_circuiting_opnums).top;
	to->active_class_entry = CG(active_class_entry);
	to->current_linking_class = CG(current_linking_class);
	to->active_op_array = CG(active_op_array);
	to->lineno = CG(zend_lineno);
	to->function_table = CG(function_table);
	to->class_table = CG(class_table);
	to->executed_functions = EG(function_table);
	to->executed_classes = EG(class_table);
	to->constants = EG(zend_constants);
	to->in_compilation = CG(in_compilation);
	to->short_tags = CG(short_tags);
	to->unclean_shutdown = CG(unclean_shutdown);
	to->skip_shebang = CG(skip_shebang);
	to->increment_lineno = CG(increment_lineno);
	to->encoding_declared = CG(encoding_declared);
	to->gc_protected = gc_protected();
	to->parse_error = CG(parse_error);
	to->doc_comment = CG(doc_comment);
	to->extra_fn_flags = CG(extra_fn_flags);
	to->compiler_options = CG(compiler_options);
	to->context = CG(context);
	to->file_context = CG(file_context);
	to->ast = CG(ast);
	to->ast_arena = CG(ast_arena);
	to->memoized_exprs = CG(memoized_exprs);
	to->memoize_mode = CG(memoize_mode);
	to->delayed_variance_obligations = CG(delayed_variance_obligations);
	to->delayed_autoloads = CG(delayed_autoloads);
	to->unlinked_uses = CG(unlinked_uses);
	to->error_reporting = EG(error_reporting);
	to->exit_status = EG(exit_status);
	ZVAL_COPY_VALUE(&to->user_error_handler, &EG(user_error_handler));
	to->record_errors = EG(record_errors);
	to->exception = EG(exception);
	to->prev_exception = EG(prev_exception);
	to->opline_before_exception = EG(opline_before_exception);
	to->frame = EG(current_execute_data);
	to->opline = to->frame == NULL ? NULL : to->frame->opline;
	to->bailout = EG(bailout);
}

void altair_restore_state(altair_engine_state *from)
{
	EG(current_execute_data) = from->frame;
	if (from->frame != NULL) {
		from->frame->opline = from->opline;
	}
	EG(opline_before_exception) = from->opline_before_exception;
	EG(exception) = from->exception;
	EG(prev_exception) = from->prev_exception;
	EG(bailout) = from->bailout;
	EG(record_errors) = from->record_errors;
	ZVAL_COPY_VALUE(&EG(user_error_handler), &from->user_error_handler);
	EG(error_reporting) = from->error_reporting;
	EG(exit_status) = from->exit_status;
	/* What is left of a compilation that was cut short. */
	if (CG(doc_comment) != NULL) {
		zend_string_release(CG(doc_comment));
		CG(doc_comment) = NULL;
	}
	zend_restore_lexical_state(&from->scanner);
	CG(loop_var_stack).top = from->loop_vars;
	CG(delayed_oplines_stack).top = from->delayed_oplines;
	CG(short_circuiting_opnums).top = from->short_circuits;
	CG(active_class_entry) = from->active_class_entry;
	CG(current_linking_class) = from->current_linking_class;
	CG(active_op_array) = from->active_op_array;
	CG(zend_lineno) = from->lineno;
	CG(function_table) = from->function_table;
	CG(class_table) = from->class_table;
	EG(function_table) = from->executed_functions;
	EG(class_table) = from->executed_classes;
	EG(zend_constants) = from->constants;
	CG(in_compilation) = from->in_compilation;
	CG(short_tags) = from->short_tags;
	CG(unclean_shutdown) = from->unclean_shutdown;
	CG(skip_shebang) = from->skip_shebang;
	CG(increment_lineno) = from->increment_lineno;
	CG(encoding_declared) = from->encoding_declared;
	gc_protect(from->gc_protected);
	CG(parse_error) = from->parse_error;
	CG(doc_comment) = from->doc_comment;
	CG(extra_fn_flags) = from->extra_fn_flags;
	CG(compiler_options) = from->compiler_options;
	CG(context) = from->context;
	CG(file_context) = from->file_context;
	CG(ast) = from->ast;
	CG(ast_arena) = from->ast_arena;
	CG(memoized_exprs) = from->memoized_exprs;
	CG(memoize_mode) = from->memoize_mode;
	CG(delayed_variance_obligations) = from->delayed_variance_obligations;
	CG(delayed_autoloads) = from->delayed_autoloads;
	CG(unlinked_uses) = from->unlinked_uses;
}

/* ---- what would stay ---- */

static void free_interned(zval *value)
{
	pefree(Z_STR_P(value), GC_FLAGS(Z_STR_P(value)) & IS_STR_PERSISTENT);
}

/* Slots that the compilation takes, and classes that the engine has noted beside their names, are in a table of its
 * own. The table of a later PHP has a part before the base. */
static void swap_map(altair_left_behind *outer)
{
	size_t before = (size_t) ((char *) CG(map_ptr_base) - (char *) ZEND_MAP_PTR_BIASED_BASE(CG(map_ptr_real_base)));
	outer->map_ptr_real_base = CG(map_ptr_real_base);
	outer->map_ptr_base = CG(map_ptr_base);
	outer->map_ptr_size = CG(map_ptr_size);
	outer->map_ptr_last = CG(map_ptr_last);
	void *base = pecalloc(1, before + CG(map_ptr_size) * sizeof(void *), true);
	CG(map_ptr_real_base) = base;
	CG(map_ptr_base) = ZEND_MAP_PTR_BIASED_BASE((char *) base + before);
}

void altair_leave_behind(altair_left_behind *outer)
{
	zend_auto_global *global;
	uint32_t i = 0;
	outer->arena = CG(arena);
	CG(arena) = zend_arena_create(64 * 1024);
	outer->interned_strings = CG(interned_strings);
	zend_hash_init(&CG(interned_strings), 256, NULL, free_interned, 0);
	swap_map(outer);
	/* To name $_SERVER in code makes it. The code that runs has done that. */
	outer->armed = safe_pemalloc(zend_hash_num_elements(CG(auto_globals)), sizeof(bool), 1, true);
	ZEND_HASH_FOREACH_PTR(CG(auto_globals), global) {
		outer->armed[i++] = global->armed;
		global->armed = false;
	} ZEND_HASH_FOREACH_END();
}

void altair_bring_back(altair_left_behind *outer)
{
	zend_auto_global *global;
	uint32_t i = 0;
	ZEND_HASH_FOREACH_PTR(CG(auto_globals), global) {
		global->armed = outer->armed[i++];
	} ZEND_HASH_FOREACH_END();
	pefree(outer->armed, true);
	pefree(CG(map_ptr_real_base), true);
	CG(map_ptr_real_base) = outer->map_ptr_real_base;
	CG(map_ptr_base) = outer->map_ptr_base;
	CG(map_ptr_size) = outer->map_ptr_size;
	CG(map_ptr_last) = outer->map_ptr_last;
	zend_hash_destroy(&CG(interned_strings));
	CG(interned_strings) = outer->interned_strings;
	zend_arena_destroy(CG(arena));
	CG(arena) = outer->arena;
}
