#![allow(clippy::unwrap_used, clippy::expect_used)]

mod appending;
mod lines;

use std::fs;
use std::path::Path;

use altair_sandbox::Place;
use serde_json::Value;
use tempfile::TempDir;

use super::{Actor, AuditError, AuditedRun, Ending, path};
use crate::EvalRequest;

fn project() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn request(snippet: &[u8]) -> EvalRequest {
    let mut request = EvalRequest::new(snippet, "/srv/shop");
    request.unconfined = true;
    request.allow_writes = true;
    request
}

fn found(root: &Path) -> Place {
    Place::find(root).unwrap()
}

fn begin(root: &Path) -> Result<AuditedRun, AuditError> {
    AuditedRun::begin(
        &found(root),
        Actor::Script,
        None,
        &request(b"return 1;"),
        None,
    )
}

fn fine() -> Ending {
    Ending {
        ok: true,
        error: None,
        duration_ms: 12,
        exit_code: Some(0),
        timed_out: false,
    }
}

fn lines(root: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path(root)).unwrap();
    assert!(text.ends_with('\n'));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
