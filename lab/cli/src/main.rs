//! The laboratory's binary: `nvcaracal-lab bench | reproduce | sim | power-cuts`, and the commands
//! of `nvcaracal` about stores.
//!
//! Exit codes are those of `nvcaracal`; 1 is also a violation that `sim` or `power-cuts` found.
//! Results go to standard output, everything else to standard error. Nothing here knows how the
//! engine works.

#![forbid(unsafe_code)]

mod args;
mod crash_lab;
mod process;
mod recover;
mod reproduce;
mod runs;

use std::process::ExitCode;

use args::{Arguments, Command};
use clap::Parser;
use cli::args::StoreCommand;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    cli::run_to_exit(|| match arguments.command {
        Command::Bench(command) => runs::bench(&command),
        Command::Reproduce(command) => reproduce::run(&command),
        Command::Sim(command) => crash_lab::run(&command),
        Command::PowerCuts(command) => crash_lab::power_cuts::run(&command),
        Command::PowerCutProcess => crash_lab::power_cuts::serve(),
        Command::Store(StoreCommand::Recover(command)) => recover::run(command),
        Command::Store(command) => cli::stores::run(&command),
    })
}
