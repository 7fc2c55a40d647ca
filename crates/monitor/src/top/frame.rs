//! One frame of the live view: lines of styled text, for a screen or a file.

use super::sampler::{Flow, Sampler};
use crate::table::state;
use crate::words::{bytes, count, fit, fit_right, or_dash, rate, safe, share, spark, time};
use crate::{Connection, Terminal};

/// Style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Heading,
}

/// A line of styled pieces.
pub(crate) type Line = Vec<(String, Style)>;

/// The displayed data, and the available size.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Look {
    pub(crate) order: Order,
    pub(crate) paused: bool,
    /// Index of the first displayed connection.
    pub(crate) first: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Whether keys can be pressed.
    pub(crate) keys: bool,
}

/// Sort key of connections, in descending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Rate,
    Bytes,
    Age,
    Number,
}

impl Order {
    pub(crate) fn next(self) -> Self {
        match self {
            Self::Rate => Self::Bytes,
            Self::Bytes => Self::Age,
            Self::Age => Self::Number,
            Self::Number => Self::Rate,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Bytes => "bytes",
            Self::Age => "age",
            Self::Number => "number",
        }
    }

    fn sort(self, connections: &mut [&(Connection, Flow)]) {
        let total = |(_, flow): &(Connection, Flow)| flow.out + flow.back;
        let moved = |(one, _): &(Connection, Flow)| one.bytes_from_socket + one.bytes_to_socket;
        match self {
            Self::Rate => connections.sort_by(|a, b| total(b).total_cmp(&total(a))),
            Self::Bytes => connections.sort_by_key(|one| std::cmp::Reverse(moved(one))),
            Self::Age => connections.sort_by(|a, b| b.0.age_seconds.total_cmp(&a.0.age_seconds)),
            Self::Number => connections.sort_by_key(|(one, _)| one.number),
        }
    }
}

/// Returns the lines of the frame.
pub(crate) fn frame(sampler: &Sampler, look: &Look) -> Vec<Line> {
    let mut lines = head(sampler, look);
    lines.push(Vec::new());
    let (wide, names) = (look.width >= 150, name_width(sampler));
    let heading = |text: String| vec![(fit(&text, look.width), Style::Heading)];
    lines.push(heading(terminal_heading(names, wide)));
    // Terminals use at most half of the lines, and connections the rest.
    let room = look.height.saturating_sub(lines.len() + 3);
    let terminals = &sampler.status().terminals;
    let shown = terminals.len().min((room / 2).max(1));
    lines.extend(terminals.iter().take(shown).map(|one| terminal(sampler, one, names, wide)));
    if shown < terminals.len() {
        lines.push(vec![(format!("and {} more", terminals.len() - shown), Style::Dim)]);
    }
    lines.push(Vec::new());
    let all = sampler.connections();
    lines.push(heading(connection_heading(look)));
    let room = look.height.saturating_sub(lines.len());
    let mut ordered: Vec<&(Connection, Flow)> = all.iter().collect();
    look.order.sort(&mut ordered);
    let first = look.first.min(ordered.len().saturating_sub(room));
    lines.extend(ordered.iter().skip(first).take(room).map(|one| connection(one, look)));
    lines.truncate(look.height);
    lines
}

fn head(sampler: &Sampler, look: &Look) -> Vec<Line> {
    let status = sampler.status();
    let gateway = &status.gateway;
    let flow = sampler.link();
    let mut title = vec![
        (format!("{} {}", safe(&gateway.role), safe(&gateway.name)), Style::Bold),
        (format!("  up {}", time(gateway.uptime_seconds)), Style::Plain),
    ];
    if look.keys {
        let keys = format!("   q quit  p pause  o order: {}  ↑↓ scroll", look.order.name());
        title.push((keys, Style::Dim));
    }
    if look.paused {
        title.push(("   PAUSED".into(), Style::Bad));
    }
    let refused: u64 = status.connections.refused.values().sum();
    let dropped: u64 = status.association.dropped.values().sum();
    let alarm = |number: u64| if number > 0 { Style::Bad } else { Style::Plain };
    vec![
        title,
        vec![
            (
                format!("connections {} of {}", count(status.open), count(status.limit)),
                Style::Plain,
            ),
            (format!("  refused {}", count(refused)), alarm(refused)),
            (format!("   link: out {}, in {}", rate(flow.out), rate(flow.back)), Style::Plain),
            (format!("  dropped {}", count(dropped)), alarm(dropped)),
            (
                format!("   memory {}", or_dash(status.process.resident_bytes.map(bytes))),
                Style::Plain,
            ),
        ],
    ]
}

/// Returns the column width of terminals' names.
fn name_width(sampler: &Sampler) -> usize {
    let names = sampler.status().terminals.iter().map(|one| one.terminal.chars().count());
    names.max().unwrap_or(0).clamp(8, 20)
}

fn terminal_heading(names: usize, wide: bool) -> String {
    let mut text = format!(
        "{}  {}  {}  {}  {}  {}  {}  {}",
        fit("TERMINAL", names),
        fit("STATE", 13),
        fit_right("OUT", 11),
        fit_right("IN", 11),
        fit_right("RATE LIMIT", 11),
        fit_right("ROUND TRIP", 10),
        fit_right("QUEUE", 7),
        fit_right("RETX", 6),
    );
    if wide {
        text.push_str(&format!("  {}  {}  ", fit_right("STREAMS", 7), fit_right("BUFFERED", 8)));
        text.push_str("LAST MINUTE");
    }
    text
}

/// Returns the rate limit: of the session, or the allocation of a shared link.
fn may_send(one: &Terminal) -> Option<u64> {
    let (own, share) = (one.rate_bits_per_second, one.share_bits_per_second);
    share.map_or(own, |share| Some(own.map_or(share, |own| own.min(share))))
}

fn terminal(sampler: &Sampler, one: &Terminal, names: usize, wide: bool) -> Line {
    let rates = sampler.terminal(&one.terminal).cloned().unwrap_or_default();
    let state = state(one);
    let style = match state.as_str() {
        "connected" => Style::Good,
        _ => Style::Bad,
    };
    let mut line = vec![
        (format!("{}  ", fit(&safe(&one.terminal), names)), Style::Bold),
        (format!("{}  ", fit(&state, 13)), style),
        (
            format!(
                "{}  {}  {}  {}  {}  ",
                fit_right(&rate(rates.flow.out), 11),
                fit_right(&rate(rates.flow.back), 11),
                fit_right(&or_dash(may_send(one).map(|bits| rate(bits as f64))), 11),
                fit_right(&or_dash(one.round_trip_seconds.map(time)), 10),
                fit_right(&or_dash(one.queuing_delay_seconds.map(time)), 7),
            ),
            Style::Plain,
        ),
        (
            fit_right(&share(rates.retransmission_ratio), 6),
            if rates.retransmission_ratio > 0.05 { Style::Bad } else { Style::Plain },
        ),
    ];
    if wide {
        let buffered = bytes(one.send_buffered_bytes);
        let cells =
            format!("  {}  {}  ", fit_right(&count(one.streams), 7), fit_right(&buffered, 8));
        line.push((cells, Style::Plain));
        let most = rates.history.iter().copied().fold(0.0, f64::max);
        line.push((spark(rates.history.iter().copied(), most, 30), Style::Good));
    }
    line
}

fn connection_heading(look: &Look) -> String {
    format!(
        "{}  {}  {}  {}  {}  {}  {}  {}  {}",
        fit_right("NUMBER", 8),
        fit_right("OUT", 11),
        fit_right("IN", 11),
        fit_right("BYTES OUT", 9),
        fit_right("BYTES IN", 9),
        fit("AGE", 12),
        fit("STATE", 10),
        fit("CLASS", 11),
        fit("CLIENT → SERVER", look.width.saturating_sub(97)),
    )
}

fn connection((one, flow): &(Connection, Flow), look: &Look) -> Line {
    let who = |some: &Option<String>| or_dash(some.as_deref().map(safe));
    let from = match &one.terminal {
        Some(terminal) => format!("{} {}", safe(terminal), who(&one.client)),
        None => who(&one.client),
    };
    let text = format!(
        "{}  {}  {}  {}  {}  {}  {}  {}  {from} → {}",
        fit_right(&one.number.to_string(), 8),
        fit_right(&rate(flow.out), 11),
        fit_right(&rate(flow.back), 11),
        fit_right(&bytes(one.bytes_from_socket), 9),
        fit_right(&bytes(one.bytes_to_socket), 9),
        fit(&time(one.age_seconds), 12),
        fit(&safe(&one.state), 10),
        fit(&who(&one.class), 11),
        who(&one.server),
    );
    let moves = flow.out + flow.back > 0.0;
    vec![(fit(&text, look.width), if moves { Style::Plain } else { Style::Dim })]
}

#[cfg(test)]
mod tests {
    use super::super::sampler::tests::two_looks;
    use super::*;

    fn text(look: &Look) -> Vec<String> {
        let plain = |line: &Line| line.iter().map(|(text, _)| text.as_str()).collect::<String>();
        frame(&two_looks(), look).iter().map(plain).collect()
    }

    #[test]
    fn the_frame_contains_the_important_values_in_order() {
        let look = Look { width: 160, height: 40, keys: true, ..Look::default() };
        let lines = text(&look);
        let page = lines.join("\n");
        assert!(lines[0].starts_with("hub hub  up 2 h 13 min   q quit"), "{page}");
        assert!(lines[1].contains("refused 12   link: out 1.20 Mbit/s"), "{page}");
        assert!(lines[4].contains("1.00 Mbit/s") && lines[4].contains("10.0 %"), "{page}");
        assert!(lines[4].trim_end().ends_with('█'), "{page}");
        assert!(lines[5].contains("outage 7.2 s"), "{page}");
        assert!(lines[8].contains("10.1.0.2:5000 → example.org:443"), "by rate: {page}");
        let by_number = Look { order: Order::Number, ..look };
        assert!(text(&by_number)[8].trim_start().starts_with('2'));
    }

    #[test]
    fn the_frame_fits_every_size() {
        for (width, height) in [(80, 24), (160, 50), (20, 5), (1, 1), (0, 0), (200, 9)] {
            let look = Look { width, height, first: 99, ..Look::default() };
            assert!(text(&look).len() <= height, "{width}×{height}");
        }
    }
}
