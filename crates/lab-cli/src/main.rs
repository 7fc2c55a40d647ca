//! Command line of `bentpipe-lab`: parses arguments and calls the crate `lab`.
//!
//! ```text
//!   bentpipe-lab demo     transports side by side on an emulated link
//!                bench    measurements against their bounds, as JSON
//!                lab      published experiments, fault injection, system tests
//! ```
//!
//! It measures the gateways that are linked into it, the same code as `bentpipe gateway`, and needs
//! no installation.

mod bench;
mod demo;
mod lab;
mod passes;

use clap::{CommandFactory, Parser, Subcommand};
use cli::manual;
pub(crate) use cli::{Outcome, values};
use std::process::ExitCode;

/// Demo, benchmarks, published experiments and system tests for gateways over satellite links.
#[derive(Parser)]
#[command(
    name = "bentpipe-lab",
    version,
    about,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
                  bentpipe demo                         compare four transports over one link\n  \
                  bentpipe lab run elaasar-2003         rerun a published experiment\n\n\
                  Exit codes: 0 success; 1 failure, with the cause on standard error; 2 wrong \
                  arguments"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Bench(bench::Arguments),
    #[command(flatten)]
    Lab(lab::Command),
    Passes(passes::Arguments),
    Tnc(bench::radio::Tncs),
    #[command(hide = true)]
    Gateway(cli::gateway::Arguments),
    #[command(hide = true)]
    Send(cli::transfer::Send),
    #[command(hide = true)]
    Receive(cli::transfer::Receive),
    #[command(hide = true)]
    Manual(manual::Manual),
    Completions(manual::Completions),
}

fn main() -> ExitCode {
    // No thread may start before `demo` and `bench` have entered network namespaces.
    let outcome = match Arguments::parse().command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Lab(command) => lab::run(command),
        Command::Passes(arguments) => passes::run(&arguments),
        Command::Tnc(arguments) => bench::radio::run_tncs(&arguments),
        Command::Gateway(arguments) => cli::gateway::run(&arguments),
        Command::Send(arguments) => cli::transfer::send(&arguments),
        Command::Receive(arguments) => cli::transfer::receive(&arguments),
        Command::Manual(arguments) => manual::manual(Arguments::command(), &arguments),
        Command::Completions(arguments) => manual::completions(Arguments::command(), &arguments),
    };
    cli::exit_code("bentpipe-lab", outcome)
}
