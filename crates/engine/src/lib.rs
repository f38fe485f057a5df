//! One evaluation of a PHP snippet against an application, from request to result.
//!
//! [`EvalRequest`] → launch → child boots → snippet → report → [`EvalResult`]. Nothing here links
//! PHP: the child is a `php` process that loads the extension, and this crate is what starts it,
//! talks to it over the [`channel`] and turns how it ended into a result.

mod asked;
pub mod audit;
mod blocked;
mod changes;
pub mod channel;
pub mod command;
mod confinement;
mod diagnosis;
mod directories;
pub mod doctor;
mod dotenv;
pub mod encode;
mod error;
mod evaluation;
mod freshness;
pub mod guards;
mod heard;
mod known;
mod ladder;
pub mod launch;
mod outcome;
pub mod php;
pub mod profile;
pub mod queries;
mod readable;
mod request;
mod result;
pub mod secrets;
pub mod services;
pub mod sql;
mod start;
mod turns;
mod warm;

pub use error::EvalError;
pub use evaluation::{
    Evaluator, GRACE, OUTPUT_LIMIT, Observer, Prepared, STOP_SIGNAL_OFFSET, Silent, stop_signal,
};
pub use queries::{MoreQueries, Query, RowChanges};
pub use request::{
    Bootstrap, DEFAULT_BOOTSTRAP, DEFAULT_MEMORY_MB, DEFAULT_TIMEOUT_MS, Database, EvalRequest,
    MAX_MEMORY_MB, MAX_TIMEOUT_MS, MIN_MEMORY_MB, MIN_TIMEOUT_MS, Target,
};
pub use result::{
    Blocked, Diagnostics, EvalResult, FileChange, FileChanges, Location, Outcome, OutputTruncated,
    Phase, Timings,
};
pub use turns::Turns;
pub use warm::{IDLE, Pool};
