//! Tests of the reasons why entries of table 3 differ: each varies the suspected cause.

use super::enhancements::{
    Case, Impairment, Line, Middle, case, counting, early, plain, prompt, reno, short, unscaled,
    vegas,
};
use simtcp::{InitialWindow, TcpConfig};

/// An entry of table 3 measured with a variation.
#[derive(Debug)]
pub(super) struct Varied {
    /// Name of the enhancement.
    pub(super) name: &'static str,
    pub(super) impairment: Impairment,
    /// The variation, on both sides.
    pub(super) what: &'static str,
    pub(super) with: Case,
    pub(super) without: Case,
}

impl Varied {
    pub(super) fn key(&self, with: bool) -> String {
        let side = if with { "with" } else { "without" };
        format!("{}/{side}/{}/{}", self.name, self.impairment.name(), self.what)
    }
}

pub(super) fn all() -> Vec<Varied> {
    use Impairment::{Errors, Latency, Product};
    let varied = |name, impairment, what, [with, without]: [Case; 2]| Varied {
        name,
        impairment,
        what,
        with,
        without,
    };
    let larger = || case(TcpConfig { initial_window: InitialWindow::Rfc3390, ..reno() });
    let pair = |with, without| [case(with), case(without)];
    let late = || [larger(), plain()];
    let counted = || pair(counting(&prompt()), prompt());
    let scaled = || pair(reno(), unscaled());
    let vegas_over = |without: fn() -> TcpConfig| pair(vegas(), without());
    let marked = || [early(Line::Marks, true), early(Line::Red, false)];
    let long = || pair(reno(), short());
    let compressed = |segment| {
        let tcp = TcpConfig { max_segment: segment, ..reno() };
        [Case { middle: Middle::Compressors, ..case(tcp.clone()) }, case(tcp)]
    };
    vec![
        varied("larger initial window", Product, "10 s and not 40", seconds(late(), 10)),
        varied("larger initial window", Product, "5 s", seconds(late(), 5)),
        varied("byte counting", Product, "each segment acknowledged", counted()),
        varied("byte counting", Errors, "each segment acknowledged", counted()),
        varied("window scaling", Latency, "a file of 1 Mbyte", file(scaled(), 1_000_000)),
        varied("window scaling", Latency, "a file of 5 Mbytes", file(scaled(), 5_000_000)),
        varied("Vegas", Latency, "a file of 20 kbytes", file(vegas_over(reno), 20_000)),
        varied("Vegas", Latency, "a file of 2 Mbytes", file(vegas_over(reno), 2_000_000)),
        varied("Vegas", Product, "600 s and not 40", seconds(vegas_over(reno), 600)),
        varied("Vegas", Errors, "over a TCP that counts bytes", vegas_over(|| counting(&reno()))),
        varied("Vegas", Errors, "1e-7", ratio(vegas_over(reno), 1e-7)),
        varied("Vegas", Errors, "1e-5", ratio(vegas_over(reno), 1e-5)),
        varied(
            "delayed acknowledgements",
            Latency,
            "bytes counted",
            pair(counting(&reno()), counting(&prompt())),
        ),
        varied("ECN", Latency, "a file of 2 Mbytes", file(marked(), 2_000_000)),
        varied("ECN", Errors, "1e-7", ratio(marked(), 1e-7)),
        varied("ECN", Errors, "1e-8", ratio(marked(), 1e-8)),
        varied("header compression", Errors, "1e-7", ratio(compressed(1_460), 1e-7)),
        varied("header compression", Errors, "segments of 160 bytes", compressed(160)),
        varied("path MTU discovery", Errors, "1e-7", ratio(long(), 1e-7)),
        varied("path MTU discovery", Errors, "1e-5", ratio(long(), 1e-5)),
    ]
}

fn seconds(pair: [Case; 2], seconds: u64) -> [Case; 2] {
    pair.map(|case| Case { seconds: Some(seconds), ..case })
}

fn file(pair: [Case; 2], file: u64) -> [Case; 2] {
    pair.map(|case| Case { file, ..case })
}

fn ratio(pair: [Case; 2], ratio: f64) -> [Case; 2] {
    pair.map(|case| Case { ratio, ..case })
}
