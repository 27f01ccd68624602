//! The one binary: `nvcaracal bench | check | inspect | recover`.
//!
//! Exit codes: 0 all is well; 1 something is wrong with a store or a run (also a failed verification or
//! consistency check); 2 the command line cannot be carried out as it is. Results go to standard output,
//! everything else to standard error. Nothing here knows how the engine works.

#![forbid(unsafe_code)]

mod args;
mod bench_command;
mod check_command;
mod inspect_command;
mod output;
mod parameters;
mod recover_command;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use output::Failure;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Bench(command) => bench_command::run(command),
        Command::Check(command) => check_command::run(&command),
        Command::Inspect(command) => inspect_command::run(&command),
        Command::Recover(command) => recover_command::run(&command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            for message in &failure.messages {
                eprintln!("error: {message}");
            }
            failure.exit_code()
        }
    }
}

impl Failure {
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.usage { 2 } else { 1 })
    }
}
