/* container(): a function while a snippet runs, that is in nobody's way. Calls that are written in the
 * snippet have it by a key of its own. By its name it is in the function table, too, where the application
 * has no function of that name; but the application's code is not told of it, and where it calls or
 * declares one of that name, that is as it would be without us. */

#include "confine.h"
#include "zend_exceptions.h"
#include "zend_interfaces.h"
#include "zend_vm.h"

#define NAME "container"

static zval container;
static zend_function *own;
static bool is_known;              /* by its name, as far as the application has none */
static uint32_t compilations;      /* under way: what is compiled may declare one */
static bool took_last_statement;
static zif_handler next_function_exists;
static zif_handler next_is_callable;
static zend_op_array *(*next_compile_file)(zend_file_handle *, int);
static zend_op_array *(*next_compile_string)(zend_string *, const char *, zend_compile_position);
static user_opcode_handler_t next_declare;

/* ---- its name ---- */

static zend_function *named(void)
{
	return zend_hash_str_find_ptr(EG(function_table), ZEND_STRL(NAME));
}

static bool has_name(void)
{
	return own != NULL && named() == own;
}

static void hide(void)
{
	if (has_name()) {
		dtor_func_t destroy = EG(function_table)->pDestructor;
		EG(function_table)->pDestructor = NULL; /* it stays, under its other key */
		zend_hash_str_del(EG(function_table), ZEND_STRL(NAME));
		EG(function_table)->pDestructor = destroy;
	}
}

static void add(const char *key, size_t len, zend_function *function)
{
	zend_string *name = zend_string_init(key, len, 1);
	zend_hash_add_ptr(EG(function_table), name, function); /* not where there is one */
	zend_string_release(name);
}

static void show(void)
{
	if (is_known && compilations == 0) {
		add(ZEND_STRL(NAME), own);
	}
}

void altair_know_container(void)
{
	is_known = own != NULL;
	show();
}

void altair_show_container(void)
{
	compilations = 0;
	show();
}

/* ---- who must not see it ---- */

static zend_op_array *compile_hidden_file(zend_file_handle *file, int type)
{
	hide();
	compilations++;
	zend_op_array *code = next_compile_file(file, type);
	compilations--;
	show();
	return code;
}

static zend_op_array *compile_hidden_string(zend_string *text, const char *name, zend_compile_position at)
{
	hide();
	compilations++;
	zend_op_array *code = next_compile_string(text, name, at);
	compilations--;
	show();
	return code;
}

/* A function that is declared inside of a block or of another function. */
static int on_declare(zend_execute_data *execute_data)
{
	const zend_op *opline = EX(opline);
	if (zend_string_equals_literal(Z_STR_P(RT_CONSTANT(opline, opline->op1)), NAME)) {
		hide();
	}
	return next_declare != NULL ? next_declare(execute_data) : ZEND_USER_OPCODE_DISPATCH;
}

void altair_watch_declarations(void)
{
	/* Compiled code keeps the handlers of its instructions: this one has to be there before. */
	next_declare = zend_get_user_opcode_handler(ZEND_DECLARE_FUNCTION);
	zend_set_user_opcode_handler(ZEND_DECLARE_FUNCTION, on_declare);
}

static bool asks_for_it(zend_execute_data *call)
{
	zval *name = ZEND_CALL_ARG(call, 1);
	ZVAL_DEREF(name);
	if (Z_TYPE_P(name) != IS_STRING) {
		return false;
	}
	size_t skip = Z_STRLEN_P(name) > 0 && Z_STRVAL_P(name)[0] == '\\';
	return zend_binary_strcasecmp(Z_STRVAL_P(name) + skip, Z_STRLEN_P(name) - skip, ZEND_STRL(NAME)) == 0;
}

/* Whether it is the application that asks, which would declare its own, or call it. */
static bool must_not_know(zend_execute_data *call)
{
	return ZEND_CALL_NUM_ARGS(call) == 1 && has_name() && !altair_from_snippet(call->prev_execute_data)
		&& asks_for_it(call);
}

static ZEND_NAMED_FUNCTION(function_exists)
{
	if (must_not_know(execute_data)) {
		RETURN_FALSE;
	}
	next_function_exists(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

static ZEND_NAMED_FUNCTION(is_callable)
{
	if (must_not_know(execute_data)) {
		RETURN_FALSE;
	}
	next_is_callable(INTERNAL_FUNCTION_PARAM_PASSTHRU);
}

/* ---- the function ---- */

ZEND_BEGIN_ARG_INFO_EX(container_arginfo, 0, 0, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, id, IS_STRING, 1, "null")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_INFO_EX(last_arginfo, 0, 0, 0)
ZEND_END_ARG_INFO()

/* Whether a call is written out in code that is neither the snippet's nor that of an entered closure. */
static bool is_written_elsewhere(const zend_execute_data *call)
{
	const zend_execute_data *caller = call->prev_execute_data;
	return !(ZEND_CALL_INFO(call) & ZEND_CALL_DYNAMIC) && caller != NULL && caller->func != NULL
		&& ZEND_USER_CODE(caller->func->type) && !altair_is_snippet(caller)
		&& !altair_is_entered(caller);
}

/* The application's call of a function that it may have by now: a call keeps what it has found first. */
static void call_theirs(INTERNAL_FUNCTION_PARAMETERS)
{
	zend_function *theirs = named();
	if (theirs == NULL || theirs == own) {
		zend_throw_error(NULL, "Call to undefined function " NAME "()");
		return;
	}
	zend_call_known_function(theirs, NULL, NULL, return_value, ZEND_NUM_ARGS(), ZEND_CALL_ARG(execute_data, 1),
		ZEND_CALL_INFO(execute_data) & ZEND_CALL_HAS_EXTRA_NAMED_PARAMS
			? execute_data->extra_named_params : NULL);
}

static ZEND_FUNCTION(altair_container)
{
	zval *id = NULL;
	if (is_written_elsewhere(execute_data)) {
		call_theirs(INTERNAL_FUNCTION_PARAM_PASSTHRU);
		return;
	}
	ZEND_PARSE_PARAMETERS_START(0, 1)
		Z_PARAM_OPTIONAL
		Z_PARAM_ZVAL(id)
	ZEND_PARSE_PARAMETERS_END();
	if (id == NULL || Z_TYPE_P(id) == IS_NULL) {
		RETURN_COPY(&container);
	}
	if (Z_TYPE_P(id) != IS_STRING) {
		zend_argument_type_error(1, "must be of type ?string, %s given", zend_zval_type_name(id));
		RETURN_THROWS();
	}
	zend_call_method_with_1_params(Z_OBJ(container), Z_OBJCE(container), NULL, "get", return_value, id);
}

/* Stands before the last of several statements. */
static ZEND_FUNCTION(altair_last)
{
	(void) execute_data, (void) return_value;
	took_last_statement = true;
}

bool altair_took_last_statement(void)
{
	return took_last_statement;
}

/* Of no file, so that no cache of compiled code counts on its functions. */
static zend_module_entry module = {.name = "altair_eval snippet", .type = MODULE_TEMPORARY};

static zend_function *moved(HashTable *from, const char *name, const char *key, size_t len)
{
	zend_function *function = zend_hash_str_find_ptr(from, name, strlen(name));
	function->internal_function.module = &module;
	add(key, len, function);
	return function;
}

void altair_set_container(zval *value)
{
	static const zend_function_entry entries[] = {
		ZEND_NAMED_FE(container, ZEND_FN(altair_container), container_arginfo)
		ZEND_NAMED_FE(last, ZEND_FN(altair_last), last_arginfo)
		ZEND_FE_END
	};
	ZVAL_COPY(&container, value);
	/* Registered in a table of its own and moved: the application may have such a function. */
	HashTable table;
	zend_hash_init(&table, 2, NULL, NULL, 1);
	zend_register_functions(NULL, entries, &table, MODULE_PERSISTENT);
	own = moved(&table, NAME, ALTAIR_CONTAINER_KEY, sizeof(ALTAIR_CONTAINER_KEY) - 1);
	moved(&table, "last", ALTAIR_LAST_KEY, sizeof(ALTAIR_LAST_KEY) - 1);
	zend_hash_destroy(&table);
	next_compile_file = zend_compile_file;
	zend_compile_file = compile_hidden_file;
	next_compile_string = zend_compile_string;
	zend_compile_string = compile_hidden_string;
	next_function_exists = altair_replace(ZEND_STRL("function_exists"), function_exists);
	next_is_callable = altair_replace(ZEND_STRL("is_callable"), is_callable);
}

const zval *altair_container(void)
{
	return &container;
}
