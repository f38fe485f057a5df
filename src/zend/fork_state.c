/* Makes a fork of a template look as if it had just started and booted itself.
 *
 * Nothing needs to be done for the following: Functions that ask the kernel each time:
 * getmypid(), getrusage(), random_bytes(), which is getrandom(2), and libsodium, which makes its
 * keys from that. Libraries that compare the pid of their last use with the current one, as
 * OpenSSL does since 1.1.1d (openssl_get_fork_id() is getpid(2), so it also notices a fork that
 * runs no handlers of pthread_atfork(3)). State that a cold run also has from boot:
 * error_get_last(), output buffers, registered functions, counters of the garbage collector.
 * random_bytes() opens a descriptor only on a kernel without getrandom(2), and /dev/urandom has
 * no file position to share. */

#ifndef _GNU_SOURCE
# define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include "shim.h"
#include "SAPI.h"
#include "zend_virtual_cwd.h"
#include "zend_weakrefs.h"
#include "ext/random/php_random.h"
#include "ext/standard/php_filestat.h"
#include "zend_max_execution_timer.h"
#include <dlfcn.h>
#include <unistd.h>

/* Replaces the handler of a built-in function with `with`, and stores the old one in `next`. */
static void watch(const char *name, size_t len, zif_handler with, zif_handler *next)
{
	zend_function *function = zend_hash_str_find_ptr(EG(function_table), name, len);
	if (function != NULL && function->type == ZEND_INTERNAL_FUNCTION) {
		*next = function->internal_function.handler;
		function->internal_function.handler = with;
	}
}

/* ---- mt_srand() ---- */

static zif_handler next_seed;
/* Whether the application has seeded mt_rand() itself. */
static bool is_seeded;

static bool is_given(zend_execute_data *call, uint32_t number)
{
	return ZEND_CALL_NUM_ARGS(call) >= number && Z_TYPE_P(ZEND_CALL_ARG(call, number)) > IS_NULL;
}

static ZEND_NAMED_FUNCTION(seed)
{
	/* Null is the seed 0 before 8.3, and no seed since. */
	bool chosen = PHP_VERSION_ID < 80300 ? ZEND_NUM_ARGS() > 0 : is_given(execute_data, 1);
	next_seed(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	if (EG(exception) == NULL) {
		is_seeded = chosen;
	}
}

/* ---- GMP ---- */

/* The extension seeds its own state on first use. Seeding takes about 0.4 ms here, so it is done
 * only if boot has used the generator. */
static zif_handler next_gmp_seed, next_gmp_bits, next_gmp_range;
static bool is_gmp_seeded, is_gmp_used;

static ZEND_NAMED_FUNCTION(gmp_seed)
{
	next_gmp_seed(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	is_gmp_seeded = is_gmp_seeded || EG(exception) == NULL;
}

static ZEND_NAMED_FUNCTION(gmp_bits)
{
	is_gmp_used = true;
	next_gmp_bits(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_NAMED_FUNCTION(gmp_range)
{
	is_gmp_used = true;
	next_gmp_range(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static void seed_gmp_again(void)
{
	zend_function *function;
	zval seed, result;
	zend_long random;
	if (!is_gmp_used || is_gmp_seeded
		|| (function = zend_hash_str_find_ptr(EG(function_table), ZEND_STRL("gmp_random_seed"))) == NULL
		|| php_random_bytes_silent(&random, sizeof random) == FAILURE) {
		return;
	}
	ZVAL_LONG(&seed, random & ZEND_LONG_MAX);
	zend_call_known_function(function, NULL, NULL, &result, 1, &seed, NULL);
}

/* ---- engines of ext/random that seed themselves ---- */

typedef struct {
	const char *name;
	size_t len;
	const zend_class_entry *ce;
	zif_handler next;
} random_engine;

static random_engine engines[] = {
	{ZEND_STRL("random\\engine\\mt19937"), NULL, NULL},
	{ZEND_STRL("random\\engine\\pcgoneseq128xslrr64"), NULL, NULL},
	{ZEND_STRL("random\\engine\\xoshiro256starstar"), NULL, NULL},
};
#define ENGINES (sizeof engines / sizeof *engines)

/* Engines that the application has not seeded => the second argument of their constructor, or
 * null. Weak, since a new object may reuse the address of a freed one. */
static HashTable unseeded;
static bool is_watching;

static ZEND_NAMED_FUNCTION(construct)
{
	zend_object *object = Z_OBJ_P(ZEND_THIS);
	bool chosen = is_given(execute_data, 1);
	zval second;
	ZVAL_NULL(&second);
	if (is_given(execute_data, 2)) {
		ZVAL_LONG(&second, zval_get_long(ZEND_CALL_ARG(execute_data, 2)));
	}
	for (size_t i = 0; i < ENGINES; i++) {
		if (engines[i].ce == execute_data->func->common.scope) {
			engines[i].next(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		}
	}
	if (!is_watching || EG(exception) != NULL) {
		return;
	}
	/* A second call on the same object replaces the first. */
	zend_weakrefs_hash_del(&unseeded, object);
	if (!chosen) {
		zend_weakrefs_hash_add(&unseeded, object, &second);
	}
}

static void watch_engines(void)
{
	zend_hash_init(&unseeded, 8, NULL, NULL, 0);
	for (size_t i = 0; i < ENGINES; i++) {
		const zend_class_entry *ce = zend_hash_str_find_ptr(EG(class_table), engines[i].name, engines[i].len);
		if (ce == NULL || ce->constructor == NULL || ce->constructor->type != ZEND_INTERNAL_FUNCTION) {
			continue;
		}
		engines[i].ce = ce;
		engines[i].next = ce->constructor->internal_function.handler;
		ce->constructor->internal_function.handler = construct;
	}
	is_watching = true;
}

/* The constructor seeds the engine from the system, in place: a Randomizer shares the engine's
 * state. */
static void seed_engines_again(void)
{
	zend_ulong key;
	zval *second;
	is_watching = false;
	ZEND_HASH_FOREACH_NUM_KEY_VAL(&unseeded, key, second) {
		zend_object *object = zend_weakref_key_to_object(key);
		zend_function *constructor = NULL;
		for (size_t i = 0; i < ENGINES; i++) {
			if (engines[i].ce != NULL && instanceof_function(object->ce, engines[i].ce)) {
				constructor = engines[i].ce->constructor;
			}
		}
		if (constructor == NULL) {
			continue;
		}
		zval result, arguments[2];
		ZVAL_NULL(&arguments[0]);
		ZVAL_COPY_VALUE(&arguments[1], second);
		zend_call_known_function(constructor, object, object->ce, &result,
			Z_TYPE_P(second) == IS_NULL ? 1 : 2, arguments, NULL);
	} ZEND_HASH_FOREACH_END();
}

/* ---- libraries with a generator of their own ---- */

/* SQLite's random() would continue boot's sequence: SQLite compares the pid only when it opens a
 * file (os_unix.c, unixOpen()), which a database in memory never does. A request for 0 bytes
 * resets the state (sqlite3_randomness(3)). */
static void (*sqlite_randomness)(int bytes, void *into);

static void find_sqlite(void)
{
	/* Extensions and their libraries are loaded with RTLD_GLOBAL. */
	*(void **) &sqlite_randomness = dlsym(RTLD_DEFAULT, "sqlite3_randomness");
}

/* ---- time ---- */

static void renew_number(zval *number, double was, double now)
{
	if (number == NULL) {
		return;
	}
	ZVAL_DEREF(number);
	/* Any other value was set by the application, as it would be in a cold run. */
	if (Z_TYPE_P(number) == IS_DOUBLE && Z_DVAL_P(number) == was) {
		ZVAL_DOUBLE(number, now);
	} else if (Z_TYPE_P(number) == IS_LONG && Z_LVAL_P(number) == zend_dval_to_lval(was)) {
		ZVAL_LONG(number, zend_dval_to_lval(now));
	}
}

static void renew_request_time(void)
{
	double was = SG(global_request_time);
	SG(global_request_time) = 0;
	if (was == 0) {
		return; /* not used yet; $_SERVER is made when code first names it */
	}
	zval *server = zend_hash_str_find(&EG(symbol_table), ZEND_STRL("_SERVER"));
	if (server == NULL) {
		return;
	}
	ZVAL_DEREF(server);
	if (Z_TYPE_P(server) != IS_ARRAY) {
		return;
	}
	double now = sapi_get_request_time();
	SEPARATE_ARRAY(server);
	renew_number(zend_hash_str_find(Z_ARRVAL_P(server), ZEND_STRL("REQUEST_TIME")), was, now);
	renew_number(zend_hash_str_find(Z_ARRVAL_P(server), ZEND_STRL("REQUEST_TIME_FLOAT")), was, now);
}

/* fork(2) does not inherit timers. A cold run would still have the timer that boot has set. */
static void set_time_limit_again(void)
{
	zend_atomic_bool_store_ex(&EG(timed_out), false);
	zend_atomic_bool_store_ex(&EG(vm_interrupt), false);
	zend_max_execution_timer_init(); /* timers of a thread-safe PHP belong to a process */
	if (EG(timeout_seconds) != 0) {
		zend_set_timeout(EG(timeout_seconds), false);
	}
}

/* ---- all of it ---- */

void altair_watch_seeds(void)
{
	/* They are aliases, and either may be disabled. */
	watch(ZEND_STRL("mt_srand"), seed, &next_seed);
	watch(ZEND_STRL("srand"), seed, &next_seed);
	watch(ZEND_STRL("gmp_random_seed"), gmp_seed, &next_gmp_seed);
	watch(ZEND_STRL("gmp_random_bits"), gmp_bits, &next_gmp_bits);
	watch(ZEND_STRL("gmp_random_range"), gmp_range, &next_gmp_range);
	watch_engines();
	find_sqlite();
}

void altair_settle(void)
{
	/* Each of these is set up again on next use, which is in a fork. */
	if (!is_seeded) {
		RANDOM_G(mt19937_seeded) = false;
	}
	RANDOM_G(combined_lcg_seeded) = false;
	if (sqlite_randomness != NULL) {
		sqlite_randomness(0, NULL);
	}
	php_clear_stat_cache(true, NULL, 0);
}

bool altair_enter(const char *root)
{
	zend_memory_reset_peak_usage();
#ifdef VIRTUAL_DIR
	/* A thread-safe PHP has a current directory of its own; libraries use that of the process. */
	if (VCWD_CHDIR(root) != 0) {
		return false;
	}
#endif
	return chdir(root) == 0;
}

bool altair_freshen(void)
{
	renew_request_time();
	seed_gmp_again();
	seed_engines_again();
	PG(connection_status) = PHP_CONNECTION_NORMAL;
	set_time_limit_again();
	return EG(exception) == NULL;
}
