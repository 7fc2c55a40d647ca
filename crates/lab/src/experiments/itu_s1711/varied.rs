//! Joint grids behind the entries of table 3 that differ: each over two things that the document
//! leaves open.

use super::enhancements::{
    Case, Impairment, Line, Middle, case, counting, early, plain, prompt, reno, short, unscaled,
    vegas,
};
use simtcp::{AfterIdle, InitialWindow, TcpConfig};

/// An entry of table 3 measured with both parameters at one value.
#[derive(Debug)]
pub(super) struct Varied {
    /// Name of the enhancement.
    pub(super) name: &'static str,
    pub(super) impairment: Impairment,
    /// The two values, on both sides; entries with the same first one share a row of the grid.
    pub(super) what: [String; 2],
    pub(super) with: Case,
    pub(super) without: Case,
}

impl Varied {
    pub(super) fn key(&self, with: bool) -> String {
        let side = if with { "with" } else { "without" };
        format!("{}/{side}/{}/{}", self.name, self.impairment.name(), self.what.join("/"))
    }
}

/// The pair of cases with and without an enhancement.
type Pair = [Case; 2];
/// A value of a parameter: its name and what it does to a case.
type Value = (String, Box<dyn Fn(Case) -> Case>);

fn file(bytes: u64) -> Value {
    (format!("{} kbytes", bytes / 1_000), Box::new(move |case| Case { file: bytes, ..case }))
}

fn seconds(seconds: u64) -> Value {
    (format!("{seconds} s"), Box::new(move |case| Case { seconds: Some(seconds), ..case }))
}

fn ratio(ratio: f64) -> Value {
    (format!("{ratio:e}"), Box::new(move |case| Case { ratio, ..case }))
}

fn products(products: f64) -> Value {
    let name = format!("windows of {products} products");
    (name, Box::new(move |case| Case { products, ..case }))
}

fn back(kbps: u64) -> Value {
    (format!("{kbps} kbit/s in return"), Box::new(move |case| Case { back: Some(kbps), ..case }))
}

fn tcp(name: &str, change: fn(&TcpConfig) -> TcpConfig) -> Value {
    (name.to_owned(), Box::new(move |case| Case { tcp: change(&case.tcp), ..case }))
}

fn segment(bytes: u16) -> Value {
    let change =
        move |case: Case| Case { tcp: TcpConfig { max_segment: bytes, ..case.tcp }, ..case };
    (format!("segments of {bytes} bytes"), Box::new(change))
}

/// Returns the values of how receivers acknowledge.
fn acknowledged() -> Vec<Value> {
    vec![
        tcp("every second segment acknowledged", TcpConfig::clone),
        tcp("each segment acknowledged", |tcp| TcpConfig {
            delayed_ack: prompt().delayed_ack,
            ..tcp.clone()
        }),
    ]
}

/// Returns the values of what the sender counts, of a TCP of 1999.
fn counted() -> Vec<Value> {
    vec![tcp("acknowledgements counted", TcpConfig::clone), tcp("bytes counted", counting)]
}

pub(super) fn all() -> Vec<Varied> {
    use Impairment::{Errors, Latency, Product};
    let larger = TcpConfig { initial_window: InitialWindow::Rfc3390, ..reno() };
    let in_slow_start = TcpConfig { byte_counting: false, ..counting(&reno()) };
    let paced = TcpConfig { after_idle: AfterIdle::Paced, pacing: true, ..reno() };
    let idle = TcpConfig { after_idle: AfterIdle::SlowStart, ..reno() };
    let kept = |tcp| Case { kept: true, ..case(tcp) };
    let over = |with| [case(with), plain()];
    let compressed = || [Case { middle: Middle::Compressors, ..plain() }, plain()];
    let marked = || [early(Line::Marks, true), early(Line::Red, false)];
    let windows = || vec![products(1.5), products(7.5)];
    let ratios = || vec![ratio(1e-5), ratio(1e-6), ratio(1e-7), ratio(1e-8)];
    let files = || vec![file(20_000), file(200_000), file(2_000_000)];
    let long = || vec![file(200_000), file(1_000_000), file(5_000_000)];
    let returns = || vec![back(2_000), back(32), back(8)];
    let spans = |of: &[u64]| of.iter().map(|&one| seconds(one)).collect::<Vec<_>>();
    let mut all = Vec::new();
    let mut grid = |name, impairment, pair: Pair, rows: Vec<Value>, columns: Vec<Value>| {
        for (row, first) in &rows {
            for (column, second) in &columns {
                let [with, without] = pair.clone().map(|case| second(first(case)));
                let what = [row, column].map(String::clone);
                all.push(Varied { name, impairment, what, with, without });
            }
        }
    };
    let early_seconds = spans(&[5, 10, 20, 40]);
    grid("larger initial window", Product, over(larger), acknowledged(), early_seconds);
    for (name, with) in [("byte counting", counting(&reno())), (SLOW_START, in_slow_start)] {
        grid(name, Product, over(with.clone()), acknowledged(), spans(&[10, 40, 120]));
        grid(name, Errors, over(with), acknowledged(), ratios());
    }
    let scaled = [plain(), case(unscaled())];
    grid("window scaling", Latency, scaled, windows(), long());
    grid("pacing", Product, [kept(paced), kept(idle)], windows(), spans(&[10, 40, 120]));
    grid("Vegas", Latency, over(vegas()), windows(), files());
    grid("Vegas", Product, over(vegas()), windows(), spans(&[40, 200, 600]));
    // Vegas does not count either.
    grid("Vegas", Errors, over(vegas()), counted(), ratios());
    let delayed = [plain(), case(prompt())];
    grid("delayed acknowledgements", Latency, delayed, files(), returns());
    grid("ECN", Latency, marked(), windows(), long());
    grid("ECN", Errors, marked(), windows(), ratios());
    let segments = vec![segment(1_460), segment(536), segment(160)];
    grid("header compression", Errors, compressed(), segments, ratios());
    grid("path MTU discovery", Errors, [plain(), case(short())], counted(), ratios());
    all
}

/// The name of byte counting that ends with slow start.
const SLOW_START: &str = "byte counting, in slow start alone";
