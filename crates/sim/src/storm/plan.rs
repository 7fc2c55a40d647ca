//! Derives the faults, their intensity and their times from a seed.

use super::channel::{Channel, Conditions, Detection};
use super::clock::{Clock, ClockStep};
use super::fault::{Fault, FaultCounts, FaultSet};
use super::host::{Setup, incarnation_of};
use super::preset::Preset;
use super::report::Subject;
use super::runner::{Action, Command};
use units::{BitRate, Instant, RngStream, Span};
use xstp::Seq24;
use xstp::session::SessionConfig;
use xstp::wire::{Endpoints, Profile};

/// The parameters of a storm.
#[derive(Debug)]
pub(crate) struct StormPlan {
    subject: Subject,
    seed: u64,
    enabled: FaultSet,
    pub(crate) preset: Preset,
    pub(crate) clocks: [Clock; 2],
    conditions: [Conditions; 2],
    pub(crate) timer_delay: Span,
    pub(crate) faults_end: Instant,
    pub(crate) actions: Vec<(Instant, Action)>,
    configs: [SessionConfig; 2],
    incarnation: u32,
    linger: [Span; 2],
    task: u64,
}

impl StormPlan {
    /// Draws the storm of `seed` over `subject`.
    pub(crate) fn draw(subject: Subject, seed: u64) -> Self {
        let mut rng = RngStream::new(seed, 0, "sim/storm/mix");
        let rng = &mut rng;
        let enabled = draw_faults(rng);
        let flavours = Preset::of(subject);
        let preset = flavours[rng.below(flavours.len() as u64) as usize];
        // From 200 kbit/s to 25.6 Mbit/s, uniform in the logarithm.
        let rate = BitRate::from_kbps(200 << rng.below(7)).mul_ratio(100 + rng.below(100), 100);
        let configs = draw_configs(rng, enabled, preset, rate);
        let faults_end = Instant::ZERO + Span::from_millis(3_000 + rng.below(9_000));
        let may_abort = may_abort(enabled);
        let task = draw_task(rng, &configs, rate);
        let longest = Span::from_millis(if may_abort { 3_000 } else { 400 });
        let linger = |rng: &mut RngStream| Span::from_nanos(1 + rng.below(longest.as_nanos()));
        let linger =
            [linger(rng), if may_abort && rng.chance(0.5) { linger(rng) } else { Span::ZERO }];
        let mut plan = Self {
            subject,
            seed,
            enabled,
            preset,
            clocks: [(); 2].map(|()| draw_clock(rng, enabled)),
            conditions: draw_conditions(rng, enabled, rate),
            timer_delay: Span::ZERO,
            faults_end,
            actions: Vec::new(),
            configs,
            incarnation: incarnation_of(rng),
            linger,
            task,
        };
        if enabled.has(Fault::LateTimer) {
            let most = 1 << rng.below(16);
            plan.timer_delay = Span::from_micros(100 + rng.below(most));
        }
        plan.actions = draw_actions(rng, subject, enabled, faults_end, rate);
        plan
    }

    /// The parameters of the endpoints: client, server.
    pub(crate) fn setups(&self) -> [Setup; 2] {
        [true, false].map(|is_client| {
            let config = self.configs[usize::from(!is_client)].clone();
            let other = &self.configs[usize::from(is_client)];
            // Octets in the send buffer, and packets that wait for a gap or a reader.
            let segment = other.max_segment;
            let memory = config.send_buffer + config.receive_window as usize * segment;
            Setup {
                is_client,
                silent: self.seed % 8 < 2,
                seed: self.seed,
                incarnation: self.incarnation,
                may_abort: may_abort(self.enabled),
                linger: self.linger[usize::from(!is_client)],
                task: self.task,
                memory,
                config,
            }
        })
    }

    /// Both directions: client to server, server to client.
    pub(crate) fn channels(&self) -> [Channel; 2] {
        [0, 1].map(|from: usize| {
            let guard = match self.subject {
                Subject::Sessions => Detection::DiscardBelow,
                Subject::Connections | Subject::Links | Subject::Gateways | Subject::Fairness => {
                    Detection::Checksum(self.configs[1 - from].profile)
                }
            };
            let name = ["sim/storm/client", "sim/storm/server"][from];
            Channel::new(self.conditions[from], guard, RngStream::new(self.seed, 0, name))
        })
    }

    /// Time within which all sessions must finish after the faults.
    pub(crate) fn recovery_limit(&self) -> Span {
        Span::from_secs(1_800)
    }

    /// Number of packets after which sequence numbers wrap, if they do.
    pub(crate) fn wraps_after(&self) -> Option<u64> {
        let first = self.configs[0].first_number.value();
        (first > 0).then_some(u64::from(Seq24::MODULUS - first))
    }

    /// Counts the faults that are settings of an endpoint and not events.
    pub(crate) fn count_settings(&self, fault_counts: &mut FaultCounts) {
        use Fault as F;
        for fault in [F::Drift, F::TinyWindow, F::HugeWindow, F::TinySegment, F::Impatience] {
            if self.enabled.has(fault) {
                fault_counts.count(fault);
            }
        }
    }

    /// Describes the storm.
    pub(crate) fn describe(&self) -> String {
        let faults: Vec<String> = self.enabled.iter().map(|fault| fault.to_string()).collect();
        format!("{}; {}", self.preset.name(), faults.join(", "))
    }
}

/// Draws the times of all events.
pub(crate) fn draw_actions(
    rng: &mut RngStream,
    subject: Subject,
    enabled: FaultSet,
    faults_end: Instant,
    rate: BitRate,
) -> Vec<(Instant, Action)> {
    let mut planned = Actions { subject, enabled, rate, actions: Vec::new() };
    for fault in enabled.iter() {
        let times = 1 + rng.below(4);
        for _ in 0..times {
            let at = Instant::from_nanos(rng.below(faults_end.as_nanos()));
            planned.draw_action(rng, fault, at);
        }
    }
    planned.actions
}

/// The events drawn so far.
struct Actions {
    subject: Subject,
    enabled: FaultSet,
    rate: BitRate,
    actions: Vec<(Instant, Action)>,
}

impl Actions {
    fn draw_action(&mut self, rng: &mut RngStream, fault: Fault, at: Instant) {
        let (end, may_abort) = (rng.below(2) as usize, may_abort(self.enabled));
        let squared = |rng: &mut RngStream, most: u64| {
            Span::from_secs_f64(0.02 + most as f64 * rng.uniform() * rng.uniform())
        };
        let action = match fault {
            Fault::Blackout => Action::Blackout { channels: [true; 2], length: squared(rng, 8) },
            Fault::OneWayBlackout => {
                Action::Blackout { channels: [end == 0, end == 1], length: squared(rng, 8) }
            }
            Fault::DelayStep => Action::Delay { channel: end, delay: squared(rng, 1) },
            Fault::RateChange => {
                Action::Rate { channel: end, rate: self.rate.mul_ratio(20 + rng.below(200), 100) }
            }
            Fault::ClockForward => {
                let most = if may_abort && rng.chance(0.2) { 200 } else { 5 };
                Action::ClockStep { end, by: ClockStep::Forward(squared(rng, most)) }
            }
            Fault::ClockBack => Action::ClockStep { end, by: ClockStep::Back(squared(rng, 5)) },
            Fault::Stall => Action::Stall { end, length: squared(rng, 3) },
            Fault::ClientRestart => {
                Action::Command { end: 0, command: Command::Restart { amnesia: false } }
            }
            Fault::ServerRestart => {
                let amnesia = self.enabled.has(Fault::Amnesia) && rng.chance(0.7);
                if amnesia && self.subject == Subject::Sessions {
                    // The association is lost as well, and with it the client's session.
                    let command = Command::Restart { amnesia: false };
                    self.actions.push((at, Action::Command { end: 0, command }));
                }
                Action::Command { end: 1, command: Command::Restart { amnesia } }
            }
            Fault::Abort => Action::Command { end, command: Command::Abort },
            Fault::MtuChange => {
                Action::Command { end, command: Command::Segment(64 + rng.below(1_400) as usize) }
            }
            Fault::SlowReader => {
                let again = Action::Command { end, command: Command::Reading(true) };
                self.actions.push((at + squared(rng, 5), again));
                Action::Command { end, command: Command::Reading(false) }
            }
            // These are conditions of the channel or settings of the endpoints.
            Fault::Loss | Fault::Burst | Fault::Duplicate | Fault::Reorder | Fault::Jitter => {
                return;
            }
            Fault::Corrupt | Fault::Truncate | Fault::Replay | Fault::Overflow => return,
            Fault::Drift | Fault::LateTimer | Fault::Amnesia | Fault::OldIncarnation => return,
            Fault::TinyWindow | Fault::HugeWindow | Fault::TinySegment => return,
            Fault::Wrap | Fault::HalfClose | Fault::Impatience => return,
        };
        self.actions.push((at, action));
    }
}

/// Whether sessions may be aborted with these faults.
pub(crate) fn may_abort(enabled: FaultSet) -> bool {
    use Fault as F;
    [F::ClientRestart, F::ServerRestart, F::Abort, F::Impatience].iter().any(|&f| enabled.has(f))
}

/// Enables each kind at random; the expected number of enabled kinds varies between seeds.
pub(crate) fn draw_faults(rng: &mut RngStream) -> FaultSet {
    let share = [0.1, 0.25, 0.5, 0.75][rng.below(4) as usize];
    let mut enabled = FaultSet::default();
    for fault in Fault::ALL {
        if rng.chance(share) {
            enabled.add(fault);
        }
    }
    // Half of all storms have no fault that may abort a session.
    if rng.chance(0.5) {
        use Fault as F;
        for fault in [F::ClientRestart, F::ServerRestart, F::Amnesia, F::Abort, F::Impatience] {
            enabled.remove(fault);
        }
    }
    if enabled.has(Fault::Amnesia) {
        enabled.add(Fault::ServerRestart);
    }
    if enabled.has(Fault::TinyWindow) {
        enabled.remove(Fault::HugeWindow);
    }
    enabled
}

/// A clock with a random offset, often shortly before a wrap of its timestamps.
pub(crate) fn draw_clock(rng: &mut RngStream, enabled: FaultSet) -> Clock {
    let before = Span::from_millis(rng.below(12_000));
    let wrap = match rng.below(6) {
        0 => Span::from_micros(1 << 32),
        1 => Span::from_micros(1 << 31),
        2 => Span::from_millis(1 << 32),
        3 => Span::from_millis(1 << 31),
        _ => Span::from_secs(100 + rng.below(100_000)),
    };
    let drift = match (enabled.has(Fault::Drift), rng.below(2)) {
        (false, _) => 0,
        (true, 0) => rng.below(400) as i64 - 200,
        (true, _) => rng.below(60_000) as i64 - 30_000,
    };
    Clock::new(Instant::ZERO + wrap - before, drift)
}

pub(crate) fn draw_conditions(
    rng: &mut RngStream,
    enabled: FaultSet,
    rate: BitRate,
) -> [Conditions; 2] {
    let delay = [1, 5, 20, 60, 150, 280, 300, 600][rng.below(8) as usize];
    [(); 2].map(|()| {
        let share = |rng: &mut RngStream, fault, most: f64| {
            let share = most * rng.uniform() * rng.uniform();
            if enabled.has(fault) { share } else { 0.0 }
        };
        let full = enabled.has(Fault::Overflow);
        let limited = full || enabled.has(Fault::RateChange) || rng.chance(0.5);
        let percent = if full { 30 + rng.below(100) } else { 105 + rng.below(100) };
        Conditions {
            rate: limited.then(|| rate.mul_ratio(percent, 100)),
            queue: Span::from_millis(if full { 5 + rng.below(150) } else { 2_000 }),
            delay: Span::from_millis(delay + rng.below(10)),
            jitter: if enabled.has(Fault::Jitter) {
                Span::from_micros(1 + rng.below(80_000))
            } else {
                Span::ZERO
            },
            loss: share(rng, Fault::Loss, 0.5),
            burst: share(rng, Fault::Burst, 0.02),
            burst_length: 2.0 + 30.0 * rng.uniform(),
            duplicate: share(rng, Fault::Duplicate, 0.3),
            reorder: share(rng, Fault::Reorder, 0.3),
            max_reorder_delay: Span::from_micros(1 + rng.below(1_000_000)),
            corrupt: share(rng, Fault::Corrupt, 0.2),
            truncate: share(rng, Fault::Truncate, 0.2),
            replay: share(rng, Fault::Replay, 0.2),
            old: share(rng, Fault::OldIncarnation, 0.2),
        }
    })
}

fn draw_configs(
    rng: &mut RngStream,
    enabled: FaultSet,
    preset: Preset,
    rate: BitRate,
) -> [SessionConfig; 2] {
    let address = |end: u8| core::net::SocketAddr::from(([10, 0, 0, end], 1_000 + u16::from(end)));
    let preset = preset.config(rate, rng);
    let first = if enabled.has(Fault::Wrap) {
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
        let (recovery_limit, tries) = match (enabled.has(Fault::Impatience), may_abort(enabled)) {
            (true, _) => impatient,
            (false, true) => (Span::from_secs(30), 12),
            (false, false) => (Span::from_secs(180), 1_000),
        };
        config.no_response = Some(recovery_limit);
        config.handshake_tries = tries;
        config
    });
    for config in &mut configs {
        let least = config.max_segment - config.payload_size() + 64;
        let most = config.max_segment;
        config.max_segment = if enabled.has(Fault::TinySegment) {
            least + rng.below(100) as usize
        } else {
            most.min(400 + rng.below(1_100) as usize)
        };
        if enabled.has(Fault::TinyWindow) {
            match rng.below(3) {
                0 => config.number_window = 1 + rng.below(8) as u32,
                1 => config.receive_window = 1 + rng.below(8) as u32,
                _ => config.initial_peer_window = 1 + rng.below(3) as u32,
            }
        }
        if enabled.has(Fault::HugeWindow) {
            config.number_window = Seq24::HALF;
            config.receive_window = Seq24::HALF;
        }
    }
    configs
}

/// Maximum octets of one direction in a session: a transfer of seconds, not hours.
fn draw_task(rng: &mut RngStream, configs: &[SessionConfig; 2], rate: BitRate) -> u64 {
    let packets = 300 + rng.below(2_200);
    let window = configs.iter().map(|config| config.number_window.min(config.receive_window));
    let packets = packets.min(u64::from(window.min().unwrap_or(1)) * 60);
    let payload = configs.iter().map(SessionConfig::payload_size).min().unwrap_or(64) as u64;
    (packets * payload).min(rate.bytes_in(Span::from_secs(20))).max(1)
}
