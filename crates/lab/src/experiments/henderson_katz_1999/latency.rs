//! Number of round trips of a TCP reply, as section V.B of the paper computes it: without loss,
//! transmission and server time. The paper does not state its rules in full; those used here were
//! selected among [`OTHERS`] because they reproduce the table.

use crate::experiments::Values;
use sim::traffic::mah;

/// The four variants of TCP in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// T/TCP: no handshake round trip.
    pub(super) transactions: bool,
    /// 4KSS: up to 4,380 octets in the first burst.
    pub(super) large_start: bool,
}

impl Way {
    pub(super) const ALL: [Self; 4] = [
        Self { transactions: false, large_start: false },
        Self { transactions: true, large_start: false },
        Self { transactions: false, large_start: true },
        Self { transactions: true, large_start: true },
    ];

    /// Returns the name in the table.
    pub(super) fn name(self) -> &'static str {
        match (self.transactions, self.large_start) {
            (false, false) => "standard TCP",
            (true, false) => "T/TCP",
            (false, true) => "TCP with 4KSS",
            (true, true) => "T/TCP with 4KSS",
        }
    }
}

/// Orbits, and their round trips in seconds.
pub(super) const ORBITS: [(&str, f64); 2] = [("GEO", 0.6), ("LEO", 0.08)];
/// Octets of a segment, including 40 of headers.
pub(super) const SEGMENTS: [u64; 2] = [1_500, 500];

/// Rules of the computation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    /// Name in keys.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pool: mah::Size,
    headers: u64,
    /// Segments of the first burst with 4KSS; `None` for as many as RFC 2414 allows.
    large: Option<u64>,
    cull: u64,
    /// Whether the acknowledgement of a single first segment is delayed with T/TCP as well.
    late_with_transactions: bool,
    /// Number of segments per acknowledgement.
    acknowledge: u64,
}

/// The rules used here.
pub(super) const TAKEN: Model = Model {
    name: "taken",
    about: "primary replies; 40 bytes of headers in a segment; four segments at first with 4KSS, \
            of either size; one acknowledgement for two segments of a burst, rounded up, each \
            opening the window by one; 100 ms where the first burst is a single segment, but not \
            with T/TCP; replies over 100 segments left out",
    pool: mah::Size::PrimaryReply,
    headers: 40,
    large: Some(4),
    cull: 100,
    late_with_transactions: false,
    acknowledge: 2,
};

const fn alternative(name: &'static str, about: &'static str, model: Model) -> Model {
    Model { name, about, ..model }
}

/// Alternatives, each with one change.
pub(super) const OTHERS: [Model; 6] = [
    alternative(
        "secondary",
        "secondary replies",
        Model { pool: mah::Size::SecondaryReply, ..TAKEN },
    ),
    alternative("whole", "headers not counted in the segment", Model { headers: 0, ..TAKEN }),
    alternative(
        "rfc-2414",
        "4,380 bytes at first with 4KSS: three large segments, four small ones",
        Model { large: None, ..TAKEN },
    ),
    alternative("all", "no reply left out", Model { cull: u64::MAX, ..TAKEN }),
    alternative(
        "late",
        "100 ms for a single first segment with T/TCP as well",
        Model { late_with_transactions: true, ..TAKEN },
    ),
    alternative(
        "doubling",
        "each segment acknowledged: the window doubles",
        Model { acknowledge: 1, ..TAKEN },
    ),
];

/// Mean delay of a delayed acknowledgement in seconds; the maximum is 200 ms.
const LATE: f64 = 0.1;

impl Model {
    /// Returns the number of bursts of a reply of `segments` with `first` segments in the first
    /// burst.
    pub(super) fn bursts(&self, segments: u64, first: u64) -> u64 {
        let (mut window, mut sent, mut bursts) = (first, first, 1);
        while sent < segments {
            window += window.div_ceil(self.acknowledge);
            sent += window;
            bursts += 1;
        }
        bursts
    }

    fn first(&self, way: Way, payload: u64) -> u64 {
        let allowed = (4 * payload).min((2 * payload).max(4_380)) / payload;
        if way.large_start { self.large.unwrap_or(allowed) } else { 1 }
    }

    /// Returns the time from the client's first packet to the last octet of the reply, in seconds.
    pub(super) fn latency(&self, way: Way, segments: u64, payload: u64, round_trip: f64) -> f64 {
        let first = self.first(way, payload);
        let waits =
            segments > 1 && first == 1 && (!way.transactions || self.late_with_transactions);
        let handshake = if way.transactions { 0.0 } else { round_trip };
        let late = if waits { LATE } else { 0.0 };
        handshake + late + round_trip * self.bursts(segments, first) as f64
    }

    /// Returns minimum, median and mean over the replies that are not excluded, in seconds.
    pub(super) fn of(&self, way: Way, segment: u64, round_trip: f64) -> [f64; 3] {
        let payload = segment - self.headers;
        let mut all: Vec<f64> = self
            .replies(payload)
            .map(|segments| self.latency(way, segments, payload, round_trip))
            .collect();
        all.sort_by(f64::total_cmp);
        [all[0], all[all.len() / 2], all.iter().sum::<f64>() / all.len() as f64]
    }

    /// Returns the fraction of replies that are excluded.
    pub(super) fn left_out(&self, segment: u64) -> f64 {
        1.0 - self.replies(segment - self.headers).count() as f64 / REPLIES as f64
    }

    /// Returns the sizes in segments of the replies that are not excluded, at evenly spaced
    /// quantiles.
    fn replies(&self, payload: u64) -> impl Iterator<Item = u64> {
        let share = |index: u32| (f64::from(index) + 0.5) / f64::from(REPLIES);
        let (pool, cull) = (self.pool, self.cull);
        (0..REPLIES)
            .map(move |index| mah::quantile(pool, share(index)).div_ceil(payload))
            .filter(move |&segments| segments <= cull)
    }

    /// Returns all numbers of the table.
    pub(super) fn table(&self) -> Values {
        let mut values = Values::new();
        for (orbit, round_trip) in ORBITS {
            for segment in SEGMENTS {
                for way in Way::ALL {
                    let found = self.of(way, segment, round_trip);
                    values = values.with_series(&column(orbit, segment, way), found.to_vec());
                }
            }
        }
        for segment in SEGMENTS {
            values = values.with(&format!("left out/{segment}"), self.left_out(segment));
        }
        values
    }
}

/// Number of quantiles.
const REPLIES: u32 = 50_000;

/// Returns the name of a series of minimum, median and mean.
pub(super) fn column(orbit: &str, segment: u64, way: Way) -> String {
    format!("{orbit}/{segment}/{}", way.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_segments_take_the_time_of_figure_5() {
        let seconds = |transactions, large_start| {
            TAKEN.latency(Way { transactions, large_start }, 3, 1_460, 0.6)
        };
        assert!((seconds(false, false) - 1.9).abs() < 1e-12);
        assert_eq!(seconds(true, false), 1.2);
        assert_eq!(seconds(false, true), 1.2);
        assert_eq!(seconds(true, true), 0.6);
    }

    #[test]
    fn bursts_grow_with_acknowledgements() {
        // 1, then 2, 3, 5, 8: together 1, 3, 6, 11, 19.
        let bursts = [1, 3, 6, 11, 19].map(|segments| TAKEN.bursts(segments, 1));
        assert_eq!(bursts, [1, 2, 3, 4, 5]);
        assert_eq!([4, 5, 10, 11].map(|segments| TAKEN.bursts(segments, 4)), [1, 2, 2, 3]);
        let doubling = OTHERS[5];
        assert_eq!([3, 7, 8].map(|segments| doubling.bursts(segments, 1)), [2, 3, 4]);
    }
}
