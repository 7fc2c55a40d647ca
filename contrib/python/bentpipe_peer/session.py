"""A session of XSTP's sealed profile with immediate delivery (docs/spec/xstp.md), without sockets.

It joins `Sender` and `Receiver` to a connection: BGN and BGNAK, END and ENDAK, RST, and what goes
into which segment. Not here: congestion controllers, probing, control's share of a low rate
(XSTP-8.1.7), duplicate retransmissions (XSTP-7.6) and the back-off of POLLs, all of which a
sender may leave out on links of some 100 kbit/s and more.
"""

from __future__ import annotations

import secrets
from enum import Enum
from typing import Protocol

from .receiver import STAT_DISTANCE, Question, Receiver
from .repair import Repairer
from .segment import MAX_WINDOW, SPACE, Begin, Poll, Repair, Segment, Stat, Type, Ustat, decode
from .sender import Sender
from .wire import Malformed

HANDSHAKE_TIMEOUT, BEGIN_TRIES = 1.0, 30
KEEP_ALIVE, NO_RESPONSE = 10.0, 120.0
RECEIVE_WINDOW = 262_144
POLL_ROOM = 4 + 5 + 4 + 2
"""Octets that POLL takes in a segment with SD at most, and the length of its NOTE."""


class Upper(Protocol):
    """The layer above: the relay."""

    def has_data(self) -> bool:
        """Whether `fill` would return a payload."""

    def fill(self, number: int, room: int) -> bytes | None:
        """Returns the payload of a new packet, at most `room` octets."""

    def refill(self, number: int, room: int) -> bytes:
        """Returns the payload of a retransmission (XSTP-7.2.3)."""

    def deliver(self, payload: bytes) -> None:
        """Takes the payload of a packet that arrived, in whatever order."""

    def acknowledged(self, number: int) -> None:
        """Called once for each number that the peer has received."""

    def write_note(self, room: int) -> bytes:
        """Returns a NOTE (XSTP-3.10.1)."""

    def read_note(self, note: bytes) -> None:
        """Takes a NOTE."""


class State(Enum):
    """States of a session; both directions are tracked beside it (XSTP-6.2)."""

    LISTENING = "listening"
    OPENING = "opening"
    ESTABLISHED = "established"
    CLOSED = "closed"


class Session:
    """One end of a connection. Times are seconds of one clock; rates are bits per second."""

    def __init__(self, client: bool, upper: Upper, max_segment: int, send_segment: int,
                 rate_bps: float, now: float, incarnation: int | None = None) -> None:
        self.upper = upper
        self.max_segment = max_segment
        self.send_segment = send_segment
        self.state = State.OPENING if client else State.LISTENING
        self.reason = ""
        if incarnation is None:
            incarnation = secrets.randbits(32) if client else 0
        self.incarnation = incarnation
        self.arrivals = True
        """Whether STATs have their A block, which a sender can do without (XSTP-5.3.6)."""
        self.repairer: Repairer | None = None
        """Recovers packets, if both sides have the capability (XSTP-15)."""
        self.sender = Sender(rate_bps)
        self.receiver = Receiver(RECEIVE_WINDOW)
        self.ending = self.self_ended = self.peer_ended = False
        self.dropped: dict[str, int] = {}
        self._epoch = now
        self._heard = now
        self._began = now
        self._wait = HANDSHAKE_TIMEOUT
        self._retry_at = now
        self._tries = 0
        self._begin_stamp = 0
        self._begin_echo: int | None = None
        """At the server: the stamp of a BGN that BGNAK has to echo."""
        self._end_sent = False
        self._end_ack = False
        self._reset: int | None = None
        self._reset_reason = 0
        self.peer_reset_reason: int | None = None
        """What the peer's RST names (XSTP-6.5.3)."""
        self._wants_poll = False
        """Whether a packet asked for a POLL that no POLL has followed (XSTP-7.1.3, 10.3.3)."""
        self._stat_parts: list[Stat] = []
        self._stats_in_list = 1

    # What arrives.

    def receive(self, data: bytes, packet_octets: int, now: float) -> None:
        """Takes a segment; `packet_octets` is the size of the IP packet that carried it."""
        try:
            self._handle(decode(data), packet_octets, now)
        except Malformed as error:
            self.dropped[str(error)] = self.dropped.get(str(error), 0) + 1

    def _handle(self, segment: Segment, packet_octets: int, now: float) -> None:
        """Handles the parts in the order of XSTP-4.1.2."""
        kind = segment.type
        if self.state is State.CLOSED:
            self._handle_closed(segment)
            return
        if segment.finish is not None and segment.finish != self.incarnation:
            raise Malformed("another incarnation")
        if kind & Type.RST:
            self.peer_reset_reason = segment.number
            self._close("reset by the peer")
            return
        self._heard = now
        if segment.begin:
            self._on_begin(segment.begin, segment.stamp, now)
        if self.state is State.LISTENING:
            raise Malformed("no BGN yet")
        self.receiver.octets += packet_octets  # (XSTP-5.3.5)
        if kind & Type.SD:
            self._on_data(segment, now)
        if segment.repair:
            self._on_repair(segment.number, segment.repair, now)
        if segment.stat:
            self._acknowledge(self.sender.on_stat(segment.stat, now))
        if segment.ustat:
            self._acknowledge(self.sender.on_ustat(segment.ustat))
        if segment.poll and segment.stamp is not None:
            vt_s = segment.number
            if kind & Type.SD:
                vt_s += 1 + segment.poll.ahead
            arrival = int((now - self._epoch) * 1e6) % (1 << 32)
            question = Question(segment.stamp, segment.poll.count, arrival,
                                self.receiver.octets % (1 << 32))
            base = self.receiver.vr_r
            ahead = (vt_s - base) % SPACE
            # At a distance of 2^23 or more VT(S) is behind: this POLL was overtaken.
            self.receiver.on_poll(base + ahead if ahead <= MAX_WINDOW else base, question)
        if segment.note is not None:
            self.upper.read_note(segment.note)
        if kind & Type.END:
            self._on_end(segment, now)

    def _handle_closed(self, segment: Segment) -> None:
        in_order = self.self_ended and self.peer_ended
        if segment.type & (Type.END | Type.AK) == Type.END and segment.finish == self.incarnation:
            self._end_ack = True
        elif segment.begin and segment.begin.echo is None:
            self._reset = segment.begin.incarnation
        elif segment.type & (Type.SD | Type.POLL) and not in_order:
            self._reset = self.incarnation

    def _on_begin(self, begin: Begin, stamp: int | None, now: float) -> None:
        if begin.echo is not None:  # BGNAK
            if begin.incarnation != self.incarnation:
                raise Malformed("another incarnation")
            if self.state is State.OPENING:
                self.state = State.ESTABLISHED
                self._adopt(begin)
            return
        if self.state is State.LISTENING:
            self.incarnation = begin.incarnation
            self.state = State.ESTABLISHED
            self._adopt(begin)
        elif begin.incarnation != self.incarnation:
            newer = 0 < (begin.incarnation - self.incarnation) % (1 << 32) < 1 << 31
            if newer:
                self._close("the peer has restarted")
            raise Malformed("another incarnation")
        self._begin_echo = stamp

    def _adopt(self, begin: Begin) -> None:
        self.send_segment = min(self.send_segment, begin.max_segment)
        self.sender.on_window(0, begin.window)

    def _on_data(self, segment: Segment, now: float) -> None:
        number = self._extend(segment.number)
        if self.repairer and segment.payload is not None and number >= self.receiver.reported:
            self.repairer.on_packet(number, segment.payload)
        if self.receiver.on_data(number, now) and segment.payload:
            self.upper.deliver(segment.payload)

    def _on_repair(self, number: int, repair: Repair, now: float) -> None:
        if self.repairer is None:
            raise Malformed("REPAIR without the capability")  # (XSTP-15.3.1)
        recovered = self.repairer.on_symbol(self._extend(number), repair.packets, repair.key,
                                            repair.symbol, self.receiver.vr_r)
        for missing, payload in recovered:
            if self.receiver.on_data(missing, now) and payload:
                self.upper.deliver(payload)

    def _extend(self, number: int) -> int:
        """The number without wrap-around that is nearest to VR(R)."""
        base = self.receiver.vr_r
        ahead = (number - base) % SPACE
        return base + ahead if ahead < MAX_WINDOW else base - (SPACE - ahead)

    def _acknowledge(self, released: list[int]) -> None:
        for number in released:
            self.upper.acknowledged(number)

    def _on_end(self, segment: Segment, now: float) -> None:
        if segment.type & Type.AK:
            if self._end_sent and segment.number == self.sender.vt_s % SPACE:
                self.self_ended = True
        elif segment.number == self.receiver.vr_r % SPACE:
            self.peer_ended = self._end_ack = True
        if self.self_ended and self.peer_ended:
            self._close("")

    # What is sent.

    def end(self) -> None:
        """Ends the own direction when all that the upper layer has is acknowledged (6.4.1)."""
        self.ending = True

    def begins_anew(self, data: bytes) -> bool:
        """Whether this segment begins a session after this one (XSTP-6.3.1)."""
        try:
            begin = decode(data).begin
        except Malformed:
            return False
        return (self.state is not State.LISTENING and begin is not None and begin.echo is None
                and 0 < (begin.incarnation - self.incarnation) % (1 << 32) < 1 << 31)

    def abort(self, reason: int = 0) -> None:
        """Drops the session with a RST that names a reason (XSTP-6.5.3)."""
        if self.state is not State.CLOSED:
            self._reset_reason = reason
            self._reset = self.incarnation
            self._close("aborted")

    def _close(self, reason: str) -> None:
        self.state, self.reason = State.CLOSED, reason

    def _stamp(self, now: float) -> int:
        return int((now - self._epoch) * 1e6) % (1 << 32)

    def transmit(self, now: float) -> bytes | None:
        """Returns the next segment that is due, or None. To be called until it returns None."""
        number = self.sender.vt_s % SPACE
        if self._reset is not None:
            reset, self._reset = self._reset, None
            return Segment(Type.RST, self._reset_reason, finish=reset).encode()
        if self._end_ack and (self.state is State.CLOSED or self.receiver.question is None):
            self._end_ack = False
            return Segment(Type.END | Type.AK, self.receiver.vr_r % SPACE,
                           finish=self.incarnation).encode()
        if self.state in (State.LISTENING, State.CLOSED):
            return None
        if now - self._heard > NO_RESPONSE and self.sender.unanswered_since is not None:
            self.abort()
            self.reason = "no response"
            return self.transmit(now)
        for part in (self._begin, self._stat, self._ustat, self._data, self._poll, self._end):
            segment = part(now)
            if segment is not None:
                data = segment.encode()
                self.sender.charge(len(data), now)
                return data
        return None

    def _begin(self, now: float) -> Segment | None:
        """BGN by its timer, and BGNAK when no STAT is about to go (XSTP-6.1)."""
        number = self.sender.vt_s % SPACE
        if self.state is State.OPENING and now >= self._retry_at:
            if self._tries == BEGIN_TRIES:
                self.abort()
                return None
            self._tries += 1
            self._retry_at = now + self._wait
            self._wait = min(self._wait * 2, HANDSHAKE_TIMEOUT * 8)
            return self._with_poll(Type.BGN, number, now)
        if self._begin_echo is not None and self.receiver.question is None:
            return Segment(Type.BGN | Type.AK, number, begin=self._take_begin_ack())
        return None

    def _take_begin_ack(self) -> Begin | None:
        echo, self._begin_echo = self._begin_echo, None
        if echo is None:
            return None
        return Begin(self.incarnation, self.max_segment, RECEIVE_WINDOW, echo=echo)

    def _with_poll(self, kind: Type, number: int, now: float, payload: bytes | None = None
                   ) -> Segment:
        begin = None
        if self.state is State.OPENING:  # (XSTP-6.1.3)
            kind |= Type.BGN
            begin = Begin(self.incarnation, self.max_segment, RECEIVE_WINDOW)
        ahead = (self.sender.vt_s - number - 1) % SPACE if payload is not None else 0
        poll = Poll(self.sender.on_poll(now), ahead)
        room = self.send_segment - POLL_ROOM - 24 - len(payload or b"")
        return Segment(kind | Type.POLL, number, begin=begin, stamp=self._stamp(now), poll=poll,
                       note=self.upper.write_note(max(room, 0)), payload=payload)

    def _stat(self, now: float) -> Segment | None:
        receiver, question = self.receiver, self.receiver.question
        if question is None or now < receiver.next_stat:
            return None
        if not self._stat_parts:
            # A length takes up to four octets; the head of a STAT with BGNAK and a NOTE some 100.
            lists = receiver.stat_lists((self.send_segment - 100) // 4)
            arrival = (question.arrival_us, question.octets)
            receiver.vr_mr = max(receiver.vr_mr, receiver.vr_r + receiver.window)
            for start, lengths in lists:
                self._stat_parts.append(
                    Stat(receiver.vr_r % SPACE, question.stamp, question.count, receiver.window,
                         None if self._stat_parts or not self.arrivals else arrival, start - receiver.vr_r, lengths))
            self._stats_in_list = len(lists)
        stat = self._stat_parts.pop(0)
        if not self._stat_parts:
            receiver.question = None
            receiver.next_stat = now + STAT_DISTANCE * self._stats_in_list
        begin = self._take_begin_ack()
        kind = Type.STAT | (Type.BGN | Type.AK if begin else Type(0))
        return Segment(kind, self.sender.vt_s % SPACE, begin=begin, stat=stat,
                       note=self.upper.write_note(64))

    def _ustat(self, now: float) -> Segment | None:
        due = self.receiver.ustat_time()
        if due is None or now < due or self.state is not State.ESTABLISHED:
            return None
        gaps = self.receiver.take_ustat((self.send_segment - 20) // 8)
        if not gaps:
            return None
        lengths, at = [], gaps[0][0]
        for first, after in gaps:
            if first > at:
                lengths.append(first - at)
            lengths.append(after - first)
            at = after
        base = self.receiver.vr_r
        ustat = Ustat(base % SPACE, gaps[0][0] - base, tuple(lengths))
        return Segment(Type.USTAT, self.sender.vt_s % SPACE, ustat=ustat)

    def _data(self, now: float) -> Segment | None:
        sender = self.sender
        if now < sender.next_send or self._end_sent:
            return None
        room = self.send_segment - 4
        number = sender.next_retransmission()
        if number is not None:
            sender.on_retransmission(number)
            payload = self.upper.refill(number, room)
        elif sender.may_send_new() and self.upper.has_data():
            filled = self.upper.fill(sender.vt_s, room)
            if filled is None:
                return None
            payload, number = filled, sender.on_new()
        else:
            return None
        lost_credit = self.upper.has_data() and not sender.may_send_new()
        last = not self.upper.has_data() and sender.next_retransmission() is None
        self._wants_poll = self._wants_poll or lost_credit or last
        begin_room = 24 if self.state is State.OPENING else 0
        if self._poll_due(now) and len(payload) + POLL_ROOM + begin_room <= room:
            self._wants_poll = False
            return self._with_poll(Type.SD, number % SPACE, now, payload)
        return Segment(Type.SD, number % SPACE, payload=payload)

    def _poll_due(self, now: float) -> bool:
        return now >= self._poll_time()

    def _poll_time(self) -> float:
        """When the next POLL is due (XSTP-10.2.1, 10.3, 10.4)."""
        sender = self.sender
        times = [max(self._heard, sender.last_poll) + KEEP_ALIVE]
        if self._wants_poll:
            times.append(sender.last_poll + sender.poll_interval() / 4)
        if sender.outstanding or sender.unanswered_since is not None:
            times.append(sender.last_poll + sender.poll_interval())
        return max(min(times), sender.last_poll + 0.005)

    def _poll(self, now: float) -> Segment | None:
        if self._end_sent or not self._poll_due(now):
            return None
        self._wants_poll = False
        return self._with_poll(Type(0), self.sender.vt_s % SPACE, now)

    def _end(self, now: float) -> Segment | None:
        drained = not self.sender.outstanding and not self.upper.has_data()
        if self.ending and not self._end_sent and drained and self.state is State.ESTABLISHED:
            self._end_sent, self._wait, self._retry_at = True, HANDSHAKE_TIMEOUT, now
        if not self._end_sent or self.self_ended or now < self._retry_at:
            return None
        self._retry_at = now + self._wait
        self._wait = min(self._wait * 2, HANDSHAKE_TIMEOUT * 8)
        if self.sender.unanswered_since is None:
            self.sender.unanswered_since = now
        return Segment(Type.END, self.sender.vt_s % SPACE, finish=self.incarnation)

    def timeout(self, now: float) -> float | None:
        """When `transmit` is to be called next, if nothing else happens."""
        if self.state in (State.LISTENING, State.CLOSED):
            return None
        sender, receiver = self.sender, self.receiver
        times = [self._heard + NO_RESPONSE]
        if not self._end_sent:
            times.append(self._poll_time())
        if self.state is State.OPENING or (self._end_sent and not self.self_ended):
            times.append(self._retry_at)
        if receiver.question:
            times.append(receiver.next_stat)
        due = receiver.ustat_time()
        if due is not None:
            times.append(due)
        new = sender.may_send_new() and self.upper.has_data()
        if not self._end_sent and (new or sender.next_retransmission() is not None):
            times.append(sender.next_send)
        return max(min(times), now)
