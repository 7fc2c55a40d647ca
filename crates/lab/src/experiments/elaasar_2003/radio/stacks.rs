//! Parameters of the stack, their sources and their variations.

use satlink::mac::csma::CsmaConfig;
use sim::radio::{Computer, Radio};
use units::{BitRate, Span};
use xstp::session::SessionConfig;

/// Bit rates of the transceivers.
pub(super) const RATES: [u64; 2] = [1_200, 9_600];

/// File sizes of tables 1 and 2, bytes.
pub(super) const SIZES: [u64; 4] = [1, 100, 1_024, 10_240];

/// Processing time per packet in a computer, fitted to the 1 B column alone; see the accounting.
pub(in super::super) const PROCESSING_MS: u64 = 50;

/// Pause between chunks, fitted to the 1 KB and 10 KB columns.
pub(in super::super) const PAUSE_MS: u64 = 7_500;

/// Bit error ratio at 9.6 kbit/s, the alternative explanation, fitted to 1 KB and 10 KB at that
/// rate.
pub(super) const NOISE_9600: f64 = 4.5e-4;

/// A change of the stack without pauses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    /// None.
    Nothing,
    /// Share of bits in error.
    Noise(f64),
    /// Milliseconds between chunks.
    Pause(u64),
    /// TXDELAY in milliseconds.
    KeyUp(u64),
    /// P of 255.
    Persistence(u8),
    /// Frames in one transmission.
    Frames(u32),
    /// Milliseconds until another station's carrier is detected.
    Detection(u64),
    /// Milliseconds of processing per packet in a computer.
    Processing(u64),
    /// Bit/s between computer and TNC.
    Serial(u64),
    /// POLLs per round trip.
    Polls(u32),
    /// Round trip that is assumed before the first measurement, in seconds.
    FirstRoundTrip(u64),
    /// Timer POLLs at every window size, as in section 6; otherwise POLLs are piggybacked on bursts
    /// below ten segments, and the timer only replaces lost ones, as in STP.
    TimerPolls,
    /// XSTP-OFF.
    NoProbing,
    Compressed,
    /// Compressed headers, with frames filled to their full size.
    Filled,
}

impl Change {
    pub(super) fn name(self) -> String {
        match self {
            Self::Nothing => "as chosen, without pauses".to_owned(),
            Self::Noise(share) => format!("{share:e} of the bits in error"),
            Self::Pause(ms) => format!("{} s between chunks", ms as f64 / 1e3),
            Self::KeyUp(ms) => format!("TXDELAY {ms} ms"),
            Self::Persistence(p) => format!("P = {p}/255"),
            Self::Frames(1) => "1 frame in a transmission".to_owned(),
            Self::Frames(most) => format!("up to {most} frames in a transmission"),
            Self::Detection(ms) => format!("carrier known after {ms} ms"),
            Self::Processing(ms) => format!("{ms} ms a packet in a computer"),
            Self::Serial(bps) => format!("serial lines of {bps} bit/s"),
            Self::TimerPolls => "POLLs by the timer".to_owned(),
            Self::Polls(1) => "by the timer, 1 POLL a round trip".to_owned(),
            Self::Polls(count) => format!("by the timer, {count} POLLs a round trip"),
            Self::FirstRoundTrip(secs) => format!("by the timer, {secs} s assumed at first"),
            Self::NoProbing => "probing off".to_owned(),
            Self::Compressed => "headers compressed".to_owned(),
            Self::Filled => "headers compressed, frames filled".to_owned(),
        }
    }

    fn apply(self, radio: &mut Radio) {
        let ms = Span::from_millis;
        match self {
            Self::Nothing => {}
            Self::Noise(share) => radio.channel.bit_error_ratio = share,
            Self::Pause(millis) => radio.computer.between_chunks = ms(millis),
            Self::KeyUp(millis) => radio.channel.key_up = ms(millis),
            Self::Persistence(p) => radio.channel.persistence = p,
            Self::Frames(most) => radio.channel.most_frames = most,
            Self::Detection(millis) => radio.channel.detection = ms(millis),
            Self::Processing(millis) => radio.computer.processing = ms(millis),
            Self::Serial(bps) => radio.computer.serial = Some(BitRate::from_bps(bps)),
            Self::TimerPolls => radio.session.stp.small_window = 0,
            Self::Polls(count) => {
                radio.session.stp.small_window = 0;
                radio.session.polls_per_round_trip = count;
            }
            Self::FirstRoundTrip(secs) => {
                radio.session.stp.small_window = 0;
                radio.session.initial_rtt = Span::from_secs(secs);
            }
            Self::NoProbing => radio.session.xstp.probing = None,
            Self::Compressed => radio.compress = true,
            Self::Filled => *radio = radio.clone().filled(),
        }
    }
}

/// Returns the stack at `rate` without pauses, with `changes`.
pub(super) fn with(rate: u64, changes: &[Change]) -> Radio {
    let channel = CsmaConfig::kenwood(BitRate::from_bps(rate));
    let mut session = SessionConfig::xstp_2003();
    session.stp.small_window = 10;
    let mut radio = Radio::published(channel, &session);
    radio.computer = Computer { processing: Span::from_millis(PROCESSING_MS), ..Computer::FREE };
    for change in changes {
        change.apply(&mut radio);
    }
    radio
}

/// Returns the stack of the cells.
pub(super) fn chosen(rate: u64) -> Radio {
    with(rate, &[Change::Pause(PAUSE_MS)])
}

fn without_pauses(rate: u64) -> Radio {
    with(rate, &[])
}

/// Returns the stack with the polling of section 6.
fn timer_polls(rate: u64) -> Radio {
    with(rate, &[Change::TimerPolls])
}

/// Returns the stack with noise at the higher rate.
fn noisy(rate: u64) -> Radio {
    let noise = if rate == RATES[0] { 0.0 } else { NOISE_9600 };
    with(rate, &[Change::TimerPolls, Change::Noise(noise)])
}

/// Name of a stack, and its constructor.
pub(super) type Named = (&'static str, fn(u64) -> Radio);

/// The chosen stack and the alternatives.
pub(super) const BESIDE: [Named; 4] =
    [("chosen", chosen), ("bare", without_pauses), ("timer", timer_polls), ("noise", noisy)];

/// Their titles in tables and figures.
pub(super) const TITLES: [(&str, &str); 4] = [
    ("chosen", "chosen: 7.5 s between chunks"),
    ("bare", "without pauses"),
    ("timer", "without pauses, POLLs by the timer"),
    ("noise", "the same, noise at 9.6 kbit/s"),
];

/// Changes of one kind.
#[derive(Debug)]
pub(super) struct Sweep {
    pub(super) title: &'static str,
    pub(super) changes: &'static [Change],
}

/// Returns all single changes of the stack without pauses.
pub(super) fn sweeps() -> &'static [Sweep] {
    use Change::{
        Detection, FirstRoundTrip, Frames, KeyUp, NoProbing, Noise, Nothing, Pause, Persistence,
        Polls, Processing, Serial, TimerPolls,
    };
    &[
        Sweep { title: "the stack", changes: &[Nothing, NoProbing] },
        Sweep {
            title: "key-up and access",
            changes: &[
                KeyUp(100),
                KeyUp(200),
                KeyUp(500),
                KeyUp(800),
                Persistence(31),
                Persistence(63),
                Persistence(191),
                Frames(1),
                Frames(2),
                Frames(255),
                Detection(50),
                Detection(100),
                Detection(300),
            ],
        },
        Sweep {
            title: "computers and lines",
            changes: &[
                Processing(0),
                Processing(100),
                Processing(250),
                Processing(1_000),
                Serial(1_200),
                Serial(9_600),
                Pause(2_000),
                Pause(5_000),
                Pause(6_500),
                Pause(8_500),
            ],
        },
        Sweep {
            title: "polling",
            changes: &[
                TimerPolls,
                Polls(1),
                Polls(2),
                FirstRoundTrip(1),
                FirstRoundTrip(6),
                FirstRoundTrip(10),
            ],
        },
        Sweep {
            title: "noise",
            changes: &[
                Noise(2e-5),
                Noise(5e-5),
                Noise(1e-4),
                Noise(2e-4),
                Noise(3e-4),
                Noise(NOISE_9600),
                Noise(6e-4),
            ],
        },
    ]
}

/// Stacks on which header compression is measured.
pub(super) const COMPRESSED_UNDER: [(&str, Change); 3] = [
    ("without pauses", Change::Nothing),
    ("with noise of 1e-4", Change::Noise(1e-4)),
    ("as chosen", Change::Pause(PAUSE_MS)),
];

/// Without compression, with it, and with filled frames.
pub(super) const COMPRESSIONS: [(&str, Change); 3] =
    [("plain", Change::Nothing), ("compressed", Change::Compressed), ("filled", Change::Filled)];
