#!/usr/bin/env bash
# Rules of the house that no compiler checks: where unsafe code and on-medium structs may be, what
# the lower crates must not read, which crate may know which, how long lines, functions and files
# may be, and whether the documents name files that exist. Prints every breach and exits with 1 if
# there is one.
#
# Usage: scripts/tidy.sh      (needs bash, grep, awk and git; changes nothing)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

breaches=0

# Takes lines on standard input; each is a breach of the rule named by the arguments.
breach() {
    local line
    while IFS= read -r line; do
        printf 'tidy: %s: %s\n' "$*" "$line"
        breaches=$((breaches + 1))
    done
}

# Files of the project with one of these endings: tracked, or new and not ignored.
files() {
    local ending
    for ending in "$@"; do
        git ls-files --cached --others --exclude-standard -- "*.$ending" | while IFS= read -r file; do
            if [ -f "$file" ]; then printf '%s\n' "$file"; fi
        done
    done
}

# grep that is content with finding nothing. The files come on standard input.
search() {
    xargs -r -d '\n' grep -nH "$@" /dev/null || true
}

sources=$(files rs)
prose=$(files md)
all=$(files rs toml sh md; echo .ci/run)

# --- Text ------------------------------------------------------------------------------------------------

breach "not ASCII" < <(printf '%s\n' "$all" | search -P '[^\x00-\x7F]' | cut -c1-120)
breach "trailing space or tab" < <(printf '%s\n' "$all" | search -P '[ \t]+$|\t' | cut -c1-120)
breach "more than 100 columns" < <(printf '%s\n' "$sources" | search -E '^.{101,}' | cut -d: -f1,2)

# Words that mean unfinished work. Clippy sees the macros; this sees comments and other files too.
breach "unfinished" < <(printf '%s\n' "$all" | grep -v '^scripts/tidy\.sh$' \
    | search -E '\b(FIXME|XXX)\b|todo!\(|unimplemented!\(|dbg!\(' | cut -c1-120)

# --- Size ------------------------------------------------------------------------------------------------

# A longer file or function needs a reason, written here as `path|path`.
long_files='^$'
long_functions='^$'

breach "more than 800 lines" < <(printf '%s\n' "$sources" | grep -vE "$long_files" \
    | xargs -r -d '\n' awk 'FNR == 801 { print FILENAME; nextfile }')

breach "function of more than 70 lines" < <(printf '%s\n' "$sources" | grep -vE "$long_functions" \
    | xargs -r -d '\n' awk '
        FNR == 1 { start = 0 }
        /^ *(pub(\([a-z]+\))? )?(async |const |unsafe |extern "C" )*fn [a-z_0-9]+/ {
            start = FNR; match($0, /^ */); indent = RLENGTH
        }
        start && /^ *\}/ {
            match($0, /^ */)
            if (RLENGTH == indent) {
                if (FNR - start + 1 > 70) print FILENAME ":" start ": " FNR - start + 1 " lines"
                start = 0
            }
        }')

# --- Bytes on the medium and unsafe code -----------------------------------------------------------------

# `repr(C)` fixes bytes that are kept. The store's own structs are in storage's format files; what
# workloads, tests, examples and the library's `plain!` lay out are rows and arguments, which the
# store does not look into.
breach "repr(C) outside of a format file" < <(printf '%s\n' "$sources" \
    | grep -vE '^crates/storage/src/(format|input_log/format)\.rs$' \
    | grep -vE '^crates/workloads/src/|^crates/nvcaracal/src/data\.rs$|/tests/|/examples/' \
    | search -E '^ *#\[repr\([^)]*\bC\b')

# Unsafe code lives where the devices, the medium, versions and indexes are; everything above must
# forbid it.
breach "unsafe outside of pmem, storage, engine::version and engine::index" < <(printf '%s\n' "$sources" \
    | grep -vE '^crates/(pmem|storage)/|^crates/engine/src/(version|index)(/|\.rs$)' \
    | search -E '\bunsafe (fn|impl|trait|extern)\b|\bunsafe *\{|allow\(unsafe_code' | grep -vE ':[0-9]+: *//')

for crate in $(git ls-files --cached --others --exclude-standard -- 'crates/*/src/lib.rs' 'crates/*/src/main.rs'); do
    case $crate in
        crates/pmem/* | crates/storage/* | crates/engine/*) ;;
        *) grep -q 'forbid(unsafe_code)' "$crate" || echo "$crate" | breach "does not forbid unsafe code" ;;
    esac
done

# --- Determinism -----------------------------------------------------------------------------------------

# Below the sequencer nothing reads time, randomness, the environment or thread identity (O-47).
breach "reads the outside world below the sequencer" < <(printf '%s\n' "$sources" \
    | grep -E '^crates/(storage|engine|workloads)/src/' \
    | search -E 'SystemTime|Instant::now|thread_rng|rand::|RandomState::new|std::env::|thread::current|available_parallelism' \
    | grep -vE ':[0-9]+: *//')

# --- Rooms -----------------------------------------------------------------------------------------------

# Which crate may name which. A new edge is a commit of its own that changes this table and
# ARCHITECTURE.md.
edges='
pmem:
storage: pmem
engine: pmem storage
nvcaracal: pmem storage engine
workloads:
bench: pmem storage engine workloads
cli: pmem storage bench
'
for manifest in $(git ls-files --cached --others --exclude-standard -- 'crates/*/Cargo.toml'); do
    crate=${manifest#crates/}
    crate=${crate%/Cargo.toml}
    allowed=$(printf '%s\n' "$edges" | sed -n "s/^$crate://p")
    # Dependencies of tests and examples are free: only what is built into the crate counts.
    used=$(awk '/^\[/ { on = ($0 == "[dependencies]") } on && /^[a-z]/ { sub(/[ .=].*/, ""); print }' "$manifest")
    for other in $used; do
        if [ -d "crates/$other" ] && ! printf ' %s ' "$allowed" | grep -q " $other "; then
            echo "$crate -> $other" | breach "an edge between crates that the table does not have"
        fi
    done
    grep -q "^$crate:" <<<"$edges" || echo "$crate" | breach "a crate that the table of edges does not have"
done

# --- Documents -------------------------------------------------------------------------------------------

# The first two things that a newcomer types must be in the README as they are.
for command in 'cargo run --release -- bench ycsb' 'cargo test --workspace'; do
    grep -qF "$command" README.md || echo "$command" | breach "README.md does not show"
done

# Files that documents and sources name must exist. `{a,b}` and `*` stand for several and are not
# checked.
breach "names a file that does not exist" < <(
    printf '%s\n' "$prose" "$sources" | xargs -r -d '\n' \
        grep -noE '\b(crates|docs|scripts)/[A-Za-z0-9_./-]+\.(rs|md|sh|toml|golden|txt)\b' /dev/null \
        | while IFS=: read -r file line name; do
            [ -e "$name" ] || [ -e "$(dirname "$file")/$name" ] || echo "$file:$line: $name"
        done)

# Relative links between documents.
breach "a link that leads nowhere" < <(
    printf '%s\n' "$prose" | xargs -r -d '\n' grep -noE '\]\([^)#:]+(#[^)]*)?\)' /dev/null \
        | while IFS=: read -r file line link; do
            target=${link#*](}
            target=${target%%[#)]*}
            [ -e "$(dirname "$file")/$target" ] || echo "$file:$line: $target"
        done)

if [ "$breaches" -gt 0 ]; then
    echo "tidy: $breaches breaches"
    exit 1
fi
echo "tidy: all is well"
