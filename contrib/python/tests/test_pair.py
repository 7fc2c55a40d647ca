"""Both Python ends against each other, and parts of them alone: no gateway is needed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from bentpipe_peer import noise
from bentpipe_peer.datagram import Header, Kind, Suite
from bentpipe_peer.frames import Opening
from bentpipe_peer.peer import HubPeer, TerminalPeer
from bentpipe_peer.receiver import Question, Receiver
from bentpipe_peer.repair import SYMBOLS, Repairer, repair_symbol
from bentpipe_peer.segment import Stat, Ustat
from bentpipe_peer.sender import Sender
from bentpipe_peer.suites import REPLAY_WINDOW, KeyPair, NoiseCipher
from bentpipe_peer.wire import Malformed, Reader, extend, put_varint
from conftest import Runner
from gateways import RATE_BPS, Pair, Server, content, digest
from impairment import Impairments, Proxy
from test_terminal import UP, read_all, wait_for, write_all

DOWN = content(600_000, 4)
WORSE = Impairments(loss=0.15, duplication=0.05, reordering=0.1)


@contextlib.asynccontextmanager
async def pair(impairments: Impairments, suite: Suite = Suite.NOISE, renewal_age: float = 120.0
               ) -> AsyncIterator[tuple[TerminalPeer, HubPeer, Server, int]]:
    keys = Pair.new(suite)
    hub, server = HubPeer(keys.hub_identity(), RATE_BPS), Server(DOWN)
    proxy = Proxy(await hub.start(), impairments)
    await proxy.start()
    port = await server.start()
    terminal = TerminalPeer(keys.terminal_identity(), proxy.address, RATE_BPS,
                            renewal_age=renewal_age)
    try:
        await terminal.start()
        yield terminal, hub, server, port
    finally:
        terminal.close()
        hub.close()
        server.close()
        proxy.close()


@pytest.mark.parametrize("suite", [Suite.NOISE, Suite.NULL])
def test_transfer_with_renewals(run: Runner, suite: Suite) -> None:
    """Keys are renewed by their age, again and again, while much is lost (ASC-8.1)."""

    async def test() -> None:
        async with pair(WORSE, suite, renewal_age=0.5) as (terminal, _, server, port):
            wanted = 2 if suite is Suite.NOISE else 0
            while True:
                stream = terminal.open(Opening("127.0.0.1", port))
                down, _ = await asyncio.gather(read_all(stream), write_all(stream, UP))
                await wait_for(lambda: bool(server.uploads))
                assert digest(down) == digest(DOWN) and digest(server.uploads.pop()) == digest(UP)
                if terminal.association.renewals >= wanted:
                    break
            assert terminal.association.generation == 1
            assert terminal.connection and terminal.connection.session.sender.retransmissions

    run(test())


def test_end_in_mid_transfer(run: Runner) -> None:
    """The terminal's direction ends; the hub's goes on to its end (XSTP-6.4.1)."""

    async def test() -> None:
        async with pair(WORSE) as (terminal, hub, _, port):
            stream = terminal.open(Opening("127.0.0.1", port))
            stream.end()
            first = await stream.read()
            ended = asyncio.create_task(terminal.end(15))
            assert digest(first + await read_all(stream)) == digest(DOWN)
            assert await ended
            assert hub.connections["boat"].session.peer_ended
            assert terminal.association.generation == 1

    run(test())


def test_extend() -> None:
    """The value nearest to the expected one, across the turn of the low bits (ASC-3.1)."""
    assert extend(5, 24, 0) == 5
    assert extend(0xFFFFFF, 24, 0) == 0xFFFFFF  # There is none below zero.
    assert extend(1, 24, 0xFFFFFF) == 1 << 24 | 1
    assert extend(0xFFFFFF, 24, 1 << 24) == 0xFFFFFF


def test_varints() -> None:
    """XSTP-3.1.2, RLY-1.8."""
    for value in (0, 127, 128, 16_383, 16_384, (1 << 32) - 1):
        assert Reader(put_varint(value)).varint(5, 32, shortest=True) == value
    with pytest.raises(Malformed):
        Reader(b"\x81\x00").varint(5, 32, shortest=True)
    assert Reader(b"\x81\x00").varint(9, 63, shortest=False) == 1
    with pytest.raises(Malformed):
        Reader(put_varint(1 << 32)).varint(5, 32, shortest=True)


def test_replay_window() -> None:
    """Each counter is accepted once, and none that is 4,032 or more behind (ASC-3.2)."""
    cipher = NoiseCipher(bytes(range(32)))
    sending = KeyPair(1, 2, cipher, cipher, 0.0)
    receiving = KeyPair(2, 1, cipher, cipher, 0.0)
    datagrams = [sending.seal(Kind.DATA, b"%d" % number) for number in range(REPLAY_WINDOW + 2)]

    def open_(number: int) -> tuple[bytes, bool]:
        return receiving.open(Header.decode(datagrams[number]), datagrams[number])

    assert open_(2) == (b"2", True)
    assert open_(1) == (b"1", False)
    with pytest.raises(Malformed):
        open_(1)
    assert open_(REPLAY_WINDOW + 1)[1]
    with pytest.raises(Malformed):
        open_(0)
    with pytest.raises(Malformed):
        open_(2)
    assert open_(3) == (b"3", False)


def test_stats_in_parts() -> None:
    """A list that is too long takes several STATs; each starts with a missing run (5.3.4)."""
    receiver = Receiver(1000)
    for number in (1, 3, 5, 7):
        receiver.on_data(number, 0.0)
    assert receiver.stat_lists(100) == [(0, (1,) * 8)]
    assert receiver.stat_lists(5) == [(0, (1,) * 4), (4, (1,) * 4)]
    receiver.on_poll(9, Question(0, 1, 0, 0))
    assert receiver.stat_lists(4)[-1] == (8, (1,))


def test_repair() -> None:
    """Any r symbols recover r of the packets that they cover (XSTP-15.1.3), and no fewer do."""
    payloads = [content(length, length) for length in range(0, 1280, 10)]
    for missing in ({127}, {0, 5, 77}, set(range(3, 3 + SYMBOLS))):
        repairer, base = Repairer(), (1 << 24) - 20
        assert repairer.on_symbol(base - 1, 1, 0, b"\0\0", base) == []
        for number, payload in enumerate(payloads):
            if number not in missing:
                repairer.on_packet(base + number, payload)
        recovered: list[tuple[int, bytes]] = []
        for key in range(120, 120 + len(missing)):
            assert not recovered
            symbol = repair_symbol(base, payloads, key % 128)
            recovered = repairer.on_symbol(base, len(payloads), key % 128, symbol, base)
        assert sorted(recovered) == [(base + number, payloads[number])
                                     for number in sorted(missing)]
    with pytest.raises(Malformed):
        repairer.on_symbol(base, 128, 5, b"\0\0", base)


def test_overtaken_ustat() -> None:
    """Its N(R) has no effect; what of its gaps is outstanding is sent again (XSTP-7.4.1)."""
    sender = Sender(1e6)
    for _ in range(10):
        sender.on_new()
    sender.on_poll(0.0)
    sender.on_stat(Stat(5, 0, 1, 100), 1.0)
    assert sender.on_ustat(Ustat(3, 0, (1, 2, 2))) == []
    assert (sender.vt_a, sender.next_retransmission()) == (5, 6)
    with pytest.raises(Malformed):
        sender.on_ustat(Ustat(3, 0, (8,)))


def test_nobody_gets_in_without_a_known_key(run: Runner) -> None:
    """A Hello of a key that is not on the list is dropped (ASC-6.5)."""

    async def test() -> None:
        keys, stranger = Pair.new(Suite.NOISE), Pair.new(Suite.NOISE)
        hub = HubPeer(keys.hub_identity(), RATE_BPS)
        address = await hub.start()
        identity = Pair(Suite.NOISE, keys.hub_private, stranger.terminal_private)
        terminal = TerminalPeer(identity.terminal_identity(), address, RATE_BPS)
        try:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(terminal.start(), 0.5)
            assert hub.dropped == {"a terminal whose key is not on the list": 1}
            assert noise.public_key(stranger.terminal_private) not in \
                hub.associations.identity.terminals
        finally:
            terminal.close()
            hub.close()

    run(test())
