//! The pool: a process that keeps templates for all hosts of a user with equal rights, and carries
//! out their evaluations.
//!
//! A host asks it over a Unix socket ([`Client`]). Both check first that neither gains rights by the
//! other; then the pool evaluates as the host would have done itself, and streams back what a run
//! writes and its result. Where there is no pool, or it does not serve this host, the host evaluates
//! by itself.

mod address;
mod asked;
mod challenge;
mod client;
mod connection;
mod host;
mod known;
mod log;
mod message;
mod named;
mod permit;
mod run;
mod server;
mod serving;
mod start;
mod title;

pub use asked::NoAnswer;
pub use client::{Client, Setting, VARIABLE};
pub use message::{State, TemplateState};
pub use server::{ServeError, serve};
pub use start::{SERVE, START, spawn};
