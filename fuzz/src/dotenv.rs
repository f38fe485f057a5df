//! `.env` files: any bytes are read, in bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    assert!(altair_engine::fuzzing::dotenv(text) <= text.len() + 1);
});
