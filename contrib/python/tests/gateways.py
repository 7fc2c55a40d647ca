"""Runs the real gateways, and the servers and clients around them, on loopback."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import random
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bentpipe_peer import noise
from bentpipe_peer.association import Identity
from bentpipe_peer.datagram import Suite

ROOT = Path(__file__).resolve().parents[3]
RATE = "16mbit"
RATE_BPS = 16e6


def program() -> str:
    """The program under test: `BENTPIPE`, or what cargo has built."""
    named = os.environ.get("BENTPIPE")
    places = [Path(named)] if named else [ROOT / "target/release/bentpipe",
                                          ROOT / "target/debug/bentpipe"]
    for place in places:
        if os.access(place, os.X_OK):
            return str(place)
    tried = ", ".join(map(str, places))
    raise FileNotFoundError(
        f"no bentpipe program at {tried}: run `cargo build`, or set BENTPIPE to its path")


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@dataclass(frozen=True)
class Pair:
    """Keys of a hub and of a terminal, or neither in the null suite."""

    suite: Suite
    hub_private: bytes
    terminal_private: bytes

    @staticmethod
    def new(suite: Suite) -> "Pair":
        return Pair(suite, noise.generate_key(), noise.generate_key())

    def hub_identity(self) -> Identity:
        if self.suite is Suite.NULL:
            return Identity(Suite.NULL)
        terminals = {noise.public_key(self.terminal_private): "boat"}
        return Identity(Suite.NOISE, self.hub_private, terminals=terminals)

    def terminal_identity(self) -> Identity:
        if self.suite is Suite.NULL:
            return Identity(Suite.NULL, name="boat")
        return Identity(Suite.NOISE, self.terminal_private, noise.public_key(self.hub_private))


def _base64(key: bytes) -> str:
    return base64.b64encode(key).decode()


def hub_configuration(pair: Pair, port: int, others: tuple[bytes, ...] = (),
                      rates: bool = True, link: str = "") -> str:
    """The hub's configuration; `others` are the private keys of further terminals. Without `rates`
    it finds them; `link` are further lines of that section."""
    head = 'role = "hub"\n'
    rates_of_link = f'rate_up = "{RATE}"\nrate_down = "{RATE}"\n' if rates else ""
    tail = f'[link]\nlisten = "127.0.0.1:{port}"\n{rates_of_link}{link}' \
        '[control]\nsocket = "off"\n'
    if pair.suite is Suite.NULL:
        return head + 'security = "none"\n' + tail
    for number, private in enumerate((pair.terminal_private, *others)):
        key = _base64(noise.public_key(private))
        tail += f'[[terminal]]\nname = "boat{number or ""}"\npublic_key = "{key}"\n'
    return head + f'private_key = "{_base64(pair.hub_private)}"\n' + tail


def terminal_configuration(pair: Pair, hub: tuple[str, int], socks_port: int) -> str:
    head = 'role = "terminal"\n'
    link = f'[link]\npeer = "{hub[0]}:{hub[1]}"\nrate_up = "{RATE}"\nrate_down = "{RATE}"\n'
    tail = f'[socks5]\nlisten = "127.0.0.1:{socks_port}"\n[control]\nsocket = "off"\n'
    if pair.suite is Suite.NULL:
        return head + 'security = "none"\nname = "boat"\n' + link + tail
    key = _base64(noise.public_key(pair.hub_private))
    return head + f'private_key = "{_base64(pair.terminal_private)}"\n' + link \
        + f'peer_public_key = "{key}"\n' + tail


class Gateway:
    """A running `bentpipe gateway`; its log is in the test's directory."""

    def __init__(self, directory: Path, name: str, configuration: str) -> None:
        file = directory / f"{name}.toml"
        file.touch(mode=0o600)
        file.write_text(configuration)
        self.log = directory / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen([program(), "gateway", "--config", str(file)],
                                            stdout=log, stderr=subprocess.STDOUT)

    async def listening(self, port: int) -> None:
        """Waits until the hub has bound its UDP port, so that the first Hello finds it."""
        for _ in range(500):
            if self.process.poll() is not None:
                raise RuntimeError(f"the gateway did not start:\n{self.log.read_text()}")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:
                    return
            await asyncio.sleep(0.02)
        raise RuntimeError("the gateway does not listen")

    def stop(self) -> None:
        """Ends the process; what it would still do is of no interest by then."""
        self.process.kill()
        self.process.wait()


def content(octets: int, seed: int) -> bytes:
    """Octets that do not repeat."""
    return random.Random(seed).randbytes(octets)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Server:
    """A TCP server that sends `download` to each client and keeps what it receives."""

    download: bytes

    async def start(self) -> int:
        self.uploads: list[bytes] = []
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def close(self) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def send() -> None:
            writer.write(self.download)
            await writer.drain()
            writer.write_eof()

        try:
            _, upload = await asyncio.gather(send(), reader.read(-1))
            self.uploads.append(upload)
        except ConnectionError:
            pass
        finally:
            writer.close()


async def socks5(port: int, target: tuple[str, int]
                 ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connects through a SOCKS5 proxy on loopback."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"\x05\x01\x00\x05\x01\x00\x01" + socket.inet_aton(target[0])
                 + target[1].to_bytes(2, "big"))
    answer = await reader.readexactly(2 + 10)
    if answer[3] != 0:
        writer.close()
        raise ConnectionRefusedError(f"SOCKS5 answer {answer[3]}")
    return reader, writer
