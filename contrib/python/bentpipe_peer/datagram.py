"""Layouts of the association's datagrams (ASC-1, ASC-2, ASC-4, ASC-7): no keys, no state."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from .wire import Malformed

VERSION = 1
HEADER = 8
TAG = 16
OVERHEAD = HEADER + TAG
"""Octets around a payload (ASC-1.2)."""


class UnknownVersion(Malformed):
    """A datagram of a version that is not understood (ASC-1.5)."""

    def __init__(self, version: int) -> None:
        super().__init__(f"version {version}")
        self.version = version


class Kind(IntEnum):
    """Kinds of datagrams (ASC-1.1)."""

    HELLO = 1
    WELCOME = 2
    DATA = 3
    UNKNOWN = 4
    COOKIE = 5
    PROBE = 6
    PROBE_ACK = 7


ORDERLY_END = 0x01
"""The capability to end sessions in order inside an association (ASC-2.10, RLY-10)."""
AES_256_GCM = 0x02
"""The capability to seal datagrams by AES-256-GCM (ASC-2.10, 6.6)."""
REPAIR = 0x04
"""The capability to receive repair symbols (ASC-2.10, XSTP-15). This side sends none."""
CAPABILITIES = ORDERLY_END | AES_256_GCM | REPAIR
"""All that this implementation has."""

VERSION_MESSAGE = 26
"""Octets of a Version (ASC-1.5)."""

SEALED = (Kind.DATA, Kind.PROBE, Kind.PROBE_ACK)


class Suite(IntEnum):
    """Suites: what protects a datagram. Both sides are configured to use the same (ASC-2.7)."""

    NULL = 0
    NOISE = 1


@dataclass(frozen=True)
class Header:
    """The first 8 octets of each datagram: version and kind, index, 32 bits of counter."""

    kind: Kind
    index: int
    counter: int

    def encode(self) -> bytes:
        return struct.pack("!II", (VERSION << 4 | self.kind) << 24 | self.index, self.counter)

    @staticmethod
    def decode(datagram: bytes) -> "Header":
        """Reads the header; a datagram of another version or kind is malformed (ASC-1.1)."""
        if len(datagram) < OVERHEAD:
            raise Malformed("shorter than 24 octets")
        first, counter = struct.unpack_from("!II", datagram)
        if first >> 28 != VERSION:
            raise UnknownVersion(first >> 28)
        kind = first >> 24 & 15
        if kind not in iter(Kind):
            raise Malformed("unknown kind")
        return Header(Kind(kind), first & 0xFF_FFFF, counter)


def handshake_header(kind: Kind, index: int, suite: Suite, capabilities: int = 0) -> bytes:
    """Returns the header of a Hello, Welcome or Cookie: the counter field starts with the suite.
    In a Hello the capabilities follow (ASC-2.10)."""
    return Header(kind, index, suite << 24 | capabilities << 16).encode()


@dataclass(frozen=True)
class Limits:
    """What a side announces in Hello and Welcome; the names follow ASC-2."""

    udp_payload: int
    streams: int
    stream_credit: int
    shared_credit: int
    receive_rate: int
    """Bits per second that the sender of these limits can receive; 0 if unknown."""
    capabilities: int = 0
    """Bits of ASC-2.10. They stand elsewhere in the message than the limits."""

    def encode(self) -> bytes:
        return struct.pack("!IIIIQ", self.udp_payload, self.streams, self.stream_credit,
                           self.shared_credit, self.receive_rate)

    @staticmethod
    def decode(data: bytes, capabilities: int = 0) -> "Limits":
        return Limits(*struct.unpack("!IIIIQ", data), capabilities & CAPABILITIES)


@dataclass(frozen=True)
class HelloPayload:
    """The payload of a Hello: 40 octets."""

    timestamp: int
    association: int
    limits: Limits

    def encode(self) -> bytes:
        return struct.pack("!QQ", self.timestamp, self.association) + self.limits.encode()

    @staticmethod
    def decode(data: bytes, header: Header | None = None) -> "HelloPayload":
        """Reads the payload of a Hello; its header has the capabilities."""
        timestamp, association = struct.unpack_from("!QQ", data)
        capabilities = header.counter >> 16 & 255 if header else 0
        return HelloPayload(timestamp, association, Limits.decode(data[16:40], capabilities))


@dataclass(frozen=True)
class WelcomePayload:
    """The payload of a Welcome: 44 octets."""

    index: int
    association: int
    latest_timestamp: int
    limits: Limits

    def encode(self) -> bytes:
        first = self.limits.capabilities << 24 | self.index
        return struct.pack("!IQQ", first, self.association, self.latest_timestamp) \
            + self.limits.encode()

    @staticmethod
    def decode(data: bytes) -> "WelcomePayload":
        index, association, latest = struct.unpack_from("!IQQ", data)
        limits = Limits.decode(data[20:44], index >> 24)
        return WelcomePayload(index & 0xFF_FFFF, association, latest, limits)
