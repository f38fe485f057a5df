//! The audit log: what was run without guards, by whom, and how it ended.
//!
//! Every unsafe run leaves two lines in `<root>/.altair/events.jsonl`: [`AuditedRun::begin`] writes
//! `partial` before the child starts, [`AuditedRun::end`] writes `ok` or `fail` when it has ended.
//! Both carry the same `extra.run`. Each line is a JSON object; `line.rs` has the fields.
//!
//! The log is evidence of what was asked, not a guard: an unsafe run can alter it afterwards.

mod append;
mod ending;
mod error;
mod line;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use altair_sandbox::Place;

use crate::EvalRequest;
use crate::redaction::Secrets;

pub use ending::Ending;
pub use error::AuditError;

/// The directory of the log, in the project root.
const DIRECTORY: &str = ".altair";
/// The log's name in [`DIRECTORY`].
const FILE: &str = "events.jsonl";

/// Where the log of the project at `root` is: `<root>/.altair/events.jsonl`.
#[must_use]
pub fn path(root: &Path) -> PathBuf {
    root.join(DIRECTORY).join(FILE)
}

/// The entry point that a run came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Actor {
    /// The command line.
    Cli,
    /// The MCP server.
    Mcp,
    /// PHP code that uses the API.
    Script,
}

/// One unsafe run that has been announced in the log.
///
/// If dropped without [`AuditedRun::end`] (a panic, an interrupted call), it writes a `fail` line
/// with the error `interrupted`.
#[derive(Debug)]
#[must_use = "dropping it records the run as interrupted: call `end` when the run has ended"]
pub struct AuditedRun {
    root: Place,
    announced: line::Announced,
    began: Instant,
    /// The process that announced the run. A fork of the host holds a copy of this value; dropping
    /// the copy must not report the run.
    process: u32,
    ended: bool,
}

impl AuditedRun {
    /// Announces a run: writes its `partial` line.
    ///
    /// `root` is the project root; `client` names the program behind an MCP session, if one is
    /// known. The snippet is logged up to 4096 bytes, with secrets masked: the known `secrets`, and
    /// what looks like one.
    ///
    /// # Errors
    ///
    /// [`AuditError`] if the line could not be written. The run must not start then.
    pub fn begin(
        root: &Place,
        actor: Actor,
        client: Option<&str>,
        request: &EvalRequest,
        secrets: Option<Arc<Secrets>>,
    ) -> Result<AuditedRun, AuditError> {
        let announced = line::Announced::new(Ulid::generate(), actor, client, request, secrets);
        append::append(root, &announced.partial()?)?;
        Ok(AuditedRun {
            root: root.clone(),
            announced,
            began: Instant::now(),
            process: std::process::id(),
            ended: false,
        })
    }

    /// Records how the run ended: writes its `ok` or `fail` line, and creates the log again if it
    /// has vanished.
    ///
    /// A failure without a stated error is recorded with its exit code or as `failed`.
    ///
    /// # Errors
    ///
    /// [`AuditError`] if the line could not be written. The run has happened regardless.
    pub fn end(mut self, ending: Ending) -> Result<(), AuditError> {
        self.ended = true;
        append::append(&self.root, &self.announced.ended(&ending)?)
    }
}

impl Drop for AuditedRun {
    fn drop(&mut self) {
        if self.ended || self.process != std::process::id() {
            return;
        }
        let elapsed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        // A drop cannot report an error; a `partial` line without its counterpart shows the
        // interruption too.
        if let Ok(text) = self.announced.ended(&Ending::interrupted(elapsed)) {
            let _ = append::append(&self.root, &text);
        }
    }
}
