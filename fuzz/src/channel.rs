//! Packets of a child that knows the secret: what is read fits its own bounds.
#![no_main]

use altair_engine::channel::{MessageReader, SECRET_BYTES, Secret, fits};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|packets: Vec<Vec<u8>>| {
    let Ok(secret) = Secret::generate() else {
        return;
    };
    let mut reader = MessageReader::new(secret.clone());
    for packet in packets {
        let mut whole = Vec::with_capacity(SECRET_BYTES + packet.len());
        whole.extend_from_slice(secret.bytes());
        whole.extend_from_slice(&packet);
        if let Some(message) = reader.push(&whole) {
            assert!(fits(&message));
        }
    }
});
