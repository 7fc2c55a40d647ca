//! Noise IKpsk2: the handshake that authenticates both sides and agrees on keys.
//!
//! ```text
//!   IKpsk2:  <- s                       the terminal knows the hub's key
//!            -> e, es, s, ss            Hello
//!            <- e, ee, se, psk          Welcome
//! ```
//!
//! snow processes the messages; the two keys are extracted, because a cipher that is set up once
//! encrypts several times as fast. The Hello's header is the prologue, and thereby authenticated.

use crate::capabilities::Capabilities;
use crate::channel::{Key, KeyPair};
use crate::cookie::{MACS_LEN, MacKeys};
use crate::entropy::{Entropy, draw};
use crate::error::OpenError;
use crate::handshake::{
    EPHEMERAL_AT, From, HELLO_PAYLOAD, HELLO_PAYLOAD_AT, HelloPayload, REGISTERS, ReceivedHello,
    SUITE_NOISE, WELCOME_LEN, WELCOME_PAYLOAD, WelcomePayload, array, check_suite, word,
};
use crate::keys::{Keys, PresharedKey, PublicKey, resolve_curve};
use crate::wire::{HEADER_LEN, Header, Kind, TAG_LEN};
use core::fmt;
use snow::params::{CipherChoice, DHChoice, HashChoice, NoiseParams};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, HandshakeState};

const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
/// First part of the prologue, before the Hello's header.
const PROLOGUE: &[u8; 16] = b"bentpipe noise 1";

/// Offset of the MACs.
pub(crate) const MACS_AT: usize = HELLO_PAYLOAD_AT + HELLO_PAYLOAD + TAG_LEN;
/// Octets of a Hello.
pub(crate) const HELLO_LEN: usize = MACS_AT + MACS_LEN;

/// A Hello that was sent.
pub(crate) struct SentHello {
    state: HandshakeState,
    /// Capabilities that this side has announced.
    capabilities: Capabilities,
    /// The MACs that the hub requires.
    pub(crate) macs: MacKeys,
}

impl fmt::Debug for SentHello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SentHello")
    }
}

impl SentHello {
    /// Creates a Hello with the counter field, the announced capabilities and the payload of the
    /// third argument.
    ///
    /// # Panics
    /// If `keys` contain no hub.
    pub(crate) fn new(
        keys: &Keys,
        index: u32,
        (counter, capabilities, payload): (u32, Capabilities, [u8; HELLO_PAYLOAD]),
        entropy: &mut dyn Entropy,
    ) -> (Self, Vec<u8>) {
        let hub = keys.known().first().expect("a terminal's keys know its hub");
        let mut out = vec![0; HELLO_LEN];
        Header { kind: Kind::Hello, index, counter }.encode(&mut out);
        let mut state = builder(&prologue(&out), draw(entropy))
            .local_private_key(keys.private().bytes())
            .and_then(|builder| builder.remote_public_key(hub.public.bytes()))
            .and_then(|builder| builder.psk(2, hub.preshared.bytes()))
            .and_then(Builder::build_initiator)
            .expect("all that the pattern needs is there");
        let len = state
            .write_message(&payload, &mut out[EPHEMERAL_AT..MACS_AT])
            .expect("the room is what the message takes");
        debug_assert_eq!(EPHEMERAL_AT + len, MACS_AT);
        let macs = MacKeys::new(&hub.public);
        macs.write_first(&mut out);
        (Self { state, capabilities, macs }, out)
    }

    pub(crate) fn answered(
        &mut self,
        header: Header,
        datagram: &[u8],
    ) -> Result<(WelcomePayload, KeyPair), OpenError> {
        check_suite(header, SUITE_NOISE)?;
        let mut payload = [0; WELCOME_PAYLOAD];
        // An error does not change the state, so that a forged Welcome has no effect.
        self.state
            .read_message(&datagram[EPHEMERAL_AT..], &mut payload)
            .map_err(|_| OpenError::Tag)?;
        let payload = WelcomePayload::decode(&payload);
        let both = self.capabilities.and(payload.limits.capabilities);
        let (up, down) = self.state.dangerously_get_raw_split();
        let keys = KeyPair { send: Key::sealed(&up, both), receive: Key::sealed(&down, both) };
        Ok((payload, keys))
    }
}

/// State for the response to a Hello.
pub(crate) struct Answer {
    state: HandshakeState,
    /// Capabilities that the terminal has announced.
    capabilities: Capabilities,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}

/// Decodes a Hello with verified MACs: two key agreements on Curve25519.
pub(crate) fn hear(
    keys: &Keys,
    header: Header,
    datagram: &[u8],
    entropy: &mut dyn Entropy,
) -> Result<ReceivedHello, OpenError> {
    let mut state = builder(&prologue(datagram), draw(entropy))
        .local_private_key(keys.private().bytes())
        .and_then(Builder::build_responder)
        .expect("all that the pattern needs is there");
    let mut payload = [0; HELLO_PAYLOAD];
    state
        .read_message(&datagram[EPHEMERAL_AT..MACS_AT], &mut payload)
        .map_err(|_| OpenError::Tag)?;
    let key = state.get_remote_static().expect("the message has brought it");
    let key = PublicKey::new(array(key));
    let registers = (header.counter & REGISTERS != 0).then(|| PublicKey::new(array(&payload[8..])));
    let payload = HelloPayload::decode(header, &payload);
    let answer = Box::new(Answer { state, capabilities: payload.limits.capabilities });
    Ok(ReceivedHello { index: header.index, payload, from: From::Key { key, answer }, registers })
}

impl Answer {
    /// Returns the Welcome to the Hello of `index`, and the agreed keys.
    pub(crate) fn welcome(
        mut self,
        index: u32,
        preshared: &PresharedKey,
        payload: &WelcomePayload,
    ) -> (Vec<u8>, KeyPair) {
        let mut out = vec![0; WELCOME_LEN];
        Header { kind: Kind::Welcome, index, counter: word(SUITE_NOISE) }.encode(&mut out);
        let len = self
            .state
            .set_psk(2, preshared.bytes())
            .and_then(|()| self.state.write_message(&payload.encode(), &mut out[EPHEMERAL_AT..]))
            .expect("the room is what the message takes");
        debug_assert_eq!(EPHEMERAL_AT + len, WELCOME_LEN);
        let both = self.capabilities.and(payload.limits.capabilities);
        let (up, down) = self.state.dangerously_get_raw_split();
        (out, KeyPair { send: Key::sealed(&down, both), receive: Key::sealed(&up, both) })
    }
}

fn prologue(hello: &[u8]) -> [u8; 16 + HEADER_LEN] {
    let mut prologue = [0; 16 + HEADER_LEN];
    prologue[..16].copy_from_slice(PROLOGUE);
    prologue[16..].copy_from_slice(&hello[..HEADER_LEN]);
    prologue
}

fn builder(prologue: &[u8], ephemeral: [u8; 32]) -> Builder<'_> {
    let params: NoiseParams = PATTERN.parse().expect("a pattern that snow knows");
    Builder::with_resolver(params, Box::new(Resolver { ephemeral }))
        .prologue(prologue)
        .expect("it is set once")
}

/// The algorithms of snow with an ephemeral key that was generated outside.
struct Resolver {
    ephemeral: [u8; 32],
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(self.ephemeral))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        resolve_curve(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

/// The 32 octets that one handshake draws; a second draw fails instead of repeating them.
struct Once(Option<[u8; 32]>);

impl Random for Once {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), snow::Error> {
        match self.0.take() {
            Some(bytes) if dest.len() == bytes.len() => {
                dest.copy_from_slice(&bytes);
                Ok(())
            }
            Some(_) | None => Err(snow::Error::Rng),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::tests::limits;
    use crate::{Known, PrivateKey};
    use units::RngStream;

    fn keys(own: u64, other: u64, psk: PresharedKey) -> Keys {
        let key = |seed| PrivateKey::generate(&mut RngStream::new(seed, 0, "key"));
        let known = Known { name: "x".into(), public: key(other).public(), preshared: psk };
        Keys::new(key(own), vec![known]).expect("keys")
    }

    fn hello(keys: &Keys) -> (SentHello, Vec<u8>) {
        let payload =
            HelloPayload { timestamp: 5, continues: 0, is_beside: false, limits: limits() };
        let word = payload.word(SUITE_NOISE);
        let parts = (word, payload.limits.capabilities, payload.encode());
        SentHello::new(keys, 0x00ab_cdef, parts, &mut RngStream::new(3, 0, "e"))
    }

    fn heard(keys: &Keys, bytes: &[u8]) -> Result<ReceivedHello, OpenError> {
        let header = Header::decode(bytes)?;
        hear(keys, header, bytes, &mut RngStream::new(4, 0, "e"))
    }

    fn welcome(heard: ReceivedHello, psk: &PresharedKey) -> Vec<u8> {
        let payload = WelcomePayload { hub_index: 7, association: 1, latest: 2, limits: limits() };
        let From::Key { answer, .. } = heard.from else { panic!("a key") };
        answer.welcome(heard.index, psk, &payload).0
    }

    /// ASC-6.3, ASC-6.4
    #[test]
    fn both_sides_authenticate_and_sizes_match_the_specification() {
        let (terminal, hub) = (keys(1, 2, PresharedKey::NONE), keys(2, 1, PresharedKey::NONE));
        let (mut asked, bytes) = hello(&terminal);
        assert_eq!(bytes.len(), 176);
        assert_eq!(bytes[..8], [0x11, 0xab, 0xcd, 0xef, 1, 1, 0, 0]);
        // The terminal's key is not visible.
        let public = terminal.public();
        assert!(!bytes.windows(32).any(|window| window == public.bytes()));
        let heard = heard(&hub, &bytes).expect("understood");
        assert_eq!(heard.payload.timestamp, 5);
        assert!(matches!(&heard.from, From::Key { key, .. } if *key == public));
        let bytes = welcome(heard, &PresharedKey::NONE);
        assert_eq!(bytes.len(), 100);
        assert_eq!(bytes[..8], [0x12, 0xab, 0xcd, 0xef, 1, 0, 0, 0]);
        // A forged message before the real one has no effect.
        let mut forged = bytes.clone();
        forged[50] ^= 1;
        let header = Header::decode(&bytes).expect("header");
        assert_eq!(asked.answered(header, &forged).map(|_| ()), Err(OpenError::Tag));
        assert_eq!(asked.answered(header, &bytes).expect("the answer").0.hub_index, 7);
    }

    /// ASC-6.3
    #[test]
    fn another_hub_decodes_nothing_and_another_secret_gives_another_response() {
        let (terminal, hub) = (keys(1, 2, PresharedKey::NONE), keys(2, 1, PresharedKey::NONE));
        let (mut asked, bytes) = hello(&terminal);
        let other = keys(9, 1, PresharedKey::NONE);
        assert_eq!(heard(&other, &bytes).map(|_| ()), Err(OpenError::Tag));
        let psk = PresharedKey::generate(&mut RngStream::new(5, 0, "psk"));
        let wrong = welcome(heard(&hub, &bytes).expect("understood"), &psk);
        let header = Header::decode(&wrong).expect("header");
        assert_eq!(asked.answered(header, &wrong).map(|_| ()), Err(OpenError::Tag));
    }

    /// ASC-6.4: without the MACs, which `cookie` verifies.
    #[test]
    fn every_damaged_octet_is_detected() {
        let (terminal, hub) = (keys(1, 2, PresharedKey::NONE), keys(2, 1, PresharedKey::NONE));
        let (mut asked, whole) = hello(&terminal);
        for at in 0..MACS_AT {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x20;
            assert!(heard(&hub, &bytes).is_err(), "byte {at} of the Hello");
        }
        let whole = welcome(heard(&hub, &whole).expect("understood"), &PresharedKey::NONE);
        for at in (4..5).chain(8..whole.len()) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x20;
            let header = Header::decode(&bytes).expect("header");
            assert!(asked.answered(header, &bytes).is_err(), "byte {at} of the Welcome");
        }
    }
}
