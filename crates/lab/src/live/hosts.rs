//! A client and a server with the TCP settings of an experiment.

use super::{CrossTraffic, TestNetwork, TestNetworkConfig, Way};
use crate::LabError;
use crate::threads::{joined, sleep};
use rt::Clock;
use rt::netlink::{Netlink, NetlinkError, Route, sysctl};
use satlink::LinkConfig;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};
use std::thread;
use testbed::addresses;
use testbed::traffic::{self, File, FileServer, Limits, Progress, ReceiveBuffer, Transfer};
use units::{Instant, Span};

/// Settings of a pair of hosts.
#[derive(Clone, Debug)]
pub(crate) struct HostsConfig {
    /// The link between them.
    pub(crate) link: LinkConfig,
    /// The transport.
    pub(crate) way: Way,
    /// Initial window of the server in segments; `None` for the kernel's default.
    pub(crate) initial_window: Option<u32>,
    /// Send buffer of the server as a program would request it, in octets; `None` for autotuning.
    pub(crate) send_buffer: Option<u64>,
    /// Receive buffer of the client; `None` for autotuning.
    pub(crate) receive: Option<ReceiveBuffer>,
    /// Seed of the link's random processes.
    pub(crate) seed: u64,
}

/// The hosts and the network between them.
#[derive(Debug)]
pub(crate) struct Hosts {
    server: FileServer,
    network: TestNetwork,
    way: traffic::Way,
}

/// Counters of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// Segments that the server's kernel retransmitted.
    pub(crate) retransmissions: u64,
    /// Packets to the client that the link dropped for any reason.
    pub(crate) dropped: u64,
}

/// Held while a network is created or removed.
static BUILDING: Mutex<()> = Mutex::new(());
/// Port of the server with the settings.
const PORT: u16 = 7_002;

impl Hosts {
    /// Creates the network and configures the server.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn new(config: &HostsConfig) -> Result<Self, LabError> {
        // Networks are created one after another: all need the kernel's one lock, which a thread
        // with real-time priority would wait for busily.
        let _alone = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
        let network = TestNetwork::new(&TestNetworkConfig {
            link: config.link.clone(),
            way: config.way,
            rates: None,
            keys: None,
            beside: CrossTraffic::Nothing,
            seed: config.seed,
        })?;
        let failed = |error: NetlinkError| LabError::Emulator(error.to_string());
        network.net().server.run(|| tell(config)).map_err(failed)?;
        // Connections inherit the listener's buffers, so it is created after the settings.
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT);
        let server = FileServer::start(Some(&network.net().server), address)?;
        let way = config.receive.map_or(traffic::Way::Direct, traffic::Way::Buffered);
        Ok(Self { server, network, way })
    }

    /// Downloads `bytes` octets of the file `seed`.
    pub(crate) fn download(&self, (seed, bytes): (u64, u64), limits: Limits) -> Transfer {
        let server = SocketAddr::new(addresses::SERVER.0.into(), PORT);
        let file = File { seed, bytes, congestion: "-" };
        let download = || traffic::download(self.way, server, file, limits, &Progress::default());
        self.network.net().client.run(download)
    }

    /// Downloads `bytes` octets of several files in parallel. The file `n`, from 1, starts
    /// `starts[n - 1]` after the call; returns the time of the call and the transfers.
    pub(crate) fn download_all(
        &self,
        starts: &[Span],
        bytes: u64,
        limits: Limits,
    ) -> (Instant, Vec<Transfer>) {
        let clock = Clock::new();
        let began = clock.now();
        let transfers = thread::scope(|scope| {
            let task = |(file, start): (u64, &Span)| {
                let due = began + *start;
                scope.spawn(move || {
                    clock.sleep_until(due);
                    self.download((file, bytes), limits)
                })
            };
            let tasks: Vec<_> = (1..).zip(starts).map(task).collect();
            tasks.into_iter().map(|task| joined(task.join())).collect()
        });
        (began, transfers)
    }

    /// Removes the network; returns the counters of `files`.
    ///
    /// # Errors
    /// If a component had ended on its own.
    pub(crate) fn close(self, files: RangeInclusive<u64>) -> Result<Counted, LabError> {
        let Self { server, network, .. } = self;
        // The server records a transfer when the client has closed.
        sleep(Span::from_secs(2));
        let served = files.filter_map(|file| server.served(file));
        let retransmissions = served.map(|served| served.retransmissions).sum();
        drop(server);
        let _alone = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = network.close()?;
        let intervals = &outcome.emulator.intervals;
        let dropped = intervals.iter().map(|interval| interval.forward.dropped_packets).sum();
        Ok(Counted { retransmissions, dropped })
    }
}

/// Configures the server's host, in its namespace.
fn tell(config: &HostsConfig) -> Result<(), NetlinkError> {
    // The default of the namespace instead of a socket option: a socket that started with bbr stays
    // paced after a change.
    sysctl("net.ipv4.tcp_congestion_control", "reno")?;
    if let Some(bytes) = config.send_buffer {
        // As for a socket option, of which the kernel allocates twice the value.
        let bytes = 2 * bytes;
        sysctl("net.ipv4.tcp_wmem", &format!("4096 {bytes} {bytes}"))?;
    }
    if config.initial_window.is_some() {
        let route = Route::default_v4(addresses::HUB_WAN.0);
        let mut net = Netlink::open()?;
        net.delete_route(&route)?;
        net.add_route(&Route { initial_cwnd: config.initial_window, ..route })?;
    }
    Ok(())
}

/// Returns when the connection of a complete transfer was open.
///
/// # Errors
/// If the transfer is incomplete or incorrect, with the reason.
pub(crate) fn whole(done: &Transfer) -> Result<Span, LabError> {
    match done.connected {
        Some(opened) if done.complete && done.matches => Ok(opened),
        _ => {
            let (bytes, reason) = (done.bytes, done.error.as_deref().unwrap_or("it took too long"));
            Err(LabError::Request(format!("the transfer ended after {bytes} bytes: {reason}")))
        }
    }
}

/// Returns the octets that a transfer had received at a time after its start.
pub(crate) fn bytes_by(done: &Transfer, at: Span) -> u64 {
    let count = done.series.partition_point(|sample| sample.at <= at);
    count.checked_sub(1).map_or(0, |last| done.series[last].bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use satlink::DirectionConfig;
    use units::BitRate;

    #[test]
    fn the_socket_limits_outstanding_data() {
        if let Err(refusal) = testbed::permission::check() {
            eprintln!("left out: {refusal}");
            return;
        }
        let link = LinkConfig::symmetric(DirectionConfig {
            rate: Some(BitRate::from_mbps(10)),
            delay: Span::from_millis(50),
            ..DirectionConfig::default()
        });
        let hosts = Hosts::new(&HostsConfig {
            link,
            way: Way::Cubic,
            initial_window: Some(4),
            send_buffer: Some(65_536),
            receive: Some(ReceiveBuffer { bytes: 65_536, window: 16_384 }),
            seed: 1,
        })
        .unwrap();
        let patience = Span::from_secs(60);
        let limits = Limits { after_first_byte: patience, overall: patience };
        let done = hosts.download((1, 400_000), limits);
        let counted = hosts.close(1..=1).unwrap();
        let opened = whole(&done).unwrap();
        // 25 windows of 16 KB of 0.1 s each; the first one may be larger.
        let seconds = done.ended.saturating_sub(opened).as_secs_f64();
        assert!(seconds > 2.0, "{seconds} s: the window exceeded the socket's limit");
        assert_eq!(bytes_by(&done, done.ended), 400_000);
        assert_eq!(counted.dropped, 0);
    }
}
