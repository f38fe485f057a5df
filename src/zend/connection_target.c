/* Describes where a refused call would have connected to, if its arguments tell. */

#include "confine.h"
#include "zend_observer.h"

/* Maximum bytes of an address that are shown. Host names have at most 253 (RFC 1035). */
#define ADDRESS_BYTES 200

/* Functions whose arguments tell the target. Arguments are counted from 1; 0 for none. */
static const struct {
	const char *name;
	const char *verb;
	uint32_t address;
	uint32_t port;
} targets[] = {
	{"fsockopen", "connect to", 1, 2},
	{"pfsockopen", "connect to", 1, 2},
	{"stream_socket_client", "connect to", 1, 0},
	{"stream_socket_sendto", "send to", 4, 0},
	{"socket_connect", "connect to", 2, 3},
	{"socket_sendto", "send to", 5, 6},
	{"ftp_connect", "connect to", 1, 2},
	{"ftp_ssl_connect", "connect to", 1, 2},
	{"stream_socket_server", "listen on", 1, 0},
	{"socket_bind", "listen on", 2, 3},
	{"gethostbyname", "resolve", 1, 0},
	{"gethostbynamel", "resolve", 1, 0},
	{"gethostbyaddr", "resolve", 1, 0},
	{"socket_addrinfo_lookup", "resolve", 1, 0},
	{"checkdnsrr", "resolve", 1, 0},
	{"dns_check_record", "resolve", 1, 0},
	{"dns_get_record", "resolve", 1, 0},
	{"getmxrr", "resolve", 1, 0},
	{"dns_get_mx", "resolve", 1, 0},
};

static const zval *argument(const zend_execute_data *call, uint32_t number)
{
	if (number == 0 || number > ZEND_CALL_NUM_ARGS(call)) {
		return NULL;
	}
	const zval *value = ZEND_CALL_ARG(call, number);
	ZVAL_DEREF(value);
	return value;
}

static bool is_path_of_socket(const char *address)
{
	return *address == '/' || strncasecmp(address, "unix:", 5) == 0 || strncasecmp(address, "udg:", 4) == 0;
}

/* Narrows an address or a URL to the place: without scheme, user, password and path. Of a Unix
 * socket, the place is the path. */
static void only_the_place(const char **text, size_t *len)
{
	const char *at = *text, *end = at + *len;
	const char *slashes = *at == '/' ? NULL : zend_memnstr(at, ZEND_STRL("://"), end);
	bool is_path = is_path_of_socket(at);
	at = slashes != NULL ? slashes + 3 : at;
	if (is_path) {
		*text = at;
		*len = (size_t) (end - at);
		return;
	}
	for (const char *c = at; c < end; c++) {
		if (*c == '/' || *c == '?' || *c == '#') {
			end = c;
		}
	}
	for (const char *c = at; c < end; c++) {
		if (*c == '@') {
			at = c + 1;
		}
	}
	*text = at;
	*len = (size_t) (end - at);
}

bool altair_describe_place(char *what, const char *verb, const char *text, size_t len, zend_long port)
{
	only_the_place(&text, &len);
	if (len == 0) {
		return false;
	}
	/* An IPv6 address needs brackets before a port. */
	const char *colon = memchr(text, ':', len);
	bool bracket = port > 0 && text[0] != '[' && colon != NULL
		&& memchr(colon + 1, ':', (size_t) (text + len - colon - 1)) != NULL;
	int shown = len > ADDRESS_BYTES ? ADDRESS_BYTES : (int) len;
	int used = snprintf(what, ALTAIR_WHAT_BYTES, "%s %s%.*s%s%s", verb, bracket ? "[" : "", shown, text,
		(size_t) shown < len ? "..." : "", bracket ? "]" : "");
	if (port > 0 && text[0] != '/') {
		snprintf(what + used, (size_t) (ALTAIR_WHAT_BYTES - used), ":" ZEND_LONG_FMT, port);
	}
	for (char *c = what; *c != '\0'; c++) {
		if ((unsigned char) *c < ' ' || *c == 0x7f) {
			*c = '?';
		}
	}
	return true;
}

/* curl_exec(): asks the handle for its URL. */
static bool describe_transfer(char *what, const zend_execute_data *call)
{
	const zval *handle = argument(call, 1);
	zend_function *ask = zend_hash_str_find_ptr(EG(function_table), ZEND_STRL("curl_getinfo"));
	if (ask == NULL || handle == NULL || Z_TYPE_P(handle) != IS_OBJECT
		|| !zend_string_equals_literal(Z_OBJCE_P(handle)->name, "CurlHandle")) {
		return false;
	}
	zval arguments[2], url;
	const zend_long effective_url = 0x100001; /* CURLINFO_EFFECTIVE_URL (curl/curl.h) */
	ZVAL_COPY_VALUE(&arguments[0], handle);
	ZVAL_LONG(&arguments[1], effective_url);
	ZVAL_UNDEF(&url);
	zend_call_known_function(ask, NULL, NULL, &url, 2, arguments, NULL);
	bool told = Z_TYPE(url) == IS_STRING && altair_describe_place(what, "connect to", Z_STRVAL(url), Z_STRLEN(url), 0);
	zval_ptr_dtor(&url);
	return told;
}

static bool is_of_datagrams(const char *address)
{
	return strncasecmp(address, "udp:", 4) == 0 || strncasecmp(address, "udg:", 4) == 0;
}

static bool describe_target(char *what, const zend_execute_data *call, const char *name)
{
	if (strcmp(name, "curl_exec") == 0) {
		return describe_transfer(what, call);
	}
	for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
		if (strcmp(name, targets[i].name) != 0) {
			continue;
		}
		const zval *address = argument(call, targets[i].address);
		const zval *port = argument(call, targets[i].port);
		if (address == NULL || Z_TYPE_P(address) != IS_STRING) {
			return false;
		}
		const char *verb = is_of_datagrams(Z_STRVAL_P(address)) ? "send to" : targets[i].verb;
		return altair_describe_place(what, verb, Z_STRVAL_P(address), Z_STRLEN_P(address),
			port != NULL && Z_TYPE_P(port) <= IS_STRING ? zval_get_long((zval *) port) : 0);
	}
	return false;
}

void altair_describe(zend_execute_data *call, char *what)
{
	const zend_class_entry *scope = call->func->common.scope;
	const char *name = ZSTR_VAL(call->func->common.function_name);
	if (scope == NULL && describe_target(what, call, name)) {
		return;
	}
	snprintf(what, ALTAIR_WHAT_BYTES, "%s%s%s()", scope ? ZSTR_VAL(scope->name) : "", scope ? "::" : "", name);
}

bool altair_service(const char *what, char *flag)
{
	static const char verb[] = "connect to ";
	if (strncmp(what, verb, sizeof verb - 1) != 0 || strstr(what, "...") != NULL) {
		return false;
	}
	const char *place = what + sizeof verb - 1;
	const char *colon = strrchr(place, ':');
	bool has_port = colon != NULL && colon > place && colon[1] != '\0'
		&& strspn(colon + 1, "0123456789") == strlen(colon + 1);
	static const char of_names[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:[]%";
	if (*place != '/' && (!has_port || strspn(place, of_names) != strlen(place))) {
		return false;
	}
	snprintf(flag, ALTAIR_WHAT_BYTES, "--service=%s", place);
	return true;
}

/* ---- URL wrappers ---- */

/* PHP's warning for a URL that `allow_url_fopen` does not allow, after the scheme
 * (main/streams/streams.c). No other hook of the engine reports this. */
static const char NO_URLS[] = ":// wrapper is disabled in the server configuration by allow_url_fopen=0";

/* The first argument of a call that is a URL with this scheme. */
static const zval *url_argument(const zend_execute_data *call, const char *scheme, size_t len)
{
	uint32_t count = call != NULL && call->func != NULL && !ZEND_USER_CODE(call->func->type)
		? ZEND_CALL_NUM_ARGS(call) : 0;
	for (uint32_t i = 1; i <= count; i++) {
		const zval *value = argument(call, i);
		if (Z_TYPE_P(value) == IS_STRING && Z_STRLEN_P(value) > len
			&& strncasecmp(Z_STRVAL_P(value), scheme, len) == 0 && Z_STRVAL_P(value)[len] == ':') {
			return value;
		}
	}
	return NULL;
}

static void on_error(int type, zend_string *file, uint32_t line, zend_string *message)
{
	(void) file, (void) line;
	const char *start = ZSTR_VAL(message);
	const char *end = type == E_WARNING
		? zend_memnstr(start, NO_URLS, sizeof NO_URLS - 1, start + ZSTR_LEN(message)) : NULL;
	if (end == NULL) {
		return;
	}
	const char *scheme = end;
	while (scheme > start && (isalnum((unsigned char) scheme[-1]) || strchr("+-.", scheme[-1]))) {
		scheme--;
	}
	size_t len = (size_t) (end - scheme);
	char what[ALTAIR_WHAT_BYTES];
	const zval *url = url_argument(EG(current_execute_data), scheme, len);
	bool connects = len != 4 || strncasecmp(scheme, "data", 4) != 0;
	if (!connects || url == NULL || !altair_describe_place(what, "connect to", Z_STRVAL_P(url), Z_STRLEN_P(url), 0)) {
		snprintf(what, sizeof what, "open a %.*s: URL", len > 32 ? 32 : (int) len, scheme);
	}
	char service[ALTAIR_WHAT_BYTES];
	altair_blocked(what, altair_service(what, service) ? service : "--network");
}

void altair_note_urls(void)
{
	/* Observers are also called for errors that the code silences with `@` or handles itself. */
	zend_observer_error_register(on_error);
}
