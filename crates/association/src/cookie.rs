//! Protection from floods of forged Hellos: two MACs in each Hello, and cookies.
//!
//! ```text
//! Cookie
//!   0  header; index: the terminal's, counter field: suite, 0, 0, 0
//!   8  nonce, 12 bytes
//!  20  cookie, sealed, 16 bytes
//!  36  tag, 16 bytes
//! ```
//!
//! mac1 is keyed with the hub's public key: a sender without this key is rejected at the cost of a
//! hash. Under load a hub responds with a cookie, a MAC of the sender's address under a secret of
//! the hub, and processes only Hellos with a valid cookie, whose senders receive at their address.
//! The hub stores no state per sender.

use crate::channel::aead_key;
use crate::entropy::{Entropy, draw};
use crate::error::OpenError;
use crate::handshake::{SUITE_NOISE, array, check_len, check_suite, word};
use crate::keys::PublicKey;
use crate::wire::{HEADER_LEN, Header, Kind, TAG_LEN};
use blake2::digest::consts::U16;
use blake2::digest::{Digest, KeyInit, Mac};
use blake2::{Blake2s256, Blake2sMac};
use core::fmt;
use ring::aead::{Aad, LessSafeKey, Nonce};
use std::net::{IpAddr, SocketAddr};
use units::{Instant, Span};

/// Octets of both MACs.
pub(crate) const MACS_LEN: usize = 32;
/// Lifetime of a cookie at a terminal, and of a secret at a hub, which accepts the cookies of two
/// secrets.
pub(crate) const COOKIE_LIFETIME: Span = Span::from_secs(120);
/// Octets of a Cookie.
pub(crate) const COOKIE_LEN: usize = COOKIE_AT + 16 + TAG_LEN;

const NONCE_AT: usize = HEADER_LEN;
const COOKIE_AT: usize = NONCE_AT + 12;

pub(crate) type Cookie = [u8; 16];

/// The keys derived from a hub's public key, which prove its knowledge.
pub(crate) struct MacKeys {
    first: [u8; 32],
    cookie: LessSafeKey,
}

impl fmt::Debug for MacKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacKeys")
    }
}

impl MacKeys {
    pub(crate) fn new(hub: &PublicKey) -> Self {
        let cookie = aead_key(&derive(b"bentpipe cookie", hub));
        Self { first: derive(b"bentpipe mac", hub), cookie }
    }

    /// Writes mac1 of `hello`; mac2 remains zero, which means none.
    pub(crate) fn write_first(&self, hello: &mut [u8]) {
        let at = hello.len() - MACS_LEN;
        let mac = mac(&self.first, &hello[..at]).finalize().into_bytes();
        hello[at..at + 16].copy_from_slice(&mac);
        hello[at + 16..].fill(0);
    }

    pub(crate) fn first_fits(&self, hello: &[u8]) -> bool {
        let (body, macs) = hello.split_at(hello.len() - MACS_LEN);
        mac(&self.first, body).verify_slice(&macs[..16]).is_ok()
    }

    /// Writes the Cookie in response to `hello`.
    pub(crate) fn seal(&self, hello: &[u8], cookie: &Cookie, nonce: [u8; 12]) -> Vec<u8> {
        let mut out = vec![0; COOKIE_LEN];
        let index = u32::from_be_bytes([0, hello[1], hello[2], hello[3]]);
        Header { kind: Kind::Cookie, index, counter: word(SUITE_NOISE) }.encode(&mut out);
        out[NONCE_AT..COOKIE_AT].copy_from_slice(&nonce);
        out[COOKIE_AT..COOKIE_AT + 16].copy_from_slice(cookie);
        let aad = bound(&out, hello);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let (body, room) = out[COOKIE_AT..].split_at_mut(16);
        let tag = self
            .cookie
            .seal_in_place_separate_tag(nonce, Aad::from(aad), body)
            .expect("16 bytes are not too many");
        room.copy_from_slice(tag.as_ref());
        out
    }

    /// Returns the cookie in `datagram` if it is a response to `hello`.
    pub(crate) fn open(
        &self,
        header: Header,
        datagram: &[u8],
        hello: &[u8],
    ) -> Result<Cookie, OpenError> {
        check_len(datagram, COOKIE_LEN, "length of the cookie")?;
        check_suite(header, SUITE_NOISE)?;
        let nonce = Nonce::assume_unique_for_key(array(&datagram[NONCE_AT..]));
        let mut sealed: [u8; 32] = array(&datagram[COOKIE_AT..]);
        let aad = bound(datagram, hello);
        let opened = self.cookie.open_in_place(nonce, Aad::from(aad), &mut sealed);
        opened.map(|cookie| array(cookie)).map_err(|_| OpenError::Tag)
    }
}

/// The additional data of a cookie: its header, and mac1 of the Hello.
fn bound(cookie: &[u8], hello: &[u8]) -> [u8; HEADER_LEN + 16] {
    let mut out = [0; HEADER_LEN + 16];
    out[..HEADER_LEN].copy_from_slice(&cookie[..HEADER_LEN]);
    let at = hello.len() - MACS_LEN;
    out[HEADER_LEN..].copy_from_slice(&hello[at..at + 16]);
    out
}

/// Writes mac2 of `hello`, which proves that its sender has `cookie`.
pub(crate) fn write_second(cookie: &Cookie, hello: &mut [u8]) {
    let at = hello.len() - 16;
    let mac = mac(cookie, &hello[..at]).finalize().into_bytes();
    hello[at..].copy_from_slice(&mac);
}

fn second_fits(cookie: &Cookie, hello: &[u8]) -> bool {
    let (body, found) = hello.split_at(hello.len() - 16);
    mac(cookie, body).verify_slice(found).is_ok()
}

fn mac(key: &[u8], bytes: &[u8]) -> Blake2sMac<U16> {
    let mac: Blake2sMac<U16> = KeyInit::new_from_slice(key).expect("no longer than 32 bytes");
    mac.chain_update(bytes)
}

fn derive(label: &[u8], hub: &PublicKey) -> [u8; 32] {
    Blake2s256::new().chain_update(label).chain_update(hub.bytes()).finalize().into()
}

/// The hub's secrets, from which all cookies are derived.
#[derive(Debug)]
pub(crate) struct CookieSecrets {
    secret: [u8; 32],
    before: [u8; 32],
    made: Instant,
}

impl CookieSecrets {
    pub(crate) fn new(now: Instant, entropy: &mut dyn Entropy) -> Self {
        Self { secret: draw(entropy), before: draw(entropy), made: now }
    }

    /// Returns the cookie of `address`.
    pub(crate) fn cookie(
        &mut self,
        now: Instant,
        address: SocketAddr,
        entropy: &mut dyn Entropy,
    ) -> Cookie {
        self.renew(now, entropy);
        cookie_of(&self.secret, address)
    }

    /// Returns true if `hello` has a valid cookie of `address`.
    pub(crate) fn fits(
        &mut self,
        now: Instant,
        address: SocketAddr,
        hello: &[u8],
        entropy: &mut dyn Entropy,
    ) -> bool {
        // Most Hellos have none, which is detected without a computation.
        if hello[hello.len() - 16..] == [0; 16] {
            return false;
        }
        self.renew(now, entropy);
        [&self.secret, &self.before]
            .into_iter()
            .any(|secret| second_fits(&cookie_of(secret, address), hello))
    }

    fn renew(&mut self, now: Instant, entropy: &mut dyn Entropy) {
        let age = now.since(self.made);
        if age < COOKIE_LIFETIME {
            return;
        }
        self.before = if age < COOKIE_LIFETIME * 2 { self.secret } else { draw(entropy) };
        self.secret = draw(entropy);
        self.made = now;
    }
}

fn cookie_of(secret: &[u8; 32], address: SocketAddr) -> Cookie {
    let mac = match address.ip().to_canonical() {
        IpAddr::V4(ip) => mac(secret, &ip.octets()),
        IpAddr::V6(ip) => mac(secret, &ip.octets()),
    };
    mac.chain_update(address.port().to_be_bytes()).finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrivateKey;
    use units::RngStream;

    fn rng(name: &str) -> RngStream {
        RngStream::new(1, 0, name)
    }

    fn hub(name: &str) -> PublicKey {
        PrivateKey::generate(&mut rng(name)).public()
    }

    fn hello(keys: &MacKeys) -> Vec<u8> {
        let mut hello = vec![0; 60];
        Header { kind: Kind::Hello, index: 9, counter: word(SUITE_NOISE) }.encode(&mut hello);
        keys.write_first(&mut hello);
        hello
    }

    fn address(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Span::from_secs(secs)
    }

    /// ASC-7.1
    #[test]
    fn mac1_proves_knowledge_of_the_hubs_key() {
        let keys = MacKeys::new(&hub("a"));
        let whole = hello(&keys);
        assert!(keys.first_fits(&whole));
        assert!(!MacKeys::new(&hub("b")).first_fits(&whole));
        for at in 0..whole.len() - 16 {
            let mut damaged = whole.clone();
            damaged[at] ^= 4;
            assert!(!keys.first_fits(&damaged), "byte {at}");
        }
    }

    /// ASC-7.2, ASC-7.3
    #[test]
    fn a_cookie_is_valid_for_one_address_and_two_periods() {
        let (mut entropy, keys) = (rng("jar"), MacKeys::new(&hub("a")));
        let mut jar = CookieSecrets::new(at(0), &mut entropy);
        let mut hello = hello(&keys);
        assert!(!jar.fits(at(0), address(1), &hello, &mut entropy));
        let cookie = jar.cookie(at(100), address(1), &mut entropy);
        write_second(&cookie, &mut hello);
        assert!(jar.fits(at(100), address(1), &hello, &mut entropy));
        assert!(!jar.fits(at(100), address(2), &hello, &mut entropy));
        // An IPv4-mapped IPv6 address is the IPv4 address.
        let mapped = SocketAddr::new(IpAddr::V6("::ffff:192.0.2.1".parse().unwrap()), 1);
        assert!(jar.fits(at(100), mapped, &hello, &mut entropy));
        assert!(jar.fits(at(230), address(1), &hello, &mut entropy), "under the secret before");
        assert!(!jar.fits(at(360), address(1), &hello, &mut entropy), "too old");
        let cookie = jar.cookie(at(360), address(1), &mut entropy);
        write_second(&cookie, &mut hello);
        assert!(!jar.fits(at(700), address(1), &hello, &mut entropy), "after a long silence");
    }

    /// ASC-7.4
    #[test]
    fn a_cookie_is_bound_to_its_hello() {
        let keys = MacKeys::new(&hub("a"));
        let hello = hello(&keys);
        let datagram = keys.seal(&hello, &[7; 16], [1; 12]);
        assert_eq!(datagram.len(), 52);
        assert_eq!(datagram[..8], [0x15, 0, 0, 9, 1, 0, 0, 0]);
        let open =
            |datagram: &[u8], hello: &[u8]| keys.open(Header::decode(datagram)?, datagram, hello);
        assert_eq!(open(&datagram, &hello), Ok([7; 16]));
        for at in 0..datagram.len() {
            let mut damaged = datagram.clone();
            damaged[at] ^= 0x10;
            assert!(open(&damaged, &hello).is_err(), "byte {at}");
            assert!(open(&datagram[..at], &hello).is_err(), "{at} bytes");
        }
        let mut other = hello.clone();
        other[20] ^= 1;
        assert_eq!(open(&datagram, &other), Ok([7; 16]), "what counts is the MAC");
        keys.write_first(&mut other);
        assert_eq!(open(&datagram, &other), Err(OpenError::Tag));
    }
}
