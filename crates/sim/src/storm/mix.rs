//! What a seed means: which faults, how strong, and when.

use super::arena::{Act, Order};
use super::clock::{Clock, Leap};
use super::fault::{Fault, FaultSet, Strikes};
use super::flavour::Flavour;
use super::host::{Setup, incarnation_of};
use super::report::Subject;
use super::weather::{Conditions, Guard, Lane};
use units::{BitRate, Instant, RngStream, Span};
use xstp::Seq24;
use xstp::session::SessionConfig;
use xstp::wire::{Endpoints, Profile};

/// A storm before it begins.
#[derive(Debug)]
pub(crate) struct Mix {
    subject: Subject,
    seed: u64,
    on: FaultSet,
    pub(crate) flavour: Flavour,
    pub(crate) clocks: [Clock; 2],
    conditions: [Conditions; 2],
    pub(crate) lag: Span,
    pub(crate) calm_at: Instant,
    pub(crate) acts: Vec<(Instant, Act)>,
    configs: [SessionConfig; 2],
    incarnation: u32,
    linger: [Span; 2],
    task: u64,
}

impl Mix {
    /// The storm of `seed` over `subject`.
    pub(crate) fn draw(subject: Subject, seed: u64) -> Self {
        let mut rng = RngStream::new(seed, 0, "sim/storm/mix");
        let rng = &mut rng;
        let on = draw_faults(rng);
        let flavours = Flavour::of(subject);
        let flavour = flavours[rng.below(flavours.len() as u64) as usize];
        // From 200 kbit/s to 20 Mbit/s, small and large ones alike.
        let rate = BitRate::from_kbps(200 << rng.below(7)).mul_ratio(100 + rng.below(100), 100);
        let configs = draw_configs(rng, on, flavour, rate);
        let calm_at = Instant::ZERO + Span::from_millis(3_000 + rng.below(9_000));
        let lethal = is_lethal(on);
        let task = draw_task(rng, &configs, rate);
        let longest = Span::from_millis(if lethal { 3_000 } else { 400 });
        let linger = |rng: &mut RngStream| Span::from_nanos(1 + rng.below(longest.as_nanos()));
        let linger =
            [linger(rng), if lethal && rng.chance(0.5) { linger(rng) } else { Span::ZERO }];
        let mut mix = Self {
            subject,
            seed,
            on,
            flavour,
            clocks: [(); 2].map(|()| draw_clock(rng, on)),
            conditions: draw_conditions(rng, on, rate),
            lag: Span::ZERO,
            calm_at,
            acts: Vec::new(),
            configs,
            incarnation: incarnation_of(rng),
            linger,
            task,
        };
        if on.has(Fault::LateTimer) {
            let most = 1 << rng.below(16);
            mix.lag = Span::from_micros(100 + rng.below(most));
        }
        mix.acts = draw_acts(rng, subject, on, calm_at, rate);
        mix
    }

    /// What the ends are set to: the client, then the server.
    pub(crate) fn setups(&self) -> [Setup; 2] {
        [true, false].map(|is_client| {
            let config = self.configs[usize::from(!is_client)].clone();
            let other = &self.configs[usize::from(is_client)];
            // What is written, and packets that wait for their turn or a reader.
            let segment = other.max_segment;
            let memory = config.send_buffer + config.receive_window as usize * segment;
            Setup {
                is_client,
                silent: self.seed % 8 < 2,
                seed: self.seed,
                incarnation: self.incarnation,
                lethal: is_lethal(self.on),
                linger: self.linger[usize::from(!is_client)],
                task: self.task,
                memory,
                config,
            }
        })
    }

    /// The two directions: what the client sends, then what the server does.
    pub(crate) fn lanes(&self) -> [Lane; 2] {
        [0, 1].map(|from: usize| {
            let guard = match self.subject {
                Subject::Sessions => Guard::Below,
                Subject::Connections | Subject::Links | Subject::Gateways | Subject::Fairness => {
                    Guard::Checksum(self.configs[1 - from].profile)
                }
            };
            let name = ["sim/storm/client", "sim/storm/server"][from];
            Lane::new(self.conditions[from], guard, RngStream::new(self.seed, 0, name))
        })
    }

    /// How long everything may take after the storm.
    pub(crate) fn patience(&self) -> Span {
        Span::from_secs(1_800)
    }

    /// Packets after which numbers wrap, if they are to.
    pub(crate) fn wraps_after(&self) -> Option<u64> {
        let first = self.configs[0].first_number.value();
        (first > 0).then_some(u64::from(Seq24::MODULUS - first))
    }

    /// Counts what does not strike at one time, but lies in how the ends are set.
    pub(crate) fn count_settings(&self, strikes: &mut Strikes) {
        use Fault as F;
        for fault in [F::Drift, F::TinyWindow, F::HugeWindow, F::TinySegment, F::Impatience] {
            if self.on.has(fault) {
                strikes.count(fault);
            }
        }
    }

    /// The storm in a few words, for people.
    pub(crate) fn describe(&self) -> String {
        let faults: Vec<String> = self.on.iter().map(|fault| fault.to_string()).collect();
        format!("{}; {}", self.flavour.name(), faults.join(", "))
    }
}

/// When what happens.
pub(crate) fn draw_acts(
    rng: &mut RngStream,
    subject: Subject,
    on: FaultSet,
    calm_at: Instant,
    rate: BitRate,
) -> Vec<(Instant, Act)> {
    let mut planned = Acts { subject, on, rate, acts: Vec::new() };
    for fault in on.iter() {
        let times = 1 + rng.below(4);
        for _ in 0..times {
            let at = Instant::from_nanos(rng.below(calm_at.as_nanos()));
            planned.draw_act(rng, fault, at);
        }
    }
    planned.acts
}

/// What happens, as far as it is drawn.
struct Acts {
    subject: Subject,
    on: FaultSet,
    rate: BitRate,
    acts: Vec<(Instant, Act)>,
}

impl Acts {
    fn draw_act(&mut self, rng: &mut RngStream, fault: Fault, at: Instant) {
        let (end, lethal) = (rng.below(2) as usize, is_lethal(self.on));
        let squared = |rng: &mut RngStream, most: u64| {
            Span::from_secs_f64(0.02 + most as f64 * rng.uniform() * rng.uniform())
        };
        let act = match fault {
            Fault::Blackout => Act::Dark { lanes: [true; 2], length: squared(rng, 8) },
            Fault::OneWayBlackout => {
                Act::Dark { lanes: [end == 0, end == 1], length: squared(rng, 8) }
            }
            Fault::DelayStep => Act::Delay { lane: end, delay: squared(rng, 1) },
            Fault::RateChange => {
                Act::Rate { lane: end, rate: self.rate.mul_ratio(20 + rng.below(200), 100) }
            }
            Fault::ClockForward => {
                let most = if lethal && rng.chance(0.2) { 200 } else { 5 };
                Act::Leap { end, by: Leap::Forward(squared(rng, most)) }
            }
            Fault::ClockBack => Act::Leap { end, by: Leap::Back(squared(rng, 5)) },
            Fault::Stall => Act::Stall { end, length: squared(rng, 3) },
            Fault::ClientRestart => Act::Order { end: 0, order: Order::Restart { amnesia: false } },
            Fault::ServerRestart => {
                let amnesia = self.on.has(Fault::Amnesia) && rng.chance(0.7);
                if amnesia && self.subject == Subject::Sessions {
                    // The association is gone with it, and with that the client's session.
                    let order = Order::Restart { amnesia: false };
                    self.acts.push((at, Act::Order { end: 0, order }));
                }
                Act::Order { end: 1, order: Order::Restart { amnesia } }
            }
            Fault::Abort => Act::Order { end, order: Order::Abort },
            Fault::MtuChange => {
                Act::Order { end, order: Order::Segment(64 + rng.below(1_400) as usize) }
            }
            Fault::SlowReader => {
                let again = Act::Order { end, order: Order::Reading(true) };
                self.acts.push((at + squared(rng, 5), again));
                Act::Order { end, order: Order::Reading(false) }
            }
            // These are in the weather and in the configuration.
            Fault::Loss | Fault::Burst | Fault::Duplicate | Fault::Reorder | Fault::Jitter => {
                return;
            }
            Fault::Corrupt | Fault::Truncate | Fault::Replay | Fault::Overflow => return,
            Fault::Drift | Fault::LateTimer | Fault::Amnesia | Fault::OldIncarnation => return,
            Fault::TinyWindow | Fault::HugeWindow | Fault::TinySegment => return,
            Fault::Wrap | Fault::HalfClose | Fault::Impatience => return,
        };
        self.acts.push((at, act));
    }
}

/// Whether sessions may die of it.
pub(crate) fn is_lethal(on: FaultSet) -> bool {
    use Fault as F;
    [F::ClientRestart, F::ServerRestart, F::Abort, F::Impatience].iter().any(|&f| on.has(f))
}

/// Each kind is on or off; how many are on differs much from seed to seed.
pub(crate) fn draw_faults(rng: &mut RngStream) -> FaultSet {
    let share = [0.1, 0.25, 0.5, 0.75][rng.below(4) as usize];
    let mut on = FaultSet::default();
    for fault in Fault::ALL {
        if rng.chance(share) {
            on.add(fault);
        }
    }
    // Half of all storms kill nobody: then nobody may die.
    if rng.chance(0.5) {
        use Fault as F;
        for fault in [F::ClientRestart, F::ServerRestart, F::Amnesia, F::Abort, F::Impatience] {
            on.remove(fault);
        }
    }
    if on.has(Fault::Amnesia) {
        on.add(Fault::ServerRestart);
    }
    if on.has(Fault::TinyWindow) {
        on.remove(Fault::HugeWindow);
    }
    on
}

/// A clock that starts anywhere, often where its stamps are about to wrap.
pub(crate) fn draw_clock(rng: &mut RngStream, on: FaultSet) -> Clock {
    let before = Span::from_millis(rng.below(12_000));
    let wrap = match rng.below(6) {
        0 => Span::from_micros(1 << 32),
        1 => Span::from_micros(1 << 31),
        2 => Span::from_millis(1 << 32),
        3 => Span::from_millis(1 << 31),
        _ => Span::from_secs(100 + rng.below(100_000)),
    };
    let drift = match (on.has(Fault::Drift), rng.below(2)) {
        (false, _) => 0,
        (true, 0) => rng.below(400) as i64 - 200,
        (true, _) => rng.below(60_000) as i64 - 30_000,
    };
    Clock::new(Instant::ZERO + wrap - before, drift)
}

pub(crate) fn draw_conditions(rng: &mut RngStream, on: FaultSet, rate: BitRate) -> [Conditions; 2] {
    let delay = [1, 5, 20, 60, 150, 280, 300, 600][rng.below(8) as usize];
    [(); 2].map(|()| {
        let share = |rng: &mut RngStream, fault, most: f64| {
            let share = most * rng.uniform() * rng.uniform();
            if on.has(fault) { share } else { 0.0 }
        };
        let full = on.has(Fault::Overflow);
        let limited = full || on.has(Fault::RateChange) || rng.chance(0.5);
        let percent = if full { 30 + rng.below(100) } else { 105 + rng.below(100) };
        Conditions {
            rate: limited.then(|| rate.mul_ratio(percent, 100)),
            queue: Span::from_millis(if full { 5 + rng.below(150) } else { 2_000 }),
            delay: Span::from_millis(delay + rng.below(10)),
            jitter: if on.has(Fault::Jitter) {
                Span::from_micros(1 + rng.below(80_000))
            } else {
                Span::ZERO
            },
            loss: share(rng, Fault::Loss, 0.5),
            burst: share(rng, Fault::Burst, 0.02),
            burst_length: 2.0 + 30.0 * rng.uniform(),
            duplicate: share(rng, Fault::Duplicate, 0.3),
            reorder: share(rng, Fault::Reorder, 0.3),
            held_back: Span::from_micros(1 + rng.below(1_000_000)),
            corrupt: share(rng, Fault::Corrupt, 0.2),
            truncate: share(rng, Fault::Truncate, 0.2),
            replay: share(rng, Fault::Replay, 0.2),
            old: share(rng, Fault::OldIncarnation, 0.2),
        }
    })
}

fn draw_configs(
    rng: &mut RngStream,
    on: FaultSet,
    flavour: Flavour,
    rate: BitRate,
) -> [SessionConfig; 2] {
    let address = |end: u8| core::net::SocketAddr::from(([10, 0, 0, end], 1_000 + u16::from(end)));
    let preset = flavour.config(rate, rng);
    let first = if on.has(Fault::Wrap) {
        let most = 1 << rng.below(10);
        Seq24::new(Seq24::MODULUS - 1 - rng.below(most) as u32)
    } else {
        Seq24::ZERO
    };
    let impatient = (Span::from_millis(1_500 + rng.below(8_000)), 1 + rng.below(4) as u32);
    let mut configs = [(1, 2), (2, 1)].map(|(local, remote)| {
        let mut config = preset.clone();
        if let Profile::Published(_) = config.profile {
            let ends = Endpoints { local: address(local), remote: address(remote) };
            config.profile = Profile::Published(ends);
        }
        config.first_number = first;
        let (patience, tries) = match (on.has(Fault::Impatience), is_lethal(on)) {
            (true, _) => impatient,
            (false, true) => (Span::from_secs(30), 12),
            (false, false) => (Span::from_secs(180), 1_000),
        };
        config.no_response = Some(patience);
        config.handshake_tries = tries;
        config
    });
    for config in &mut configs {
        let least = config.max_segment - config.payload_size() + 64;
        let most = config.max_segment;
        config.max_segment = if on.has(Fault::TinySegment) {
            least + rng.below(100) as usize
        } else {
            most.min(400 + rng.below(1_100) as usize)
        };
        if on.has(Fault::TinyWindow) {
            match rng.below(3) {
                0 => config.number_window = 1 + rng.below(8) as u32,
                1 => config.receive_window = 1 + rng.below(8) as u32,
                _ => config.initial_peer_window = 1 + rng.below(3) as u32,
            }
        }
        if on.has(Fault::HugeWindow) {
            config.number_window = Seq24::HALF;
            config.receive_window = Seq24::HALF;
        }
    }
    configs
}

/// Bytes that a direction carries in one life, at most: what takes seconds and not hours.
fn draw_task(rng: &mut RngStream, configs: &[SessionConfig; 2], rate: BitRate) -> u64 {
    let packets = 300 + rng.below(2_200);
    let window = configs.iter().map(|config| config.number_window.min(config.receive_window));
    let packets = packets.min(u64::from(window.min().unwrap_or(1)) * 60);
    let payload = configs.iter().map(SessionConfig::payload_size).min().unwrap_or(64) as u64;
    (packets * payload).min(rate.bytes_in(Span::from_secs(20))).max(1)
}
