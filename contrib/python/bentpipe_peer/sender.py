"""The sending half of a session (docs/spec/xstp.md, sections 7, 8.1 and 10), with the simplest
controller that is allowed: a configured rate (`fixed`, XSTP-9.1) and nothing else.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from .segment import MAX_WINDOW, SPACE, Stat, Ustat
from .wire import Malformed

ASSUMED_WINDOW = 4096
OWN_WINDOW = 4096
ASSUMED_ROUND_TRIP = 0.6
POLL_DISTANCE = 0.005
CATCH_UP = 0.020
BELOW_SEGMENT = 24 + 28
"""Octets below a segment that a rate counts: association, UDP and IPv4 (XSTP-8.1.6)."""


@dataclass
class _Out:
    """A packet between VT(A) and VT(S) that is not released."""

    count: int
    """The last POLL before its last transmission (XSTP-7.3.2)."""
    transmissions: int = 1
    queued: bool = False


class Sender:
    """VT(A), VT(S), VT(MS), VT(PS), what is outstanding, the pacer and the POLL timer."""

    def __init__(self, rate_bps: float) -> None:
        self.rate_bps = rate_bps
        self.vt_a = self.vt_s = 0
        self.vt_ms = ASSUMED_WINDOW
        self.vt_ps = 0
        self.srtt: float | None = None
        self.retransmissions = 0
        self.rejected = 0
        self.outstanding: dict[int, _Out] = {}
        self.next_send = 0.0
        self.last_poll = -1e9
        self.unanswered_since: float | None = None
        self._polls: dict[int, float] = {}
        self._echoed = 0
        self._queue: list[int] = []

    def distance(self, number: int) -> int:
        """Distance from VT(A) to a number of 24 bits (XSTP-2.1.2)."""
        return (number - self.vt_a) % SPACE

    # What may be sent.

    def may_send_new(self) -> bool:
        """Whether the windows allow a new packet (XSTP-7.1.2)."""
        return self.vt_s < min(self.vt_ms, self.vt_a + OWN_WINDOW)

    def next_retransmission(self) -> int | None:
        """The lowest number that is queued for retransmission (XSTP-7.2.2)."""
        while self._queue:
            out = self.outstanding.get(self._queue[0])
            if out and out.queued:
                return self._queue[0]
            heapq.heappop(self._queue)
        return None

    def on_new(self) -> int:
        """Counts a new packet as sent and returns its number."""
        number = self.vt_s
        self.outstanding[number] = _Out(self.vt_ps)
        self.vt_s += 1
        return number

    def on_retransmission(self, number: int) -> None:
        """Counts a retransmission."""
        out = self.outstanding[number]
        out.count, out.queued = self.vt_ps, False
        out.transmissions += 1
        self.retransmissions += 1

    def on_poll(self, now: float) -> int:
        """Counts a POLL as sent and returns its count. A packet in its segment comes before it."""
        self.vt_ps += 1
        self.last_poll = now
        self._polls[self.vt_ps] = now
        if self.unanswered_since is None:
            self.unanswered_since = now
        if len(self._polls) > 4096:
            del self._polls[next(iter(self._polls))]
        return self.vt_ps

    def charge(self, segment_octets: int, now: float) -> None:
        """Plans the next packet (XSTP-8.1.1, 8.1.2)."""
        planned = max(self.next_send, now - CATCH_UP)
        self.next_send = planned + (segment_octets + BELOW_SEGMENT) * 8 / self.rate_bps

    def poll_interval(self) -> float:
        """Time between POLLs of the timer (XSTP-10.2.1, 10.2.5)."""
        return max((self.srtt or ASSUMED_ROUND_TRIP) / 3, POLL_DISTANCE)

    # What the peer reports.

    def on_window(self, n_r: int, window: int) -> None:
        """Takes the window of BGN, BGNAK or the newest STAT (XSTP-7.1.1)."""
        self.vt_ms = n_r + min(window, MAX_WINDOW)

    def on_stat(self, stat: Stat, now: float) -> list[int]:
        """Takes a STAT; returns the numbers that it released. Raises `Malformed` (R or S)."""
        if not self._echoed <= stat.count <= self.vt_ps:
            raise Malformed("R: echo of no POLL, or of an older one")
        n_r = self._checked(stat.n_r, stat.skip + sum(stat.lengths))
        if stat.count > self._echoed:
            self._echoed = stat.count
            self.unanswered_since = None
            sent = self._polls.get(stat.count)
            if sent is not None:
                sample = min(now - sent, 60.0)
                self.srtt = sample if self.srtt is None else self.srtt * 7 / 8 + sample / 8
            self._polls = {c: t for c, t in self._polls.items() if c > stat.count}
        vt_ms = self.vt_ms if n_r < self.vt_a else 0  # An overtaken STAT only extends it.
        self.on_window(n_r, stat.window)
        self.vt_ms = max(self.vt_ms, vt_ms)
        released = self._release_below(n_r)
        at = n_r + stat.skip
        for position, length in enumerate(stat.lengths):
            for number in range(at, at + length):
                out = self.outstanding.get(number)
                if out is None:
                    continue
                if position % 2:  # Early release (XSTP-7.3.4).
                    del self.outstanding[number]
                    released.append(number)
                elif out.count < stat.count and not out.queued:  # (XSTP-7.3.2)
                    self._enqueue(number, out)
            at += length
        return released

    def on_ustat(self, ustat: Ustat) -> list[int]:
        """Takes a USTAT (XSTP-7.4.1). One that was overtaken by a later report is still used."""
        n_r = self._checked(ustat.n_r, ustat.skip + sum(ustat.lengths))
        at = n_r + ustat.skip
        released = self._release_below(n_r)
        for position, length in enumerate(ustat.lengths):
            for number in range(at, at + length) if position % 2 == 0 else ():
                out = self.outstanding.get(number)
                if out and out.transmissions == 1 and not out.queued:
                    self._enqueue(number, out)
            at += length
        return released

    def _checked(self, n_r: int, span: int) -> int:
        """Restores N(R), which may be behind VT(A) in a report that another one has overtaken;
        refuses one before the first packet, and what reaches beyond VT(S) (XSTP-7.3.1, 7.5.1)."""
        ahead = self.distance(n_r)
        number = self.vt_a + (ahead if ahead < MAX_WINDOW else ahead - SPACE)
        if number < 0 or number + span > self.vt_s:
            raise Malformed("N(R) is before the first packet, or the list is beyond VT(S)")
        return number

    def _release_below(self, n_r: int) -> list[int]:
        released = [number for number in range(self.vt_a, n_r) if number in self.outstanding]
        for number in released:
            del self.outstanding[number]
        self.vt_a = max(self.vt_a, n_r)
        return released

    def _enqueue(self, number: int, out: _Out) -> None:
        out.queued = True
        heapq.heappush(self._queue, number)
