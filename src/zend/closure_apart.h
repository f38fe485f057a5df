/* Inside a compilation apart. */
#ifndef ALTAIR_CLOSURE_APART_H
#define ALTAIR_CLOSURE_APART_H

#include "closure.h"

/* In front of the number of a closure, in its comment. */
#define ALTAIR_MARK "\1altair closure "

/* What a compilation uses of the engine's state. A bailout leaves it as it was at that moment. */
typedef struct {
	zend_lex_state scanner;
	int loop_vars, delayed_oplines, short_circuits;
	zend_class_entry *active_class_entry, *current_linking_class;
	zend_op_array *active_op_array;
	int lineno;
	HashTable *function_table, *class_table, *executed_functions, *executed_classes, *constants;
	bool in_compilation, short_tags, unclean_shutdown, skip_shebang, increment_lineno, encoding_declared, gc_protected;
	uint8_t parse_error;
	zend_string *doc_comment;
	uint32_t extra_fn_flags, compiler_options;
	zend_oparray_context context;
	zend_file_context file_context;
	zend_ast *ast;
	zend_arena *ast_arena;
	HashTable *memoized_exprs, *delayed_variance_obligations, *delayed_autoloads, *unlinked_uses;
	int memoize_mode;
	int error_reporting, exit_status;
	zval user_error_handler;
	bool record_errors;
	zend_object *exception, *prev_exception;
	const zend_op *opline_before_exception, *opline;
	zend_execute_data *frame;
	JMP_BUF *bailout;
} altair_engine_state;

/* What a compilation would leave behind, and has of its own instead. */
typedef struct {
	zend_arena *arena;
	HashTable interned_strings;
	void *map_ptr_real_base, *map_ptr_base;
	size_t map_ptr_size, map_ptr_last;
	bool *armed;
} altair_left_behind;

struct altair_apart {
	zend_op_array *main;
	HashTable functions, classes, constants;
	altair_mark *marks;
	uint32_t count, size;
	bool is_kept;
	altair_left_behind outer;
	char *error;
	size_t error_size;
};

/* A bailout sets no state back, so that everything is. */
void altair_save_state(altair_engine_state *to);
void altair_restore_state(altair_engine_state *from);
void altair_leave_behind(altair_left_behind *outer);
void altair_bring_back(altair_left_behind *outer);

/* Whether an entry of a copy was made by the compilation. */
static inline bool altair_is_new(const HashTable *original, zend_string *key, const void *entry)
{
	return zend_hash_find_ptr(original, key) != entry;
}

#endif
