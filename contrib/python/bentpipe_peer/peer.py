"""Terminal and hub on real sockets, with asyncio: UDP to each other, TCP from hub to servers."""

from __future__ import annotations

import asyncio
from typing import Callable

from . import suites
from .association import HubAssociations, HubTerminal, Identity, Payload, TerminalAssociation
from .datagram import CAPABILITIES, OVERHEAD, REPAIR, Header, Kind, Limits
from .frames import Opening, Reason
from .relay import Relay
from .repair import Repairer
from .session import Session, State
from .stream import Stream
from .wire import Malformed

Address = tuple[str, int]
IP_UDP = 28
"""Octets of IPv4 and UDP around a datagram."""
UDP_PAYLOAD = 1200 - IP_UDP
"""The path MTU is not searched for: the size that RLY-5.2 begins with is kept."""
WINDOW = 1 << 20
WAITING = 1 << 16


UNREADABLE = 1
"""Code of a RST for a frame that cannot be read; the frame's first octet follows (RLY-10.6)."""


def default_limits(receive_rate: int = 0, capabilities: int = CAPABILITIES) -> Limits:
    """What this implementation announces. Without capabilities it is a peer of the last release."""
    return Limits(UDP_PAYLOAD, streams=1024, stream_credit=65_536, shared_credit=262_144,
                  receive_rate=receive_rate, capabilities=capabilities)


class StreamIO:
    """A stream for coroutines."""

    def __init__(self, connection: "Connection", stream: Stream) -> None:
        self.connection, self.stream = connection, stream
        self._changed = asyncio.Event()
        stream.on_change = self._changed.set

    async def _wait(self) -> None:
        self.connection.wake()
        self._changed.clear()
        await self._changed.wait()

    async def write(self, data: bytes) -> None:
        """Queues bytes; waits while too many are queued. Raises `ConnectionError` on RESET."""
        self.stream.write(data)
        while len(self.stream.outward.waiting) > WAITING and self.stream.reset_reason is None:
            await self._wait()
        self.connection.wake()
        self._check()

    def end(self) -> None:
        """Ends the own half."""
        self.stream.end()
        self.connection.wake()

    async def read(self) -> bytes:
        """Returns bytes, or none at the end. Raises `ConnectionError` on RESET."""
        while not self.stream.inward.ready and not self.stream.inward.complete:
            self._check()
            await self._wait()
        data = self.stream.read()
        self.connection.relay.consumed(self.stream)
        self.connection.wake()
        return data

    async def accepted(self) -> None:
        """Waits for ACCEPT. Raises `ConnectionError` on RESET."""
        while not self.stream.accepted:
            self._check()
            await self._wait()

    async def over(self) -> None:
        """Waits until the own half is acknowledged."""
        while not self.stream.outward.complete:
            self._check()
            await self._wait()

    def reset(self, reason: int) -> None:
        """Cuts the stream off."""
        self.connection.relay.reset(self.stream, reason)
        self.connection.wake()

    def _check(self) -> None:
        if self.stream.reset_reason is not None:
            raise ConnectionResetError(f"reset, reason {self.stream.reset_reason}")
        if self.connection.session.state is State.CLOSED:
            raise ConnectionAbortedError("the session is over")


class Connection:
    """A session and its relay inside one association."""

    def __init__(self, is_hub: bool, own: Limits, peer: Limits, rate_bps: float,
                 send: Callable[[bytes, Kind], None], incarnation: int | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.relay = Relay(is_hub, own, peer, WINDOW, loop.time)
        # One segment is the payload of one Data, so its largest size follows from UDP's.
        self.session = Session(not is_hub, self.relay, own.udp_payload - OVERHEAD,
                               min(UDP_PAYLOAD, peer.udp_payload) - OVERHEAD, rate_bps, loop.time(),
                               incarnation)
        if own.capabilities & peer.capabilities & REPAIR:
            self.session.repairer = Repairer()
        self.rate_bps = rate_bps
        self._send, self._loop = send, loop
        self._timer: asyncio.TimerHandle | None = None
        self._woken = False
        self.is_first = True
        """Whether it is the first session in its association."""
        self.begun: tuple[int, int] | None = None
        """The place of the peer's BGN or BGNAK, where it is not."""

    def _is_earlier(self, payload: Payload) -> bool:
        """Whether a segment belongs to an earlier session of the association (RLY-10.8)."""
        if self.is_first or payload.data[0] & 0xB0:
            return False
        return self.begun is None or payload.order < self.begun

    def receive(self, payload: Payload) -> None:
        """Takes what a sealed datagram contained."""
        if payload.kind is Kind.PROBE:
            if len(payload.data) >= 4:
                size = payload.datagram_octets.to_bytes(4, "big")
                self._send(payload.data[:4] + size, Kind.PROBE_ACK)
        elif payload.kind is Kind.DATA and payload.data and not self._is_earlier(payload):
            was_open = not self.session.peer_ended
            self.session.receive(payload.data, payload.datagram_octets + IP_UDP, self._loop.time())
            if self.begun is None and self.session.state is State.ESTABLISHED:
                self.begun = payload.order
            if was_open and self.session.peer_ended:
                self.relay.on_peer_ended()
            if self.relay.unreadable is not None:
                self.session.abort(UNREADABLE << 16 | self.relay.unreadable << 8)
            self.wake()

    def wake(self) -> None:
        """Sends what is due, soon."""
        if not self._woken:
            self._woken = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._woken = False
        now = self._loop.time()
        self.session.sender.rate_bps = min(self.rate_bps, self.relay.rate_limit())
        if self.relay.finished:
            self.session.end()
        while (segment := self.session.transmit(now)) is not None:
            self._send(segment, Kind.DATA)
        if self._timer:
            self._timer.cancel()
        due = self.session.timeout(now)
        self._timer = self._loop.call_at(due, self.wake) if due is not None else None
        if self.session.state is State.CLOSED:
            self._release()

    def close(self) -> None:
        """Stops all timers: the association is gone."""
        if self._timer:
            self._timer.cancel()
        self.session.state = State.CLOSED
        self._release()

    def _release(self) -> None:
        for stream in list(self.relay.streams.values()):
            stream.on_change()


class TerminalPeer(asyncio.DatagramProtocol):
    """A terminal: keeps an association with a hub and opens streams."""

    def __init__(self, identity: Identity, hub: Address, rate_bps: float,
                 limits: Limits | None = None, renewal_age: float = 120.0) -> None:
        self.limits = limits or default_limits()
        self.association = TerminalAssociation(identity, self.limits, renewal_age)
        self.hub, self.rate_bps = hub, rate_bps
        self.connection: Connection | None = None
        self.dropped: dict[str, int] = {}
        self._generation = 0
        self._established = asyncio.Event()
        self._transport: asyncio.DatagramTransport | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Binds a socket and returns once there is an association; `Connection` begins then."""
        await self.rebind()
        self.association.connect(self._now())
        self._handshake()
        await self._established.wait()

    async def rebind(self) -> None:
        """Takes another local port, as a terminal whose address changes does."""
        old = self._transport
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self,
                                                                 local_addr=("127.0.0.1", 0))
        if old:
            old.close()

    def open(self, opening: Opening, first_bytes: bytes = b"") -> StreamIO:
        """Opens a stream."""
        assert self.connection is not None
        stream = self.connection.relay.open(opening, first_bytes)
        self.connection.wake()
        return StreamIO(self.connection, stream)

    async def end(self, timeout: float = 5.0) -> bool:
        """Ends the session in order; returns whether ENDAK came (XSTP-6.4, RLY-10).

        Without the capability END goes once this side has nothing to send, as XSTP alone allows.
        """
        assert self.connection is not None
        session = self.connection.session
        if self.connection.relay.ends_in_order:
            self.connection.relay.go_away()
        else:
            session.end()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while not session.self_ended and loop.time() < deadline:
            self.connection.wake()
            await asyncio.sleep(0.02)
        return session.self_ended

    def close(self) -> None:
        """Closes socket and timers."""
        if self.connection:
            self.connection.close()
        if self._timer:
            self._timer.cancel()
        if self._transport:
            self._transport.close()

    def renew(self) -> None:
        """Renews the keys now (ASC-8.1)."""
        self.association.connect(self._now())
        self._handshake()

    def datagram_received(self, data: bytes, addr: Address) -> None:
        try:
            payload = self.association.receive(data, self._now())
        except Malformed as error:
            self.dropped[str(error)] = self.dropped.get(str(error), 0) + 1
            return
        self._handshake()
        if self._generation != self.association.generation:
            self._generation = self.association.generation
            self._begin()
        elif payload and self.connection:
            self.connection.receive(payload)

    def begin_anew(self) -> None:
        """Begins another session in the same association (RLY-10.4)."""
        self._begin()
        assert self.connection
        self.connection.is_first = False

    def _begin(self) -> None:
        """A new association: its session begins at once, with a BGN from the terminal."""
        assert self.association.peer_limits
        incarnation = None
        if self.connection:
            incarnation = (self.connection.session.incarnation + 1) % (1 << 32)
            self.connection.close()
        self.connection = Connection(False, self.limits, self.association.peer_limits,
                                     self.rate_bps, self._seal, incarnation)
        self.connection.wake()
        self._established.set()

    def _seal(self, payload: bytes, kind: Kind) -> None:
        datagram = self.association.seal(payload, kind)
        if datagram and self._transport and not self._transport.is_closing():
            self._transport.sendto(datagram, self.hub)

    def _handshake(self) -> None:
        if not self._transport or self._transport.is_closing():
            return
        for datagram in self.association.transmit(self._now()):
            self._transport.sendto(datagram, self.hub)
        if self._timer:
            self._timer.cancel()
        due = self.association.timeout()
        if due is not None:
            self._timer = asyncio.get_running_loop().call_at(due, self._handshake)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class HubPeer(asyncio.DatagramProtocol):
    """A hub: takes terminals, and connects their streams on by TCP."""

    def __init__(self, identity: Identity, rate_bps: float, limits: Limits | None = None) -> None:
        self.limits = limits or default_limits()
        self.associations = HubAssociations(identity, self.limits)
        self.rate_bps = rate_bps
        self.connections: dict[str, Connection] = {}
        self.addresses: set[Address] = set()
        self.dropped: dict[str, int] = {}
        self._running: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._transport: asyncio.DatagramTransport | None = None

    async def start(self, listen: Address = ("127.0.0.1", 0)) -> Address:
        """Binds; returns the address."""
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=listen)
        address: Address = self._transport.get_extra_info("sockname")
        return address

    def close(self) -> None:
        """Closes socket, timers and tasks."""
        for connection in self.connections.values():
            connection.close()
        for task in self._tasks:
            task.cancel()
        if self._transport:
            self._transport.close()

    def restart(self) -> None:
        """Forgets all associations, as a restart would."""
        for terminal in list(self.associations.terminals.values()):
            self.associations.forget(terminal)
        for connection in self.connections.values():
            connection.close()
        self.connections.clear()
        self._running.clear()

    def provoke_renewal(self) -> None:
        """Sends each terminal an Unknown for the last datagram it sent: it renews its keys."""
        for terminal in self.associations.terminals.values():
            keys = terminal.keys[0]
            last = Header(Kind.DATA, keys.own_index, keys.highest & 0xFFFF_FFFF).encode()
            self._send(suites.unknown(last + bytes(16)), terminal.address)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        now = asyncio.get_running_loop().time()
        self.associations.expire(now)
        try:
            terminal, payload, answer = self.associations.receive(data, addr, now)
        except Malformed as error:
            self.dropped[str(error)] = self.dropped.get(str(error), 0) + 1
            return
        if answer:
            self._send(answer, addr)
        if terminal and payload:
            self.addresses.add(terminal.address)
            connection = self._connection(terminal)
            if payload.kind is Kind.DATA and connection.session.begins_anew(payload.data):
                del self._running[terminal.name]
                connection = self._connection(terminal)
                connection.is_first = False
            connection.receive(payload)

    def _send(self, datagram: bytes, address: Address) -> None:
        if self._transport and not self._transport.is_closing():
            self._transport.sendto(datagram, address)

    def _connection(self, terminal: HubTerminal) -> Connection:
        """The connection of a terminal; a new one for a new association."""
        name = terminal.name
        if self._running.get(name) != terminal.association:
            if name in self.connections:
                self.connections[name].close()
            self._running[name] = terminal.association
            connection = Connection(
                True, self.limits, terminal.peer_limits, self.rate_bps,
                lambda payload, kind: self._send(terminal.seal(payload, kind), terminal.address))
            connection.relay.on_open = lambda stream: self._spawn(connection, stream)
            self.connections[name] = connection
        return self.connections[name]

    def _spawn(self, connection: Connection, stream: Stream) -> None:
        task = asyncio.get_running_loop().create_task(_serve(connection, stream))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _serve(connection: Connection, stream: Stream) -> None:
    """Connects a stream on to its target and carries both directions."""
    io = StreamIO(connection, stream)
    opening = stream.opening
    assert opening is not None
    try:
        reader, writer = await asyncio.open_connection(opening.host, opening.port)
    except ConnectionRefusedError:
        io.reset(Reason.CONNECTION_REFUSED)
        return
    except OSError:
        io.reset(Reason.REFUSED)
        return
    connection.relay.accept(stream)
    connection.wake()
    try:
        await asyncio.gather(_to_server(io, writer), _from_server(io, reader))
        await io.over()
    except ConnectionError:
        io.reset(Reason.ABORTED)
    finally:
        writer.close()


async def _to_server(io: StreamIO, writer: asyncio.StreamWriter) -> None:
    while data := await io.read():
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _from_server(io: StreamIO, reader: asyncio.StreamReader) -> None:
    while data := await reader.read(WAITING):
        await io.write(data)
    io.end()
