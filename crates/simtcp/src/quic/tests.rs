//! Two ends over a path with losses.

use super::*;
use std::collections::VecDeque;
use std::vec::Vec;
use units::Instant;

/// Two ends, a fixed delay, and a rule that drops packets.
struct Pair {
    ends: [Connection; 2],
    wire: VecDeque<(Instant, usize, Vec<u8>)>,
    now: Instant,
    delay: Span,
    /// Packets sent by each end.
    count: [u64; 2],
    /// Numbers of the client's packets and when they were sent.
    log: Vec<(u64, Instant)>,
}

impl Pair {
    fn new(config: &QuicConfig) -> Self {
        let now = Instant::ZERO;
        let ends = [Connection::connect(config, now), Connection::listen(config, now)];
        let (wire, delay) = (VecDeque::new(), Span::from_millis(300));
        Self { ends, wire, now, delay, count: [0; 2], log: Vec::new() }
    }

    /// Runs to `end`; `drops` decides by end, packet number and time.
    fn run(&mut self, end: Span, mut drops: impl FnMut(usize, u64, Instant) -> bool) {
        let end = Instant::ZERO + end;
        loop {
            for side in 0..2 {
                let mut out = [0; 1_452];
                while let Some(len) = self.ends[side].poll_transmit(self.now, &mut out) {
                    let number = wire::Reader::new(&out[..len]).unwrap().number;
                    assert_eq!(number, self.count[side], "no number is used again");
                    self.count[side] += 1;
                    if side == 0 {
                        self.log.push((number, self.now));
                    }
                    if !drops(side, number, self.now) {
                        self.wire.push_back((self.now + self.delay, 1 - side, out[..len].to_vec()));
                    }
                }
            }
            let timers = self.ends.iter().filter_map(Connection::poll_timeout);
            let Some(next) = timers.chain(self.wire.front().map(|packet| packet.0)).min() else {
                return;
            };
            if next > end {
                return;
            }
            self.now = next.max(self.now);
            while self.wire.front().is_some_and(|packet| packet.0 <= self.now) {
                let (_, to, bytes) = self.wire.pop_front().unwrap();
                self.ends[to].handle_datagram(self.now, &bytes).unwrap();
            }
            for side in &mut self.ends {
                side.handle_timeout(self.now);
            }
        }
    }
}

fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

#[test]
fn data_arrives_once_and_in_order_with_losses_in_both_directions() {
    let mut pair = Pair::new(&QuicConfig::default());
    let data = pattern(400_000);
    assert_eq!(pair.ends[0].write(&data), data.len());
    pair.ends[0].end();
    pair.run(secs(120), |_, number, _| number % 13 == 5);
    assert_eq!(pair.ends[1].peek(), data);
    pair.ends[1].consume(data.len());
    assert!(pair.ends[1].is_finished() && pair.ends[0].counters().retransmitted_segments > 10);
}

#[test]
fn rfc_9002_section_7_2_the_first_flight_is_ten_datagrams() {
    let mut pair = Pair::new(&QuicConfig::default());
    pair.ends[0].write(&pattern(400_000));
    pair.run(Span::from_millis(601), |_, _, _| false);
    // The handshake's packet and ten of data; the window of 14,520 octets.
    assert_eq!(pair.log.len(), 1 + 10);
}

#[test]
fn rfc_9002_section_6_2_two_probes_and_doubled_timeouts() {
    let mut pair = Pair::new(&QuicConfig::default());
    pair.ends[0].write(&pattern(3_000));
    // Everything after the handshake is lost.
    pair.run(secs(20), |_, _, now| now > Instant::ZERO + Span::from_millis(500));
    let times: Vec<u64> = pair.log[1..].iter().map(|(_, at)| at.as_nanos() / 1_000_000).collect();
    // PTO: 600 + 4 × 300 + 25 ms.
    let first = [600, 600, 600];
    let probes: Vec<u64> = [1, 3, 7].iter().flat_map(|n| [600 + n * 1_825; 2]).collect();
    assert_eq!(times[..3], first);
    assert_eq!(times[3..9], probes);
    // Ten datagrams and the acknowledged Initial.
    let window = pair.ends[0].snapshot().congestion_window;
    assert_eq!(window, 14_520 + 1_200, "a PTO is no loss");
}

#[test]
fn rfc_9002_section_6_2_4_a_tail_loss_costs_a_probe_timeout_and_no_window() {
    let mut pair = Pair::new(&QuicConfig::default());
    pair.ends[0].write(&pattern(3_000));
    // The last data packet is lost.
    pair.run(secs(10), |side, number, _| side == 0 && number == 3);
    assert_eq!(pair.ends[1].peek(), pattern(3_000));
    assert_eq!(pair.ends[0].counters().timeouts, 1);
    assert!(pair.now < Instant::ZERO + secs(5));
}

#[test]
fn rfc_9002_section_7_6_an_outage_is_persistent_congestion() {
    let mut pair = Pair::new(&QuicConfig::default());
    pair.ends[0].write(&pattern(4_000_000));
    let out = Instant::ZERO + secs(3)..Instant::ZERO + secs(15);
    pair.run(secs(3), |_, _, _| false);
    let before = pair.ends[0].snapshot().congestion_window;
    let mut least = u64::MAX;
    for half in 6..60 {
        pair.run(Span::from_millis(500 * half), |_, _, now| out.contains(&now));
        least = least.min(pair.ends[0].snapshot().congestion_window);
    }
    assert!(before > 100_000, "{before}");
    assert!(least < 10 * 1_452, "{least}: two datagrams, and growth within half a second");
    assert!(pair.ends[0].counters().timeouts >= 3);
}

#[test]
fn rfc_9002_section_6_2_2_1_probes_of_the_handshake_open_the_connection() {
    let mut pair = Pair::new(&QuicConfig::default());
    pair.ends[0].write(&pattern(3_000));
    // The Initial and the first probe are lost.
    pair.run(secs(3), |side, number, _| side == 0 && number < 2);
    assert_eq!(pair.ends[1].peek(), pattern(3_000));
    assert_eq!(pair.ends[0].counters().timeouts, 1);
}

#[test]
fn a_peer_that_never_responds_breaks_the_connection() {
    let mut pair = Pair::new(&QuicConfig::default());
    pair.run(secs(600), |_, _, _| true);
    assert!(pair.ends[0].is_broken());
}

#[test]
fn rfc_9002_section_5_3_ack_delay_is_in_the_unit_of_the_peer() {
    let config = QuicConfig { ack_delay_exponent: 10, ..QuicConfig::default() };
    let mut pair = Pair::new(&config);
    pair.ends[0].write(&pattern(500));
    pair.run(secs(5), |_, _, _| false);
    // The one packet is acknowledged after 25 ms, which are 24 units of 1,024 µs.
    let smoothed =
        Span::from_millis(600) + (Span::from_millis(25) - Span::from_micros(24 << 10)) / 8;
    assert_eq!(pair.ends[0].snapshot().round_trip, Some(smoothed));
}

#[test]
fn rfc_9002_section_5_3_ack_delay_is_at_most_max_ack_delay() {
    let mut pair = Pair::new(&QuicConfig::default());
    pair.ends[0].write(&pattern(500));
    pair.run(Span::from_millis(610), |_, _, _| false);
    let mut out = [0; 100];
    let mut writer = wire::Writer::new(&mut out, 50, false);
    // 100 ms in units of 8 µs, where 25 ms were announced.
    writer.ack(&wire::Ack { ranges: std::vec![(1, 2)], delay: 12_500 });
    let len = writer.finish(0);
    let now = Instant::ZERO + Span::from_millis(1_300);
    pair.ends[0].handle_datagram(now, &out[..len]).unwrap();
    let smoothed = Span::from_micros((600_000 * 7 + 675_000) / 8);
    assert_eq!(pair.ends[0].snapshot().round_trip, Some(smoothed));
}
