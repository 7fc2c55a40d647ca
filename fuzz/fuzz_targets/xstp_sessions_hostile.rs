#![no_main]

libfuzzer_sys::fuzz_target!(|script: &[u8]| xstp::fuzzing::sessions_on_a_hostile_network(script));
