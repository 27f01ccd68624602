#!/usr/bin/env bash
# What to run before a commit, in under three minutes once the crates are built: format, lints, house
# rules and unit tests. `.ci/run` is what must pass before a change lands.
#
# Usage: scripts/quick.sh [crate ...]      of these crates only; default: all
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TERM_COLOR=never

crates=(--workspace)
if [ $# -gt 0 ]; then
    crates=()
    for crate in "$@"; do crates+=(-p "$crate"); done
fi
cargo fmt --all --check
scripts/tidy.sh
cargo clippy "${crates[@]}" --all-targets --locked --quiet -- -D warnings
cargo test "${crates[@]}" --lib --bins --locked --quiet
echo "all is well, $SECONDS s"
