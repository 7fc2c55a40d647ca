//! Metrics for Prometheus: the text format 0.0.4, and OpenMetrics 1.0 on request.

mod http;
mod table;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use http::read_request;
pub(super) use http::{Http, MAX_CLIENTS};

use super::Status;
use super::histogram::BOUNDS_MICROS;
use std::fmt::Write;
use table::{EACH, Kind, TIMES, WHOLE, WORDED, Worded};

/// How metrics are written.
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
    let mut page = Page { text: String::with_capacity(16 * 1024), format };
    page.info(status);
    for &(name, kind, help, value) in WHOLE {
        if let Some(value) = value(status) {
            page.head(name, kind, help);
            page.sample(name, &[], value);
        }
    }
    for Worded { name, kind, help, label, values } in WORDED {
        page.head(name, *kind, help);
        for (word, count) in values(status) {
            page.sample(name, &[(label, word)], count as f64);
        }
    }
    for &(name, help, histogram) in TIMES {
        page.times(name, help, histogram(status));
    }
    for &(name, kind, help, value) in EACH {
        page.head(name, kind, help);
        for terminal in &status.terminals {
            if let Some(value) = value(terminal) {
                // A path's name begins with its terminal's.
                match terminal.terminal.split_once('/') {
                    Some((name_of, path)) => {
                        page.sample(name, &[("terminal", name_of), ("path", path)], value);
                    }
                    None => page.sample(name, &[("terminal", &terminal.terminal)], value),
                }
            }
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
    /// What a metric is; comes once, before its samples.
    fn head(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        self.typed(name, kind, help);
    }

    fn typed(&mut self, name: &str, kind: &str, help: &str) {
        // OpenMetrics names a counter without what each of its samples ends with.
        let family = match self.format {
            Format::Text => name,
            Format::Open => name.strip_suffix("_total").unwrap_or(name),
        };
        let _ = writeln!(self.text, "# HELP {family} {help}\n# TYPE {family} {kind}");
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

    fn times(&mut self, name: &str, help: &str, histogram: &super::Histogram) {
        self.typed(name, "histogram", help);
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
