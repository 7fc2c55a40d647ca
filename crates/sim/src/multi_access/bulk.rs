//! Bulk transfers down while uploads fill the return link: what Mhatre and Rosenberg left to
//! future work, and designs that answer it.

use super::{Asking, AskingOrder, Reports, Scenario, Site, Stack, Star};
use satlink::mac::mf_tdma::Order;
use units::{Instant, Span};
use xstp::session::LowRatePolicy;

/// How acknowledgements find their way up a full return link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// As published: in the terminal's queue, behind whatever came before them.
    Published,
    /// The same, and the terminals' sessions send no faster than their part of what the terminal
    /// is granted: the queue stands in the sessions and not below them.
    Paced,
    /// Acknowledgements have a queue of their own that goes first, and one slot in each frame
    /// that is there without asking.
    Separate,
    /// Both.
    SeparatePaced,
    /// [`Design::SeparatePaced`], and the hub grants a slot for the answer to each POLL that it
    /// sends down, before the terminal could ask for one.
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

    /// Changes `star` to this design.
    #[must_use]
    pub fn of(self, mut star: Star) -> Star {
        if self.is_separate() {
            star.mac.order = Order::ControlFirst;
            for terminal in &mut star.mac.terminals {
                terminal.contract.constant = 1;
            }
        }
        star.reports = Reports { expected: u32::from(self == Self::Expected), ..star.reports };
        if let Stack::Split { follow_grants, space, .. } = &mut star.stack {
            *follow_grants = self.is_paced();
            // With a rate, reports that no data carries have a share of it.
            space.gateway.low_rate =
                self.is_paced().then_some(LowRatePolicy { control_divisor: 4 });
        }
        star
    }
}

impl Star {
    /// The network of scenario 3 with one endless upload and one endless download behind each
    /// terminal, for `duration`. The downloads' sites come first, then the uploads'.
    pub fn bulk(design: Design, duration: Span) -> Self {
        /// More than passes.
        const ENDLESS: u64 = 1 << 40;
        let published = Self::mhatre_rosenberg(Scenario::Weighted);
        let asking = |request, object| Asking {
            request,
            object,
            think: Span::from_secs(1),
            order: AskingOrder::Closed,
            start: Instant::ZERO,
            first: None,
        };
        let terminals = published.mac.terminals.len();
        let site = |asking| move |terminal| Site { terminal, connections: 1, asking };
        let down = (0..terminals).map(site(asking(43, ENDLESS)));
        let up = (0..terminals).map(site(asking(ENDLESS, 1)));
        let sites = down.chain(up).collect();
        let mut star = Self { sites, duration, ..published };
        for terminal in &mut star.mac.terminals {
            terminal.contract.weight = 2;
        }
        design.of(star)
    }
}
