#!/usr/bin/env bash
# How many instructions of the engine a transaction takes, counted by callgrind in fixed small runs with
# one worker: those between the beginning and the end of an epoch, procedures and log included.
#
#   scripts/instructions.sh [--check | --write] [options]
#
#   --check               fail if a figure differs from the golden file by more than the tolerance
#   --write               make the golden file anew
#   --tolerance PERCENT   whole percent (default 3)
#   --binary FILE         the program, built with profile dist: the product's without its server, which runs
#                         epochs through the library (default target/dist/nvcaracal), or the laboratory's
#                         (nvcaracal-lab), which runs the engine alone
#   --golden FILE         default crates/cli/tests/golden/instructions.txt, or lab/cli/.. of the latter
#   --only PATTERN        only runs whose names match; not with --write
#   --extra OPTIONS       further options of every run, such as --no-state-hash; not with --check or
#                         --write
#   --keep DIR            keep what callgrind wrote there, for callgrind_annotate
#   --by-part             print a table of the parts of the engine that they come from, by source file
#                         (needs python3): what is inlined from a library counts for the file that it
#                         stands in
#
# Each run is made twice, with few epochs and with more; the difference, divided by the transactions
# between, is that of the last epochs: the first ones, loading and checks drop out. Loading has written
# every row twice, so that both versions of its persistent row are whole. Tables are so large that rows
# are as contended as in runs of the usual size.
#
# The figures hardly depend on the machine: valgrind shows every program the same processor (with AVX2
# where the real one has it, never with AVX-512 or clwb), so flushes and non-temporal stores are the
# narrow ones everywhere. They do depend on the compiler and a little on the C library, hence the
# tolerance; the golden file says with which they were made. Repeated runs differ by less than 0.1 %;
# without AVX2 copying takes up to 9 % more (ycsb_updates), so such a machine needs another tolerance.
#
# Exit codes: 0 all is well, 1 a figure differs or a run failed, 2 a wrong command line, 3 there is no
# valgrind.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

common="--workers 1 --device emulated:none --seed 1 --no-check --no-progress --json /dev/null"
# Address space that valgrind can spare.
common+=" --image-limit-bytes 268435456 --log-limit-bytes 268435456"
# What counts.
epoch='engine::engine::Engine::run'
# A name, few epochs, more epochs, transactions of an epoch, the run.
runs='
smallbank 3 7 2000 smallbank --customers 36000
ycsb_updates 4 14 200 ycsb --rows 8000
ycsb_hot 4 14 200 ycsb --rows 8000 --hot-keys 7 --hot-rows 77
ycsb_reads 4 14 200 ycsb --rows 8000 --read-ratio 8
tpcc_paper 3 7 400 tpcc --warehouses 1 --items 500 --customers-per-district 30
tpcc_full 3 7 400 tpcc --warehouses 1 --items 500 --customers-per-district 30 --mix full
'

usage() {
    echo "error: $1; see the head of scripts/instructions.sh" >&2
    exit 2
}

mode=print tolerance=3 keep='' extra='' only='' by_part=''
binary=${CARGO_TARGET_DIR:-target}/dist/nvcaracal golden=''
while [ $# -gt 0 ]; do
    case $1 in
        --check | --write) mode=${1#--}; shift; continue ;;
        --by-part) by_part=yes; shift; continue ;;
        --tolerance | --binary | --golden | --keep | --extra | --only) ;;
        *) usage "unknown option $1" ;;
    esac
    [ $# -gt 1 ] || usage "$1 needs a value"
    case $1 in
        --tolerance) tolerance=$2 ;;
        --binary) binary=$2 ;;
        --golden) golden=$2 ;;
        --keep) keep=$2 ;;
        --extra) extra=$2 ;;
        --only) only=$2 ;;
    esac
    shift 2
done
[[ $tolerance =~ ^[0-9]+$ ]] || usage "--tolerance $tolerance is not a whole number"
if [ -n "$extra" ] && [ "$mode" != print ]; then
    usage '--extra has no golden figures'
fi
if [ -n "$only" ] && [ "$mode" = write ]; then usage '--write needs all runs'; fi
[ -x "$binary" ] || usage "no program $binary: build it with
  cargo build --profile dist -p nvcaracal-cli --no-default-features, or name it"
if [ "$(basename "$binary")" = nvcaracal-lab ]; then
    golden=${golden:-lab/cli/tests/golden/instructions.txt}
    # A run under valgrind is a long one.
    common+=" --limits=never"
fi
golden=${golden:-crates/cli/tests/golden/instructions.txt}
if [ "$mode" = check ] && [ ! -f "$golden" ]; then
    usage "no golden file $golden: make it with --write"
fi
if ! command -v valgrind >/dev/null; then
    echo 'error: valgrind is not installed: instructions were not counted' >&2
    exit 3
fi

room=$(mktemp -d)
trap 'rm -rf "$room"' EXIT
directory=${keep:-$room}
mkdir -p "$directory"

# Instructions of one whole run.
instructions() {
    local name=$1 epochs=$2 size=$3 out count
    shift 3
    out=$directory/$name.$epochs.callgrind
    # shellcheck disable=SC2086  # the common options are many words
    if ! valgrind --tool=callgrind --callgrind-out-file="$out" --toggle-collect="$epoch" \
        "$binary" bench "$@" --epochs "$epochs" --epoch-size "$size" $common $extra </dev/null >"$room/said" 2>&1; then
        cat "$room/said" >&2
        echo "error: failed under valgrind: bench $* --epochs $epochs" >&2
        return 1
    fi
    count=$(sed -nE 's/^(summary|totals): ([0-9]+)$/\2/p' "$out" | sed 1q)
    if [ "${count:-0}" -eq 0 ]; then
        echo "error: callgrind counted nothing in $out: is there no function $epoch?" >&2
        return 1
    fi
    printf '%s\n' "$count"
}

# The golden figure of a run.
expected() { sed -nE "s/^$1 ([0-9]+)\$/\1/p" "$golden"; }

found="# Instructions per transaction, made by scripts/instructions.sh --write with
# $(rustc --version 2>/dev/null || echo 'an unknown compiler'), $(valgrind --version)
"
differing=0
parts=()
while read -r name few more size run; do
    [ -n "$name" ] || continue
    if [ -n "$only" ] && ! [[ $name =~ $only ]]; then continue; fi
    # shellcheck disable=SC2086  # a run is several words
    first=$(instructions "$name" "$few" "$size" $run)
    # shellcheck disable=SC2086
    second=$(instructions "$name" "$more" "$size" $run)
    per_txn=$(((second - first) / ((more - few) * size)))
    found+="$name $per_txn"$'\n'
    parts+=("$name" "$directory/$name.$few.callgrind" "$directory/$name.$more.callgrind"
        $(((more - few) * size)))
    line="$name $per_txn instructions per transaction"
    if [ "$mode" = check ]; then
        golden_figure=$(expected "$name")
        if [ -z "$golden_figure" ]; then
            line+=': NOT in the golden file'
            differing=$((differing + 1))
        else
            off=$((per_txn > golden_figure ? per_txn - golden_figure : golden_figure - per_txn))
            line+=", golden $golden_figure"
            if [ $((off * 100)) -gt $((golden_figure * tolerance)) ]; then
                line+=": DIFFERS by more than $tolerance %"
                differing=$((differing + 1))
            fi
        fi
    fi
    printf '%s\n' "$line"
done <<<"$runs"

if [ -n "$by_part" ]; then
    echo
    python3 scripts/instructions_by_part.py "${parts[@]}"
fi

case $mode in
    write) printf '%s' "$found" >"$golden" ;;
    check)
        if [ "$differing" -gt 0 ]; then
            echo "$differing figures differ from $golden:"
            sed -n 's/^# */    golden: /p' "$golden"
            printf '%s' "$found" | sed -n 's/^# */    here:   /p'
            echo 'if that is meant: scripts/instructions.sh --write, and say in the commit why'
            exit 1
        fi
        ;;
esac
