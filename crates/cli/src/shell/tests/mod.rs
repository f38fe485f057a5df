//! The shell on a session that is played: what is typed, and what is shown.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod batches;
mod completions;
mod entries;
mod histories;
mod play;
mod terminal;
mod typed;
mod words;
