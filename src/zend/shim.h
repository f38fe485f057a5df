/* The face of the C shim: what ext-php-rs does not reach because it is a macro, a static inline
 * function or a hook of the engine. Every function that may run PHP code or allocate from PHP's
 * heap can bail out (longjmp); the Rust side calls those under `try_catch` only. */
#ifndef ALTAIR_SHIM_H
#define ALTAIR_SHIM_H

#include "php.h"

/* ---- frames: no allocation, usable in a signal handler ---- */

typedef struct {
	const zend_string *class_name;    /* NULL for a function */
	const zend_string *function_name; /* NULL for included code */
	bool is_static;                   /* `::` rather than `->` */
	const zend_string *file;          /* of the call; NULL where that is inside PHP */
	uint32_t line;                    /* of the call */
} altair_frame;

typedef struct {
	const zend_string *file; /* NULL where no PHP code is running */
	uint32_t line;
} altair_place;

/* Where the code is, and up to `max` frames from the innermost out; how many there are. */
size_t altair_frames(altair_place *place, altair_frame *frames, size_t max);

/* ---- classes ---- */

/* Declares `public readonly <type> $name`; `mask` is a MAY_BE_* mask, `class_name` NULL or a class. */
void altair_declare_readonly(zend_class_entry *ce, const char *name, size_t len, uint32_t mask, const char *class_name);
/* Initialises a readonly property of a new object; takes over the value. */
void altair_init_property(zend_object *object, const char *name, size_t len, zval *value);
/* The value of a property, as the class itself sees it; NULL where it is not initialised. */
zval *altair_property(zend_object *object, const char *name, size_t len);

/* ---- values, looked at without running code ---- */

/* `key` is NULL for an integer key. */
typedef void (*altair_each)(void *context, const char *key, size_t len, zend_long index, zval *value);
/* The first `max` entries of an array. */
void altair_entries(zend_array *array, size_t max, altair_each each, void *context);
/* The first `max` public properties of an object. */
void altair_public_properties(zend_object *object, size_t max, altair_each each, void *context);
/* The kinds of object that an encoder treats each in its own way. */
enum altair_kind { ALTAIR_PLAIN, ALTAIR_ENUM, ALTAIR_DATE, ALTAIR_CLOSURE, ALTAIR_TRAVERSABLE };
enum altair_kind altair_object_kind(zend_object *object);
bool altair_is_countable(zend_object *object);
bool altair_array_is_list(zend_array *array);
zval *altair_enum_case(zend_object *object);
zval *altair_enum_backing(zend_object *object); /* NULL for a pure enum */
/* A closure's place; false for one of a function that is built in. */
bool altair_closure_place(zend_object *object, altair_place *place);
const zend_string *altair_closure_name(zend_object *object);
/* The kind of a resource; NULL for one that is closed. */
const char *altair_resource_kind(zval *resource);

/* ---- values, looked at by running code: can bail out ---- */

/* Calls the method `name` (lower case) of `object`; false where there is no such method. */
bool altair_call_method(zend_object *object, const char *name, size_t len, zval *result);
bool altair_has_method(zend_object *object, const char *name, size_t len);
/* The date as RFC 3339, by the built-in class's own method. */
void altair_format_date(zend_object *object, zval *result);

/* An iteration. `key` and `value` receive copies. Returns 1 for an item, 0 at the end, -1 when an
 * exception was thrown. */
void *altair_iterator(zend_object *object);
int altair_iterator_step(void *iterator, bool first, zval *key, zval *value);
void altair_iterator_free(void *iterator);

/* ---- making values: can bail out ---- */

void altair_make_string(zval *value, const char *text, size_t len);
void altair_make_array(zval *value, uint32_t size);
/* They take the item over. A numeric key becomes an integer, as in PHP. */
void altair_array_push(zval *array, zval *item);
void altair_array_set(zval *array, const char *key, size_t len, zval *item);
void altair_array_set_index(zval *array, zend_long key, zval *item);
/* Turns an array that json_encode() would print as a list into a stdClass. */
void altair_keep_as_object(zval *array);

/* json_encode(), pretty, with a final newline. Can throw (a JsonSerializable may). */
void altair_json_encode(zval *value, zval *text);

/* ---- exceptions ---- */

/* Takes the current exception away; NULL where there is none. The caller owns it. */
zend_object *altair_take_exception(void);
/* Throws it again; takes it over. */
void altair_throw(zend_object *exception);
bool altair_is_unwind_exit(zend_object *exception);
/* The class that declares the properties of an exception: Exception or Error. */
zval *altair_exception_property(zend_object *exception, const char *name, size_t len);

/* ---- ini, memory ---- */

bool altair_set_ini(const char *name, size_t name_len, const char *value, size_t value_len);
bool altair_set_memory_limit(size_t bytes);
void altair_hold(zend_class_entry *ce, void (*hook)(uint32_t handle));
const char *altair_ini_directory(void);
void altair_trim_memory(void);
size_t altair_memory_peak(void);
size_t altair_memory_usage(void);

/* ---- what this was built against ---- */

const char *altair_php_version(void);
bool altair_php_is_zts(void);
bool altair_php_is_debug(void);

/* ---- the host's side ---- */

/* Runs what is pending for the virtual machine: max_execution_time, signal handlers of pcntl.
 * Can bail out; an exception stays in EG(exception). False where nothing was pending. */
bool altair_interrupts(void);
/* Throws what the engine throws for an argument of a wrong type. */
void altair_wrong_type(uint32_t number, const char *expected, zval *given);
/* Whether a parameter is null or callable; throws where it is neither. */
bool altair_parse_callable(uint32_t number, zval *value);
/* Calls a callable with `count` arguments; false where an exception is now pending. */
bool altair_call(zval *callable, uint32_t count, zval *arguments, zval *result);

/* ---- the child's side: child.c, snippet.c, container.c, and what confine.h names ---- */

/* The name that the snippet is compiled under. */
#define ALTAIR_SNIPPET "snippet"
/* Keys of functions for calls that are written in the snippet. No PHP source can name them: they start
 * with a NUL. */
#define ALTAIR_CONTAINER_KEY "\0altair\\container"
#define ALTAIR_LAST_KEY "\0altair\\last"

/* Has `entry` called in place of the first string that is compiled: the code of `php -r`. */
void altair_on_first_compile(void (*entry)(void));
/* Makes a bottom frame, so that an exception that nothing catches is left for us to take. */
void altair_begin(void);
/* Has `hook` called on every fatal error, before PHP prints it and bails out. */
typedef void (*altair_fatal_hook)(bool out_of_memory, const zend_string *file, uint32_t line, const zend_string *message);
void altair_on_fatal(altair_fatal_hook hook);
/* After a bailout: the engine's state points into frames that are gone. */
void altair_recover(void);
/* Has `hook` called when the process ends through libc's exit() with this status. */
void altair_on_exit(void (*hook)(int status));
/* Requires a file in the global scope. Can bail out. */
void altair_require(const char *path, size_t len, zval *result);
/* Runs PHP code of our own in a scope of its own, whose one variable is $root. */
void altair_run_own(
	const char *code, size_t len, const char *root, size_t root_len, zval *result);
/* Shows what $_ENV and $_SERVER hold that is a text. */
typedef void (*altair_variable_seen)(
	void *context, const char *name, size_t name_len, const char *value, size_t value_len);
void altair_each_variable(altair_variable_seen seen, void *context);
/* Says what a text is to a session, as a number of database.h; where it is refused, `what` says why, in
 * at most `size` bytes with a NUL. */
typedef int (*altair_look_hook)(int dialect, int mode, bool plain_backslash, bool whole_ascii,
	const char *text, size_t len, char *what, size_t size);
/* Says whether SQLite may do something: an action code of its own and what comes with it. */
typedef bool (*altair_authorize_hook)(
	bool in_memory, int action, const char *first, const char *second, char *what, size_t size);
#define ALTAIR_SECRET_NAME_BYTES 33
/* Has the database sessions watched that are opened from here on. `name` cannot be guessed. */
void altair_watch_databases(
	int mode, bool keeps_sqlite, const char *name, altair_look_hook look, altair_authorize_hook authorize);
/* Who records what is asked of databases. Texts are numbers, 0 for one that is not recorded, and times are
 * nanoseconds of CLOCK_MONOTONIC. */
typedef struct {
	uint64_t (*text)(int dialect, bool plain_backslash, bool whole_ascii, const char *text, size_t len);
	/* A statement is sent. Gives the time. */
	uint64_t (*begins)(uint64_t text);
	/* An answer to it is there, the first one or a further part of it. `since`: from when its time counts, 0
	 * where it does not. Gives the time. */
	uint64_t (*answers)(
		const void *session, uint64_t text, uint64_t rows, uint64_t since, bool is_first, bool has_failed);
	/* A transaction was rolled back, and may have been to be committed. Before the answer. */
	void (*undoes)(const void *session, uint64_t text);
	/* What the server itself counts of a session, table by table: it takes the place of what was known. */
	void (*counted)(const void *session, bool is_first, const char *table, uint64_t inserted,
		uint64_t updated, uint64_t deleted);
	/* A session is over. */
	void (*ends)(const void *session);
} altair_recorder;
/* Has statements recorded that are sent from here on. */
void altair_record_queries(const altair_recorder *recorder);
/* Has the servers that count what was changed tell it, of sessions that are open. */
void altair_count_changes(void);
/* Told of a class that the snippet names, by one name and without importing or declaring it, and that is
 * not there: a class that nobody has loaded yet is told of, too. Must not run PHP code. */
typedef void (*altair_missing_class)(void *context, const char *name, size_t len, uint32_t line);
typedef struct {
	const char *name;
	size_t name_len;
	const char *class_name;
	size_t class_len;
} altair_import;
/* Compiles the snippet; NULL with an exception pending where that fails. With `missing`: NULL without one
 * where there was something to tell of. Else as if the snippet began with the imports. */
zend_op_array *altair_compile_snippet(const char *code, size_t len, altair_missing_class missing, void *context,
	const altair_import *imports, size_t count);
/* Whether there is a class of that name, or an autoloader makes one. Can bail out; an exception may be
 * pending. */
bool altair_class_exists(const char *name, size_t len);
/* Throws an Error, as from that line of the snippet. */
void altair_throw_error(const char *message, size_t len, uint32_t line);
/* Shows all objects of exactly the class of that name. `each` must not run PHP code. */
void altair_each_object(const char *class_name, void (*each)(void *context, zend_object *object), void *context);
/* The text that names the file of all code that was written in the snippet: this very one. */
const zend_string *altair_snippet_name(void);
/* After a bailout: takes back what compiling the snippet has hooked. */
void altair_leave_compiler(void);
/* A variable of the snippet, which takes the value over. Before it runs. */
void altair_set_variable(const char *name, size_t len, zval *value);
/* Runs it in a scope of its own; true where the value is that of the last of several statements, not what
 * a `return` gave. Its variables are still there until altair_release_scope(). */
bool altair_run_snippet(zend_op_array *code, zval *result);
void altair_release_scope(void);
/* Tells `container()` what to return; keeps a reference. */
void altair_set_container(zval *container);
/* Before boot: has functions told of that are declared while code runs. */
void altair_watch_declarations(void);
/* From now on, `container` is known by that name, too, unless the application has such a function. */
void altair_know_container(void);
/* After a bailout, which may have left a compilation: it is known by its name again. */
void altair_show_container(void);
/* Whether the last of several statements was reached. */
bool altair_took_last_statement(void);
/* Sets apart what boot made, so that the end of the run leaves it alone. */
void altair_end_boot(void);
/* The end of the run: shutdown functions, destructors, output buffers. Each can bail out. */
void altair_call_shutdown_functions(void);
void altair_call_destructors(void);
void altair_flush_output(void);
zend_long altair_exit_status(void);

/* Before boot, in a template: from now on, remembers which sequences of random numbers the
 * application seeds itself. */
void altair_watch_seeds(void);
/* After boot: begins the run's own peak of memory, and makes an absolute path the current directory;
 * false where it cannot be, and errno says why. */
bool altair_enter(const char *root);
/* After boot, in the template: empties what fills itself again in each fork. */
void altair_settle(void);
/* In a fork of the template, before the snippet: makes fresh what it could notice of the fork's
 * past. False where an exception is now pending. Can bail out. */
bool altair_freshen(void);

/* Refuses a function, or a method as Class::name, from now on, if there is one; `lift` is the flag
 * that allows it, and is kept. */
#define ALTAIR_REFUSED_MAX 128
void altair_refuse(const char *name, size_t len, bool snippet_only, const char *lift);
/* The end of boot: refuses them in the closures that exist already, refuses string-compiled code in
 * the snippet, and notes what cannot be had beside the project, which is at `root`. Once. */
void altair_refuse_everywhere(const char *root, size_t len);
/* Has `refused` called for what was refused, and `missed` for a file that could not be had (`error`
 * is errno, 0 where PHP refused it itself); once for each thing, before the code goes on. They must
 * not run PHP code. */
typedef void (*altair_refused_hook)(const char *what, const char *lift);
typedef void (*altair_outside_hook)(const char *path, bool write, int error);
void altair_on_refusal(altair_refused_hook refused, altair_outside_hook missed);

#endif
