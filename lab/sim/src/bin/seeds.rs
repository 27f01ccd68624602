//! The crash lab by itself, for `scripts/plants.sh`: explores the seeds that the environment names.
//! It is a program so that nothing has to be compiled that tests need besides.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// What a test that failed exits with.
const FAILED: u8 = 101;

fn main() -> ExitCode {
    match sim::crash::run_as_told() {
        Ok(_) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(FAILED)
        }
    }
}
