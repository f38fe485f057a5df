//! Runs any command under a policy.
//!
//! An [`ExecutionPolicy`] is plain data: what a command may read, write, connect to and use up. A
//! [`Driver`] enforces it. What confines and supervises a process is `altair-sandbox`'s; this crate
//! says what a policy means for each driver, captures output and describes how the command ended.

mod driver;
pub mod drivers;
mod error;
mod memory;
mod outcome;
mod policy;

pub use driver::Driver;
pub use error::CommandError;
pub use memory::{Memory, MemoryError};
pub use outcome::{Outcome, TimeoutReason, exit_codes};
pub use policy::{
    DEFAULT_OUTPUT_BYTES, DEFAULT_TIMEOUT_SECONDS, ExecutionPolicy, MAX_SECONDS, MIN_OUTPUT_BYTES,
    MIN_SECONDS,
};
