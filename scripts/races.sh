#!/usr/bin/env bash
# Runs tests of the engine under the thread sanitizer, which reports unordered accesses to memory.
#
#   scripts/races.sh [file ...]     those of crates/engine/tests/all; default: those in which workers
#                                   share most
#
# The sanitizer belongs to the compiler but is behind a switch that stable ones leave off; this turns
# it on (RUSTC_BOOTSTRAP). The standard library is compiled without it, so locks come from another
# library here (crates/pmem/src/sync/watched.rs), and what it orders by itself is left out below.
#
# Builds in target/races; the whole takes some minutes. Exit codes: 0 all is well, 66 unordered
# accesses, others as cargo test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
suppressions=$(mktemp)
trap 'rm -f "$suppressions"' EXIT
# Behind a lock of the standard library: the test runner's channel, values that are made once, and
# the record of the devices that simulate crashes.
printf '%s\n' 'race:test::' 'race:std::sync::lazy_lock' 'race:LazyLock' 'race:pmem::crash' \
    >"$suppressions"

if [ $# -eq 0 ]; then
    set -- append differences many parts pieces schema serial smoke snapshots state_hash versions
fi
# One test after the other: memory that an engine gives back to the system, which the sanitizer does
# not see, may become that of another engine, and only the end of a test orders the two.
RUSTC_BOOTSTRAP=1 \
    RUSTFLAGS='-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer' \
    TSAN_OPTIONS="suppressions=$suppressions history_size=7" \
    cargo test --locked -p nvcaracal-engine --features races --target "$host" --target-dir target/races \
    --test all -- --test-threads=1 "${@/%/::}"
