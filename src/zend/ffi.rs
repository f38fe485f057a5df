//! The C side: the shim of `shim.h`, and the few engine symbols that `ext-php-rs` does not bind.

#![allow(missing_docs)] // documented in `shim.h`

use std::ffi::{c_char, c_int, c_void};

use ext_php_rs::ffi::{zend_array, zend_execute_data, zend_object, zend_string, zval};
use ext_php_rs::zend::ClassEntry;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawFrame {
    pub class_name: *const zend_string,
    pub function_name: *const zend_string,
    pub is_static: bool,
    pub file: *const zend_string,
    pub line: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawPlace {
    pub file: *const zend_string,
    pub line: u32,
}

/// `altair_table`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RawTable {
    pub slots: *const c_void,
    pub used: u32,
    pub count: u32,
    pub is_packed: bool,
}

#[repr(C)]
pub struct RawIniOptions {
    pub path: *const c_char,
    pub entries: *const c_char,
    pub ignores_files: bool,
}

/// `enum altair_kind`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)] // made by C
pub enum Kind {
    Plain,
    Enum,
    Closure,
    Traversable,
}

pub type Each = extern "C" fn(
    context: *mut c_void,
    key: *const c_char,
    len: usize,
    index: i64,
    value: *mut zval,
);
pub type EachProperty = extern "C" fn(
    context: *mut c_void,
    visibility: c_int,
    hidden_in: *const zend_string,
    name: *const c_char,
    len: usize,
    index: i64,
    value: *mut zval,
);
pub type NameHook =
    extern "C" fn(context: *mut c_void, name: *const c_char, len: usize, item: *const c_void);
pub type WarnedHook = extern "C" fn(
    message: *const zend_string,
    is_of_snippet: bool,
    frame: *const c_void,
    operand: *const zval,
);
pub type FatalHook = extern "C" fn(
    out_of_memory: bool,
    file: *const zend_string,
    line: u32,
    message: *const zend_string,
);

pub type WayHook = extern "C" fn(flag: *const c_char, room: *mut c_char, size: usize) -> bool;
pub type RefusedHook = extern "C" fn(what: *const c_char, lift: *const c_char);
pub type LookHook = extern "C" fn(
    dialect: c_int,
    mode: c_int,
    plain_backslash: bool,
    whole_ascii: bool,
    text: *const c_char,
    len: usize,
    what: *mut c_char,
    size: usize,
) -> c_int;
pub type AuthorizeHook = extern "C" fn(
    in_memory: bool,
    action: c_int,
    first: *const c_char,
    second: *const c_char,
    what: *mut c_char,
    size: usize,
) -> bool;
/// `altair_recorder`.
#[repr(C)]
pub struct RawRecorder {
    pub text: extern "C" fn(
        dialect: c_int,
        plain_backslash: bool,
        whole_ascii: bool,
        text: *const c_char,
        len: usize,
    ) -> u64,
    pub begins: extern "C" fn(text: u64) -> u64,
    pub answers: extern "C" fn(
        session: *const c_void,
        text: u64,
        rows: u64,
        since: u64,
        is_first: bool,
        has_failed: bool,
    ) -> u64,
    pub undoes: extern "C" fn(session: *const c_void, text: u64),
    pub counted: extern "C" fn(
        session: *const c_void,
        is_first: bool,
        table: *const c_char,
        inserted: u64,
        updated: u64,
        deleted: u64,
    ),
    pub ends: extern "C" fn(session: *const c_void),
}
pub type MissedHook = extern "C" fn(path: *const c_char, write: bool, error: c_int);

pub type MissingClassHook =
    extern "C" fn(context: *mut c_void, name: *const c_char, len: usize, line: u32);
/// `altair_import`.
#[repr(C)]
pub struct RawImport {
    pub name: *const c_char,
    pub name_len: usize,
    pub class_name: *const c_char,
    pub class_len: usize,
}

/// `altair_closure_origin`.
#[repr(C)]
pub struct RawClosureOrigin {
    pub opcodes: *const c_void,
    pub file: *const zend_string,
    pub count: u32,
    pub first_line: u32,
    pub last_line: u32,
    pub is_shared: bool,
}
/// `altair_closure_seen`.
#[repr(C)]
pub struct RawClosureSeen {
    pub number: u32,
    pub first_line: u32,
    pub last_line: u32,
    pub rule: c_int,
    pub rule_line: u32,
    pub form: *const c_char,
    pub form_len: usize,
}
pub type BytesHook = extern "C" fn(context: *mut c_void, bytes: *const c_char, len: usize);
pub type ClosureHook = extern "C" fn(context: *mut c_void, closure: *const RawClosureSeen);

/// `zend_op_array`, only ever handed through.
pub type OpArray = c_void;

unsafe extern "C" {
    pub fn altair_frames(
        place: *mut RawPlace,
        frames: *mut RawFrame,
        max: usize,
        in_register: *const c_void,
    ) -> usize;

    pub fn altair_each_function(each: NameHook, context: *mut c_void);
    pub fn altair_each_class(each: NameHook, context: *mut c_void);
    pub fn altair_each_constant(each: NameHook, context: *mut c_void);
    pub fn altair_find_class(lower_case: *const c_char, len: usize) -> *const ClassEntry;
    pub fn altair_class_name(ce: *const ClassEntry) -> *const zend_string;
    pub fn altair_each_method(ce: *const ClassEntry, each: NameHook, context: *mut c_void);
    pub fn altair_each_class_constant(ce: *const ClassEntry, each: NameHook, context: *mut c_void);
    pub fn altair_each_property(
        ce: *const ClassEntry,
        scope: *const ClassEntry,
        is_static: bool,
        each: NameHook,
        context: *mut c_void,
    );
    pub fn altair_class_of(value: *const zval) -> *const ClassEntry;
    pub fn altair_is_instance(object: *const zend_object, of: *const ClassEntry) -> bool;
    pub fn altair_string_of(value: *const zval) -> *const zend_string;
    pub fn altair_own_properties(value: *const zval) -> *mut zend_array;
    pub fn altair_declared_property(
        value: *const zval,
        lower_case: *const c_char,
        lower_len: usize,
        name: *const c_char,
        len: usize,
    ) -> *mut zval;
    pub fn altair_static_property(
        lower_case: *const c_char,
        lower_len: usize,
        name: *const c_char,
        len: usize,
    ) -> *mut zval;
    pub fn altair_array_of(value: *const zval) -> *mut zend_array;
    pub fn altair_may_read(path: *const c_char) -> bool;
    pub fn altair_each_variable_of(frame: *const c_void, each: NameHook, context: *mut c_void);
    pub fn altair_scope_of(frame: *const c_void) -> *const ClassEntry;
    pub fn altair_signature(function: *const c_void, text: *mut c_char, size: usize) -> usize;
    pub fn altair_on_warning(hook: WarnedHook);
    pub fn altair_parse_error_offset() -> isize;
    pub fn altair_container() -> *const zval;

    pub fn altair_declare_readonly(
        ce: *mut ClassEntry,
        name: *const c_char,
        len: usize,
        mask: u32,
        class_name: *const c_char,
        is_private: bool,
    );
    pub fn altair_or_string(class: *mut ClassEntry, method: *const c_char, len: usize);
    pub fn altair_register_enum(name: *const c_char) -> *mut ClassEntry;
    pub fn altair_add_case(ce: *mut ClassEntry, name: *const c_char, value: *const c_char);
    pub fn altair_case_named(ce: *mut ClassEntry, name: *const c_char) -> *mut zend_object;
    pub fn altair_new_object(ce: *mut ClassEntry) -> *mut zend_object;
    pub fn altair_init_property(
        object: *mut zend_object,
        name: *const c_char,
        len: usize,
        value: *mut zval,
    );
    pub fn altair_property(object: *mut zend_object, name: *const c_char, len: usize) -> *mut zval;

    pub fn altair_entries(array: *mut zend_array, max: usize, each: Each, context: *mut c_void);
    pub fn altair_slots(
        object: *mut zend_object,
        max: usize,
        each: EachProperty,
        context: *mut c_void,
    ) -> usize;
    pub fn altair_slot(
        object: *mut zend_object,
        class_name: *const c_char,
        class_len: usize,
        name: *const c_char,
        len: usize,
    ) -> *mut zval;
    pub fn altair_declares(object: *mut zend_object, name: *const c_char, len: usize) -> bool;
    pub fn altair_is_a(object: *mut zend_object, class_name: *const c_char, len: usize) -> bool;
    pub fn altair_has_user_method(
        object: *mut zend_object,
        name: *const c_char,
        len: usize,
    ) -> bool;
    pub fn altair_laziness(object: *mut zend_object, instance: *mut *mut zend_object) -> c_int;
    pub fn altair_object_kind(object: *mut zend_object) -> Kind;
    pub fn altair_is_countable(object: *mut zend_object) -> bool;
    pub fn altair_array_is_list(array: *mut zend_array) -> bool;
    pub fn altair_enum_case(object: *mut zend_object) -> *mut zval;
    pub fn altair_enum_backing(object: *mut zend_object) -> *mut zval;
    pub fn altair_closure_place(object: *mut zend_object, place: *mut RawPlace) -> bool;
    pub fn altair_closure_name(object: *mut zend_object) -> *const zend_string;
    pub fn altair_closure_variable(
        object: *mut zend_object,
        name: *const c_char,
        len: usize,
    ) -> *mut zval;
    pub fn altair_closure_parameters(
        object: *mut zend_object,
        each: extern "C" fn(context: *mut c_void, text: *const c_char, len: usize),
        context: *mut c_void,
    );
    pub fn altair_stream_length(resource: *mut zval) -> i64;
    pub fn altair_resource_kind(resource: *mut zval) -> *const c_char;

    pub fn altair_call_method(
        object: *mut zend_object,
        name: *const c_char,
        len: usize,
        result: *mut zval,
    ) -> bool;
    pub fn altair_has_method(object: *mut zend_object, name: *const c_char, len: usize) -> bool;
    pub fn altair_format_date(object: *mut zend_object, result: *mut zval);
    pub fn altair_call_built_in(
        object: *mut zend_object,
        class_name: *const c_char,
        name: *const c_char,
        argument: *const c_char,
        result: *mut zval,
    ) -> bool;
    pub fn altair_xml(object: *mut zend_object, result: *mut zval);
    pub fn altair_clone(object: *mut zend_object, result: *mut zval) -> bool;
    pub fn altair_iterator(object: *mut zend_object) -> *mut c_void;
    pub fn altair_iterator_step(
        iterator: *mut c_void,
        first: bool,
        key: *mut zval,
        value: *mut zval,
    ) -> c_int;
    pub fn altair_iterator_free(iterator: *mut c_void);

    pub fn altair_scalar_text(value: *mut zval, text: *mut zval);
    pub fn altair_make_string(value: *mut zval, text: *const c_char, len: usize);
    pub fn altair_make_array(value: *mut zval, size: u32);
    pub fn altair_array_push(array: *mut zval, item: *mut zval);
    pub fn altair_array_set(array: *mut zval, key: *const c_char, len: usize, item: *mut zval);
    pub fn altair_array_set_index(array: *mut zval, key: i64, item: *mut zval);
    pub fn altair_keep_as_object(array: *mut zval);

    pub fn altair_table_of(array: *const zend_array, table: *mut RawTable);
    pub fn altair_begin_list(to: *mut zval, count: u32) -> *mut zval;
    pub fn altair_begin_map(to: *mut zval, count: u32) -> *mut zend_array;
    pub fn altair_add_index(map: *mut zend_array, index: i64, steps: *mut u64) -> *mut zval;
    pub fn altair_add_key(
        map: *mut zend_array,
        key: *const c_char,
        len: usize,
        steps: *mut u64,
    ) -> *mut zval;

    pub fn altair_json_encode(value: *mut zval, text: *mut zval);

    pub fn altair_take_exception() -> *mut zend_object;
    pub fn altair_throw(exception: *mut zend_object);
    pub fn altair_is_unwind_exit(exception: *mut zend_object) -> bool;
    pub fn altair_exception_property(
        exception: *mut zend_object,
        name: *const c_char,
        len: usize,
    ) -> *mut zval;

    pub fn altair_set_ini(
        name: *const c_char,
        name_len: usize,
        value: *const c_char,
        value_len: usize,
    ) -> bool;
    pub fn altair_set_memory_limit(bytes: usize) -> bool;
    pub fn altair_ini_quantity(text: *const c_char, len: usize) -> i64;
    pub fn altair_hold(
        ce: *mut ClassEntry,
        freed: extern "C" fn(u32),
        cloned: Option<extern "C" fn(u32, u32)>,
        can_be_cloned: bool,
    );
    pub fn altair_ini_options(options: *mut RawIniOptions);
    pub fn altair_ini_directory() -> *const c_char;
    pub fn altair_programs_directory() -> *const c_char;
    pub fn altair_trim_memory();
    pub fn altair_own_data();
    pub fn altair_rehearse();
    pub fn altair_memory_peak() -> usize;
    pub fn altair_memory_usage() -> usize;
    pub fn altair_php_version() -> *const c_char;
    pub fn altair_php_is_zts() -> bool;
    pub fn altair_php_is_debug() -> bool;

    pub fn altair_wrong_type(number: u32, expected: *const c_char, given: *mut zval);
    pub fn altair_extra_named(call: *mut zend_execute_data) -> *mut zend_array;
    pub fn altair_called_name(call: *mut zend_execute_data) -> *const zend_string;
    pub fn altair_parse_callable(number: u32, value: *mut zval) -> bool;
    pub fn altair_stream_of(value: *mut zval) -> *mut c_void;
    pub fn altair_stream_descriptor(stream: *mut c_void) -> c_int;
    pub fn altair_stream_read(stream: *mut c_void, to: *mut c_char, most: usize) -> isize;
    pub fn altair_stream_is_over(stream: *mut c_void) -> bool;
    pub fn altair_interrupts() -> bool;
    pub fn altair_starts_programs() -> bool;
    pub fn altair_call(
        callable: *mut zval,
        count: u32,
        arguments: *mut zval,
        result: *mut zval,
    ) -> bool;

    pub fn altair_mark_stack();
    pub fn altair_unwind_stack();
    pub fn altair_enter_closure(closure: *mut zval, arguments: *mut zval, result: *mut zval);
    pub fn altair_print_uncaught(exception: *mut zend_object);
    pub fn altair_watch_interrupts(interrupted: extern "C" fn());
    pub fn altair_end_line();
    pub fn altair_line_has_ended();
    pub fn altair_keep_names();
    pub fn altair_took_names();
    pub fn altair_is_whole(text: *const c_char, len: usize) -> bool;
    pub fn altair_each_own_variable(each: NameHook, context: *mut c_void);
    pub fn altair_each_included(from: usize, each: NameHook, context: *mut c_void) -> usize;
    pub fn altair_forget_refusals();
    pub fn altair_write(text: *const c_char, len: usize);
    pub fn altair_may_use_memory(bytes: *mut usize) -> bool;

    pub fn altair_on_first_compile(entry: extern "C" fn());
    pub fn altair_begin();
    pub fn altair_on_fatal(hook: FatalHook);
    pub fn altair_recover();
    pub fn altair_on_exit(hook: extern "C" fn(c_int));
    pub fn altair_require(path: *const c_char, len: usize, result: *mut zval);
    pub fn altair_run_own(
        code: *const c_char,
        len: usize,
        root: *const c_char,
        root_len: usize,
        caches: *const c_char,
        caches_len: usize,
        result: *mut zval,
    );
    pub fn altair_keep_link(path: *const c_char, len: usize);
    pub fn altair_own_directory(path: *const c_char, len: usize);
    pub fn altair_each_variable(
        seen: unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize),
        context: *mut c_void,
    );
    pub fn altair_compile_snippet(
        code: *const c_char,
        len: usize,
        missing: Option<MissingClassHook>,
        context: *mut c_void,
        imports: *const RawImport,
        count: usize,
    ) -> *mut OpArray;
    pub fn altair_class_exists(name: *const c_char, len: usize) -> bool;
    pub fn altair_throw_error(message: *const c_char, len: usize, line: u32);
    pub fn altair_each_object(
        class_name: *const c_char,
        each: extern "C" fn(*mut c_void, *mut zend_object),
        context: *mut c_void,
    );
    pub fn altair_set_variable(name: *const c_char, len: usize, value: *mut zval);
    pub fn altair_run_snippet(code: *mut OpArray, result: *mut zval) -> bool;
    pub fn altair_release_scope();
    pub fn altair_know_container();
    pub fn altair_set_container(container: *mut zval);
    pub fn altair_end_boot();
    pub fn altair_call_shutdown_functions();
    pub fn altair_call_destructors();
    pub fn altair_flush_output();
    pub fn altair_exit_status() -> i64;
    pub fn altair_watch_seeds();
    pub fn altair_enter(root: *const c_char) -> bool;
    pub fn altair_settle();
    pub fn altair_freshen() -> bool;
    pub fn altair_refuse(name: *const c_char, len: usize, snippet_only: bool, lift: *const c_char);
    pub fn altair_refuse_everywhere(root: *const c_char, len: usize);
    pub fn altair_watch_databases(
        mode: c_int,
        keeps_sqlite: bool,
        name: *const c_char,
        look: LookHook,
        authorize: AuthorizeHook,
    );
    pub fn altair_record_queries(recorder: *const RawRecorder);
    pub fn altair_count_changes();
    pub fn altair_on_refusal(refused: RefusedHook, missed: MissedHook);
    pub fn altair_name_ways(way: WayHook);
    pub fn altair_note_sought();
    pub fn altair_next_sought() -> *const c_char;
    pub fn altair_forget_sought();

    pub fn altair_closure_types(closure: *const zend_object, argument: *mut u32) -> c_int;
    pub fn altair_closure_instructions(closure: *const zend_object, line: *mut u32) -> c_int;
    pub fn altair_closure_origin_of(closure: *const zend_object, origin: *mut RawClosureOrigin);
    pub fn altair_closure_pin(closure: *const zend_object) -> *mut c_void;
    pub fn altair_closure_unpin(pinned: *mut c_void);
    pub fn altair_closure_form(
        closure: *const zend_object,
        form: BytesHook,
        unknown: BytesHook,
        context: *mut c_void,
    );
    pub fn altair_closure_survey(
        file: *const c_char,
        file_len: usize,
        source: *const c_char,
        source_len: usize,
        way: c_int,
        hidden: *const c_char,
        hidden_len: usize,
        each: ClosureHook,
        context: *mut c_void,
        error: *mut c_char,
        error_size: usize,
    ) -> bool;
    pub fn altair_closure_short_tags() -> bool;
    pub fn altair_closure_is_encoded() -> bool;
    pub fn altair_closure_opcache_is_on() -> bool;
    pub fn altair_closure_read_phar(
        path: *const c_char,
        max: usize,
        bytes: BytesHook,
        context: *mut c_void,
    ) -> c_int;
    pub fn altair_closure_compile(
        file: *const c_char,
        file_len: usize,
        source: *const c_char,
        source_len: usize,
        short_tags: bool,
        error: *mut c_char,
        error_size: usize,
    ) -> *mut c_void;
    pub fn altair_closure_make(
        unit: *mut c_void,
        number: u32,
        first_line: u32,
        last_line: u32,
        result: *mut zval,
    ) -> bool;
    pub fn altair_closure_startup();

    /// `Zend/zend_API.h`.
    pub fn zend_parse_parameter(
        flags: c_int,
        number: u32,
        arg: *mut zval,
        spec: *const c_char,
        ...
    ) -> c_int;
    /// `Zend/zend_ini.h`.
    pub fn zend_ini_string(name: *const c_char, len: usize, orig: c_int) -> *const c_char;

    /// `ext/spl/spl_exceptions.h`.
    pub static spl_ce_InvalidArgumentException: *mut ClassEntry;
    /// `ext/spl/spl_exceptions.h`.
    pub static spl_ce_RuntimeException: *mut ClassEntry;
    /// `ext/spl/spl_exceptions.h`.
    pub static spl_ce_LogicException: *mut ClassEntry;

    /// `main/php_ini.h`.
    pub static php_ini_opened_path: *const c_char;
    /// `main/php_ini.h`.
    pub static php_ini_scanned_path: *const c_char;
    /// `main/php_ini.h`.
    pub static php_ini_scanned_files: *const c_char;
}
