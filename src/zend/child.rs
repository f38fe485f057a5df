//! The child's calls of the engine.

use std::ffi::{CStr, c_char, c_void};
use std::mem::ManuallyDrop;
use std::sync::OnceLock;

use ext_php_rs::ffi::zend_string;
use ext_php_rs::types::Zval;

use super::exception::Exception;
use super::params::ini;
use super::{Bailout, attempt, ffi, take_bailout, text};

/// A fatal error as the engine reports it.
pub struct FatalError {
    /// Whether memory ran out.
    pub out_of_memory: bool,
    /// The file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// PHP's message.
    pub message: String,
}

static FATAL_HOOK: OnceLock<fn(FatalError)> = OnceLock::new();

extern "C" fn on_fatal(
    out_of_memory: bool,
    file: *const zend_string,
    line: u32,
    message: *const zend_string,
) {
    // SAFETY: the engine's strings, valid for the time of the call.
    let (file, message) = unsafe { (text(file), text(message)) };
    if let Some(hook) = FATAL_HOOK.get() {
        hook(FatalError {
            out_of_memory,
            file,
            line,
            message,
        });
    }
}

/// The PHP that this was built for.
pub struct Build {
    /// `PHP_VERSION`.
    pub version: String,
    /// Whether it is thread-safe.
    pub zts: bool,
    /// Whether it is a debug build.
    pub debug: bool,
}

impl Build {
    /// Reads what the shim was compiled with.
    #[must_use]
    pub fn get() -> Self {
        // SAFETY: constants of the shim.
        unsafe {
            Self {
                version: CStr::from_ptr(ffi::altair_php_version())
                    .to_string_lossy()
                    .into_owned(),
                zts: ffi::altair_php_is_zts(),
                debug: ffi::altair_php_is_debug(),
            }
        }
    }
}

/// How PHP code was cut short.
pub enum Cut {
    /// By an exception.
    Threw(Exception),
    /// By `exit`, with this status.
    Exited(u8),
    /// By a bailout: a fatal error, for which its hook was called.
    Bailout,
}

/// Runs `call`, which may run PHP code.
///
/// # Errors
///
/// How it was cut short.
pub fn run<R>(call: impl FnOnce() -> R) -> Result<R, Cut> {
    // SAFETY: no code is running now. This bailout, or one in an earlier destructor, has left
    // pointers into unwound frames.
    let recover = || unsafe { ffi::altair_recover() };
    recover();
    take_bailout();
    let result = attempt(call);
    recover();
    match (result, Exception::take()) {
        (_, Some(exception)) if exception.is_exit() => Err(Cut::Exited(exit_status())),
        (Err(Bailout), _) => Err(Cut::Bailout),
        (Ok(_), Some(exception)) => Err(Cut::Threw(exception)),
        (Ok(value), None) => Ok(value),
    }
}

/// How code was cut short that was run outside of `run`.
#[must_use]
pub fn pending_cut() -> Cut {
    take_bailout();
    // SAFETY: as in `run`.
    unsafe { ffi::altair_recover() };
    match Exception::take() {
        Some(exception) if exception.is_exit() => Cut::Exited(exit_status()),
        Some(exception) => Cut::Threw(exception),
        None => Cut::Bailout,
    }
}

/// The status given to `exit`, as an exit status of the process.
fn exit_status() -> u8 {
    // SAFETY: reads a number.
    (unsafe { ffi::altair_exit_status() } & 0xff) as u8
}

/// Runs `call`, which writes a value.
pub(super) fn value(call: impl FnOnce(*mut Zval)) -> Result<Zval, Cut> {
    let mut value = ManuallyDrop::new(Zval::new());
    let target = &raw mut *value;
    run(|| call(target))?;
    Ok(ManuallyDrop::into_inner(value))
}

/// Calls `entry` instead of running the code of `php -r`.
pub fn take_over(entry: extern "C" fn()) {
    // SAFETY: called at the module's start, in the only thread.
    unsafe { ffi::altair_on_first_compile(entry) };
}

/// Prepares the engine to run code from outside of any code.
pub fn begin(fatal: fn(FatalError)) {
    let _ = FATAL_HOOK.set(fatal);
    // SAFETY: called once, before any other code runs.
    unsafe {
        ffi::altair_begin();
        ffi::altair_on_fatal(on_fatal);
    }
}

/// Calls `hook` when something ends the process by libc's `exit`.
pub fn on_exit(hook: extern "C" fn(i32)) {
    // SAFETY: registers a function.
    unsafe { ffi::altair_on_exit(hook) };
}

/// Requires a file in the global scope.
///
/// # Errors
///
/// How it was cut short.
pub fn require(path: &[u8]) -> Result<Zval, Cut> {
    // SAFETY: the path is copied.
    value(|result| unsafe { ffi::altair_require(path.as_ptr().cast(), path.len(), result) })
}

/// Runs PHP code of our own, for which `$root` is the project's directory and `$caches` that of
/// frameworks' caches, or null.
///
/// # Errors
///
/// How it was cut short.
pub fn run_own(code: &str, root: &[u8], caches: Option<&[u8]>) -> Result<Zval, Cut> {
    let caches_start = caches.map_or(std::ptr::null(), <[u8]>::as_ptr);
    // SAFETY: all are copied.
    value(|result| unsafe {
        ffi::altair_run_own(
            code.as_ptr().cast(),
            code.len(),
            root.as_ptr().cast(),
            root.len(),
            caches_start.cast(),
            caches.map_or(0, <[u8]>::len),
            result,
        );
    })
}

/// From here on `realpath()` keeps this path, which leads each fork to another directory. Call it at
/// most once.
pub fn keep_link(path: &[u8]) {
    // SAFETY: the path is copied.
    unsafe { ffi::altair_keep_link(path.as_ptr().cast(), path.len()) };
}

/// From here on `chmod()` succeeds below this directory also if the filter refuses it.
pub fn own_directory(path: &[u8]) {
    // SAFETY: the path is copied.
    unsafe { ffi::altair_own_directory(path.as_ptr().cast(), path.len()) };
}

/// A variable's name and value.
type Variable = (Vec<u8>, Vec<u8>);

/// The strings in `$_ENV` and `$_SERVER` for which `wanted` returns true.
pub fn superglobals(wanted: fn(&[u8], &[u8]) -> bool) -> Vec<Variable> {
    struct Found {
        wanted: fn(&[u8], &[u8]) -> bool,
        variables: Vec<Variable>,
    }
    unsafe extern "C" fn seen(
        context: *mut c_void,
        name: *const c_char,
        name_len: usize,
        value: *const c_char,
        value_len: usize,
    ) {
        // SAFETY: the engine's strings, valid for the time of the call, and the context passed
        // below.
        let (found, name, value) = unsafe {
            (
                &mut *context.cast::<Found>(),
                std::slice::from_raw_parts(name.cast::<u8>(), name_len),
                std::slice::from_raw_parts(value.cast::<u8>(), value_len),
            )
        };
        if (found.wanted)(name, value) {
            found.variables.push((name.to_vec(), value.to_vec()));
        }
    }
    let mut found = Found {
        wanted,
        variables: Vec::new(),
    };
    // SAFETY: calls back before it returns, and changes nothing.
    unsafe { ffi::altair_each_variable(seen, (&raw mut found).cast()) };
    found.variables
}

/// Releases a value, which runs destructors.
///
/// # Errors
///
/// How that was cut short.
pub fn release_value(value: Zval) -> Result<(), Cut> {
    let mut value = ManuallyDrop::new(value);
    // SAFETY: dropped once.
    run(|| unsafe { ManuallyDrop::drop(&mut value) })
}

/// Releases a value and the snippet's variables, which runs their destructors.
///
/// # Errors
///
/// How that was cut short.
pub fn release(value: Zval) -> Result<(), Cut> {
    let mut value = ManuallyDrop::new(value);
    run(|| {
        // SAFETY: dropped once.
        unsafe {
            ManuallyDrop::drop(&mut value);
            ffi::altair_release_scope();
        }
    })
}

/// The end of a run, in PHP's order. Stops at the first step that is cut short.
///
/// # Errors
///
/// How it was cut short.
pub fn shut_down() -> Result<(), Cut> {
    // SAFETY: each runs code of the application inside `run`.
    unsafe {
        run(|| ffi::altair_call_shutdown_functions())?;
        run(|| ffi::altair_call_destructors())?;
    }
    flush_output()
}

/// Ends the output buffers that code has left open, which writes what they hold.
///
/// # Errors
///
/// How a buffer's callback was cut short.
pub fn flush_output() -> Result<(), Cut> {
    // SAFETY: runs code of the application inside `run`.
    run(|| unsafe { ffi::altair_flush_output() })
}

/// `container()` is known by its name, as in a snippet.
pub fn know_container() {
    // SAFETY: adds a function to the engine's table.
    unsafe { ffi::altair_know_container() };
}

/// Sets what the snippet's `container()` returns.
pub fn set_container(container: &Zval) {
    // SAFETY: keeps a reference.
    unsafe { ffi::altair_set_container((&raw const *container).cast_mut()) };
}

/// Drops boot's shutdown functions and marks its objects, so that [`shut_down`] calls neither.
pub fn end_boot() {
    // SAFETY: called once, between boot and snippet.
    unsafe { ffi::altair_end_boot() };
}

/// Changes an ini setting, including system settings; `false` if the name is unknown.
pub fn set_ini(name: &str, value: &[u8]) -> bool {
    // SAFETY: both are copied.
    unsafe {
        ffi::altair_set_ini(
            name.as_ptr().cast(),
            name.len(),
            value.as_ptr().cast(),
            value.len(),
        )
    }
}

/// Sets `memory_limit`, which is none where PHP cannot count it; `false` if more than that is in use.
pub fn set_memory_limit(bytes: u64) -> bool {
    // SAFETY: changes a number of the memory manager.
    let is_set =
        unsafe { ffi::altair_set_memory_limit(usize::try_from(bytes).unwrap_or(usize::MAX)) };
    let text = match i64::try_from(bytes) {
        Err(_) => "-1".to_owned(),
        Ok(bytes) if bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        Ok(bytes) => bytes.to_string(),
    };
    if is_set && ini(c"memory_limit") != text {
        set_ini("memory_limit", text.as_bytes());
    }
    is_set
}

/// Returns free memory to the system.
pub fn trim_memory() {
    // SAFETY: frees only unused memory.
    unsafe { ffi::altair_trim_memory() };
}

/// Gives a fork its own pages of what its run will write to, while it waits for its task.
pub fn own_data() {
    // SAFETY: changes no contents of memory.
    unsafe { ffi::altair_own_data() };
}

/// PHP's real peak, in bytes. Usable in a signal handler.
#[must_use]
pub fn memory_peak() -> u64 {
    // SAFETY: reads a number.
    unsafe { ffi::altair_memory_peak() as u64 }
}

/// PHP's real use, in bytes.
#[must_use]
pub fn memory_usage() -> u64 {
    // SAFETY: reads a number.
    unsafe { ffi::altair_memory_usage() as u64 }
}

/// Returns whether a value is an object that can be used as a container.
#[must_use]
pub fn is_container(value: &Zval) -> bool {
    let Some(object) = value.object() else {
        return false;
    };
    let has = |name: &str| {
        let object = (&raw const *object).cast_mut();
        // SAFETY: the object is borrowed; this only reads its class.
        unsafe { ffi::altair_has_method(object, name.as_ptr().cast(), name.len()) }
    };
    has("get") && has("has")
}
