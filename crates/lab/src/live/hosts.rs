//! A client and a server whose TCPs are told what an experiment says about them.

use super::{Bed, BedConfig, Beside, Way};
use crate::LabError;
use rt::Clock;
use rt::netlink::{Netlink, NetlinkError, Route, sysctl};
use satlink::LinkConfig;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};
use testbed::addresses;
use testbed::traffic::{self, File, FileServer, Limits, Progress, ReceiveBuffer, Transfer};
use units::Span;

/// What a pair of hosts is to be.
#[derive(Clone, Debug)]
pub(crate) struct HostsConfig {
    /// The link between them.
    pub(crate) link: LinkConfig,
    /// What carries TCP over it.
    pub(crate) way: Way,
    /// The server's initial window, segments; none: the kernel's own.
    pub(crate) initial_window: Option<u32>,
    /// Bytes of the server's sockets, as a program would ask for them; none: as much as it takes.
    pub(crate) send_buffer: Option<u64>,
    /// The client's sockets; none: as much as it takes.
    pub(crate) receive: Option<ReceiveBuffer>,
    /// Of everything random on the link.
    pub(crate) seed: u64,
}

/// They, and what is between them.
#[derive(Debug)]
pub(crate) struct Hosts {
    server: FileServer,
    bed: Bed,
    way: traffic::Way,
}

/// What was counted besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// Segments that the server's kernel retransmitted.
    pub(crate) retransmissions: u64,
    /// Packets that the link dropped on their way to the client, for whatever reason.
    pub(crate) dropped: u64,
}

/// Held while a network is built or taken down.
static BUILDING: Mutex<()> = Mutex::new(());
/// Where the server listens that was told.
const PORT: u16 = 7_002;

impl Hosts {
    /// Builds the network and tells the server.
    ///
    /// # Errors
    /// What could not be made.
    pub(crate) fn new(config: &HostsConfig) -> Result<Self, LabError> {
        // One network after the other: they would all wait for the kernel's one lock, and a
        // thread with real-time priority waits for it busily.
        let _alone = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
        let bed = Bed::new(&BedConfig {
            link: config.link.clone(),
            way: config.way,
            rates: None,
            keys: None,
            beside: Beside::Nothing,
            seed: config.seed,
        })?;
        let failed = |error: NetlinkError| LabError::Emulator(error.to_string());
        bed.net().server.run(|| tell(config)).map_err(failed)?;
        // After it was told: a listener hands its buffers on to its connections.
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT);
        let server = FileServer::start(Some(&bed.net().server), address)?;
        let way = config.receive.map_or(traffic::Way::Direct, traffic::Way::Buffered);
        Ok(Self { server, bed, way })
    }

    /// The client downloads `bytes` of the file `seed`.
    pub(crate) fn download(&self, (seed, bytes): (u64, u64), limits: Limits) -> Transfer {
        let server = SocketAddr::new(addresses::SERVER.0.into(), PORT);
        let file = File { seed, bytes, congestion: "-" };
        let download = || traffic::download(self.way, server, file, limits, &Progress::default());
        self.bed.net().client.run(download)
    }

    /// Takes everything down; counts what concerned `files`.
    ///
    /// # Errors
    /// When something had ended by itself.
    pub(crate) fn close(self, files: RangeInclusive<u64>) -> Result<Counted, LabError> {
        let Self { server, bed, .. } = self;
        // A server notes what it served when its client is gone.
        let clock = Clock::new();
        clock.sleep_until(clock.now() + Span::from_secs(2));
        let served = files.filter_map(|file| server.served(file));
        let retransmissions = served.map(|served| served.retransmissions).sum();
        drop(server);
        let _alone = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = bed.close()?;
        let intervals = &outcome.emulator.intervals;
        let dropped = intervals.iter().map(|interval| interval.forward.dropped_packets).sum();
        Ok(Counted { retransmissions, dropped })
    }
}

/// What the server's host is told, in its own namespace.
fn tell(config: &HostsConfig) -> Result<(), NetlinkError> {
    // The namespace's, not a socket's: one whose first was bbr stays paced when it is given
    // another.
    sysctl("net.ipv4.tcp_congestion_control", "reno")?;
    if let Some(bytes) = config.send_buffer {
        // As for a socket's own, of which the kernel takes twice as much.
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

/// When a transfer's connection was open, if all of it arrived.
///
/// # Errors
/// How far it came, and what ended it.
pub(crate) fn whole(done: &Transfer) -> Result<Span, LabError> {
    match done.connected {
        Some(opened) if done.complete && done.matches => Ok(opened),
        _ => {
            let (bytes, reason) = (done.bytes, done.error.as_deref().unwrap_or("it took too long"));
            Err(LabError::Request(format!("the transfer ended after {bytes} bytes: {reason}")))
        }
    }
}

/// Bytes that a transfer had so long after its start.
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
    fn a_window_by_socket_is_all_that_is_under_way() {
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
        // 25 windows of 16 KB in a tenth of a second each, but for a first one that may be larger.
        let seconds = done.ended.saturating_sub(opened).as_secs_f64();
        assert!(seconds > 2.0, "{seconds} s: the window was larger than the socket was told");
        assert_eq!(bytes_by(&done, done.ended), 400_000);
        assert_eq!(counted.dropped, 0);
    }
}
