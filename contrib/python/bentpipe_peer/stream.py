"""A stream of the relay: bytes in order both ways, ends, credit (docs/spec/relay.md, 2 and 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable

from .frames import Key, Opening, Reason
from .wire import Malformed


@dataclass
class Receiving:
    """The half that arrives."""

    minimum: int
    """The credit that each stream has from its start; announced in Hello or Welcome."""
    limit: int | None = None
    """The last limit that was announced for this stream."""
    expected: int = 0
    """Offset of the next byte in order."""
    consumed: int = 0
    final: int | None = None
    shared_end: int = 0
    """One past the furthest byte that came on shared credit."""
    ready: bytearray = field(default_factory=bytearray)
    _behind_gap: dict[int, bytes] = field(default_factory=dict)

    def take(self, offset: int, data: bytes, end: bool, shared: bool) -> None:
        """Takes the data of a STREAM frame; raises `Malformed` beyond credit or end (RLY-4.4)."""
        after = offset + len(data)
        if self.final is not None and (after > self.final or end and after != self.final):
            raise Malformed("data beyond the end")
        furthest = [at + len(part) for at, part in self._behind_gap.items()]
        if end and after < max(furthest, default=self.expected):
            raise Malformed("an end before data that has arrived")
        if shared:
            self.shared_end = max(self.shared_end, after)
        elif data and after > (self.minimum if self.limit is None else self.limit):
            raise Malformed("data beyond the limit")
        if end:
            self.final = after
        if after > self.expected:
            known = self._behind_gap.get(offset, b"")
            self._behind_gap[offset] = max(known, data, key=len)
        while True:
            offsets = [at for at in self._behind_gap if at <= self.expected]
            if not offsets:
                return
            for at in offsets:
                part = self._behind_gap.pop(at)[self.expected - at :]
                self.ready += part
                self.expected += len(part)

    @property
    def complete(self) -> bool:
        """Whether all bytes and the end have been consumed."""
        return self.final is not None and self.consumed == self.final

    def shared_used(self) -> int:
        """Bytes that came on shared credit, whether or not all of them have arrived (4.2)."""
        return max(0, self.shared_end - self.minimum)

    def shared_returned(self) -> int:
        """Of these, the bytes that were consumed or that a limit covers (RLY-4.3)."""
        covered = max(self.consumed, self.limit or 0)
        return max(0, min(self.shared_end, covered) - self.minimum)


@dataclass
class Sending:
    """The half that is sent."""

    minimum: int
    limit: int | None = None
    sent: int = 0
    shared_used: int = 0
    waiting: bytearray = field(default_factory=bytearray)
    end_wanted: bool = False
    end_sent: bool = False
    unacknowledged: int = 0
    """Packets with this half's data or end that the peer has not acknowledged."""

    @property
    def complete(self) -> bool:
        """Whether all bytes and the end are acknowledged."""
        return self.end_sent and self.unacknowledged == 0

    def allowance(self, shared_left: int) -> tuple[int, bool]:
        """Bytes that may be sent now in one frame, and whether on shared credit (RLY-4.2)."""
        limit = self.minimum if self.limit is None else self.limit
        if self.sent < limit:
            return limit - self.sent, False
        return (shared_left, True) if self.limit is None else (0, False)

    def wants_frame(self, shared_left: int) -> bool:
        """Whether there is anything to put into a STREAM frame now."""
        if self.waiting:
            return self.allowance(shared_left)[0] > 0
        return self.end_wanted and not self.end_sent


class Stream:
    """A stream with both halves. `on_change` is called when something new can be read, was
    accepted, reset or acknowledged."""

    def __init__(self, key: Key, opened_here: bool, own_minimum: int, peer_minimum: int,
                 window: int) -> None:
        self.key, self.opened_here, self.window = key, opened_here, window
        self.opening: Opening | None = None
        self.opening_sent = False
        self.accepted = False
        self.reset_sent = False
        self.reset_reason: int | None = None
        """Why the stream was cut off, by either side."""
        self.inward = Receiving(own_minimum)
        self.outward = Sending(peer_minimum)
        self.on_change: Callable[[], None] = lambda: None

    def write(self, data: bytes) -> None:
        """Appends bytes to be sent."""
        self.outward.waiting += data

    def end(self) -> None:
        """Ends the own half behind what was written."""
        self.outward.end_wanted = True

    def read(self) -> bytes:
        """Returns and consumes the bytes that are ready."""
        data = bytes(self.inward.ready)
        self.inward.ready.clear()
        self.inward.consumed += len(data)
        return data

    @property
    def refused(self) -> bool:
        """Whether the far side refused the stream (RLY-1.7)."""
        return self.reset_reason is not None and self.reset_reason >= Reason.REFUSED

    def new_limit(self) -> int | None:
        """A limit that is to be announced: when the window has moved by a quarter."""
        limit = (self.inward.consumed + self.window) // 1024 * 1024
        known = self.inward.minimum if self.inward.limit is None else self.inward.limit
        if self.inward.final is not None or limit < known + self.window // 4:
            return None
        return limit
