//! `bentpipe-lab demo`.

use crate::{Outcome, values};
use lab::demo::{self, DemoConfig};
use std::path::PathBuf;

/// Show four ways over an emulated satellite link, side by side
///
/// Client, terminal, satellite link, hub and server are network namespaces on this machine; the
/// TCP is the kernel's. Plain cubic, plain bbr and the gateways each download the same file, make
/// requests and load a web page, at the same time and on links of their own. Takes about two
/// minutes.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The link: geo, geo-lossy, leo, another profile, or a file in netem's words
    #[arg(long, value_name = "NAME|FILE", default_value = "geo-lossy")]
    link: String,
    /// The file's size, such as 48MB; what takes 40 s at best when not given
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    size: Option<u64>,
    /// Write everything that was found as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the plot goes: PATH.svg and PATH.png
    #[arg(long, value_name = "PATH", default_value = "bentpipe-demo")]
    plot: PathBuf,
    /// The seed of everything random on the links
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Show only what can be shown without network namespaces
    #[arg(long)]
    loopback: bool,
}

pub(crate) fn run(arguments: Arguments) -> Outcome {
    let Arguments { link, size, json, plot, seed, loopback } = arguments;
    if let Some(path) = &json {
        values::reserve(path)?;
    }
    // Before anything starts: a process with threads cannot enter a user namespace.
    let permission = match loopback {
        true => demo::Rights::NotWanted,
        false => match testbed::permission::acquire() {
            Ok(_) => demo::Rights::Granted,
            Err(refusal) => demo::Rights::Refused(refusal),
        },
    };
    let config = DemoConfig { link, size, seed };
    let report = demo::run(&config, permission).map_err(|error| error.to_string())?;
    // With the JSON on standard output the table is for people's eyes only.
    let table = demo::table(&report);
    match json.as_deref() {
        Some(path) if path.as_os_str() == "-" => eprintln!("\n{table}"),
        _ => values::print(&format!("\n{table}\n"))?,
    }
    if let Some(path) = &json {
        values::write_json(path, &report)?;
    }
    let (svg, png) = demo::draw(&report, &plot).map_err(|error| error.to_string())?;
    eprintln!("Goodput over time: {} and {}", svg.display(), png.display());
    if report.whole() {
        Ok(())
    } else {
        Err("a way failed, or delivered other bytes than were sent; see above".to_owned())
    }
}
