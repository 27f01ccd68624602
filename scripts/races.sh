#!/usr/bin/env bash
# Runs tests of engine and devices under the thread sanitizer, which reports unordered accesses to
# memory.
#
#   scripts/races.sh [file ...]     those of crates/engine/tests/all; default: those in which workers
#                                   share most, and the residency of crates/pmem/tests/file
#
# The sanitizer belongs to the compiler but is behind a switch that stable ones leave off; this turns
# it on (RUSTC_BOOTSTRAP). The standard library is compiled without it, so locks come from another
# library here (crates/pmem/src/sync/watched.rs), and what it orders by itself is left out below.
#
# The server is not among them: its threads and its sequencer wait for each other by locks and channels
# of the standard library, whose order the sanitizer would have to see. That needs the standard library's
# sources (rust-src, -Zbuild-std). Its threads share rows by the engine's rules only, which
# running_calls, snapshots and parallel_indexes watch.
#
# Builds in target/races; the whole takes some minutes. Exit codes: 0 all is well, 66 unordered
# accesses, others as cargo test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
suppressions=$(mktemp)
trap 'rm -f "$suppressions"' EXIT
# Behind a lock of the standard library: the test runner's channel, values that are made once, and
# the record of the devices that simulate crashes. Behind a fence of its own: the last owner of an `Arc`.
printf '%s\n' 'race:test::' 'race:std::sync::lazy_lock' 'race:LazyLock' 'race:pmem::crash' \
    'race:drop_in_place::<pmem::file::checkpoint::SnapshotWriter>' \
    >"$suppressions"

# Runs tests of a package: the test's name, then parts of tests' names. One test after the other: memory
# that an engine gives back to the system, which the sanitizer does not see, may become that of another
# engine, and only the end of a test orders the two.
watch() {
    local package=$1 test=$2
    shift 2
    RUSTC_BOOTSTRAP=1 \
        RUSTFLAGS='-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer' \
        TSAN_OPTIONS="suppressions=$suppressions history_size=7" \
        cargo test --locked -p "$package" --features races --target "$host" --target-dir target/races \
        --test "$test" -- --test-threads=1 "${@/%/::}"
}

if [ $# -gt 0 ]; then
    watch nvcaracal-engine all "$@"
    exit
fi
watch nvcaracal-engine all append differences kept_indexes many paged_indexes parallel_indexes parts \
    pieces running_calls schema serial smoke snapshots state_hash versions
watch nvcaracal-pmem file residency
