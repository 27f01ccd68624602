//! The one binary: `nvcaracal bench | reproduce | check | inspect | dump | load | recover | sim`.
//!
//! Exit codes: 0 all is well; 1 something is wrong with a store or a run (also a failed
//! verification or consistency check, or a violation that `sim` found); 2 the command line cannot
//! be made as it is; 3 a salvage is done, and rows or calls are lost; 130 or 143 a run was
//! interrupted by SIGINT or SIGTERM. Results go to standard output, everything else to standard
//! error. Nothing here knows how the engine works.

#![forbid(unsafe_code)]

mod ablation_command;
mod args;
mod bench_command;
mod bench_process;
mod check_command;
mod clients_command;
mod contention_command;
mod device_command;
mod dump_command;
mod dump_files;
mod exploring;
mod inspect_command;
mod load_command;
mod output;
mod parameters;
mod peers_command;
mod recover_command;
mod repair_command;
mod reproduce_command;
mod roofline_command;
mod rows;
mod runs;
mod salvage_command;
mod signals;
mod sim_command;
mod sim_damage;
mod sim_disk;
mod typed;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};
use output::{Done, Failure};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A panic in a procedure is caught by the engine and answered; any other ends below. Either way
    // one line says where; nobody who uses a tool should have to read a backtrace.
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string().replace('\n', " ");
        eprintln!("note: {text}");
    }));
    let done = std::panic::catch_unwind(|| dispatch(arguments.command)).unwrap_or_else(|_| {
        Err(Failure::new("stopped by a mistake of this program (see the note); please report it"))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            for message in &failure.messages {
                eprintln!("error: {message}");
            }
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(command: Command) -> Done {
    match command {
        Command::Bench(command) => bench_command::run(command),
        Command::Reproduce(command) => reproduce_command::run(&command),
        Command::Check(command) => check_command::run(&command),
        Command::Inspect(command) => inspect_command::run(&command),
        Command::Dump(command) => dump_command::run(&command),
        Command::Load(command) => load_command::run(&command),
        Command::Recover(command) => recover_command::run(&command),
        Command::Sim(command) => sim_command::run(&command),
    }
}
