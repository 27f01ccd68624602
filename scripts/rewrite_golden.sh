#!/usr/bin/env bash
# Makes the golden figures of fixed runs anew, after a change that is meant to change them: what they
# count, and the instructions of a transaction. What differs is for the commit to explain.
#
# Usage: scripts/rewrite_golden.sh      (builds what it needs; wants valgrind)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo build --profile dist -p nvcaracal-cli --no-default-features
cargo build --profile dist -p nvcaracal-lab
NVCARACAL_BLESS=1 cargo test -p nvcaracal-lab --test all counters::
scripts/instructions.sh --write
scripts/instructions.sh --write --binary "${CARGO_TARGET_DIR:-target}/dist/nvcaracal-lab"
git --no-pager diff --stat -- crates/cli/tests/golden lab/cli/tests/golden
