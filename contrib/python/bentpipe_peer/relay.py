"""The relay: streams over one session (docs/spec/relay.md). It is the `Upper` of a `Session`.

Policies are simple: streams take turns whatever their priority (RLY-3.2 is left out), each stream
has a window of its own from the start (RLY-4.5 allows that), and IP packets (RLY-6) are handed up
where they come whole.
"""

from __future__ import annotations

from typing import Callable

from . import frames
from .datagram import ORDERLY_END, Limits
from .frames import (Accept, BadOpening, Compressed, Contexts, Credit, Datagram, Define, Families,
                     Frame, GoAway, Grant, Invalid, Key, Need, Opening, Piece, Reason, Received,
                     Reset, Shared, StreamFrame, Unknown, Unreadable)
from .stream import Stream
from .wire import Malformed, extend

NEED_DISTANCE = 0.25
FULL_FRAME = 64
"""Room below which a packet is closed rather than filled up with data."""


class Relay:
    """One end. `on_open` is called with each stream that the peer opens."""

    def __init__(self, is_hub: bool, own: Limits, peer: Limits, window: int,
                 clock: Callable[[], float]) -> None:
        self.is_hub, self.own, self.peer, self.window, self.clock = is_hub, own, peer, window, clock
        self.streams: dict[Key, Stream] = {}
        self.errors: dict[str, int] = {}
        self.on_open: Callable[[Stream], None] = lambda stream: None
        self.on_datagram: Callable[[bytes], None] = lambda packet: None
        self.grant: Grant | None = None
        """At a terminal the newest GRANT that came, at a hub the newest that was sent."""
        self.need: Need | None = None
        """At a hub the newest NEED that came."""
        self.families: Families | None = None
        self.draining = False
        """No new streams are opened: GOAWAY was sent, or the peer has ended its direction."""
        self.peer_opened: int | None = None
        """Streams that the peer has opened in all, by its GOAWAY."""
        self.peer_leaves = False
        self.unreadable: int | None = None
        """First octet of a frame that cannot be read: the session cannot go on (RLY-1.8)."""
        self.unknown_frames: list[int] = []
        """First octets of extension frames that were skipped."""
        self._ended_early = False
        self._next_number = 0
        self._peer_numbers: set[int] = set()
        self._control: list[Frame] = []
        self._packets: dict[int, list[Frame]] = {}
        self._shared_sent = 0
        self._shared_granted = peer.shared_credit
        self._shared_came = self._shared_returned = self._shared_announced = 0
        self._need_number = 0
        self._need_at = -1.0
        self._need_was_zero = True

    # The layer above.

    def open(self, opening: Opening, first_bytes: bytes = b"") -> Stream:
        """Opens a stream. Its opening frame carries what can go at once (RLY-2.1)."""
        if self.draining:
            raise ConnectionAbortedError("the session is ending")
        key = (self.is_hub, self._next_number)
        self._next_number += 1
        stream = self._new_stream(key, opened_here=True)
        stream.opening = opening
        stream.write(first_bytes)
        return stream

    def accept(self, stream: Stream) -> None:
        """Tells the peer that its stream is connected (RLY-2.2)."""
        self._control.append(Accept(stream.key))

    def reset(self, stream: Stream, reason: int) -> None:
        """Cuts off both halves (RLY-2.4)."""
        if stream.reset_sent or stream.key not in self.streams:
            return
        if stream.opened_here and not stream.opening_sent:
            del self.streams[stream.key]
            return
        stream.reset_reason = reason if stream.reset_reason is None else stream.reset_reason
        self._send_reset(stream, reason)

    def grant_rate(self, rate_bps: int) -> None:
        """At a hub: tells the terminal what it may send (RLY-7.1)."""
        number = self.grant.number + 1 if self.grant else 1
        self.grant = Grant(number, rate_bps // 1000)
        self._control.append(self.grant)

    @property
    def ends_in_order(self) -> bool:
        """Whether both sides have the capability (ASC-2.10)."""
        return bool(self.own.capabilities & self.peer.capabilities & ORDERLY_END)

    def go_away(self, leaves: bool = False) -> None:
        """Announces that this side opens no more streams (RLY-10.1)."""
        if not self.draining:
            self.draining = True
            self._control.append(GoAway(self._next_number, leaves))

    def on_peer_ended(self) -> None:
        """The peer has sent END: what it would still have to send will not come (RLY-10.5)."""
        self.draining = self._ended_early = True
        for stream in list(self.streams.values()):
            if stream.inward.final is None or stream.inward.expected < stream.inward.final:
                self.reset(stream, Reason.ABORTED)
                self._forget(stream, stream.inward.shared_used())
                stream.on_change()

    @property
    def finished(self) -> bool:
        """Whether this side will never have to send a frame again (RLY-10.3)."""
        waiting = self.streams or self._control or any(
            not isinstance(frame, StreamFrame)
            for sent in self._packets.values() for frame in sent)
        if waiting:
            return False
        if self._ended_early:
            return True
        numbers = self.peer_opened
        return self.draining and numbers is not None and len(self._peer_numbers) == numbers

    def consumed(self, stream: Stream) -> None:
        """To be called after `Stream.read`: announces credit and forgets what is over."""
        self._forget_if_over(stream)

    def _new_stream(self, key: Key, opened_here: bool) -> Stream:
        stream = Stream(key, opened_here, self.own.stream_credit, self.peer.stream_credit,
                        self.window)
        self.streams[key] = stream
        return stream

    def _send_reset(self, stream: Stream, reason: int) -> None:
        stream.reset_sent = True
        stream.outward.waiting.clear()
        half = stream.outward
        self._control.append(Reset(stream.key, half.sent, half.shared_used, reason))

    # Sending: the session's `Upper`.

    def _shared_left(self) -> int:
        return self._shared_granted - self._shared_sent

    def _sendable(self) -> Stream | None:
        """The next stream whose turn it is."""
        left = self._shared_left()
        for stream in self.streams.values():
            if not stream.reset_sent and (stream.outward.wants_frame(left)
                                          or stream.opened_here and not stream.opening_sent):
                return stream
        return None

    def has_data(self) -> bool:
        self._announce()
        return bool(self._control) or self._sendable() is not None

    def fill(self, number: int, room: int) -> bytes | None:
        sent: list[Frame] = []
        out = b""
        self._announce()
        while self._control and len(out) + 24 <= room:
            sent.append(self._control.pop(0))
            out += frames.encode(sent[-1])
        need = self._need()
        if need and len(out) + 24 <= room:
            sent.append(need)
            out += frames.encode(need)
        while room - len(out) >= FULL_FRAME:
            stream = self._sendable()
            if stream is None:
                break
            frame = self._stream_frame(stream, room - len(out))
            sent.append(frame)
            out += frames.encode(frame, last=len(frames.encode(frame, last=True)) + len(out) == room)
            self.streams[stream.key] = self.streams.pop(stream.key)  # To the end of the turns.
        if not sent:
            return None
        self._packets[number] = sent
        return out

    def _stream_frame(self, stream: Stream, room: int) -> StreamFrame:
        """Cuts the next STREAM frame of a stream; with its length it takes at most `room`."""
        half, opening = stream.outward, None
        if stream.opened_here and not stream.opening_sent:
            opening, stream.opening_sent = stream.opening, True
        offset = half.sent
        wide = offset >= 1 << 24 and opening is None
        bare = StreamFrame(stream.key, offset & 0xFFFF_FFFF, b"", wide, opening=opening)
        head = len(frames.encode(bare, last=True))
        allowance, shared = half.allowance(self._shared_left())
        available = min(len(half.waiting), allowance)
        if available >= room - head:
            available = room - head
        else:
            available = min(available, room - head - 2)
        data = bytes(half.waiting[:available])
        del half.waiting[:available]
        half.sent += len(data)
        if shared and data:
            half.shared_used += len(data)
            self._shared_sent += len(data)
        end = half.end_wanted and not half.waiting
        half.end_sent = half.end_sent or end
        half.unacknowledged += 1
        return StreamFrame(stream.key, offset & 0xFFFF_FFFF, data, wide, end,
                           shared and bool(data), opening)

    def refill(self, number: int, room: int) -> bytes:
        out = b""
        kept = []
        for frame in self._packets.get(number, []):
            if isinstance(frame, StreamFrame):
                stream = self.streams.get(frame.key)
                if stream is None or stream.reset_sent:
                    continue
            elif isinstance(frame, Need):
                frame = self._newest_need()
            elif isinstance(frame, Grant) and self.grant:
                frame = self.grant
            kept.append(frame)
            encoded = frames.encode(frame)
            if len(out) + len(encoded) > room:
                encoded = frames.encode(frame, last=True)
            out += encoded
        self._packets[number] = kept
        return out

    def acknowledged(self, number: int) -> None:
        for frame in self._packets.pop(number, []):
            if isinstance(frame, StreamFrame) and frame.key in self.streams:
                stream = self.streams[frame.key]
                stream.outward.unacknowledged -= 1
                self._forget_if_over(stream)
                stream.on_change()

    def _forget_if_over(self, stream: Stream) -> None:
        """Forgets a stream both of whose halves are over (RLY-2.3)."""
        if stream.outward.complete and stream.inward.complete:
            self._forget(stream, stream.inward.shared_used())

    def _forget(self, stream: Stream, shared_used: int) -> None:
        if self.streams.pop(stream.key, None):
            self._shared_came += shared_used
            self._shared_returned += shared_used

    # Credit and rates.

    def _announce(self) -> None:
        """Queues CREDIT and SHARED where enough has been consumed (RLY-4.6)."""
        for stream in self.streams.values():
            limit = None if stream.reset_reason is not None else stream.new_limit()
            if limit is not None and (stream.opening or not stream.opened_here):
                stream.inward.limit = limit
                self._control.append(Credit(stream.key, limit // 1024))
        returned = self._returned()
        if returned - self._shared_announced >= max(1024, self.own.shared_credit // 8):
            self._shared_announced = returned // 1024 * 1024
            self._control.append(Shared(returned // 1024))

    def _returned(self) -> int:
        return self._shared_returned + sum(s.inward.shared_returned() for s in self.streams.values())

    def write_note(self, room: int) -> bytes:
        entries: dict[int, int] = {}
        if self._shared_announced:
            entries[0] = self._shared_announced // 1024
        for stream in self.streams.values():
            limit = stream.inward.limit
            if limit is not None and stream.inward.final is None:
                entries[frames.note_key(stream.key)] = limit // 1024
        while len(note := frames.encode_note(entries)) > room:
            entries.popitem()
        return note

    def read_note(self, note: bytes) -> None:
        for key, value in frames.decode_note(note):
            if key == 0:
                self._on_shared(value)
                continue
            try:
                self._on_credit((bool((key - 1) & 1), (key - 1) >> 1), value)
            except Malformed as error:  # It is passed over alone.
                self._count(error)

    def _on_shared(self, returned: int) -> None:
        self._shared_granted = max(self._shared_granted,
                                   self.peer.shared_credit + returned * 1024)

    def _on_credit(self, key: Key, limit: int) -> None:
        """Takes a limit, also one that has overtaken the opening of its stream (RLY-2.1)."""
        stream = self._known(key)
        if stream:
            stream.outward.limit = max(stream.outward.limit or 0, limit * 1024)

    def _need(self) -> Need | None:
        """NEED, where the hub has granted a rate (RLY-7.2)."""
        if not self.grant or self.is_hub or self.clock() < self._need_at + NEED_DISTANCE:
            return None
        need = self._newest_need()
        if need.waiting == 0 and self._need_was_zero:
            return None
        self._need_at, self._need_was_zero = self.clock(), need.waiting == 0
        return need

    def _newest_need(self) -> Need:
        self._need_number += 1
        waiting = sum(len(stream.outward.waiting) for stream in self.streams.values())
        return Need(self._need_number, -(-waiting // 1024))

    def rate_limit(self) -> float:
        """The rate that GRANT and the peer's limits allow, in bits per second (RLY-7.1)."""
        limits = [float("inf")]
        if self.grant and not self.is_hub:
            limits.append(max(self.grant.rate, 8) * 1000)
        if self.peer.receive_rate:
            limits.append(max(self.peer.receive_rate, 1000))
        return min(limits)

    # Receiving.

    def deliver(self, payload: bytes) -> None:
        try:
            for frame in frames.decode(payload):
                try:
                    self._on_frame(frame)
                except Malformed as error:  # It is passed over alone.
                    self._count(error)
        except Unreadable as error:  # What is behind it is lost (RLY-1.8).
            self.unreadable = error.first
            self._count(error)

    def _count(self, error: Malformed) -> None:
        self.errors[str(error)] = self.errors.get(str(error), 0) + 1

    def _on_frame(self, frame: Frame) -> None:
        match frame:
            case StreamFrame(key):
                self._on_stream(frame)
            case Accept(key):
                stream = self._known(key)
                if stream:
                    stream.accepted = True
                    stream.on_change()
            case Reset():
                self._on_reset(frame)
            case Credit(key, limit):
                self._on_credit(key, limit)
            case Shared(returned):
                self._on_shared(returned)
            case Datagram(packet):
                self.on_datagram(packet)
            case Piece():
                pass
            case Grant(number):
                if self.is_hub:
                    raise Malformed("a GRANT from a terminal")
                if not self.grant or number > self.grant.number:
                    self.grant = frame
            case Need(number):
                if not self.is_hub:
                    raise Malformed("a NEED from a hub")
                if not self.need or number > self.need.number:
                    self.need = frame
            case GoAway(opened, leaves):
                self.peer_leaves = self.peer_leaves or leaves
                if any(number >= opened for number in self._peer_numbers):
                    raise Malformed("a GOAWAY below a stream that was opened")
                self.peer_opened = opened
                self.go_away()
            case Received() | Define() | Compressed() | Contexts() | Invalid():
                # This peer has one path (RLY-12.8), and does not answer a DEFINE, so the gateway compresses
                # nothing (HDR-2.3).
                pass
            case Unknown(kind):
                self.unknown_frames.append(kind)
            case BadOpening(key):
                stream = self._known(key)
                if stream and stream.opening is None:
                    self.reset(stream, Reason.BAD_OPENING)
            case Families(number):
                if self.is_hub:
                    raise Malformed("FAMILIES from a terminal")
                if not self.families or number > self.families.number:
                    self.families = frame

    def _known(self, key: Key) -> Stream | None:
        """The stream of a frame, begun if the peer opens it; None if it is forgotten (2.5)."""
        stream = self.streams.get(key)
        if stream:
            return stream
        opened_by_hub, number = key
        if opened_by_hub == self.is_hub:
            if number >= self._next_number:
                raise Malformed("a stream that was never opened")
            return None
        if number in self._peer_numbers:
            return None
        if self._peer_numbers and number > max(self._peer_numbers) + 65_536:
            raise Malformed("a stream number too far ahead")
        if self.peer_opened is not None and number >= self.peer_opened:
            raise Malformed("a stream beyond the peer's GOAWAY")
        self._peer_numbers.add(number)
        stream = self._new_stream(key, opened_here=False)
        peers = sum(not other.opened_here for other in self.streams.values())
        if peers > self.own.streams:
            self.reset(stream, Reason.LIMIT)
        return stream

    def _on_stream(self, frame: StreamFrame) -> None:
        stream = self._known(frame.key)
        if stream is None:
            return
        if stream.opened_here:
            stream.accepted = True
        half = stream.inward
        bits = 32 if frame.wide else 24
        offset = frame.offset if not frame.wide else extend(frame.offset, bits, half.expected)
        if stream.reset_sent:
            if frame.shared:
                half.shared_end = max(half.shared_end, offset + len(frame.data))
            return
        try:
            half.take(offset, frame.data, frame.end, frame.shared)
            came = self._shared_came + sum(s.inward.shared_used() for s in self.streams.values())
            if came > self.own.shared_credit + self._shared_announced:
                raise Malformed("data beyond the shared credit")
        except Malformed as error:
            self._count(error)
            self.reset(stream, Reason.PROTOCOL)
            stream.on_change()
            return
        if frame.opening and stream.opening is None:
            stream.opening = frame.opening
            self.on_open(stream)
        stream.on_change()

    def _on_reset(self, frame: Reset) -> None:
        stream = self._known(frame.key)
        if stream is None:
            return
        if stream.reset_reason is None:
            stream.reset_reason = frame.reason
        if not stream.reset_sent:
            self._send_reset(stream, frame.reason)
        if stream.refused:
            stream.inward.ready.clear()
        self._forget(stream, frame.shared_used)
        stream.on_change()
