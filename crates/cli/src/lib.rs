//! The binary `nvcaracal`: `nvcaracal serve | bench | check | inspect | dump | load | backup |
//! restore | compact | recover`; and what the laboratory's binary, `nvcaracal-lab`, has of it: the
//! options of workloads, the commands about stores, where results go and how a command ends.
//!
//! Exit codes: 0 all is well; 1 something is wrong with a store or a run (also a failed
//! verification or consistency check); 2 the command line cannot be made as it is; 3 a
//! salvage is done, and rows or calls are lost; 4 the store of a server has failed; 130 or 143 a
//! run was interrupted by SIGINT or SIGTERM. Results go to standard output, everything else to
//! standard error. Nothing here knows how the engine works.

#![forbid(unsafe_code)]

pub mod args;
mod lost;
pub mod output;
mod rows;
pub mod runs;
#[cfg(feature = "server")]
mod serve;
pub mod signals;
pub mod stores;

use std::process::ExitCode;

use args::{Arguments, Command};
use clap::Parser;
use output::{Done, Failure};

/// The program: records of deferred calls out the command line.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    run_to_exit(|| match arguments.command {
        Command::Bench(command) => runs::bench(&command),
        #[cfg(feature = "server")]
        Command::Serve(command) => serve::run(&command),
        Command::Store(command) => stores::run(&command),
    })
}

/// Does what the command line says, and tells on standard error why it could not be done.
#[must_use]
pub fn run_to_exit(what: impl FnOnce() -> Done) -> ExitCode {
    // A panic in a procedure is caught by the engine and answered; any other ends below. Either way
    // one line says where; a user of a tool does not have to read a backtrace.
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string().replace('\n', " ");
        output::tell(&format!("note: {text}"));
    }));
    lost::hear();
    let what = || signals::outlive_file_limit().and_then(|()| what());
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(what)).unwrap_or_else(|_| {
        Err(Failure::new("stopped by a mistake of this program (see the note); please report it"))
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            for message in &failure.messages {
                output::tell(&format!("error: {message}"));
            }
            ExitCode::from(failure.code)
        }
    }
}
