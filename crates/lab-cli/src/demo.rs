//! `bentpipe-lab demo`.

use crate::{Outcome, values};
use lab::demo::{self, DemoConfig};
use std::path::PathBuf;

/// Show four transports over an emulated satellite link, side by side
///
/// Client, terminal, satellite link, hub and server are network namespaces on this machine, with
/// the kernel's TCP. Plain cubic, plain bbr and the gateways each download the same file, send
/// requests and load a web page, in parallel and on separate links. Takes about two minutes.
#[derive(clap::Args)]
#[command(after_help = "Example: bentpipe demo --link geo --json demo.json")]
pub(crate) struct Arguments {
    /// The link: geo, geo-lossy, leo, another profile, or a file in netem's syntax
    #[arg(long, value_name = "NAME|FILE", default_value = "geo-lossy")]
    link: String,
    /// File size, such as 48MB; default: a download of 40 s at the bound
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    size: Option<u64>,
    /// Write all results as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the plot to PATH.svg and PATH.png
    #[arg(long, value_name = "PATH", default_value = "bentpipe-demo")]
    plot: PathBuf,
    /// Seed of the links' random processes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run only the part that needs no network namespaces
    #[arg(long)]
    loopback: bool,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let Arguments { link, size, json, plot, seed, loopback } = arguments;
    if let Some(path) = &json {
        values::reserve(path)?;
    }
    // Called first, because a process with threads cannot enter a user namespace.
    let permission = match loopback {
        true => demo::Rights::NotWanted,
        false => match testbed::permission::acquire() {
            Ok(_) => demo::Rights::Granted,
            Err(refusal) => demo::Rights::Refused(refusal),
        },
    };
    let config = DemoConfig { link, size, seed };
    let report = demo::run(&config, permission).map_err(|error| error.to_string())?;
    // With the JSON on standard output the table goes to standard error.
    let table = demo::table(&report);
    match json.as_deref() {
        Some(path) if path.as_os_str() == "-" => eprintln!("\n{table}"),
        _ => values::print(&format!("\n{table}\n"))?,
    }
    if let Some(path) = &json {
        values::write_json(path, &report)?;
    }
    let (svg, png) = demo::draw(&report, &plot).map_err(|error| error.to_string())?;
    eprintln!("Octets received over time: {} and {}", svg.display(), png.display());
    if report.whole() {
        Ok(())
    } else {
        Err("a transport failed or delivered incorrect data; see above".to_owned())
    }
}
