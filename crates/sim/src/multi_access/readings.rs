//! What the paper leaves open, read otherwise.

use super::{AskingOrder, Scenario, Stack, Star};
use satlink::mac::mf_tdma::{Demand, Site};
use satlink::mac::slots::Placement;
use simtcp::{AfterIdle, DelayedAck};
use units::Span;

/// One thing about [`Star::mhatre_rosenberg`], read otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Clients ask again without waiting for an answer.
    OpenLoop,
    /// A request of three cells.
    LongRequest,
    /// Nagle's rule on all TCPs.
    Nagle,
    /// TCP's window stays as it is when nothing is sent for a while.
    WindowKept,
    /// TCP acknowledges every second segment.
    EverySecond,
    /// STP's timer polls alone, once every two round trips; no POLL is piggybacked on the end of a burst.
    TimerAlone,
    /// STP begins with a window of four segments.
    WiderStart,
    /// Each STAT travels by itself.
    LoneStats,
    /// The slots of a terminal lie one behind the other.
    Contiguous,
    /// Requests are volumes that add up.
    Volumes,
    /// Requests are rates.
    Rates,
    /// The scheduler stands on the satellite.
    OnBoard,
    /// 250 ms one way in place of 270 ms.
    Nearer,
    /// All clients ask for their first objects within a tenth of a second.
    AllAtOnce,
    /// STP's segments are as long as TCP's.
    ShortSegments,
}

impl Reading {
    /// All.
    pub const ALL: [Self; 15] = [
        Self::OpenLoop,
        Self::LongRequest,
        Self::Nagle,
        Self::WindowKept,
        Self::EverySecond,
        Self::TimerAlone,
        Self::WiderStart,
        Self::LoneStats,
        Self::Contiguous,
        Self::Volumes,
        Self::Rates,
        Self::OnBoard,
        Self::Nearer,
        Self::AllAtOnce,
        Self::ShortSegments,
    ];

    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenLoop => "requests without waiting (open loop)",
            Self::LongRequest => "a request of three cells",
            Self::Nagle => "Nagle's rule",
            Self::WindowKept => "TCP's window kept through pauses",
            Self::EverySecond => "every second segment acknowledged",
            Self::TimerAlone => "STP polls by its timer alone",
            Self::WiderStart => "STP begins with four segments",
            Self::LoneStats => "each STAT by itself",
            Self::Contiguous => "a terminal's slots in one piece",
            Self::Volumes => "volumes that add up (VBDC)",
            Self::Rates => "rates (RBDC)",
            Self::OnBoard => "scheduler on board",
            Self::Nearer => "250 ms one way",
            Self::AllAtOnce => "all begin at once",
            Self::ShortSegments => "STP's segments as short as TCP's",
        }
    }

    /// Whether it can make a difference to `scenario`.
    pub const fn concerns(self, scenario: Scenario) -> bool {
        let split = matches!(scenario, Scenario::Equal | Scenario::Weighted);
        match self {
            Self::TimerAlone | Self::WiderStart | Self::LoneStats | Self::ShortSegments => split,
            Self::Volumes | Self::Rates | Self::OnBoard => !matches!(scenario, Scenario::Static),
            Self::Nagle | Self::WindowKept | Self::EverySecond => !split,
            Self::OpenLoop
            | Self::LongRequest
            | Self::Contiguous
            | Self::Nearer
            | Self::AllAtOnce => true,
        }
    }

    /// Changes `star` to this reading.
    #[must_use]
    pub fn of(self, mut star: Star) -> Star {
        match self {
            Self::OpenLoop => each_site(&mut star, |asking| asking.order = AskingOrder::Open),
            // 120 bytes with a header of TCP's and 8 of AAL5: more than two cells hold.
            Self::LongRequest => each_site(&mut star, |asking| asking.request = 80),
            Self::Contiguous => star.mac.placement = Placement::Contiguous,
            Self::Volumes => star.mac.demand = Demand::Volume,
            Self::Rates => star.mac.demand = Demand::Rate,
            Self::OnBoard => star.mac.site = Site::OnBoard,
            Self::LoneStats => star.reports.shared = None,
            Self::Nearer => {
                star.mac.hub_leg = Span::from_millis(125);
                for terminal in &mut star.mac.terminals {
                    terminal.up = Span::from_millis(125);
                }
            }
            Self::AllAtOnce => {
                each_site(&mut star, |asking| asking.first = Some(Span::from_millis(100)));
            }
            Self::Nagle | Self::WindowKept | Self::EverySecond => self.of_tcp(&mut star),
            Self::TimerAlone | Self::WiderStart | Self::ShortSegments => self.of_stp(&mut star),
        }
        star
    }

    fn of_tcp(self, star: &mut Star) {
        let (Stack::EndToEnd(tcp) | Stack::Split { lan: tcp, .. }) = &mut star.stack;
        match self {
            Self::Nagle => tcp.nagle = true,
            Self::WindowKept => tcp.after_idle = AfterIdle::Keep,
            Self::EverySecond => tcp.delayed_ack = DelayedAck::USUAL,
            other => unreachable!("{other:?} is not about TCP"),
        }
    }

    fn of_stp(self, star: &mut Star) {
        let Stack::Split { space, .. } = &mut star.stack else { return };
        match self {
            Self::TimerAlone => space.stp.small_window = 0,
            Self::WiderStart => space.initial_window = 4,
            Self::ShortSegments => space.max_segment -= space.payload_size() - 536,
            other => unreachable!("{other:?} is not about STP"),
        }
    }
}

fn each_site(star: &mut Star, change: impl Fn(&mut super::Asking)) {
    star.sites.iter_mut().for_each(|site| change(&mut site.asking));
}
