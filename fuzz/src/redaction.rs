//! A planted secret is in no text that was redacted, and a mask is never longer than it may be.
#![no_main]

use altair_engine::fuzzing::{mask, secrets};
use libfuzzer_sys::fuzz_target;

const SECRET: &str = "s3cr3t-0f-fuzzing";

fuzz_target!(|input: (&str, &str, bool, u8)| {
    let (before, after, is_php, max) = input;
    let text = format!("{before}{SECRET}{after}");
    if let Some(secrets) = secrets(b"APP_TOKEN", SECRET.as_bytes()) {
        assert!(!secrets.redacted(&text).contains(SECRET));
    }
    assert!(mask(&text, is_php, max.into()).len() <= max.into());
});
