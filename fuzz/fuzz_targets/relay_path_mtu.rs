#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| relay::fuzzing::path_mtu(octets));
