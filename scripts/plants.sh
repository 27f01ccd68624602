#!/usr/bin/env bash
# Plants bugs in a copy of the sources, one after the other, and sees whether the labs find each of
# them. The product's own code has no planted bugs.
#
# Usage: scripts/plants.sh [--seed N] [--cases N] [--jobs N] [--sample N [--pick N]] [NAME ...]
#        scripts/plants.sh --list      the names, and what is wrong
#        scripts/plants.sh --check     whether all patches apply; builds nothing
#
#   NAME        only these bugs; default: all
#   --seed N    the first seed (default 1)
#   --cases N   seeds in which each must be found (default 400)
#   --jobs N    threads that explore (default: all cores)
#   --sample N  only so many of those that the crash lab finds quickly, chosen at random
#   --pick N    which ones are chosen (default: from the clock, and printed)
#
# A bug is a file scripts/plants/NAME.patch: a head, and a change to the sources that does nothing
# unless NVCARACAL_PLANT is NAME. The head says:
#
#   What:    what is wrong
#   Breaks:  which obligations that breaks
#   Test:    the test of `nvcaracal-sim --test all` that is to find it, if it is not the crash lab
#   Engine:  the same of `nvcaracal-engine --test all`
#   Library: the same of `nvcaracal --test all`
#   Lab:     the test of the library's lab (crates/nvcaracal/tests/lab) that is to find it
#   Shuttle: explored schedules of the library (tests/shuttle) are to find it, in so many seeds
#   Soak:    the soak of the library (tests/soak.rs) is to find it, in so many seconds
#   Sql:     the test of crate sql's own (`nvcaracal-sql --lib`) that is to find it
#   Scripts: the test of the scripts of SQL (`nvcaracal-sql --test scripts`)
#   Unused:  the test of what the parser takes (`nvcaracal-sql --test unused`)
#   Server:  the test of the server over the wire (`nvcaracal-server --test wire`)
#   Store:   the test of the store behind it (`nvcaracal-server --test store`)
#   Kills:   the test of the program (`nvcaracal-cli --test all`) that runs or kills the server
#   Cuts:    the test of the laboratory's program (`nvcaracal-lab --test all`) that cuts the power of a
#            real file system, which needs root and loop devices
#   Shows:   a text that the report of the violation must have, if any
#   Images:  how many images of a case the crash lab has to look at, if 500 do not do
#   Seeds:   after how many seeds of the crash lab it was found, from the first one on; a sample has
#            those of at most 60
#
# All patches are applied to one copy, under `plants` in the target directory. It is built in the dev
# profile, beside everything else in the target directory, so that dependencies are built once; of the
# labs those that are needed. First the copy must be clean with no bug turned on. Needs bash, git and
# cargo. Exit codes: 0 all is well, 1 a bug is not found, a patch does not apply or the copy is not
# clean, 2 a wrong command line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C CARGO_TERM_COLOR=never

patches=scripts/plants
target=${CARGO_TARGET_DIR:-target}
room=$target/plants
# Enough of a case: most bugs need another case rather than more images.
images=500
# Seconds after which the library's lab takes a thread for one that waits for ever.
patience=15
# Cases in which nothing may be found when no bug is turned on.
cases_clean=4
# Most seeds after which a bug of a sample was found.
seeds_of_sample=60
# What finds a bug that does not say so: the crash lab.
crash_lab=crash::o_29_seeds_of_the_lab
# Of the crates of the copy, and of that for a sample, so that cargo tells them from those of the same
# names beside them. Other crates must take it for the one that they ask for.
version=0.1.999
version_of_sample=0.1.998
# Rows of the covering array, each of which counts as a case.
rows_of_products=89

wrong() {
    echo "error: $*; see the head of scripts/plants.sh" >&2
    exit 2
}

seed=1 cases=400 mode=run sample=0 pick='' jobs=$(nproc)
names=()
while [ $# -gt 0 ]; do
    case $1 in
        --seed | --cases | --jobs | --sample | --pick)
            [[ ${2:-} =~ ^[0-9]+$ ]] || wrong "$1 needs a number"
            printf -v "${1#--}" %s "$2"
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
        if grep -qE '^\+\+\+ .*/tests?(/|\.rs$)' "$patches/$name.patch"; then
            echo "$patches/$name.patch changes a test: the product would have no bug"
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
    git ls-files --cached --others --exclude-standard -- Cargo.toml Cargo.lock crates lab \
        | while IFS= read -r file; do if [ -f "$file" ]; then printf '%s\n' "$file"; fi; done \
        | xargs -d '\n' cp --parents -t "$fresh"
    cp "$patches/plant.rs" "$fresh/crates/pmem/src/plant.rs"
    echo 'pub mod plant;' >>"$fresh/crates/pmem/src/lib.rs"
    # What has the SQL knows nothing of devices.
    cp "$patches/plant.rs" "$fresh/crates/values/src/plant.rs"
    echo 'pub mod plant;' >>"$fresh/crates/values/src/lib.rs"
    echo 'pub use pmem::plant;' >>"$fresh/crates/storage/src/lib.rs"
    cat "$patches"/*.patch >"$room/all.patch"
    # As if there was no repository around it, whose directories the patch would not touch.
    (cd "$fresh" && GIT_CEILING_DIRECTORIES=$(cd .. && pwd) git apply -C1 ../all.patch 2>/dev/null)
    grep -q 'plant::planted' "$fresh/crates/engine/src/epoch/checkpoint.rs"
    sed -i '/^\[workspace.package\]/,/^version/ s/^version = .*/version = "'"$version"'"/' "$fresh/Cargo.toml"
    sed -i '/path = / s/version = "=[^"]*"/version = "='"$version"'"/' "$fresh/Cargo.toml"
    sed -i '/^name = "nvcaracal/ { n; s/^version = .*/version = "'"$version"'"/ }' "$fresh/Cargo.lock"
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

# What is to find a bug: a line KEY VALUE for each of its heads, or the crash lab.
searches_of() {
    local key found=''
    for key in Test Engine Library Lab Shuttle Soak Sql Scripts Unused Server Store Kills Cuts; do
        if [ -n "$(header "$1" "$key")" ]; then
            found=yes
            echo "$key $(header "$1" "$key")"
        fi
    done
    if [ -z "$found" ]; then echo "Test $crash_lab"; fi
}

# The arguments that build the test of a key.
target_of() {
    case $1 in
        Test) echo -p nvcaracal-sim --test all ;;
        Engine) echo -p nvcaracal-engine --test all ;;
        Library) echo -p nvcaracal --test all ;;
        Lab) echo -p nvcaracal --test lab ;;
        Shuttle) echo -p nvcaracal --features shuttle --test shuttle ;;
        Soak) echo -p nvcaracal --test soak ;;
        Sql) echo -p nvcaracal-sql --lib ;;
        Scripts) echo -p nvcaracal-sql --test scripts ;;
        Unused) echo -p nvcaracal-sql --test unused ;;
        Server) echo -p nvcaracal-server --test wire ;;
        Store) echo -p nvcaracal-server --test store ;;
        Kills) echo -p nvcaracal-cli --test all ;;
        Cuts) echo -p nvcaracal-lab --test all ;;
    esac
}

# Images of a case that the crash lab looks at.
images_of() {
    local of_bug=''
    if [ -n "$1" ]; then of_bug=$(header "$1" Images); fi
    echo "${of_bug:-$images}"
}

# Explores so many cases with a bug, or with none: KEY VALUE NAME CASES. The status is that of the
# test, which is 101 if it finds something.
explore() {
    local -a settings=("NVCARACAL_FIRST_SEED=$seed") tests=("$2")
    case $1 in
        Shuttle) settings=("NVCARACAL_FIRST_SEED=0" "NVCARACAL_EXPLORED=$2") tests=() ;;
        Soak) settings=("NVCARACAL_SOAK_SECONDS=$2") tests=() ;;
        *) if [ "$2" = "$crash_lab" ]; then settings+=("NVCARACAL_IMAGES=$(images_of "$3")"); fi ;;
    esac
    env "${settings[@]}" NVCARACAL_PLANT="$3" NVCARACAL_CASES="$4" NVCARACAL_JOBS="$jobs" \
        NVCARACAL_DISKS="$4" NVCARACAL_LAB="$4" NVCARACAL_PATIENCE="$patience" \
        NVCARACAL_DEFINITION_KILLS="$4" NVCARACAL_POWER_CUTS="$4" NVCARACAL_SERVER_HISTORIES="$4" \
        NVCARACAL_PRODUCTS=$((($4 + rows_of_products - 1) / rows_of_products)) RUST_BACKTRACE=0 \
        "${binaries[$1]}" --nocapture "${tests[@]}" >"$room/said" 2>&1 || return "$?"
    if grep -q '^running 0 tests' "$room/said"; then
        echo "there is no test $2 for the head $1" >>"$room/said"
        return 2
    fi
}

# The lines of the report that begin with the seed of a failure, without a number that is in front.
failures() { sed -nE "s/^(disk, )?seed ([0-9]+)[:,] (.*)/\2 \3/p" "$room/said"; }

# Explores with a bug and prints its line of the table: NAME KEY VALUE. Fails if it is not found.
try() {
    local name=$1 key=$2 status=0 noticed='NOT FOUND' shows found what='' seeds=$cases
    explore "$key" "$3" "$name" "$cases" || status=$?
    if [ "$status" -eq 101 ]; then
        case $key in
            Shuttle | Soak)
                noticed="${key,}: $(sed -nE '/ panicked at /{n;s/:.*//p}' "$room/said" | sed 1q)"
                seeds=$(grep -c '^seed ' "$room/said" || true)
                ;;
            Sql | Scripts | Unused | Server | Store | Kills | Cuts)
                noticed="${key,}: $(sed -nE '/ panicked at /{n;s/^(.{60}).*/\1.../;p}' "$room/said" | sed 1q)"
                seeds=$(($(grep -c '^kill ' "$room/said" || true) + 1))
                ;;
            *)
                read -r found what < <(failures) || true
                seeds=$((${found:-$seed} - seed + 1))
                noticed=${what%%: *}
                ;;
        esac
        shows=$(header "$name" Shows)
        if ! grep -qF -- "$shows" "$room/said"; then
            noticed="$noticed, but without \"$shows\""
            status=0
        fi
    elif [ "$status" -ne 0 ]; then
        cat "$room/said" >&2
        noticed="exit code $status"
    fi
    printf '| %s | %s | %s | %s | %s |\n' "$name" "$(header "$name" Breaks)" "$noticed" "$seeds" \
        "$(sed -nE 's/^([0-9]+) images$/\1/p' "$room/said" | sed 1q)"
    [ "$status" -eq 101 ]
}

# Tries a bug with everything that is to find it.
try_all() {
    local key value all_find=0
    while read -r key value; do try "$1" "$key" "$value" || all_find=1; done < <(searches_of "$1")
    return "$all_find"
}

if [ "$mode" = list ]; then
    for name in "${all[@]}"; do printf '%-26s %s\n' "$name" "$(header "$name" What)"; done
    exit
fi
check_patches
if [ "$mode" = check ]; then exit; fi

if [ "$sample" -gt 0 ]; then
    pick=${pick:-$(date +%s)}
    room=$room-sample
    version=$version_of_sample
    quick=()
    for name in "${names[@]}"; do
        seeds=$(header "$name" Seeds)
        if [ "${seeds:-$cases}" -le "$seeds_of_sample" ]; then quick+=("$name"); fi
    done
    mapfile -t names < <(printf '%s\n' "${quick[@]}" | shuf -n "$sample" --random-source=<(yes "$pick"))
    echo "a sample: --sample $sample --pick $pick, which is ${names[*]}"
fi

mkdir -p "$room"
copy
room=$(cd "$room" && pwd)
export CARGO_TARGET_DIR=${room%/*} CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-1}
declare -A binaries=()
# Builds the labs that are needed, and has each look for what is not there.
started=$SECONDS
build() { cargo "$@" --locked --manifest-path "$room/tree/Cargo.toml"; }
if [ "$sample" -gt 0 ]; then
    build build --quiet -p nvcaracal-sim --features seeds --bin nvcaracal-seeds
    binaries[Test]=$CARGO_TARGET_DIR/debug/nvcaracal-seeds
fi
mapfile -t searches < <(for name in "${names[@]}"; do searches_of "$name"; done | sort -u)
for search in "${searches[@]}"; do
    key=${search%% *}
    if [ -n "${binaries[$key]:-}" ]; then continue; fi
    # shellcheck disable=SC2046  # several arguments
    build test --no-run $(target_of "$key") 2>&1 | tee "$room/said"
    binaries[$key]=$(sed -nE 's/^ *Executable .*\((.*)\)$/\1/p' "$room/said")
done
echo "built in $((SECONDS - started)) s"
for search in "${searches[@]}"; do
    key=${search%% *} value=${search#* }
    case $key in Shuttle | Soak) value=3 ;; esac
    if ! explore "$key" "$value" '' "$cases_clean"; then
        cat "$room/said"
        echo 'the copy is not clean with no bug turned on: a patch changes more than its switch'
        exit 1
    fi
done
started=$SECONDS
found=0
missed=()
echo '| planted bug | breaks | noticed by | seeds | images |'
echo '|---|---|---|---|---|'
for name in "${names[@]}"; do
    if try_all "$name"; then found=$((found + 1)); else missed+=("$name"); fi
done
echo
echo "$found of ${#names[@]} planted bugs found, at most $cases seeds each, from seed $seed;" \
    "$((SECONDS - started)) s"
if [ "${#missed[@]}" -gt 0 ]; then
    echo "again: scripts/plants.sh --seed $seed --cases $cases ${missed[*]}"
    exit 1
fi
