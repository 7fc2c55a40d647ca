//! Keys and their owners.

use crate::entropy::{Entropy, draw};
use crate::handshake::MAX_NAME;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use core::fmt;
use core::str::FromStr;
use snow::params::DHChoice;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The coordinates of all points of low order on Curve25519 and its twist, in all encodings of 255
/// bits (RFC 7748, section 6.1): 0, 1, two of order 8, −1, and 0 and 1 without reduction.
const LOW_ORDER: [[u8; 32]; 7] = [
    [
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00,
    ],
    [
        0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00,
    ],
    [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4,
        0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49,
        0xb8, 0x00,
    ],
    [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef,
        0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f,
        0x11, 0x57,
    ],
    [
        0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0x7f,
    ],
    [
        0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0x7f,
    ],
    [
        0xee, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0x7f,
    ],
];

/// Security of an association.
#[derive(Clone, Debug, Default)]
pub enum Security {
    /// None: checksums detect corruption only.
    #[default]
    None,
    /// Noise IKpsk2 and ChaCha20-Poly1305 with these keys.
    Noise(Arc<Keys>),
}

/// The private key of one side and the public keys of its peers.
#[derive(Clone, Debug)]
pub struct Keys {
    private: PrivateKey,
    known: Vec<Known>,
    /// Keys of which a terminal may only register another one.
    enrolment: Vec<Known>,
    /// Parts of a hub by the keys of their terminals; empty if there is one part.
    parts: Arc<BTreeMap<PublicKey, u32>>,
}

/// A peer with a known public key: at a hub a terminal, at a terminal the hub.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its name here, unique at a hub.
    pub name: String,
    /// Its public key.
    pub public: PublicKey,
    /// Additional preshared secret; all zero for none.
    pub preshared: PresharedKey,
}

impl Keys {
    /// Creates the keys of a side with the private key `private` and the peers `known`: one hub at
    /// a terminal, terminals at a hub.
    ///
    /// # Errors
    /// If a name or key occurs twice, or a key is invalid.
    pub fn new(private: PrivateKey, known: Vec<Known>) -> Result<Self, KeysError> {
        Self { private, known, enrolment: Vec::new(), parts: Arc::default() }.checked()
    }

    /// Adds the enrolment keys of a hub: a terminal with one of them can register a key for itself
    /// (ASC-6.8) and nothing else.
    ///
    /// # Errors
    /// As [`Keys::new`], also for names and keys that are already among the peers.
    pub fn with_enrolment(self, enrolment: Vec<Known>) -> Result<Self, KeysError> {
        Self { enrolment, ..self }.checked()
    }

    fn checked(self) -> Result<Self, KeysError> {
        let own = self.private.public();
        let (mut names, mut keys) = (BTreeSet::new(), BTreeSet::new());
        for other in self.known.iter().chain(&self.enrolment) {
            let name = other.name.clone();
            if name.len() > MAX_NAME {
                return Err(KeysError::LongName { name });
            }
            if !names.insert(&other.name) {
                return Err(KeysError::SameName { name });
            }
            if !keys.insert(other.public) {
                return Err(KeysError::SameKey { name });
            }
            if other.public == own {
                return Err(KeysError::OwnKey { name });
            }
            if other.public.is_weak() {
                return Err(KeysError::WeakKey { name });
            }
        }
        Ok(self)
    }

    /// Returns whether `key` can become the key of another terminal: it is valid, and neither this
    /// side's own nor that of a peer.
    pub(crate) fn is_free(&self, key: PublicKey) -> bool {
        let all = self.known.iter().chain(&self.enrolment);
        key != self.public()
            && !key.is_weak()
            && !self.parts.contains_key(&key)
            && !all.into_iter().any(|one| one.public == key)
    }

    /// Returns the keys of each of `count` parts of a hub: those of the terminals whose names
    /// `part_of` maps to it. Each part also finds the parts of the others.
    #[must_use]
    pub fn split(&self, count: u32, part_of: impl Fn(&str) -> u32) -> Vec<Self> {
        let all = self.known.iter().chain(&self.enrolment);
        let parts: BTreeMap<_, _> = all.map(|one| (one.public, part_of(&one.name))).collect();
        let parts = Arc::new(parts);
        let of = |all: &[Known], part| {
            let own = all.iter().filter(|one| parts.get(&one.public) == Some(&part));
            own.cloned().collect()
        };
        let keys = |part| Self {
            private: self.private.clone(),
            known: of(&self.known, part),
            enrolment: of(&self.enrolment, part),
            parts: Arc::clone(&parts),
        };
        (0..count).map(keys).collect()
    }

    /// Returns the part of the terminal with `key`, if it is not the part `own`.
    pub(crate) fn other_part(&self, key: PublicKey, own: u32) -> Option<u32> {
        self.parts.get(&key).copied().filter(|&part| part != own)
    }

    /// Returns this side's private key.
    pub(crate) fn private(&self) -> &PrivateKey {
        &self.private
    }

    /// Returns this side's public key.
    pub fn public(&self) -> PublicKey {
        self.private.public()
    }

    /// Returns the peers.
    pub fn known(&self) -> &[Known] {
        &self.known
    }

    /// Returns the enrolment keys.
    pub fn enrolment(&self) -> &[Known] {
        &self.enrolment
    }
}

/// Errors of a set of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeysError {
    /// The name is longer than [`MAX_NAME`] bytes.
    LongName {
        /// The name.
        name: String,
    },
    /// The name occurs twice.
    SameName {
        /// The name.
        name: String,
    },
    /// Another peer has the same key.
    SameKey {
        /// Name of the second peer.
        name: String,
    },
    /// The key is this side's own.
    OwnKey {
        /// Name of the peer.
        name: String,
    },
    /// The key is a point of low order: anyone could prove its possession.
    WeakKey {
        /// Name of the peer.
        name: String,
    },
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LongName { name } => {
                write!(f, "the name {name:?} is longer than {MAX_NAME} bytes")
            }
            Self::SameName { name } => write!(f, "the name {name:?} is there twice"),
            Self::SameKey { name } => write!(f, "the public key of {name:?} is there twice"),
            Self::OwnKey { name } => {
                write!(f, "the public key of {name:?} is this side's own")
            }
            Self::WeakKey { name } => {
                write!(f, "the public key of {name:?} is none that `key generate` makes")
            }
        }
    }
}

impl std::error::Error for KeysError {}

/// A public key of X25519. Its text is base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

/// A private key of X25519. Its text is base64; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey([u8; 32]);

/// A preshared secret of 32 octets. Its text is base64; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PresharedKey([u8; 32]);

impl PublicKey {
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns true if key agreements with it are not secret: a point of low order.
    ///
    /// A key agreement would show it too, at 0.1 ms for each terminal of a hub at each reload.
    fn is_weak(&self) -> bool {
        let mut coordinate = self.0;
        // RFC 7748, section 5: the most significant bit is ignored.
        coordinate[31] &= 0x7f;
        LOW_ORDER.contains(&coordinate)
    }
}

impl PrivateKey {
    /// Generates a key from `entropy`.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        let mut bytes: [u8; 32] = draw(entropy);
        // Clamped as X25519 does, so that a key has a unique text.
        bytes[0] &= 248;
        bytes[31] = bytes[31] & 127 | 64;
        Self(bytes)
    }

    /// Returns the corresponding public key.
    pub fn public(&self) -> PublicKey {
        let mut public = [0; 32];
        public.copy_from_slice(curve(&self.0).pubkey());
        PublicKey(public)
    }

    /// Returns the key as text, to be stored where only its owner can read it.
    pub fn to_text(&self) -> String {
        STANDARD.encode(self.0)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl PresharedKey {
    /// The key that means none.
    pub const NONE: Self = Self([0; 32]);

    /// Generates a key from `entropy`.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        Self(draw(entropy))
    }

    /// Returns the key as text, to be stored where only its owners can read it.
    pub fn to_text(&self) -> String {
        STANDARD.encode(self.0)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// X25519 with a private key.
fn curve(private: &[u8; 32]) -> Box<dyn snow::types::Dh> {
    let mut curve =
        resolve_curve(&DHChoice::Curve25519).expect("the crate is built with this curve");
    curve.set(private);
    curve
}

/// The curve of snow; in fuzzing one with a cache.
pub(crate) fn resolve_curve(choice: &DHChoice) -> Option<Box<dyn snow::types::Dh>> {
    #[cfg(all(fuzzing, feature = "fuzzing"))]
    return crate::fuzzing::curve::remembering(choice);
    #[cfg(not(all(fuzzing, feature = "fuzzing")))]
    snow::resolvers::CryptoResolver::resolve_dh(&snow::resolvers::DefaultResolver, choice)
}

/// A text that is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTextError;

impl fmt::Display for KeyTextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key is 44 characters of base64, as `bentpipe key` prints them")
    }
}

impl std::error::Error for KeyTextError {}

fn parse(text: &str) -> Result<[u8; 32], KeyTextError> {
    let bytes = STANDARD.decode(text.trim()).map_err(|_| KeyTextError)?;
    bytes.try_into().map_err(|_| KeyTextError)
}

impl FromStr for PublicKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        parse(text).map(Self)
    }
}

impl FromStr for PrivateKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        parse(text).map(Self)
    }
}

impl FromStr for PresharedKey {
    type Err = KeyTextError;

    fn from_str(text: &str) -> Result<Self, KeyTextError> {
        parse(text).map(Self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::RngStream;

    fn key(seed: u64) -> PrivateKey {
        PrivateKey::generate(&mut RngStream::new(seed, 0, "key"))
    }

    fn known(name: &str, public: PublicKey) -> Known {
        Known { name: name.into(), public, preshared: PresharedKey::NONE }
    }

    /// ASC-6.1, with the key pair of RFC 7748, 6.1.
    #[test]
    fn a_public_key_is_that_of_the_standard_and_round_trips_as_text() {
        let alice = PrivateKey([
            0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1, 0x72, 0x51, 0xb2,
            0x66, 0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0, 0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5,
            0x1d, 0xb9, 0x2c, 0x2a,
        ]);
        let public = alice.public();
        assert_eq!(public.0[..4], [0x85, 0x20, 0xf0, 0x09]);
        assert_eq!(public.0[28..], [0xaa, 0x9b, 0x4e, 0x6a]);
        assert_eq!(public.to_string().parse(), Ok(public));
        assert_eq!(alice.to_text().parse(), Ok(alice.clone()));
        assert_eq!(format!("{alice:?}"), "PrivateKey(..)");
        for wrong in ["", "abc", &"A".repeat(44), &"A".repeat(42), "=", "\u{fffd}"] {
            assert_eq!(wrong.parse::<PublicKey>(), Err(KeyTextError), "{wrong}");
        }
    }

    /// ASC-6.2
    #[test]
    fn names_and_keys_must_be_unique_and_valid() {
        let (own, one, two) = (key(1), key(2).public(), key(3).public());
        let refused = |known: Vec<Known>| Keys::new(own.clone(), known).unwrap_err();
        assert!(Keys::new(own.clone(), vec![known("a", one), known("b", two)]).is_ok());
        let name = || "b".to_owned();
        let same = refused(vec![known("b", one), known("b", two)]);
        assert_eq!(same, KeysError::SameName { name: name() });
        let same = refused(vec![known("a", one), known("b", one)]);
        assert_eq!(same, KeysError::SameKey { name: name() });
        assert_eq!(refused(vec![known("b", own.public())]), KeysError::OwnKey { name: name() });
        let error = refused(vec![known("b", PublicKey(LOW_ORDER[1]))]);
        assert_eq!(error, KeysError::WeakKey { name: name() });
        let long = "b".repeat(MAX_NAME + 1);
        assert!(matches!(refused(vec![known(&long, one)]), KeysError::LongName { .. }));
    }

    /// ASC-6.2
    #[test]
    fn keys_without_secret_agreements_are_weak() {
        let agreement = |public: &[u8; 32]| {
            let mut shared = [0; 32];
            let result = curve(&key(1).0).dh(public, &mut shared);
            result.map(|()| shared).unwrap_or_default()
        };
        for mut public in LOW_ORDER {
            for top in [0, 0x80] {
                public[31] = public[31] & 0x7f | top;
                assert_eq!(agreement(&public), [0; 32], "{public:x?}");
                assert!(PublicKey(public).is_weak(), "{public:x?}");
            }
        }
        // Points near these.
        for mut public in [LOW_ORDER[0], LOW_ORDER[2], LOW_ORDER[3], LOW_ORDER[4], LOW_ORDER[6]] {
            public[0] ^= 8;
            assert_ne!(agreement(&public), [0; 32], "{public:x?}");
            assert!(!PublicKey(public).is_weak(), "{public:x?}");
        }
    }
}
