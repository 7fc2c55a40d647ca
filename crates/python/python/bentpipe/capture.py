"""Captures (pcapng of IPv4 packets) as data frames."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pandas

COLUMNS = [
    "seconds", "direction", "source", "destination", "protocol", "source_port", "destination_port",
    "bytes", "sequence", "acknowledgement", "tcp_flags",
]
PROTOCOLS = {6: "TCP", 17: "UDP"}
FLAGS = "FSRPAUEC"


def read_capture(path: str | os.PathLike[str]) -> pandas.DataFrame:
    """A row for each packet: time in seconds, addresses, ports, octets of the IP packet; of TCP also
    the sequence numbers and flags. `direction` is as seen by the first node of the link."""
    data = Path(path).read_bytes()
    frame = pandas.DataFrame(list(_packets(data)), columns=COLUMNS)
    whole = ["source_port", "destination_port", "sequence", "acknowledgement"]
    return frame.astype(dict.fromkeys(whole, "Int64"))


def _packets(data: bytes) -> Iterator[tuple[object, ...]]:
    if data[:4] != b"\x0a\x0d\x0d\x0a":
        raise ValueError("found no pcapng, expected a section header")
    at = 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if length < 12 or length % 4 or at + length > len(data):
            raise ValueError(f"found a block of {length} octets at {at}, expected a whole one")
        if kind == 6:
            yield _packet(data[at + 8 : at + length - 4])
        at += length


def _packet(block: bytes) -> tuple[object, ...]:
    high, low, captured = struct.unpack_from("<4xIII", block)
    seconds = ((high << 32) | low) / 1e9
    ip = block[20 : 20 + captured]
    options = block[20 + (captured + 3) // 4 * 4 :]
    flags = struct.unpack_from("<I", options, 4)[0] if options[:2] == b"\x02\x00" else 0
    direction = {1: "in", 2: "out"}.get(flags & 3, "")
    addresses = [".".join(map(str, ip[start : start + 4])) for start in (12, 16)]
    protocol = PROTOCOLS.get(ip[9], str(ip[9]))
    tail: list[object] = [None, None, int.from_bytes(ip[2:4]), None, None, ""]
    transport = ip[(ip[0] & 15) * 4 :]
    if protocol in ("TCP", "UDP") and len(transport) >= 8:
        tail[0], tail[1] = struct.unpack_from(">HH", transport)
    if protocol == "TCP" and len(transport) >= 14:
        tail[3], tail[4] = struct.unpack_from(">II", transport, 4)
        tail[5] = "".join(name for bit, name in enumerate(FLAGS) if transport[13] >> bit & 1)
    return seconds, direction, *addresses, protocol, *tail
