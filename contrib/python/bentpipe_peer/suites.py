"""What protects sealed datagrams: the null suite's checksums (ASC-5), ChaCha20-Poly1305 and
AES-256-GCM (ASC-6.6); the MACs and cookies that protect a hub from floods (ASC-7); the replay window.
"""

from __future__ import annotations

import hmac
import itertools
import os
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Protocol

import xxhash
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from . import noise
from .datagram import (AES_256_GCM, HEADER, TAG, VERSION, VERSION_MESSAGE, Header, Kind, Suite,
                       handshake_header)
from .wire import Malformed, extend

SEED_HELLO = 0x62656E7470697065
"""Seed of the tag of a null suite's Hello: the letters `bentpipe` (ASC-5.1)."""
SEED_UNKNOWN = 0x756E6B6E6F776E21
SEED_VERSION = 0x76657273696F6E21
"""Seed of the tag of an Unknown in every suite: the letters `unknown!` (ASC-5.1)."""
REPLAY_WINDOW = 4032
MAX_COUNTER = 1 << 48


def checksum(data: bytes, seed: int) -> bytes:
    """A tag of the null suite: XXH3 of 128 bits in its canonical order, big-endian (ASC-5.1)."""
    return xxhash.xxh3_128_digest(data, seed)


def derived_seed(label: bytes, terminal_ephemeral: bytes, hub_ephemeral: bytes) -> int:
    """Seed of Welcomes (`w`), and of sealed datagrams in either direction (`u`, `d`)."""
    return xxhash.xxh3_64_intdigest(label + terminal_ephemeral + hub_ephemeral, 0)


def with_tag(data: bytes, seed: int) -> bytes:
    """Appends the null suite's tag."""
    return data + checksum(data, seed)


def without_tag(datagram: bytes, seed: int) -> bytes:
    """Returns what precedes the null suite's tag; raises `Malformed` if the tag is wrong."""
    data, tag = datagram[:-TAG], datagram[-TAG:]
    if checksum(data, seed) != tag:
        raise Malformed("wrong tag")
    return data


class Cipher(Protocol):
    """Seals and opens in one direction."""

    def seal(self, header: bytes, counter: int, payload: bytes) -> bytes:
        """Returns the datagram."""

    def open(self, datagram: bytes, counter: int) -> bytes:
        """Returns the payload; raises `Malformed` if the tag is wrong."""


@dataclass(frozen=True)
class NullCipher:
    """Payloads in the clear, with a checksum whose seed depends on the counter (ASC-5.1)."""

    seed: int

    def _seed(self, counter: int) -> int:
        return self.seed ^ (counter >> 32 | (counter & 0xFFFF_FFFF) << 32)

    def seal(self, header: bytes, counter: int, payload: bytes) -> bytes:
        return with_tag(header + payload, self._seed(counter))

    def open(self, datagram: bytes, counter: int) -> bytes:
        return without_tag(datagram, self._seed(counter))[HEADER:]


@dataclass(frozen=True)
class NoiseCipher:
    """ChaCha20-Poly1305 with the header as associated data (ASC-6.6)."""

    key: bytes

    def seal(self, header: bytes, counter: int, payload: bytes) -> bytes:
        return header + noise.seal(self.key, noise.counter_nonce(counter), header, payload)

    def open(self, datagram: bytes, counter: int) -> bytes:
        header = datagram[:HEADER]
        return noise.open_sealed(self.key, noise.counter_nonce(counter), header, datagram[HEADER:])


@dataclass(frozen=True)
class AesCipher:
    """AES-256-GCM with the header as associated data, where both sides have it (ASC-6.6)."""

    key: bytes

    @staticmethod
    def _nonce(counter: int) -> bytes:
        return bytes(4) + counter.to_bytes(8, "big")

    def seal(self, header: bytes, counter: int, payload: bytes) -> bytes:
        return header + AESGCM(self.key).encrypt(self._nonce(counter), payload, header)

    def open(self, datagram: bytes, counter: int) -> bytes:
        header, sealed = datagram[:HEADER], datagram[HEADER:]
        try:
            return AESGCM(self.key).decrypt(self._nonce(counter), sealed, header)
        except InvalidTag as error:
            raise Malformed("wrong tag") from error


def noise_cipher(key: bytes, own: int, peer: int) -> Cipher:
    """The cipher of two sides that have announced these capabilities."""
    return AesCipher(key) if own & peer & AES_256_GCM else NoiseCipher(key)


@dataclass
class KeyPair:
    """The keys of both directions with their counters: what one handshake agrees on."""

    own_index: int
    peer_index: int
    sending: Cipher
    receiving: Cipher
    created: float
    next_counter: int = 0
    highest: int = -1
    opened: int = -1
    """Counter of the datagram that was opened last."""
    number: int = field(default_factory=itertools.count().__next__)
    """Later keys have a higher number."""
    _seen: int = field(default=0, repr=False)
    """Bit n is set when the counter `highest - n` was accepted."""

    @property
    def order(self) -> tuple[int, int]:
        """The place of the datagram that was opened last among those of the peer."""
        return self.number, self.opened

    def seal(self, kind: Kind, payload: bytes) -> bytes:
        """Seals a payload under the next counter (ASC-3.1)."""
        counter = self.next_counter
        if counter >= MAX_COUNTER:
            raise OverflowError("counter used up (ASC-3.4)")
        self.next_counter += 1
        header = Header(kind, self.peer_index, counter & 0xFFFF_FFFF).encode()
        return self.sending.seal(header, counter, payload)

    def open(self, header: Header, datagram: bytes) -> tuple[bytes, bool]:
        """Returns the payload, and whether its counter is the highest so far (ASC-3.2, 3.3)."""
        counter = extend(header.counter, 32, self.highest + 1)
        behind = self.highest - counter
        if counter >= MAX_COUNTER or behind >= REPLAY_WINDOW:
            raise Malformed("counter outside the window")
        if behind >= 0 and self._seen >> behind & 1:
            raise Malformed("replay")
        payload = self.receiving.open(datagram, counter)
        self.opened = counter
        if behind >= 0:
            self._seen |= 1 << behind
            return payload, False
        self._seen = (self._seen << -behind | 1) & (1 << REPLAY_WINDOW) - 1
        self.highest = counter
        return payload, True


def version(datagram: bytes, lowest: int, highest: int) -> bytes | None:
    """Returns the Version that answers a datagram, if one may be sent (ASC-1.5)."""
    if len(datagram) < VERSION_MESSAGE or datagram[0] >> 4 == 0:
        return None
    return with_tag(b"\0" + datagram[1:8] + bytes([lowest, highest]), SEED_VERSION)


def read_version(datagram: bytes, sent: bytes) -> tuple[int, int]:
    """Returns the versions that a Version names; raises `Malformed` if it is not for `sent`."""
    if len(datagram) != VERSION_MESSAGE or datagram[0] != 0:
        raise Malformed("no Version")
    body = without_tag(datagram, SEED_VERSION)
    if body[1:8] != sent[1:8] or body[8] <= VERSION <= body[9]:
        raise Malformed("a Version that answers nothing")
    return body[8], body[9]


def unknown(datagram: bytes) -> bytes:
    """Returns the Unknown that answers a sealed datagram (ASC-4.1)."""
    header = Header.decode(datagram)
    return with_tag(Header(Kind.UNKNOWN, header.index, header.counter).encode(), SEED_UNKNOWN)


def _keyed(key: bytes, data: bytes) -> bytes:
    return blake2s(data, key=key, digest_size=16).digest()


def first_mac(hub_public: bytes, preceding: bytes) -> bytes:
    """The first MAC of a Hello, over its first 144 octets (ASC-7.1)."""
    return _keyed(blake2s(b"bentpipe mac" + hub_public).digest(), preceding)


def second_mac(cookie: bytes | None, preceding: bytes) -> bytes:
    """The second MAC of a Hello, over its first 160 octets; zero without a cookie (ASC-7.3)."""
    return bytes(16) if cookie is None else _keyed(cookie, preceding)


def make_cookie(secret: bytes, address: bytes, port: int) -> bytes:
    """The cookie of an address under the hub's secret (ASC-7.2)."""
    return _keyed(secret, address + port.to_bytes(2, "big"))


def seal_cookie(hub_public: bytes, index: int, mac: bytes, cookie: bytes,
                nonce: bytes | None = None) -> bytes:
    """Returns the Cookie that answers a Hello with that index and first MAC (ASC-7.4)."""
    header = handshake_header(Kind.COOKIE, index, Suite.NOISE)
    nonce = nonce or os.urandom(12)
    return header + nonce + noise.seal(_cookie_key(hub_public), nonce, header + mac, cookie)


def open_cookie(hub_public: bytes, mac: bytes, datagram: bytes) -> bytes:
    """Returns the cookie in a Cookie that answers a Hello with that first MAC (ASC-7.4)."""
    if len(datagram) != 52:
        raise Malformed("a Cookie has 52 octets")
    return noise.open_sealed(_cookie_key(hub_public), datagram[8:20], datagram[:8] + mac,
                             datagram[20:])


def _cookie_key(hub_public: bytes) -> bytes:
    return blake2s(b"bentpipe cookie" + hub_public).digest()


def same(a: bytes, b: bytes) -> bool:
    """Compares two MACs in constant time."""
    return hmac.compare_digest(a, b)
