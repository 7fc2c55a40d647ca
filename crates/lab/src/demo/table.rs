//! The demo's table.

use super::report::{DemoRun, Report};

/// A row: its label, and its entry for a run.
type Row = (&'static str, fn(&DemoRun) -> String);

const ROWS: &[Row] = &[
    ("time", |run| match (run.seconds, run.complete) {
        (None, _) => "failed".to_owned(),
        (Some(seconds), true) => format!("{seconds:.1} s"),
        (Some(seconds), false) => format!("{seconds:.1} s *"),
    }),
    ("received", |run| format!("{:.1} MB", run.bytes as f64 / 1e6)),
    ("goodput", |run| format!("{:.2} Mbit/s", run.goodput_bits_per_second / 1e6)),
    ("share of the bound", |run| format!("{:.0} %", run.bound_share * 100.0)),
    ("time to first byte", |run| seconds(run.first_byte_seconds)),
    ("4 KB request", |run| seconds(run.request_4k_seconds)),
    ("page, 30 objects", |run| seconds(run.page_seconds)),
    ("return channel", |run| {
        run.return_bits_per_second.map_or_else(unknown, |bits| format!("{:.1} kbit/s", bits / 1e3))
    }),
    ("", |run| {
        run.return_bytes.map_or_else(unknown, |bytes| format!("{:.1} kB", bytes as f64 / 1e3))
    }),
    ("retransmissions", |run| run.retransmissions.map_or_else(unknown, |count| count.to_string())),
    ("checksums", |run| match (run.checksums_match, run.bytes) {
        (_, 0) => unknown(),
        (true, _) => "match".to_owned(),
        (false, _) => "DIFFER".to_owned(),
    }),
];

fn seconds(value: Option<f64>) -> String {
    value.map_or_else(unknown, |seconds| format!("{seconds:.2} s"))
}

fn unknown() -> String {
    "-".to_owned()
}

/// Formats the report as a table with notes.
pub fn table(report: &Report) -> String {
    let start = &report.start;
    let mut text = format!(
        "{}: a file of {:.1} MB; goodput bound {:.2} Mbit/s; round trip {:.0} ms\n\n",
        start.link,
        start.size_bytes as f64 / 1e6,
        start.bound_bits_per_second / 1e6,
        start.round_trip_seconds * 1e3,
    );
    text += &format!("{:<20}", "");
    for run in &report.runs {
        text += &format!("{:>16}", run.name.name());
    }
    text.push('\n');
    for (name, cell) in ROWS {
        let line: String = report.runs.iter().map(|run| format!("{:>16}", cell(run))).collect();
        text += &format!("{name:<20}{line}\n");
    }
    if report.runs.iter().any(|run| !run.complete && run.seconds.is_some()) {
        text += "\n* stopped by time; the checksums are those of the octets received until then\n";
    }
    for run in &report.runs {
        for note in &run.notes {
            text += &format!("\n{}: {note}", run.name);
        }
        if !run.emulator_kept_up {
            text += &format!("\n{}: the emulator did not keep up; this machine is busy", run.name);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::report::Start;
    use super::*;
    use crate::live::Way;

    #[test]
    fn a_table_has_a_column_per_transport_and_marks_incomplete_downloads() {
        let start = Start {
            version: "0",
            link: "geo".to_owned(),
            size_bytes: 48_000_000,
            bound_bits_per_second: 9.6e6,
            round_trip_seconds: 0.6,
            time_limit_seconds: 70.0,
            seed: 1,
        };
        let whole = DemoRun {
            seconds: Some(41.0),
            complete: true,
            bytes: 48_000_000,
            checksums_match: true,
            retransmissions: Some(12),
            ..DemoRun::new(Way::Bentpipe)
        };
        let cut = DemoRun { seconds: Some(71.3), bytes: 10, ..DemoRun::new(Way::Cubic) };
        let text = table(&Report { start: start.clone(), runs: vec![cut, whole.clone()] });
        let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(row("time").contains("71.3 s *") && row("time").contains("41.0 s"));
        assert!(row("checksums").contains("DIFFER") && row("checksums").contains("match"));
        assert!(row("retransmissions").ends_with("12"));
        assert!(text.contains("* stopped by time"));
        let text = table(&Report { start, runs: vec![whole] });
        assert!(!text.contains("stopped by time"));
    }
}
