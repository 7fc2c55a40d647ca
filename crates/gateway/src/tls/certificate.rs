//! A certificate for a hub that has none: signed by itself, with a new key at each start.
//!
//! Terminals do not verify it, because the association inside authenticates the hub, and TLS 1.3
//! hides it from observers. So it is never stored.

use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;

const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const PRIME256V1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];

/// Makes a key (ECDSA with P-256), and a certificate for it (RFC 5280 §4.1).
///
/// # Errors
/// If the system provides no random octets.
pub(super) fn self_signed() -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), Unspecified>
{
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random)?;
    let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random)?;
    let mut serial = [0; 8];
    random.fill(&mut serial)?;
    // A positive number without leading zeros.
    serial[0] = serial[0] & 0x3f | 0x40;

    let name = element(UTF8_STRING, &[b"localhost"]);
    let name = element(SEQUENCE, &[&element(OBJECT, &[COMMON_NAME]), &name]);
    let name = element(SEQUENCE, &[&element(SET, &[&name])]);
    let signature_algorithm = element(SEQUENCE, &[&element(OBJECT, &[ECDSA_WITH_SHA256])]);
    let key_algorithm =
        [element(OBJECT, &[EC_PUBLIC_KEY]), element(OBJECT, &[PRIME256V1])].concat();
    let contents = element(
        SEQUENCE,
        &[
            &element(VERSION, &[&element(INTEGER, &[&[2]])]),
            &element(INTEGER, &[&serial]),
            &signature_algorithm,
            &name,
            &element(
                SEQUENCE,
                &[
                    &element(UTC_TIME, &[b"240101000000Z"]),
                    // "No well-defined expiration date", RFC 5280 §4.1.2.5.
                    &element(GENERALIZED_TIME, &[b"99991231235959Z"]),
                ],
            ),
            &name,
            &element(
                SEQUENCE,
                &[
                    &element(SEQUENCE, &[&key_algorithm]),
                    &element(BIT_STRING, &[&[0], key.public_key().as_ref()]),
                ],
            ),
        ],
    );
    let signature = key.sign(&random, &contents)?;
    let signature = element(BIT_STRING, &[&[0], signature.as_ref()]);
    let certificate = element(SEQUENCE, &[&contents, &signature_algorithm, &signature]);
    let key = PrivatePkcs8KeyDer::from(pkcs8.as_ref().to_vec());
    Ok((certificate.into(), key.into()))
}

/// Returns an element of DER with up to 65,535 octets.
fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let contents = parts.concat();
    let [high, low] = (contents.len() as u16).to_be_bytes();
    let mut all = match contents.len() {
        0..=0x7f => vec![tag, low],
        0x80..=0xff => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    all.extend(contents);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_der() {
        assert_eq!(element(4, &[&[1, 2]]), [4, 2, 1, 2]);
        assert_eq!(element(4, &[&[0; 0x80]])[..3], [4, 0x81, 0x80]);
        assert_eq!(element(4, &[&[0; 300]])[..4], [4, 0x82, 1, 44]);
    }

    #[test]
    fn each_certificate_is_another() {
        assert_ne!(self_signed().unwrap().0, self_signed().unwrap().0);
    }
}
