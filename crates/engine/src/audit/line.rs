//! One line of the log. Field names and their order are a public contract.

use std::sync::Arc;

use jiff::Zoned;
use nix::unistd::{User, geteuid};
use serde::Serialize;
use sha2::{Digest, Sha256};
use ulid::Ulid;

use super::{Actor, AuditError, Ending};
use crate::EvalRequest;
use crate::redaction::Secrets;
use crate::redaction::masking::{self, Grammar};

/// Maximum bytes of a snippet, and of an error, in a line.
pub(super) const TEXT_MAX: usize = 4096;

/// The common part of the two lines of a run, built once, before the run.
#[derive(Debug)]
pub(super) struct Announced {
    actor: Actor,
    user: String,
    client: Option<String>,
    extra: Extra,
    /// Known secrets, to be kept out of the lines.
    secrets: Option<Arc<Secrets>>,
}

/// `text` without the known secrets.
fn without(secrets: Option<&Secrets>, text: &str) -> String {
    secrets.map_or_else(|| text.to_owned(), |secrets| secrets.redacted(text))
}

/// Status of a line.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Partial,
    Ok,
    Fail,
}

#[derive(Serialize)]
struct Line<'a> {
    id: String,
    timestamp: String,
    actor: Actor,
    user: &'a str,
    client: Option<&'a str>,
    command: &'static str,
    kind: &'static str,
    status: Status,
    duration_ms: u64,
    error: Option<String>,
    extra: Extra,
}

#[derive(Debug, Clone, Serialize)]
struct Extra {
    run: String,
    r#unsafe: bool,
    allow_writes: bool,
    allow_network: bool,
    snippet_length: usize,
    snippet_sha256: String,
    snippet: String,
    exit_code: Option<i32>,
    timed_out: bool,
}

impl Announced {
    /// Collects what is known before the run. `run` links its lines.
    pub(super) fn new(
        run: Ulid,
        actor: Actor,
        client: Option<&str>,
        request: &EvalRequest,
        secrets: Option<Arc<Secrets>>,
    ) -> Self {
        // Exhaustive destructuring: a new field must be classified here.
        let EvalRequest {
            snippet,
            project_root: _, // the log's place
            timeout: _,
            memory_limit: _,
            allow_writes,
            allow_network,
            unconfined,
            // An unsafe run already has what these allow.
            bootstrap: _,
            services: _,
            readable_paths: _,
            redact: _,
            database: _,
            queries: _,
            // The snippet is what ran; its data may hold secrets.
            arguments: _,
            depth: _,
            max_items: _,
            max_string: _,
            diff: _,
            env: _,
        } = request;
        let text = without(secrets.as_deref(), &String::from_utf8_lossy(snippet));
        Self {
            actor,
            user: login_name(),
            client: client.map(str::to_owned),
            extra: Extra {
                run: run.to_string(),
                r#unsafe: *unconfined,
                allow_writes: *allow_writes,
                allow_network: *allow_network,
                snippet_length: snippet.len(),
                snippet_sha256: format!("{:x}", Sha256::digest(snippet)),
                snippet: masking::masked(&text, Grammar::Php, TEXT_MAX),
                exit_code: None,
                timed_out: false,
            },
            secrets,
        }
    }

    /// The line before the run.
    pub(super) fn partial(&self) -> Result<String, AuditError> {
        self.encode(Status::Partial, 0, None, self.extra.clone())
    }

    /// The line after the run. Its error is masked and cut like the snippet: PHP's own messages
    /// quote DSNs and arguments.
    pub(super) fn ended(&self, ending: &Ending) -> Result<String, AuditError> {
        let status = if ending.ok { Status::Ok } else { Status::Fail };
        let error = ending
            .stated_error()
            .map(|e| without(self.secrets.as_deref(), &e))
            .map(|e| masking::masked(&e, Grammar::Prose, TEXT_MAX));
        let extra = Extra {
            exit_code: ending.exit_code,
            timed_out: ending.timed_out,
            ..self.extra.clone()
        };
        self.encode(status, ending.duration_ms, error, extra)
    }

    fn encode(
        &self,
        status: Status,
        duration_ms: u64,
        error: Option<String>,
        extra: Extra,
    ) -> Result<String, AuditError> {
        Ok(serde_json::to_string(&Line {
            id: Ulid::generate().to_string(),
            timestamp: Zoned::now()
                .strftime("%Y-%m-%dT%H:%M:%S%.3f%:z")
                .to_string(),
            actor: self.actor,
            user: &self.user,
            client: self.client.as_deref(),
            command: "eval",
            kind: "eval",
            status,
            duration_ms,
            error,
            extra,
        })?)
    }
}

/// The login name of the effective user, or its number if no account database knows it.
fn login_name() -> String {
    let uid = geteuid();
    match User::from_uid(uid) {
        Ok(Some(user)) => user.name,
        Ok(None) | Err(_) => uid.to_string(),
    }
}
