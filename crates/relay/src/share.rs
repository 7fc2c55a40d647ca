//! Buffer memory shared by the paths of one terminal.
//!
//! Each path's relay has its own pools, which are resized periodically: bytes that a relay has
//! granted to its peer, or stores, stay in its pool, and free bytes are divided evenly. So the sum
//! of all pools never exceeds the configured memory, except for the minimum of each stream, and a
//! path that carries all traffic gets nearly all of it within a few updates.

use crate::Relay;

impl Relay {
    /// Returns the bytes of buffer granted to the peer, including shared credit, and the
    /// unacknowledged bytes.
    pub(crate) fn taken(&self) -> [u64; 2] {
        self.streams.taken()
    }
}

/// Divides `bytes` of buffer in each direction among `relays`, the paths of one terminal. The
/// caller repeats this periodically, and when a path is added.
pub fn share_memory(relays: &mut [&mut Relay], bytes: u64) {
    divide(relays, [bytes; 2]);
}

/// Divides these bytes of receive and send buffer among `relays`.
pub(crate) fn divide(relays: &mut [&mut Relay], bytes: [u64; 2]) {
    let count = relays.len().max(1) as u64;
    let taken: Vec<[u64; 2]> = relays.iter().map(|relay| relay.taken()).collect();
    let free = [0, 1].map(|way: usize| {
        let all: u64 = taken.iter().map(|taken| taken[way]).sum();
        bytes[way].saturating_sub(all) / count
    });
    for (relay, taken) in relays.iter_mut().zip(taken) {
        relay.streams.set_pools(taken[0] + free[0], taken[1] + free[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Owner, Priority, RelayConfig, Target};
    use units::{Instant, RngStream, Span};

    const ALL: u64 = 8 << 20;

    fn relay(seed: u64) -> Relay {
        let now = Instant::ZERO + Span::from_secs(1);
        // A quarter of one half is credit that the peer may use immediately.
        let config = RelayConfig::new("boat").with_memory(ALL / 2);
        Relay::terminal(&config, now, RngStream::new(seed, 0, "terminal"))
    }

    #[test]
    fn free_memory_moves_to_the_used_path() {
        let mut relays = [relay(1), relay(2)];
        let now = Instant::ZERO + Span::from_secs(1);
        let share = |relays: &mut [Relay; 2]| {
            let [one, other] = relays;
            share_memory(&mut [one, other], ALL);
            let pools = relays.each_ref().map(|relay| relay.streams.pools());
            assert!(pools.iter().map(|pools| pools[0]).sum::<u64>() <= ALL, "{pools:?}");
            assert!(pools.iter().map(|pools| pools[1]).sum::<u64>() <= ALL, "{pools:?}");
            pools
        };
        assert_eq!(share(&mut relays).map(|pools| pools[1]), [ALL / 2; 2], "send buffer");
        // Many clients send over the first path, each as much as it has credit for, and none over
        // the second.
        let streams: [_; 600] = std::array::from_fn(|client| {
            let target = Target::name("x", 1);
            let stream = relays[0].open(now, target, Priority::Normal).expect("a stream");
            relays[0].set_owner(stream, Owner(client as u128));
            stream
        });
        for _ in 0..10 {
            for stream in streams {
                relays[0].write(now, stream, &vec![7; 4 << 20]).expect("it is open");
            }
            share(&mut relays);
        }
        let [one, other] = share(&mut relays);
        assert!(one[1] > ALL / 10 * 9, "{} of {ALL}", one[1]);
        assert!(one[1] + other[1] > ALL - 2, "nothing is lost");
        assert!(other[0] > 0 && one[0] > 0, "each can receive");
        // Without a session, it leaves all memory to the other path.
        relays[0] = relay(3);
        let [one, other] = share(&mut relays);
        assert_eq!([one[1], other[1]], [ALL / 2; 2]);
    }
}
