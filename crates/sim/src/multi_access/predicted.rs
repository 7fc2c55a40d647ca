//! What a terminal will need, as far as its hub's transport knows: an answer to each POLL that was
//! sent to it, and the request that follows an object.
//!
//! The object takes one way down, and so does the plan in which the slots for what comes after it
//! are granted: asked for by the terminal they would be there two ways and a plan later.

use super::{AskingOrder, Scenario, Star};
use satlink::mac::schedule::Free;

/// For what slots are granted before a terminal asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prediction {
    /// Nothing.
    None,
    /// A slot for the answer to each POLL.
    Answers,
    /// That, and two slots for a request when an object has been sent.
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

/// Objects of a page, each asked for when the one before it has come.
const PAGE: u32 = 8;

impl Star {
    /// The network of scenario 3 with users who read pages of eight objects, and think eight times
    /// as long as published after each; `free` says what becomes of slots that nobody asked for.
    pub fn pages(prediction: Prediction, free: Free) -> Self {
        let mut star = Self::mhatre_rosenberg(Scenario::Weighted);
        // Without free slots terminals need bursts of their own to ask in.
        (star.mac.free, star.mac.sync) = (free, Some(1));
        for site in &mut star.sites {
            site.asking.order = AskingOrder::Pages(PAGE);
            site.asking.first = Some(site.asking.think);
            site.asking.think = site.asking.think * u64::from(PAGE);
        }
        star.reports.expected = u32::from(prediction != Prediction::None);
        star.reports.next = if prediction == Prediction::Requests { 2 } else { 0 };
        star
    }
}
