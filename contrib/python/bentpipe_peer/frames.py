"""Frames of the relay: encoding and decoding (docs/spec/relay.md, sections 1, 6, 7 and 9)."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Iterator, Union

from .wire import Malformed, Reader, put_varint

MAX_STREAM = (1 << 28) - 1


class Reason(IntEnum):
    """Reasons of RESET; from 64 on a refusal (RLY-1.7)."""

    ABORTED = 0
    LOCAL = 1
    TIMED_OUT = 2
    PROTOCOL = 3
    REFUSED = 64
    CONNECTION_REFUSED = 65
    HOST_UNREACHABLE = 66
    NETWORK_UNREACHABLE = 67
    CONNECT_TIMED_OUT = 68
    POLICY = 69
    NAME_NOT_FOUND = 70
    LIMIT = 71
    BAD_OPENING = 72


Key = tuple[bool, int]
"""A stream: whether the hub opened it, and its number (RLY-1.1)."""


@dataclass(frozen=True)
class Opening:
    """What a stream is to be connected to (RLY-1.5). Hosts are addresses or, as target, a name."""

    host: str
    port: int
    priority: int = 1
    source: tuple[str, int] | None = None


@dataclass(frozen=True)
class StreamFrame:
    """STREAM. `offset` holds the low 24 or 32 bits, whichever `wide` says (RLY-1.3)."""

    key: Key
    offset: int
    data: bytes = field(repr=False)
    wide: bool = False
    end: bool = False
    shared: bool = False
    opening: Opening | None = None
    coded: bool = False


@dataclass(frozen=True)
class Accept:
    key: Key


@dataclass(frozen=True)
class Reset:
    key: Key
    final_offset: int
    shared_used: int
    reason: int


@dataclass(frozen=True)
class Credit:
    """A stream's limit, in units of 1,024 bytes."""

    key: Key
    limit: int


@dataclass(frozen=True)
class Shared:
    """The shared credit returned since the session began, in units of 1,024 bytes."""

    returned: int


@dataclass(frozen=True)
class Datagram:
    packet: bytes = field(repr=False)


@dataclass(frozen=True)
class Piece:
    number: int
    total: int
    offset: int
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class Grant:
    """The rate, in 1,000 bits per second, that the terminal may send at (RLY-7.1)."""

    number: int
    rate: int


@dataclass(frozen=True)
class Need:
    """What waits at the terminal, in units of 1,024 bytes (RLY-7.2)."""

    number: int
    waiting: int


@dataclass(frozen=True)
class Families:
    """Two bits for each address family (RLY-9.1)."""

    number: int
    families: int


@dataclass(frozen=True)
class GoAway:
    """Its sender has opened so many streams, and opens no more (RLY-10.1)."""

    opened: int
    leaves: bool
    """Whether no session follows."""


@dataclass(frozen=True)
class Padding:
    """Octets that the receiver discards (RLY-1.11)."""

    length: int


@dataclass(frozen=True)
class Report:
    """A terminal's state: keys and values (RLY-11.1)."""

    number: int
    fields: list[tuple[int, bytes]]


@dataclass(frozen=True)
class Received:
    """All bytes of a half below the offset have arrived, on whichever path (RLY-12.8)."""

    key: Key
    offset: int


@dataclass(frozen=True)
class Define:
    """The packet of the next frame is a context of compressed headers (HDR-2.1)."""

    context: int
    rule: int
    stride: int


@dataclass(frozen=True)
class Compressed:
    """A packet with a compressed header (HDR-3.1)."""

    content: bytes


@dataclass(frozen=True)
class Contexts:
    """The sender stores so many contexts (HDR-2.3)."""

    contexts: int


@dataclass(frozen=True)
class Invalid:
    """The sender does not have the context (HDR-2.6)."""

    context: int


@dataclass(frozen=True)
class Unknown:
    """An extension frame of a kind that is not known (RLY-1.10)."""

    kind: int
    content: bytes = field(repr=False)


@dataclass(frozen=True)
class BadOpening:
    """A STREAM frame whose opening has a value that is not defined (RLY-1.5)."""

    key: Key


Frame = Union[StreamFrame, Accept, Reset, Credit, Shared, Datagram, Piece, Grant, Need, Families,
              GoAway, Padding, Report, Received, Define, Compressed, Contexts, Invalid, Unknown,
              BadOpening]


class Unreadable(Malformed):
    """A frame that cannot be read: nothing behind it can be (RLY-1.8)."""

    def __init__(self, reason: str, first: int) -> None:
        super().__init__(reason)
        self.first = first
        """The frame's first octet."""

_STREAM, _HUB, _LENGTH, _WIDE, _END, _OPENS, _SHARED, _CODED = (
    0x80, 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01)


def encode(frame: Frame, last: bool = False) -> bytes:
    """Encodes a frame. `last` leaves out the length of the data (RLY-1.2)."""
    match frame:
        case StreamFrame():
            return _encode_stream(frame, last)
        case Accept(key):
            return _head(1, key)
        case Reset(key, final, used, reason):
            return _head(2, key) + put_varint(final) + put_varint(used) + bytes([reason])
        case Credit(key, limit):
            return _head(3, key) + put_varint(limit)
        case Shared(returned):
            return b"\x04" + put_varint(returned)
        case Datagram(packet):
            return _with_data(5, b"", packet, last)
        case Piece(number, total, offset, data):
            head = put_varint(number) + put_varint(total) + put_varint(offset)
            return _with_data(6, head, data, last)
        case Grant(number, rate):
            return b"\x07" + put_varint(number) + put_varint(rate)
        case Need(number, waiting):
            return b"\x08" + put_varint(number) + put_varint(waiting)
        case Families(number, families):
            return b"\x09" + put_varint(number) + put_varint(families)
        case GoAway(opened, leaves):
            content = put_varint(opened) + bytes([leaves])
            return b"\x10" + put_varint(len(content)) + content
        case Padding(length):
            return b"\x11" + put_varint(length) + bytes(length)
        case Report(number, fields):
            content = put_varint(number)
            content += b"".join(put_varint(k) + put_varint(len(v)) + v for k, v in fields)
            return b"\x12" + put_varint(len(content)) + content
        case Received(key, offset):
            content = put_varint(2 * key[1] + key[0]) + put_varint(offset)
            return b"\x13" + put_varint(len(content)) + content
        case Define(context, rule, stride):
            content = bytes([context, rule]) + put_varint(stride)
            return b"\x14" + put_varint(len(content)) + content
        case Compressed(content):
            return b"\x15" + put_varint(len(content)) + content
        case Contexts(contexts):
            content = put_varint(contexts)
            return b"\x16" + put_varint(len(content)) + content
        case Invalid(context):
            return bytes([0x17, 1, context])
        case Unknown(kind, content):
            return bytes([kind]) + put_varint(len(content)) + content
        case BadOpening():
            raise ValueError("only what is defined is written")


def decode(payload: bytes) -> Iterator[Frame]:
    """Yields the frames of a payload; raises `Unreadable` at one that cannot be read (RLY-1.8)."""
    reader = Reader(payload)
    while reader.left:
        first = reader.uint(1)
        try:
            frame = _decode_stream(reader, first) if first & _STREAM else \
                _decode_other(reader, first)
        except Malformed as error:
            raise Unreadable(str(error), first) from error
        yield frame


def encode_note(entries: dict[int, int]) -> bytes:
    """Encodes a NOTE: values in units of 1,024 bytes by key (RLY-1.9)."""
    return b"".join(put_varint(key) + put_varint(value) for key, value in entries.items())


def decode_note(note: bytes) -> Iterator[tuple[int, int]]:
    """Yields the entries of a NOTE."""
    reader = Reader(note)
    while reader.left:
        key, value = _varint(reader), _credit(reader)
        if key and (key - 1) // 2 > MAX_STREAM:
            raise Malformed("stream number too large")
        yield key, value


def note_key(key: Key) -> int:
    """The key of a stream's limit in a NOTE (RLY-1.9)."""
    return 1 + 2 * key[1] + key[0]


def _varint(reader: Reader) -> int:
    return reader.varint(max_octets=9, max_bits=63, shortest=False)


def _credit(reader: Reader) -> int:
    """Reads a limit or shared credit in units of 1,024 bytes (RLY-1.8)."""
    units = _varint(reader)
    if units >= 1 << 52:
        raise Malformed("credit of 2^62 bytes or more")
    return units


def _stream_number(reader: Reader) -> int:
    number = _varint(reader)
    if number > MAX_STREAM:
        raise Malformed("stream number too large")
    return number


def _head(kind: int, key: Key) -> bytes:
    return bytes([kind | (_HUB if key[0] else 0)]) + put_varint(key[1])


def _with_data(kind: int, head: bytes, data: bytes, last: bool) -> bytes:
    if last:
        return bytes([kind]) + head + data
    return bytes([kind | _LENGTH]) + head + put_varint(len(data)) + data


def _encode_stream(frame: StreamFrame, last: bool) -> bytes:
    first = _STREAM | (_HUB if frame.key[0] else 0) | (0 if last else _LENGTH)
    first |= (_END if frame.end else 0) | (_SHARED if frame.shared else 0)
    first |= _CODED if frame.coded else 0
    head = put_varint(frame.key[1])
    if frame.opening:
        first |= _OPENS
        head += _encode_opening(frame.opening)
    elif frame.wide:
        first |= _WIDE
        head += frame.offset.to_bytes(4, "big")
    else:
        head += frame.offset.to_bytes(3, "big")
    return bytes([first]) + head + (b"" if last else put_varint(len(frame.data))) + frame.data


def _decode_stream(reader: Reader, first: int) -> StreamFrame | BadOpening:
    key = (bool(first & _HUB), _stream_number(reader))
    opening, offset, wide = None, 0, bool(first & _WIDE)
    if first & _OPENS:
        if wide:
            raise Malformed("an opening with W")
        opening = _decode_opening(reader)
        if opening is None:
            _data(reader, first)
            return BadOpening(key)
    else:
        offset = reader.uint(4 if wide else 3)
    data = _data(reader, first)
    return StreamFrame(key, offset, data, wide, bool(first & _END), bool(first & _SHARED), opening,
                       bool(first & _CODED))


def _data(reader: Reader, first: int) -> bytes:
    return reader.take(_varint(reader)) if first & _LENGTH else reader.rest()


def _decode_other(reader: Reader, first: int) -> Frame:
    if first & 0xF0 == 0x10:
        return _decode_extension(reader, first)
    kind = first & 0x1F
    allowed = {1: _HUB, 2: _HUB, 3: _HUB, 5: _LENGTH, 6: _LENGTH}.get(kind, 0)
    if first & 0x60 & ~allowed or not 1 <= kind <= 9:
        raise Malformed("unknown frame")
    if kind <= 3:
        key = (bool(first & _HUB), _stream_number(reader))
        if kind == 1:
            return Accept(key)
        if kind == 2:
            return Reset(key, _varint(reader), _varint(reader), reader.uint(1))
        return Credit(key, _credit(reader))
    if kind == 4:
        return Shared(_credit(reader))
    if kind == 5:
        return Datagram(_data(reader, first))
    if kind == 6:
        return _decode_piece(reader, first)
    return (Grant, Need, Families)[kind - 7](_varint(reader), _varint(reader))


def _decode_extension(reader: Reader, first: int) -> Frame:
    """Reads an extension frame; octets behind the known content are skipped (RLY-1.10)."""
    content = reader.take(_varint(reader))
    if first == 0x10:
        inner = Reader(content)
        opened = _varint(inner)
        return GoAway(opened, bool(inner.uint(1) & 1))
    if first == 0x11:
        return Padding(len(content))
    if first == 0x12:
        inner = Reader(content)
        number, fields = _varint(inner), []
        while inner.left:
            key = _varint(inner)
            fields.append((key, inner.take(_varint(inner))))
        return Report(number, fields)
    if first == 0x13:
        inner = Reader(content)
        stream, offset = _varint(inner), _varint(inner)
        if stream // 2 > MAX_STREAM:
            raise Malformed("stream number too large")
        return Received((stream & 1 == 1, stream // 2), offset)
    if first in range(0x14, 0x18):
        return _decode_headers(first, content)
    return Unknown(first, content)


def _decode_headers(first: int, content: bytes) -> Frame:
    """Reads a frame of header compression (HDR-1.1)."""
    inner = Reader(content)
    if first == 0x14:
        context, rule, stride = inner.uint(1), inner.uint(1), _varint(inner)
        if stride >= 2**32:
            raise Malformed("a stride of more than 32 bits")
        if context < 128 and rule & 3 < 3 and rule >> 2 < 3:
            return Define(context, rule, stride)
    elif first == 0x15:
        return Compressed(content)
    elif first == 0x16:
        return Contexts(_varint(inner))
    elif (context := inner.uint(1)) < 128:
        return Invalid(context)
    return Unknown(first, content)


def _decode_piece(reader: Reader, first: int) -> Piece:
    """Reads a PIECE, which lies within its packet and is not too short (RLY-6.4)."""
    number, total, offset = _varint(reader), _varint(reader), _varint(reader)
    data = _data(reader, first)
    after = offset + len(data)
    if number > 65_535 or total > 65_535 or after > total or not data:
        raise Malformed("a PIECE outside its packet")
    if len(data) < 32 and after < total:
        raise Malformed("a PIECE that is too short")
    return Piece(number, total, offset, data)


def _encode_address(host: str, port: int) -> bytes:
    return ipaddress.ip_address(host).packed + port.to_bytes(2, "big")


def _address_kind(host: str) -> int | None:
    try:
        return {4: 0, 6: 1}[ipaddress.ip_address(host).version]
    except ValueError:
        return None


def _encode_opening(opening: Opening) -> bytes:
    target = _address_kind(opening.host)
    if target is None:
        name = opening.host.encode()
        where = bytes([len(name)]) + name + opening.port.to_bytes(2, "big")
    else:
        where = _encode_address(opening.host, opening.port)
    kind = 2 if target is None else target
    source = b""
    if opening.source:
        kind |= (1 + (_address_kind(opening.source[0]) or 0)) << 4
        source = _encode_address(*opening.source)
    return bytes([opening.priority, kind]) + where + source


def _decode_opening(reader: Reader) -> Opening | None:
    """Reads an opening; None if it ends where it must but has a value that is not defined."""
    priority, kind = reader.uint(1), reader.uint(1)
    target, source = kind & 15, kind >> 4
    if target > 2 or source > 2:
        raise Malformed("an opening of unknown length")
    if target == 2:
        host = reader.take(reader.uint(1)).decode(errors="replace")
    else:
        host = str(ipaddress.ip_address(reader.take(16 if target else 4)))
    port = reader.uint(2)
    client = None
    if source:
        address = reader.take(16 if source == 2 else 4)
        client = (str(ipaddress.ip_address(address)), reader.uint(2))
    if priority > 2 or not host or "\N{REPLACEMENT CHARACTER}" in host:
        return None
    return Opening(host, port, priority, client)
