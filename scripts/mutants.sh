#!/usr/bin/env bash
# Mutation testing: changes one expression after the other, and sees whether a test notices.
#
#   scripts/mutants.sh [options] [file ...]   default: what decides over what survives a crash
#
#   --shard I/N          only every Nth mutant, from the Ith, 0 to N-1
#   --sample N           N mutants of each file, evenly from its beginning to its end, and those
#                        that delete a field of a struct, which cargo-mutants does not filter
#   --tests-seconds S    how long one command of fast tests may take (default 180)
#   --lab-seconds S      how long the crash lab may take for a mutant (default 120)
#   --lab-cases N        cases of the crash lab for each mutant (default 25; its test of how much
#                        it explores fails below 12)
#   --no-lab             fast tests only
#   --resume             go on: mutants that were noticed before are not made again
#   --list               print the mutants and do nothing
#   --output DIR         where results go (default target/mutants)
#
# Uses cargo-mutants and installs it if it is missing. For each mutant: the fast tests of the crates
# that can notice, the nearest first; then, if none did, the crash lab (`sim`) for a bounded time. A
# test that runs into its limit has noticed, because a mutant may well wait for ever. Builds go to
# DIR/build and are incremental; a mutant takes one to three minutes if nothing notices it early.
#
# DIR/survivors.txt lists what nobody noticed. Exit codes: 0 all were noticed, 1 some survived, 2 a
# wrong command line, 3 the tests fail without a mutant.
set -euo pipefail
export LC_ALL=C

# cargo-mutants runs this script in place of cargo, in its copy of the tree, to test a mutant.
if [ -n "${MUTANTS_OF:-}" ]; then
    if [ "${1:-}" != test ]; then exec "$MUTANTS_CARGO" "$@"; fi
    # A command of tests within its limit; builds do not count.
    limited() {
        local seconds=$1
        shift
        "$MUTANTS_CARGO" test --locked "$@" --no-run
        case " ${MUTANTS_WHAT:-} " in *' build '*) return ;; esac
        timeout "$seconds" "$MUTANTS_CARGO" test --locked "$@"
    }
    fast() { limited "$MUTANTS_TESTS_SECONDS" "$@"; }
    lab() { limited "$MUTANTS_LAB_SECONDS" "$@"; }
    export NVCARACAL_CASES=$MUTANTS_LAB_CASES NVCARACAL_DISKS=3
    # Whether the mutant compiles is asked of the nearest tests only.
    case " $* " in *' --no-run '*) MUTANTS_WHAT=build ;; esac
    case $MUTANTS_OF in
        pmem) fast -p pmem --lib --test file ;;
        storage) fast -p storage --lib ;;
        engine) fast -p engine --lib --test properties --test versions ;;
    esac
    if [ -n "${MUTANTS_WHAT:-}" ]; then exit 0; fi
    case $MUTANTS_OF in
        pmem) if [ "$MUTANTS_LAB_CASES" -gt 0 ]; then lab -p sim --test disk; fi ;;
        storage) fast -p engine --test properties --test damage --test crash ;;
        engine) fast -p engine --test bad_input --test pieces --test crash ;;
    esac
    if [ "$MUTANTS_OF" != pmem ] && [ "$MUTANTS_LAB_CASES" -gt 0 ]; then lab -p sim --test crash; fi
    exit 0
fi

usage() {
    echo "error: $1; see the head of scripts/mutants.sh" >&2
    exit 2
}

script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/$(basename "${BASH_SOURCE[0]}")
cd "$(dirname "$script")/.."

tests_seconds=180 lab_seconds=120 lab_cases=25 sample=0 output=target/mutants
options=() files=() list=''
while [ $# -gt 0 ]; do
    case $1 in
        --no-lab) lab_cases=0; shift; continue ;;
        --resume) options+=(--iterate); shift; continue ;;
        --list) list=yes; shift; continue ;;
        --shard | --sample | --tests-seconds | --lab-seconds | --lab-cases | --output) ;;
        -*) usage "unknown option $1" ;;
        *) files+=("$1"); shift; continue ;;
    esac
    if [ $# -lt 2 ]; then usage "$1 needs a value"; fi
    case $1 in
        --shard) options+=(--shard "$2") ;;
        --sample) sample=$2 ;;
        --tests-seconds) tests_seconds=$2 ;;
        --lab-seconds) lab_seconds=$2 ;;
        --lab-cases) lab_cases=$2 ;;
        --output) output=$2 ;;
    esac
    shift 2
done
for number in "$tests_seconds" "$lab_seconds" "$lab_cases" "$sample"; do
    if ! [[ $number =~ ^[0-9]+$ ]]; then usage "$number is no number"; fi
done
if [ "${#files[@]}" -eq 0 ]; then
    mapfile -t files < <(git ls-files 'crates/storage/src/*.rs' 'crates/pmem/src/file/*.rs' \
        crates/engine/src/version/final_write.rs 'crates/engine/src/epoch/*.rs' \
        crates/engine/src/recovery.rs crates/engine/src/replay.rs | grep -vE '/tests?(/|\.rs$)|/plant\.rs$')
fi

if ! command -v cargo-mutants >/dev/null; then
    echo 'cargo-mutants is missing: installing it'
    cargo install cargo-mutants --locked
fi
mkdir -p "$output"
output=$(cd "$output" && pwd)
MUTANTS_CARGO=$(command -v cargo)
export MUTANTS_CARGO MUTANTS_TESTS_SECONDS=$tests_seconds MUTANTS_LAB_SECONDS=$lab_seconds
export MUTANTS_LAB_CASES=$lab_cases CARGO_TARGET_DIR=$output/build CARGO_INCREMENTAL=1

survived=0
: >"$output/survivors.txt"
for crate in storage pmem engine; do
    of_crate=()
    for file in "${files[@]}"; do
        [ -f "$file" ] || usage "there is no file $file"
        case $file in
            "crates/$crate/"*) of_crate+=(--file "$file") ;;
            crates/storage/* | crates/pmem/* | crates/engine/*) ;;
            *) usage "$file is of a crate that this script has no tests for" ;;
        esac
    done
    if [ "${#of_crate[@]}" -eq 0 ]; then continue; fi
    run=(mutants --workspace --colors never "${of_crate[@]}" "${options[@]}")
    if [ "$sample" -gt 0 ]; then
        # The middle one of each of N equal parts of a file's mutants, each by its whole name.
        mapfile -t names < <(cargo-mutants "${run[@]}" --list | awk -F: -v most="$sample" '
            { of[$1]++; name[$1, of[$1]] = $0; if (of[$1] == 1) files[++count] = $1 }
            END {
                for (f = 1; f <= count; f++) {
                    all = of[files[f]]
                    n = most < all ? most : all
                    for (i = 0; i < n; i++) print name[files[f], int((2 * i + 1) * all / (2 * n)) + 1]
                }
            }' | sed 's/[][\\.*^$+?(){}|]/\\&/g')
        for name in "${names[@]}"; do run+=(--re "^$name\$"); done
    fi
    if [ -n "$list" ]; then
        cargo-mutants "${run[@]}" --list
        continue
    fi
    # The commands have limits of their own; this one is for builds without end.
    status=0
    MUTANTS_OF=$crate CARGO=$script cargo-mutants "${run[@]}" --jobs 1 --no-shuffle --no-times \
        --timeout 3600 --build-timeout 3600 --output "$output/$crate" || status=$?
    # 2: some were missed, 3: some timed out. Anything else but 0 says that nothing was tested.
    case $status in
        0 | 2 | 3) ;;
        4) echo "the tests fail without a mutant: see $output/$crate/mutants.out/log"; exit 3 ;;
        *) exit "$status" ;;
    esac
    found=$output/$crate/mutants.out
    cat "$found/missed.txt" >>"$output/survivors.txt"
    printf '%s: %d noticed, %d survived, %d without end, %d do not compile\n' "$crate" \
        "$(wc -l <"$found/caught.txt")" "$(wc -l <"$found/missed.txt")" \
        "$(wc -l <"$found/timeout.txt")" "$(wc -l <"$found/unviable.txt")"
done
if [ -n "$list" ]; then exit 0; fi
survived=$(wc -l <"$output/survivors.txt")
echo "$survived survived: $output/survivors.txt"
[ "$survived" -eq 0 ]
