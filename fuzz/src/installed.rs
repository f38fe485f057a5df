//! `installed.json` of Composer: any bytes are read.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    for path in altair_engine::fuzzing::linked(text) {
        assert!(path.as_os_str().len() <= text.len());
    }
});
