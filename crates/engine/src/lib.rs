//! One evaluation of a PHP snippet against an application, from request to result.
//!
//! [`EvalRequest`] → launch → child boots → snippet → report → [`EvalResult`]. Nothing here links
//! PHP: the child is a `php` process that loads the extension. This crate starts it, talks to it
//! over the [`channel`] and turns its ending into a result.

pub mod allowed;
pub mod answer;
pub mod arguments;
pub mod audit;
mod began;
pub mod blocked;
mod bounds;
pub mod by_value;
mod caller;
pub mod channel;
mod child_messages;
mod cold_start;
pub mod command;
mod concurrency;
mod confinement;
mod context;
mod delegation;
mod directories;
pub mod doctor;
mod dotenv;
pub mod encode;
pub mod environment;
mod error;
mod evaluation;
mod evaluator;
pub mod exit_codes;
pub mod file_changes;
mod freshness;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod guards;
pub mod hints;
mod ini_extensions;
pub mod ladder;
pub mod launch;
mod observer;
mod origin;
mod owner;
pub mod php_binary;
pub mod php_versions;
mod processors;
pub mod profile;
pub mod programs;
mod project_environment;
pub mod queries;
mod readable_paths;
mod real_writes;
pub mod redaction;
mod request;
mod result;
mod run_listener;
pub mod runtime;
pub mod services;
mod settings;
pub mod shell;
pub mod sql;
pub mod surroundings;
mod template_files;
mod unfit_php;
mod verdict;
mod warm;

pub use bounds::{GRACE, OUTPUT_LIMIT, STOP_SIGNAL_OFFSET, stop_signal};
pub use caller::{Caller, way};
pub use concurrency::Turns;
pub use delegation::{Delegated, Delegation, Delegator, Elsewhere, Loaded};
pub use error::EvalError;
pub use evaluation::Evaluation;
pub use evaluator::Evaluator;
pub use observer::{Observer, Silent};
pub use project_environment::services_of_project;
pub use queries::{MoreQueries, Query, RowChanges};
pub use readable_paths::beyond_system;
pub use request::{
    Bootstrap, Bounded, DEFAULT_BOOTSTRAP, DEFAULT_MEMORY_MB, DEFAULT_TIMEOUT_MS, Database, Depth,
    EvalRequest, MAX_DEPTH, MAX_ITEMS, MAX_MEMORY_MB, MAX_STRING, MAX_TIMEOUT_MS, MIN_DEPTH,
    MIN_ITEMS, MIN_MEMORY_MB, MIN_STRING, MIN_TIMEOUT_MS, MemoryLimit, ShownItems, ShownString,
    Target, Timeout,
};
pub use result::{
    Answered, Blocked, BootChanges, Diagnostics, EvalResult, FileChange, FileChanges, FileType,
    Location, Outcome, OutputTruncated, Phase, Timings, ToldResult,
};
pub use settings::IDLE;
pub use surroundings::{Environment, variable};
pub use warm::{Listed, Pool};

/// The name of this build. Processes that trust each other's messages are of the same one.
pub const BUILD: &str = env!("ALTAIR_BUILD");
