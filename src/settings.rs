//! What the ini settings mean. Who administers this PHP decides about those that confine; an application
//! may make them stricter for itself, and not take anything back.

use std::ffi::{CStr, OsStr};
use std::time::Duration;

use altair_engine::guards::{Guard, Selection, UnsafeRuns};
use altair_engine::programs::{Because, Programs};
use altair_engine::{EvalError, IDLE};
use altair_pool::Setting;
use ext_php_rs::flags::IniEntryPermission;
use ext_php_rs::zend::{IniEntryDef, IniEntryDefs};

use crate::child::CHANNEL_INI;
use crate::started_with;
use crate::zend::host::starts_programs;
use crate::zend::params::{configured, ini};

const WARM: &CStr = c"altair_eval.warm";
const IDLE_SECONDS: &CStr = c"altair_eval.idle";
const POOL: &CStr = c"altair_eval.pool";
const PROGRAMS: &CStr = c"altair_eval.programs";
const REQUIRE: &CStr = c"altair_eval.require";
const OMIT: &CStr = c"altair_eval.omit";
const UNSAFE: &CStr = c"altair_eval.unsafe";

/// The settings, and who may change them.
static INI: IniEntryDefs<9> = IniEntryDefs::new([
    // Whether an `Evaluator` keeps booted templates, unless its constructor decides. The application's
    // own affair.
    IniEntryDef::new(WARM, c"1", IniEntryPermission::All),
    // Seconds without a request after which a template ends. The application's own affair.
    IniEntryDef::new(IDLE_SECONDS, c"300", IniEntryPermission::All),
    // Which pool is asked first: `auto`, `off`, or the path of the program that starts one. It names a
    // program.
    IniEntryDef::new(POOL, c"auto", IniEntryPermission::System),
    // Which programs may be started: `auto`, `confined` or `all` (`Programs`).
    IniEntryDef::new(PROGRAMS, c"auto", IniEntryPermission::System),
    // Guards that a run requires, by name, separated by commas. An application adds to them.
    IniEntryDef::new(REQUIRE, c"", IniEntryPermission::All),
    // Guards that are omitted, by name, separated by commas: to test one guard at a time.
    IniEntryDef::new(OMIT, c"", IniEntryPermission::System),
    // Whether runs may be unsafe. An application turns it off.
    IniEntryDef::new(UNSAFE, c"1", IniEntryPermission::All),
    // Set by a host that starts this process as a child: the descriptor of the channel.
    IniEntryDef::new(CHANNEL_INI, c"", IniEntryPermission::System),
    IniEntryDef::end(),
]);

/// Registers them.
pub fn register(module: i32) {
    IniEntryDef::register(INI.as_slice(), module);
}

/// Whether an `Evaluator` keeps templates.
pub fn warm() -> bool {
    is_on(&ini(WARM))
}

/// How long a template waits for a request: a whole number of seconds, at least one.
pub fn idle() -> Duration {
    let seconds = ini(IDLE_SECONDS).trim().parse().ok();
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds.map_or(IDLE, Duration::from_secs)
}

/// Which pool is asked.
pub fn pool() -> Setting {
    Setting::named(OsStr::new(&ini(POOL)), &started_with::environment())
}

/// Whether runs may be unsafe.
pub fn unsafe_runs() -> UnsafeRuns {
    let is_confined = programs() != Programs::All;
    match (is_on(&configured(UNSAFE)), is_on(&ini(UNSAFE))) {
        (false, _) => UnsafeRuns::Never,
        (true, false) => UnsafeRuns::Refused,
        (true, true) if is_confined => UnsafeRuns::Refused,
        (true, true) => UnsafeRuns::May,
    }
}

/// Which programs may be started now: a pool of php-fpm disables functions after the module has started.
pub fn programs() -> Programs {
    match ini(PROGRAMS).trim() {
        "all" => Programs::All,
        "auto" if starts_programs() => Programs::All,
        "auto" => Programs::Confined(Because::OfProcOpen),
        "confined" => Programs::Confined(Because::OfSetting),
        _ => Programs::Confined(Because::OfUnknownValue),
    }
}

/// What the settings say of guards: which they require and omit, and whether runs may lift them all.
///
/// # Errors
///
/// A setting names an unknown guard.
pub fn selection() -> Result<Selection, EvalError> {
    let selection = Selection::new(guards(&configured(REQUIRE))?, guards(&ini(OMIT))?);
    Ok(selection
        .with_more_required(guards(&ini(REQUIRE))?)
        .with_unsafe_runs(unsafe_runs()))
}

/// The guards that a list names.
fn guards(list: &str) -> Result<Vec<Guard>, EvalError> {
    let names = list.split([',', ' ']).filter(|name| !name.is_empty());
    names.map(str::parse).collect()
}

fn is_on(value: &str) -> bool {
    !matches!(
        value.to_ascii_lowercase().as_str(),
        "" | "0" | "off" | "no" | "false"
    )
}
