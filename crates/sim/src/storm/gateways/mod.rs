//! Storms over two gateways: the parameters of a seed and the final checks.

mod endpoints;
mod ledger;
mod users;

pub(super) use ledger::{FinalCounters, Ledger};

use super::channel::{Channel, Conditions, Detection};
use super::checks;
use super::clock::Clock;
use super::fault::{Fault, FaultSet};
use super::plan::{draw_actions, draw_clock, draw_conditions, draw_faults, may_abort};
use super::report::{Report, Subject, Violation};
use super::runner::{Action, Runner, RunnerParts};
use association::{Keys, Known, PresharedKey, PrivateKey, Security};
use endpoints::{HubEnd, Setup, TerminalEnd};
use relay::{Control, PathMetrics, RelayConfig};
use units::{BitRate, Instant, RngStream, Span};
use users::Task;
use xstp::Seq24;

/// Lowest configured rate: below it the requests take longer than the recovery limit.
const MIN_RATE: BitRate = BitRate::from_kbps(4);
/// Time within which all streams must finish after the faults.
const RECOVERY_LIMIT: Span = Span::from_secs(1_800);

/// The parameters of a storm over gateways.
#[derive(Debug)]
pub(crate) struct StormPlan {
    seed: u64,
    enabled: FaultSet,
    clocks: [Clock; 2],
    conditions: [Conditions; 2],
    /// The link's rates before and after the faults: return, forward.
    rates: [BitRate; 2],
    timer_delay: Span,
    faults_end: Instant,
    actions: Vec<(Instant, Action)>,
    /// Of the terminal and of the hub.
    configs: [RelayConfig; 2],
    configured: &'static str,
    tasks: Vec<Task>,
}

impl StormPlan {
    /// Draws the storm of `seed`.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut rng = RngStream::new(seed, 0, "sim/storm/gateways");
        let rng = &mut rng;
        let enabled = draw_faults(rng);
        let forward = BitRate::from_kbps(200 << rng.below(7)).mul_ratio(100 + rng.below(100), 100);
        let low_rate = rng.chance(0.3);
        let back = if low_rate { BitRate::from_kbps(4 << rng.below(7)) } else { forward };
        let rates = [back, forward];
        let mut conditions = draw_conditions(rng, enabled, forward);
        if low_rate {
            conditions[0].rate = Some(back);
            conditions[0].queue = conditions[0].queue.max(min_queue(back));
        }
        let faults_end = Instant::ZERO + Span::from_millis(3_000 + rng.below(9_000));
        let (mut configs, configured) = draw_configs(rng, enabled, rates);
        if seed.count_ones().is_multiple_of(2) {
            secure(&mut configs, seed);
        }
        repair(&mut configs, seed);
        let clocks = [(); 2].map(|()| draw_clock(rng, enabled));
        let timer_delay = if enabled.has(Fault::LateTimer) {
            let most = 1 << rng.below(16);
            Span::from_micros(100 + rng.below(most))
        } else {
            Span::ZERO
        };
        let tasks = draw_tasks(rng, rates, faults_end.since(Instant::ZERO));
        let actions = draw_actions(rng, Subject::Gateways, enabled, faults_end, forward);
        Self {
            seed,
            enabled,
            clocks,
            conditions,
            rates,
            timer_delay,
            faults_end,
            actions,
            configs,
            configured,
            tasks,
        }
    }

    /// Describes the storm.
    pub(crate) fn describe(&self) -> String {
        let faults: Vec<String> = self.enabled.iter().map(|fault| fault.to_string()).collect();
        let [terminal, hub] = &self.configs;
        format!(
            "{} and {}, {}, {}, {}, forward {}, back {}, {} clients; {}",
            terminal.control,
            hub.control,
            if matches!(hub.security, Security::None) { "no secrets" } else { "noise" },
            if terminal.repair_percent.is_some() { "repair" } else { "no repair" },
            self.configured,
            self.rates[1],
            self.rates[0],
            self.tasks.len(),
            faults.join(", ")
        )
    }

    fn channels(&self) -> [Channel; 2] {
        [0, 1].map(|from: usize| {
            let name = ["sim/storm/terminal", "sim/storm/hub"][from];
            Channel::new(
                self.conditions[from],
                Detection::PassToEndpoint,
                RngStream::new(self.seed, 0, name),
            )
        })
    }

    fn runner(&self) -> Runner {
        let [here, there] = self.clocks.each_ref().map(|clock| clock.at(Instant::ZERO));
        let setup = |end: usize, tasks: &[Task]| Setup {
            config: self.configs[end].clone(),
            seed: self.seed,
            may_abort: may_abort(self.enabled),
            tasks: tasks.to_vec(),
        };
        let mut runner = Runner::new(RunnerParts {
            ends: [
                Box::new(TerminalEnd::new(setup(0, &self.tasks), here)),
                Box::new(HubEnd::new(setup(1, &[]), there)),
            ],
            clocks: self.clocks.clone(),
            channels: self.channels(),
            fault_free: self.rates.map(|rate| Conditions {
                rate: Some(rate),
                queue: min_queue(rate),
                ..Conditions::default()
            }),
            timer_delay: self.timer_delay,
            rng: RngStream::new(self.seed, 0, "sim/storm/lag"),
        });
        for &(at, action) in &self.actions {
            runner.schedule(at, action);
        }
        runner
    }
}

/// Runs two gateways through the storm of `seed`.
pub(crate) fn run(seed: u64) -> Result<Report, Violation> {
    let plan = StormPlan::draw(seed);
    let mut runner = plan.runner();
    for fault in [Fault::Drift, Fault::TinyWindow, Fault::HugeWindow, Fault::TinySegment] {
        if plan.enabled.has(fault) {
            runner.fault_counts().count(fault);
        }
    }
    if plan.enabled.has(Fault::Impatience) {
        runner.fault_counts().count(Fault::Impatience);
    }
    runner.run(plan.faults_end, false)?;
    runner.fault_free();
    if !runner.run(plan.faults_end + RECOVERY_LIMIT, true)? {
        let ends = [0, 1].map(|end| runner.ends()[end].describe());
        return Err(Violation::new(format!("{RECOVERY_LIMIT} after the storm: {ends:?}")));
    }
    let [terminal, hub] = runner.ends().each_ref().map(|end| end.final_counters());
    // An end that restarts after all work is done has no session until new data arrives.
    if let (Some(terminal), Some(hub)) = (&terminal, &hub) {
        terminal.agrees(hub)?;
    }
    let first = plan.configs[0].first_number.value();
    for final_counters in terminal.iter().chain(&hub) {
        if first > 0 && final_counters.packets() > u64::from(Seq24::MODULUS - first) {
            runner.fault_counts().count(Fault::Wrap);
        }
    }
    Ok(checks::summary(&mut runner, plan.faults_end, "gateways"))
}

/// Gives both ends keys.
fn secure(configs: &mut [RelayConfig; 2], seed: u64) {
    let mut rng = RngStream::new(seed, 0, "sim/storm/keys");
    let private = [(); 2].map(|()| PrivateKey::generate(&mut rng));
    let preshared = PresharedKey::generate(&mut rng);
    for own in 0..2 {
        let other = 1 - own;
        let known = Known {
            name: ["terminal", "hub"][other].to_owned(),
            public: private[other].public(),
            preshared: preshared.clone(),
        };
        let keys = Keys::new(private[own].clone(), vec![known]).expect("one key that is known");
        configs[own].security = Security::Noise(keys.into());
    }
}

/// Gives both ends shares for repair symbols, in half of the storms.
fn repair(configs: &mut [RelayConfig; 2], seed: u64) {
    let mut rng = RngStream::new(seed, 0, "sim/storm/repair");
    if rng.chance(0.5) {
        for config in configs {
            config.repair_percent = Some(1 + rng.below(50) as u32);
        }
    }
}

/// A queue that holds the packets of a handshake and an initial window.
fn min_queue(rate: BitRate) -> Span {
    Span::from_secs(1).max(rate.time_for(30 * 1_500))
}

fn draw_configs(
    rng: &mut RngStream,
    enabled: FaultSet,
    rates: [BitRate; 2],
) -> ([RelayConfig; 2], &'static str) {
    let (configured, percents) = match rng.below(10) {
        0..=3 => ("no rates configured", [None; 2]),
        4..=6 => ("rates configured", [Some(100); 2]),
        _ => ("wrong rates configured", [(); 2].map(|()| Some(100 * (1 << rng.below(8)) / 16))),
    };
    let [back, forward] = [0, 1].map(|channel: usize| {
        percents[channel].map(|percent: u64| rates[channel].mul_ratio(percent, 100).max(MIN_RATE))
    });
    let first = if enabled.has(Fault::Wrap) {
        let most = 1 << rng.below(10);
        Seq24::new(Seq24::MODULUS - 1 - rng.below(most) as u32)
    } else {
        Seq24::ZERO
    };
    let recovery_limit = if enabled.has(Fault::Impatience) {
        Span::from_millis(4_000 + rng.below(8_000))
    } else {
        Span::from_secs(180)
    };
    let configs = [("terminal", back, forward), ("hub", forward, back)];
    let configs = configs.map(|(name, send, receive)| {
        let mut config = RelayConfig::new(name).with_rates(send, receive);
        config.control = match rng.below(10) {
            0..=5 => Control::Steady,
            6 | 7 => Control::Fixed,
            8 => Control::NewReno,
            _ => Control::Probing,
        };
        config.first_number = first;
        config.no_response = recovery_limit;
        if rng.chance(0.3) {
            // From 1/64 of the rate to 64 times the rate.
            let rate = rates[usize::from(name == "hub")].mul_ratio(1 << rng.below(13), 64);
            let round_trip = Span::from_millis(2 + rng.below(1_500));
            config.path_metrics = Some(PathMetrics { rate, min_rtt: round_trip });
        }
        if enabled.has(Fault::TinySegment) {
            config.mtu = 576 + rng.below(100) as usize;
        }
        if enabled.has(Fault::TinyWindow) {
            config = config.with_memory(1 << 20);
            config.stream_minimum = 1024 << rng.below(4);
            config.max_streams = 1 + rng.below(8) as usize;
        }
        if enabled.has(Fault::HugeWindow) {
            config = config.with_memory(1 << 30);
        }
        config
    });
    (configs, configured)
}

/// Draws the clients' tasks: a few large transfers and many small ones, sized to take seconds in
/// all.
fn draw_tasks(rng: &mut RngStream, rates: [BitRate; 2], within: Span) -> Vec<Task> {
    const MAX_BYTES: u64 = 3_000_000;
    let budget = rates.map(|rate| rate.bytes_in(Span::from_secs(15)).min(MAX_BYTES));
    let clients = 2 + rng.below(24);
    let mut tasks = Vec::new();
    for client in 0..clients {
        let part = if client < 2 { 3 } else { clients };
        tasks.push(Task::draw(rng, budget.map(|bytes| bytes / part), client < 2, within));
    }
    tasks
}
