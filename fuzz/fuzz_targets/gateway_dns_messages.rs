#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| gateway::fuzzing::dns_messages(octets));
