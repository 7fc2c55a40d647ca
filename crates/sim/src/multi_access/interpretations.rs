//! Alternative interpretations of what the paper leaves open.

use super::{RequestOrder, Scenario, Stack, Star};
use satlink::mac::mf_tdma::{Demand, Site};
use satlink::mac::slots::Placement;
use simtcp::{AfterIdle, DelayedAck};
use units::Span;

/// One alternative to the assumptions of [`Star::mhatre_rosenberg`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpretation {
    /// Clients send requests without waiting for the previous response.
    OpenLoop,
    /// A request takes three cells.
    LongRequest,
    /// Nagle's algorithm is on in all TCPs.
    Nagle,
    /// TCP's window is kept after idle times.
    NoIdleRestart,
    /// TCP acknowledges every second segment.
    DelayedAcks,
    /// STP sends POLLs only by its timer, once every two round trips, and none on the end of a
    /// burst.
    TimerPollsOnly,
    /// STP's initial window is four segments.
    InitialWindow4,
    /// Each STAT is sent in a packet of its own.
    StandaloneStats,
    /// The slots of a terminal are contiguous in the frame.
    Contiguous,
    /// Capacity requests are volumes that add up (VBDC).
    Volumes,
    /// Capacity requests are rates (RBDC).
    Rates,
    /// The scheduler is on board of the satellite.
    OnBoard,
    /// The one-way delay is 250 ms in place of 270 ms.
    ShorterDelay,
    /// All clients request their first objects within 0.1 s.
    SynchronizedStart,
    /// STP's segments are as long as TCP's.
    ShortSegments,
    /// A terminal queues at most 50 packets, ns-2's default.
    ShortQueue,
}

impl Interpretation {
    /// All, in order.
    pub const ALL: [Self; 16] = [
        Self::OpenLoop,
        Self::LongRequest,
        Self::Nagle,
        Self::NoIdleRestart,
        Self::DelayedAcks,
        Self::TimerPollsOnly,
        Self::InitialWindow4,
        Self::StandaloneStats,
        Self::Contiguous,
        Self::Volumes,
        Self::Rates,
        Self::OnBoard,
        Self::ShorterDelay,
        Self::SynchronizedStart,
        Self::ShortSegments,
        Self::ShortQueue,
    ];

    /// A short description.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenLoop => "requests without waiting (open loop)",
            Self::LongRequest => "a request of three cells",
            Self::Nagle => "Nagle's rule",
            Self::NoIdleRestart => "TCP's window kept through pauses",
            Self::DelayedAcks => "every second segment acknowledged",
            Self::TimerPollsOnly => "STP polls by its timer alone",
            Self::InitialWindow4 => "STP begins with four segments",
            Self::StandaloneStats => "each STAT by itself",
            Self::Contiguous => "a terminal's slots in one piece",
            Self::Volumes => "volumes that add up (VBDC)",
            Self::Rates => "rates (RBDC)",
            Self::OnBoard => "scheduler on board",
            Self::ShorterDelay => "250 ms one way",
            Self::SynchronizedStart => "all begin at once",
            Self::ShortSegments => "STP's segments as short as TCP's",
            Self::ShortQueue => "a terminal queues 50 packets",
        }
    }

    /// Whether it can affect `scenario`.
    pub const fn concerns(self, scenario: Scenario) -> bool {
        let split = matches!(scenario, Scenario::Equal | Scenario::Weighted);
        match self {
            Self::TimerPollsOnly
            | Self::InitialWindow4
            | Self::StandaloneStats
            | Self::ShortSegments => split,
            Self::Volumes | Self::Rates | Self::OnBoard => !matches!(scenario, Scenario::Static),
            Self::Nagle | Self::NoIdleRestart | Self::DelayedAcks => !split,
            Self::OpenLoop
            | Self::LongRequest
            | Self::Contiguous
            | Self::ShorterDelay
            | Self::SynchronizedStart
            | Self::ShortQueue => true,
        }
    }

    /// Returns `star` with this interpretation.
    #[must_use]
    pub fn of(self, mut star: Star) -> Star {
        match self {
            Self::OpenLoop => each_site(&mut star, |requests| requests.order = RequestOrder::Open),
            // 120 bytes with headers of TCP and 8 bytes of AAL5: more than two cells hold.
            Self::LongRequest => each_site(&mut star, |requests| requests.request = 80),
            Self::Contiguous => star.mac.placement = Placement::Contiguous,
            Self::Volumes => star.mac.demand = Demand::Volume,
            Self::Rates => star.mac.demand = Demand::Rate,
            Self::OnBoard => star.mac.site = Site::OnBoard,
            Self::StandaloneStats => star.reports.shared = None,
            Self::ShortQueue => star.mac.queue = 50,
            Self::ShorterDelay => {
                star.mac.hub_leg = Span::from_millis(125);
                for terminal in &mut star.mac.terminals {
                    terminal.up = Span::from_millis(125);
                }
            }
            Self::SynchronizedStart => {
                each_site(&mut star, |requests| requests.first = Some(Span::from_millis(100)));
            }
            Self::Nagle | Self::NoIdleRestart | Self::DelayedAcks => self.of_tcp(&mut star),
            Self::TimerPollsOnly | Self::InitialWindow4 | Self::ShortSegments => {
                self.of_stp(&mut star);
            }
        }
        star
    }

    fn of_tcp(self, star: &mut Star) {
        let (Stack::EndToEnd(tcp) | Stack::Split { lan: tcp, .. }) = &mut star.stack;
        match self {
            Self::Nagle => tcp.nagle = true,
            Self::NoIdleRestart => tcp.after_idle = AfterIdle::Keep,
            Self::DelayedAcks => tcp.delayed_ack = DelayedAck::USUAL,
            other => unreachable!("{other:?} is not about TCP"),
        }
    }

    fn of_stp(self, star: &mut Star) {
        let Stack::Split { satellite, .. } = &mut star.stack else { return };
        match self {
            Self::TimerPollsOnly => satellite.stp.small_window = 0,
            Self::InitialWindow4 => satellite.initial_window = 4,
            Self::ShortSegments => satellite.max_segment -= satellite.payload_size() - 536,
            other => unreachable!("{other:?} is not about STP"),
        }
    }
}

fn each_site(star: &mut Star, change: impl Fn(&mut super::RequestModel)) {
    star.sites.iter_mut().for_each(|site| change(&mut site.requests));
}
