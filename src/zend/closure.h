/* What the files about closures share: rules, a compilation apart, the form in which code is compared. */
#ifndef ALTAIR_CLOSURE_H
#define ALTAIR_CLOSURE_H

#include "shim.h"
#include "zend_arena.h"
#include "zend_language_scanner.h"

/* ---- bytes that grow ---- */

typedef struct {
	char *bytes;
	size_t len, size;
} altair_buffer;

/* From the system's memory, not PHP's. Without a word where there is none. */
void altair_put(altair_buffer *to, const void *bytes, size_t len);
void altair_put_number(altair_buffer *to, uint64_t number);
void altair_put_text(altair_buffer *to, const zend_string *text);

/* ---- instructions ---- */

/* The code of a closure that was written in PHP; NULL for a function that was made into one. */
const zend_op_array *altair_closure_code(const zend_object *closure);
/* The first instruction that no entry point has, and its line within the code. `yield_line` is where a `yield` stands
 * that was not compiled, 0 for none. `closure` may be NULL: then whatever can capture does. */
enum altair_closure_rule altair_instruction_rule(
	const zend_op_array *code, const zend_object *closure, uint32_t yield_line, uint32_t *line);

/* ---- the form of code ---- */

/* What code is, as bytes: equal for two compilations of the same source. `is_strict` leaves nothing out, and is for
 * code that was compiled together; `doc` is the comment that belongs to it then. */
void altair_form(altair_buffer *to, const zend_op_array *code, bool is_strict, const zend_string *doc);

/* ---- a compilation apart ---- */

typedef struct {
	zend_string *doc;
	uint32_t yield_line; /* 0 for none */
} altair_mark;

typedef struct altair_apart altair_apart;

/* Compiles a file's bytes. Nobody is told of errors and warnings, and nothing is declared. NULL with a message where it
 * cannot be. altair_apart_end() has to follow before anything else runs; the code of the way RECEIVING stays. */
altair_apart *altair_apart_compile(const char *file, size_t file_len, const char *source, size_t source_len,
	bool short_tags, enum altair_closure_way way, const char *hidden, size_t hidden_len, char *error, size_t error_size);
void altair_apart_end(altair_apart *apart);
typedef void (*altair_each_code)(void *context, uint32_t number, zend_op_array *code, const altair_mark *mark);
void altair_apart_closures(altair_apart *apart, altair_each_code each, void *context);

/* Names that PHP knows now and did not know when `code` was compiled: a letter, the name, a NUL, each. */
void altair_unknown_names(altair_buffer *to, const zend_op_array *code);

#endif
