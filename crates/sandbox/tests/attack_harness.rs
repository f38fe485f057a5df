//! The attack harness does not take an attack that never began for one that failed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::process::{Command, Stdio};

attacks![];

#[test]
fn the_harness_is_honest() {
    // An attacker whose guard could not be taken does not start its attack.
    let output = Command::new(std::env::current_exe().unwrap())
        .env("ALTAIR_ATTACK", "no such attack")
        .env("ALTAIR_ATTACK_GUARDS", "itself")
        .env("ALTAIR_ATTACK_ARGUMENT", "")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.status.success());
}
