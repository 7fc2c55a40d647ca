//! The window of RFC 9438, in segments and seconds.
//!
//! ```text
//!   W_cubic(t) = C (t - K)^3 + W_max,   K = cbrt((W_max - cwnd_epoch) / C)      section 4.2
//!   target     = W_cubic(t + RTT), from cwnd to 1.5 cwnd
//!   W_est     += alpha acked / cwnd,    alpha = 3 (1 - beta) / (1 + beta),      section 4.3
//!                                       and 1 from cwnd_prior on
//!   an ACK       cwnd = W_est where W_cubic(t) < W_est,                         section 4.3
//!                else cwnd += (target - cwnd) / cwnd for each segment           4.4 and 4.5
//!   loss         W_max = cwnd, or cwnd (1 + beta) / 2 when below the last       4.7
//!                cwnd = ssthresh = beta flight                                  4.6
//!   timeout      ssthresh = beta flight, cwnd = 1; then K = 0, W_max = cwnd     4.8
//!   Linux        before the first loss, and after a timeout: a segment for each 20 at least
//! ```

use super::hystart::{EarlyEnd, HyStart, LinuxHyStart};
use super::{Acked, Levels};
use units::{Instant, Span};

/// C, in segments per second cubed (section 5.1).
const C: f64 = 0.4;
/// beta_cubic (section 4.6), as a fraction.
const BETA: (u64, u64) = (7, 10);
const BETA_F: f64 = 0.7;
/// alpha_cubic: as much as Reno with halving gains (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA_F) / (1.0 + BETA_F);

/// Segments by which Linux's window grows for each that is acknowledged, where no loss has told it
/// what the path takes: 5 % in a round trip.
const LEAST_GROWTH: f64 = 1.0 / 20.0;

/// CUBIC's state.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    levels: Levels,
    /// W_max, in segments.
    top: f64,
    /// cwnd_prior, in segments.
    prior: f64,
    epoch: Option<Epoch>,
    /// When the last acknowledgement came.
    last: Instant,
    hystart: Option<HyStart>,
    linux: Option<LinuxHyStart>,
    /// No loss has told what the path takes since the beginning or the last timeout.
    unknown: bool,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// K, in seconds.
    k: f64,
    /// W_est, in segments.
    estimate: f64,
    /// The window in segments, with what is less than a byte.
    window: f64,
}

impl Cubic {
    pub(crate) fn new(levels: Levels, early_end: EarlyEnd) -> Self {
        let (hystart, linux) = match early_end {
            EarlyEnd::Never => (None, None),
            EarlyEnd::HyStartPlusPlus => (Some(HyStart::new()), None),
            EarlyEnd::LinuxHyStart => (None, Some(LinuxHyStart::new())),
        };
        let (epoch, last) = (None, Instant::ZERO);
        Self { levels, top: 0.0, prior: 0.0, epoch, last, hystart, linux, unknown: true }
    }

    pub(crate) fn levels(&self) -> &Levels {
        &self.levels
    }

    pub(crate) fn levels_mut(&mut self) -> &mut Levels {
        &mut self.levels
    }

    pub(crate) fn on_ack(&mut self, acked: &Acked) {
        let since = acked.now.since(self.last);
        self.last = acked.now;
        if !acked.limited {
            // Time in which the window was not used does not count (section 4.2).
            self.on_idle(since);
            return;
        }
        if self.levels.threshold() < u64::MAX {
            // It is for the initial slow start (RFC 9406, section 4.3).
            self.hystart = None;
        }
        let mut divisor = 1;
        if self.levels.in_slow_start()
            && let Some(hystart) = &mut self.hystart
        {
            divisor = hystart.on_ack(acked);
            if hystart.is_over() {
                self.levels.set_threshold(self.levels.window());
            }
        }
        if self.levels.in_slow_start()
            && let Some(linux) = &mut self.linux
            && linux.on_ack(acked, self.levels.window(), self.levels.segment())
        {
            self.levels.set_threshold(self.levels.window());
        }
        let rest = self.levels.slow_start(acked.bytes, divisor);
        if rest > 0 {
            self.avoid(acked, rest);
        }
    }

    fn avoid(&mut self, acked: &Acked, bytes: u64) {
        let size = self.levels.segment() as f64;
        let segments = bytes as f64 / size;
        let now_window = self.levels.window() as f64 / size;
        let (top, epoch) = match &mut self.epoch {
            Some(epoch) => (self.top, epoch),
            none => {
                let k = if now_window < self.top {
                    libm::cbrt((self.top - now_window) / C)
                } else {
                    self.top = now_window;
                    0.0
                };
                let fresh = Epoch { start: acked.now, k, estimate: now_window, window: now_window };
                (self.top, none.insert(fresh))
            }
        };
        let k = epoch.k;
        let cubic = |seconds: f64| C * (seconds - k) * (seconds - k) * (seconds - k) + top;
        let passed = acked.now.since(epoch.start).as_secs_f64();
        let round_trip = acked.round_trip.unwrap_or(Span::ZERO).as_secs_f64();
        let alpha = if epoch.estimate >= self.prior { 1.0 } else { ALPHA };
        let window = epoch.window;
        epoch.estimate += alpha * segments / window;
        epoch.window = if cubic(passed) < epoch.estimate {
            window.max(epoch.estimate)
        } else {
            let target = cubic(passed + round_trip).clamp(window, 1.5 * window);
            window + (target - window) / window * segments
        };
        if self.linux.is_some() && self.unknown {
            // Linux: the cubic is too careful where nothing is known (bictcp_update).
            epoch.window = epoch.window.max(window + segments * LEAST_GROWTH);
        }
        self.levels.set_window((epoch.window * size) as u64);
    }

    pub(crate) fn on_loss(&mut self, flight: u64) {
        let window = self.reduce(flight);
        self.unknown = false;
        // Fast convergence (section 4.7): a flow that did not get back to where it was makes room.
        let released = window < self.top;
        self.top = if released { window * (1.0 + BETA_F) / 2.0 } else { window };
        self.levels.set_window(self.levels.threshold());
    }

    pub(crate) fn on_timeout(&mut self, flight: u64, first: bool) {
        if first {
            self.reduce(flight);
        }
        self.top = 0.0;
        self.epoch = None;
        self.unknown = true;
        if let Some(linux) = &mut self.linux {
            // Linux looks anew after a timeout (bictcp_state).
            *linux = LinuxHyStart::new();
        }
        self.levels.set_window(self.levels.segment());
    }

    /// Moves the threshold; returns what the window was, in segments.
    fn reduce(&mut self, flight: u64) -> f64 {
        let window = self.levels.window();
        self.prior = window as f64 / self.levels.segment() as f64;
        // What limited transmit let out beyond the window is no part of it.
        self.levels.set_threshold(flight.min(window) * BETA.0 / BETA.1);
        self.epoch = None;
        self.prior
    }

    /// The window was changed from outside: a new stage begins.
    pub(crate) fn restart(&mut self) {
        self.epoch = None;
    }

    /// Time passed that does not count (section 4.2).
    pub(crate) fn on_idle(&mut self, idle: Span) {
        if let Some(epoch) = &mut self.epoch {
            epoch.start += idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    fn cubic(segments: u64) -> Cubic {
        Cubic::new(Levels::new(MSS, segments * MSS, None), EarlyEnd::Never)
    }

    fn ack(at: Span, segments: u64) -> Acked {
        Acked {
            now: Instant::ZERO + at,
            bytes: segments * MSS,
            up_to: 0,
            next: 0,
            limited: true,
            sample: None,
            round_trip: Some(Span::from_millis(100)),
            fine: None,
        }
    }

    fn window(cubic: &Cubic) -> f64 {
        cubic.levels().window() as f64 / MSS as f64
    }

    /// Feeds a window of acknowledgements each 100 ms from `from` to `to`.
    fn run(cubic: &mut Cubic, from: Span, to: Span) {
        let mut at = from;
        while at < to {
            for _ in 0..(window(cubic) as u64) {
                cubic.on_ack(&ack(at, 1));
            }
            at += Span::from_millis(100);
        }
    }

    #[test]
    fn linux_grows_by_a_twentieth_where_no_loss_has_told_anything() {
        let grown = |early_end, lost: bool| {
            let levels = Levels::new(MSS, 100 * MSS, None);
            let mut cubic = Cubic::new(levels, early_end);
            cubic.levels_mut().set_threshold(100 * MSS);
            if lost {
                cubic.on_loss(100 * MSS);
            }
            let before = window(&cubic);
            // A window of acknowledgements at one moment: t is 0, and the cubic flat.
            (0..before as u64).for_each(|_| cubic.on_ack(&ack(Span::from_millis(1), 1)));
            window(&cubic) / before
        };
        // (1 + 1/20 of a segment for each): 100 become 105; after a loss and without Linux's rule
        // the cubic is flat and W_est adds less than one.
        let known = grown(EarlyEnd::LinuxHyStart, false);
        assert!((known - 1.05).abs() < 0.001, "{known}");
        assert!(grown(EarlyEnd::Never, false) < 1.012);
        assert!(grown(EarlyEnd::LinuxHyStart, true) < 1.04);
    }

    #[test]
    fn growth_is_concave_to_the_old_window_at_k_and_convex_after() {
        let mut cubic = cubic(1_000);
        cubic.on_loss(1_000 * MSS);
        assert_eq!(window(&cubic), 700.0);
        // K = cbrt(300 / 0.4) = 9.0856 s. W(t) = 0.4 (t - K)^3 + 1000, each round aims a round
        // trip ahead: after 2 s 0.4 (-7.0856)^3 + 1000 = 857.7, after 5 s 972.7, at K 1000.
        let mut last = Span::ZERO;
        for (seconds, expected) in [(2.0, 857.7), (5.0, 972.7), (9.0856, 1000.0), (12.0, 1009.9)] {
            let until = Span::from_secs_f64(seconds);
            run(&mut cubic, last, until);
            last = until;
            let got = window(&cubic);
            assert!((got - expected).abs() < 4.0, "at {seconds} s: {got}, not {expected}");
        }
    }

    #[test]
    fn a_loss_below_the_old_window_lets_others_in() {
        let mut cubic = cubic(100);
        cubic.on_loss(100 * MSS);
        assert_eq!((cubic.top, window(&cubic)), (100.0, 70.0));
        cubic.on_loss(70 * MSS);
        // W_max = 70 × 1.7 / 2 = 59.5 (section 4.7).
        assert!((cubic.top - 59.5).abs() < 1e-9);
        assert_eq!(window(&cubic), 49.0);
    }

    #[test]
    fn on_a_short_path_it_grows_as_reno_would() {
        // At 10 segments and 100 ms, C t^3 is far below alpha = 0.529 a round trip: K = 1.957 s
        // and W(1 s) = 0.4 (-0.957)^3 + 10 = 9.65. W_est is back at 10 after 5.7 round trips,
        // and gains a segment in each of the other 4.3; a little less here, since only whole
        // segments are acknowledged.
        let mut cubic = cubic(10);
        cubic.on_loss(10 * MSS);
        run(&mut cubic, Span::ZERO, Span::from_secs(1));
        let got = window(&cubic);
        assert!((13.2..14.3).contains(&got), "{got}");
    }

    #[test]
    fn after_a_timeout_growth_begins_at_the_threshold() {
        let mut cubic = cubic(100);
        cubic.on_timeout(100 * MSS, true);
        assert_eq!((window(&cubic), cubic.levels().threshold()), (1.0, 70 * MSS));
        // Slow start to 70, then K = 0 and W_max = 70 (section 4.8): 0.4 × 5^3 = 50 more in 5 s.
        cubic.on_ack(&ack(Span::ZERO, 69));
        assert_eq!(window(&cubic), 70.0);
        run(&mut cubic, Span::from_millis(1), Span::from_secs(5));
        let got = window(&cubic);
        assert!((got - 120.0).abs() < 4.0, "{got}");
    }

    /// Rounds of growing round trips in slow start; returns the window that they lead to.
    fn queueing(cubic: &mut Cubic, from: u64) -> f64 {
        let mut number = from * 1_000;
        for round in 0..12 {
            for _ in 0..10 {
                number += 1;
                let at = Span::from_millis(from * 1_000 + round * 100);
                let sample = Some(Span::from_millis(600 + 40 * round));
                let (up_to, next) = (number, number + 9);
                cubic.on_ack(&Acked { up_to, next, sample, ..ack(at, 1) });
            }
        }
        window(cubic)
    }

    #[test]
    fn an_early_end_is_for_the_initial_slow_start() {
        let levels = || Levels::new(MSS, 20 * MSS, None);
        let mut plus = Cubic::new(levels(), EarlyEnd::HyStartPlusPlus);
        assert!(queueing(&mut plus, 0) < 100.0 && plus.levels().threshold() < 100 * MSS);
        let mut plain = Cubic::new(levels(), EarlyEnd::Never);
        plain.levels = plus.levels;
        for cubic in [&mut plus, &mut plain] {
            cubic.on_timeout(400 * MSS, true);
        }
        assert_eq!(queueing(&mut plus, 100), queueing(&mut plain, 100));
        // Linux's found one, and looks no more until a timeout.
        let mut linux = Cubic::new(levels(), EarlyEnd::LinuxHyStart);
        let found = queueing(&mut linux, 0);
        assert!(found < 100.0, "{found}");
        linux.levels.set_threshold(1_000 * MSS);
        assert!(queueing(&mut linux, 100) >= found + 120.0 - 1e-9);
        linux.on_timeout(400 * MSS, true);
        linux.levels.set_threshold(1_000 * MSS);
        queueing(&mut linux, 200);
        assert!(linux.levels().threshold() < 100 * MSS);
    }

    #[test]
    fn time_in_which_the_window_was_not_used_does_not_count() {
        let (mut used, mut idle) = (cubic(1_000), cubic(1_000));
        for cubic in [&mut used, &mut idle] {
            cubic.on_loss(1_000 * MSS);
            run(cubic, Span::ZERO, Span::from_secs(2));
        }
        idle.on_idle(Span::from_secs(60));
        run(&mut used, Span::from_secs(2), Span::from_secs(3));
        run(&mut idle, Span::from_secs(62), Span::from_secs(63));
        assert!((window(&used) - window(&idle)).abs() < 0.1);
    }
}
