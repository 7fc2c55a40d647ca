"""The receiving half of a session (docs/spec/xstp.md, section 5).

Numbers are stored without wrap-around; the session converts them from and to 24 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

REORDERING_THRESHOLD = 3
USTAT_HOLD = 0.020
STAT_DISTANCE = 0.005


@dataclass
class _Gap:
    """A gap that no USTAT has reported (XSTP-5.2.1)."""

    first: int
    after: int
    beyond: int = 0
    """New packets that arrived beyond it."""


@dataclass(frozen=True)
class Question:
    """An accepted POLL that no STAT has answered yet."""

    stamp: int
    count: int
    arrival_us: int
    octets: int


class Receiver:
    """VR(R), VR(H), VR(MR) and what has arrived between them."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.vr_r = 0
        self.vr_h = 0
        self.vr_mr = window
        self.reported = 0
        """The number behind the last one that a STAT or USTAT has reported (XSTP-15.3.2)."""
        self.octets = 0
        self.duplicates = 0
        self.question: Question | None = None
        self.next_stat = 0.0
        self._arrived: set[int] = set()
        self._last_count: int | None = None
        self._watched: list[_Gap] = []
        self._due: list[tuple[int, int]] = []
        self._due_at = 0.0

    def on_data(self, number: int, now: float) -> bool:
        """Takes the number of an SD; returns whether its packet is new (XSTP-5.1)."""
        if number >= self.vr_mr:
            return False
        if number < self.vr_r or number in self._arrived:
            self.duplicates += 1
            return False
        self._arrived.add(number)
        if number >= self.vr_h:
            if number > self.vr_h:
                for gap in self._watched:  # A newer gap is revealed (XSTP-5.2.3).
                    self._report(gap, now)
                self._watched = [_Gap(self.vr_h, number)]
            self.vr_h = number + 1
        while self.vr_r in self._arrived:
            self._arrived.remove(self.vr_r)
            self.vr_r += 1
        for gap in self._watched:
            gap.beyond += number >= gap.after
            if gap.beyond >= REORDERING_THRESHOLD:
                self._report(gap, now)
        self._watched = [gap for gap in self._watched if gap.beyond < REORDERING_THRESHOLD]
        return True

    def _report(self, gap: _Gap, now: float) -> None:
        if not self._due:
            self._due_at = now + USTAT_HOLD
        self._due.append((gap.first, gap.after))

    def on_poll(self, vt_s: int, question: Question) -> None:
        """Takes a POLL that says its sender's VT(S) (XSTP-5.3)."""
        last = self._last_count
        if last is not None and not 0 < (question.count - last) % (1 << 32) < 1 << 31:
            return
        self._last_count = question.count
        self.vr_h = max(self.vr_h, min(vt_s, self.vr_mr))
        self.question = question
        # The STAT reports what lies below VT(S) (XSTP-5.2.6).
        self._due = [(max(first, vt_s), after) for first, after in self._due if after > vt_s]

    def runs(self, first: int, end: int) -> list[tuple[int, int]]:
        """Missing runs between two numbers, each with its first number and the one after it."""
        out: list[tuple[int, int]] = []
        start: int | None = None
        for number in range(max(first, self.vr_r), end):
            if number in self._arrived:
                if start is not None:
                    out.append((start, number))
                    start = None
            elif start is None:
                start = number
        if start is not None:
            out.append((start, end))
        return out

    def stat_lists(self, max_lengths: int) -> list[tuple[int, tuple[int, ...]]]:
        """Lists of one or more STATs: the number at which each starts, and its lengths (5.3.4)."""
        self.reported = max(self.reported, self.vr_h)
        lengths, at = [], self.vr_r
        for first, after in self.runs(self.vr_r, self.vr_h):
            if first > at:
                lengths.append(first - at)
            lengths.append(after - first)
            at = after
        if self.vr_h > at and lengths:
            lengths.append(self.vr_h - at)
        step = max(2, max_lengths - max_lengths % 2)
        lists, start = [], self.vr_r
        for position in range(0, max(1, len(lengths)), step):
            part = tuple(lengths[position : position + step])
            lists.append((start, part))
            start += sum(part)
        return lists

    def ustat_time(self) -> float | None:
        """When the next USTAT is due."""
        return self._due_at if self._due else None

    def take_ustat(self, max_gaps: int) -> list[tuple[int, int]]:
        """Returns the gaps that a USTAT is to report: what is still missing of them (5.2.4)."""
        missing = [run for first, after in sorted(self._due) for run in self.runs(first, after)]
        now, self._due = missing[:max_gaps], missing[max_gaps:]
        self.reported = max([self.reported, *(after for _, after in now)])
        return now
