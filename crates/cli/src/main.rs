//! The binary `nvcaracal`; the library says what it does.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    cli::main()
}
