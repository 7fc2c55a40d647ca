//! Datagrams of the association: handshakes in both suites, and data sealed under their keys.

use super::{check, hex};
use association::{
    Capabilities, Config, Entropy, Hub, HubReceived, Keys, Known, Limits, OVERHEAD, OpenError,
    PeerId, PresharedKey, PrivateKey, Sealed, Security, Terminal, TerminalReceived, TransmitBatch,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use units::{Instant, RngStream, Span};

const NOW: Instant = Instant::ZERO;
const WALL_CLOCK_NS: u64 = 1_800_000_000_000_000_000;
const LIMITS: Limits = Limits {
    max_datagram: 1472,
    streams: 4096,
    minimum_credit: 16_384,
    shared_credit: 1 << 20,
    receive_rate_bps: 10_000_000,
    capabilities: Capabilities::ORDERLY_END,
};

/// A deterministic generator whose draws are recorded, so that a private key can be looked up by
/// its public key.
#[derive(Clone, Debug)]
struct Recorded {
    stream: RngStream,
    drawn: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Recorded {
    fn new(seed: u64) -> Self {
        Self { stream: RngStream::new(seed, 0, "vectors"), drawn: Arc::default() }
    }

    /// Returns the private key of the ephemeral key in a handshake message.
    fn ephemeral(&self, message: &[u8]) -> Vec<u8> {
        let public = STANDARD.encode(&message[8..40]);
        let drawn = self.drawn.lock().expect("one thread");
        let is_it = |key: &&Vec<u8>| {
            let private: Result<PrivateKey, _> = STANDARD.encode(key).parse();
            private.is_ok_and(|private| private.public().to_string() == public)
        };
        drawn.iter().find(is_it).expect("it was drawn").clone()
    }
}

impl Entropy for Recorded {
    fn fill(&mut self, out: &mut [u8]) {
        self.stream.fill(out);
        self.drawn.lock().expect("one thread").push(out.to_vec());
    }
}

fn address() -> SocketAddr {
    "192.0.2.1:4500".parse().expect("an address")
}

fn private(seed: u64) -> PrivateKey {
    PrivateKey::generate(&mut RngStream::new(seed, 0, "key"))
}

fn bytes_of(text: &str) -> Vec<u8> {
    STANDARD.decode(text).expect("the text of a key")
}

fn noise(own: u64, name: &str, other: u64, preshared: &PresharedKey) -> Security {
    let known =
        Known { name: name.into(), public: private(other).public(), preshared: preshared.clone() };
    Security::Noise(Arc::new(Keys::new(private(own), vec![known]).expect("keys")))
}

/// Both ends, and their random draws.
struct Pair {
    suite: &'static str,
    preshared: PresharedKey,
    capabilities: Capabilities,
    terminal: Terminal,
    hub: Hub,
    terminal_draws: Recorded,
    hub_draws: Recorded,
}

impl Pair {
    fn new(suite: &'static str, preshared: PresharedKey) -> Self {
        Self::with(suite, preshared, LIMITS.capabilities)
    }

    fn with(suite: &'static str, preshared: PresharedKey, capabilities: Capabilities) -> Self {
        let config = |security| Config {
            security,
            limits: Limits { capabilities, ..LIMITS },
            wall_clock_ns: WALL_CLOCK_NS,
            ..Config::new("boat")
        };
        let (at_terminal, at_hub) = if suite == "null" {
            (Security::None, Security::None)
        } else {
            (noise(1, "hub", 2, &preshared), noise(2, "boat", 1, &preshared))
        };
        let (terminal_draws, hub_draws) = (Recorded::new(3), Recorded::new(4));
        let terminal = Terminal::new(config(at_terminal), NOW, terminal_draws.clone());
        let hub = Hub::new(config(at_hub), hub_draws.clone());
        Self { suite, preshared, capabilities, terminal, hub, terminal_draws, hub_draws }
    }

    fn hello(&mut self, now: Instant) -> Vec<u8> {
        let mut buffer = [0; 1500];
        let mut batch = TransmitBatch::new(&mut buffer, 1);
        assert!(self.terminal.poll_transmit(now, &mut batch));
        batch.datagrams().next().expect("one").to_vec()
    }

    fn at_hub(&mut self, datagram: &[u8]) -> Result<Option<PeerId>, OpenError> {
        let mut datagram = datagram.to_vec();
        match self.hub.handle_datagram(NOW, address(), &mut datagram)? {
            HubReceived::Payload { peer, .. } => Ok(Some(peer)),
            HubReceived::Nothing => Ok(None),
        }
    }

    fn answer(&mut self) -> Option<Vec<u8>> {
        answer(&mut self.hub)
    }

    /// Returns the secrets of a handshake, for a vector.
    fn given(&self, hello: &[u8], welcome: &[u8]) -> Value {
        if self.suite == "null" {
            return json!({ "name": "boat" });
        }
        json!({
            "terminal_private": hex(&bytes_of(&private(1).to_text())),
            "hub_private": hex(&bytes_of(&private(2).to_text())),
            "preshared": hex(&bytes_of(&self.preshared.to_text())),
            "terminal_ephemeral": hex(&self.terminal_draws.ephemeral(hello)),
            "hub_ephemeral": hex(&self.hub_draws.ephemeral(welcome)),
        })
    }

    /// Seals a payload at one side, opens it at the other, and returns the datagram.
    fn sealed(&mut self, to_terminal: Option<PeerId>, kind: Sealed, payload: &[u8]) -> Vec<u8> {
        let mut datagram = vec![0; OVERHEAD + payload.len()];
        datagram[8..8 + payload.len()].copy_from_slice(payload);
        let Some(peer) = to_terminal else {
            assert!(self.terminal.seal(NOW, kind, &mut datagram));
            return datagram;
        };
        assert_eq!(self.hub.seal(NOW, peer, kind, &mut datagram), Some(address()));
        let mut copy = datagram.clone();
        match self.terminal.handle_datagram(NOW, &mut copy) {
            Ok(TerminalReceived::Payload { payload: opened, .. }) => assert_eq!(opened, payload),
            other => panic!("{other:?}"),
        }
        datagram
    }
}

fn answer(hub: &mut Hub) -> Option<Vec<u8>> {
    let mut buffer = [0; 1500];
    let mut batch = TransmitBatch::new(&mut buffer, 1);
    hub.poll_transmit(&mut batch)?;
    Some(batch.datagrams().next().expect("one").to_vec())
}

fn limits(capabilities: Capabilities) -> Value {
    let aes = capabilities.contains(Capabilities::AES_256_GCM);
    json!({
        "udp_payload": LIMITS.max_datagram, "streams": LIMITS.streams,
        "stream_credit": LIMITS.minimum_credit, "shared_credit": LIMITS.shared_credit,
        "receive_rate": LIMITS.receive_rate_bps, "capabilities": if aes { 3 } else { 1 },
    })
}

/// Returns the keys of Split, or the null suite's seeds, computed as another implementation would.
fn split(pair: &Pair, hello: &[u8], welcome: &[u8]) -> Value {
    if pair.suite == "null" {
        let seed = |label: u8| {
            let input = [&[label], &hello[8..40], &welcome[8..40]].concat();
            format!("{:016x}", xxhash_rust::xxh3::xxh3_64_with_seed(&input, 0))
        };
        return json!({ "from_terminal": seed(b'u'), "from_hub": seed(b'd') });
    }
    let pattern = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s".parse().expect("a pattern");
    let prologue = [b"bentpipe noise 1", &hello[..8]].concat();
    let ephemeral = pair.terminal_draws.ephemeral(hello);
    let preshared: [u8; 32] = bytes_of(&pair.preshared.to_text()).try_into().expect("32 bytes");
    let (own, hub) = (bytes_of(&private(1).to_text()), public(2));
    let mut state = snow::Builder::with_resolver(pattern, Box::new(NothingDrawn))
        .local_private_key(&own)
        .and_then(|builder| builder.remote_public_key(&hub))
        .and_then(|builder| builder.psk(2, &preshared))
        .and_then(|builder| builder.prologue(&prologue))
        .map(|builder| builder.fixed_ephemeral_key_for_testing_only(&ephemeral))
        .and_then(snow::Builder::build_initiator)
        .expect("a handshake");
    let mut message = [0; 200];
    let len = state.write_message(&hello_payload(0), &mut message).expect("room");
    assert_eq!(message[..len], hello[8..144], "the first message by another way");
    state.read_message(&welcome[8..], &mut [0; 100]).expect("the second message");
    let (up, down) = state.dangerously_get_raw_split();
    json!({ "from_terminal": hex(&up), "from_hub": hex(&down) })
}

/// snow's own algorithms, without randomness: the ephemeral key is known.
struct NothingDrawn;

impl CryptoResolver for NothingDrawn {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Self))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

impl Random for NothingDrawn {
    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), snow::Error> {
        Err(snow::Error::Rng)
    }
}

/// Returns the public key of `private(seed)`.
fn public(seed: u64) -> Vec<u8> {
    bytes_of(&private(seed).public().to_string())
}

/// Returns the payload of a Hello, for an association that continues `continues`.
fn hello_payload(continues: u64) -> Vec<u8> {
    let mut out = [WALL_CLOCK_NS.to_be_bytes(), continues.to_be_bytes()].concat();
    for value in [LIMITS.max_datagram, LIMITS.streams, LIMITS.minimum_credit, LIMITS.shared_credit]
    {
        out.extend(value.to_be_bytes());
    }
    out.extend(LIMITS.receive_rate_bps.to_be_bytes());
    out
}

fn vector(name: &str, clauses: &str, suite: &str, datagram: &[u8], more: Value) -> Value {
    let mut out = json!({
        "name": name, "clauses": clauses, "suite": suite, "datagram": hex(datagram),
    });
    if let (Value::Object(out), Value::Object(more)) = (&mut out, more) {
        out.extend(more);
    }
    out
}

/// Returns vectors of a handshake and of data sealed under its keys.
fn association(mut pair: Pair) -> Vec<Value> {
    let (suite, capabilities) = (pair.suite, pair.capabilities);
    let hello = pair.hello(NOW);
    assert_eq!(pair.at_hub(&hello), Ok(None));
    let welcome = pair.answer().expect("a Welcome");
    assert_eq!(pair.at_hub(&hello), Ok(None));
    assert_eq!(pair.answer(), Some(welcome.clone()), "the same again");
    let given = pair.given(&hello, &welcome);
    let keys = split(&pair, &hello, &welcome);
    let mut copy = welcome.clone();
    assert_eq!(pair.terminal.handle_datagram(NOW, &mut copy), Ok(TerminalReceived::Established));
    let up = pair.sealed(None, Sealed::Data, b"from the terminal");
    let peer = pair.at_hub(&up).expect("opened").expect("a payload");
    let down = pair.sealed(Some(peer), Sealed::Data, b"from the hub");
    let empty = pair.sealed(None, Sealed::Data, b"");
    let probe = pair.sealed(Some(peer), Sealed::Probe, &[0, 0, 0, 9, 0, 0, 0, 0]);
    let probe_ack = pair.sealed(None, Sealed::ProbeAck, &[0, 0, 0, 9, 0, 0, 0, 32]);
    let hello_more = json!({
        "reaction": "a Welcome; the same one when it comes again before the keys are in force",
        "given": given, "timestamp": WALL_CLOCK_NS, "association": 0,
        "limits": limits(capabilities),
    });
    let welcome_more = json!({
        "reaction": "the keys are in force at the terminal", "given": given, "hello": hex(&hello),
        "latest_timestamp": WALL_CLOCK_NS, "limits": limits(capabilities),
        "keys": keys,
    });
    let sealed = |direction, counter: u64, payload: &[u8]| {
        let mut more = json!({
            "reaction": "opened", "keys": keys, "direction": direction, "counter": counter,
            "payload": hex(payload),
        });
        if capabilities.contains(Capabilities::AES_256_GCM) {
            more["cipher"] = "AES-256-GCM".into();
        }
        more
    };
    let probe_payload = [0, 0, 0, 9, 0, 0, 0, 0];
    let mut all = vec![
        vector("Hello", "ASC-1.1, 2.1, 6.3, 7.1", suite, &hello, hello_more),
        vector("Welcome", "ASC-2.3, 6.3", suite, &welcome, welcome_more),
        vector(
            "Data",
            "ASC-3.1, 5.1, 6.6",
            suite,
            &up,
            sealed("from_terminal", 0, b"from the terminal"),
        ),
        vector("Data", "ASC-3.1, 5.1, 6.6", suite, &down, sealed("from_hub", 0, b"from the hub")),
        vector("Data, empty", "ASC-1.4", suite, &empty, sealed("from_terminal", 1, b"")),
        vector("Probe", "ASC-1.4, RLY-5.1", suite, &probe, sealed("from_hub", 1, &probe_payload)),
        vector(
            "ProbeAck",
            "ASC-1.4, RLY-5.1",
            suite,
            &probe_ack,
            sealed("from_terminal", 2, &[0, 0, 0, 9, 0, 0, 0, 32]),
        ),
    ];
    all.extend(refused(pair, &hello, &up));
    all
}

/// Returns vectors of other responses of a hub, and of datagrams that it drops.
fn refused(mut pair: Pair, hello: &[u8], data: &[u8]) -> Vec<Value> {
    let suite = pair.suite;
    let mut all = Vec::new();
    let mut bad = |pair: &mut Pair, name: &str, clauses: &str, datagram: &[u8]| {
        assert!(pair.at_hub(datagram).is_err(), "{name}");
        assert_eq!(pair.answer(), None, "{name}");
        let reaction = json!({ "reaction": "dropped", "at": "hub" });
        all.push(vector(name, clauses, suite, datagram, reaction));
    };
    let changed = |datagram: &[u8], at: usize, mask: u8| {
        let mut datagram = datagram.to_vec();
        datagram[at] ^= mask;
        datagram
    };
    bad(&mut pair, "Data, again: a replay", "ASC-3.2", data);
    let damaged = changed(&pair.sealed(None, Sealed::Data, b"damaged on its way"), 9, 1);
    bad(&mut pair, "Data, one bit of the payload wrong", "ASC-3.2", &damaged);
    bad(&mut pair, "shorter than 24 bytes", "ASC-1.1", &data[..23]);
    bad(&mut pair, "another version, too short for an answer", "ASC-1.1, 1.5", &[0x23; 25]);
    bad(&mut pair, "another kind", "ASC-1.1", &changed(data, 0, 0x0b));
    bad(&mut pair, "Hello of another suite", "ASC-2.7", &changed(hello, 4, 1));
    let at = hello.len() - 17;
    let name =
        if suite == "null" { "Hello, its name changed" } else { "Hello, its first MAC wrong" };
    bad(
        &mut pair,
        name,
        if suite == "null" { "ASC-5.1" } else { "ASC-7.1" },
        &changed(hello, at, 1),
    );
    if suite == "noise" {
        bad(&mut pair, "Hello, again: its keys are in force", "ASC-2.8", hello);
    }
    let other = changed(data, 2, 0xff);
    assert!(pair.at_hub(&other).is_err());
    let unknown = pair.answer().expect("an Unknown");
    let more = json!({ "reaction": "a Hello", "answers": hex(&other) });
    all.push(vector("Unknown", "ASC-4.1, 5.1", suite, &unknown, more));
    let other = changed(hello, 0, 0x30);
    assert!(pair.at_hub(&other).is_err());
    let version = pair.answer().expect("a Version");
    let more = json!({
        "reaction": "reported", "answers": hex(&other), "lowest": version[8], "highest": version[9],
    });
    all.push(vector("Version", "ASC-1.5", suite, &version, more));
    all
}

/// Returns vectors of a hub under load by others' Hellos, and a terminal that is admitted by a
/// cookie.
fn cookie() -> Vec<Value> {
    let mut pair = Pair::new("noise", PresharedKey::NONE);
    for seed in 100..200 {
        let config =
            Config { security: noise(seed, "hub", 2, &PresharedKey::NONE), ..Config::new("other") };
        let stranger = Terminal::new(config, NOW, RngStream::new(seed, 0, "stranger"));
        let mut hello =
            Pair { terminal: stranger, ..Pair::new("noise", PresharedKey::NONE) }.hello(NOW);
        let elsewhere = "198.51.100.7:9".parse().expect("an address");
        let _ = pair.hub.handle_datagram(NOW, elsewhere, &mut hello);
    }
    while pair.answer().is_some() {}
    let hello = pair.hello(NOW);
    assert_eq!(pair.at_hub(&hello), Ok(None));
    let cookie = pair.answer().expect("a Cookie");
    let mut copy = cookie.clone();
    assert_eq!(pair.terminal.handle_datagram(NOW, &mut copy), Ok(TerminalReceived::Nothing));
    let with_cookie = pair.hello(NOW + Span::from_secs(1));
    assert_eq!(with_cookie[..160], hello[..160]);
    assert_eq!(pair.at_hub(&with_cookie), Ok(None));
    let public = hex(&public(2));
    vec![
        vector(
            "Cookie",
            "ASC-7.2, 7.4",
            "noise",
            &cookie,
            json!({
                "reaction": "the Hello again, with the second MAC", "hub_public": public,
                "hello": hex(&hello),
            }),
        ),
        vector(
            "Hello with a second MAC",
            "ASC-7.3",
            "noise",
            &with_cookie,
            json!({ "reaction": "a Welcome", "hub_public": public, "cookie": hex(&cookie) }),
        ),
    ]
}

/// Returns vectors of a terminal whose clock was set back.
fn set_back() -> Vec<Value> {
    let mut pair = Pair::new("noise", PresharedKey::NONE);
    let hello = pair.hello(NOW);
    assert_eq!(pair.at_hub(&hello), Ok(None));
    pair.answer().expect("a Welcome");
    let config = Config {
        security: noise(1, "hub", 2, &PresharedKey::NONE),
        limits: LIMITS,
        wall_clock_ns: WALL_CLOCK_NS - 1,
        ..Config::new("boat")
    };
    pair.terminal_draws = Recorded::new(5);
    pair.terminal = Terminal::new(config, NOW, pair.terminal_draws.clone());
    let early = pair.hello(NOW);
    let _ = pair.at_hub(&early);
    let welcome = pair.answer().expect("a Welcome");
    let given = pair.given(&early, &welcome);
    let mut copy = welcome.clone();
    assert_eq!(pair.terminal.handle_datagram(NOW, &mut copy), Err(OpenError::Stale));
    let later = pair.hello(NOW + Span::from_secs(1));
    assert_eq!(pair.at_hub(&later), Ok(None));
    assert_eq!(
        pair.answer().map(|welcome| welcome[..4] == [0x12, later[1], later[2], later[3]]),
        Some(true)
    );
    let more = json!({
        "reaction": "another Hello, later than that", "given": given, "hello": hex(&early),
        "latest_timestamp": WALL_CLOCK_NS,
    });
    vec![vector(
        "Welcome with index 0: the Hello was not later",
        "ASC-2.8",
        "noise",
        &welcome,
        more,
    )]
}

// The clauses are named by the association's own tests; this test compares the results with the
// files.
#[test]
fn datagrams_are_those_of_the_vectors() {
    let secret = PresharedKey::generate(&mut RngStream::new(9, 0, "preshared"));
    let both = Capabilities::ORDERLY_END.or(Capabilities::AES_256_GCM);
    let aes = Pair::with("noise", PresharedKey::NONE, both);
    let all = [
        association(Pair::new("null", PresharedKey::NONE)),
        association(Pair::new("noise", PresharedKey::NONE)),
        association(Pair::new("noise", secret)).into_iter().take(3).collect(),
        cookie(),
        set_back(),
        association(aes).into_iter().take(7).collect(),
    ]
    .concat();
    check("association.json", "Datagrams of the association (association.md).", &all);
}
