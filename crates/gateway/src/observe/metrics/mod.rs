//! Metrics for Prometheus: the text format 0.0.4, and OpenMetrics 1.0 on request.

mod http;
mod table;
mod terminal_table;
mod worded_table;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use http::read_request;
pub(super) use http::{Http, MAX_CLIENTS};

use super::former_names::{LABELS, METRICS, former};
use super::histogram::BOUNDS_MICROS;
use super::{Histogram, Status};
use std::borrow::Cow;
use std::fmt::Write;
use table::{Kind, SHARDS, TIMES, WHOLE, Worded};
use terminal_table::EACH;
use worded_table::WORDED;

/// Format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Prometheus' text format.
    Text,
    /// OpenMetrics.
    Open,
}

impl Format {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::Open => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// All metrics of a gateway.
pub(super) fn render(status: &Status, format: Format) -> String {
    let mut page = Page { text: String::with_capacity(32 * 1024), format };
    page.info(status);
    for &(name, kind, help, value) in WHOLE {
        if let Some(value) = value(status) {
            page.metric(name, kind, help, |page, name| page.sample(name, &[], value));
        }
    }
    for Worded { name, kind, help, label, values } in WORDED {
        let values = values(status);
        page.metric(name, *kind, help, |page, name| {
            for (word, count) in &values {
                let labels = [Some(*label), former(LABELS, label)];
                let labels: Vec<_> = labels.into_iter().flatten().map(|it| (it, *word)).collect();
                page.sample(name, &labels, *count as f64);
            }
        });
    }
    for &(name, help, histogram) in TIMES {
        page.metric(name, Kind::Histogram, help, |page, name| page.times(name, histogram(status)));
    }
    page.releases(status);
    for &(name, kind, help, value) in EACH {
        page.metric(name, kind, help, |page, name| {
            for terminal in &status.terminals {
                if let Some(value) = value(terminal) {
                    page.of_terminal(name, &terminal.terminal, value);
                }
            }
        });
    }
    for &(name, kind, help, value) in SHARDS {
        let shards = &status.counted.shards;
        if !shards.is_empty() {
            page.metric(name, kind, help, |page, name| {
                for shard in shards {
                    page.sample(name, &[("shard", &shard.shard.to_string())], value(shard));
                }
            });
        }
    }
    if format == Format::Open {
        page.text.push_str("# EOF\n");
    }
    page.text
}

struct Page {
    text: String,
    format: Format,
}

impl Page {
    /// Writes a metric, and again under its deprecated name if it has one; `samples` writes the
    /// samples under a name.
    fn metric(&mut self, name: &str, kind: Kind, help: &str, samples: impl Fn(&mut Self, &str)) {
        let deprecated = former(METRICS, name);
        let former = deprecated.map(|it| (it, Cow::Owned(format!("Deprecated, use {name}."))));
        for (name, help) in [(name, Cow::Borrowed(help))].into_iter().chain(former) {
            self.head(name, kind, &help);
            samples(self, name);
        }
    }

    /// Writes the metadata of a metric, once before its samples.
    fn head(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        // OpenMetrics names a counter without the suffix of its samples.
        let family = match self.format {
            Format::Text => name,
            Format::Open => name.strip_suffix("_total").unwrap_or(name),
        };
        let _ = writeln!(self.text, "# HELP {family} {help}\n# TYPE {family} {kind}");
    }

    /// Writes a sample of a terminal's path, whose name begins with that of its terminal.
    fn of_terminal(&mut self, name: &str, terminal: &str, value: f64) {
        match terminal.split_once('/') {
            Some((terminal, path)) => {
                self.sample(name, &[("terminal", terminal), ("path", path)], value);
            }
            None => self.sample(name, &[("terminal", terminal)], value),
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.text.push_str(name);
        for (index, (label, word)) in labels.iter().enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{label}=\"");
            for c in word.chars() {
                match c {
                    '\\' => self.text.push_str("\\\\"),
                    '"' => self.text.push_str("\\\""),
                    '\n' => self.text.push_str("\\n"),
                    other => self.text.push(other),
                }
            }
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    fn info(&mut self, status: &Status) {
        let name = "bentpipe_build_info";
        self.head(name, Kind::Gauge, "The gateway's version, role, name and controller; 1.");
        let gateway = &status.gateway;
        let labels = [
            ("version", gateway.version),
            ("role", gateway.role),
            ("name", &gateway.name),
            ("controller", gateway.controller),
        ];
        self.sample(name, &labels, 1.0);
    }

    fn releases(&mut self, status: &Status) {
        let name = "bentpipe_terminal_info";
        self.head(name, Kind::Gauge, "The version that a terminal reports; 1.");
        for terminal in &status.terminals {
            let Some(report) = &terminal.report else { continue };
            let (terminal, path) = match terminal.terminal.split_once('/') {
                Some((terminal, path)) => (terminal, Some(("path", path))),
                None => (&*terminal.terminal, None),
            };
            let labels = [("terminal", terminal), ("version", &report.version)];
            let labels: Vec<(&str, &str)> = labels.into_iter().chain(path).collect();
            self.sample(name, &labels, 1.0);
        }
    }

    fn times(&mut self, name: &str, histogram: &Histogram) {
        let mut below = 0;
        let bucket = format!("{name}_bucket");
        for (bound, count) in BOUNDS_MICROS.iter().zip(&histogram.classes) {
            below += count;
            let bound = format!("{:?}", *bound as f64 / 1e6);
            self.sample(&bucket, &[("le", &bound)], below as f64);
        }
        let total = histogram.total() as f64;
        self.sample(&bucket, &[("le", "+Inf")], total);
        self.sample(&format!("{name}_sum"), &[], histogram.sum_seconds);
        self.sample(&format!("{name}_count"), &[], total);
    }
}

#[cfg(test)]
mod tests;
