//! Runs any command under a policy.
//!
//! An [`ExecutionPolicy`] is plain data: what a command may read, write, connect to and use up. A
//! [`Driver`] enforces it. What confines and supervises a process is `altair-sandbox`'s; this crate
//! says what a policy means for each driver, captures output and describes how the command ended.

pub mod binary;
mod capture;
mod command;
mod driver;
pub mod drivers;
mod environment;
mod error;
mod hidden;
mod layer;
mod level;
mod memory;
mod native;
mod outcome;
mod paths;
mod policy;
mod run;
mod sight;
mod start;
mod stdin;
mod surroundings;
pub mod work_dir;

pub use command::{Command, Prepared, Sandbox, Signals, Stdin, WorksIn};
pub use driver::Driver;
pub use environment::environment;
pub use error::CommandError;
pub use layer::PendingLayer;
pub use memory::{Memory, MemoryError};
pub use outcome::{Outcome, TimeoutReason, exit_codes};
pub use paths::{PolicyPaths, can_carry, writable_mounts};
pub use policy::{
    DEFAULT_OUTPUT_BYTES, DEFAULT_TIMEOUT_SECONDS, ExecutionPolicy, MAX_SECONDS, MIN_OUTPUT_BYTES,
    MIN_SECONDS, ProjectOf,
};
pub use stdin::check_input;
pub use work_dir::WorkDir;
