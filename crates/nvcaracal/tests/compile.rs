//! What the compiler says to mistakes that a newcomer makes. `TRYBUILD=overwrite` writes it anew.

use std::process::Command;

/// Whose words the files hold: another compiler says the same in others.
const COMPILER: &str = "rustc 1.95.";

#[test]
fn mistakes_of_types_are_refused_with_what_to_do() {
    let version = Command::new("rustc").arg("--version").output().expect("a compiler");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if !version.starts_with(COMPILER) {
        return eprintln!("not compared: the words are those of {COMPILER}x, this is {version}");
    }
    trybuild::TestCases::new().compile_fail("tests/compile/*.rs");
}
