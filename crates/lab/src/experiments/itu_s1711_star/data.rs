//! Tables 16 to 20, as printed.

use serde::Deserialize;
use std::sync::LazyLock;

/// The tables.
pub(super) static DATA: LazyLock<Data> = LazyLock::new(|| {
    let text = include_str!("../../../papers/itu-s1711-star/data.toml");
    toml::from_str(text).expect("data.toml has the tables")
});

/// Tables 16 to 20. A row of tables 17 to 20 is a day: the value of a cluster, then those of its
/// platforms.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Data {
    /// Table 16.
    #[serde(rename = "month")]
    pub(super) months: Vec<Month>,
    /// Table 17, kbit/s.
    pub(super) throughput_2: Vec<[f64; 4]>,
    /// Table 18, kbit/s.
    pub(super) throughput_3: Vec<[f64; 5]>,
    /// Table 19, Gbyte.
    pub(super) traffic_2: Vec<[f64; 4]>,
    /// Table 20, Gbyte.
    pub(super) traffic_3: Vec<[f64; 5]>,
}

/// A month of table 16, in percent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Month {
    pub(super) name: String,
    /// Hours of the month in 2003.
    pub(super) hours: f64,
    /// Availability of the clusters in service.
    pub(super) clusters: Vec<f64>,
    /// Availability and unavailability of the system.
    pub(super) system: [f64; 2],
    /// Unavailable and available hours of the system.
    pub(super) system_hours: [f64; 2],
}
