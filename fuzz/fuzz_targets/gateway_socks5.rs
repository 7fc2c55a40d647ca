#![no_main]

libfuzzer_sys::fuzz_target!(|octets: &[u8]| gateway::proxy::fuzz_socks5(octets));
