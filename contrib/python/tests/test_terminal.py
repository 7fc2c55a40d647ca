"""The Python terminal against a real hub."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bentpipe_peer import noise
from bentpipe_peer import frames
from bentpipe_peer.association import Identity, TerminalAssociation
from bentpipe_peer import suites
from bentpipe_peer.datagram import Limits, Suite
from bentpipe_peer.session import State
from bentpipe_peer.frames import Opening, Reason
from bentpipe_peer.peer import StreamIO, TerminalPeer, default_limits
from conftest import Runner
from gateways import (RATE_BPS, Gateway, Pair, Server, content, digest, free_port,
                      hub_configuration)
from impairment import Impairments, Proxy

BAD = Impairments(loss=0.05, duplication=0.03, reordering=0.05)
DOWN, UP = content(1_500_000, 1), content(1_000_000, 2)


@dataclass
class Setting:
    """A real hub behind a proxy, a server behind the hub, and the Python terminal."""

    directory: Path
    pair: Pair
    hub_address: tuple[str, int]
    hub: Gateway
    proxy: Proxy
    server: Server
    server_port: int
    terminal: TerminalPeer

    def open(self) -> StreamIO:
        return self.terminal.open(Opening("127.0.0.1", self.server_port))

    async def transfer(self) -> None:
        """Both directions at once on one stream, by checksum."""
        stream = self.open()
        down, _ = await asyncio.gather(read_all(stream), write_all(stream, UP))
        await wait_for(lambda: bool(self.server.uploads))
        assert digest(down) == digest(DOWN)
        assert digest(self.server.uploads.pop()) == digest(UP)

    async def end_in_mid_transfer(self) -> None:
        """Ends the session during a download, which loses nothing."""
        stream = self.open()
        stream.end()
        first = await stream.read()
        ended = asyncio.create_task(self.terminal.end(8))
        assert digest(first + await read_all(stream)) == digest(DOWN)
        assert await ended


async def read_all(stream: StreamIO) -> bytes:
    parts = []
    while part := await stream.read():
        parts.append(part)
    return b"".join(parts)


async def write_all(stream: StreamIO, data: bytes) -> None:
    for at in range(0, len(data), 65_536):
        await stream.write(data[at : at + 65_536])
    stream.end()


async def wait_for(condition: object, seconds: float = 8.0) -> None:
    """Waits until a condition holds; fails if it does not in time."""
    assert callable(condition)
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the condition did not come to hold")


@contextlib.asynccontextmanager
async def setting(directory: Path, impairments: Impairments, suite: Suite = Suite.NOISE,
                  others: tuple[bytes, ...] = (), limits: Limits | None = None,
                  rates: bool = True, link: str = "") -> AsyncIterator[Setting]:
    pair, address = Pair.new(suite), ("127.0.0.1", free_port(socket.SOCK_DGRAM))
    proxy, server = Proxy(address, impairments), Server(DOWN)
    terminal = None
    hub = Gateway(directory, "hub", hub_configuration(pair, address[1], others, rates, link))
    try:
        await hub.listening(address[1])
        await proxy.start()
        port = await server.start()
        terminal = TerminalPeer(pair.terminal_identity(), proxy.address, RATE_BPS, limits)
        await terminal.start()
        yield Setting(directory, pair, address, hub, proxy, server, port, terminal)
    finally:
        if terminal:
            terminal.close()
        server.close()
        proxy.close()
        hub.stop()


@pytest.mark.parametrize("suite", [Suite.NOISE, Suite.NULL])
@pytest.mark.parametrize("impairments", [Impairments(), BAD], ids=["clean", "impaired"])
def test_transfer(tmp_path: Path, run: Runner, suite: Suite, impairments: Impairments) -> None:
    async def test() -> None:
        async with setting(tmp_path, impairments, suite) as s:
            await s.transfer()
            if impairments is BAD:
                assert s.proxy.lost and s.proxy.duplicated and s.proxy.reordered
                assert s.terminal.dropped.get("replay")

    run(test())


def test_many_streams(tmp_path: Path, run: Runner) -> None:
    """Ten streams at once; each is complete, and all are forgotten afterwards (RLY-2.3)."""

    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            s.server.download = content(100_000, 3)
            streams = [s.open() for _ in range(10)]
            for stream in streams:
                stream.end()
            for down in await asyncio.gather(*map(read_all, streams)):
                assert digest(down) == digest(s.server.download)
            relay = s.terminal.connection.relay  # type: ignore[union-attr]
            await wait_for(lambda: not relay.streams)

    run(test())


def test_refusals_and_names(tmp_path: Path, run: Runner) -> None:
    """A refusal says why (RLY-1.7); a target may be a name (RLY-1.5)."""

    async def test() -> None:
        async with setting(tmp_path, Impairments()) as s:
            closed = s.terminal.open(Opening("127.0.0.1", free_port(socket.SOCK_STREAM)))
            with pytest.raises(ConnectionResetError):
                await closed.accepted()
            assert closed.stream.reset_reason == Reason.CONNECTION_REFUSED
            named = s.terminal.open(Opening("localhost", s.server_port))
            await named.accepted()
            named.end()
            assert digest(await read_all(named)) == digest(DOWN)

    run(test())


def test_reset(tmp_path: Path, run: Runner) -> None:
    """A RESET cuts off both halves and is answered; other streams go on (RLY-2.4)."""

    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            victim, other = s.open(), s.open()
            other.end()
            assert await victim.read()
            victim.reset(Reason.LOCAL)
            assert digest(await read_all(other)) == digest(DOWN)
            relay = s.terminal.connection.relay  # type: ignore[union-attr]
            await wait_for(lambda: not relay.streams)
            assert not relay.errors

    run(test())


def test_key_renewal(tmp_path: Path, run: Runner) -> None:
    """Keys are renewed in mid-transfer; the association and all in it go on (ASC-8)."""

    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            association = s.terminal.association
            before = association.association
            transfer = asyncio.create_task(s.transfer())
            for count in (1, 2):
                await asyncio.sleep(0.25)
                s.terminal.renew()
                await wait_for(lambda: association.renewals == count)
            await transfer
            assert association.association == before and association.generation == 1

    run(test())


def test_address_change(tmp_path: Path, run: Runner) -> None:
    """The terminal is heard from other addresses in mid-transfer (ASC-3.3)."""

    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            transfer = asyncio.create_task(s.transfer())
            await asyncio.sleep(0.3)
            s.proxy.change_address()
            await asyncio.sleep(0.3)
            await s.terminal.rebind()
            await transfer
            assert s.terminal.association.generation == 1

    run(test())


def test_blackout(tmp_path: Path, run: Runner) -> None:
    """Nothing passes for 2 s; then all goes on (XSTP-10.5)."""

    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            transfer = asyncio.create_task(s.transfer())
            await asyncio.sleep(0.3)
            s.proxy.impairments = Impairments(blackout=True)
            await asyncio.sleep(2)
            assert not transfer.done()
            s.proxy.impairments = BAD
            await transfer
            assert s.terminal.association.generation == 1

    run(test())


def test_cookies_during_a_flood(tmp_path: Path, run: Runner) -> None:
    """A hub that gets too many Hellos demands a cookie, and a terminal that has one gets in
    (ASC-7.2 to 7.4)."""

    async def test() -> None:
        async with setting(tmp_path, Impairments(delay=0.005)) as s:
            public = noise.public_key(s.pair.hub_private)
            flood = []
            for _ in range(150):
                forged = TerminalAssociation(
                    Identity(Suite.NOISE, secrets.token_bytes(32), public), default_limits())
                forged.connect(0)
                flood += forged.transmit(0)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.bind(("127.0.0.2", 0))  # Each address has its share of Cookies (ASC-7.7).
                for hello in flood:
                    sock.sendto(hello, s.hub_address)
            s.terminal.renew()
            await wait_for(lambda: s.terminal.association.renewals == 1)
            assert s.terminal.association.cookies_received
            await s.transfer()

    run(test())


def test_grants(tmp_path: Path, run: Runner) -> None:
    """Two terminals share the return link by what the hub grants them (RLY-7)."""

    async def test() -> None:
        second = noise.generate_key()
        async with setting(tmp_path, BAD, others=(second,)) as s:
            identity = Pair(Suite.NOISE, s.pair.hub_private, second).terminal_identity()
            other = TerminalPeer(identity, s.proxy.address, RATE_BPS)
            try:
                await other.start()
                streams = [terminal.open(Opening("127.0.0.1", s.server_port))
                           for terminal in (s.terminal, other)]
                data = content(2_000_000, 5)
                transfers = [asyncio.gather(read_all(stream), write_all(stream, data))
                             for stream in streams]
                relays = [terminal.connection.relay for terminal in (s.terminal, other)
                          if terminal.connection]
                await wait_for(lambda: all(relay.grant for relay in relays))
                assert all(relay.rate_limit() < RATE_BPS for relay in relays)
                await asyncio.gather(*transfers)
                await wait_for(lambda: len(s.server.uploads) == 2)
                assert {digest(upload) for upload in s.server.uploads} == {digest(data)}
            finally:
                other.close()

    run(test())


def test_hub_restart(tmp_path: Path, run: Runner) -> None:
    """A hub that has lost everything says Unknown; the terminal starts again (ASC-4)."""

    async def test() -> None:
        async with setting(tmp_path, Impairments()) as s:
            await s.transfer()
            s.hub.process.send_signal(signal.SIGKILL)
            s.hub.process.wait()
            s.hub = Gateway(tmp_path, "hub2", hub_configuration(s.pair, s.hub_address[1]))
            try:
                await s.hub.listening(s.hub_address[1])
                stale = s.open()
                await wait_for(lambda: s.terminal.association.generation == 2)
                assert s.terminal.association.unknowns_heeded == 1
                with pytest.raises(ConnectionError):
                    await stale.read()
                await s.transfer()
            finally:
                s.hub.stop()

    run(test())


def test_end(tmp_path: Path, run: Runner) -> None:
    """END in mid-transfer: it is answered, and the hub still delivers all it has (XSTP-6.4.1).
    The next session begins in the same association (RLY-10.3, 10.4)."""

    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            await s.end_in_mid_transfer()
            session = s.terminal.connection.session  # type: ignore[union-attr]
            await wait_for(lambda: session.state is State.CLOSED)
            assert session.reason == ""
            s.terminal.begin_anew()
            await s.transfer()
            assert s.terminal.association.generation == 1

    run(test())


@pytest.mark.parametrize("suite", [Suite.NOISE, Suite.NULL])
def test_last_release(tmp_path: Path, run: Runner, suite: Suite) -> None:
    """A terminal of the release before: its Hello has no capabilities, and it sends END in
    mid-transfer without GOAWAY, which loses nothing either (ASC-2.10, RLY-10.5, 10.7)."""

    async def test() -> None:
        limits = default_limits(capabilities=0)
        async with setting(tmp_path, BAD, suite, limits=limits) as s:
            assert s.terminal.association.peer_limits.capabilities  # type: ignore[union-attr]
            await s.transfer()
            await s.end_in_mid_transfer()
            assert not s.terminal.connection.relay.errors  # type: ignore[union-attr]

    run(test())


def test_reset_and_begin_anew(tmp_path: Path, run: Runner) -> None:
    """RST, and a BGN in place of a session that runs, end the streams and not the association
    (RLY-10.4, 10.6)."""

    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            for abort in (True, False):
                stream = s.open()
                await stream.read()
                if abort:
                    s.terminal.connection.session.abort()  # type: ignore[union-attr]
                    s.terminal.connection.wake()  # type: ignore[union-attr]
                    await asyncio.sleep(0.1)
                s.terminal.begin_anew()
                await s.transfer()
            assert s.terminal.association.generation == 1

    run(test())


def test_unreadable_frame(tmp_path: Path, run: Runner) -> None:
    """An opening that is not understood is refused; a frame that cannot be read ends the session
    and is named; an unknown frame with a length is skipped (RLY-1.5, 1.8, 1.10)."""

    async def test() -> None:
        async with setting(tmp_path, Impairments()) as s:
            odd = s.terminal.open(Opening("127.0.0.1", s.server_port, priority=3))
            with pytest.raises(ConnectionResetError):
                await odd.accepted()
            assert odd.stream.reset_reason == Reason.BAD_OPENING
            connection = s.terminal.connection
            assert connection
            connection.relay._control.append(frames.Unknown(0x1F, b"of a later release"))
            await s.transfer()
            connection.relay._control.append(frames.Unknown(0x0B, b""))
            stream = s.open()
            with pytest.raises(ConnectionError):
                await stream.accepted()
            assert connection.session.peer_reset_reason == 0x01_0B00

    run(test())


def test_without_arrivals(tmp_path: Path, run: Runner) -> None:
    """STATs without their A block do not stall a hub that finds its rate (XSTP-5.3.6)."""

    async def test() -> None:
        async with setting(tmp_path, Impairments(), rates=False) as s:
            s.terminal.connection.session.arrivals = False  # type: ignore[union-attr]
            stream = s.open()
            stream.end()
            assert digest(await read_all(stream)) == digest(DOWN)

    run(test())


def test_another_version(tmp_path: Path, run: Runner) -> None:
    """A Hello of version 2 is answered by a Version, and the hub's log names it (ASC-1.5)."""

    async def test() -> None:
        async with setting(tmp_path, Impairments()) as s:
            s.terminal.association.connect(0)
            hello = s.terminal.association.transmit(0)[0]
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.setblocking(False)
                sock.sendto(bytes([0x21]) + hello[1:], s.hub_address)
                loop = asyncio.get_running_loop()
                answer = await asyncio.wait_for(loop.sock_recv(sock, 100), 5)
            assert answer == suites.version(bytes([0x21]) + hello[1:], 1, 1)
            assert len(answer) < len(hello)
            await wait_for(lambda: "version 2" in s.hub.log.read_text())

    run(test())


def test_repair(run: Runner, tmp_path: Path) -> None:
    """The hub sends repair symbols at the end of its flights, and what was lost there is
    recovered without a retransmission (XSTP-15)."""

    async def test() -> None:
        async with setting(tmp_path, BAD, link="repair = 50\n") as s:
            s.server.download = DOWN[:40_000]
            repairer = s.terminal.connection.session.repairer  # type: ignore[union-attr]
            assert repairer
            for _ in range(60):
                stream = s.open()
                stream.end()
                assert digest(await read_all(stream)) == digest(DOWN[:40_000])
                if repairer.recovered >= 5:
                    return
            raise AssertionError(f"{repairer.recovered} packets were recovered")

    run(test())
