/* What the C side of confinement shares within itself: refused_functions.c, compile.c, connection_target.c, unreachable_files.c,
 * connecting_clients.c, refusal_queue.c. What Rust calls stands in shim.h. */
#ifndef ALTAIR_CONFINE_H
#define ALTAIR_CONFINE_H

#include "shim.h"

/* ---- refused_functions.c ---- */

/* Whether a frame is code that was written in the snippet. */
bool altair_is_snippet(const zend_execute_data *ex);
/* Whether the nearest PHP code around a call is the snippet's, or there is none at all. */
bool altair_from_snippet(const zend_execute_data *ex);
/* Puts `with` in the place of a built-in function's handler, in closures that exist already, too
 * (once altair_refuse_everywhere() is called). NULL where there is no such function. */
zif_handler altair_replace(const char *name, size_t len, zif_handler with);
/* The same for a method of one class: built-in classes have copies of what they inherit. `was` gets what
 * was there, where there is such a method. */
void altair_replace_method(const zend_class_entry *ce, const char *name, zif_handler *was, zif_handler is);

/* ---- compile.c, connection_target.c, connecting_clients.c, unreachable_files.c ---- */

/* From now on, refuses code in the snippet that is compiled from something else than a file. */
void altair_refuse_strings(void);
/* From now on, notes connections that the URL wrappers are not there to make. */
void altair_note_urls(void);
/* From now on, notes files outside of the project at `root` that cannot be had, and files in it that
 * cannot be written. */
void altair_note_outside(const char *root, size_t len);

/* Where a call would have connected to, in words, as far as its arguments tell; else the
 * function's name. At most ALTAIR_WHAT_BYTES, the final NUL included. */
#define ALTAIR_WHAT_BYTES 256
void altair_describe(zend_execute_data *call, char *what);
/* Writes what is done to an address or a URL, in as many bytes; false where it says no place. */
bool altair_describe_place(char *what, const char *verb, const char *text, size_t len, zend_long port);
/* From now on, tells of connections that clients of PHP's would make, and has them fail. */
void altair_refuse_connections(void);
/* The flag that declares what was described as a service, in as many bytes; false where it is no
 * connection to one, as there is no port, for one. */
bool altair_service(const char *what, char *flag);

/* ---- refusal_queue.c ---- */

/* Notes that something was refused, once each. `lift` is the flag that allows it, and is kept. */
void altair_blocked(const char *what, const char *lift);
/* Notes a file that could not be had, once each; `error` is errno, 0 where PHP refused it itself. */
void altair_outside(const char *path, bool write, int error);

#endif
