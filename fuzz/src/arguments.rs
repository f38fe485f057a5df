//! Arguments of a call to the MCP tool: any JSON object is answered.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

fuzz_target!(|text: &str| {
    if let Ok(given) = serde_json::from_str::<Map<String, Value>>(text) {
        let _ = altair_mcp::fuzzing::arguments(given);
    }
});
