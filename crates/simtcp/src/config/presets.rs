//! Named configurations.

use super::{
    AfterIdle, DelayedAck, EarlyEnd, InitialWindow, Opening, RecoveryKind, RepairTimer, TcpConfig,
    WindowKind,
};
use crate::probing::Probing;
use crate::round_trip::{Estimator, RtoConfig};
use units::Span;

/// Segments that a Linux receiver acknowledges one by one: as long as its advertised window grows,
/// by two segments per arrival, from 1/2 to 5/8 of its buffer, as observed with a maximum buffer of
/// 32 MB (`tcp_rmem`). This matters to HyStart, which evaluates closely spaced acknowledgements.
const WHILE_THE_WINDOW_GROWS: u32 = 1_448;

impl TcpConfig {
    /// Reno: fast retransmit, and fast recovery that ends with the first new acknowledgement (RFC
    /// 2001, section 4; RFC 5681, section 3.2), without options.
    pub fn reno() -> Self {
        Self { recovery: RecoveryKind::Reno, ..Self::new_reno() }
    }

    /// NewReno as specified, without options: RFC 5681, 6582, 6298, 3390.
    pub fn new_reno() -> Self {
        Self {
            opening: Opening::ThreeWay,
            recovery: RecoveryKind::NewReno,
            window: WindowKind::Reno,
            max_segment: 1_460,
            initial_window: InitialWindow::Rfc3390,
            slow_start_limit: Some(2),
            byte_counting: true,
            after_idle: AfterIdle::SlowStart,
            limited_transmit: true,
            repair_timer: RepairTimer::Impatient,
            proportional_reduction: false,
            pacing: false,
            path_mtu: false,
            probing: None,
            ecn: false,
            accurate_ecn: false,
            d_sack: false,
            paws: true,
            nagle: false,
            window_scale: true,
            timestamps: None,
            sack: false,
            answers_first: false,
            delayed_ack: DelayedAck::USUAL,
            rto: RtoConfig {
                initial: Span::from_secs(1),
                min: Span::from_secs(1),
                max: Span::from_secs(60),
                granularity: Span::from_millis(1),
                ticks: false,
                estimator: Estimator::Rfc6298,
            },
            send_buffer: 16 << 20,
            receive_buffer: 16 << 20,
            retries: 15,
            time_wait: Span::from_secs(60),
        }
    }

    /// Reno's window and fast recovery with SACK to choose retransmissions: rules 5 to 7 of
    /// the appendix of Henderson & Katz (1999) without its rules 1 to 4.
    pub fn sack_reno() -> Self {
        Self { recovery: RecoveryKind::SackReno, sack: true, ..Self::new_reno() }
    }

    /// SACK-NewReno of Henderson & Katz (1999): all rules of the appendix. Without
    /// [`sack`](Self::sack) it is their NewReno: rules 1 to 4.
    pub fn sack_new_reno() -> Self {
        Self { recovery: RecoveryKind::SackNewReno, ..Self::sack_reno() }
    }

    /// NewReno's window with SACK recovery as specified: RFC 5681, 2018, 6675.
    pub fn sack() -> Self {
        Self { recovery: RecoveryKind::Sack, sack: true, ..Self::new_reno() }
    }

    /// CUBIC with current options: RFC 9438, SACK, timestamps, an initial window of ten segments
    /// (RFC 6928), and Linux's timers.
    pub fn cubic() -> Self {
        Self {
            recovery: RecoveryKind::Sack,
            window: WindowKind::Cubic { early_end: EarlyEnd::Never },
            initial_window: InitialWindow::Segments(10),
            slow_start_limit: None,
            timestamps: Some(Span::from_millis(1)),
            sack: true,
            delayed_ack: DelayedAck {
                every: 2,
                after: Span::from_millis(40),
                at_once: 16,
                ticks: false,
                with_answers: false,
            },
            rto: RtoConfig {
                initial: Span::from_secs(1),
                min: Span::from_millis(200),
                max: Span::from_secs(120),
                granularity: Span::from_millis(200),
                ticks: false,
                estimator: Estimator::Rfc6298,
            },
            ..Self::new_reno()
        }
    }

    /// [`cubic`](Self::cubic) with HyStart++: Linux's behaviour composed of RFCs. Over 10 Mbit/s,
    /// 600 ms and a queue of one bandwidth-delay product it reaches 0.94 of the bound in 60 s,
    /// where Linux reached 0.96, and 0.91 without HyStart++. [`linux_cubic`](Self::linux_cubic) is
    /// closer.
    pub fn linux() -> Self {
        let early_end = EarlyEnd::HyStartPlusPlus;
        Self { window: WindowKind::Cubic { early_end }, ..Self::cubic() }
    }

    /// A Linux kernel's default cubic: its HyStart, RACK, proportional rate reduction, its
    /// retransmission timer, window decay after idle. `docs/decisions/simulated-tcp.md` compares it
    /// with a kernel.
    pub fn linux_cubic() -> Self {
        let cubic = Self::cubic();
        Self {
            recovery: RecoveryKind::Rack,
            window: WindowKind::Cubic { early_end: EarlyEnd::LinuxHyStart },
            repair_timer: RepairTimer::SlowButSteady,
            proportional_reduction: true,
            after_idle: AfterIdle::Decay,
            d_sack: true,
            delayed_ack: DelayedAck { at_once: WHILE_THE_WINDOW_GROWS, ..cubic.delayed_ack },
            rto: RtoConfig { estimator: Estimator::Linux, ..cubic.rto },
            ..cubic
        }
    }

    /// [`linux_cubic`](Self::linux_cubic) with the kernel's reno.
    pub fn linux_reno() -> Self {
        Self { window: WindowKind::Reno, ..Self::linux_cubic() }
    }

    /// Vegas: its window and its retransmission (Brakmo & Peterson 1995), without options.
    pub fn vegas() -> Self {
        Self { recovery: RecoveryKind::Vegas, window: WindowKind::Vegas, ..Self::new_reno() }
    }

    /// TCP-probing on Reno (Tsaoussidis & Badr 2000), as Elaasar et al. (2003) describe it.
    pub fn probing() -> Self {
        Self { probing: Some(Probing::default()), ..Self::reno() }
    }

    /// BBR version 1 with Linux's options.
    pub fn bbr() -> Self {
        Self {
            window: WindowKind::Bbr,
            proportional_reduction: false,
            after_idle: AfterIdle::Keep,
            ..Self::linux_cubic()
        }
    }

    /// BBR version 3 with Linux's options. With `ecn` it responds to the number of marks.
    pub fn bbr3() -> Self {
        Self { window: WindowKind::Bbr3, accurate_ecn: true, ..Self::bbr() }
    }

    /// A sender for L4S, as TCP Prague: the response of RFC 8257 to accurate feedback, ECT(1),
    /// pacing. Not modelled: independence of the round trip, and the fall-back where a queue of
    /// RFC 3168 is detected (RFC 9331, section 4.3).
    pub fn prague() -> Self {
        Self {
            window: WindowKind::Prague,
            ecn: true,
            accurate_ecn: true,
            pacing: true,
            ..Self::linux_reno()
        }
    }

    /// The same recovery and window in a stack of 1999 like BSD/OS 3.0, which Henderson & Katz
    /// measured: an initial window of one segment, growth per acknowledgement and not per octet
    /// (RFC 2001), no limited transmit, clock ticks of 500 ms for retransmission and 200 ms for
    /// delayed acknowledgements (4.4BSD), Nagle's algorithm, buffers of 240 KB.
    #[must_use]
    pub fn of_1999(self) -> Self {
        Self {
            initial_window: InitialWindow::Segments(1),
            slow_start_limit: Some(1),
            byte_counting: false,
            after_idle: AfterIdle::SlowStart,
            limited_transmit: false,
            nagle: true,
            timestamps: None,
            delayed_ack: DelayedAck { ticks: true, ..DelayedAck::USUAL },
            rto: RtoConfig {
                initial: Span::from_secs(6),
                min: Span::from_secs(1),
                max: Span::from_secs(64),
                granularity: Span::from_millis(500),
                ticks: true,
                estimator: Estimator::Rfc6298,
            },
            send_buffer: 240 << 10,
            receive_buffer: 240 << 10,
            retries: 12,
            ..self
        }
    }
}
