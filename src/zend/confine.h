/* Shared by the C files of confinement: refused_functions.c, compile.c, connection_target.c,
 * unreachable_files.c, connecting_clients.c, refusal_queue.c, sought.c. shim.h declares what Rust calls. */
#ifndef ALTAIR_CONFINE_H
#define ALTAIR_CONFINE_H

#include "shim.h"

/* ---- refused_functions.c ---- */

/* Returns whether a frame is code of the snippet. */
bool altair_is_snippet(const zend_execute_data *ex);
/* Returns whether the innermost PHP code around a call is the snippet's, or there is none. */
bool altair_from_snippet(const zend_execute_data *ex);
/* Returns whether a frame is code of a closure that was entered in an isolated PHP (runtime.c). */
bool altair_is_entered(const zend_execute_data *ex);
/* Replaces the handler of a built-in function with `with`, also in existing closures (once
 * altair_refuse_everywhere() is called). Returns the old handler; NULL if there is no such
 * function. */
zif_handler altair_replace(const char *name, size_t len, zif_handler with);
/* The same for a method of one class; built-in subclasses have copies of it. `was` receives the old
 * handler if the method exists. */
void altair_replace_method(const zend_class_entry *ce, const char *name, zif_handler *was, zif_handler is);

/* ---- compile.c, connection_target.c, connecting_clients.c, unreachable_files.c ---- */

/* From now on, refuses code in the snippet that is not compiled from a file. */
void altair_refuse_strings(void);
/* From now on, notes connections that fail because the URL wrappers are disabled. */
void altair_note_urls(void);
/* From now on, notes files outside of the project at `root` that are unavailable, and files in
 * it that cannot be written. */
void altair_note_outside(const char *root, size_t len);

/* Describes where a call would have connected to, if its arguments tell; otherwise names the
 * function. At most ALTAIR_WHAT_BYTES, including the final NUL. */
#define ALTAIR_WHAT_BYTES 256
void altair_describe(zend_execute_data *call, char *what);
/* Writes a verb and the place of an address or URL, in as many bytes. False if it has no place. */
bool altair_describe_place(char *what, const char *verb, const char *text, size_t len, zend_long port);
/* From now on, notes the connections that PHP's clients try to make, and makes them fail. */
void altair_refuse_connections(void);
/* Writes the flag that declares a described place as a service, in as many bytes. False if it
 * cannot be one, for example without a port. */
bool altair_service(const char *what, char *flag);

/* ---- refusal_queue.c ---- */

/* Notes a refusal, once each. `lift` is the flag that allows it. */
void altair_blocked(const char *what, const char *lift);
/* Writes the name by which the caller knows a flag; false if it has nothing that allows the same. */
#define ALTAIR_WAY_BYTES (ALTAIR_WHAT_BYTES + 32)
bool altair_way(const char *flag, char *way);
/* Writes the end of an error's message: what allows it, after a semicolon; nothing if the caller has nothing. */
#define ALTAIR_CLAUSE_BYTES (ALTAIR_WAY_BYTES + 16)
void altair_clause(const char *flag, char *clause);
/* Notes an unavailable file, once each. `error` is errno, 0 if PHP itself refused it. */
void altair_outside(const char *path, bool write, int error);

#endif
