"""A UDP proxy on loopback that delays, loses, duplicates and reorders datagrams."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import cast

Address = tuple[str, int]


@dataclass
class Impairments:
    """Probabilities are of each datagram in either direction; times are seconds."""

    delay: float = 0.02
    loss: float = 0.0
    duplication: float = 0.0
    reordering: float = 0.0
    reordering_delay: float = 0.015
    blackout: bool = False


class _Side(asyncio.DatagramProtocol):
    def __init__(self, proxy: "Proxy", client: Address | None) -> None:
        self.proxy, self.client = proxy, client
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.proxy.forward(data, addr if self.client is None else None, self.client)


class Proxy:
    """Between terminals, which send to `address`, and one hub.

    To the hub each terminal has an address of the proxy's, which `change_address` replaces.
    """

    def __init__(self, hub: Address, impairments: Impairments, seed: int = 1) -> None:
        self.hub, self.impairments = hub, impairments
        self.random = random.Random(seed)
        self.forwarded = self.lost = self.duplicated = self.reordered = 0
        self.address: Address = ("127.0.0.1", 0)
        self._front: _Side | None = None
        self._backs: dict[Address, _Side] = {}
        self._retired: list[_Side] = []
        self._pending: set[Address] = set()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        transport, side = await loop.create_datagram_endpoint(
            lambda: _Side(self, None), local_addr=("127.0.0.1", 0))
        self._front = side
        self.address = transport.get_extra_info("sockname")

    def close(self) -> None:
        for side in [self._front, *self._backs.values(), *self._retired]:
            if side and side.transport:
                side.transport.close()

    def change_address(self) -> None:
        """What terminals send reaches the hub from other addresses from now on."""
        self._retired += self._backs.values()
        self._backs.clear()

    def forward(self, data: bytes, source: Address | None, client: Address | None) -> None:
        """Takes a datagram: from a terminal if `source` is given, else from the hub."""
        if source is not None and source not in self._backs:
            if source not in self._pending:
                self._pending.add(source)
                asyncio.get_running_loop().create_task(self._open_back(source))
            return  # Lost, as a path's first packet may be.
        loop, chance, now = asyncio.get_running_loop(), self.random, self.impairments
        if now.blackout or chance.random() < now.loss:
            self.lost += 1
            return
        copies = 2 if chance.random() < now.duplication else 1
        self.duplicated += copies - 1
        for _ in range(copies):
            delay = now.delay
            if chance.random() < now.reordering:
                self.reordered += 1
                delay += now.reordering_delay
            loop.call_later(delay, self._deliver, data, source, client)
        self.forwarded += copies

    async def _open_back(self, source: Address) -> None:
        loop = asyncio.get_running_loop()
        _, side = await loop.create_datagram_endpoint(
            lambda: _Side(self, source), local_addr=("127.0.0.1", 0))
        self._backs[source] = side
        self._pending.discard(source)

    def _deliver(self, data: bytes, source: Address | None, client: Address | None) -> None:
        if source is None:
            side, address = self._front, client
        else:
            side, address = self._backs.get(source), self.hub
        if side and side.transport and not side.transport.is_closing() and address:
            side.transport.sendto(data, address)
