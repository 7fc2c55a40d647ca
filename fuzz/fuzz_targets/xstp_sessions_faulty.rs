#![no_main]

libfuzzer_sys::fuzz_target!(|script: &[u8]| xstp::fuzzing::sessions_on_a_faulty_network(script));
