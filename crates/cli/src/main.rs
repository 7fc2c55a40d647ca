//! The `bentpipe` command.

use clap::{CommandFactory, Parser, Subcommand};
use cli::{
    capture, connect, doctor, emulate, enroll, gateway, key, lab, manual, measure, site, status,
};
use cli::{top, transfer, upgrade, values};
use std::process::ExitCode;

/// TCP over satellite links: gateways and the tools to operate them.
#[derive(Parser)]
#[command(
    name = "bentpipe",
    version,
    about,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
                  bentpipe enroll hub.example TOKEN     make this machine a site of a hub\n  \
                  bentpipe doctor                       find out what does not work\n  \
                  bentpipe demo                         see what the gateways gain\n\n\
                  Exit codes: 0 success; 1 failure, with the cause on standard error; 2 wrong \
                  arguments"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Gateway(gateway::Arguments),
    Enroll(enroll::Arguments),
    Doctor(doctor::Arguments),
    Measure(measure::Arguments),
    Site(site::Arguments),
    Key(key::Arguments),
    Status(status::Arguments),
    Top(top::Arguments),
    Upgrade(upgrade::Arguments),
    Capture(capture::Arguments),
    Send(transfer::Send),
    Receive(transfer::Receive),
    Connect(connect::Arguments),
    Emulate(emulate::Arguments),
    /// Compare gateways and plain TCP over an emulated link (runs bentpipe-lab)
    Demo(lab::Arguments),
    /// Measure gateways, emulator and simulator (runs bentpipe-lab)
    Bench(lab::Arguments),
    /// Rerun published experiments, and test gateways (runs bentpipe-lab)
    Lab(lab::Arguments),
    /// Print the version
    #[command(after_help = "Example: bentpipe version")]
    Version,
    #[command(hide = true)]
    Manual(manual::Manual),
    Completions(manual::Completions),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Gateway(arguments) => gateway::run(&arguments),
        Command::Enroll(arguments) => enroll::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Measure(arguments) => measure::run(&arguments),
        Command::Site(arguments) => site::run(&arguments),
        Command::Key(arguments) => key::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Top(arguments) => top::run(arguments),
        Command::Upgrade(arguments) => upgrade::run(&arguments),
        Command::Capture(arguments) => capture::run(arguments),
        Command::Send(arguments) => transfer::send(&arguments),
        Command::Receive(arguments) => transfer::receive(&arguments),
        Command::Connect(arguments) => connect::run(&arguments),
        Command::Emulate(arguments) => emulate::run(arguments),
        Command::Demo(arguments) => lab::run(&["demo"], &arguments),
        Command::Bench(arguments) => lab::run(&["bench"], &arguments),
        Command::Lab(arguments) => lab::run(&[], &arguments),
        Command::Version => values::print(concat!("bentpipe ", env!("CARGO_PKG_VERSION"), "\n")),
        Command::Manual(arguments) => manual::manual(Arguments::command(), &arguments),
        Command::Completions(arguments) => manual::completions(Arguments::command(), &arguments),
    };
    cli::exit_code("bentpipe", outcome)
}
