#!/usr/bin/env bash
# Plants bugs in a copy of the sources, one after the other, and sees whether the labs find each of
# them: the crash lab those of engine and storage; the library's lab (crates/nvcaracal/tests/lab),
# explored schedules (tests/shuttle) and the soak (tests/soak.rs) those that say so. The product's own
# code has no planted bugs.
#
# Usage: scripts/plants.sh [--seed N] [--cases N] [--jobs N] [NAME ...]
#        scripts/plants.sh --list      the names, and what is wrong
#        scripts/plants.sh --check     whether all patches apply; builds nothing
#
#   NAME        only these bugs; default: all
#   --seed N    the first seed (default 1)
#   --cases N   seeds in which each must be found (default 400)
#   --jobs N    threads that explore (default: all cores)
#   --sample N  only so many of the bugs, chosen at random
#
# A bug is a file scripts/plants/NAME.patch: what is wrong, which obligations that breaks, perhaps a
# text that the report of the violation must have (`Shows:`), `Lab: TEST` if that test of the
# library's lab is to find it, `Shuttle: SEEDS` and `Soak: SECONDS` if those are, in so much, and a
# change to the sources that does nothing unless NVCARACAL_PLANT is NAME. All of them are applied to one copy, which is built once, in the dev profile, under
# `plants` in the target directory; of the labs those that are needed. First the copy must be clean
# with no bug turned on. Needs bash, git and cargo. Exit codes: 0 all is well, 1 a bug is not found,
# a patch does not apply or the copy is not clean, 2 a wrong command line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C CARGO_TERM_COLOR=never

patches=scripts/plants
room=${CARGO_TARGET_DIR:-target}/plants
# Enough of a case: most bugs need another case rather than more images.
images=2000
# Seconds after which the library's lab takes a thread for one that waits for ever.
patience=15
# Cases in which nothing may be found when no bug is turned on.
cases_clean=10

wrong() {
    echo "error: $*; see the head of scripts/plants.sh" >&2
    exit 2
}

seed=1 cases=400 mode=run sample=0
jobs=() names=()
while [ $# -gt 0 ]; do
    case $1 in
        --seed | --cases | --jobs | --sample)
            [[ ${2:-} =~ ^[0-9]+$ ]] || wrong "$1 needs a number"
            case $1 in
                --seed) seed=$2 ;;
                --cases) cases=$2 ;;
                --sample) sample=$2 ;;
                --jobs) jobs=(--jobs "$2") ;;
            esac
            shift
            ;;
        --list | --check) mode=${1#--} ;;
        -*) wrong "no option is called $1" ;;
        *)
            [ -f "$patches/$1.patch" ] || wrong "no bug is called $1"
            names+=("$1")
            ;;
    esac
    shift
done
all=()
for patch in "$patches"/*.patch; do all+=("$(basename "$patch" .patch)"); done
if [ "${#names[@]}" -eq 0 ]; then names=("${all[@]}"); fi
if [ "$sample" -gt 0 ]; then mapfile -t names < <(printf '%s\n' "${names[@]}" | shuf -n "$sample"); fi

# A line of the head of a patch, if it is there: `header NAME KEY`.
header() { sed -nE "/^diff /q; s/^$2: (.*)/\1/p" "$patches/$1.patch"; }

# Applies all patches to the tree in the working directory; with --check changes nothing.
apply() { cat "$@" | git apply -C1 "${check[@]}" - 2>&1; }

# Whether all patches apply together, and each one is whole.
check_patches() {
    local -a check=(--check)
    local name failed=0
    for name in "${all[@]}"; do
        if [ -z "$(header "$name" What)" ] || [ -z "$(header "$name" Breaks)" ] \
            || ! grep -qF "planted(\"$name\")" "$patches/$name.patch"; then
            echo "$patches/$name.patch needs What:, Breaks:, and a change that asks planted(\"$name\")"
            failed=1
        fi
        if ! apply "$patches/$name.patch" >/dev/null; then
            echo "$patches/$name.patch does not apply to the sources any more: make the same bug in" \
                'them as they are now, put the output of "git diff" into the file below its head,' \
                'and take the bug out of the sources again'
            failed=1
        fi
    done
    if [ "$failed" -eq 0 ] && ! apply "$patches"/*.patch >/dev/null; then
        apply "$patches"/*.patch | grep '^error' || true
        echo "the patches of $patches apply one by one, but not together: leave an unchanged line" \
            'between the changes of two of them'
        failed=1
    fi
    return "$failed"
}

# Makes the copy. Only what differs from the last one is written, so that only that is built.
copy() {
    local fresh=$room/fresh tree=$room/tree file
    local -a check=()
    rm -rf "$fresh"
    mkdir -p "$fresh" "$tree"
    git ls-files --cached --others --exclude-standard -- Cargo.toml Cargo.lock crates \
        | while IFS= read -r file; do if [ -f "$file" ]; then printf '%s\n' "$file"; fi; done \
        | xargs -d '\n' cp --parents -t "$fresh"
    cp "$patches/plant.rs" "$fresh/crates/storage/src/plant.rs"
    echo 'pub mod plant;' >>"$fresh/crates/storage/src/lib.rs"
    cat "$patches"/*.patch >"$room/all.patch"
    # As if there was no repository around it, whose directories the patch would not touch.
    (cd "$fresh" && GIT_CEILING_DIRECTORIES=$(cd .. && pwd) git apply -C1 ../all.patch 2>/dev/null)
    grep -q 'plant::planted' "$fresh/crates/engine/src/epoch/checkpoint.rs"
    (cd "$fresh" && find . -type f) | while IFS= read -r file; do
        if ! cmp -s "$fresh/$file" "$tree/$file"; then
            mkdir -p "$(dirname "$tree/$file")"
            cp "$fresh/$file" "$tree/$file"
        fi
    done
    (cd "$tree" && find . -type f) | while IFS= read -r file; do
        if [ ! -e "$fresh/$file" ]; then rm "$tree/$file"; fi
    done
    rm -rf "$fresh"
}

# The first value of a number in the report, and the text of one in its failure.
number() { sed -nE "s/^ *\"$1\": ([0-9]+),?\$/\1/p" "$room/report.json" | sed 1q; }
failure() { sed -n '/^  "failure": {/,$p' "$room/report.json"; }

# Explores so many cases with a bug, or with none; the status is that of the program.
explore() {
    NVCARACAL_PLANT=$1 RUST_BACKTRACE=0 "$nvcaracal" sim --seed "$seed" --cases "$2" \
        --images-per-case "$images" --no-minimise --no-progress --json "$room/report.json" \
        "${jobs[@]}" >"$room/said" 2>&1
}

# The same with the library's lab, or with those of its tests whose names have a text.
explore_library() {
    NVCARACAL_PLANT=$1 NVCARACAL_FIRST_SEED=$seed NVCARACAL_LAB=$2 NVCARACAL_PATIENCE=$patience \
        RUST_BACKTRACE=0 "$lab" "$3" >"$room/said" 2>&1
}

# Explores with a bug of the library and prints its line of the table; fails if it is not found.
try_library() {
    local name=$1 status=0 noticed='NOT FOUND' found seeds=$cases
    explore_library "$name" "$cases" "$(header "$name" Lab)" || status=$?
    if [ "$status" -eq 101 ]; then
        found=$(sed -nE 's/^seed ([0-9]+)[:,].*/\1/p' "$room/said" | sed 1q)
        seeds=$((found - seed + 1))
        noticed=$(sed -nE 's/^seed [0-9]+[:,] (.*)/\1/p' "$room/said" | sed 1q)
    elif [ "$status" -ne 0 ]; then
        cat "$room/said" >&2
        noticed="exit code $status"
    fi
    printf '| %s | %s | %s | %s | |\n' "$name" "$(header "$name" Breaks)" "$noticed" "$seeds"
    [ "$status" -eq 101 ]
}

# Runs a test with a bug, or with none, and with so much of its effort.
run_test() {
    local test=$1 effort=$2
    case $test in
        shuttle) NVCARACAL_PLANT=$3 NVCARACAL_FIRST_SEED=0 NVCARACAL_EXPLORED=$effort "$shuttle" ;;
        soak) NVCARACAL_PLANT=$3 NVCARACAL_SOAK_SECONDS=$effort "$soak" ;;
    esac >"$room/said" 2>&1
}

# The same for a bug that it is to find; prints its line of the table, and fails if it does not.
try_test() {
    local name=$1 test=$2 status=0 noticed='NOT FOUND' seeds=1
    run_test "$test" "$3" "$name" || status=$?
    if [ "$status" -eq 101 ]; then
        noticed="$test: $(sed -nE '/ panicked at /{n;s/:.*//p}' "$room/said" | sed 1q)"
        if [ "$test" = shuttle ]; then seeds=$(grep -c '^seed ' "$room/said"); fi
    fi
    printf '| %s | %s | %s | %s | |\n' "$name" "$(header "$name" Breaks)" "$noticed" "$seeds"
    [ "$status" -eq 101 ]
}

# Tries a bug with everything that is to find it.
try_all() {
    local name=$1 found=0
    if [ -n "$(header "$name" Lab)" ]; then
        try_library "$name" || found=1
    elif is_of_crashes "$name"; then
        try "$name" || found=1
    fi
    if [ -n "$(header "$name" Shuttle)" ]; then
        try_test "$name" shuttle "$(header "$name" Shuttle)" || found=1
    fi
    if [ -n "$(header "$name" Soak)" ]; then
        try_test "$name" soak "$(header "$name" Soak)" || found=1
    fi
    return "$found"
}

# Explores with a bug and prints its line of the table; fails if it is not found.
try() {
    local name=$1 status=0 noticed='NOT FOUND' found shows seeds=$cases
    explore "$name" "$cases" || status=$?
    if [ "$status" -eq 1 ]; then
        found=$(failure | sed -nE 's/^ *"seed": ([0-9]+),?$/\1/p')
        seeds=$((found - seed + 1))
        noticed=$(failure | sed -nE 's/^ *"violation": "([^:]*): .*/\1/p')
        shows=$(header "$name" Shows)
        if [[ "$(failure)" != *"$shows"* ]]; then
            noticed="$noticed, but without \"$shows\""
            status=0
        fi
    elif [ "$status" -ne 0 ]; then
        cat "$room/said" >&2
        noticed="exit code $status"
    fi
    printf '| %s | %s | %s | %s | %s |\n' "$name" "$(header "$name" Breaks)" "$noticed" "$seeds" \
        "$(number images)"
    [ "$status" -eq 1 ]
}

if [ "$mode" = list ]; then
    for name in "${all[@]}"; do printf '%-26s %s\n' "$name" "$(header "$name" What)"; done
    exit
fi
check_patches
if [ "$mode" = check ]; then exit; fi

mkdir -p "$room"
copy
room=$(cd "$room" && pwd)
nvcaracal=$room/build/debug/nvcaracal
lab='' shuttle='' soak=''
# Whether the crash lab is to find a bug; whether something of a kind is to find any.
is_of_crashes() { [ -z "$(header "$1" Lab)$(header "$1" Shuttle)$(header "$1" Soak)" ]; }
are_any() {
    local name
    for name in "${names[@]}"; do if [ -n "$(header "$name" "$1")" ]; then return; fi; done
    return 1
}
of_crashes=()
for name in "${names[@]}"; do if is_of_crashes "$name"; then of_crashes+=("$name"); fi; done
build() { CARGO_TARGET_DIR=$room/build CARGO_INCREMENTAL=1 cargo "$@"; }
manifest=(--locked --manifest-path "$room/tree/Cargo.toml")
is_clean=true
if [ "${#of_crashes[@]}" -gt 0 ]; then
    build build --quiet "${manifest[@]}" -p nvcaracal-cli
    explore '' "$cases_clean" || is_clean=false
fi
# Builds a test of the library; where it is, is in `built`.
build_test() {
    build test --no-run "${manifest[@]}" -p nvcaracal "$@" 2>&1 | tee "$room/said"
    built=$(sed -nE 's/^ *Executable .*\((.*)\)$/\1/p' "$room/said")
}
if [ "$is_clean" = true ] && are_any Lab; then
    build_test --test lab
    lab=$built
    explore_library '' "$cases_clean" '' || is_clean=false
fi
if [ "$is_clean" = true ] && are_any Soak; then
    build_test --test soak
    soak=$built
    run_test soak 3 '' || is_clean=false
fi
if [ "$is_clean" = true ] && are_any Shuttle; then
    build_test --features shuttle --test shuttle
    shuttle=$built
    run_test shuttle "$cases_clean" '' || is_clean=false
fi
started=$SECONDS
if [ "$is_clean" = false ]; then
    cat "$room/said"
    echo 'the copy is not clean with no bug turned on: a patch changes more than its switch'
    exit 1
fi
found=0
echo '| planted bug | breaks | noticed by | seeds | images |'
echo '|---|---|---|---|---|'
for name in "${names[@]}"; do
    if try_all "$name"; then found=$((found + 1)); fi
done
echo
echo "$found of ${#names[@]} planted bugs found, at most $cases seeds each, from seed $seed;" \
    "$((SECONDS - started)) s"
echo "one of them, made small: NVCARACAL_PLANT=NAME $nvcaracal sim --seed $seed --images-per-case $images"
[ "$found" -eq "${#names[@]}" ]
