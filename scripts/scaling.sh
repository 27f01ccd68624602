#!/usr/bin/env bash
# What more workers do to each other, by counters, because counters do not need as many cores as
# workers: row locks, waits, hand-overs from worker to worker, balance, and how many calls of an epoch
# can run at a time at all. Prints a table; docs/scaling.md has its figures. Per transaction, but for the
# last five columns:
#
#   appended                 versions appended
#   handed over              appends to a row to which another worker had appended last in the epoch; with
#                            batch append, rows whose array another worker made than had claimed them
#   contended                row locks that another worker held at that moment; 0 with batch append, and
#                            near 0 with more workers than cores
#   waits                    reads that found the version that they need pending
#   versions of others read  reads of a transient version that another worker made
#   final versions read      reads of a version that was written to the device in the same epoch
#   ..., most by mean        of the worker of an epoch with most of them, by the mean; of calls it measures
#                            the system's time slices where there are more workers than cores
#   chain                    calls of an epoch in the longest chain in which each needs what the one before
#                            left, found by the oracle; with pieces, calls and pieces
#   calls by chain           how many calls can run at a time, on any number of cores
#
# With --append: moves are elements shifted in sorted version arrays, arrays those that were made, in
# buffers the appends that were no claims, and others' claims seen those of them that found another
# worker's claim.
#
#   scripts/scaling.sh [options] [workload ...]     default: all workloads of the table
#
#   --workers 'N ...'   numbers of workers (default '2 8 32')
#   --epochs N          epochs of the stream (default 3)
#   --epoch-size N      transactions of an epoch (default 20000)
#   --binary FILE       the program (default target/release/nvcaracal-lab)
#   --append            the second table instead: what each method of the append step costs
#
# A workload is a quoted list of options of `nvcaracal-lab bench`. Every run of the first table is compared
# with the serial oracle, which also finds the chains. Exit code 0 if all runs succeed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

workers='2 8 32' epochs=3 epoch_size=20000 compare=''
binary=${CARGO_TARGET_DIR:-target}/release/nvcaracal-lab
while [ $# -gt 0 ]; do
    case $1 in
        --workers) workers=$2; shift 2 ;;
        --epochs) epochs=$2; shift 2 ;;
        --epoch-size) epoch_size=$2; shift 2 ;;
        --binary) binary=$2; shift 2 ;;
        --append) compare=yes; shift ;;
        --*) echo "unknown option $1" >&2; exit 2 ;;
        *) break ;;
    esac
done
if [ $# -eq 0 ] && [ -n "$compare" ]; then
    set -- \
        'ycsb --rows 200000 --contention high' \
        'smallbank --customers 180000 --contention high' \
        'tpcc --warehouses 2' \
        'tpcc --warehouses 1'
elif [ $# -eq 0 ]; then
    set -- \
        'ycsb --rows 200000 --contention low' \
        'ycsb --rows 200000 --contention high' \
        'ycsb --rows 200000 --contention high --pieces --split-threshold 64' \
        'ycsb --rows 200000 --read-ratio 8' \
        'smallbank --customers 180000 --contention low' \
        'smallbank --customers 180000 --contention high' \
        'tpcc --warehouses 2' \
        'tpcc --warehouses 1'
fi

report=$(mktemp)
trap 'rm -f "$report"' EXIT

# The number with a name that the report has once, with so many digits.
number() {
    sed -n "s/^ *\"$1\": \([0-9.e+-]*\),*$/\1/p" "$report" | awk -v digits="$2" '
        NR == 1 { printf "%." digits "f", $1 }
        END { if (NR != 1) exit 1 }'
}

# Runs a workload with so many workers, and with other options.
measure() {
    local workload=$1 count=$2
    shift 2
    # shellcheck disable=SC2086
    "$binary" bench $workload --workers "$count" --epochs "$epochs" --epoch-size "$epoch_size" \
        --device emulated:none --limits=never --no-progress --json - "$@" \
        >"$report" 2>/dev/null
}

if [ -n "$compare" ]; then
    printf '| %s ' workload workers append appended contended 'handed over' moves arrays \
        'in buffers' "others' claims seen" 'appends, most by mean'
    echo '|'
    echo '|---|---|---|---|---|---|---|---|---|---|---|'
    for workload in "$@"; do
        for count in $workers; do
            for method in row-lock batch; do
                measure "$workload" "$count" --append "$method"
                row="| $workload | $count | $method"
                for name in appends contended_locks locks_handed_over insertion_moves \
                    version_arrays batched_appends claims_of_others; do
                    row+=" | $(number "${name}_per_txn" 3)"
                done
                echo "$row | $(number appends_most_to_mean 2) |"
            done
        done
    done
    exit 0
fi

printf '| %s ' workload workers appended 'handed over' contended waits 'versions of others read' \
    'final versions read' 'calls, most by mean' 'appends, most by mean' 'pieces, most by mean' chain 'calls by chain'
echo '|'
echo '|---|---|---|---|---|---|---|---|---|---|---|---|---|'
for workload in "$@"; do
    for count in $workers; do
        measure "$workload" "$count" --verify
        row="| $workload | $count"
        for name in appends locks_handed_over contended_locks waits versions_handed_over \
            final_versions_read; do
            row+=" | $(number "${name}_per_txn" 3)"
        done
        row+=" | $(number calls_most_to_mean 2) | $(number appends_most_to_mean 2)"
        row+=" | $(number pieces_most_to_mean 2)"
        row+=" | $(number chain_calls_per_epoch 0) | $(number calls_by_chain 0) |"
        echo "$row"
    done
done
