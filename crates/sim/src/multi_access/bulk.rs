//! Downloads while uploads fill the return link, which Mhatre and Rosenberg leave to future work,
//! and designs for this case.

use super::{Reports, RequestModel, RequestOrder, Scenario, Site, Stack, Star};
use satlink::mac::mf_tdma::Order;
use units::{Instant, Span};
use xstp::session::LowRatePolicy;

/// How acknowledgements are sent on a full return link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// As published: in the terminal's queue, in FIFO order.
    Published,
    /// As published, and the terminals' sessions are paced at their share of the terminal's grants,
    /// so that packets queue in the sessions and not in the MAC.
    Paced,
    /// Acknowledgements have a queue with priority, and one slot of constant-rate assignment in
    /// each frame.
    Separate,
    /// `Paced` and `Separate`.
    SeparatePaced,
    /// [`Design::SeparatePaced`], and the hub grants a slot for the STAT of each POLL that it
    /// sends, without a capacity request.
    Expected,
}

impl Design {
    /// All, in order.
    pub const ALL: [Self; 5] =
        [Self::Published, Self::Paced, Self::Separate, Self::SeparatePaced, Self::Expected];

    /// A short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Paced => "paced",
            Self::Separate => "separate",
            Self::SeparatePaced => "separate and paced",
            Self::Expected => "expected as well",
        }
    }

    const fn is_separate(self) -> bool {
        match self {
            Self::Published | Self::Paced => false,
            Self::Separate | Self::SeparatePaced | Self::Expected => true,
        }
    }

    const fn is_paced(self) -> bool {
        match self {
            Self::Published | Self::Separate => false,
            Self::Paced | Self::SeparatePaced | Self::Expected => true,
        }
    }

    /// Returns `star` with this design.
    #[must_use]
    pub fn of(self, mut star: Star) -> Star {
        if self.is_separate() {
            star.mac.order = Order::ControlFirst;
            for terminal in &mut star.mac.terminals {
                terminal.contract.constant = 1;
            }
        }
        star.reports = Reports { expected: u32::from(self == Self::Expected), ..star.reports };
        if let Stack::Split { follow_grants, satellite, .. } = &mut star.stack {
            *follow_grants = self.is_paced();
            // With a configured rate, standalone reports have a bandwidth share.
            satellite.gateway.low_rate =
                self.is_paced().then_some(LowRatePolicy { control_divisor: 4 });
        }
        star
    }
}

impl Star {
    /// The network of scenario 3 with one unlimited upload and one unlimited download behind each
    /// terminal, for `duration`. The sites of the downloads come first.
    pub fn bulk(design: Design, duration: Span) -> Self {
        /// More than is transferred in a run.
        const ENDLESS: u64 = 1 << 40;
        let published = Self::mhatre_rosenberg(Scenario::Weighted);
        let requests = |request, object| RequestModel {
            request,
            object,
            think: Span::from_secs(1),
            order: RequestOrder::Closed,
            start: Instant::ZERO,
            first: None,
        };
        let terminals = published.mac.terminals.len();
        let site = |requests| move |terminal| Site { terminal, connections: 1, requests };
        let down = (0..terminals).map(site(requests(43, ENDLESS)));
        let up = (0..terminals).map(site(requests(ENDLESS, 1)));
        let sites = down.chain(up).collect();
        let mut star = Self { sites, duration, ..published };
        for terminal in &mut star.mac.terminals {
            terminal.contract.weight = 2;
        }
        design.of(star)
    }
}
