//! Prediction of return-link capacity from the hub's transport: a STAT for each POLL sent to a
//! terminal, and the request that follows an object.
//!
//! The burst time plan with the predicted slots arrives together with the object. A capacity
//! request of the terminal would take a round trip and a plan longer.

use super::{RequestOrder, Scenario, Star};
use satlink::mac::schedule::Free;

/// What the hub predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// Nothing.
    None,
    /// A slot for the STAT of each POLL.
    Answers,
    /// In addition, two slots for a request when an object has been sent.
    Requests,
}

impl Prediction {
    /// All, in order.
    pub const ALL: [Self; 3] = [Self::None, Self::Answers, Self::Requests];

    /// A short name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "asked for",
            Self::Answers => "answers expected",
            Self::Requests => "requests expected as well",
        }
    }
}

/// Objects of a page, each requested when the previous one has arrived.
const PAGE: u32 = 8;

impl Star {
    /// The network of scenario 3 with users who read pages of eight objects, and whose think time
    /// after a page is eight times the published one. `free` is the policy for unrequested slots.
    pub fn pages(prediction: Prediction, free: Free) -> Self {
        let mut star = Self::mhatre_rosenberg(Scenario::Weighted);
        // Without free slots terminals need dedicated slots for capacity requests.
        (star.mac.free, star.mac.sync) = (free, Some(1));
        for site in &mut star.sites {
            site.requests.order = RequestOrder::Pages(PAGE);
            site.requests.first = Some(site.requests.think);
            site.requests.think = site.requests.think * u64::from(PAGE);
        }
        star.reports.expected = u32::from(prediction != Prediction::None);
        star.reports.next = if prediction == Prediction::Requests { 2 } else { 0 };
        star
    }
}
