"""Segments of XSTP's sealed profile: encoding and decoding (docs/spec/xstp.md, section 3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag

from .wire import Malformed, Reader, put_varint

SPACE = 1 << 24
MAX_WINDOW = 1 << 23
IMMEDIATE = 1
"""Immediate delivery in BGN (XSTP-3.5.2)."""


class Type(IntFlag):
    """The types that a segment combines (XSTP-3.2.1)."""

    SD = 0x01
    POLL = 0x02
    STAT = 0x04
    USTAT = 0x08
    BGN = 0x10
    END = 0x20
    AK = 0x40
    RST = 0x80


_LEGAL_WITH = {
    Type.BGN: Type.SD | Type.POLL,
    Type.BGN | Type.AK: Type.SD | Type.POLL | Type.STAT | Type.USTAT,
    Type.END: Type.STAT,
    Type.END | Type.AK: Type.STAT,
    Type.RST: Type(0),
    Type.AK: Type(0),
    Type(0): Type.SD | Type.POLL | Type.STAT | Type.USTAT,
}
_CONTROL = Type.BGN | Type.AK | Type.END | Type.RST


@dataclass(frozen=True)
class Begin:
    """BGN, or BGNAK if there is an echo (XSTP-3.5.2)."""

    incarnation: int
    max_segment: int
    window: int
    delivery: int = IMMEDIATE
    echo: int | None = None


@dataclass(frozen=True)
class Poll:
    """POLL without its timestamp (XSTP-3.7.2); `ahead` only in a segment with SD."""

    count: int
    ahead: int = 0


@dataclass(frozen=True)
class Stat:
    """STAT (XSTP-3.8.2)."""

    n_r: int
    echo: int
    count: int
    window: int
    arrival: tuple[int, int] | None = None
    """When the POLL arrived by the receiver's clock, and the octets received by then."""
    skip: int = 0
    lengths: tuple[int, ...] = ()
    """Lengths of alternating runs, a missing one first."""


@dataclass(frozen=True)
class Ustat:
    """USTAT (XSTP-3.9.1)."""

    n_r: int
    skip: int
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Repair:
    """REPAIR (XSTP-3.11.1); the segment's number is that of the first packet."""

    packets: int
    key: int
    symbol: bytes


@dataclass(frozen=True)
class Segment:
    """A segment. What is None is not there; `finish` is the incarnation in END, ENDAK or RST."""

    type: Type
    number: int
    begin: Begin | None = None
    finish: int | None = None
    stamp: int | None = None
    poll: Poll | None = None
    stat: Stat | None = None
    ustat: Ustat | None = None
    note: bytes | None = None
    payload: bytes | None = field(default=None, repr=False)
    repair: Repair | None = None

    def encode(self) -> bytes:
        """Returns the segment with its parts in the order of XSTP-3.2.3."""
        out = bytearray([self.type]) + self.number.to_bytes(3, "big")
        if self.begin:
            out += _encode_begin(self.begin)
        if self.finish is not None:
            out += self.finish.to_bytes(4, "big")
        if self.stamp is not None:
            out += self.stamp.to_bytes(4, "big")
        if self.poll:
            out += put_varint(self.poll.count)
            if self.type & Type.SD:
                out += put_varint(self.poll.ahead)
        if self.stat:
            out += _encode_stat(self.stat)
        if self.ustat:
            out += self.ustat.n_r.to_bytes(3, "big") + put_varint(self.ustat.skip)
            out += _encode_lengths(self.ustat.lengths)
        if self.repair:
            out += bytes([self.repair.packets - 1, self.repair.key]) + self.repair.symbol
        if self.note is not None:
            out += put_varint(len(self.note)) + self.note
        return bytes(out + (self.payload or b""))


def decode(data: bytes) -> Segment:
    """Decodes a segment; raises `Malformed` where XSTP-4.1.1 has it dropped whole."""
    reader = Reader(data)
    kind = Type(reader.uint(1))
    number = reader.uint(3)
    companions = _LEGAL_WITH.get(kind & _CONTROL)
    if companions is None or kind & ~_CONTROL & ~companions or kind == 0:
        raise Malformed("illegal combination of types")
    begin = finish = stamp = poll = stat = ustat = note = payload = repair = None
    if kind & Type.BGN:
        begin = _decode_begin(reader, bool(kind & Type.AK))
    elif kind & (Type.END | Type.RST):
        finish = reader.uint(4)
    if kind & Type.POLL or kind & _CONTROL == Type.BGN:
        stamp = reader.uint(4)
    if kind & Type.POLL:
        count = _varint(reader)
        ahead = _varint(reader) if kind & Type.SD else 0
        if ahead >= MAX_WINDOW:
            raise Malformed("VT(S) too far ahead")
        poll = Poll(count, ahead)
    if kind & Type.STAT:
        stat = _decode_stat(reader)
    if kind & Type.USTAT:
        ustat = _decode_ustat(reader)
    if kind & (Type.POLL | Type.STAT):
        note = reader.take(_varint(reader))
    if kind == Type.AK:
        packets, key, symbol = reader.uint(1) + 1, reader.uint(1), reader.rest()
        if packets > 128 or key > 127 or len(symbol) < 2:
            raise Malformed("REPAIR")
        repair = Repair(packets, key, symbol)
    if kind & Type.SD:
        payload = reader.rest()
    elif reader.left:
        raise Malformed("octets behind the last part")
    return Segment(kind, number, begin, finish, stamp, poll, stat, ustat, note, payload,
                   repair)


def _varint(reader: Reader) -> int:
    return reader.varint(max_octets=5, max_bits=32, shortest=True)


def _encode_begin(begin: Begin) -> bytes:
    out = bytes([1, begin.delivery]) + begin.max_segment.to_bytes(2, "big")
    out += begin.incarnation.to_bytes(4, "big") + put_varint(begin.window)
    return out if begin.echo is None else out + begin.echo.to_bytes(4, "big")


def _decode_begin(reader: Reader, with_echo: bool) -> Begin:
    if reader.uint(1) != 1:
        raise Malformed("unknown version of BGN")
    delivery = reader.uint(1)
    if delivery > 1:
        raise Malformed("unknown delivery")
    max_segment, incarnation, window = reader.uint(2), reader.uint(4), _varint(reader)
    if window > MAX_WINDOW:
        raise Malformed("window too large")
    echo = reader.uint(4) if with_echo else None
    return Begin(incarnation, max_segment, window, delivery, echo)


def _encode_lengths(lengths: tuple[int, ...]) -> bytes:
    return put_varint(len(lengths)) + b"".join(map(put_varint, lengths))


def _decode_lengths(reader: Reader, skip: int) -> tuple[int, ...]:
    number = _varint(reader)
    if number > reader.left:
        raise Malformed("truncated")
    lengths = tuple(_varint(reader) for _ in range(number))
    if 0 in lengths:
        raise Malformed("a run of length zero")
    if skip + sum(lengths) > MAX_WINDOW:
        raise Malformed("a list that is too long")
    return lengths


def _encode_stat(stat: Stat) -> bytes:
    flags = (2 if stat.skip else 0) | (1 if stat.arrival else 0)
    out = bytes([flags]) + stat.n_r.to_bytes(3, "big") + stat.echo.to_bytes(4, "big")
    out += put_varint(stat.count) + put_varint(stat.window)
    if stat.arrival:
        out += stat.arrival[0].to_bytes(4, "big") + stat.arrival[1].to_bytes(4, "big")
    if stat.skip:
        out += put_varint(stat.skip)
    return out + _encode_lengths(stat.lengths)


def _decode_stat(reader: Reader) -> Stat:
    flags = reader.uint(1)
    if flags & ~3:
        raise Malformed("a reserved bit of STAT")
    n_r, echo, count, window = reader.uint(3), reader.uint(4), _varint(reader), _varint(reader)
    if window > MAX_WINDOW:
        raise Malformed("window too large")
    arrival = (reader.uint(4), reader.uint(4)) if flags & 1 else None
    skip = _varint(reader) if flags & 2 else 0
    if flags & 2 and skip == 0:
        raise Malformed("a skip of zero")
    lengths = _decode_lengths(reader, skip)
    if skip and not lengths:
        raise Malformed("a skip before an empty list")
    return Stat(n_r, echo, count, window, arrival, skip, lengths)


def _decode_ustat(reader: Reader) -> Ustat:
    n_r, skip = reader.uint(3), _varint(reader)
    lengths = _decode_lengths(reader, skip)
    if len(lengths) % 2 == 0:
        raise Malformed("a USTAT with an even number of lengths")
    return Ustat(n_r, skip, lengths)
