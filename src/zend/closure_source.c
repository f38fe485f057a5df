/* Closures and the files they are from: what a file has of closures, and closures made of a file's bytes. */

#include "closure.h"
#include "SAPI.h"
#include "php_streams.h"
#include "zend_closures.h"
#include "zend_exceptions.h"
#include "zend_ini.h"

void altair_closure_origin_of(const zend_object *closure, altair_closure_origin *origin)
{
	const zend_op_array *code = altair_closure_code(closure);
	origin->opcodes = code->opcodes;
	origin->file = code->filename;
	origin->count = code->last;
	origin->first_line = code->line_start;
	origin->last_line = code->line_end;
	origin->is_shared = code->refcount == NULL;
}

void *altair_closure_pin(const zend_object *closure)
{
	zend_function *pinned = malloc(sizeof(zend_op_array));
	if (pinned != NULL) {
		pinned->op_array = *altair_closure_code(closure);
		/* These are the closure's own. */
		pinned->op_array.fn_flags &= ~(uint32_t) ZEND_ACC_HEAP_RT_CACHE;
		pinned->op_array.static_variables = NULL;
		function_add_ref(pinned);
	}
	return pinned;
}

void altair_closure_unpin(void *pinned)
{
	if (pinned != NULL) {
		destroy_op_array(pinned);
		free(pinned);
	}
}

void altair_closure_form(const zend_object *closure, altair_bytes form, altair_bytes unknown, void *context)
{
	const zend_op_array *code = altair_closure_code(closure);
	altair_buffer buffer = {0};
	altair_form(&buffer, code, false, NULL);
	form(context, buffer.bytes, buffer.len);
	buffer.len = 0;
	altair_unknown_names(&buffer, code);
	unknown(context, buffer.bytes, buffer.len);
	free(buffer.bytes);
}

/* ---- the closures of a file ---- */

typedef struct {
	bool is_literal;
	altair_each_closure each;
	void *context;
} survey;

static void tell(void *context, uint32_t number, zend_op_array *code, const altair_mark *mark)
{
	const survey *of = context;
	altair_buffer buffer = {0};
	altair_closure_seen seen = {number, code->line_start, code->line_end, ALTAIR_ALLOWED, 0, NULL, 0};
	if (of->is_literal) {
		seen.rule = altair_instruction_rule(code, NULL, mark->yield_line, &seen.rule_line);
	}
	altair_form(&buffer, code, of->is_literal, mark->doc);
	seen.form = buffer.bytes;
	seen.form_len = buffer.len;
	of->each(of->context, &seen);
	free(buffer.bytes);
}

bool altair_closure_survey(const char *file, size_t file_len, const char *source, size_t source_len,
	enum altair_closure_way way, const char *hidden, size_t hidden_len, altair_each_closure each, void *context,
	char *error, size_t error_size)
{
	survey of = {way == ALTAIR_WAY_LITERAL, each, context};
	altair_apart *apart = altair_apart_compile(file, file_len, source, source_len, CG(short_tags), way, hidden,
		hidden_len, error, error_size);
	if (apart == NULL) {
		return false;
	}
	altair_apart_closures(apart, tell, &of);
	altair_apart_end(apart);
	return true;
}

bool altair_closure_short_tags(void)
{
	return CG(short_tags);
}

bool altair_closure_is_encoded(void)
{
	return CG(multibyte);
}

bool altair_closure_opcache_is_on(void)
{
	bool is_cli = strcmp(sapi_module.name, "cli") == 0 || strcmp(sapi_module.name, "phpdbg") == 0;
	return zend_ini_long("opcache.enable", sizeof("opcache.enable") - 1, 0) != 0
		&& (!is_cli || zend_ini_long("opcache.enable_cli", sizeof("opcache.enable_cli") - 1, 0) != 0);
}

int altair_closure_read_phar(const char *path, size_t max, altair_bytes bytes, void *context)
{
	php_stream_wrapper *wrapper = php_stream_locate_url_wrapper(path, NULL, 0);
	/* A class can take the place of the scheme. */
	if (wrapper == NULL || wrapper->wops->label == NULL || strcmp(wrapper->wops->label, "phar") != 0) {
		return ENOENT;
	}
	/* A file that is gone is no exception here, and no warning. */
	int reporting = EG(error_reporting);
	zval handler;
	ZVAL_COPY_VALUE(&handler, &EG(user_error_handler));
	ZVAL_UNDEF(&EG(user_error_handler));
	EG(error_reporting) = 0;
	php_stream *stream = php_stream_open_wrapper_ex(path, "rb", 0, NULL, NULL);
	EG(error_reporting) = reporting;
	ZVAL_COPY_VALUE(&EG(user_error_handler), &handler);
	if (stream == NULL) {
		if (EG(exception)) {
			zend_clear_exception();
		}
		return ENOENT;
	}
	zend_string *text = php_stream_copy_to_mem(stream, max + 1, 0);
	php_stream_close(stream);
	int error = ZSTR_LEN(text) > max ? EFBIG : 0;
	if (error == 0) {
		bytes(context, ZSTR_VAL(text), ZSTR_LEN(text));
	}
	zend_string_release(text);
	return error;
}

/* ---- the receiving side ---- */

/* The compiled file, by the numbers of its closures; NULL where one was not compiled. The code is never freed. */
typedef struct {
	zend_op_array **codes;
	uint32_t count;
} unit;

static void keep(void *context, uint32_t number, zend_op_array *code, const altair_mark *mark)
{
	unit *of = context;
	if (number >= of->count) {
		uint32_t count = number + 16;
		of->codes = safe_perealloc(of->codes, count, sizeof *of->codes, 0, true);
		memset(of->codes + of->count, 0, (count - of->count) * sizeof *of->codes);
		of->count = count;
	}
	of->codes[number] = code;
	/* Reflection reads it. */
	zend_string *own = code->doc_comment;
	code->doc_comment = mark->doc == NULL ? NULL : zend_string_copy(mark->doc);
	zend_string_release(own);
}

void *altair_closure_compile(const char *file, size_t file_len, const char *source, size_t source_len, bool short_tags,
	char *error, size_t error_size)
{
	unit *of = calloc(1, sizeof *of);
	if (of == NULL) {
		snprintf(error, error_size, "there is not enough memory");
		return NULL;
	}
	altair_apart *apart = altair_apart_compile(file, file_len, source, source_len, short_tags, ALTAIR_WAY_RECEIVING,
		NULL, 0, error, error_size);
	if (apart == NULL) {
		free(of);
		return NULL;
	}
	altair_apart_closures(apart, keep, of);
	altair_apart_end(apart);
	return of;
}

/* A variable that an arrow function names and that was nowhere around it. What captures one is not sent. */
static void forget_captured(const zend_op_array *code)
{
	HashTable *statics = ZEND_MAP_PTR_GET(code->static_variables_ptr);
	for (uint32_t i = 0; i < code->last && statics != NULL; i++) {
		const zend_op *op = &code->opcodes[i];
		if (op->opcode == ZEND_BIND_STATIC && (op->extended_value & ZEND_BIND_IMPLICIT)) {
			uint32_t offset = op->extended_value & ~(uint32_t) (ZEND_BIND_REF | ZEND_BIND_IMPLICIT | ZEND_BIND_EXPLICIT);
			ZVAL_UNDEF((zval *) ((char *) statics->arData + offset));
		}
	}
}

bool altair_closure_make(void *handle, uint32_t number, uint32_t first_line, uint32_t last_line, zval *result)
{
	const unit *of = handle;
	zend_op_array *code = number < of->count ? of->codes[number] : NULL;
	if (code == NULL || code->line_start != first_line || code->line_end != last_line) {
		return false;
	}
	zend_create_closure(result, (zend_function *) code, NULL, NULL, NULL);
	forget_captured(altair_closure_code(Z_OBJ_P(result)));
	return true;
}
