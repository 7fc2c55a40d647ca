"""The vectors of docs/spec/vectors: made by the gateways' code, checked by this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bentpipe_peer import frames, noise, repair, segment, suites
from bentpipe_peer.association import PROLOGUE, HubAssociations, Identity
from bentpipe_peer.datagram import (Header, HelloPayload, Kind, Limits, Suite, WelcomePayload,
                                    handshake_header)
from bentpipe_peer.frames import StreamFrame
from bentpipe_peer.peer import default_limits
from bentpipe_peer.segment import SPACE, Type
from bentpipe_peer.suites import AesCipher, Cipher, NoiseCipher, NullCipher
from bentpipe_peer.wire import Malformed, Reader

FOLDER = Path(__file__).resolve().parents[3] / "docs/spec/vectors"
Vector = dict[str, Any]


def load(name: str) -> list[Any]:
    vectors = json.loads((FOLDER / name).read_text())["vectors"]
    assert vectors
    return [pytest.param(vector, id=f"{vector['name']}-{number}")
            for number, vector in enumerate(vectors)]


def octets(vector: Vector, key: str) -> bytes:
    return bytes.fromhex(vector[key])


# Datagrams.


def given(vector: Vector) -> dict[str, bytes]:
    return {key: bytes.fromhex(value) for key, value in vector["given"].items() if key != "name"}


def hello(vector: Vector, datagram: bytes) -> None:
    """Makes the Hello from what it is said to contain."""
    header, limits = Header.decode(datagram), Limits(**vector["limits"])
    payload = HelloPayload(vector["timestamp"], vector["association"], limits).encode()
    capabilities = limits.capabilities
    if vector["suite"] == "null":
        name = vector["given"]["name"].encode()
        body = handshake_header(Kind.HELLO, header.index, Suite.NULL, capabilities) + datagram[8:40] + bytes(48)
        body += payload + bytes([len(name)]) + name
        assert suites.with_tag(body, suites.SEED_HELLO) == datagram
        return
    keys, head = given(vector), handshake_header(Kind.HELLO, header.index, Suite.NOISE,
                                                   capabilities)
    hub_public = noise.public_key(keys["hub_private"])
    initiator = noise.Initiator(PROLOGUE + head, keys["terminal_private"], hub_public,
                                keys["preshared"], keys["terminal_ephemeral"])
    message = head + initiator.write_first(payload)
    message += suites.first_mac(hub_public, message)
    assert message + suites.second_mac(None, message) == datagram


def welcome(vector: Vector, datagram: bytes) -> None:
    """Makes the Welcome to its Hello, and the keys that both agree on."""
    asked, header = octets(vector, "hello"), Header.decode(datagram)
    if vector["suite"] == "null":
        seed = suites.derived_seed(b"w", asked[8:40], datagram[8:40])
        payload = suites.without_tag(datagram, seed)[40:]
        keys = [suites.derived_seed(label, asked[8:40], datagram[8:40]) for label in (b"u", b"d")]
        found = {"from_terminal": f"{keys[0]:016x}", "from_hub": f"{keys[1]:016x}"}
    else:
        secrets = given(vector)
        responder = noise.Responder(PROLOGUE + asked[:8], secrets["hub_private"],
                                    secrets["hub_ephemeral"])
        responder.read_first(asked[8:144])
        assert responder.initiator == noise.public_key(secrets["terminal_private"])
        initiator = noise.Initiator(PROLOGUE + asked[:8], secrets["terminal_private"],
                                    noise.public_key(secrets["hub_private"]),
                                    secrets["preshared"], secrets["terminal_ephemeral"])
        initiator.write_first(HelloPayload.decode(bytes(40)).encode())
        # The hash covers the first message as it was sent, so both are brought to its state.
        initiator.state.h, initiator.state.ck = responder.state.h, responder.state.ck
        payload, *read = initiator.read_second(datagram[8:])
        message, *written = responder.write_second(payload, secrets["preshared"])
        assert handshake_header(Kind.WELCOME, header.index, Suite.NOISE) + message == datagram
        assert read == written
        found = {"from_terminal": read[0].hex(), "from_hub": read[1].hex()}
    assert header == Header(Kind.WELCOME, Header.decode(asked).index,
                            (vector["suite"] == "noise") << 24)
    decoded = WelcomePayload.decode(payload)
    assert decoded.latest_timestamp == vector["latest_timestamp"]
    if "keys" in vector:
        assert found == vector["keys"]
        assert decoded.index and decoded.association
        assert decoded.limits == Limits(**vector["limits"])
    else:
        assert decoded.index == 0


def sealed(vector: Vector, datagram: bytes) -> None:
    """Seals the payload under the given key."""
    key = vector["keys"][vector["direction"]]
    noise_cipher = AesCipher if vector.get("cipher") == "AES-256-GCM" else NoiseCipher
    cipher: Cipher = NullCipher(int(key, 16)) if vector["suite"] == "null" \
        else noise_cipher(bytes.fromhex(key))
    assert cipher.seal(datagram[:8], vector["counter"], octets(vector, "payload")) == datagram
    assert cipher.open(datagram, vector["counter"]) == octets(vector, "payload")
    header = Header.decode(datagram)
    assert header.kind.name.replace("_", "").lower() == vector["name"].split(",")[0].lower()
    assert header.counter == vector["counter"]


def dropped(vector: Vector, datagram: bytes, vectors: list[Vector]) -> None:
    """A hub that has the terminal's keys drops it and answers nothing."""
    private = next(given(v)["hub_private"] for v in vectors if v["suite"] == "noise" and "given" in v)
    terminal = next(given(v)["terminal_private"] for v in vectors
                    if v["suite"] == "noise" and "given" in v)
    suite = Suite.NULL if vector["suite"] == "null" else Suite.NOISE
    hub = HubAssociations(Identity(suite, private, terminals={noise.public_key(terminal): "boat"}),
                          default_limits())
    same = [v for v in vectors if v["suite"] == vector["suite"]]
    first = next(octets(v, "datagram") for v in same if v["name"] == "Hello")
    hub.receive(first, ("192.0.2.1", 4500), 0.0)
    # The keys become those of the vectors, so that what is sealed under them can be opened.
    pending = hub._pending["boat"]
    key = next(v["keys"]["from_terminal"] for v in same if "keys" in v)
    data = next(octets(v, "datagram") for v in same if v["name"] == "Data")
    pending.keys.own_index = Header.decode(data).index
    pending.keys.receiving = NullCipher(int(key, 16)) if suite is Suite.NULL \
        else NoiseCipher(bytes.fromhex(key))
    _, payload, _ = hub.receive(data, ("192.0.2.1", 4500), 0.0)
    assert payload and payload.data == b"from the terminal"
    if "another version" in vector["name"]:
        assert hub.receive(datagram, ("192.0.2.1", 4500), 0.0) == (None, None, None)
        return
    with pytest.raises(Malformed):
        hub.receive(datagram, ("192.0.2.1", 4500), 0.0)


@pytest.mark.parametrize("vector", load("association.json"))
def test_datagram(vector: Vector) -> None:
    datagram = octets(vector, "datagram")
    match vector["name"].split(",")[0].split(" with")[0]:
        case _ if vector["reaction"] == "dropped":
            dropped(vector, datagram, [param.values[0] for param in load("association.json")])
        case "Hello" if "given" in vector:
            hello(vector, datagram)
        case "Welcome":
            welcome(vector, datagram)
        case "Unknown":
            assert suites.unknown(octets(vector, "answers")) == datagram
        case "Version":
            asked = octets(vector, "answers")
            assert suites.version(asked, vector["lowest"], vector["highest"]) == datagram
            with pytest.raises(Malformed):  # It names the version of this side.
                suites.read_version(datagram, asked)
        case "Cookie":
            mac = octets(vector, "hello")[144:160]
            cookie = suites.open_cookie(octets(vector, "hub_public"), mac, datagram)
            again = suites.seal_cookie(octets(vector, "hub_public"), Header.decode(datagram).index,
                                       mac, cookie, datagram[8:20])
            assert again == datagram
        case "Hello":
            cookie = suites.open_cookie(octets(vector, "hub_public"), datagram[144:160],
                                        octets(vector, "cookie"))
            assert suites.second_mac(cookie, datagram[:160]) == datagram[160:]
        case _:
            sealed(vector, datagram)


# Segments.


def describe_segment(found: segment.Segment) -> Vector:
    """What a segment means, in the words of the vectors."""
    out: Vector = {"number": found.number}
    if found.begin:
        begin = found.begin
        out["BGN" if begin.echo is None else "BGNAK"] = {
            "incarnation": begin.incarnation, "window": begin.window, "echo": begin.echo,
            "max_segment": begin.max_segment, "delivery": begin.delivery}
    if found.finish is not None:
        name = "RST" if found.type & Type.RST else "ENDAK" if found.type & Type.AK else "END"
        out[name] = {"incarnation": found.finish}
    if found.poll:
        vt_s = found.number + (1 + found.poll.ahead if found.payload is not None else 0)
        out["POLL"] = {"count": found.poll.count, "vt_s": vt_s % SPACE}
    if found.stamp is not None:
        out["stamp"] = found.stamp
    if found.stat:
        stat = found.stat
        arrival = list(stat.arrival) if stat.arrival else None
        out["STAT"] = {"n_r": stat.n_r, "window": stat.window, "echoed_stamp": stat.echo,
                       "echoed_count": stat.count, "arrival": arrival,
                       "runs": runs(stat.n_r + stat.skip, stat.lengths)}
    if found.ustat:
        gaps = runs(found.ustat.n_r + found.ustat.skip, found.ustat.lengths)[::2]
        for gap in gaps:
            del gap["missing"]
        out["USTAT"] = {"n_r": found.ustat.n_r, "gaps": gaps}
    if found.repair:
        out["REPAIR"] = {"packets": found.repair.packets, "key": found.repair.key,
                         "symbol": found.repair.symbol.hex()}
    if found.note is not None:
        out["NOTE"] = found.note.hex()
    if found.payload is not None:
        out["payload"] = found.payload.hex()
    return out


def runs(first: int, lengths: tuple[int, ...]) -> list[Vector]:
    out = []
    for position, length in enumerate(lengths):
        out.append({"first": first % SPACE, "length": length, "missing": position % 2 == 0})
        first += length
    return out


@pytest.mark.parametrize("vector", load("segments.json"))
def test_segment(vector: Vector) -> None:
    data = octets(vector, "segment")
    if vector["reaction"] == "dropped":
        with pytest.raises(Malformed):
            segment.decode(data)
        return
    found = segment.decode(data)
    assert describe_segment(found) == vector["parts"]
    assert found.encode() == data
    if "covered" in vector and found.repair:
        covered = [bytes.fromhex(payload) for payload in vector["covered"]]
        assert repair.repair_symbol(found.number, covered, found.repair.key) == found.repair.symbol


# Frames.


def describe_report(fields: list[tuple[int, bytes]]) -> Vector:
    """What a report says (RLY-11.2)."""
    found: Vector = {"release": "", "started": 0, "paths": [], "counters": [0] * 5, "messages": []}
    for key, value in fields:
        reader = Reader(value)

        def number(reader: Reader = reader) -> int:
            return reader.varint(9, 63, False)

        match key:
            case 1:
                found["release"] = value.decode()
            case 2:
                found["started"] = number()
            case 3:
                found["paths"].append([number(), number(), reader.rest().decode()])
            case 4:
                found["counters"] = [number() for _ in range(5)]
            case 5:
                found["messages"].append([number(), reader.rest().decode()])
            case _:
                pass
    return found


def describe_frame(frame: frames.Frame) -> Vector:
    """What a frame means, in the words of the vectors."""

    def stream(key: frames.Key) -> Vector:
        return {"opened_by_hub": key[0], "number": key[1]}

    match frame:
        case StreamFrame():
            opening = frame.opening and {
                "priority": frame.opening.priority,
                "target": [frame.opening.host, frame.opening.port],
                "source": frame.opening.source and list(frame.opening.source)}
            return {"frame": "STREAM", "stream": stream(frame.key), "opening": opening,
                    "offset": frame.offset, "offset_bits": 32 if frame.wide else 24,
                    "end": frame.end, "shared": frame.shared,
                    "coded": frame.coded, "data": frame.data.hex()}
        case frames.Accept(key):
            return {"frame": "ACCEPT", "stream": stream(key)}
        case frames.Reset(key, final, used, reason):
            return {"frame": "RESET", "stream": stream(key), "final_offset": final,
                    "shared_used": used, "reason": reason}
        case frames.Credit(key, limit):
            return {"frame": "CREDIT", "stream": stream(key), "limit": limit * 1024}
        case frames.Shared(returned):
            return {"frame": "SHARED", "returned": returned * 1024}
        case frames.Datagram(packet):
            return {"frame": "DATAGRAM", "packet": packet.hex()}
        case frames.Piece(number, total, offset, data):
            return {"frame": "PIECE", "number": number, "total": total, "offset": offset,
                    "data": data.hex()}
        case frames.Grant(number, rate):
            return {"frame": "GRANT", "number": number, "bits_per_second": rate * 1000}
        case frames.Need(number, waiting):
            return {"frame": "NEED", "number": number, "bytes": waiting * 1024}
        case frames.Families(number, bits):
            return {"frame": "FAMILIES", "number": number, "ipv4": bits & 3, "ipv6": bits >> 2 & 3}
        case frames.GoAway(opened, leaves):
            return {"frame": "GOAWAY", "opened": opened, "leaves": leaves}
        case frames.Padding():
            return {"frame": "PADDING"}
        case frames.Report(number, fields):
            return {"frame": "REPORT", "number": number, **describe_report(fields)}
        case frames.Received(key, offset):
            return {"frame": "RECEIVED", "stream": stream(key), "offset": offset}
        case frames.Define(context, rule, stride):
            return {"frame": "DEFINE", "context": context, "rule": rule, "stride": stride}
        case frames.Compressed(content):
            return {"frame": "COMPRESSED", "content": content.hex()}
        case frames.Contexts(contexts):
            return {"frame": "CONTEXTS", "contexts": contexts}
        case frames.Invalid(context):
            return {"frame": "INVALID", "context": context}
        case frames.Unknown(kind):
            return {"frame": "unknown", "kind": kind}
        case frames.BadOpening(key):
            return {"frame": "STREAM", "stream": stream(key), "opening": "undefined"}


@pytest.mark.parametrize("vector", load("frames.json"))
def test_frame(vector: Vector) -> None:
    if "note" in vector:
        found = [{"stream": key and {"opened_by_hub": (key - 1) & 1 == 1, "number": (key - 1) >> 1}
                  or None, "value": value * 1024}
                 for key, value in frames.decode_note(octets(vector, "note"))]
        assert found == vector["entries"]
        return
    payload, read, readable = octets(vector, "payload"), [], True
    try:
        for frame in frames.decode(payload):
            read.append(frame)
    except Malformed:
        readable = False
    assert readable == vector["readable"]
    assert list(map(describe_frame, read)) == vector["frames"]
    undefined = any(isinstance(frame, frames.BadOpening) for frame in read)
    if readable and not undefined and not any(
            word in vector["name"] for word in ("longer", "later release")):
        parts = [frames.encode(frame) for frame in read[:-1]]
        ends = [frames.encode(read[-1], last) for last in (False, True)]
        assert payload in [b"".join([*parts, end]) for end in ends]
