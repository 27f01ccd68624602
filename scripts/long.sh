#!/usr/bin/env bash
# What is too slow for `.ci/run`, at full size and for as long as there is time.
#
# Usage: scripts/long.sh [MINUTES] [FIRST_SEED]
#
#   MINUTES      how long, builds included (default 60); a part that is running is ended then
#   FIRST_SEED   where random tests begin (default: from the clock, and printed)
#
# First what has an end: every planted bug, explored schedules of more seeds, the thread sanitizer.
# Then rounds of everything random, each with other seeds: the crash lab on memory and
# on the simulated disk, the library's lab, histories, power cuts, bad disks, fuzzing, kills,
# power cuts of a real file system. Before them the server beside PostgreSQL 15, an hour but at most a
# sixth of the time, unless NVCARACAL_DIFFERENTIAL_SECONDS says otherwise. After the
# first round a soak of the library, an hour unless NVCARACAL_SOAK_SECONDS says otherwise. Every part is
# tried whatever came of the one before. At the end are listed the parts that failed, the parts that
# the end of the time cut off, and those that never began. Exit codes: 0 every part of the first round
# began and none failed, 1 something failed or never began, 2 a wrong command line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C CARGO_TERM_COLOR=never

minutes=${1:-60}
seed=${2:-$(date +%s)}
if ! [[ $minutes =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ ]]; then
    echo "error: $* is no time and no seed; see the head of scripts/long.sh" >&2
    exit 2
fi
end=$((minutes * 60))
lab=${CARGO_TARGET_DIR:-target}/release/nvcaracal-lab
room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
failed=()
cut_off=()
never_began=()
parts=0
is_first_round=true

# Runs a part until the time is over: a title, then a command.
part() {
    local title=$1 started=$SECONDS left=$((end - SECONDS)) status=0
    shift
    if [ "$left" -le 0 ]; then
        # Only the first round must be whole: the next ones are as many as there is time for.
        if [ "$is_first_round" = true ]; then never_began+=("$title"); fi
        return
    fi
    printf '\n=== %s\n' "$title"
    timeout "$left" "$@" || status=$?
    # 124: the time is over, which is no failure.
    if [ "$status" -eq 124 ] && [ "$SECONDS" -ge "$end" ]; then
        printf '=== %s: not ended\n' "$title"
        cut_off+=("$title")
        return
    fi
    parts=$((parts + 1))
    if [ "$status" -ne 0 ]; then failed+=("$title, status $status"); fi
    printf '=== %s: status %d, %d s\n' "$title" "$status" $((SECONDS - started))
}

echo "$minutes minutes, seeds from $seed"
part 'build for release' cargo build --release --locked -p nvcaracal-lab
part 'build as packaged' cargo build --profile dist --locked -p nvcaracal-lab
part 'instructions of the engine alone' scripts/instructions.sh --check \
    --binary "${CARGO_TARGET_DIR:-target}/dist/nvcaracal-lab"
part 'each package by itself' cargo package --locked
part 'planted bugs' scripts/plants.sh
part 'schedules: loom' cargo test --locked -p nvcaracal-engine --features loom --lib models
part 'schedules: shuttle' env NVCARACAL_EXPLORED=200 \
    cargo test --locked -p nvcaracal-engine --features shuttle --test shuttle
part 'schedules: library' env NVCARACAL_EXPLORED=5000 \
    cargo test --locked -p nvcaracal --features shuttle --test shuttle
part 'thread sanitizer' scripts/races.sh
part 'grammar: depth' env NVCARACAL_DEPTH=whole cargo test --locked -p nvcaracal-sql --test depth
part 'rivals: power cuts' env NVCARACAL_RIVAL_CUTS=every cargo test --locked -p nvcaracal-testbed
part 'server: kills' env NVCARACAL_SERVER_KILLS=200 \
    cargo test --locked -p nvcaracal-cli --test all serve_kills:: -- --nocapture
part 'server: kills of definitions' env NVCARACAL_DEFINITION_KILLS=16 \
    NVCARACAL_DEFINITION_ROWS=200000 \
    cargo test --locked -p nvcaracal-cli --test all serve_kills_definitions -- --nocapture
part 'server: strict serializability' env NVCARACAL_SERVER_HISTORIES=100 \
    cargo test --locked -p nvcaracal-cli --test all serve_history -- --nocapture
part 'SQL: the time of a step' env NVCARACAL_STEP_NS=2000 \
    cargo test --release --locked -p nvcaracal-sql --test weights
part 'server: program' cargo build --release --locked -p nvcaracal-cli
part 'server: clients' scripts/clients.sh --binary "${CARGO_TARGET_DIR:-target}/release/nvcaracal" --rounds 10
part 'server: applications' scripts/applications.sh --check \
    --binary "${CARGO_TARGET_DIR:-target}/release/nvcaracal"
beside_seconds=$((end / 6 < 3600 ? end / 6 : 3600))
part 'server: beside PostgreSQL' env NVCARACAL="${CARGO_TARGET_DIR:-target}/release/nvcaracal" \
    scripts/differential.sh "${NVCARACAL_DIFFERENTIAL_SECONDS:-$beside_seconds}" "$seed"
part 'library: rollbacks' env NVCARACAL_ROLLBACKS=all \
    cargo test --locked -p nvcaracal --test all rollback:: -- --nocapture
while [ "$is_first_round" = true ] || [ "$SECONDS" -lt "$end" ]; do
    printf '\n=== a round from seed %d\n' "$seed"
    part 'crash lab' "$lab" sim --seconds 300 --seed "$seed" --no-progress
    part 'crash lab: disk' "$lab" sim --device file --seconds 120 --seed "$seed" --no-progress
    part 'library: lab' env NVCARACAL_FIRST_SEED="$seed" NVCARACAL_LAB=1500 \
        cargo test --locked -p nvcaracal --test lab
    part 'power cuts' env NVCARACAL_FIRST_SEED="$seed" NVCARACAL_CRASHES=500 \
        cargo test --locked -p nvcaracal-engine --test all crash::
    part 'histories' env NVCARACAL_FIRST_SEED="$seed" NVCARACAL_HISTORIES=2000 \
        NVCARACAL_METAMORPHIC=40 cargo test --locked -p nvcaracal-engine --test all properties::
    part 'footprint' env NVCARACAL_FIRST_SEED="$seed" NVCARACAL_FOOTPRINT_ROUNDS=1000000 \
        cargo test --locked -p nvcaracal-engine --test all footprint::
    part 'any three features' env NVCARACAL_FIRST_SEED="$seed" NVCARACAL_PRODUCTS=5 \
        NVCARACAL_IMAGES=100 cargo test --locked -p nvcaracal-sim --test all product::
    part 'schedules: threads' env NVCARACAL_FIRST_SEED="$seed" NVCARACAL_SCHEDULES=500 \
        cargo test --locked -p nvcaracal-engine --test all schedules::
    part 'bad disks' env NVCARACAL_FIRST_SEED="$seed" NVCARACAL_DISKS=100 NVCARACAL_DISK_STRIDE=1 \
        NVCARACAL_FAULT_STRIDE=1 cargo test --locked -p nvcaracal-sim --test all disk::
    part 'fuzzing' env NVCARACAL_FIRST_SEED="$seed" NVCARACAL_FUZZ=10000 \
        cargo test --locked -p nvcaracal-sim --test all fuzz::
    part 'kills' env NVCARACAL_FIRST_SEED="$seed" NVCARACAL_KILLS=100 \
        cargo test --locked -p nvcaracal-cli -p nvcaracal-lab --test all kill::
    part 'power cuts of a file system' env NVCARACAL_FIRST_SEED="$seed" NVCARACAL_POWER_CUTS=1000 \
        cargo test --locked -p nvcaracal-lab --test all power_cuts:: -- --nocapture
    part 'commands that write' env NVCARACAL_FIRST_SEED="$seed" NVCARACAL_ACTORS=50 \
        cargo test --locked -p nvcaracal-cli --test all actors::
    for workload in smallbank tpcc; do
        part "crash and return: $workload" scripts/crash_and_return.sh "$workload" --kills 50 \
            --epochs 60 --binary "$lab" --directory "$room/$workload-$seed"
        rm -rf "$room/$workload-$seed"
    done
    if [ "$is_first_round" = true ]; then
        part 'soak' env NVCARACAL_FIRST_SEED="$seed" \
            NVCARACAL_SOAK_SECONDS="${NVCARACAL_SOAK_SECONDS:-3600}" \
            cargo test --locked -p nvcaracal --test soak
        is_first_round=false
    fi
    seed=$((seed + 10000))
done

printf '\n%d s; %d parts ended, %d of them failed; %d cut off, %d never began\n' "$SECONDS" "$parts" \
    "${#failed[@]}" "${#cut_off[@]}" "${#never_began[@]}"
if [ "${#cut_off[@]}" -gt 0 ]; then printf 'cut off: %s\n' "${cut_off[@]}"; fi
if [ "${#never_began[@]}" -gt 0 ]; then printf 'NEVER BEGAN: %s\n' "${never_began[@]}"; fi
if [ "${#failed[@]}" -gt 0 ]; then printf 'FAILED: %s\n' "${failed[@]}"; fi
if [ "${#failed[@]}" -gt 0 ] || [ "${#never_began[@]}" -gt 0 ]; then exit 1; fi
