//! `bentpipe-lab bench radio`, and `bentpipe-lab tnc`.

use crate::{Outcome, values};
use lab::bench::radio::{self, Channel, RadioConfig, System};
use satlink::mac::csma::CsmaConfig;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use units::{BitRate, Span};

/// A file transfer over packet radio, beside its simulation and the published values
///
/// The file transfer of Elaasar et al. 2003, section 7, over the simulator's channel in real time
/// (model), and through two processes of Dire Wolf with an audio loop (direwolf). Prints JSON on
/// standard output, and a line for each transfer on standard error. Takes about 9 minutes, or one
/// with --quick.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe bench radio --quick")]
pub(crate) struct Radio {
    /// What carries the frames: model, direwolf; default: both if direwolf is installed
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    systems: Option<Vec<System>>,
    /// Only files of up to 1024 octets
    #[arg(long)]
    quick: bool,
    /// Seed of all random processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write the JSON to this file
    #[arg(long, value_name = "FILE", default_value = "-")]
    json: PathBuf,
}

pub(super) fn run(arguments: Radio) -> Outcome {
    let Radio { systems, quick, seed, json } = arguments;
    values::reserve(&json)?;
    let mut sizes = vec![1, 100, 1_024];
    if !quick {
        sizes.push(10_240);
    }
    let config = RadioConfig { systems, rates: vec![1_200, 9_600], sizes, seed };
    let report = radio::run(&config, &|one| eprintln!("{one}")).map_err(|e| e.to_string())?;
    values::write_json(&json, &report)
}

/// Two TNCs and the channel between them, for packet radio without radios
///
/// Serves KISS over TCP at two addresses, and carries the frames of each to the other over a
/// half-duplex channel with CSMA, in real time. Parameters that are set by KISS are ignored.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe-lab tnc --rate 9600 --ber 1e-5")]
pub(crate) struct Tncs {
    /// Where the stations connect
    #[arg(long, value_name = "ADDRESS:PORT", value_delimiter = ',', default_values = ["127.0.0.1:8001", "127.0.0.1:8002"], num_args = 1)]
    listen: Vec<SocketAddr>,
    /// Rate of the channel in bit/s
    #[arg(long, value_name = "N", default_value_t = 1200, value_parser = clap::value_parser!(u64).range(300..=1_000_000))]
    rate: u64,
    /// Bit error ratio
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    ber: f64,
    /// Time from key-up to the first frame in ms
    #[arg(long, value_name = "MS", default_value_t = 300)]
    txdelay: u64,
    /// P of p-persistence, p = (P + 1) / 256
    #[arg(long, value_name = "P", default_value_t = 128)]
    persist: u8,
    /// Slot time in ms
    #[arg(long, value_name = "MS", default_value_t = 30)]
    slottime: u64,
    /// Seed of all random processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// Runs until the process is ended.
pub(crate) fn run_tncs(arguments: &Tncs) -> Outcome {
    let &[a, b] = &arguments.listen[..] else {
        return Err("--listen: two addresses are expected".to_owned());
    };
    let config = CsmaConfig {
        key_up: Span::from_millis(arguments.txdelay),
        persistence: arguments.persist,
        slot: Span::from_millis(arguments.slottime),
        bit_error_ratio: arguments.ber,
        ..CsmaConfig::kenwood(BitRate::from_bps(arguments.rate))
    };
    let bind = |address| TcpListener::bind(address).map_err(|error| format!("{address}: {error}"));
    let channel = Channel::new(&config, [bind(a)?, bind(b)?], arguments.seed);
    let channel = channel.map_err(|error| error.to_string())?;
    eprintln!("KISS over TCP at {a} and {b}, {} bit/s", arguments.rate);
    let ended = channel.run(&AtomicBool::new(false)).map_err(|error| error.to_string());
    ended.map(|_| ())
}
