//! `[[plan]]` and `[[class]]` at a hub: rate plans of terminals, and traffic classes.

use super::items;
use super::reader::{Item, Reader, Section};
use super::{HubSection, LinkSection, TerminalEntry, read, values};
use crate::intercept::{PortRange, Prefix};
use relay::plan::{COMMITTED_MOST, Plan, Rates};
use relay::{Level, Plans};
use std::collections::BTreeMap;
use units::BitRate;

/// Maximum number of plans of a hub.
const MAX_PLANS: usize = 64;
/// Maximum number of classes of a hub.
const MAX_CLASSES: usize = 16;
/// Name of the plan of terminals without another plan.
const USUAL: &str = "default";

/// One `[[plan]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanSection {
    /// The plan.
    pub plan: Plan,
    /// Names of terminals with this plan, in addition to those whose `[[terminal]]` names it.
    pub terminals: Vec<String>,
}

/// One `[[class]]`: a traffic class in the direction from the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSection {
    /// The name of the class.
    pub name: String,
    /// Server ports of connections; source or destination ports of packets; empty: all.
    pub ports: Vec<PortRange>,
    /// Networks of the server or the client; empty: all.
    pub networks: Vec<Prefix>,
    /// DSCP values of packets that are forwarded unsplit; empty: all.
    pub dscp: Vec<u8>,
    /// Priority of the class.
    pub level: Level,
    /// Relative share among classes of the same level.
    pub weight: u32,
}

/// The sum of committed rates in one direction, compared with the rate of the link or the aggregate
/// rate of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commitment {
    /// The direction, `up` or `down`.
    pub direction: &'static str,
    /// The plan whose aggregate rate applies; `None`: the link.
    pub plan: Option<String>,
    /// The sum of the committed rates of all named terminals, bits per second.
    pub committed_bps: u64,
    /// The link's rate, or the plan's aggregate rate.
    pub rate: BitRate,
}

impl Commitment {
    /// Returns whether the committed rates exceed [`Commitment::limit`].
    pub fn is_exceeded(&self) -> bool {
        self.committed_bps > self.limit().as_bps()
    }

    /// Returns the maximum sum of committed rates: all of a plan's aggregate rate, or a part of the
    /// link's.
    pub fn limit(&self) -> BitRate {
        match self.plan {
            Some(_) => self.rate,
            None => self.rate.mul_ratio(COMMITTED_MOST, 100),
        }
    }

    /// Describes the commitment in a sentence.
    pub fn describe(&self) -> String {
        let sum = BitRate::new(self.committed_bps).map_or("nothing".into(), |sum| sum.to_string());
        let (direction, limit) = (self.direction, self.limit());
        let of = match &self.plan {
            Some(plan) => {
                format!("to the terminals of plan {plan:?}, and its total_{direction} is {limit}")
            }
            None => {
                format!(
                    "to terminals in all, and {COMMITTED_MOST} % of link.rate_{direction} are {limit}"
                )
            }
        };
        format!("{sum} are committed {of}: when all are busy, each receives a proportional share")
    }
}

/// Returns the plans for the relay, the default plan first.
pub(crate) fn for_relay(plans: &[PlanSection], terminals: &[TerminalEntry]) -> Plans {
    let mut all = Plans::default();
    let mut numbers = BTreeMap::new();
    for PlanSection { plan, .. } in plans {
        if plan.name == USUAL {
            all.plans[0] = plan.clone();
            numbers.insert(plan.name.as_str(), 0);
        } else {
            numbers.insert(plan.name.as_str(), all.plans.len());
            all.plans.push(plan.clone());
        }
    }
    for PlanSection { plan, terminals } in plans {
        let number = numbers.get(plan.name.as_str()).copied().unwrap_or(0);
        all.terminals.extend(terminals.iter().map(|name| (name.clone(), number)));
    }
    for entry in terminals {
        // A further path of a terminal has the terminal's plan.
        let own = |entry: &TerminalEntry| {
            let number = entry.plan.as_ref().and_then(|plan| numbers.get(plan.as_str()).copied());
            number.or_else(|| all.terminals.get(&entry.name).copied())
        };
        let first = super::terminal_of(&entry.name);
        let is_further = first != entry.name;
        let of_first = || terminals.iter().find(|other| other.name == first).and_then(own);
        if let Some(number) = own(entry).or_else(|| is_further.then(of_first).flatten()) {
            all.terminals.insert(entry.name.clone(), number);
        }
    }
    all
}

/// Returns the commitments to the named terminals: on the link, in each direction whose rate is
/// configured, and in plans with an aggregate rate.
pub(crate) fn commitments(link: &LinkSection, section: &HubSection) -> Vec<Commitment> {
    let HubSection { plans, terminals, .. } = section;
    let all = for_relay(plans, terminals);
    let named = terminals.iter().map(|entry| entry.name.as_str());
    let listed = plans.iter().flat_map(|plan| plan.terminals.iter().map(String::as_str));
    let names: std::collections::BTreeSet<&str> = named.chain(listed).collect();
    let mut counts = vec![0u64; all.plans.len()];
    names.iter().for_each(|name| counts[all.of(name)] += 1);
    let mut found = Vec::new();
    for (direction, rate, of) in [
        ("up", link.rate_up, (|plan| plan.up) as fn(&Plan) -> Rates),
        ("down", link.rate_down, |plan| plan.down),
    ] {
        let mut whole = 0u64;
        for (plan, &count) in all.plans.iter().zip(&counts) {
            let rates = of(plan);
            let sum = rates.committed.map_or(0, BitRate::as_bps).saturating_mul(count);
            whole = whole.saturating_add(sum.min(rates.total.map_or(u64::MAX, BitRate::as_bps)));
            if let Some(rate) = rates.total {
                let plan = Some(plan.name.clone());
                found.push(Commitment { direction, plan, committed_bps: sum, rate });
            }
        }
        found.extend(rate.map(|rate| Commitment {
            direction,
            plan: None,
            committed_bps: whole,
            rate,
        }));
    }
    found
}

/// Returns plan and terminal for each terminal in a plan that the hub does not know, if its
/// terminals are configured.
pub(crate) fn unknown_members(section: &HubSection) -> Vec<(&str, &str)> {
    let known = |name: &str| section.terminals.iter().any(|entry| entry.name == name);
    let named = section.plans.iter().flat_map(|plan| {
        plan.terminals.iter().map(|name| (plan.plan.name.as_str(), name.as_str()))
    });
    named.filter(|(_, name)| !known(name)).collect()
}

/// Reads all `[[plan]]` of a link with these rates.
pub(super) fn read_plans(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
    link: Option<&LinkSection>,
) -> Option<Vec<PlanSection>> {
    let sections = top.sections(reader, "plan")?;
    too_many(reader, "plan", sections.len(), MAX_PLANS)?;
    let mut all: Option<Vec<PlanSection>> = Some(Vec::new());
    for mut section in sections {
        let line = section.line();
        let plan = read_plan(reader, &mut section, link);
        section.finish(reader);
        match (&mut all, plan) {
            (Some(list), Some(plan)) => {
                if list.iter().any(|other| other.plan.name == plan.plan.name) {
                    let found = format!("{:?} again", plan.plan.name);
                    reader.mistake(line, "plan.name", &found, "each plan once");
                }
                for name in &plan.terminals {
                    if let Some(other) = list.iter().find(|other| other.terminals.contains(name)) {
                        let found = format!("{name:?}, which has plan {:?}", other.plan.name);
                        reader.mistake(line, "plan.terminals", &found, "each terminal once");
                    }
                }
                list.push(plan);
            }
            (Some(_), None) | (None, _) => all = None,
        }
    }
    all
}

fn too_many(reader: &mut Reader<'_>, key: &str, found: usize, most: usize) -> Option<()> {
    if found <= most {
        return Some(());
    }
    reader.mistake(1, key, &format!("{found} of them"), &format!("at most {most}"));
    None
}

fn read_plan(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    link: Option<&LinkSection>,
) -> Option<PlanSection> {
    let name = section.required(reader, "name", "the name of the plan", items::name);
    let line = section.line();
    let (up, down) = (link.and_then(|l| l.rate_up), link.and_then(|l| l.rate_down));
    let up =
        read_rates(reader, section, ["committed_up", "peak_up", "total_up"]).inspect(|rates| {
            contradictions(reader, line, rates, ("up", up));
        });
    let down = read_rates(reader, section, ["committed_down", "peak_down", "total_down"])
        .inspect(|rates| contradictions(reader, line, rates, ("down", down)));
    let weight = section.or(reader, "weight", 1, |r, i| i.integer(r, 1..=1_000));
    let together = section.or(reader, "shared_weight", false, |r, i| read::read_bool(r, &i));
    let terminals = section.or(reader, "terminals", Vec::new(), |r, i| i.list(r, items::name));
    let rates = |read: Read| Rates { committed: read[0].0, peak: read[1].0, total: read[2].0 };
    let plan = Plan {
        name: name?,
        up: rates(up?),
        down: rates(down?),
        weight: weight?,
        shared_weight: together?,
    };
    Some(PlanSection { plan, terminals: terminals? })
}

/// Committed, peak and aggregate rate, each with its line.
type Read = [(Option<BitRate>, usize); 3];

fn read_rates(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    keys: [&'static str; 3],
) -> Option<Read> {
    const RATE: &str = "a rate from \"1bit\" to \"10000gbit\", such as \"512kbit\"";
    let mut one = |key| {
        section.or(reader, key, (None, 0), |reader, item: Item<'_>| {
            let line = item.line();
            item.parsed(reader, RATE, values::rate).map(|rate| (Some(rate), line))
        })
    };
    let read = keys.map(&mut one);
    let [committed, peak, total] = read;
    Some([committed?, peak?, total?])
}

/// Checks that committed ≤ peak ≤ aggregate ≤ the link's rate.
fn contradictions(
    reader: &mut Reader<'_>,
    line: usize,
    rates: &Read,
    (direction, link): (&str, Option<BitRate>),
) {
    let names = ["committed", "peak", "total"].map(|name| format!("plan.{name}_{direction}"));
    let link = (link, format!("link.rate_{direction}"));
    for at in 0..3 {
        let (Some(rate), own) = rates[at] else { continue };
        let later = (at + 1..3).map(|next| (rates[next].0, names[next].clone()));
        let beyond = later.chain([link.clone()]).find(|(most, _)| most.is_some_and(|m| rate > m));
        if let Some((Some(most), key)) = beyond {
            let line = if own > 0 { own } else { line };
            reader.mistake(line, &names[at], &rate.to_string(), &format!("at most {key}, {most}"));
        }
    }
}

/// Reads the `plan` of a `[[terminal]]`, the name of one of `plans`.
pub(super) fn read_choice(
    reader: &mut Reader<'_>,
    section: &mut Section<'_>,
    plans: &[PlanSection],
) -> Option<Option<String>> {
    section.or(reader, "plan", None, |reader, item| {
        let known = |name: &str| plans.iter().any(|plan| plan.plan.name == name);
        match item.as_str() {
            Some(name) if known(name) || name == USUAL => Some(Some(name.to_owned())),
            Some(_) | None => {
                let names = plans.iter().map(|plan| format!("{:?}", plan.plan.name));
                let names: Vec<String> = names.collect();
                let expected = if names.is_empty() {
                    "the name of a [[plan]], of which there is none".to_owned()
                } else {
                    format!("the name of a [[plan]]: {}", names.join(" or "))
                };
                reader.wrong(&item, &expected)
            }
        }
    })
}

/// Reads all `[[class]]`.
pub(super) fn read_classes(
    reader: &mut Reader<'_>,
    top: &mut Section<'_>,
) -> Option<Vec<ClassSection>> {
    let sections = top.sections(reader, "class")?;
    too_many(reader, "class", sections.len(), MAX_CLASSES)?;
    let mut all = Some(Vec::new());
    for mut section in sections {
        let class = read_class(reader, &mut section);
        section.finish(reader);
        match (&mut all, class) {
            (Some(list), Some(class)) => list.push(class),
            (Some(_), None) | (None, _) => all = None,
        }
    }
    all
}

fn read_class(reader: &mut Reader<'_>, section: &mut Section<'_>) -> Option<ClassSection> {
    let line = section.line();
    let name = section.required(reader, "name", "the name of the class", items::name);
    let ports = section.or(reader, "ports", Vec::new(), |r, i| i.list(r, items::ports));
    let networks = section.or(reader, "networks", Vec::new(), |r, i| i.list(r, items::network));
    let dscp = section.or(reader, "dscp", Vec::new(), |r, i| {
        i.list(r, |r, i| i.integer(r, 0..=63).map(|value| value as u8))
    });
    let expected = "\"urgent\", \"interactive\", \"normal\" or \"background\"";
    let level = section.required(reader, "priority", expected, |r, i| i.word(r, &LEVELS));
    let weight = section.or(reader, "weight", 1, |r, i| i.integer(r, 1..=100));
    let class = ClassSection {
        name: name?,
        ports: ports?,
        networks: networks?,
        dscp: dscp?,
        level: level?,
        weight: weight?,
    };
    if class.ports.is_empty() && class.networks.is_empty() && class.dscp.is_empty() {
        let expected = "at least one of ports, networks and dscp";
        reader.mistake(line, "class", "no criterion", expected);
    }
    Some(class)
}

/// Levels and their names in the configuration.
pub(super) const LEVELS: [(&str, Level); 4] = [
    ("urgent", Level::Urgent),
    ("interactive", Level::Interactive),
    ("normal", Level::Normal),
    ("background", Level::Background),
];
