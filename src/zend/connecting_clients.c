/* Clients that make connections of their own, in a run without services and network. Their
 * targets are noted, and they fail as if the server did not answer. The seccomp filter alone
 * would refuse the socket, which does not tell its target.
 *
 * mysqlnd, Redis and others connect by PHP's stream transports. libpq connects itself, to the
 * target in a connection string. */

#include "confine.h"
#include "zend_exceptions.h"

/* ---- stream transports ---- */

/* Maximum number of transports. PHP and its extensions register tcp, unix, and one for each TLS
 * version. */
#define TRANSPORTS_MAX 32

static struct {
	char name[32];
	php_stream_transport_factory was;
} transports[TRANSPORTS_MAX];
static size_t transport_count;

/* Notes what was refused, and writes the flag that allows it. */
static void tell(const char *text, size_t len, zend_long port, char *flag)
{
	char what[ALTAIR_WHAT_BYTES];
	if (!altair_describe_place(what, "connect to", text, len, port)) {
		snprintf(what, sizeof what, "connect to an address");
	}
	if (!altair_service(what, flag)) {
		snprintf(flag, ALTAIR_WHAT_BYTES, "--network");
	}
	altair_blocked(what, flag);
}

static php_stream *refuse_transport(const char *proto, size_t protolen, const char *resourcename,
	size_t resourcenamelen, const char *persistent_id, int options, int flags, struct timeval *timeout,
	php_stream_context *context STREAMS_DC)
{
	if ((flags & STREAM_XPORT_SERVER) == 0 && (flags & (STREAM_XPORT_CONNECT | STREAM_XPORT_CONNECT_ASYNC)) != 0) {
		char flag[ALTAIR_WHAT_BYTES];
		tell(resourcename, resourcenamelen, 0, flag);
		return NULL;
	}
	for (size_t i = 0; i < transport_count; i++) {
		if (strlen(transports[i].name) == protolen && strncasecmp(transports[i].name, proto, protolen) == 0) {
			return transports[i].was(proto, protolen, resourcename, resourcenamelen, persistent_id, options,
				flags, timeout, context STREAMS_REL_CC);
		}
	}
	return NULL;
}

static void refuse_transports(void)
{
	zend_string *name;
	void *factory;
	ZEND_HASH_FOREACH_STR_KEY_PTR(php_stream_xport_get_hash(), name, factory) {
		bool is_of_datagrams = zend_string_equals_literal(name, "udp") || zend_string_equals_literal(name, "udg");
		if (is_of_datagrams || transport_count == TRANSPORTS_MAX
			|| ZSTR_LEN(name) >= sizeof transports[0].name) {
			continue;
		}
		strcpy(transports[transport_count].name, ZSTR_VAL(name));
		transports[transport_count++].was = (php_stream_transport_factory) factory;
	} ZEND_HASH_FOREACH_END();
	for (size_t i = 0; i < transport_count; i++) {
		php_stream_xport_register(transports[i].name, refuse_transport);
	}
}

/* ---- libpq ---- */

/* PostgreSQL's default port. */
#define POSTGRESQL_PORT 5432

/* The value of a parameter in `host=db;port=5432`, separated by semicolons or spaces. NULL if
 * missing. */
static const char *parameter(const char *text, const char *name, size_t *len)
{
	size_t name_len = strlen(name);
	while (*text != '\0') {
		text += strspn(text, "; \t\n");
		size_t all = strcspn(text, "; \t\n");
		if (strncmp(text, name, name_len) == 0 && text[name_len] == '=') {
			const char *value = text + name_len + 1;
			*len = all - name_len - 1;
			if (*len >= 2 && *value == '\'' && value[*len - 1] == '\'') {
				value++;
				*len -= 2;
			}
			return *len > 0 ? value : NULL;
		}
		text += all;
	}
	return NULL;
}

/* Notes the targets in a connection string of libpq, and writes the flag that allows the last
 * one. False if the string names none. */
static bool tell_of_libpq(const char *text, char *flag)
{
	if (strstr(text, "://") != NULL) {
		tell(text, strlen(text), 0, flag);
		return true;
	}
	size_t len, port_len;
	const char *hosts = parameter(text, "host", &len);
	hosts = hosts != NULL ? hosts : parameter(text, "hostaddr", &len);
	if (hosts == NULL) {
		return false;
	}
	const char *port_text = parameter(text, "port", &port_len);
	zend_long port = port_text != NULL ? ZEND_STRTOL(port_text, NULL, 10) : 0;
	port = port > 0 ? port : POSTGRESQL_PORT;
	bool told = false;
	for (const char *host = hosts, *end = hosts + len; host < end;) {
		const char *comma = memchr(host, ',', (size_t) (end - host));
		size_t own = (size_t) ((comma != NULL ? comma : end) - host);
		if (*host == '/') {
			char path[ALTAIR_WHAT_BYTES]; /* the host is the directory of a socket */
			snprintf(path, sizeof path, "%.*s/.s.PGSQL." ZEND_LONG_FMT, (int) own, host, port);
			tell(path, strlen(path), 0, flag);
		} else if (own > 0) {
			tell(host, own, port, flag);
		}
		told = told || own > 0;
		host += own + 1;
	}
	return told;
}

/* The first argument of a call, if it is a string. */
static const char *first_text(const zend_execute_data *call)
{
	if (ZEND_CALL_NUM_ARGS(call) == 0) {
		return NULL;
	}
	const zval *value = ZEND_CALL_ARG(call, 1);
	ZVAL_DEREF(value);
	return Z_TYPE_P(value) == IS_STRING ? Z_STRVAL_P(value) : NULL;
}

static zif_handler next_pg_connect;
static zif_handler next_pg_pconnect;
static zif_handler next_construct;
static zif_handler next_connect;

/* Refuses a call of pgsql. Returns false if it is allowed. */
static bool refuses_pgsql(const zend_execute_data *call, zval *return_value)
{
	const char *text = first_text(call);
	char flag[ALTAIR_WHAT_BYTES];
	if (text == NULL || !tell_of_libpq(text, flag)) {
		return false;
	}
	char clause[ALTAIR_CLAUSE_BYTES];
	altair_clause(flag, clause);
	php_error_docref(NULL, E_WARNING, "Unable to connect to PostgreSQL server: it is refused in a confined run%s",
		clause);
	RETVAL_FALSE;
	return true;
}

static ZEND_NAMED_FUNCTION(pg_connect)
{
	if (!refuses_pgsql(execute_data, return_value)) {
		next_pg_connect(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	}
}

static ZEND_NAMED_FUNCTION(pg_pconnect)
{
	if (!refuses_pgsql(execute_data, return_value)) {
		next_pg_pconnect(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	}
}

/* Refuses a call of PDO. Returns false if it is allowed. */
static bool refuses_pdo(const zend_execute_data *call)
{
	static const char driver[] = "pgsql:";
	const char *text = first_text(call);
	char flag[ALTAIR_WHAT_BYTES];
	if (text == NULL || strncmp(text, driver, sizeof driver - 1) != 0
		|| !tell_of_libpq(text + sizeof driver - 1, flag)) {
		return false;
	}
	/* The same as for a server that does not answer (libpq's CONNECTION_BAD, SQLSTATE 08006). */
	char clause[ALTAIR_CLAUSE_BYTES];
	altair_clause(flag, clause);
	zend_throw_exception_ex(zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("pdoexception")), 7,
		"SQLSTATE[08006] [7] connection to server is refused in a confined run%s", clause);
	return true;
}

static ZEND_NAMED_FUNCTION(pdo_construct)
{
	if (!refuses_pdo(execute_data)) {
		next_construct(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	}
}

/* PDO::connect(), from PHP 8.4 on. */
static ZEND_NAMED_FUNCTION(pdo_connect)
{
	if (!refuses_pdo(execute_data)) {
		next_connect(INTERNAL_FUNCTION_PARAM_PASSTHRU);
	}
}

static void refuse_libpq(void)
{
	next_pg_connect = altair_replace(ZEND_STRL("pg_connect"), pg_connect);
	next_pg_pconnect = altair_replace(ZEND_STRL("pg_pconnect"), pg_pconnect);
	const zend_class_entry *pdo = zend_hash_str_find_ptr(CG(class_table), ZEND_STRL("pdo"));
	zend_class_entry *ce;
	ZEND_HASH_FOREACH_PTR(CG(class_table), ce) {
		if (pdo != NULL && ce->type == ZEND_INTERNAL_CLASS && instanceof_function(ce, pdo)) {
			altair_replace_method(ce, "__construct", &next_construct, pdo_construct);
			altair_replace_method(ce, "connect", &next_connect, pdo_connect);
		}
	} ZEND_HASH_FOREACH_END();
}

void altair_refuse_connections(void)
{
	refuse_transports();
	refuse_libpq();
}
