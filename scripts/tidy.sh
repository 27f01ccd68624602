#!/usr/bin/env bash
# Rules of the house that no compiler checks: where unsafe code and on-device structs may be, what
# the lower crates must not read, which crate may know which, which files may not import each other, how
# long lines, functions and files may be, and whether the documents name files that exist. Prints every
# breach; exit code 1 if there is one.
#
# Usage: scripts/tidy.sh      (needs bash, grep, awk, python3 and git; changes nothing)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

breaches=0

# Each line on standard input is a breach of the rule named by the arguments. Not at the end of a
# pipe, where the count would be lost: `breach RULE < <(command)`.
breach() {
    local line
    while IFS= read -r line; do
        printf 'tidy: %s: %s\n' "$*" "$line"
        breaches=$((breaches + 1))
    done
}

# Files that are tracked, or new and not ignored.
list() {
    git ls-files --cached --others --exclude-standard -- "$@" | while IFS= read -r file; do
        if [ -f "$file" ]; then printf '%s\n' "$file"; fi
    done
}

# Prints the lines of the files on standard input that match; finding nothing is fine.
search() {
    xargs -r -d '\n' grep -nH "$@" /dev/null || true
}

no_comments() {
    grep -vE '^[^:]+:[0-9]+: *//' || true
}

# The files on standard input whose names match, or do not match.
only() { grep -E "$1" || true; }
except() { grep -vE "$1" || true; }

sources=$(list '*.rs')
prose=$(list '*.md')
all=$(list '*.rs' '*.toml' '*.sh' '*.md' '.ci/run')

# --- Text ---------------------------------------------------------------------------------------

breach 'not ASCII' < <(search -P '[^\x00-\x7F]' <<<"$all" | cut -c1-120)
breach 'mark of a merge' < <(search -E '^(<<<<<<<|>>>>>>>) ' <<<"$all" | cut -c1-120)
breach 'trailing space or tab' < <(search -P '[ \t]+$|\t' <<<"$all" | cut -c1-120)
breach 'more than 100 columns' < <(search -E '^.{101,}' <<<"$sources" | cut -d: -f1,2)
# Documentation tests compile them.
breach 'an indented block of a guide, which needs a fence' < <(git ls-files 'docs/guide/*.md' | xargs awk '
    FNR == 1 { fenced = 0; blank = 1 }
    /^```/ { fenced = !fenced }
    !fenced && blank && /^    / { print FILENAME ":" FNR }
    { blank = /^[ \t]*$/ }')

# Words that mean unfinished work. Clippy sees the macros; this sees comments and other files too.
breach 'unfinished' < <(except '^scripts/tidy\.sh$' <<<"$all" \
    | search -E '\b(FIXME|XXX)\b|\b(todo|unimplemented|dbg)!\(' | cut -c1-120)

# Words that docs/glossary.md has others for. History may say what things were called.
old_words='\b([Cc]aptur(e|es|ed|ing)|[Cc]arr(y|ied|ies)|[Ss]eal(s|ed)?|[Dd]raw(s|n|ers?|ing)?|[Ll]anes?|[Ss]taged'
old_words+='|[Ss]poil(s|ed|t)?|[Dd]ebts?|[Yy]ardsticks?|[Tt]all(y|ies)|[Bb]ells?|[Cc]rew|[Vv]acancy)\b'
breach 'a word that the glossary has another one for' < <(
    except '^(scripts/tidy\.sh|CHANGELOG\.md|docs/history\.md|docs/decisions/.*)$' <<<"$all" | search -P "$old_words" \
        | { grep -vE 'mod sealed|\bSealed\b|carries through' || true; } | cut -c1-120)
# A sentence has a thing of the program as its subject.
breach 'a person where the program is meant' < <(
    only '^(crates|lab)/[a-z]+/src/' <<<"$sources" | except '/tests(/|\.rs$)|_tests?\.rs$' \
        | search -P '\b([Nn]obody|[Ww]hoever|[Ss]omebody)\b' | cut -c1-120)

# --- Size ---------------------------------------------------------------------------------------

# A file or function that is longer needs a reason, written here beside its name: `name|name`.
long_files='^$'
long_functions='^$'

breach 'more than 800 lines' < <(except "$long_files" <<<"$sources" \
    | xargs -r -d '\n' awk 'FNR == 801 { print FILENAME; nextfile }')

breach 'function of more than 70 lines' < <(except "$long_functions" <<<"$sources" \
    | xargs -r -d '\n' awk '
        FNR == 1 { start = 0 }
        /^ *(pub(\([a-z]+\))? )?(async |const |unsafe |extern "C" )*fn [a-z_0-9]+/ {
            start = FNR; match($0, /^ */); indent = RLENGTH
        }
        start && /^ *\}/ {
            match($0, /^ */)
            if (RLENGTH == indent) {
                lines = FNR - start + 1
                if (lines > 70) print FILENAME ":" start ": " lines " lines"
                start = 0
            }
        }')

# --- Bytes on the device and unsafe code --------------------------------------------------------

# `repr(C)` fixes bytes that are kept. The store's own structs are in storage's format files; what
# workloads, tests, examples and the library's `plain!` lay out are rows and arguments, which the
# store does not look into. The kernel's structs are its own.
formats='^crates/storage/src/(format/structs|input_log/format)\.rs$'
rows='^crates/workloads/src/|^crates/nvcaracal/src/data/plain\.rs$|/tests/|/examples/'
kernel='^crates/pmem/src/system/page_faults\.rs$'
breach 'repr(C) outside of a format file' < <(except "$formats|$rows|$kernel" <<<"$sources" \
    | search -E '#\[repr\([^)]*\bC\b')

# Unsafe code lives where devices, device, versions and indexes are, and where the rival engines touch
# a device's image; the crates above forbid it.
unsafe_rooms='^crates/(pmem|storage)/|^crates/engine/src/(version|index)(/|\.rs$)'
unsafe_rooms+='|^lab/testbed/src/(memory|rtm)\.rs$|^lab/arulraj/src/ground/memory\.rs$'
# What keeps values from being freed says so: implementations of `HoldsValues`, nothing else.
unsafe_rooms+='|^crates/engine/src/(worker|state/read_gate|engine/mod|recovery/scan)\.rs$'
unsafe_words='\bunsafe (fn|impl|trait|extern)\b|\bunsafe *\{|allow\(unsafe_code'
breach 'unsafe outside of its rooms' < <(except "$unsafe_rooms" <<<"$sources" \
    | search -E "$unsafe_words" | no_comments)

breach 'does not forbid unsafe code' < <(only '^(crates|lab)/[a-z]+/src/(lib|main)\.rs$' <<<"$sources" \
    | except '^(crates/(pmem|storage|engine)|lab/(testbed|arulraj))/' | while IFS= read -r root; do
        grep -q 'forbid(unsafe_code)' "$root" || echo "$root"
    done)

# --- Determinism --------------------------------------------------------------------------------

# Below the sequencer nothing reads time, randomness, the environment or thread identity (O-47).
outside='SystemTime|Instant::now|thread_rng|\brand::|RandomState::new|std::env::|thread::current'
outside+='|available_parallelism'
breach 'reads the outside world below the sequencer' < <(
    only '^crates/(storage|engine|workloads|values|sql)/src/' <<<"$sources" | search -E "$outside" | no_comments)

# --- Obligations --------------------------------------------------------------------------------

breach 'obligations' < <(scripts/obligations.sh --check 2>&1 || true)

# --- Planted bugs ---------------------------------------------------------------------------------

breach 'planted bugs' < <(scripts/plants.sh --check 2>&1 || true)

# --- Rooms --------------------------------------------------------------------------------------

# Which crate may name which, by the names that crates have for each other: those of the product
# (`crates`), then those of the lab (`lab`), of which the product names none. A new edge is a commit of
# its own that changes this table and ARCHITECTURE.md. Dependencies of tests and examples are free.
edges='
values:
sql: values
server: nvcaracal sql values
pmem:
storage: pmem
engine: pmem storage
nvcaracal: pmem storage engine derive
derive:
workloads:
bench: pmem storage engine workloads nvcaracal
cli: pmem storage engine nvcaracal bench server
demo: nvcaracal
sim: pmem storage engine
testbed: pmem workloads
arulraj: pmem workloads testbed
differential:
peers: pmem workloads nvcaracal bench
lab: pmem storage engine workloads bench testbed arulraj
lab-cli: pmem engine bench cli lab sim peers arulraj
'
breach 'an edge between crates that the table does not have' < <(
    list 'crates/*/Cargo.toml' 'lab/*/Cargo.toml' | while IFS= read -r manifest; do
        case $manifest in
            lab/bench/*) crate=lab ;;
            lab/cli/*) crate=lab-cli ;;
            *) crate=$(basename "$(dirname "$manifest")") ;;
        esac
        grep -q "^$crate:" <<<"$edges" || echo "$manifest is not in the table"
        allowed=" $(sed -n "s/^$crate://p" <<<"$edges") "
        awk '/^\[/ { on = ($0 == "[dependencies]") }
             on && /^[a-z]/ { sub(/[ .=].*/, ""); sub(/^nvcaracal-/, ""); print }' "$manifest" \
            | while IFS= read -r other; do
                if grep -q "^$other:" <<<"$edges" && [[ $allowed != *" $other "* ]]; then
                    echo "$crate -> $other"
                fi
            done
    done)

# A folder of sources is a room: files that lie beside the crate's root are few.
loose_max=8
breach "more than $loose_max files beside the crate's root" < <(
    for folder in crates/{bench,cli,nvcaracal,pmem,storage} lab/*; do
        count=$(list "$folder/src/*.rs" | grep -cE "^$folder/src/[^/]*$" || true)
        if [ "$count" -gt "$loose_max" ]; then echo "$folder/src: $count"; fi
    done)

# Within devices, store and engine imports lead one way, from room to room; nowhere do more than two
# files import each other in a circle.
breach 'imports' < <(
    export PYTHONDONTWRITEBYTECODE=1
    python3 scripts/imports.py --itself 2>&1
    python3 scripts/imports.py --rooms crates/engine crates/pmem crates/storage crates/nvcaracal 2>&1
    python3 scripts/imports.py crates/* lab/* 2>&1)

# --- Documents ----------------------------------------------------------------------------------

# The first two things that a newcomer types must be in the README as they are.
breach 'README.md does not show' < <(
    for command in 'cargo run --release -p nvcaracal-demo' 'cargo test --workspace' \
        'cargo run --release -- bench ycsb'; do
        grep -qF "$command" README.md || echo "$command"
    done)

# Files that documents and sources name must exist, from the root or from the file that names them.
breach 'names a file that does not exist' < <(
    printf '%s\n' "$prose" "$sources" | xargs -r -d '\n' grep -noE \
        '\b(crates|docs|scripts|lab/(arulraj|bench|cli|differential|peers|sim|testbed))/[A-Za-z0-9_./-]+\.(rs|md|sh|toml|golden|txt)\b' /dev/null \
        | while IFS=: read -r file line name; do
            [ -e "$name" ] || [ -e "$(dirname "$file")/$name" ] || echo "$file:$line: $name"
        done)

# Functions of numbered tables, each with its file.
breach 'names a function that its file does not have' < <(
    printf '%s\n' "$prose" | xargs -r -d '\n' \
        sed -nE 's/^\| [0-9]+ \| `([a-z0-9_]+)` \| `([^`]+)` \|.*/\1 \2/p' \
        | while read -r function file; do
            grep -qE "\bfn $function\b" "$file" || echo "$file: $function"
        done)

breach 'a link that leads nowhere' < <(
    xargs -r -d '\n' grep -noE '\]\([^)#:]+(#[^)]*)?\)' /dev/null <<<"$prose" \
        | while IFS=: read -r file line link; do
            target=${link#*](}
            target=${target%%[#)]*}
            [ -e "$(dirname "$file")/$target" ] || echo "$file:$line: $target"
        done)

if [ "$breaches" -gt 0 ]; then
    echo "tidy: $breaches breaches"
    exit 1
fi
echo 'tidy: all is well'
