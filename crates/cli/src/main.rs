//! The `bentpipe` command: argument parsing and nothing else.
//!
//! Exit codes: 0 for success, 1 for what failed, 2 for arguments that make no sense.

mod bench;
mod capture;
mod demo;
mod emulate;
mod gateway;
mod key;
mod lab;
mod manual;
mod status;
mod top;
mod values;
mod version;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// TCP over satellite links: gateways, emulator, simulator, experiments, demo.
#[derive(Parser)]
#[command(name = "bentpipe", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Bench(bench::Arguments),
    Lab(lab::Arguments),
    Emulate(emulate::Arguments),
    Gateway(gateway::Arguments),
    Key(key::Arguments),
    Status(status::Arguments),
    Top(top::Arguments),
    Capture(capture::Arguments),
    Version(version::Arguments),
    #[command(hide = true)]
    Manual(manual::Manual),
    Completions(manual::Completions),
}

/// What a command ends with; the message goes to standard error.
type Outcome = Result<(), String>;

fn main() -> ExitCode {
    // No thread may be started before `demo` and `bench` have asked for network namespaces.
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Lab(arguments) => lab::run(arguments),
        Command::Emulate(arguments) => emulate::run(arguments),
        Command::Gateway(arguments) => gateway::run(&arguments),
        Command::Key(arguments) => key::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Top(arguments) => top::run(arguments),
        Command::Capture(arguments) => capture::run(arguments),
        Command::Manual(arguments) => manual::manual(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Version(arguments) => version::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            values::write_briefly(std::io::stderr(), format!("bentpipe: {message}\n"));
            ExitCode::FAILURE
        }
    }
}
