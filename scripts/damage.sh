#!/usr/bin/env bash
# Damages stores from outside and sees how they end: 10,000 of them, or as many as are asked for.
#
#     scripts/damage.sh [CASES [SEED]]
#
# Each must be refused with every byte untouched, recovered to the last answered epoch, or recovered
# to an older one where docs/recovery.md says that this loss cannot be told. Needs a release build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

lab=${CARGO_TARGET_DIR:-target}/release/nvcaracal-lab
if [ ! -x "$lab" ]; then
    cargo build --release --locked -p nvcaracal-lab
fi
exec "$lab" sim --device damage --cases "${1:-10000}" ${2:+--seed "$2"}
