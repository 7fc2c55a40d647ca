//! What becomes of new connections while the gateway cannot carry them.
//!
//! ```text
//!                     no path answers                 one has answered for health.hold
//!   carried ─────────────────────────────▶ wait, refuse, ─────────────────▶ carried
//!           ◀──below nine tenths── full ──▶ or open: the kernel lets them pass,
//!                                           and proxies connect by themselves
//! ```

use crate::engine::{Engine, Role};
use crate::{FailSection, WhenFail};
use relay::health::Verdict;
use units::{Instant, Span};

/// How long a terminal that has just started waits for its first answer before none is taken to
/// be there: a few Hellos over any satellite.
const FIRST_ANSWER: Span = Span::from_secs(5);
/// How long after the kernel has refused to exchange its rules it is asked again.
pub(crate) const RETRY: Span = Span::from_secs(1);

/// What becomes of a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is carried, now or as soon as that can be.
    Carried,
    /// It is refused.
    Refused,
    /// It goes without the gateway's partner.
    Direct,
}

/// Whether new connections can be carried, and what becomes of them otherwise.
#[derive(Debug, Default)]
pub(crate) struct Fail {
    section: FailSection,
    /// Until when no answer means nothing yet.
    patience: Option<Instant>,
    unreachable: bool,
    full: bool,
    /// What the kernel does now.
    passing: bool,
    /// When it may be asked for something else again, after it has refused.
    retry: Option<Instant>,
}

impl Fail {
    pub(crate) fn new(section: FailSection) -> Self {
        Self { section, ..Self::default() }
    }

    /// From now on `section` says what happens.
    pub(crate) fn set(&mut self, section: FailSection) {
        self.section = section;
    }

    /// Looks how things are: the paths answer as `answers` says, whether they are slow or lossy or
    /// not, and of `limit` connections there are `open`.
    pub(crate) fn review(&mut self, now: Instant, answers: Verdict, open: usize, limit: usize) {
        let mut patience = *self.patience.get_or_insert(now + FIRST_ANSWER);
        if answers != Verdict::Down {
            // From here on it is missed at once.
            patience = patience.min(now);
        }
        self.patience = Some(patience);
        let unreachable = match answers {
            // A hub by a poor path is a hub: past it is no way for what is to be sealed.
            Verdict::Well | Verdict::Poor => false,
            // What comes and goes is not followed each time.
            Verdict::Recovering => self.unreachable && self.section.unreachable == WhenFail::Open,
            Verdict::Down => self.unreachable || now >= patience,
        };
        if unreachable != self.unreachable && self.section.unreachable != WhenFail::Wait {
            let unreachable_is = self.section.unreachable.word();
            if unreachable {
                tracing::warn!(fail.unreachable = unreachable_is, "no hub answers");
            } else {
                tracing::info!("a hub answers: new connections are carried again");
            }
        }
        self.unreachable = unreachable;
        // Clients' shares leave some slots free, more of them the fewer clients there are.
        self.full = open >= limit - limit / 16 || self.full && open > limit - limit / 10;
    }

    /// When to look again although nothing has happened.
    pub(crate) fn poll_timeout(&self, now: Instant) -> Option<Instant> {
        let patience = self.patience.filter(|_| depends_on_paths(self.section));
        patience.into_iter().chain(self.retry).filter(|at| *at > now).min()
    }

    /// What becomes of a new connection that came to the gateway all the same.
    pub(crate) fn fate(&self) -> Fate {
        match self.section.unreachable {
            WhenFail::Refuse if self.unreachable => Fate::Refused,
            WhenFail::Open if self.unreachable => Fate::Direct,
            WhenFail::Wait | WhenFail::Refuse | WhenFail::Open => Fate::Carried,
        }
    }

    /// Whether clients beyond the limit wait to be accepted.
    pub(crate) fn waits_when_full(&self) -> bool {
        self.section.full == WhenFail::Wait
    }

    /// Whether the kernel is to let new connections pass, if that is news and it may be asked.
    pub(crate) fn wants_passing(&self, now: Instant) -> Option<bool> {
        if self.retry.is_some_and(|at| now < at) {
            return None;
        }
        let open = |when: WhenFail, is_so: bool| is_so && when == WhenFail::Open;
        let wanted =
            open(self.section.unreachable, self.unreachable) || open(self.section.full, self.full);
        (wanted != self.passing).then_some(wanted)
    }

    /// What the kernel does from now on.
    pub(crate) fn set_passing(&mut self, passing: bool) {
        (self.passing, self.retry) = (passing, None);
    }

    /// The kernel has refused, and does what it did.
    pub(crate) fn refused(&mut self, now: Instant) {
        self.retry = Some(now + RETRY);
    }

    /// Whether the kernel lets new connections pass now.
    pub(crate) fn is_passing(&self) -> bool {
        self.passing
    }
}

/// Whether anything depends on how paths are.
pub(crate) fn depends_on_paths(section: FailSection) -> bool {
    section.unreachable != WhenFail::Wait
}

impl Engine {
    /// Whether the kernel is to let new connections pass, or to intercept them again, if that is
    /// news. When it drains it does neither any more.
    pub(crate) fn wants_passing(&self, now: Instant) -> Option<bool> {
        match &self.role {
            Role::Terminal(terminal) if self.draining.is_none() => {
                terminal.door.fail.wants_passing(now)
            }
            Role::Terminal(_) | Role::Hub(_) => None,
        }
    }

    /// What the kernel does from now on. Where nothing is `intercepted` nothing passes either.
    pub(crate) fn set_passing(&mut self, passing: bool, intercepted: bool) {
        if let Role::Terminal(terminal) = &mut self.role {
            terminal.door.fail.set_passing(passing);
            if passing {
                // Else one would be let in whose client has gone past meanwhile.
                terminal.let_go(&mut self.core);
            }
            let counted = u64::from(passing && intercepted);
            self.core.counters.passed += counted;
            self.core.counters.passing = counted;
        }
    }

    /// Whether the kernel lets new connections pass now.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(&self.role, Role::Terminal(terminal) if terminal.door.fail.is_passing())
    }

    /// The kernel has refused, and does what it did: it is asked again in a while.
    pub(crate) fn not_passing_as_wanted(&mut self, now: Instant) {
        if let Role::Terminal(terminal) = &mut self.role {
            terminal.door.fail.refused(now);
        }
    }
}

#[cfg(test)]
mod tests;
