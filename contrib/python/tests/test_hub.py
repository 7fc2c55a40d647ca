"""Real terminals against the Python hub. Clients reach the terminal by SOCKS5."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bentpipe_peer.datagram import Limits, Suite
from bentpipe_peer.peer import HubPeer, default_limits
from bentpipe_peer.session import State
from conftest import Runner
from gateways import (RATE_BPS, Gateway, Pair, Server, content, digest, free_port, socks5,
                      terminal_configuration)
from impairment import Impairments, Proxy
from test_terminal import BAD, DOWN, UP, wait_for


@dataclass
class Setting:
    """A client of a real terminal, a proxy, the Python hub, and a server."""

    gateway: Gateway
    proxy: Proxy
    hub: HubPeer
    server: Server
    server_port: int
    socks_port: int

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await socks5(self.socks_port, ("127.0.0.1", self.server_port))

    async def transfer(self) -> None:
        """Both directions at once on one connection, by checksum."""
        reader, writer = await self.connect()
        writer.write(UP)
        writer.write_eof()
        down = await reader.read(-1)
        writer.close()
        await wait_for(lambda: bool(self.server.uploads))
        assert digest(down) == digest(DOWN)
        assert digest(self.server.uploads.pop()) == digest(UP)

    async def upload(self) -> None:
        """The upload alone."""
        reader, writer = await self.connect()
        writer.write(UP)
        writer.write_eof()
        await wait_for(lambda: bool(self.server.uploads))
        assert digest(self.server.uploads.pop()) == digest(UP)
        writer.close()

    def association(self) -> int:
        return self.hub.associations.terminals["boat"].association


@contextlib.asynccontextmanager
async def setting(directory: Path, impairments: Impairments, suite: Suite = Suite.NOISE,
                  demand_cookies: bool = False, limits: Limits | None = None
                  ) -> AsyncIterator[Setting]:
    pair, socks_port = Pair.new(suite), free_port(socket.SOCK_STREAM)
    hub, server = HubPeer(pair.hub_identity(), RATE_BPS, limits), Server(DOWN)
    hub.associations.demand_cookies = demand_cookies
    proxy = Proxy(await hub.start(), impairments)
    gateway = None
    try:
        await proxy.start()
        port = await server.start()
        gateway = Gateway(directory, "terminal",
                          terminal_configuration(pair, proxy.address, socks_port))
        await wait_for(lambda: any(connection.session.state is State.ESTABLISHED
                                   for connection in hub.connections.values()))
        yield Setting(gateway, proxy, hub, server, port, socks_port)
    finally:
        if gateway:
            gateway.stop()
        hub.close()
        server.close()
        proxy.close()


@pytest.mark.parametrize("suite", [Suite.NOISE, Suite.NULL])
@pytest.mark.parametrize("impairments", [Impairments(), BAD], ids=["clean", "impaired"])
def test_transfer(tmp_path: Path, run: Runner, suite: Suite, impairments: Impairments) -> None:
    async def test() -> None:
        async with setting(tmp_path, impairments, suite) as s:
            await s.transfer()
            assert not s.hub.connections["boat"].relay.errors

    run(test())


def test_many_connections(tmp_path: Path, run: Runner) -> None:
    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            s.server.download = content(100_000, 3)

            async def fetch() -> bytes:
                reader, writer = await s.connect()
                writer.write_eof()
                try:
                    return await reader.read(-1)
                finally:
                    writer.close()

            for down in await asyncio.gather(*(fetch() for _ in range(10))):
                assert digest(down) == digest(s.server.download)
            await wait_for(lambda: not s.hub.connections["boat"].relay.streams)

    run(test())


def test_refusal(tmp_path: Path, run: Runner) -> None:
    """A server that refuses: the client's connection is reset, the session is not."""

    async def test() -> None:
        async with setting(tmp_path, Impairments()) as s:
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                reader, writer = await socks5(
                    s.socks_port, ("127.0.0.1", free_port(socket.SOCK_STREAM)))
                await reader.readexactly(1)
            await s.transfer()

    run(test())


def test_cookie(tmp_path: Path, run: Runner) -> None:
    """A hub that demands cookies gets them (ASC-7.3)."""

    async def test() -> None:
        async with setting(tmp_path, Impairments(), demand_cookies=True) as s:
            assert s.hub.associations.cookies_sent
            await s.transfer()

    run(test())


def test_key_renewal(tmp_path: Path, run: Runner) -> None:
    """An Unknown, though not true, has the terminal renew its keys in mid-transfer; the
    association and all in it go on (ASC-2.6, 4.2, 8.2)."""

    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            before, keys = s.association(), s.hub.associations.terminals["boat"].keys[0]
            transfer = asyncio.create_task(s.transfer())
            await asyncio.sleep(0.4)
            while s.hub.associations.terminals["boat"].keys[0] is keys:
                s.hub.provoke_renewal()  # It may be lost.
                await asyncio.sleep(0.3)
            await transfer
            assert s.association() == before

    run(test())


def test_grant(tmp_path: Path, run: Runner) -> None:
    """The terminal sends no faster than it is granted, and says what waits (RLY-7.1, 7.2)."""

    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            s.server.download = b""
            connection = s.hub.connections["boat"]
            connection.relay.grant_rate(4_000_000)
            connection.wake()
            await asyncio.sleep(0.2)
            began = asyncio.get_running_loop().time()
            await s.upload()
            took = asyncio.get_running_loop().time() - began
            assert took > len(UP) * 8 / 4e6
            need = connection.relay.need
            assert need and need.number > 1

    run(test())


def test_address_change(tmp_path: Path, run: Runner) -> None:
    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            before = s.association()
            transfer = asyncio.create_task(s.transfer())
            await asyncio.sleep(0.4)
            s.proxy.change_address()
            await transfer
            assert len(s.hub.addresses) > 1 and s.association() == before

    run(test())


def test_blackout(tmp_path: Path, run: Runner) -> None:
    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            before = s.association()
            transfer = asyncio.create_task(s.transfer())
            await asyncio.sleep(0.4)
            s.proxy.impairments = Impairments(blackout=True)
            await asyncio.sleep(2)
            assert not transfer.done()
            s.proxy.impairments = BAD
            await transfer
            assert s.association() == before

    run(test())


def test_hub_restart(tmp_path: Path, run: Runner) -> None:
    """A hub that has lost everything says Unknown; the terminal starts again (ASC-4)."""

    async def test() -> None:
        async with setting(tmp_path, Impairments()) as s:
            await s.transfer()
            before = s.association()
            reader, writer = await s.connect()
            await reader.readexactly(1000)
            s.hub.restart()
            with contextlib.suppress(ConnectionError):
                assert len(await reader.read(-1)) < len(DOWN)
            await wait_for(lambda: "boat" in s.hub.connections)
            assert s.association() != before
            await s.transfer()

    run(test())


def test_stop(tmp_path: Path, run: Runner) -> None:
    """A terminal that is asked to stop finishes what runs."""

    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            transfer = asyncio.create_task(s.transfer())
            await asyncio.sleep(0.4)
            assert not transfer.done()
            s.gateway.process.terminate()
            await transfer
            await wait_for(lambda: s.gateway.process.poll() is not None)
            assert s.gateway.process.returncode == 0

    run(test())


def test_end(tmp_path: Path, run: Runner) -> None:
    """A terminal that stops ends its session by GOAWAY and END (XSTP-6.4, RLY-10.3)."""

    async def test() -> None:
        async with setting(tmp_path, Impairments()) as s:
            await s.transfer()
            connection = s.hub.connections["boat"]
            s.gateway.process.terminate()
            await wait_for(lambda: connection.session.state is State.CLOSED, 3)
            assert connection.session.peer_ended and connection.session.reason == ""
            assert connection.relay.peer_leaves
            await wait_for(lambda: s.gateway.process.poll() is not None)
            assert s.gateway.process.returncode == 0

    run(test())


def test_hub_leaves(tmp_path: Path, run: Runner) -> None:
    """A hub that ends its session in mid-transfer: what runs is finished, and the terminal begins
    the next session in the same association (RLY-10.1, 10.3, 10.4)."""

    async def test() -> None:
        async with setting(tmp_path, BAD) as s:
            before, connection = s.association(), s.hub.connections["boat"]
            await asyncio.sleep(1)  # After a shorter session there is a new association.
            transfer = asyncio.create_task(s.transfer())
            await asyncio.sleep(0.4)
            assert not transfer.done()
            connection.relay.go_away()
            connection.wake()
            await transfer
            await wait_for(lambda: s.hub.connections["boat"] is not connection)
            assert connection.session.reason == ""
            await s.transfer()
            assert s.association() == before

    run(test())


@pytest.mark.parametrize("suite", [Suite.NOISE, Suite.NULL])
def test_last_release(tmp_path: Path, run: Runner, suite: Suite) -> None:
    """A hub of the release before: its Welcome has no capabilities (ASC-2.10, RLY-10.7)."""

    async def test() -> None:
        async with setting(tmp_path, BAD, suite, limits=default_limits(capabilities=0)) as s:
            await s.transfer()
            connection = s.hub.connections["boat"]
            assert connection.relay.peer.capabilities and not connection.relay.errors
            # A RST that is lost is not repeated.
            s.proxy.impairments = Impairments()
            s.gateway.process.terminate()
            await wait_for(lambda: connection.session.state is State.CLOSED, 3)
            assert connection.session.reason == "reset by the peer"
            assert not connection.relay.draining

    run(test())


def test_another_version(tmp_path: Path, run: Runner) -> None:
    """A hub of version 2 says so, and the terminal's log names it (ASC-1.5)."""

    async def test() -> None:
        async with setting(tmp_path, Impairments()) as s:
            s.hub.associations.versions = (2, 3)
            s.hub.restart()
            await wait_for(lambda: "understands versions 2 to 3" in s.gateway.log.read_text(), 30)
            assert s.hub.associations.unknown_versions == {1}

    run(test())
