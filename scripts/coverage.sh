#!/usr/bin/env bash
# Which code of `pmem`, `storage` and `engine` the crash lab reaches: by lines, and the functions that
# nothing reached. Code that no history reaches is not tested.
#
# Usage: scripts/coverage.sh [SECONDS]     for each kind of lab; default 60
#
# Uses the compiler's own source coverage; needs its tools (`rustup component add llvm-tools`, which
# is tried). Builds in target/coverage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
tools=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
if [ ! -x "$tools/llvm-cov" ]; then rustup component add llvm-tools; fi

out=${CARGO_TARGET_DIR:-target}/coverage
nvcaracal=$out/debug/nvcaracal
RUSTFLAGS='-C instrument-coverage' CARGO_TARGET_DIR=$out cargo build --locked -p cli
rm -f "$out"/*.profraw
export LLVM_PROFILE_FILE=$out/%p.profraw
"$nvcaracal" sim --seconds "$seconds" --seed 1 --no-progress
"$nvcaracal" sim --device file --seconds "$seconds" --seed 1 --no-progress
"$nvcaracal" sim --device damage --seconds "$seconds" --seed 1 --no-progress
"$tools/llvm-profdata" merge --sparse "$out"/*.profraw -o "$out/lab.profdata"

report() {
    "$tools/llvm-cov" "$1" "$nvcaracal" --instr-profile="$out/lab.profdata" "${@:2}" \
        crates/pmem/src crates/storage/src crates/engine/src
}
# File, and the share of its lines and functions that were reached.
report report --summary-only | awk '
    NR == 1 || /^-/ { next }
    NF >= 10 { printf "%-52s %8s of %5d lines %9s of functions\n", $1, $10, $8, $7 }'
report report --show-functions 2>/dev/null >"$out/functions.txt" || true
echo "each function: $out/functions.txt"
