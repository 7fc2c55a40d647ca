"""Integers on the wire, and a reader that refuses what is not there."""

from __future__ import annotations


class Malformed(ValueError):
    """Received octets that the specification does not allow. The text names the reason."""


def put_varint(value: int) -> bytes:
    """Encodes a variable-length integer: 7 bits in each octet, lowest first (XSTP-3.1.2)."""
    if value < 0:
        raise ValueError("negative variable-length integer")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def extend(low: int, bits: int, expected: int) -> int:
    """Returns the value nearest to `expected` whose lowest `bits` bits are `low`, at least 0.

    It restores counters of datagrams (ASC-3.1), offsets (RLY-1.3) and sequence numbers, which
    this implementation stores without wrap-around.
    """
    span = 1 << bits
    value = expected - (expected - low) % span
    if expected - value > span // 2:
        value += span
    return value if value >= 0 else value + span


class Reader:
    """Reads big-endian fields from a byte string; raises `Malformed` at its end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, length: int) -> bytes:
        """Returns the next `length` octets."""
        end = self.at + length
        if end > len(self.data):
            raise Malformed("truncated")
        part = self.data[self.at : end]
        self.at = end
        return part

    def uint(self, octets: int) -> int:
        """Returns the next big-endian number of that many octets."""
        return int.from_bytes(self.take(octets), "big")

    def varint(self, max_octets: int, max_bits: int, shortest: bool) -> int:
        """Returns the next variable-length integer. Segments allow only the shortest form of a
        value (XSTP-3.1.2), frames any form of up to nine octets (RLY-1.8)."""
        value = shift = 0
        for position in range(max_octets):
            octet = self.uint(1)
            value |= (octet & 0x7F) << shift
            shift += 7
            if octet < 0x80:
                if shortest and position > 0 and octet == 0:
                    raise Malformed("integer not in its shortest form")
                if value >> max_bits:
                    raise Malformed("integer too large")
                return value
        raise Malformed("integer too long")

    def rest(self) -> bytes:
        """Returns all octets that are left."""
        return self.take(len(self.data) - self.at)

    @property
    def left(self) -> int:
        """Number of octets that are left."""
        return len(self.data) - self.at
