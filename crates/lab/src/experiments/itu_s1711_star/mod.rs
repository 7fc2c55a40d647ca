//! Recommendation ITU-R S.1711, annex 3, section 4: a star network of 8,000 terminals.
//!
//! ```text
//!   plan     the points: the clusters, and variations of one parameter
//!   weather  the cost of an outage
//!   data     the tables
//!   judge    evaluation of the claims
//! ```

mod data;
mod judge;
mod plan;
mod weather;

use super::Entry;
use plan::*;

pub(crate) static ENTRY: Entry = Entry {
    id: "itu-s1711-star",
    title: "A star network of 8,000 terminals (ITU-R S.1711, annex 3, section 4)",
    source: "Recommendation ITU-R S.1711, 2005, annex 3, section 4",
    about: "Ten platforms in three clusters, each with 48 Mbit/s out and 140 return channels of \
            76.8 kbit/s that its terminals share, with connections split at hub and terminal.",
    replications: 3,
    live: None,
    parameters: &[],
    plan,
    judge: judge::judge,
};

#[cfg(test)]
mod tests {
    use super::*;
    use sim::multi_access::{CLUSTERS, Cluster};

    #[test]
    fn the_traffic_matches_the_tables() {
        fn first<const N: usize>(rows: &[[f64; N]]) -> Vec<f64> {
            rows.iter().map(|row| row[0]).collect()
        }
        let mean = |days: &[f64]| days.iter().sum::<f64>() / days.len() as f64;
        let second = mean(&first(&data::DATA.traffic_2)) * 1e9;
        let third = mean(&first(&data::DATA.traffic_3)) * 1e9;
        assert!((CLUSTERS[1].sent_on_a_day / second - 1.0).abs() < 1e-3, "{second}");
        assert!((CLUSTERS[2].sent_on_a_day / third - 1.0).abs() < 1e-3, "{third}");
        let each = |cluster: &Cluster| {
            cluster.sent_on_a_day * f64::from(cluster.platforms) / f64::from(cluster.terminals)
        };
        assert!((each(&CLUSTERS[0]) / each(&CLUSTERS[1]) - 1.0).abs() < 1e-3);
    }
}
