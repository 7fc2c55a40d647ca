#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| relay::fuzzing::headers(octets));
