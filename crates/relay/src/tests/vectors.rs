//! The test vectors in `docs/spec/vectors`: generated here, and compared with the files there.
//!
//! With `BENTPIPE_WRITE_VECTORS=1` in the environment the files are written instead.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;

mod association;
mod frames;
mod segments;

/// Returns octets as hexadecimal digits.
fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Returns the octets of hexadecimal digits; spaces are ignored.
fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|digit| *digit != b' ').collect();
    let octet = |pair: &[u8]| {
        let pair = core::str::from_utf8(pair).expect("digits");
        u8::from_str_radix(pair, 16).expect("a hexadecimal number")
    };
    digits.chunks(2).map(octet).collect()
}

/// Compares `vectors` with the file of that name, or writes it.
fn check(file: &str, about: &str, vectors: &[Value]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec/vectors");
    let path = folder.join(file);
    let made = json!({ "about": about, "vectors": vectors });
    if std::env::var_os("BENTPIPE_WRITE_VECTORS").is_some() {
        let text = serde_json::to_string_pretty(&made).expect("it is JSON") + "\n";
        fs::write(&path, text).expect("the folder is there");
        return;
    }
    let text = fs::read_to_string(&path).expect("the file is there");
    let found: Value = serde_json::from_str(&text).expect("the file is JSON");
    for (made, found) in made["vectors"]
        .as_array()
        .into_iter()
        .flatten()
        .zip(found["vectors"].as_array().expect("a list"))
    {
        assert_eq!(made, found, "{file}: another vector is made now");
    }
    assert_eq!(made, found, "{file}: other vectors are made now");
}
