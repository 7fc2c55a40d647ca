//! Coded halves that a script makes or damages.

use super::{Coder, Decoder, Encoder, MAX_CHUNK, MAX_MEMORY, decoder::Damaged};

/// Compresses `script` in writes of changing sizes, decodes the result, whole and with an octet
/// changed, and decodes `script` itself as a coded half.
///
/// # Panics
/// Panics if the result differs from what was compressed, or if memory leaves its bounds.
pub fn coding(script: &[u8]) {
    let coder = Coder::default();
    let mut wire = Vec::new();
    let plain = script.repeat(3);
    if let Some(mut encoder) = Encoder::new(&coder) {
        let mut rest = &plain[..];
        while let Some(&first) = rest.first() {
            let len = rest.len().min(1 + usize::from(first) * 40).min(MAX_CHUNK);
            wire.extend_from_slice(&encoder.encode(&rest[..len]));
            rest = &rest[len..];
        }
    }
    assert_eq!(decode(&coder, &wire).as_ref(), Ok(&plain));
    if let [at, with, ..] = *script {
        let at = usize::from(at) % wire.len();
        wire[at] ^= with;
        let _ = decode(&coder, &wire);
    }
    let _ = decode(&coder, script);
    // A content of the script's octets, behind a head that fits it.
    let mut claimed = vec![super::VERSION];
    claimed.extend([(script.len() * 2 + 1) as u8 | 0x80, ((script.len() * 2) >> 7) as u8 & 0x7f]);
    let _ = decode(&coder, &[&claimed, script].concat());
}

/// Decodes a coded half that arrives in two parts at a time.
fn decode(coder: &Coder, wire: &[u8]) -> Result<Vec<u8>, Damaged> {
    let mut decoder = Decoder::new(coder);
    let (mut plain, mut rest) = (Vec::new(), wire);
    while !rest.is_empty() && !decoder.is_over() {
        let part = &rest[..rest.len().div_ceil(2)];
        let taken = decoder.take(part)?;
        assert!(taken > 0 && taken <= part.len());
        assert!(decoder.output().len() <= MAX_CHUNK);
        assert!(decoder.allocated() <= MAX_MEMORY + MAX_CHUNK + 16);
        plain.extend_from_slice(decoder.output());
        decoder.consume(decoder.output().len());
        rest = &rest[taken..];
    }
    Ok(plain)
}
