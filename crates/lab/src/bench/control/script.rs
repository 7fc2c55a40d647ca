//! Changes of a case's link, relative to the start of the downloads instead of the link.

use crate::LabError;
use crate::live::Emulation;
use rt::Clock;
use satlink::{LinkConfig, Outage};
use sim::scenario::controllers::Case;
use units::{Instant, Span};

/// A link without outages, and its changes over time.
#[derive(Debug)]
pub(super) struct Script {
    /// The link at the start.
    pub(super) first: LinkConfig,
    events: Vec<(Span, Event)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Event {
    /// An outage of this length.
    Outage(Span),
    /// A new configuration of the link.
    Link(Box<LinkConfig>),
}

impl Script {
    pub(super) fn of(case: &Case) -> Self {
        let bare = |link: &LinkConfig| LinkConfig { outages: Vec::new(), ..link.clone() };
        let end = case.to.since(Instant::ZERO);
        let mut events: Vec<(Span, Event)> = case
            .changes
            .iter()
            .map(|(at, link)| (*at, Event::Link(Box::new(bare(link)))))
            .collect();
        for outage in &case.link.outages {
            let at = times(outage, end).into_iter();
            events.extend(at.map(|at| (at, Event::Outage(outage.length))));
        }
        // An outage precedes a simultaneous change, which is then not visible before its end.
        events.sort_by_key(|(at, event)| (*at, matches!(event, Event::Link(_))));
        Self { first: bare(&case.link), events }
    }

    /// Applies the changes at their times; returns after the last one.
    pub(super) fn play(&self, emulation: &Emulation, start: Instant) -> Result<(), LabError> {
        let clock = Clock::new();
        for (at, event) in &self.events {
            clock.sleep_until(start + *at);
            match event {
                Event::Outage(length) => emulation.outage(*length)?,
                Event::Link(link) => emulation.reconfigure((**link).clone())?,
            }
        }
        Ok(())
    }
}

/// Returns the starts of an outage before `end`.
fn times(outage: &Outage, end: Span) -> Vec<Span> {
    let period = outage.every.filter(|period| !period.is_zero());
    let mut times = vec![outage.at];
    while let (Some(period), Some(&last)) = (period, times.last()) {
        if last + period >= end {
            break;
        }
        times.push(last + period);
    }
    times.retain(|&at| at < end);
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::scenario::controllers::all;

    #[test]
    fn a_hand_off_is_an_outage_followed_by_another_link() {
        let cases = all();
        let case = cases.iter().find(|case| case.study == "handoff").unwrap();
        let script = Script::of(case);
        assert!(script.first.outages.is_empty());
        let at: Vec<u64> = script.events.iter().map(|(at, _)| at.as_millis() / 1000).collect();
        assert_eq!(at, [15, 15, 30, 30, 45, 45]);
        assert_eq!(script.events[0].1, Event::Outage(Span::from_millis(100)));
        assert!(matches!(script.events[1].1, Event::Link(_)));
    }
}
