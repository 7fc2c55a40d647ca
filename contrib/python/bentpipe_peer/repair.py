"""Repair symbols: the code, and what a receiver recovers (docs/spec/repair.md)."""

from __future__ import annotations

from .wire import Malformed

COVERED = 128
"""Packets that a symbol covers at most; also those that are stored (XSTP-15.3.5)."""
SYMBOLS = 32


def _powers() -> list[int]:
    powers, value = [], 1
    for _ in range(255):
        powers.append(value)
        value = value << 1 ^ (0x11D if value & 0x80 else 0)
    return powers


_POWERS = _powers()
_LOGARITHMS = {value: exponent for exponent, value in enumerate(_POWERS)}


def multiply(a: int, b: int) -> int:
    """The product of two elements (XSTP-15.1.1)."""
    return _POWERS[(_LOGARITHMS[a] + _LOGARITHMS[b]) % 255] if a and b else 0


def inverse(a: int) -> int:
    """The inverse of an element other than zero."""
    return _POWERS[-_LOGARITHMS[a] % 255]


_TABLES = [bytes(multiply(a, b) for b in range(256)) for a in range(256)]


def coefficient(key: int, number: int) -> int:
    """The coefficient of a packet in the symbol with this key (XSTP-15.1.3)."""
    return inverse(128 + key ^ number % COVERED)


def source_symbol(payload: bytes) -> bytes:
    """The source symbol of a packet, without the zeros after it (XSTP-15.1.2)."""
    return len(payload).to_bytes(2, "big") + payload


def add(to: bytes, factor: int, symbol: bytes) -> bytes:
    """Returns `to` and `factor` times `symbol`, with the length of the longer one."""
    length = max(len(to), len(symbol))
    product = symbol.translate(_TABLES[factor])
    total = int.from_bytes(to.ljust(length, b"\0"), "big") \
        ^ int.from_bytes(product.ljust(length, b"\0"), "big")
    return total.to_bytes(length, "big")


def repair_symbol(first: int, payloads: list[bytes], key: int) -> bytes:
    """The symbol that covers packets from `first` on."""
    total = b""
    for number, payload in enumerate(payloads, first):
        total = add(total, coefficient(key, number), source_symbol(payload))
    return total


Row = tuple[dict[int, int], bytes]
"""Coefficients of missing packets, and their sum."""


class Repairer:
    """Recovers packets from the others and symbols (XSTP-15.3). Numbers do not wrap around."""

    def __init__(self) -> None:
        self.recovered = 0
        self._is_active = False
        self._sources: dict[int, bytes] = {}
        self._rows: list[Row] = []

    def on_packet(self, number: int, payload: bytes) -> None:
        """Takes a packet of which no report was sent before (XSTP-15.3.2)."""
        if self._is_active:
            self._store(number, source_symbol(payload))

    def _store(self, number: int, source: bytes) -> None:
        self._sources[number] = source
        for old in sorted(self._sources)[:-COVERED]:
            del self._sources[old]

    def on_symbol(self, first: int, count: int, key: int, symbol: bytes, vr_r: int
                  ) -> list[tuple[int, bytes]]:
        """Takes a symbol; returns the packets that can be recovered now (XSTP-15.3.3)."""
        self._is_active = True
        row: Row = ({number: coefficient(key, number) for number in range(first, first + count)},
                    symbol)
        if any(number < vr_r and number not in self._sources for number in row[0]):
            return []  # A packet that is not stored, or not as it was first transmitted.
        rows = [self._without_known(one) for one in [*self._rows, row] if max(one[0]) >= vr_r]
        self._rows = _reduced(rows)[-SYMBOLS:]
        out = []
        for missing, total in [one for one in self._rows if len(one[0]) == 1]:
            number, end = *missing, 2 + int.from_bytes(total[:2], "big")
            if end > len(total) or any(total[end:]):
                raise Malformed("a recovered packet that is none")  # (XSTP-15.3.4)
            self._store(number, total[:end])
            out.append((number, total[2:end]))
        self._rows = [one for one in self._rows if len(one[0]) > 1]
        self.recovered += len(out)
        return out

    def _without_known(self, row: Row) -> Row:
        missing, total = dict(row[0]), row[1]
        for number in row[0].keys() & self._sources.keys():
            source = self._sources[number]
            if len(source) > len(total):
                raise Malformed("a repair symbol that is too short")  # (XSTP-15.3.4)
            total = add(total, missing.pop(number), source)
        return missing, total


def _minus(row: Row, other: Row, pivot: int) -> Row:
    """Removes `pivot`, whose coefficient in `other` is 1, from `row`."""
    factor = row[0].get(pivot, 0)
    sums = {number: row[0].get(number, 0) ^ multiply(factor, other[0].get(number, 0))
            for number in row[0].keys() | other[0].keys()}
    return {number: value for number, value in sums.items() if value}, \
        add(row[1], factor, other[1])


def _reduced(rows: list[Row]) -> list[Row]:
    """Gauss-Jordan elimination; rows without missing packets are dropped."""
    done: list[tuple[int, Row]] = []
    for row in rows:
        for pivot, other in done:
            row = _minus(row, other, pivot)
        if not row[0]:
            continue
        pivot = min(row[0])
        factor = inverse(row[0][pivot])
        row = ({number: multiply(value, factor) for number, value in row[0].items()},
               add(b"", factor, row[1]))
        done = [(old, _minus(other, row, pivot)) for old, other in done] + [(pivot, row)]
    return [row for _, row in done]
