//! Values by value: any bytes are read, in bounded memory, and what is accepted writes back to the same bytes.
#![no_main]

use altair_engine::by_value::value::Builder;
use altair_engine::by_value::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u32, &[u8])| {
    let (most_memory, bytes) = input;
    let mut builder = Builder::default();
    let is_read = read(bytes, most_memory as usize, &mut builder).is_ok();
    assert!(builder.announced <= bytes.len());
    if is_read {
        let value = builder.take().expect("a value was read");
        assert_eq!(value.bytes().as_deref(), Ok(bytes));
    }
});
