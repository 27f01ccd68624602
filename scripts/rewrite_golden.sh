#!/usr/bin/env bash
# Makes the golden figures of fixed runs anew, after a change that is meant to change them: what they
# count, and the instructions of a transaction. What differs is for the commit to explain.
#
# Usage: scripts/rewrite_golden.sh      (builds what it needs; wants valgrind)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cargo build --release -p nvcaracal-lab
NVCARACAL_BLESS=1 cargo test -p nvcaracal-lab --test all counters::
scripts/instructions.sh --write
git --no-pager diff --stat -- crates/cli/tests/golden lab/cli/tests/golden
