"""The two ends of an association (docs/spec/association.md), without sockets.

`TerminalAssociation` and `HubAssociations` take datagrams and the time, and return what is to
be sent and what the layer above is to see. Bounds on floods (ASC-7.5 to 7.7, 4.1) and on places
(ASC-2.9) are left out; `demand_cookies` shows the exchange of ASC-7.2 to 7.4.
"""

from __future__ import annotations

import os
import secrets
import time
from dataclasses import dataclass, field

from . import noise, suites
from .datagram import (HEADER, SEALED, VERSION, Header, HelloPayload, Kind, Limits, Suite,
                       UnknownVersion, WelcomePayload, handshake_header)
from .suites import KeyPair, NullCipher, derived_seed, noise_cipher
from .wire import Malformed, extend

PROLOGUE = b"bentpipe noise 1"
FIRST_RETRY, MAX_RETRY = 1.0, 5.0
COOKIE_LIFETIME = 120.0
RENEWAL_AGE, MAX_AGE, OLD_KEYS_OPEN = 120.0, 600.0, 60.0
UNKNOWN_PAUSE, HELLO_DISTANCE = 10.0, 0.5


@dataclass(frozen=True)
class Identity:
    """What a side has been configured with: the suite, its key, and its peers' keys (ASC-6.2)."""

    suite: Suite
    private: bytes = b""
    hub_public: bytes = b""
    """At a terminal with noise."""
    name: str = ""
    """At a terminal of the null suite."""
    terminals: dict[bytes, str] = field(default_factory=dict)
    """At a hub with noise: names by public key."""
    psk: bytes = noise.NO_PSK


@dataclass(frozen=True)
class Payload:
    """A sealed datagram that was opened."""

    kind: Kind
    data: bytes
    datagram_octets: int
    order: tuple[int, int] = (0, 0)
    """Its place in the order in which the peer seals: keys, counter (RLY-10.8)."""


@dataclass
class _Attempt:
    """A Hello that no Welcome has answered yet."""

    index: int
    asked: int
    """The association that is to continue, or 0."""
    message: bytes
    """The Hello without its second MAC."""
    handshake: noise.Initiator | None
    ephemeral: bytes
    wait: float
    due: float
    sent: float = -1e9


class TerminalAssociation:
    """The terminal's end."""

    def __init__(self, identity: Identity, limits: Limits, renewal_age: float = RENEWAL_AGE,
                 clock_ns: int | None = None) -> None:
        self.identity, self.limits, self.renewal_age = identity, limits, renewal_age
        self.keys: list[KeyPair] = []
        """The current keys first, then older ones that still open (ASC-8.3)."""
        self.retired_at = 0.0
        self.association = 0
        self.peer_limits: Limits | None = None
        self.generation = 0
        """Grows with each new association: what ran inside the last one is over (ASC-2.6)."""
        self.attempt: _Attempt | None = None
        self.cookie: tuple[bytes, float] | None = None
        self.hub_versions: tuple[int, int] | None = None
        """The versions of a hub that does not understand this one (ASC-1.5)."""
        self.renewals = self.cookies_received = self.unknowns_heeded = 0
        self._timestamp = clock_ns if clock_ns is not None else time.time_ns()
        self._deaf_to_unknown_until = -1.0
        self._heeded_unknown = False
        self._outbox: list[bytes] = []

    def connect(self, now: float, fresh: bool = False) -> None:
        """Starts a handshake: for a new association if there is none or if `fresh` (ASC-2.6)."""
        self._timestamp = max(self._timestamp + 1, time.time_ns())
        asked = 0 if fresh else self.association
        index = secrets.randbelow(1 << 24)
        payload = HelloPayload(self._timestamp, asked, self.limits).encode()
        header = handshake_header(Kind.HELLO, index, self.identity.suite,
                                  self.limits.capabilities)
        if self.identity.suite is Suite.NOISE:
            handshake = noise.Initiator(PROLOGUE + header, self.identity.private,
                                        self.identity.hub_public, self.identity.psk)
            message = header + handshake.write_first(payload)
            message += suites.first_mac(self.identity.hub_public, message)
            ephemeral = b""
        else:
            name = self.identity.name.encode()
            handshake, ephemeral = None, os.urandom(32)
            message = header + ephemeral + bytes(48) + payload + bytes([len(name)]) + name
            message = suites.with_tag(message, suites.SEED_HELLO)
        self.attempt = _Attempt(index, asked, message, handshake, ephemeral, FIRST_RETRY, now)

    def transmit(self, now: float) -> list[bytes]:
        """Returns the handshake's datagrams that are due."""
        self._expire(now)
        out, self._outbox = self._outbox, []
        attempt = self.attempt
        if attempt and now >= attempt.due:
            message = attempt.message
            if self.identity.suite is Suite.NOISE:
                valid = self.cookie and now < self.cookie[1]
                cookie = self.cookie[0] if valid and self.cookie else None
                message += suites.second_mac(cookie, message)
            out.append(message)
            attempt.sent, attempt.due = now, now + attempt.wait
            attempt.wait = min(attempt.wait * 1.5, MAX_RETRY)
        return out

    def timeout(self) -> float | None:
        """When `transmit` is to be called next."""
        times = [self.attempt.due] if self.attempt else []
        if self.keys and not self.attempt and self.identity.suite is Suite.NOISE:
            times.append(self.keys[0].created + self.renewal_age)
        return min(times, default=None)

    def _expire(self, now: float) -> None:
        if len(self.keys) > 1 and now >= self.retired_at + OLD_KEYS_OPEN:
            del self.keys[1:]
        if self.identity.suite is Suite.NOISE:
            self.keys = [keys for keys in self.keys if now < keys.created + MAX_AGE]
            aged = not self.keys or now >= self.keys[0].created + self.renewal_age
            if aged and self.association and not self.attempt:
                self.connect(now)

    def seal(self, payload: bytes, kind: Kind = Kind.DATA) -> bytes | None:
        """Seals a payload under the current keys; None while there are none."""
        return self.keys[0].seal(kind, payload) if self.keys else None

    def receive(self, datagram: bytes, now: float) -> Payload | None:
        """Takes a datagram from the hub. Returns what it contains for the layers above.

        Raises `Malformed` where the datagram is to be dropped and counted.
        """
        try:
            header = Header.decode(datagram)
        except UnknownVersion as error:
            if error.version or not self.attempt:
                raise
            self.hub_versions = suites.read_version(datagram, self.attempt.message)
            return None
        match header.kind:
            case Kind.WELCOME:
                self._welcome(header, datagram, now)
            case Kind.COOKIE:
                self._cookie(header, datagram, now)
            case Kind.UNKNOWN:
                self._unknown(header, datagram, now)
            case Kind.HELLO:
                raise Malformed("a Hello at a terminal")
            case _:
                for keys in self.keys:
                    if keys.own_index == header.index:
                        payload, _ = keys.open(header, datagram)
                        return Payload(header.kind, payload, len(datagram), keys.order)
                raise Malformed("unknown index")
        return None

    def _welcome(self, header: Header, datagram: bytes, now: float) -> None:
        attempt = self.attempt
        if not attempt or header.index != attempt.index or len(datagram) != 100:
            raise Malformed("no Hello waits for this Welcome")
        if attempt.handshake:
            data, up, down = attempt.handshake.read_second(datagram[HEADER:])
            both = self.limits.capabilities, WelcomePayload.decode(data).limits.capabilities
            ciphers = noise_cipher(up, *both), noise_cipher(down, *both)
        else:
            hub_ephemeral = datagram[HEADER : HEADER + 32]
            seed = derived_seed(b"w", attempt.ephemeral, hub_ephemeral)
            data = suites.without_tag(datagram, seed)[HEADER + 32 :]
            ciphers = (NullCipher(derived_seed(b"u", attempt.ephemeral, hub_ephemeral)),
                       NullCipher(derived_seed(b"d", attempt.ephemeral, hub_ephemeral)))
        welcome = WelcomePayload.decode(data)
        if welcome.index == 0:  # The hub has accepted a later Hello already (ASC-2.8).
            self._timestamp = max(self._timestamp, welcome.latest_timestamp)
            self.connect(now, fresh=attempt.asked == 0)
            return
        self.keys.insert(0, KeyPair(attempt.index, welcome.index, *ciphers, created=now))
        self.retired_at = now
        continued = welcome.association == self.association != 0
        if continued:
            self.renewals += 1
            del self.keys[2:]
            if self._heeded_unknown:
                self._deaf_to_unknown_until = now + UNKNOWN_PAUSE
        else:
            del self.keys[1:]
            self.association = welcome.association
            self.generation += 1
        self._heeded_unknown = False
        self.peer_limits = welcome.limits
        self.attempt = None
        if continued:  # The hub's new keys come into force without waiting for data (ASC-8.1).
            self._outbox.append(self.keys[0].seal(Kind.DATA, b""))

    def _cookie(self, header: Header, datagram: bytes, now: float) -> None:
        attempt = self.attempt
        if not attempt or header.index != attempt.index:
            raise Malformed("no Hello waits for this Cookie")
        mac = attempt.message[-16:]
        self.cookie = (suites.open_cookie(self.identity.hub_public, mac, datagram),
                       now + COOKIE_LIFETIME)
        self.cookies_received += 1
        attempt.due = max(now, attempt.sent + HELLO_DISTANCE)

    def _unknown(self, header: Header, datagram: bytes, now: float) -> None:
        suites.without_tag(datagram, suites.SEED_UNKNOWN)
        if not self.keys or header.index != self.keys[0].peer_index:
            raise Malformed("Unknown for another index")
        counter = extend(header.counter, 32, self.keys[0].next_counter)
        if not 0 < self.keys[0].next_counter - counter <= 65_536:
            raise Malformed("Unknown for a counter that was not sent lately")
        if now < self._deaf_to_unknown_until or self.attempt:
            return
        self.unknowns_heeded += 1
        self._heeded_unknown = True
        self.connect(now)


@dataclass
class HubTerminal:
    """A hub's association with one terminal."""

    name: str
    association: int
    keys: list[KeyPair]
    address: tuple[str, int]
    peer_limits: Limits
    retired_at: float = 0.0

    def seal(self, payload: bytes, kind: Kind = Kind.DATA) -> bytes:
        """Seals a payload under the newest keys that are in force (ASC-8.2)."""
        return self.keys[0].seal(kind, payload)


@dataclass
class _Pending:
    """Keys that are not in force yet, and the Welcome that said so (ASC-2.2, 2.4)."""

    hello: bytes
    welcome: bytes
    keys: KeyPair
    name: str
    association: int
    limits: Limits


class HubAssociations:
    """The hub's end of all its associations."""

    def __init__(self, identity: Identity, limits: Limits) -> None:
        self.identity, self.limits = identity, limits
        self.terminals: dict[str, HubTerminal] = {}
        self.demand_cookies = False
        self.versions = (VERSION, VERSION)
        """Lowest and highest version that this hub understands; others make it one of the future."""
        self.unknown_versions: set[int] = set()
        self.cookies_sent = 0
        self._public = noise.public_key(identity.private) if identity.private else b""
        self._pending: dict[str, _Pending] = {}
        self._latest: dict[str, int] = {}
        self._secret = os.urandom(32)

    def receive(self, datagram: bytes, address: tuple[str, int], now: float
                ) -> tuple[HubTerminal | None, Payload | None, bytes | None]:
        """Takes a datagram: the terminal and the payload that it brought, and an answer.

        Raises `Malformed` where the datagram is to be dropped and counted.
        """
        lowest, highest = self.versions
        try:
            header = Header.decode(datagram)
            # Of what is sealed such a hub has no association, and says Unknown.
            if header.kind is Kind.HELLO and not lowest <= VERSION <= highest:
                raise UnknownVersion(VERSION)
        except UnknownVersion as error:
            self.unknown_versions.add(error.version)
            return None, None, suites.version(datagram, lowest, highest)
        if header.kind is Kind.HELLO:
            return None, None, self._hello(header, datagram, address, now)
        if header.kind not in SEALED:
            raise Malformed("a kind that only hubs send")
        for pending in self._pending.values():
            if pending.keys.own_index == header.index:
                payload, _ = pending.keys.open(header, datagram)
                terminal = self._enter_into_force(pending, address, now)
                return terminal, Payload(header.kind, payload, len(datagram), pending.keys.order), None
        for terminal in self.terminals.values():
            for position, keys in enumerate(terminal.keys):
                if keys.own_index == header.index:
                    payload, highest = keys.open(header, datagram)
                    if highest and position == 0:
                        terminal.address = address
                    return terminal, Payload(header.kind, payload, len(datagram), keys.order), None
        return None, None, suites.unknown(datagram)

    def _enter_into_force(self, pending: _Pending, address: tuple[str, int], now: float
                          ) -> HubTerminal:
        del self._pending[pending.name]
        terminal = self.terminals.get(pending.name)
        if terminal and terminal.association == pending.association:
            terminal.keys = [pending.keys, *terminal.keys[:1]]
            terminal.peer_limits, terminal.address = pending.limits, address
            terminal.retired_at = now
        else:
            terminal = HubTerminal(pending.name, pending.association, [pending.keys], address,
                                   pending.limits)
            self.terminals[pending.name] = terminal
        return terminal

    def expire(self, now: float) -> None:
        """Drops keys whose time is over (ASC-8.3)."""
        for terminal in self.terminals.values():
            if len(terminal.keys) > 1 and now >= terminal.retired_at + OLD_KEYS_OPEN:
                del terminal.keys[1:]

    def forget(self, terminal: HubTerminal) -> None:
        """Forgets an association, as a restart would: its datagrams are answered by Unknown."""
        self.terminals.pop(terminal.name, None)

    def _hello(self, header: Header, datagram: bytes, address: tuple[str, int], now: float
               ) -> bytes | None:
        if header.counter >> 24 != self.identity.suite:
            raise Malformed("a Hello of another suite")
        if self.identity.suite is Suite.NULL:
            return self._hello_null(header, datagram, now)
        if len(datagram) != 176:
            raise Malformed("a Hello has 176 octets")
        mac = datagram[144:160]
        if not suites.same(mac, suites.first_mac(self._public, datagram[:144])):
            raise Malformed("wrong first MAC")
        if self.demand_cookies:
            host = bytes(int(part) for part in address[0].split("."))
            cookie = suites.make_cookie(self._secret, host, address[1])
            if not suites.same(datagram[160:], suites.second_mac(cookie, datagram[:160])):
                self.cookies_sent += 1
                return suites.seal_cookie(self._public, header.index, mac, cookie)
        handshake = noise.Responder(PROLOGUE + datagram[:8], self.identity.private)
        hello = HelloPayload.decode(handshake.read_first(datagram[8:144]), header)
        name = self.identity.terminals.get(handshake.initiator)
        if name is None:
            raise Malformed("a terminal whose key is not on the list")
        repeated = self._repeated(name, datagram[:144])
        if repeated:
            return repeated
        latest = self._latest.get(name, 0)
        if hello.timestamp == latest:
            raise Malformed("a Hello that was accepted before")
        welcome_header = handshake_header(Kind.WELCOME, header.index, Suite.NOISE)
        if hello.timestamp < latest:
            refusal = WelcomePayload(0, 0, latest, self.limits).encode()
            return welcome_header + handshake.write_second(refusal, self.identity.psk)[0]
        self._latest[name] = hello.timestamp
        payload = self._welcome_payload(name, hello)
        message, up, down = handshake.write_second(payload.encode(), self.identity.psk)
        both = self.limits.capabilities, hello.limits.capabilities
        keys = KeyPair(payload.index, header.index, noise_cipher(down, *both),
                       noise_cipher(up, *both), now)
        welcome = welcome_header + message
        self._pending[name] = _Pending(datagram[:144], welcome, keys, name, payload.association,
                                       hello.limits)
        return welcome

    def _hello_null(self, header: Header, datagram: bytes, now: float) -> bytes:
        data = suites.without_tag(datagram, suites.SEED_HELLO)
        if len(data) < 129 or data[128] > 64 or len(data) != 129 + data[128]:
            raise Malformed("the name's length")
        try:
            name = data[129:].decode()
        except UnicodeDecodeError as error:
            raise Malformed("the name is not UTF-8") from error
        repeated = self._repeated(name, datagram)
        if repeated:
            return repeated
        terminal_ephemeral, hub_ephemeral = data[8:40], os.urandom(32)
        hello = HelloPayload.decode(data[88:128], header)
        payload = self._welcome_payload(name, hello)
        seeds = [derived_seed(label, terminal_ephemeral, hub_ephemeral) for label in (b"w", b"u", b"d")]
        header_octets = handshake_header(Kind.WELCOME, header.index, Suite.NULL)
        welcome = suites.with_tag(header_octets + hub_ephemeral + payload.encode(), seeds[0])
        keys = KeyPair(payload.index, header.index, NullCipher(seeds[2]), NullCipher(seeds[1]), now)
        self._pending[name] = _Pending(datagram, welcome, keys, name, payload.association,
                                       hello.limits)
        return welcome

    def _repeated(self, name: str, hello: bytes) -> bytes | None:
        pending = self._pending.get(name)
        return pending.welcome if pending and pending.hello == hello else None

    def _welcome_payload(self, name: str, hello: HelloPayload) -> WelcomePayload:
        terminal = self.terminals.get(name)
        in_use = [keys.own_index for t in self.terminals.values() for keys in t.keys]
        index = 0
        while index == 0 or index in in_use:
            index = secrets.randbelow(1 << 24)
        goes_on = terminal and hello.association == terminal.association
        association = hello.association if goes_on else secrets.randbelow((1 << 64) - 1) + 1
        latest = self._latest.get(name, 0)
        return WelcomePayload(index, association, latest, self.limits)
