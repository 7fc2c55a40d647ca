//! Terminal and hub connected by a network that the tests control, in each suite.

mod rig;

use association::{
    Capabilities, Config, Hub, HubReceived, OVERHEAD, OpenError, PeerId, Sealed, Terminal,
    TerminalReceived,
};
use proptest::prelude::*;
use rig::*;
use units::{RngStream, Span};

/// ASC-1.2, ASC-2.4
#[test]
fn payloads_are_delivered_in_both_directions_and_the_first_confirms() {
    for suite in BOTH {
        let (mut terminal, mut hub) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut hub, at(0));
        let (peer, first, replaced) = take(&mut hub, at(1), home(), up(&mut terminal, b"one"));
        assert!(first);
        assert_eq!(replaced, None);
        assert_eq!(hub.name(peer), Some("boat"));
        assert_eq!(hub.limits(peer), terminal.hub_limits());
        let (_, first, _) = take(&mut hub, at(2), home(), up(&mut terminal, b"two"));
        assert!(!first);
        let (to, datagram) = down(&mut hub, peer, b"back");
        assert_eq!(to, home());
        assert_eq!(got(&mut terminal, at(3), datagram), b"back");
        // An empty payload is valid.
        take(&mut hub, at(4), home(), up(&mut terminal, b""));
    }
}

/// ASC-2.1
#[test]
fn a_lost_hello_is_repeated_with_growing_intervals() {
    for suite in BOTH {
        let mut terminal = terminal(suite, 1, at(10));
        let mut sent = Vec::new();
        let mut hellos = Vec::new();
        while sent.len() < 7 {
            let due = terminal.poll_timeout().expect("hello pending");
            assert!(hello_of(&mut terminal, due - Span::from_nanos(1)).is_none());
            hellos.push(hello_of(&mut terminal, due).expect("due"));
            sent.push(due.as_nanos() / 1_000_000);
        }
        let waits: Vec<u64> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let longest = [1000, 1500, 2250, 3375, 5000, 5000];
        let in_range = |(wait, longest): (&u64, u64)| (longest * 3 / 4..=longest).contains(wait);
        assert!(waits[0] == 1000 && waits.iter().zip(longest).all(in_range), "{waits:?}");
        assert_ne!(waits[4], waits[5], "a part is random");
        // The same message each time: the response to any of them is valid.
        assert!(hellos.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

/// ASC-2.2
#[test]
fn a_repeated_hello_gets_the_same_welcome() {
    for suite in BOTH {
        let (mut terminal, mut hub) = (terminal(suite, 1, at(0)), hub(suite, 1));
        let hello = hello_of(&mut terminal, at(0)).expect("hello");
        for _ in 0..2 {
            hub.handle_datagram(at(0), home(), &mut hello.clone()).expect("hello");
        }
        let first = answer_of(&mut hub).expect("welcome");
        assert_eq!(Some(first), answer_of(&mut hub));
    }
}

/// ASC-2.2: without keys anyone can modify a Hello; the original one gets a response, too.
#[test]
fn a_modified_hello_does_not_replace_the_original() {
    let (mut terminal, mut hub) = (terminal(Suite::Null, 1, at(0)), hub(Suite::Null, 1));
    let hello = hello_of(&mut terminal, at(0)).expect("hello");
    let mut changed = hello.clone();
    changed[3] ^= 1;
    let end = changed.len() - 16;
    let tag = xxhash_rust::xxh3::xxh3_128_with_seed(&changed[..end], 0x6265_6e74_7069_7065);
    changed[end..].copy_from_slice(&tag.to_be_bytes());
    hub.handle_datagram(at(0), elsewhere(), &mut changed).expect("looks right");
    let _ = answer_of(&mut hub);
    hub.handle_datagram(at(1), home(), &mut hello.clone()).expect("hello");
    let (_, mut welcome) = answer_of(&mut hub).expect("welcome");
    assert_eq!(terminal.handle_datagram(at(1), &mut welcome), Ok(TerminalReceived::Established));
}

/// ASC-4.2
#[test]
fn a_restarted_hub_is_detected_by_the_next_datagram() {
    for suite in BOTH {
        let (mut terminal, mut old) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut old, at(0));
        let mut new = hub(suite, 2);
        let mut lost = up(&mut terminal, b"to nobody");
        let sent = lost.len();
        let result = new.handle_datagram(at(5_000), home(), &mut lost);
        assert!(matches!(result, Err(OpenError::UnknownIndex { .. })));
        let (to, mut unknown) = answer_of(&mut new).expect("unknown");
        assert_eq!(to, home());
        assert!(unknown.len() <= sent);
        assert_eq!(
            terminal.handle_datagram(at(5_300), &mut unknown),
            Ok(TerminalReceived::Nothing)
        );
        greet(&mut terminal, &mut new, at(5_300));
        assert!(take(&mut new, at(5_600), home(), up(&mut terminal, b"again")).1);
    }
}

/// ASC-2.4
#[test]
fn a_restarted_terminal_replaces_its_association_with_the_first_payload() {
    for suite in BOTH {
        let (mut old, mut hub) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut old, &mut hub, at(0));
        let (before, ..) = take(&mut hub, at(0), home(), up(&mut old, b"x"));
        let mut new = terminal(suite, 2, at(9_000));
        greet(&mut new, &mut hub, at(9_000));
        // Until then the previous association remains, because a Hello alone proves nothing.
        assert_eq!(take(&mut hub, at(9_100), home(), up(&mut old, b"x")).0, before);
        let (after, first, replaced) = take(&mut hub, at(9_600), home(), up(&mut new, b"y"));
        assert_ne!(after, before);
        assert!(first);
        assert_eq!(replaced, Some(before));
        assert_eq!(hub.address(before), None);
    }
}

/// ASC-2.11
#[test]
fn an_association_beside_earlier_ones_ends_the_oldest_of_more_than_three() {
    for suite in BOTH {
        let mut hub = hub(suite, 1);
        let mut all: Vec<(Terminal, PeerId)> = Vec::new();
        for number in 0..6 {
            let now = at(9_000 * number);
            let config = Config { is_beside: number > 0, ..terminal_config(suite, "boat") };
            let mut new = Terminal::new(config, now, RngStream::new(number, 0, "terminal"));
            greet(&mut new, &mut hub, now);
            let (peer, first, replaced) = take(&mut hub, now, home(), up(&mut new, b"x"));
            let oldest = all.len().checked_sub(4).map(|_| all.remove(0).1);
            assert_eq!((first, replaced), (true, oldest));
            all.push((new, peer));
            for (terminal, peer) in &mut all {
                assert_eq!(take(&mut hub, now, home(), up(terminal, b"x")).0, *peer);
            }
        }
        // Each renews its own keys.
        if suite == Suite::Noise {
            for (number, (terminal, peer)) in (0..).zip(&mut all) {
                let now = at(170_000 + 1_000 * number);
                renew(terminal, &mut hub, now);
                assert_eq!(take(&mut hub, now, home(), up_at(terminal, now, b"x")).0, *peer);
            }
        }
        // A terminal that has restarted has none of them any more.
        let now = at(180_000);
        let mut new = terminal(suite, 9, now);
        greet(&mut new, &mut hub, now);
        let mut datagram = up_at(&mut new, now, b"x");
        let received = hub.handle_datagram(now, home(), &mut datagram).expect("received");
        let HubReceived::Payload { replaced, .. } = received else { panic!("{received:?}") };
        assert_eq!(replaced, all.iter().map(|(_, peer)| *peer).collect::<Vec<_>>());
    }
}

/// Of two processes of a hub the second one receives everything, and rejects what belongs to the
/// first without a response.
#[test]
fn a_shared_hub_leaves_unknown_associations_to_the_other_process() {
    for suite in BOTH {
        let (mut terminal, mut old) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut old, at(0));
        let (peer, ..) = take(&mut old, at(0), home(), up(&mut terminal, b"x"));
        let mut new = hub(suite, 2);
        new.set_shared(true);
        let mut datagram = up(&mut terminal, b"y");
        let received = new.handle_datagram(at(1), home(), &mut datagram);
        assert_eq!(received, Err(OpenError::Elsewhere));
        assert_eq!(take(&mut old, at(1), home(), datagram).0, peer);
        if suite == Suite::Noise {
            let mut hello = hello_of(&mut terminal, at(120_000)).expect("renewal");
            let received = new.handle_datagram(at(120_000), home(), &mut hello);
            assert_eq!(received, Err(OpenError::Elsewhere));
            assert_eq!(answer_of(&mut new), None);
            old.drain();
            let received = old.handle_datagram(at(120_000), home(), &mut hello);
            assert_eq!(received, Ok(HubReceived::Nothing));
            // The association has ended meanwhile: the second process responds after all.
            old.remove(peer);
            let _ = answer_of(&mut old);
            let mut hello = hello_of(&mut terminal, at(121_000)).expect("repeated");
            new.set_shared(false);
            let received = new.handle_datagram(at(121_000), home(), &mut hello);
            assert_eq!(received, Ok(HubReceived::Nothing));
            let (_, mut welcome) = answer_of(&mut new).expect("welcome");
            assert_eq!(
                terminal.handle_datagram(at(121_000), &mut welcome),
                Ok(TerminalReceived::Established)
            );
        }
    }
}

/// ASC-4.2
#[test]
fn an_unknown_without_a_valid_echo_is_ignored() {
    for suite in BOTH {
        let (mut terminal, mut hub_a) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut hub_a, at(0));
        let sealed = up(&mut terminal, b"x");
        let mut unknown = {
            let mut other = hub(suite, 2);
            let _ = other.handle_datagram(at(0), home(), &mut sealed.clone());
            answer_of(&mut other).expect("unknown").1
        };
        let mut other_index = unknown.clone();
        other_index[3] ^= 1;
        assert_eq!(terminal.handle_datagram(at(1), &mut other_index), Err(OpenError::Tag));
        let due = at(1) + Span::from_secs(10);
        assert!(terminal.poll_timeout().is_none_or(|at| at > due));
        // A valid one causes a Hello, and the association remains active meanwhile.
        terminal.handle_datagram(at(1), &mut unknown).expect("heeded");
        assert!(terminal.poll_timeout().is_some_and(|at| at < due));
        take(&mut hub_a, at(2), home(), up(&mut terminal, b"still"));
    }
}

/// ASC-4.1
#[test]
fn unknowns_are_rate_limited_and_never_larger_than_their_cause() {
    for suite in BOTH {
        let (mut terminal, mut known) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut known, at(0));
        let mut other = hub(suite, 2);
        let mut sent = 0;
        for millisecond in 0..1000 {
            let _ = other.handle_datagram(at(millisecond), home(), &mut up(&mut terminal, b""));
            while let Some((_, unknown)) = answer_of(&mut other) {
                assert_eq!(unknown.len(), OVERHEAD);
                sent += 1;
            }
        }
        assert!((4..=8).contains(&sent), "{sent} in a second");
    }
}

/// ASC-4.1
#[test]
fn a_flood_from_other_addresses_does_not_hide_a_restart() {
    for suite in BOTH {
        let (mut terminal, mut known) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut known, at(0));
        let mut other = hub(suite, 2);
        let stray = up(&mut terminal, b"");
        let mut rng = RngStream::new(1, 0, "addresses");
        let (mut heard, mut answers) = (0, 0);
        for tenth in 0..10_000 {
            let now = at(5_000) + Span::from_micros(tenth * 100);
            for copy in 0..5 {
                // Some sources are forged, others real.
                let ip = if copy == 0 { 0xc633_6401 } else { rng.next_u64() as u32 };
                let from = (std::net::Ipv4Addr::from_bits(ip), 4500).into();
                let _ = other.handle_datagram(now, from, &mut stray.clone());
            }
            // A terminal with ten datagrams per second.
            if tenth % 1_000 == 500 {
                let _ = other.handle_datagram(now, home(), &mut up(&mut terminal, b"x"));
            }
            while let Some((to, _)) = answer_of(&mut other) {
                heard += u32::from(to == home());
                answers += 1;
            }
        }
        assert!(heard > 0, "the terminal received no message");
        assert!(answers <= 10_064, "{answers} in a second");
    }
}

/// ASC-3.3
#[test]
fn the_latest_datagram_determines_the_terminals_address() {
    for suite in BOTH {
        let (mut terminal, mut hub) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut hub, at(0));
        let late = up(&mut terminal, b"sent from home");
        let (peer, ..) = take(&mut hub, at(1), elsewhere(), up(&mut terminal, b"moved"));
        assert_eq!(hub.address(peer), Some(elsewhere()));
        take(&mut hub, at(2), home(), late);
        assert_eq!(hub.address(peer), Some(elsewhere()), "an older datagram moves nobody back");
    }
}

/// ASC-3.2
#[test]
fn replays_and_reflections_are_rejected() {
    for suite in BOTH {
        let (mut terminal, mut hub) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut hub, at(0));
        let sealed = up(&mut terminal, b"once");
        take(&mut hub, at(1), home(), sealed.clone());
        let again = hub.handle_datagram(at(2), elsewhere(), &mut sealed.clone()).map(|_| ());
        assert_eq!(again, Err(OpenError::Replayed { counter: 0 }));
        assert_eq!(hub.counters().replayed, 1);
        // A terminal's datagram cannot be reflected to it, whatever index it is given.
        let (peer, ..) = take(&mut hub, at(3), home(), up(&mut terminal, b""));
        let (_, sample) = down(&mut hub, peer, b"");
        let mut reflected = sealed;
        reflected[..4].copy_from_slice(&sample[..4]);
        assert_eq!(terminal.handle_datagram(at(4), &mut reflected), Err(OpenError::Tag));
    }
}

/// ASC-1.4
#[test]
fn payloads_keep_their_kind_and_kinds_share_a_counter() {
    for suite in BOTH {
        let (mut terminal, mut hub) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut hub, at(0));
        let kinds = [(Sealed::Probe, 0x16), (Sealed::ProbeAck, 0x17), (Sealed::Data, 0x13)];
        for (counter, (kind, byte)) in (0u8..).zip(kinds) {
            let mut datagram = with_room(b"x");
            assert!(terminal.seal(at(0), kind, &mut datagram));
            assert_eq!((datagram[0], datagram[7]), (byte, counter));
            let received = hub.handle_datagram(at(0), home(), &mut datagram);
            assert!(
                matches!(received, Ok(HubReceived::Payload { kind: found, .. }) if found == kind)
            );
        }
    }
}

#[test]
fn a_flood_of_hellos_takes_no_slots() {
    let mut hub = full_hub(Suite::Null, 2, &[]);
    for seed in 0..500 {
        let mut terminal = named(Suite::Null, &format!("flood {seed}"));
        let mut hello = hello_of(&mut terminal, at(0)).expect("hello");
        hub.handle_datagram(at(seed), home(), &mut hello).expect("room is made");
        assert!(answer_of(&mut hub).is_some());
    }
    let mut boat = named(Suite::Null, "boat");
    greet(&mut boat, &mut hub, at(600));
    take(&mut hub, at(601), home(), up(&mut boat, b"here"));
}

/// Returns the terminal called `name`.
fn named(suite: Suite, name: &str) -> Terminal {
    Terminal::new(terminal_config(suite, name), at(0), RngStream::new(1, 0, name))
}

/// Returns a hub with `places` slots, some of which the terminals in `here` use.
fn full_hub(suite: Suite, places: usize, here: &[&str]) -> Hub {
    let all = [here, &["one more", "another"]].concat();
    let config = Config { max_terminals: places, ..hub_config(suite, &all) };
    let mut hub = Hub::new(config, RngStream::new(1, 0, "hub"));
    for name in here {
        let mut terminal = named(suite, name);
        greet(&mut terminal, &mut hub, at(0));
        take(&mut hub, at(1), home(), up(&mut terminal, b"here"));
    }
    hub
}

/// ASC-2.9
#[test]
fn a_terminal_beyond_the_limit_waits_for_a_free_slot() {
    for suite in BOTH {
        let mut hub = full_hub(suite, 1, &[]);
        let mut first = named(suite, "another");
        greet(&mut first, &mut hub, at(0));
        let (peer, ..) = take(&mut hub, at(1), home(), up(&mut first, b"here"));
        let mut waiting = named(suite, "one more");
        let mut refused = 0;
        for now in (0..20_000).step_by(100).map(at) {
            let Some(mut hello) = hello_of(&mut waiting, now) else { continue };
            assert_eq!(hub.handle_datagram(now, elsewhere(), &mut hello), Err(OpenError::Full));
            assert_eq!(answer_of(&mut hub), None);
            refused += 1;
        }
        assert_eq!((hub.counters().full, refused > 3), (refused, true));
        // A terminal with a slot keeps it when it reconnects.
        let mut again = named(suite, "another");
        let later =
            Config { wall_clock_ns: 1_790_000_001 << 30, ..terminal_config(suite, "another") };
        if suite == Suite::Noise {
            again = Terminal::new(later, at(0), RngStream::new(2, 0, "again"));
        }
        greet(&mut again, &mut hub, at(20_000));
        let (new, _, replaced) = take(&mut hub, at(20_001), home(), up(&mut again, b"again"));
        assert_eq!(replaced, Some(peer));
        hub.remove(new);
        // The Hello is unchanged: its rejection has not made it a replay.
        let due = waiting.poll_timeout().expect("it asks on");
        assert!(due.since(at(20_000)) <= Span::from_secs(5));
        greet(&mut waiting, &mut hub, due);
        assert!(take(&mut hub, due, home(), up(&mut waiting, b"at last")).1);
    }
}

/// ASC-2.9
#[test]
fn a_welcome_reserves_no_slot() {
    for suite in BOTH {
        let mut hub = full_hub(suite, 2, &["boat"]);
        let (mut one, mut other) = (named(suite, "one more"), named(suite, "another"));
        greet(&mut one, &mut hub, at(2));
        greet(&mut other, &mut hub, at(3));
        assert!(take(&mut hub, at(4), home(), up(&mut one, b"first")).1);
        let mut late = up(&mut other, b"second");
        let result = hub.handle_datagram(at(5), elsewhere(), &mut late);
        assert_eq!(result.map(|_| ()), Err(OpenError::Full));
        // It receives an Unknown, and connects like any other terminal.
        let (to, mut unknown) = answer_of(&mut hub).expect("unknown");
        assert_eq!(to, elsewhere());
        other.handle_datagram(at(600), &mut unknown).expect("heeded");
        let mut hello = hello_of(&mut other, at(600)).expect("at once");
        let result = hub.handle_datagram(at(600), elsewhere(), &mut hello);
        assert_eq!(result.map(|_| ()), Err(OpenError::Full));
        assert_eq!(hub.counters().full, 2);
        assert!(!take(&mut hub, at(601), home(), up(&mut one, b"still here")).1);
    }
}

proptest! {
    #[test]
    fn garbage_is_refused_without_harm(noise: bool, datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 1..40)) {
        let suite = BOTH[usize::from(noise)];
        let (mut terminal, mut hub) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut hub, at(0));
        for mut datagram in datagrams {
            // Half of them begin like valid datagrams.
            if let Some(first) = datagram.first_mut().filter(|first| **first & 0x80 != 0) {
                *first = 0x10 | *first & 0x07;
            }
            prop_assert!(hub.handle_datagram(at(1), elsewhere(), &mut datagram.clone()).is_err());
            prop_assert!(terminal.handle_datagram(at(1), &mut datagram).is_err());
        }
        take(&mut hub, at(2), home(), up(&mut terminal, b"still here"));
    }

    #[test]
    fn every_damaged_or_cut_datagram_is_refused(noise: bool, flip in 0usize..2000, cut in 0usize..60, len in 0usize..36) {
        let suite = BOTH[usize::from(noise)];
        let (mut terminal, mut hub) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut hub, at(0));
        let sealed = up(&mut terminal, &[0xa5; 36][..len]);
        let mut damaged = sealed.clone();
        let bit = flip % (damaged.len() * 8);
        damaged[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(hub.handle_datagram(at(1), home(), &mut damaged).is_err());
        let mut short = sealed[..cut.min(sealed.len() - 1)].to_vec();
        prop_assert!(hub.handle_datagram(at(1), home(), &mut short).is_err());
        take(&mut hub, at(2), home(), sealed);
    }
}

/// ASC-1.5
#[test]
fn another_version_gets_a_version_message_that_the_terminal_reports() {
    for suite in BOTH {
        let (mut terminal, mut hub) = (terminal(suite, 1, at(0)), hub(suite, 1));
        let hello = hello_of(&mut terminal, at(0)).expect("hello");
        let mut newer = hello.clone();
        newer[0] = 0x21;
        let mut send = |datagram: &[u8], second: u64| {
            let mut datagram = datagram.to_vec();
            let result = hub.handle_datagram(at(second * 1000), home(), &mut datagram);
            assert!(matches!(result, Err(OpenError::Version { .. })), "{result:?}");
            answer_of(&mut hub).map(|(_, answer)| answer)
        };
        let version = send(&newer, 1).expect("a Version");
        assert_eq!((version.len(), version[0]), (26, 0));
        assert_eq!((&version[1..8], &version[8..10]), (&hello[1..8], &[1, 1][..]));
        assert_eq!(send(&newer[..25], 2), None, "it would be larger than what it answers");
        assert_eq!(send(&version, 3), None, "a Version is not answered");
        // Responses to one address are limited.
        let answered = (0..20).filter(|_| send(&newer, 10).is_some()).count();
        assert!((1..=4).contains(&answered), "{answered} answers at once");
        assert_eq!(hub.counters().versions, 1 + answered as u64);

        // A hub of version 2 responds to the Hello.
        let mut other = version.clone();
        other[8..10].copy_from_slice(&[2, 3]);
        let write_tag = |datagram: &mut Vec<u8>| {
            let tag = xxhash_rust::xxh3::xxh3_128_with_seed(&datagram[..10], 0x7665_7273_696f_6e21);
            datagram[10..].copy_from_slice(&tag.to_be_bytes());
        };
        write_tag(&mut other);
        let error = OpenError::PeerVersions { lowest: 2, highest: 3, own: 1 };
        let mut take = |datagram: &[u8]| {
            let mut datagram = datagram.to_vec();
            terminal.handle_datagram(at(5), &mut datagram).expect_err("no payload")
        };
        assert_eq!(take(&other), error);
        assert_eq!(error.to_string(), "hub understands versions 2 to 3, this side 1");
        assert_eq!(take(&version), OpenError::Unexpected, "this version is among them");
        let mut forged = other.clone();
        forged[7] ^= 1;
        assert_eq!(take(&forged), OpenError::Tag);
        write_tag(&mut forged);
        assert_eq!(take(&forged), OpenError::Unexpected, "not an answer to this Hello");
        assert_eq!(terminal.counters().versions, 1);
    }
}

/// ASC-6.6
#[test]
fn both_sides_choose_the_same_cipher_whichever_of_them_has_aes() {
    let aes = Capabilities::ALL.or(Capabilities::AES_256_GCM);
    for [of_terminal, of_hub] in [[aes, aes], [aes, Capabilities::ALL], [Capabilities::ALL, aes]] {
        let mut config = terminal_config(Suite::Noise, "boat");
        config.limits.capabilities = of_terminal;
        let mut terminal = Terminal::new(config, at(0), RngStream::new(1, 0, "terminal"));
        let mut config = hub_config(Suite::Noise, &["boat"]);
        config.limits.capabilities = of_hub;
        let mut hub = Hub::new(config, RngStream::new(1, 0, "hub"));
        greet(&mut terminal, &mut hub, at(0));
        let (peer, _, _) = take(&mut hub, at(1), home(), up(&mut terminal, b"one"));
        let (_, mut datagram) = down(&mut hub, peer, b"two");
        let opened = terminal.handle_datagram(at(1), &mut datagram);
        assert!(
            matches!(opened, Ok(TerminalReceived::Payload { payload, .. }) if payload == b"two")
        );
    }
}

/// ASC-2.10
#[test]
fn sides_exchange_capabilities_and_old_releases_have_none() {
    for suite in BOTH {
        let (mut terminal, mut hub) = (terminal(suite, 1, at(0)), hub(suite, 1));
        greet(&mut terminal, &mut hub, at(0));
        let (peer, _, _) = take(&mut hub, at(1), home(), up(&mut terminal, b"one"));
        let at_terminal = terminal.hub_limits().expect("established").capabilities;
        let at_hub = hub.limits(peer).expect("established").capabilities;
        assert_eq!([at_terminal, at_hub], [Capabilities::ORDERLY_END; 2]);
    }
    let mut config = terminal_config(Suite::Noise, "boat");
    config.limits.capabilities = Capabilities::NONE;
    let mut old = Terminal::new(config, at(0), RngStream::new(1, 0, "terminal"));
    let mut hub = hub(Suite::Noise, 1);
    greet(&mut old, &mut hub, at(0));
    let (peer, _, _) = take(&mut hub, at(1), home(), up(&mut old, b"one"));
    assert_eq!(hub.limits(peer).map(|limits| limits.capabilities), Some(Capabilities::NONE));
}
