"""`Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s` (The Noise Protocol Framework, revision 34).

The names of methods and variables are those of the framework's text, sections 5 and 7. Only
this pattern is implemented:

    <- s
    -> e, es, s, ss
    <- e, ee, se, psk

Primitives are those of the `cryptography` package and of hashlib.
"""

from __future__ import annotations

import hmac
from hashlib import blake2s

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from .wire import Malformed

PROTOCOL = b"Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s"
NO_PSK = bytes(32)
"""Stands for a preshared key where there is none (ASC-6.2)."""


def public_key(private: bytes) -> bytes:
    """Returns the X25519 public key of a private key of 32 octets."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def generate_key() -> bytes:
    """Returns a new X25519 private key."""
    return X25519PrivateKey.generate().private_bytes_raw()


def dh(private: bytes, public: bytes) -> bytes:
    """X25519; a public key of low order is no key (ASC-6.2)."""
    try:
        return X25519PrivateKey.from_private_bytes(private).exchange(
            X25519PublicKey.from_public_bytes(public))
    except ValueError as error:
        raise Malformed("public key of low order") from error


def seal(key: bytes, nonce: bytes, ad: bytes, plaintext: bytes) -> bytes:
    """ChaCha20-Poly1305 (RFC 8439): ciphertext and tag."""
    return ChaCha20Poly1305(key).encrypt(nonce, plaintext, ad)


def open_sealed(key: bytes, nonce: bytes, ad: bytes, ciphertext: bytes) -> bytes:
    """Reverses `seal`; raises `Malformed` if the tag is wrong."""
    try:
        return ChaCha20Poly1305(key).decrypt(nonce, ciphertext, ad)
    except InvalidTag as error:
        raise Malformed("wrong tag") from error


def counter_nonce(counter: int) -> bytes:
    """32 zero bits and the counter of 64 bits, least significant octet first (ASC-6.6)."""
    return bytes(4) + counter.to_bytes(8, "little")


def _hmac(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, blake2s).digest()


def _hkdf(chaining_key: bytes, material: bytes, outputs: int) -> list[bytes]:
    temp, out, last = _hmac(chaining_key, material), [], b""
    for number in range(1, outputs + 1):
        last = _hmac(temp, last + bytes([number]))
        out.append(last)
    return out


class SymmetricState:
    """Chaining key, hash and cipher key of a handshake (section 5.2 of the framework)."""

    def __init__(self, prologue: bytes, responder_static: bytes) -> None:
        # The name is longer than BLAKE2s's 32 octets of output, so it is hashed.
        self.h = blake2s(PROTOCOL).digest()
        self.ck = self.h
        self.k: bytes | None = None
        self.n = 0
        self.mix_hash(prologue)
        self.mix_hash(responder_static)

    def mix_hash(self, data: bytes) -> None:
        self.h = blake2s(self.h + data).digest()

    def mix_key(self, material: bytes) -> None:
        self.ck, self.k = _hkdf(self.ck, material, 2)
        self.n = 0

    def mix_key_and_hash(self, psk: bytes) -> None:
        self.ck, temp, self.k = _hkdf(self.ck, psk, 3)
        self.mix_hash(temp)
        self.n = 0

    def mix_ephemeral(self, public: bytes) -> None:
        """The token `e` in a pattern with a preshared key (section 9.2)."""
        self.mix_hash(public)
        self.mix_key(public)

    def encrypt_and_hash(self, plaintext: bytes) -> bytes:
        assert self.k is not None
        out = seal(self.k, counter_nonce(self.n), self.h, plaintext)
        self.n += 1
        self.mix_hash(out)
        return out

    def decrypt_and_hash(self, ciphertext: bytes) -> bytes:
        assert self.k is not None
        out = open_sealed(self.k, counter_nonce(self.n), self.h, ciphertext)
        self.n += 1
        self.mix_hash(ciphertext)
        return out

    def split(self) -> tuple[bytes, bytes]:
        """Returns the keys of the initiator's and of the responder's messages."""
        first, second = _hkdf(self.ck, b"", 2)
        return first, second


class Initiator:
    """The terminal's side of a handshake."""

    def __init__(self, prologue: bytes, static: bytes, responder_static: bytes, psk: bytes,
                 ephemeral: bytes | None = None) -> None:
        self.state = SymmetricState(prologue, responder_static)
        self.static, self.responder, self.psk = static, responder_static, psk
        self.ephemeral = ephemeral or generate_key()

    def write_first(self, payload: bytes) -> bytes:
        """Returns the first message: ephemeral, sealed static, sealed payload."""
        state, public = self.state, public_key(self.ephemeral)
        state.mix_ephemeral(public)
        state.mix_key(dh(self.ephemeral, self.responder))
        sealed_static = state.encrypt_and_hash(public_key(self.static))
        state.mix_key(dh(self.static, self.responder))
        return public + sealed_static + state.encrypt_and_hash(payload)

    def read_second(self, message: bytes) -> tuple[bytes, bytes, bytes]:
        """Returns the payload of the second message and the two keys of Split.

        Leaves the handshake as it was if the message is wrong, so that another may follow.
        """
        state = SymmetricState.__new__(SymmetricState)
        state.__dict__.update(self.state.__dict__)
        public = message[:32]
        state.mix_ephemeral(public)
        state.mix_key(dh(self.ephemeral, public))
        state.mix_key(dh(self.static, public))
        state.mix_key_and_hash(self.psk)
        payload = state.decrypt_and_hash(message[32:])
        return (payload, *state.split())


class Responder:
    """The hub's side of a handshake."""

    def __init__(self, prologue: bytes, static: bytes, ephemeral: bytes | None = None) -> None:
        self.state = SymmetricState(prologue, public_key(static))
        self.static = static
        self.ephemeral = ephemeral or generate_key()
        self.initiator = b""
        self.initiator_ephemeral = b""

    def read_first(self, message: bytes) -> bytes:
        """Returns the payload; `initiator` is the initiator's public key afterwards."""
        state, self.initiator_ephemeral = self.state, message[:32]
        state.mix_ephemeral(self.initiator_ephemeral)
        state.mix_key(dh(self.static, self.initiator_ephemeral))
        self.initiator = state.decrypt_and_hash(message[32:80])
        state.mix_key(dh(self.static, self.initiator))
        return state.decrypt_and_hash(message[80:])

    def write_second(self, payload: bytes, psk: bytes) -> tuple[bytes, bytes, bytes]:
        """Returns the second message and the two keys of Split."""
        state, public = self.state, public_key(self.ephemeral)
        state.mix_ephemeral(public)
        state.mix_key(dh(self.ephemeral, self.initiator_ephemeral))
        state.mix_key(dh(self.ephemeral, self.initiator))
        state.mix_key_and_hash(psk)
        message = public + state.encrypt_and_hash(payload)
        return (message, *state.split())
