//! Allocation of a hub's link, and delay of urgent data.

mod crowd;

use crowd::{Crowd, DELAY, jain};
use relay::Plans;
use relay::plan::{Plan, Rates};
use units::{BitRate, Span};

fn mbps(rate: u64) -> BitRate {
    BitRate::from_mbps(rate)
}

fn differences(before: &[u64], after: &[u64]) -> Vec<u64> {
    before.iter().zip(after).map(|(before, after)| after - before).collect()
}

/// Runs for `span`; returns what each terminal's applications have read meanwhile.
fn goodputs(crowd: &mut Crowd, span: Span) -> Vec<u64> {
    let read = |crowd: &Crowd| (0..crowd.boats.len()).map(|boat| crowd.total(boat)).collect();
    let before: Vec<u64> = read(crowd);
    crowd.run(span, |_| false);
    differences(&before, &read(crowd))
}

#[test]
fn two_hundred_terminals_with_ten_connections_have_equal_shares() {
    let mut crowd = Crowd::new(200, mbps(50), mbps(10), Plans::default());
    for boat in 0..200 {
        for _ in 0..10 {
            crowd.open(boat, "bulk");
        }
    }
    crowd.run(Span::from_secs(4), |_| false);
    crowd.waited = [Span::ZERO; 2];
    let before: Vec<Vec<u64>> = (0..200).map(|boat| crowd.read(boat)).collect();
    let octets = crowd.octets[0];
    crowd.run(Span::from_secs(8), |_| false);
    let after: Vec<Vec<u64>> = (0..200).map(|boat| crowd.read(boat)).collect();
    let each: Vec<Vec<u64>> = before.iter().zip(&after).map(|(b, a)| differences(b, a)).collect();
    let terminals: Vec<u64> = each.iter().map(|one| one.iter().sum()).collect();
    let connections: Vec<u64> = each.concat();
    let (of_terminals, of_connections) = (jain(&terminals), jain(&connections));
    println!("Jain's index: terminals {of_terminals:.4}, connections {of_connections:.4}");
    assert!(of_terminals > 0.995, "{of_terminals}");
    assert!(of_connections > 0.98, "{of_connections}");
    // The link is full, and its queue has no packets that the gateway could have kept.
    let carried = crowd.octets[0] - octets;
    let most = mbps(50).bytes_in(Span::from_secs(8));
    println!("carried {:.4}, longest wait {}", carried as f64 / most as f64, crowd.waited[0]);
    assert!(carried > most / 1000 * 985 && carried <= most, "{carried} of {most}");
    assert!(crowd.waited[0] < Span::from_millis(25), "{}", crowd.waited[0]);
}

#[test]
fn an_urgent_request_passes_a_saturated_link() {
    let mut crowd = Crowd::new(50, mbps(10), mbps(10), Plans::default());
    for boat in 0..50 {
        for _ in 0..10 {
            crowd.open(boat, "bulk");
        }
    }
    crowd.run(Span::from_secs(5), |_| false);
    for boat in [3, 17] {
        let from = crowd.now;
        let stream = crowd.open(boat, "urgent").expect("opened");
        assert!(crowd.run(Span::from_secs(5), |c| c.boats[boat].ended.contains_key(&stream)));
        let took = crowd.now.since(from);
        println!("answered after {took}");
        assert!(took < DELAY * 2 * 6 / 5, "{took}");
    }
}

#[test]
fn a_flood_of_one_terminal_costs_others_nothing() {
    let run = |flood: bool| {
        let mut crowd = Crowd::new(20, mbps(20), mbps(10), Plans::default());
        for boat in 0..20 {
            for _ in 0..10 {
                crowd.open(boat, "bulk");
            }
        }
        if flood {
            for _ in 0..300 {
                crowd.open(0, "bulk");
            }
            for _ in 0..200 {
                crowd.open(0, "urgent");
            }
        }
        crowd.run(Span::from_secs(4), |_| false);
        // Packets with expedited forwarding at twice the link rate.
        let mut voice = voice(1_000);
        let before: Vec<u64> = (1..20).map(|boat| crowd.total(boat)).collect();
        for _ in 0..100 {
            if flood {
                let peer = crowd.boats[0].peer.expect("it is there");
                for port in 0..500u32 {
                    voice[20..24].copy_from_slice(&port.to_be_bytes());
                    let relay = crowd.hub.peer(peer).expect("it is there");
                    relay.send_datagram(crowd.now, &voice);
                }
            }
            crowd.run(Span::from_millis(100), |_| false);
        }
        let after: Vec<u64> = (1..20).map(|boat| crowd.total(boat)).collect();
        differences(&before, &after)
    };
    let (alone, flooded) = (run(false), run(true));
    let worst = alone.iter().zip(&flooded).map(|(a, f)| *f as f64 / *a as f64).fold(2.0, f64::min);
    println!("the worst keeps {worst:.4} of its share");
    assert!(worst > 0.98, "{worst}");
}

/// Returns a packet of `octets` over IPv4 and UDP with the DSCP of expedited forwarding.
fn voice(octets: usize) -> Vec<u8> {
    let mut packet = vec![0x45, 46 << 2, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.resize(octets, 0);
    packet
}

/// On a link where a packet takes longer than the interval of a session's pacer, a terminal with
/// one stream has its half in parallel to another's urgent packets.
#[test]
fn urgent_packets_have_only_their_terminals_share_of_a_low_rate_link() {
    let rate = BitRate::from_kbps(540);
    let mut crowd = Crowd::new(2, rate, rate, Plans::default());
    crowd.open(1, "bulk");
    crowd.run(Span::from_secs(5), |_| false);
    let (from, before) = (crowd.now, crowd.total(1));
    while crowd.now < from + Span::from_secs(20) {
        let peer = crowd.boats[0].peer.expect("it is there");
        crowd.hub.peer(peer).expect("it is there").send_datagram(crowd.now, &voice(362));
        crowd.run(Span::from_micros(6_631), |_| false);
    }
    let had = crowd.total(1) - before;
    let half = rate.bytes_in(Span::from_secs(10));
    assert!(had > half / 100 * 90, "{had} of {half} octets");
}

#[test]
fn a_call_is_not_delayed_by_bulk_data_of_other_terminals() {
    let rate = mbps(1);
    let mut crowd = Crowd::new(4, rate, rate, Plans::default());
    for boat in 1..4 {
        crowd.open(boat, "bulk");
    }
    crowd.run(Span::from_secs(5), |_| false);
    let (mut came, mut longest) = (0, Span::ZERO);
    for _ in 0..500 {
        let peer = crowd.boats[0].peer.expect("it is there");
        let mut packet = voice(200);
        packet[28..36].copy_from_slice(&crowd.now.as_nanos().to_be_bytes());
        crowd.hub.peer(peer).expect("it is there").send_datagram(crowd.now, &packet);
        for _ in 0..20 {
            crowd.run(Span::from_millis(1), |_| false);
            while let Some(packet) = crowd.boats[0].relay.take_datagram() {
                let sent = u64::from_be_bytes(packet[28..36].try_into().expect("eight octets"));
                longest = longest.max(crowd.now.since(units::Instant::from_nanos(sent)));
                came += 1;
            }
        }
    }
    println!("{came} came, the last after {longest}");
    // All except those in flight. Each waits for the packet in transmission, and for what the hub
    // sends after a late call (XSTP-8.1.2), and its own serialization; the polling interval is one
    // millisecond.
    assert!(came >= 480, "{came} came");
    let catch_up = Span::from_millis(20);
    let most = DELAY + rate.time_for(1_500) + catch_up + rate.time_for(300) + Span::from_millis(1);
    assert!(longest < most, "{longest}");
}

#[test]
fn allocations_follow_the_plans() {
    let rates = |committed: u64, peak: u64| Rates {
        committed: BitRate::new(committed * 1_000_000),
        peak: BitRate::new(peak * 1_000_000),
        total: None,
    };
    let plan =
        |name: &str, down, weight| Plan { name: name.into(), down, weight, ..Plan::default() };
    let plans = vec![
        plan("default", rates(0, 0), 1),
        plan("gold", rates(4, 0), 2),
        plan("silver", rates(2, 3), 1),
    ];
    let terminals = [("boat-0", 1), ("boat-1", 2)].map(|(name, plan)| (name.to_owned(), plan));
    let plans = Plans { plans, terminals: terminals.into() };
    let mut crowd = Crowd::new(4, mbps(20), mbps(10), plans);
    for boat in 0..4 {
        crowd.open(boat, "bulk");
    }
    crowd.run(Span::from_secs(5), |_| false);
    let span = Span::from_secs(10);
    let sent = goodputs(&mut crowd, span);
    // 20 less 6 committed are 14: silver gets 1 more, then gold 6.5, and the others 3.25 each.
    let shares = [10.5, 3.0, 3.25, 3.25];
    println!("{sent:?}");
    for (sent, share) in sent.iter().zip(shares) {
        let had = *sent as f64 * 8.0 / 10e6 * 1_500.0 / 1_436.0;
        assert!((had / share - 1.0).abs() < 0.03, "{had} of {share} Mbit/s: {sent}");
    }
    // Unused shares are available to the others immediately.
    let stream = *crowd.boats[0].read.keys().next().expect("one");
    crowd.boats[0].relay.reset(stream, relay::ResetReason::Aborted).expect("it is there");
    crowd.run(Span::from_secs(3), |_| false);
    let sent = goodputs(&mut crowd, span);
    let had = sent[2] as f64 * 8.0 / 10e6 * 1_500.0 / 1_436.0;
    assert!((had / 8.5 - 1.0).abs() < 0.03, "{had} Mbit/s");
}

/// Returns the octets that each terminal has sent within `span`.
fn sent(crowd: &mut Crowd, span: Span) -> Vec<u64> {
    let before = crowd.up.clone();
    crowd.run(span, |_| false);
    differences(&before, &crowd.up)
}

/// RLY-7.4
#[test]
fn a_return_link_is_shared_by_grants() {
    let mut crowd = Crowd::new(10, mbps(20), mbps(4), Plans::default());
    for boat in 0..4 {
        crowd.open(boat, "sink");
    }
    crowd.run(Span::from_secs(8), |_| false);
    crowd.waited = [Span::ZERO; 2];
    let shares = sent(&mut crowd, Span::from_secs(10));
    let sum: u64 = shares.iter().sum();
    let most = mbps(4).bytes_in(Span::from_secs(10));
    println!(
        "up: {:.3} used, Jain {:.4}, longest wait {}",
        sum as f64 / most as f64,
        jain(&shares[..4]),
        crowd.waited[1]
    );
    assert!(jain(&shares[..4]) > 0.99, "{shares:?}");
    assert!(sum > most / 100 * 93 && sum <= most, "{sum} of {most}");
    assert!(crowd.waited[1] < Span::from_millis(60), "{}", crowd.waited[1]);
    // A terminal that was idle is not delayed.
    let from = crowd.now;
    let stream = crowd.open(9, "urgent").expect("opened");
    assert!(crowd.run(Span::from_secs(5), |crowd| crowd.boats[9].ended.contains_key(&stream)));
    let took = crowd.now.since(from);
    println!("a silent terminal's request: {took}");
    assert!(took < DELAY * 2 * 6 / 5, "{took}");
    // One more gets its share, and keeps it when others leave.
    crowd.open(5, "sink");
    crowd.run(Span::from_secs(6), |_| false);
    let shares = sent(&mut crowd, Span::from_secs(10));
    assert!(jain(&[&shares[..4], &shares[5..6]].concat()) > 0.98, "{shares:?}");
}

/// RLY-7.4
#[test]
fn plans_apply_to_the_return_link_and_a_flood_costs_others_little() {
    let run = |flood: bool| {
        let up = |committed| Rates { committed: BitRate::new(committed), ..Rates::default() };
        let gold = Plan { name: "gold".into(), up: up(1_000_000), weight: 1, ..Plan::default() };
        let mut plans = Plans::default();
        plans.plans.push(gold);
        plans.terminals.insert("boat-1".into(), 1);
        let mut crowd = Crowd::new(6, mbps(20), mbps(4), plans);
        for boat in 0..6 {
            for _ in 0..if flood && boat == 0 { 300 } else { 3 } {
                crowd.open(boat, "sink");
            }
        }
        crowd.run(Span::from_secs(10), |_| false);
        sent(&mut crowd, Span::from_secs(15))
    };
    let (alone, flooded) = (run(false), run(true));
    let ratio = alone[1] as f64 / alone[2] as f64;
    // 3.92 less 1 committed are 2.92, a sixth of it for each.
    println!("gold has {ratio:.2} times what others have");
    assert!((ratio / 3.05 - 1.0).abs() < 0.05, "{alone:?}");
    let worst = alone[1..].iter().zip(&flooded[1..]).map(|(a, f)| *f as f64 / *a as f64);
    let worst = worst.fold(2.0, f64::min);
    println!("the worst keeps {worst:.4} of its share on the way up");
    assert!(worst > 0.98, "{alone:?} {flooded:?}");
}

/// RLY-7.4: many small excesses build no queue.
#[test]
fn a_return_link_is_not_overcommitted_when_terminals_start_one_by_one() {
    let mut crowd = Crowd::new(24, mbps(20), mbps(8), Plans::default());
    for boat in 0..16 {
        crowd.open(boat, "sink");
    }
    crowd.run(Span::from_secs(10), |_| false);
    for boat in 16..20 {
        crowd.open(boat, "sink");
        crowd.run(Span::from_secs(5), |_| false);
        crowd.waited[1] = Span::ZERO;
        let sent: u64 = sent(&mut crowd, Span::from_secs(5)).iter().sum();
        let most = mbps(8).bytes_in(Span::from_secs(5));
        println!("{boat}: {:.3} used, {}", sent as f64 / most as f64, crowd.waited[1]);
        assert!(sent <= most && sent > most / 100 * 93, "{sent} of {most}");
        assert!(crowd.waited[1] < Span::from_millis(60), "{}", crowd.waited[1]);
    }
}

/// RLY-7.4: the aggregate rate of a plan applies to the return link, and an unused share goes to
/// others.
#[test]
fn aggregates_apply_to_the_return_link_and_unused_shares_go_to_others() {
    let up = Rates { total: Some(mbps(1)), ..Rates::default() };
    let mut plans = Plans::default();
    plans.plans.push(Plan { name: "schools".into(), up, weight: 1, ..Plan::default() });
    plans.terminals.extend(["boat-0", "boat-1"].map(|name| (name.to_owned(), 1)));
    let mut crowd = Crowd::new(6, mbps(20), mbps(4), plans);
    let total = |sent: &[u64]| sent.iter().sum::<u64>() as f64 * 8.0 / 10e6;
    for boat in 0..2 {
        crowd.open(boat, "sink");
    }
    crowd.run(Span::from_secs(8), |_| false);
    let alone = sent(&mut crowd, Span::from_secs(10));
    println!("the schools alone: {:.3} Mbit/s of 1", total(&alone[..2]));
    assert!((0.93..1.01).contains(&total(&alone[..2])), "{alone:?}");
    // This terminal's modem carries a tenth of its share.
    crowd.boats[2].relay.set_rates(Some(BitRate::from_kbps(100)), Some(mbps(20)));
    for boat in 2..5 {
        crowd.open(boat, "sink");
    }
    crowd.run(Span::from_secs(15), |_| false);
    let shared = sent(&mut crowd, Span::from_secs(10));
    println!("all: {:.3} Mbit/s of 4, {shared:?}", total(&shared));
    assert!(total(&shared[..2]) < 1.01 && total(&shared[2..3]) < 0.11, "{shared:?}");
    assert!((3.6..4.0).contains(&total(&shared)), "{shared:?}");
}

/// RLY-7.2, RLY-7.4
#[test]
fn a_new_terminal_on_a_full_return_link_gets_a_grant_and_sends_its_queue() {
    for others in [4, 20] {
        let mut crowd = Crowd::new(others + 1, mbps(20), mbps(4), Plans::default());
        crowd.leave(0);
        for boat in 1..=others {
            crowd.open(boat, "sink");
        }
        crowd.run(Span::from_secs(20), |_| false);
        crowd.come_again(0);
        crowd.open(0, "sink");
        crowd.waited[1] = Span::ZERO;
        crowd.run(Span::from_secs(3), |_| false);
        let most = crowd.waited[1];
        crowd.waited[1] = Span::ZERO;
        let sent: u64 = sent(&mut crowd, Span::from_secs(10)).iter().sum();
        println!("{others} and a new one: {most} of queue at most, {} later", crowd.waited[1]);
        // Sent in the round trip before its first grant.
        assert!(most < DELAY * 2 + Span::from_millis(100), "{most}");
        // The sum of grants exceeds the link only briefly: with more than sixteen terminals, the
        // initial grants exceed it.
        let granted = crowd.boats.iter().filter_map(|boat| boat.relay.granted());
        let granted: u64 = granted.map(BitRate::as_bps).sum();
        assert!(granted <= mbps(4).as_bps(), "{granted}");
        let link = mbps(4).bytes_in(Span::from_secs(10));
        assert!(sent < link && crowd.waited[1] < most, "{sent} of {link}, {}", crowd.waited[1]);
    }
}

/// RLY-7.1: a hub that no longer knows the return link's rate stops sharing it.
#[test]
fn grants_end_with_the_configured_rate() {
    let mut crowd = Crowd::new(8, mbps(20), mbps(4), Plans::default());
    for boat in 0..4 {
        crowd.open(boat, "sink");
    }
    crowd.run(Span::from_secs(8), |_| false);
    let granted = |crowd: &Crowd, boat: usize| crowd.boats[boat].relay.granted();
    assert!(granted(&crowd, 0) < Some(mbps(2)) && granted(&crowd, 6) < Some(mbps(2)));
    crowd.hub.set_rates(Some(mbps(20)), None);
    crowd.run(Span::from_secs(2), |_| false);
    for boat in 0..8 {
        assert!(granted(&crowd, boat) > Some(mbps(1_000_000)), "{:?}", granted(&crowd, boat));
    }
    crowd.hub.set_rates(Some(mbps(20)), Some(mbps(4)));
    crowd.run(Span::from_secs(8), |_| false);
    assert!(granted(&crowd, 0) < Some(mbps(2)), "{:?}", granted(&crowd, 0));
}

/// RLY-7.1: grants do not silence a terminal.
#[test]
fn grants_on_a_low_rate_return_link_are_at_least_eight_kbit() {
    let mut crowd = Crowd::new(8, mbps(20), BitRate::from_kbps(40), Plans::default());
    for boat in 0..8 {
        crowd.open(boat, "sink");
    }
    crowd.run(Span::from_secs(30), |_| false);
    let ids: Vec<_> = crowd.hub.peers().collect();
    assert_eq!(ids.len(), 8);
    for id in ids {
        let granted = crowd.hub.standing(id).granted;
        assert!(granted >= Some(BitRate::from_kbps(8)), "{granted:?}");
    }
}
