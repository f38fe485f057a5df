//! A process's lookups are recorded, whatever call it uses, and the recorder leaves nothing behind.
//!
//! Each recording runs in a forked process with one thread, as the harness has several.
// They name calls that only x86-64 has.
#![cfg(target_arch = "x86_64")]
#![allow(
    unsafe_code,
    unused_unsafe,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::undocumented_unsafe_blocks
)]

#[path = "record/calls.rs"]
mod calls;
#[path = "record/ending.rs"]
mod ending;
#[path = "record/paths.rs"]
mod paths;
#[path = "record/refused.rs"]
mod refused;
#[path = "record/signals.rs"]
mod signals;
#[path = "record/support.rs"]
mod support;
#[path = "record/trap.rs"]
mod trap;
