//! Attacks on the noise suite, and its features.

mod rig;

use association::{
    Config, Hub, HubReceived, OVERHEAD, OpenError, PresharedKey, Sealed, Terminal,
    TerminalReceived, TransmitBatch,
};
use rig::*;
use std::net::SocketAddr;
use units::{Instant, RngStream, Span};

fn pair() -> (Terminal, Hub) {
    let (mut terminal, mut hub) = (terminal(Suite::Noise, 1, at(0)), hub(Suite::Noise, 1));
    greet(&mut terminal, &mut hub, at(0));
    (terminal, hub)
}

fn terminal_with(config: Config, now: Instant) -> Terminal {
    Terminal::new(config, now, RngStream::new(3, 0, "terminal"))
}

fn said(hub: &mut Hub, now: Instant, hello: &[u8]) -> Result<(), OpenError> {
    hub.handle_datagram(now, home(), &mut hello.to_vec()).map(|_| ())
}

/// ASC-6.5
#[test]
fn an_unknown_key_is_rejected_without_a_response() {
    let mut hub = hub(Suite::Noise, 1);
    let mut stranger = terminal_with(terminal_config(Suite::Noise, "stranger"), at(0));
    let hello = hello_of(&mut stranger, at(0)).expect("hello");
    let key = key("stranger").public();
    assert_eq!(said(&mut hub, at(0), &hello), Err(OpenError::UnknownKey { key }));
    assert_eq!(hub.counters().unknown_keys, 1);
    assert!(!hub.has_answers());
}

/// ASC-6.3, ASC-7.1
#[test]
fn another_hubs_key_gets_no_response() {
    let mut wrong = hub_config(Suite::Noise, &[]);
    wrong.security = noise("other hub", vec![known("boat")]);
    let mut other = Hub::new(wrong, RngStream::new(1, 0, "hub"));
    let mut terminal = terminal(Suite::Noise, 1, at(0));
    let hello = hello_of(&mut terminal, at(0)).expect("hello");
    assert_eq!(said(&mut other, at(0), &hello), Err(OpenError::Tag));
    assert!(!other.has_answers());
}

/// ASC-6.3: the terminal without a response stays in its state.
#[test]
fn another_preshared_key_makes_no_association() {
    let mut config = hub_config(Suite::Noise, &[]);
    let mut boat = known("boat");
    boat.preshared = PresharedKey::generate(&mut RngStream::new(1, 0, "psk"));
    let psk = boat.preshared.clone();
    config.security = noise("hub", vec![boat]);
    let mut hub = Hub::new(config, RngStream::new(1, 0, "hub"));
    let mut without = terminal(Suite::Noise, 1, at(0));
    let hello = hello_of(&mut without, at(0)).expect("hello");
    said(&mut hub, at(0), &hello).expect("the key is known");
    let (_, mut welcome) = answer_of(&mut hub).expect("welcome");
    assert_eq!(without.handle_datagram(at(0), &mut welcome), Err(OpenError::Tag));
    assert!(!without.is_established());

    let mut config = terminal_config(Suite::Noise, "boat");
    let mut shore = known("hub");
    shore.preshared = psk;
    config.security = noise("boat", vec![shore]);
    greet(&mut terminal_with(config, at(1)), &mut hub, at(1));
}

/// ASC-6.3: a Welcome with a wrong secret is not repeated after the configuration was corrected.
#[test]
fn a_hub_with_a_corrected_secret_responds_again_to_the_same_hello() {
    let mut config = hub_config(Suite::Noise, &[]);
    let mut boat = known("boat");
    boat.preshared = PresharedKey::generate(&mut RngStream::new(1, 0, "psk"));
    config.security = noise("hub", vec![boat]);
    let mut hub = Hub::new(config, RngStream::new(1, 0, "hub"));
    let mut terminal = terminal(Suite::Noise, 1, at(0));
    let hello = hello_of(&mut terminal, at(0)).expect("hello");
    said(&mut hub, at(0), &hello).expect("the key is known");
    let (_, mut welcome) = answer_of(&mut hub).expect("welcome");
    assert_eq!(terminal.handle_datagram(at(0), &mut welcome), Err(OpenError::Tag));

    let association::Security::Noise(right) = noise("hub", vec![known("boat")]) else {
        panic!("keys")
    };
    assert!(hub.set_keys(right).is_empty());
    greet(&mut terminal, &mut hub, at(2_000));
    assert!(terminal.is_established());
}

/// ASC-6.5: the configured name applies, whatever name the terminal sends.
#[test]
fn a_terminal_cannot_take_another_ones_name() {
    let config = hub_config(Suite::Noise, &["boat", "buoy"]);
    let mut hub = Hub::new(config, RngStream::new(1, 0, "hub"));
    let (mut boat, mut second) = (terminal(Suite::Noise, 1, at(0)), {
        let config = Config { name: "boat".into(), ..terminal_config(Suite::Noise, "buoy") };
        terminal_with(config, at(0))
    });
    greet(&mut boat, &mut hub, at(0));
    let (peer, ..) = take(&mut hub, at(0), home(), up(&mut boat, b""));
    greet(&mut second, &mut hub, at(1));
    let (other, _, replaced) = take(&mut hub, at(1), home(), up(&mut second, b""));
    assert_eq!((hub.name(peer), hub.name(other)), (Some("boat"), Some("buoy")));
    assert_eq!(replaced, None);
}

/// ASC-2.7
#[test]
fn suites_do_not_mix() {
    let mut terminals = BOTH.map(|suite| terminal(suite, 1, at(0)));
    let mut hubs = BOTH.map(|suite| hub(suite, 1));
    for (one, other) in [(0, 1), (1, 0)] {
        let hello = hello_of(&mut terminals[one], at(0)).expect("hello");
        let suite = |index| u8::from(BOTH[index] == Suite::Noise);
        let error = OpenError::Suite { found: suite(one), expected: suite(other) };
        assert_eq!(said(&mut hubs[other], at(0), &hello), Err(error));
        assert!(!hubs[other].has_answers());
    }
}

/// ASC-6.4: every bit of every message, and every length.
#[test]
fn every_damaged_message_is_rejected() {
    let (mut terminal, mut hub) = (terminal(Suite::Noise, 1, at(0)), hub(Suite::Noise, 1));
    let hello = hello_of(&mut terminal, at(0)).expect("hello");
    // mac2 is ignored by a hub that is not under load.
    for byte in 0..hello.len() - 16 {
        let mut damaged = hello.clone();
        damaged[byte] ^= 1 << (byte % 8);
        assert!(said(&mut hub, at(0), &damaged).is_err(), "byte {byte}");
        assert!(said(&mut hub, at(0), &hello[..byte]).is_err(), "{byte} bytes");
    }
    assert!(!hub.has_answers());
    said(&mut hub, at(0), &hello).expect("whole");
    let (_, welcome) = answer_of(&mut hub).expect("welcome");
    // Three octets are zero and ignored.
    for byte in (0..5).chain(8..welcome.len()) {
        let mut damaged = welcome.clone();
        damaged[byte] ^= 1 << (byte % 8);
        assert!(terminal.handle_datagram(at(0), &mut damaged).is_err(), "byte {byte}");
        let mut short = welcome[..byte].to_vec();
        assert!(terminal.handle_datagram(at(0), &mut short).is_err(), "{byte} bytes");
    }
    terminal.handle_datagram(at(0), &mut welcome.clone()).expect("whole");
    let data = up(&mut terminal, b"payload");
    for byte in 0..data.len() {
        let mut damaged = data.clone();
        damaged[byte] ^= 1 << (byte % 8);
        assert!(hub.handle_datagram(at(0), home(), &mut damaged).is_err(), "byte {byte}");
        let mut short = data[..byte].to_vec();
        assert!(hub.handle_datagram(at(0), home(), &mut short).is_err(), "{byte} bytes");
    }
    take(&mut hub, at(0), home(), data);
}

/// ASC-6.6
#[test]
fn payloads_are_not_visible_in_transit() {
    let (mut terminal, mut hub) = pair();
    let secret = b"nobody is to read this";
    let sealed = up(&mut terminal, secret);
    assert_eq!(sealed.len(), secret.len() + OVERHEAD);
    assert!(!sealed.windows(8).any(|window| secret.windows(8).any(|part| part == window)));
    let (peer, ..) = take(&mut hub, at(0), home(), sealed);
    let (_, sealed) = down(&mut hub, peer, secret);
    assert!(!sealed.windows(8).any(|window| secret.windows(8).any(|part| part == window)));
    assert_eq!(got(&mut terminal, at(0), sealed), secret);
}

/// ASC-2.8
#[test]
fn a_replayed_hello_changes_nothing() {
    let mut hub = hub(Suite::Noise, 1);
    let mut old = terminal(Suite::Noise, 1, at(0));
    let first = hello_of(&mut old, at(0)).expect("hello");
    said(&mut hub, at(0), &first).expect("taken");
    let _ = answer_of(&mut hub);
    // A later Hello lacks its first datagram when the earlier one is replayed.
    let mut new = terminal(Suite::Noise, 2, at(1_000));
    let second = hello_of(&mut new, at(1_000)).expect("hello");
    said(&mut hub, at(1_000), &second).expect("taken");
    let (_, mut welcome) = answer_of(&mut hub).expect("welcome");
    assert_eq!(said(&mut hub, at(1_001), &first), Err(OpenError::Stale));
    let (_, mut stale) = answer_of(&mut hub).expect("says what time it is");
    assert!(stale.len() < first.len());
    assert!(new.handle_datagram(at(1_002), &mut stale).is_err(), "an answer to another Hello");
    new.handle_datagram(at(1_002), &mut welcome).expect("established");
    let (peer, first_payload, _) = take(&mut hub, at(1_003), home(), up(&mut new, b"x"));
    assert!(first_payload);
    // In the end even the last one has no effect and no response.
    assert_eq!(said(&mut hub, at(1_004), &second), Err(OpenError::Stale));
    assert!(!hub.has_answers());
    assert_eq!(take(&mut hub, at(1_005), home(), up(&mut new, b"y")).0, peer);
}

/// ASC-2.8
#[test]
fn a_clock_that_was_set_back_costs_one_round_trip() {
    let (_, mut hub) = pair();
    let config = Config { wall_clock_ns: 0, ..terminal_config(Suite::Noise, "boat") };
    let mut reset = terminal_with(config, at(5_000));
    let hello = hello_of(&mut reset, at(5_000)).expect("hello");
    assert_eq!(said(&mut hub, at(5_300), &hello), Err(OpenError::Stale));
    let (_, mut stale) = answer_of(&mut hub).expect("an answer");
    assert_eq!(reset.handle_datagram(at(5_600), &mut stale), Err(OpenError::Stale));
    assert!(!reset.is_established());
    greet(&mut reset, &mut hub, at(5_600));
    assert!(take(&mut hub, at(6_200), home(), up(&mut reset, b"x")).1);
    // From then on its timestamps are later than the hub's.
    renew(&mut reset, &mut hub, at(130_000));
}

/// ASC-8.1, ASC-8.2
#[test]
fn keys_are_renewed_while_the_previous_ones_remain_valid() {
    let (mut terminal, mut hub) = pair();
    let (peer, ..) = take(&mut hub, at(0), home(), up(&mut terminal, b"x"));
    let late_up = up(&mut terminal, b"late");
    let (_, late_down) = down(&mut hub, peer, b"late");
    let due = terminal.poll_timeout().expect("a renewal");
    assert_eq!(due, at(120_000));
    let mut hello = hello_of(&mut terminal, due).expect("hello");
    // Meanwhile both sides use the previous keys.
    take(&mut hub, due, home(), up_at(&mut terminal, due, b"on"));
    hub.handle_datagram(due, home(), &mut hello).expect("taken");
    let (_, mut welcome) = answer_of(&mut hub).expect("welcome");
    got(&mut terminal, due, down_at(&mut hub, due, peer, b"on").1);
    let received = terminal.handle_datagram(due, &mut welcome);
    assert_eq!(received, Ok(TerminalReceived::Nothing), "nothing new for the layer above");
    // The hub uses the previous keys until it has received a datagram under the new ones.
    let (_, before) = down_at(&mut hub, due, peer, b"old");
    let confirm = hello_of(&mut terminal, due).expect("the first datagram");
    assert_eq!(confirm.len(), OVERHEAD);
    assert_eq!(take(&mut hub, due, home(), confirm), (peer, false, None));
    let (_, after) = down_at(&mut hub, due, peer, b"new");
    assert_ne!(before[1..4], after[1..4], "another index");
    assert_eq!(after[4..8], [0; 4], "a counter of its own");
    assert_eq!(got(&mut terminal, due, after), b"new");
    // Delayed datagrams under the previous keys are accepted.
    assert_eq!(got(&mut terminal, due, before), b"old");
    assert_eq!(got(&mut terminal, due, late_down), b"late");
    assert_eq!(take(&mut hub, due, home(), late_up).0, peer);
    assert_eq!((terminal.counters().renewals, terminal.poll_timeout()), (1, Some(at(240_000))));
}

/// ASC-8.3
#[test]
fn previous_keys_decrypt_for_a_minute_and_migrate_no_path() {
    let (mut terminal, mut hub) = pair();
    let (peer, ..) = take(&mut hub, at(0), home(), up(&mut terminal, b"x"));
    let [one, two] = [b"1", b"2"].map(|payload| up(&mut terminal, payload));
    let (_, sealed) = down(&mut hub, peer, b"3");
    renew(&mut terminal, &mut hub, at(120_000));
    take(&mut hub, at(179_999), elsewhere(), one);
    assert_eq!(hub.address(peer), Some(home()));
    let unknown = |result: Result<(), OpenError>| {
        assert!(matches!(result, Err(OpenError::UnknownIndex { .. })), "{result:?}");
    };
    unknown(said(&mut hub, at(180_000), &two));
    unknown(terminal.handle_datagram(at(180_000), &mut sealed.clone()).map(|_| ()));
}

/// ASC-8.1
#[test]
fn keys_are_renewed_after_a_number_of_datagrams() {
    let config = Config { renew_after_datagrams: 100, ..terminal_config(Suite::Noise, "boat") };
    let mut terminal = terminal_with(config, at(0));
    let mut hub = hub(Suite::Noise, 1);
    greet(&mut terminal, &mut hub, at(0));
    let (peer, ..) = take(&mut hub, at(0), home(), up(&mut terminal, b"x"));
    for round in 1..5 {
        let now = at(round * 1_000);
        // In either direction.
        for _ in 0..100 {
            if round % 2 == 0 {
                take(&mut hub, now, home(), up_at(&mut terminal, now, b"x"));
            } else {
                got(&mut terminal, now, down_at(&mut hub, now, peer, b"x").1);
            }
        }
        assert!(terminal.poll_timeout().is_some_and(|due| due <= now), "round {round}");
        renew(&mut terminal, &mut hub, now);
        assert_eq!((terminal.counters().renewals, hub.counters().renewals), (round, round));
    }
}

/// ASC-8.4
#[test]
fn expired_keys_stop_data_until_they_are_renewed() {
    let (mut terminal, mut hub) = pair();
    let (peer, ..) = take(&mut hub, at(0), home(), up(&mut terminal, b"x"));
    let _lost = hello_of(&mut terminal, at(120_000)).expect("hello");
    let early = up_at(&mut terminal, at(599_999), b"x");
    let mut datagram = with_room(b"x");
    assert!(!terminal.seal(at(600_000), Sealed::Data, &mut datagram));
    assert_eq!(hub.seal(at(600_000), peer, Sealed::Data, &mut datagram), None);
    assert!(matches!(said(&mut hub, at(600_000), &early), Err(OpenError::UnknownIndex { .. })));
    let _unknown = answer_of(&mut hub);
    renew(&mut terminal, &mut hub, at(700_000));
    assert_eq!(hub.address(peer), Some(home()), "it is still the same");
}

/// ASC-4.2, ASC-4.3
#[test]
fn a_forged_unknown_ends_nothing_and_further_ones_are_ignored() {
    let (mut terminal, mut hub) = pair();
    let (peer, ..) = take(&mut hub, at(0), home(), up(&mut terminal, b"x"));
    let mut other = rig::hub(Suite::Noise, 9);
    let mut hellos = 0;
    for second in 1..=100u64 {
        let now = at(second * 1_000);
        // Anyone who sees a datagram can forge its Unknown.
        let mut seen = up_at(&mut terminal, now, b"x");
        let _ = other.handle_datagram(now, elsewhere(), &mut seen.clone());
        let (_, mut unknown) = answer_of(&mut other).expect("unknown");
        terminal.handle_datagram(now, &mut unknown).expect("looks true");
        take(&mut hub, now, home(), core::mem::take(&mut seen));
        while let Some(mut hello) = hello_of(&mut terminal, now) {
            hellos += u32::from(hello.len() > OVERHEAD);
            hub.handle_datagram(now, home(), &mut hello).expect("taken");
            while let Some((_, mut welcome)) = answer_of(&mut hub) {
                let received = terminal.handle_datagram(now, &mut welcome);
                assert_eq!(received, Ok(TerminalReceived::Nothing), "the association goes on");
            }
        }
    }
    assert!((9..=11).contains(&hellos), "{hellos}");
    assert_eq!(
        take(&mut hub, at(100_001), home(), up_at(&mut terminal, at(100_001), b"y")).0,
        peer
    );
}

/// ASC-3.3
#[test]
fn only_authentic_datagrams_migrate_the_path() {
    let (mut terminal, mut hub) = pair();
    let (peer, ..) = take(&mut hub, at(0), home(), up(&mut terminal, b"x"));
    let mut forged = up(&mut terminal, b"x");
    forged[20] ^= 1;
    assert!(hub.handle_datagram(at(1), elsewhere(), &mut forged).is_err());
    assert_eq!(hub.address(peer), Some(home()));
    take(&mut hub, at(2), elsewhere(), up(&mut terminal, b"moved"));
    assert_eq!(down(&mut hub, peer, b"x").0, elsewhere());
}

/// Returns Hellos with a valid mac1, because the attacker knows the hub's public key.
fn forged_hello(number: u64) -> Vec<u8> {
    let config = terminal_config(Suite::Noise, "forger");
    let mut forger = Terminal::new(config, at(0), RngStream::new(number, 0, "forger"));
    hello_of(&mut forger, at(0)).expect("hello")
}

fn from(number: u64) -> SocketAddr {
    let [.., a, b, c] = number.to_be_bytes();
    SocketAddr::from(([10, a, b, c], 4500))
}

/// ASC-7.2, ASC-7.3, ASC-7.5
#[test]
fn a_flood_of_forged_hellos_is_cheap_and_does_not_block_new_terminals() {
    let mut hub = hub(Suite::Noise, 1);
    let hellos: Vec<Vec<u8>> = (0..20).map(forged_hello).collect();
    let mut terminal = terminal(Suite::Noise, 1, at(500));
    let (mut sent, mut answered, mut worked) = (0, 0, 0);
    let mut established = None;
    // 10,000 per second for three seconds, from as many addresses.
    for number in 0..30_000u64 {
        let now = Instant::ZERO + Span::from_micros(100) * number;
        let mut hello = hellos[(number % 20) as usize].clone();
        sent += hello.len();
        match hub.handle_datagram(now, from(number), &mut hello) {
            Err(OpenError::UnknownKey { .. }) => worked += 1,
            Ok(HubReceived::Nothing) | Err(OpenError::Busy) => {}
            other => panic!("{other:?}"),
        }
        if let Some(mut hello) = hello_of(&mut terminal, now) {
            let _ = hub.handle_datagram(now, home(), &mut hello);
        }
        while let Some((to, mut answer)) = answer_of(&mut hub) {
            if to != home() {
                answered += answer.len();
                continue;
            }
            if terminal.handle_datagram(now, &mut answer) == Ok(TerminalReceived::Established) {
                established = Some(now);
                take(&mut hub, now, home(), up_at(&mut terminal, now, b"x"));
            }
        }
    }
    assert!(worked < 64 + 3 * 50 + 2, "{worked} Hellos were worked for");
    assert!(answered * 3 < sent, "{answered} bytes went out for {sent}");
    let took = established.expect("the terminal got through").since(at(500));
    // Its first Hello exceeds the limit of Cookies, and its second one gets one.
    assert!(took <= Span::from_millis(1_510), "after {took}");
    assert_eq!(terminal.counters().cookies, 1);
}

/// ASC-7.5
#[test]
fn one_address_is_limited_to_its_rate() {
    let mut hub = hub(Suite::Noise, 1);
    // The hub is under load.
    for number in 0..64 {
        let _ = hub.handle_datagram(at(0), from(number), &mut forged_hello(number % 8));
    }
    let config = terminal_config(Suite::Noise, "forger");
    let mut forger = Terminal::new(config, at(0), RngStream::new(1, 0, "forger"));
    let mut hello = hello_of(&mut forger, at(0)).expect("hello");
    assert_eq!(hub.handle_datagram(at(1), home(), &mut hello), Ok(HubReceived::Nothing));
    let (_, mut cookie) = answer_of(&mut hub).expect("cookie");
    forger.handle_datagram(at(1), &mut cookie).expect("taken");
    let hello = hello_of(&mut forger, at(501)).expect("hello");
    let mut worked = 0;
    for _ in 0..40 {
        match hub.handle_datagram(at(1), home(), &mut hello.clone()) {
            Err(OpenError::UnknownKey { .. }) => worked += 1,
            Err(OpenError::Busy) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(worked, 16);
    assert_eq!(hub.counters().busy, 24);
}

/// ASC-7.4
#[test]
fn a_forged_cookie_is_rejected() {
    let mut terminal = terminal(Suite::Noise, 1, at(0));
    let hello = hello_of(&mut terminal, at(0)).expect("hello");
    let mut cookie = vec![0x15; 52];
    cookie[1..4].copy_from_slice(&hello[1..4]);
    cookie[4..8].copy_from_slice(&[1, 0, 0, 0]);
    assert_eq!(terminal.handle_datagram(at(1), &mut cookie), Err(OpenError::Tag));
    assert_eq!(terminal.poll_timeout(), Some(at(1_000)), "the next Hello is due as before");
}

/// ASC-6.7
#[test]
fn a_terminal_that_is_no_longer_configured_is_removed() {
    let config = hub_config(Suite::Noise, &["boat", "buoy"]);
    let mut hub = Hub::new(config, RngStream::new(1, 0, "hub"));
    let mut terminals = ["boat", "buoy"].map(|name| {
        let config = terminal_config(Suite::Noise, name);
        Terminal::new(config, at(0), RngStream::new(1, 0, name))
    });
    let peers = terminals.each_mut().map(|terminal| {
        greet(terminal, &mut hub, at(0));
        take(&mut hub, at(0), home(), up(terminal, b"x")).0
    });
    // The buoy's key is removed, and a new one has its name.
    let buoy = known_as("buoy", key("new buoy").public());
    let association::Security::Noise(keys) = noise("hub", vec![known("boat"), buoy]) else {
        panic!("noise")
    };
    assert_eq!(hub.set_keys(keys), [peers[1]]);
    take(&mut hub, at(1), home(), up(&mut terminals[0], b"x"));
    let datagram = up(&mut terminals[1], b"x");
    assert!(matches!(said(&mut hub, at(1), &datagram), Err(OpenError::UnknownIndex { .. })));
    let (_, mut unknown) = answer_of(&mut hub).expect("unknown");
    terminals[1].handle_datagram(at(1_000), &mut unknown).expect("heeded");
    let hello = hello_of(&mut terminals[1], at(1_000)).expect("hello");
    let result = said(&mut hub, at(1_000), &hello);
    assert_eq!(result, Err(OpenError::UnknownKey { key: key("buoy").public() }));
    // The others' timestamps are kept.
    renew(&mut terminals[0], &mut hub, at(130_000));
}

/// ASC-2.1: the keys of a batch are those of its datagrams.
#[test]
fn a_hello_needs_sufficient_space_in_a_batch() {
    let mut terminal = terminal(Suite::Noise, 1, at(0));
    let mut small = [0; 100];
    assert!(!terminal.poll_transmit(at(0), &mut TransmitBatch::new(&mut small, 1)));
    assert!(hello_of(&mut terminal, at(0)).is_some());
}
