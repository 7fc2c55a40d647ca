#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| gateway::fuzzing::tls_frames(octets));
