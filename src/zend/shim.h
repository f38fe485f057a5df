/* The interface of the C shim: what ext-php-rs cannot reach, since it is a macro, a static inline
 * function or a hook of the engine. Every function that may run PHP code or allocate from PHP's
 * heap can bail out (longjmp); the Rust side calls those only under `try_catch`. */
#ifndef ALTAIR_SHIM_H
#define ALTAIR_SHIM_H

#include "php.h"

/* ---- frames: no allocation, usable in a signal handler ---- */

typedef struct {
	const zend_string *class_name;    /* NULL for a function */
	const zend_string *function_name; /* NULL for included code */
	bool is_static;                   /* `::` rather than `->` */
	const zend_string *file;          /* of the call; NULL if the caller is internal */
	uint32_t line;                    /* of the call */
} altair_frame;

typedef struct {
	const zend_string *file; /* NULL if no PHP code is running */
	uint32_t line;
} altair_place;

/* Where the code is, and up to `max` frames from the innermost out; how many there are. `in_register` is
 * what a signal has found where the engine keeps the current instruction; NULL outside of a signal. */
size_t altair_frames(altair_place *place, altair_frame *frames, size_t max, const void *in_register);

/* ---- streams ---- */

/* The stream of a resource; NULL where it is none, or closed. */
void *altair_stream_of(zval *value);
/* The descriptor on which its next bytes come; -1 where it has to be read to know. */
int altair_stream_descriptor(void *stream);
/* Reads once; 0 or less where there is nothing. */
ssize_t altair_stream_read(void *stream, char *to, size_t most);
bool altair_stream_is_over(void *stream);

/* ---- the engine's tables, for hints: reads only; runs no code, loads no class, allocates nothing ---- */

typedef void (*altair_name)(void *context, const char *name, size_t len, const void *item);
void altair_each_function(altair_name each, void *context);
void altair_each_class(altair_name each, void *context);
void altair_each_constant(altair_name each, void *context);
/* A class that is there; NULL where it is not. */
const zend_class_entry *altair_find_class(const char *lower_case, size_t len);
const zend_string *altair_class_name(const zend_class_entry *ce);
/* Public ones that are not magic; `item` is for altair_signature(). */
void altair_each_method(const zend_class_entry *ce, altair_name each, void *context);
void altair_each_class_constant(const zend_class_entry *ce, altair_name each, void *context);
/* Those that code of the class `scope`, NULL for none, can use. */
void altair_each_property(const zend_class_entry *ce, const zend_class_entry *scope, bool is_static,
	altair_name each, void *context);
/* The class of an object; NULL where the value is none. */
const zend_class_entry *altair_class_of(const zval *value);
bool altair_is_instance(const zend_object *object, const zend_class_entry *of);
/* The text of a string; NULL where the value is none. */
const zend_string *altair_string_of(const zval *value);
/* The table of an object's properties, where there is one. */
zend_array *altair_own_properties(const zval *value);
/* A property that the class of that name has declared, of an object or of itself; NULL where it is not
 * there or not filled. */
zval *altair_declared_property(
	const zval *value, const char *lower_case, size_t lower_len, const char *name, size_t len);
zval *altair_static_property(const char *lower_case, size_t lower_len, const char *name, size_t len);
zend_array *altair_array_of(const zval *value);
/* Whether `open_basedir` lets code read a path. Can bail out. */
bool altair_may_read(const char *path);
/* The variables of a frame that have a value. */
void altair_each_variable_of(const void *frame, altair_name each, void *context);
/* The class whose code a frame runs; NULL for none. */
const zend_class_entry *altair_scope_of(const void *frame);
/* The name and parameters of a function, in at most `size` bytes without a NUL; their number. */
size_t altair_signature(const void *function, char *text, size_t size);
/* Has `hook` called for warnings of what is undefined, with the frame that runs, and what it reads from, if
 * that is known. Not for those that are silenced, and for so many of a run, each instruction once. */
#define ALTAIR_LOOKS_MAX 32
#define ALTAIR_WARNING_BYTES 500
typedef void (*altair_warned_hook)(
	const zend_string *message, bool is_of_snippet, const void *frame, const zval *operand);
void altair_on_warning(altair_warned_hook hook);

/* ---- classes ---- */

/* Declares `public readonly <type> $name`, or a private one; `mask` is a MAY_BE_* mask, `class_name` NULL or a class,
 * of whose mask only MAY_BE_NULL counts. */
void altair_declare_readonly(
	zend_class_entry *ce, const char *name, size_t len, uint32_t mask, const char *class_name, bool is_private);
/* Makes the first parameter of a method, which is an object of a class, also a string: builders of
 * arguments have no types that are both. */
void altair_or_string(zend_class_entry *ce, const char *method, size_t len);
/* Registers an enum of strings, and adds a case to it. */
zend_class_entry *altair_register_enum(const char *name);
void altair_add_case(zend_class_entry *ce, const char *name, const char *value);
/* A case of an enum that was registered so; the enum keeps it. Can bail out. */
zend_object *altair_case_named(zend_class_entry *ce, const char *name);
/* A new object of a class, with uninitialised properties. Can bail out. */
zend_object *altair_new_object(zend_class_entry *ce);
/* Initialises a readonly property of a new object. Takes ownership of the value. */
void altair_init_property(zend_object *object, const char *name, size_t len, zval *value);
/* The value of a property, in the scope of the class. NULL if it is not initialised. */
zval *altair_property(zend_object *object, const char *name, size_t len);

/* ---- reading values without running code ---- */

/* `key` is NULL for an integer key. */
typedef void (*altair_each)(void *context, const char *key, size_t len, zend_long index, zval *value);
/* The first `max` entries of an array. */
void altair_entries(zend_array *array, size_t max, altair_each each, void *context);
/* A property in its slot. `visibility`: 0 public, 1 protected, 2 private. `hidden_in`: the class that declares
 * a private one that a class below hides, else NULL. `name` is NULL for an integer. `value` is NULL for a typed
 * one that is not initialised. */
typedef void (*altair_property_seen)(void *context, int visibility, const zend_string *hidden_in, const char *name,
	size_t len, zend_long index, zval *value);
/* The first `max` properties of an object, straight from the slots; how many there are. */
size_t altair_slots(zend_object *object, size_t max, altair_property_seen each, void *context);
/* A property by its name, as declared by the nearest class or, if `class_len` is not 0, by the named one; NULL where
 * there is none or it has no value. */
zval *altair_slot(zend_object *object, const char *class_name, size_t class_len, const char *name, size_t len);
bool altair_declares(zend_object *object, const char *name, size_t len);
/* Whether an object is of a class of this name. Loads none. */
bool altair_is_a(zend_object *object, const char *class_name, size_t len);
/* Whether its class has this method (lower case), written in PHP. */
bool altair_has_user_method(zend_object *object, const char *name, size_t len);
/* Whether the engine itself holds the object back: 0 no, 1 not initialised, 2 a proxy of `*instance`. */
int altair_laziness(zend_object *object, zend_object **instance);
/* The kinds of object that an encoder treats each in its own way. */
enum altair_kind { ALTAIR_PLAIN, ALTAIR_ENUM, ALTAIR_CLOSURE, ALTAIR_TRAVERSABLE };
enum altair_kind altair_object_kind(zend_object *object);
bool altair_is_countable(zend_object *object);
bool altair_array_is_list(zend_array *array);
zval *altair_enum_case(zend_object *object);
zval *altair_enum_backing(zend_object *object); /* NULL for a pure enum */
/* Where a closure is declared. False for a closure of a built-in function. */
bool altair_closure_place(zend_object *object, altair_place *place);
const zend_string *altair_closure_name(zend_object *object);
/* A variable that a closure has used; NULL for none. */
zval *altair_closure_variable(zend_object *object, const char *name, size_t len);
/* The kind of a resource; NULL for one that is closed. */
const char *altair_resource_kind(zval *resource);
/* The bytes of a stream of memory or of a file; -1 for any other resource. */
zend_long altair_stream_length(zval *resource);

/* ---- values that travel as bytes ---- */

/* How an array is laid out: zvals if it is packed, buckets if not, `used` of them, of which `count` have a value. */
typedef struct {
	const void *slots;
	uint32_t used;
	uint32_t count;
	bool is_packed;
} altair_table;
void altair_table_of(const zend_array *array, altair_table *table);
/* Makes `to` a list of that many nulls, which are filled in place: the first of them; NULL for none. Can bail out. */
zval *altair_begin_list(zval *to, uint32_t count);
/* Makes `to` an array with room for that many entries, which are added by the two below; NULL for none. Can bail
 * out. */
zend_array *altair_begin_map(zval *to, uint32_t count);
/* Adds an entry, null at first, under an index, or under a key as `$array[$key]` understands it. NULL where the array
 * has it, or no more room. `steps` is increased by the entries that were in the way. Can bail out. */
zval *altair_add_index(zend_array *map, zend_long index, uint64_t *steps);
zval *altair_add_key(zend_array *map, const char *key, size_t len, uint64_t *steps);

/* ---- reading values by running code: can bail out ---- */

/* Calls the method `name` (lower case) of `object`. False if it does not exist. */
bool altair_call_method(zend_object *object, const char *name, size_t len, zval *result);
bool altair_has_method(zend_object *object, const char *name, size_t len);
/* The date as RFC 3339, from the method of the built-in class. */
void altair_format_date(zend_object *object, zval *result);
/* Calls the method of the built-in class `class_name` itself, whatever a class below has in its place, with a text
 * as argument unless that is NULL. False where there is none. */
bool altair_call_built_in(
	zend_object *object, const char *class_name, const char *name, const char *argument, zval *result);
/* The XML of a SimpleXMLElement or of a node of a DOM. */
void altair_xml(zend_object *object, zval *result);
/* A clone; false where it cannot be cloned. */
bool altair_clone(zend_object *object, zval *result);
/* Calls back with each parameter of a closure as it is written. */
void altair_closure_parameters(
	zend_object *object, void (*each)(void *context, const char *text, size_t len), void *context);

/* An iteration. `key` and `value` receive copies. Returns 1 for an item, 0 at the end, -1 when an
 * exception was thrown. */
void *altair_iterator(zend_object *object);
int altair_iterator_step(void *iterator, bool first, zval *key, zval *value);
void altair_iterator_free(void *iterator);

/* ---- making values: can bail out ---- */

/* A number or a boolean as `(string)` makes it. Can bail out. */
void altair_scalar_text(zval *value, zval *text);
void altair_make_string(zval *value, const char *text, size_t len);
void altair_make_array(zval *value, uint32_t size);
/* They take ownership of the item. A numeric key becomes an integer, as in PHP. */
void altair_array_push(zval *array, zval *item);
void altair_array_set(zval *array, const char *key, size_t len, zval *item);
void altair_array_set_index(zval *array, zend_long key, zval *item);
/* Turns an array that json_encode() would print as a list into a stdClass; leaves all else. */
void altair_keep_as_object(zval *array);

/* json_encode(), pretty, with a final newline; what is a map in an encoded value is an object, also where it is
 * empty. Can throw (a JsonSerializable may). */
void altair_json_encode(zval *value, zval *text);

/* ---- exceptions ---- */

/* Takes the pending exception, which the caller then owns. NULL if there is none. */
zend_object *altair_take_exception(void);
/* Throws it again. Takes ownership of it. */
void altair_throw(zend_object *exception);
bool altair_is_unwind_exit(zend_object *exception);
/* A property of an exception, in the scope of the class that declares it: Exception or Error. */
zval *altair_exception_property(zend_object *exception, const char *name, size_t len);

/* ---- ini, memory ---- */

bool altair_set_ini(const char *name, size_t name_len, const char *value, size_t value_len);
bool altair_set_memory_limit(size_t bytes);
/* A number of an ini file with its suffix, as PHP reads it. */
zend_long altair_ini_quantity(const char *text, size_t len);
/* Calls `freed` with the handle of each freed object of a final class, and `cloned`, which may be NULL, with those of an
 * object and its clone. */
void altair_hold(zend_class_entry *ce, void (*freed)(uint32_t handle), void (*cloned)(uint32_t from, uint32_t to),
	bool can_be_cloned);
const char *altair_ini_directory(void);
/* Where this PHP was built to have its programs. */
const char *altair_programs_directory(void);
/* What the command line said of ini settings: -c, -n and the switches -d, as the text of an ini file. Both texts can
 * be NULL. */
typedef struct {
	const char *path;
	const char *entries;
	bool ignores_files;
} altair_ini_options_found;
void altair_ini_options(altair_ini_options_found *options);
void altair_trim_memory(void);
/* Gives a fork its own pages of what can be written to of the program, this extension and the C library. */
void altair_own_data(void);
/* Compiles a few lines and forgets them. Nothing that code could see is left of it. Can bail out. */
void altair_rehearse(void);
size_t altair_memory_peak(void);
size_t altair_memory_usage(void);

/* ---- what this was built against ---- */

const char *altair_php_version(void);
bool altair_php_is_zts(void);
bool altair_php_is_debug(void);

/* ---- the host's side ---- */

/* Handles a pending interrupt of the virtual machine: max_execution_time, signal handlers of pcntl.
 * Can bail out. An exception stays in EG(exception). False if nothing was pending. */
bool altair_interrupts(void);
/* Whether PHP's own proc_open() is there. */
bool altair_starts_programs(void);
/* Throws the engine's error for an argument of a wrong type. */
void altair_wrong_type(uint32_t number, const char *expected, zval *given);
/* What was passed by name to a function with a variadic parameter, beyond its other parameters; NULL if nothing was. */
zend_array *altair_extra_named(zend_execute_data *call);
/* The name of the function that was called. */
const zend_string *altair_called_name(zend_execute_data *call);
/* Returns whether a parameter is null or callable; throws if not. */
bool altair_parse_callable(uint32_t number, zval *value);
/* Calls a callable with `count` arguments. False if an exception is now pending. */
bool altair_call(zval *callable, uint32_t count, zval *arguments, zval *result);

/* ---- the child's side: child.c, snippet.c, container.c, and what confine.h names ---- */

/* The file name under which the snippet is compiled. */
#define ALTAIR_SNIPPET "snippet"
/* Keys of functions for calls that are written in the snippet. No PHP source can name them: they start
 * with a NUL. */
#define ALTAIR_CONTAINER_KEY "\0altair\\container"
#define ALTAIR_LAST_KEY "\0altair\\last"

/* Calls `entry` instead of compiling the first string: the code of `php -r`. */
void altair_on_first_compile(void (*entry)(void));
/* Sets up a bottom frame, so that an uncaught exception stays pending for us. */
void altair_begin(void);
/* Calls `hook` on every fatal error, before PHP prints it and bails out. */
typedef void (*altair_fatal_hook)(bool out_of_memory, const zend_string *file, uint32_t line, const zend_string *message);
void altair_on_fatal(altair_fatal_hook hook);
/* After a bailout: resets the engine's state that points into unwound frames. */
void altair_recover(void);
/* Calls `hook` with the status when the process ends by libc's exit(). */
void altair_on_exit(void (*hook)(int status));
/* Requires a file in the global scope. Can bail out. */
void altair_require(const char *path, size_t len, zval *result);
/* Runs PHP code of our own in a scope of its own, whose variables are $root and $caches (NULL if
 * `caches` is). */
void altair_run_own(const char *code, size_t len, const char *root, size_t root_len,
	const char *caches, size_t caches_len, zval *result);
/* From here on realpath() keeps `path`, which is a link. Call it at most once. */
void altair_keep_link(const char *path, size_t len);
/* From here on chmod() succeeds below `path` also if the filter refuses it. */
void altair_own_directory(const char *path, size_t len);
/* Calls `seen` for each string in $_ENV and $_SERVER. */
typedef void (*altair_variable_seen)(
	void *context, const char *name, size_t name_len, const char *value, size_t value_len);
void altair_each_variable(altair_variable_seen seen, void *context);
/* Classifies a text: a number of `enum altair_statement` (database.h). If it is refused, `what`
 * says why, in at most `size` bytes including a NUL. */
typedef int (*altair_look_hook)(int dialect, int mode, bool plain_backslash, bool whole_ascii,
	const char *text, size_t len, char *what, size_t size);
/* Returns whether SQLite may perform an action: its action code and the arguments of that. */
typedef bool (*altair_authorize_hook)(
	bool in_memory, int action, const char *first, const char *second, char *what, size_t size);
#define ALTAIR_SECRET_NAME_BYTES 33
/* Watches the database sessions that are opened from now on. `name` is secret. */
void altair_watch_databases(
	int mode, bool keeps_sqlite, const char *name, altair_look_hook look, altair_authorize_hook authorize);
/* Records queries. A text is a number, 0 if it is not recorded. Times are nanoseconds of
 * CLOCK_MONOTONIC. */
typedef struct {
	uint64_t (*text)(int dialect, bool plain_backslash, bool whole_ascii, const char *text, size_t len);
	/* A statement is sent. Returns the time. */
	uint64_t (*begins)(uint64_t text);
	/* The first part of its answer has arrived, or a further part. `since`: start of the time to
	 * add, 0 to add none. Returns the time. */
	uint64_t (*answers)(
		const void *session, uint64_t text, uint64_t rows, uint64_t since, bool is_first, bool has_failed);
	/* A transaction was rolled back, perhaps by a COMMIT. Called before the answer. */
	void (*undoes)(const void *session, uint64_t text);
	/* The server's own counts for a session, table by table. They replace those known before. */
	void (*counted)(const void *session, bool is_first, const char *table, uint64_t inserted,
		uint64_t updated, uint64_t deleted);
	/* A session has ended. */
	void (*ends)(const void *session);
} altair_recorder;
/* Records the statements that are sent from now on. */
void altair_record_queries(const altair_recorder *recorder);
/* Asks servers that count changed rows for the counts of open sessions. */
void altair_count_changes(void);
/* How many bytes into the snippet its first parse error is; -1 for none. */
ptrdiff_t altair_parse_error_offset(void);
/* Told of a class that the snippet names by one name, without importing or declaring it, and that is not
 * loaded. Must not run PHP code. */
typedef void (*altair_missing_class)(void *context, const char *name, size_t len, uint32_t line);
typedef struct {
	const char *name;
	size_t name_len;
	const char *class_name;
	size_t class_len;
} altair_import;
/* Compiles the snippet as if it began with the imports. NULL with a pending exception on failure. With
 * `missing`: NULL without one if there was a class to tell of. */
zend_op_array *altair_compile_snippet(const char *code, size_t len, altair_missing_class missing, void *context,
	const altair_import *imports, size_t count);
/* Whether there is a class of that name, or an autoloader makes one. Can bail out; an exception may be
 * pending. */
bool altair_class_exists(const char *name, size_t len);
/* Throws an Error, as from that line of the snippet. */
void altair_throw_error(const char *message, size_t len, uint32_t line);
/* Shows all objects of exactly the class of that name. `each` must not run PHP code. */
void altair_each_object(const char *class_name, void (*each)(void *context, zend_object *object), void *context);
/* The text that names the file of the snippet that was compiled last; NULL before the first. */
const zend_string *altair_snippet_name(void);
/* Whether it is the file name of code of a snippet: this very one, since a file of the application may have any. */
bool altair_is_name_of_snippet(const zend_string *name);
/* After a bailout: removes the hook for compiling the snippet. */
void altair_leave_compiler(void);
/* Sets a variable of the snippet and takes ownership of the value. Called before it runs. */
void altair_set_variable(const char *name, size_t len, zval *value);
/* Runs it in a scope of its own. True if the value is that of the last of several statements, not of a
 * `return`. Its variables live until altair_release_scope(). */
bool altair_run_snippet(zend_op_array *code, zval *result);
void altair_release_scope(void);
/* Sets what `container()` returns. Keeps a reference. */
void altair_set_container(zval *container);
/* The container; undefined before that. */
const zval *altair_container(void);
/* Before boot: watches for functions that are declared while code runs. */
void altair_watch_declarations(void);
/* From now on, `container` exists under that name, too, unless the application has such a function. */
void altair_know_container(void);
/* After a bailout, which may have left a compilation: restores the name. */
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

/* Before boot, in a template: from now on, notes which random number generators the application
 * seeds itself. */
void altair_watch_seeds(void);
/* After boot: resets the peak of memory, and changes the current directory to an absolute path.
 * False on failure, with errno set. */
bool altair_enter(const char *root);
/* After boot, in the template: clears state that each fork fills again by itself. */
void altair_settle(void);
/* In a fork of the template, before the snippet: renews the state that would reveal the fork. False
 * if an exception is now pending. Can bail out. */
bool altair_freshen(void);

/* ---- an isolated PHP: runtime.c ---- */

/* Before code is run that may bail out, and after it has: gives back the frames that it has left. */
void altair_mark_stack(void);
void altair_unwind_stack(void);
/* Calls a closure with the values of an array, or with none. Can bail out; an exception may be pending. */
void altair_enter_closure(zval *closure, zval *arguments, zval *result);
/* Prints PHP's message for an exception that nobody has caught. Can bail out. */
void altair_print_uncaught(zend_object *exception);
/* A session, whose code runs line by line: from now on, calls `interrupted` when altair_end_line() ends one. */
void altair_watch_interrupts(void (*interrupted)(void));
/* Has the code that runs unwind as exit() does, at the next place where the engine looks. For a signal handler. */
void altair_end_line(void);
/* No code is to unwind any more. */
void altair_line_has_ended(void);
/* From now on, the namespace and the imports of a line hold for the lines after it (line_imports.c). */
void altair_keep_names(void);
/* Puts them into a line's tree; once the line is compiled, keeps its own. */
void altair_bring_names(zend_ast **ast);
void altair_took_names(void);
/* Whether a text is a whole snippet, or one with a parse error that no more text would mend. Runs nothing of it. */
bool altair_is_whole(const char *text, size_t len);
/* The variables of the snippets so far, with their values. */
void altair_each_own_variable(altair_name each, void *context);
/* The files that code has included, from the one of that number on; how many there are. */
size_t altair_each_included(size_t from, altair_name each, void *context);
/* In the caller: writes to its output layer. Can bail out; an exception may be pending. */
void altair_write(const char *text, size_t len);
/* In the caller: how many bytes its memory limit leaves. False if it has none. */
bool altair_may_use_memory(size_t *bytes);

/* Refuses a function, or a method as Class::name, from now on, if it exists. `lift` is the flag
 * that allows it; the pointer is kept. */
#define ALTAIR_REFUSED_MAX 128
void altair_refuse(const char *name, size_t len, bool snippet_only, const char *lift);
/* The end of boot: refuses these functions also in existing closures, refuses string-compiled
 * code in the snippet, and notes files that are unavailable; the project is at `root`. Call it
 * once. */
void altair_refuse_everywhere(const char *root, size_t len);
/* Calls `refused` for each refusal, and `missed` for each unavailable file (`error` is errno, 0
 * if PHP itself refused it): once each, before the code continues. They must not run PHP code. */
typedef void (*altair_refused_hook)(const char *what, const char *lift);
typedef void (*altair_outside_hook)(const char *path, bool write, int error);
/* What was reported is reported again if it is refused again. */
void altair_forget_refusals(void);
void altair_on_refusal(altair_refused_hook refused, altair_outside_hook missed);
/* From now on, keeps the names of variables that getenv() does not find. */
void altair_note_sought(void);
/* The next of them that was not given yet; NULL if there is none. */
const char *altair_next_sought(void);
/* What was given is given again if it is looked for again. */
void altair_forget_sought(void);
/* Writes what the caller has in place of a flag, in `size` bytes with the final NUL; false if it has nothing. */
typedef bool (*altair_way_hook)(const char *flag, char *room, size_t size);
/* Errors name that, from now on; before, they name the flags. */
void altair_name_ways(altair_way_hook way);

/* ---- closures that are sent to another PHP ---- */

enum altair_type_rule {
	ALTAIR_TYPES_ALLOWED,
	ALTAIR_TAKES_OBJECT,
	ALTAIR_TAKES_REFERENCE,
	ALTAIR_RETURNS_OBJECT,
	ALTAIR_RETURNS_REFERENCE
};
/* What the types of a closure say against it, and of which argument, from 1. */
enum altair_type_rule altair_closure_types(const zend_object *closure, uint32_t *argument);

enum altair_closure_rule {
	ALTAIR_ALLOWED,
	ALTAIR_LEXICAL,
	ALTAIR_CLASS,
	ALTAIR_NEW_CLASS,
	ALTAIR_FUNCTION,
	ALTAIR_YIELD,
	ALTAIR_CALLABLE
};
/* What its instructions say against it, as far as an optimiser has left them; `line` counts from the closure's. */
enum altair_closure_rule altair_closure_instructions(const zend_object *closure, uint32_t *line);

/* Where the code of a closure is from; of one that is written in PHP. */
typedef struct {
	const void *opcodes;
	const zend_string *file;
	uint32_t count;
	uint32_t first_line;
	uint32_t last_line;
	bool is_shared; /* it is in the memory of opcache */
} altair_closure_origin;
void altair_closure_origin_of(const zend_object *closure, altair_closure_origin *origin);
/* Keeps the code of a closure where it is until it is let go. */
void *altair_closure_pin(const zend_object *closure);
void altair_closure_unpin(void *pinned);

typedef void (*altair_bytes)(void *context, const char *bytes, size_t len);
/* The form of its code, and the names that PHP knows now and did not know when it was compiled. */
void altair_closure_form(const zend_object *closure, altair_bytes form, altair_bytes unknown, void *context);

/* How code that was compiled again became what it is. */
enum altair_closure_way {
	ALTAIR_WAY_PLAIN,    /* as PHP compiles a file */
	ALTAIR_WAY_OPCACHE,  /* as opcache compiles and optimises one */
	ALTAIR_WAY_LITERAL,  /* nothing is put in the place of a name, and nothing is left out of the form */
	ALTAIR_WAY_RECEIVING /* to run in this process */
};
typedef struct {
	uint32_t number; /* in the order of the source, from 0 */
	uint32_t first_line;
	uint32_t last_line;
	enum altair_closure_rule rule;
	uint32_t rule_line;
	const char *form;
	size_t form_len;
} altair_closure_seen;
typedef void (*altair_each_closure)(void *context, const altair_closure_seen *closure);
/* Compiles a file's bytes for a moment, and tells of its closures. Tells nobody of errors, and changes nothing. False with a
 * message. */
bool altair_closure_survey(const char *file, size_t file_len, const char *source, size_t source_len,
	enum altair_closure_way way, const char *hidden, size_t hidden_len, altair_each_closure each, void *context,
	char *error, size_t error_size);
bool altair_closure_short_tags(void);
/* Whether what is scanned is not what is in the file. */
bool altair_closure_is_encoded(void);
bool altair_closure_opcache_is_on(void);
/* The bytes of a file in a phar; 0 or an `errno`. Runs no code of a wrapper that is not PHP's own. Can bail out. */
int altair_closure_read_phar(const char *path, size_t max, altair_bytes bytes, void *context);

/* Compiles a file's bytes for good, and makes closures of it. */
void *altair_closure_compile(const char *file, size_t file_len, const char *source, size_t source_len, bool short_tags,
	char *error, size_t error_size);
/* False where there is none with this number on these lines. Can bail out. */
bool altair_closure_make(void *unit, uint32_t number, uint32_t first_line, uint32_t last_line, zval *result);
void altair_closure_startup(void);

#endif
