//! Tests of a client that ignores a question, on a clock that does not wait.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::sync::Arc;

use altair_engine::Evaluator;
use altair_engine::audit::Actor;
use rmcp::ServiceExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Permits;
use crate::calls::Calls;
use crate::question::{PATIENCE, Sealed};
use crate::server::Server;
use crate::sessions::Sessions;

#[tokio::test(start_paused = true)]
async fn no_answer_in_time_is_a_decline_and_has_progress_until_then() {
    let evaluator = Evaluator::new("/nowhere/php", Actor::Mcp);
    let root = PathBuf::from("/nowhere");
    let calls = Calls::new(evaluator, root, None, Vec::new(), CancellationToken::new());
    let questions = Some(Arc::new(Sealed::new().unwrap()));
    let server = Server::new(
        Arc::new(calls),
        Permits::default(),
        questions,
        Sessions::default(),
    );
    let (client, own) = duplex(1 << 16);
    tokio::spawn(async move { server.serve(own).await.unwrap().waiting().await });
    let (reader, mut writer) = tokio::io::split(client);
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"}
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "framework__eval",
            "arguments": {"snippet": "return 1;", "allow_writes": true, "timeout_ms": 100},
            "_meta": {"progressToken": 7}
        }}),
    ] {
        writer
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
    }
    let began = Instant::now();
    let mut lines = BufReader::new(reader).lines();
    let (mut progress, mut withdrawn) = (0, false);
    let answer = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        let said: Value = serde_json::from_str(&line).unwrap();
        match said["method"].as_str() {
            Some("notifications/progress") => progress += 1,
            Some("notifications/cancelled") => withdrawn = true,
            None if said["id"] == 2 => break said,
            _ => {}
        }
    };
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("Nothing was run. Nobody answered") && text.contains("within 120 s"),
        "{text}"
    );
    assert_eq!(began.elapsed().as_secs(), PATIENCE.as_secs());
    assert!(progress > 200 && withdrawn, "{progress}");
}
