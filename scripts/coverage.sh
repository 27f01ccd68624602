#!/usr/bin/env bash
# Which code of `pmem`, `storage` and `engine` the crash lab reaches: of each file the lines, regions
# and functions, and then the functions that nothing reached. Code that no history reaches is not
# tested.
#
# Usage: scripts/coverage.sh [SECONDS] [FIRST_SEED]
#
#   SECONDS      of each of the three kinds of lab: memory, files, damage (default 60)
#   FIRST_SEED   where their seeds begin (default 1)
#
# Uses the compiler's own source coverage, with any toolchain; its tools are a part of it that is
# added if it is missing (`rustup component add llvm-tools`). Builds, and writes everything, in
# target/coverage: `regions.txt` has the regions that were not reached.
#
# A region is code without a branch in it, so the regions stand for the branches. Of generic code,
# and of code that was compiled into several crates, each line, region or function counts as reached
# if it was in any of its copies. Exit codes: 0 measured, 1 the lab found a violation, 2 a wrong
# command line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C CARGO_TERM_COLOR=never

seconds=${1:-60}
seed=${2:-1}
if ! [[ $seconds =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ ]]; then
    echo "error: $* is no time and no seed; see the head of scripts/coverage.sh" >&2
    exit 2
fi
tools=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
if [ ! -x "$tools/llvm-cov" ]; then rustup component add llvm-tools; fi
demangle=$(command -v llvm-cxxfilt || command -v c++filt || echo cat)

out=${CARGO_TARGET_DIR:-target}/coverage
mkdir -p "$out"
out=$(cd "$out" && pwd)
lab=$out/debug/nvcaracal-lab
# Build scripts and macros are instrumented too, and write their counts where they run: here.
export LLVM_PROFILE_FILE=$out/%p.profraw
RUSTFLAGS='-C instrument-coverage' CARGO_TARGET_DIR=$out \
    cargo build --locked -p nvcaracal-lab
rm -f "$out"/*.profraw

for device in crash file damage; do
    printf '\n=== %s\n' "$device"
    "$lab" sim --device "$device" --seconds "$seconds" --seed "$seed" --no-progress
done
"$tools/llvm-profdata" merge --sparse "$out"/*.profraw -o "$out/lab.profdata"

from_lab() {
    "$tools/llvm-cov" export "$lab" --instr-profile="$out/lab.profdata" "$@" \
        "$PWD"/crates/{pmem,storage,engine}/src
}
from_lab --format=lcov --skip-functions >"$out/lines.info"
# One function a line, with its name, file and regions.
from_lab --format=text --skip-expansions | sed 's/{"branches"/\n&/g' |
    grep '^{"branches"' | "$demangle" >"$out/functions.json"

awk -v here="$PWD/" -v unreached="$out/regions.txt" '
    function file_of(path) { return index(path, here) == 1 ? substr(path, length(here) + 1) : "" }
    # Lines, as the tool adds them up over all copies.
    FNR == NR && /^SF:/ { file = file_of(substr($0, 4)); next }
    FNR == NR && /^DA:/ {
        split(substr($0, 4), line, ",")
        lines[file]++
        lines_hit[file] += line[2] > 0
        next
    }
    FNR == NR { next }
    # Functions and regions: fields of the text that llvm-cov writes.
    {
        split($0, part, /"filenames":\["|"\],"mcdc_records"|"name":"|","regions":\[\[|\]\]/)
        file = file_of(part[2])
        if (file !~ /^crates\/(pmem|storage|engine)\/src\//) next
        count = split(part[5], region, /\],\[/)
        for (i = 1; i <= count; i++) {
            split(region[i], n, ",")
            # Of this file, and code.
            if (n[6] != 0 || n[8] != 0) continue
            place = file ":" n[1] ":" n[2] "-" n[3] ":" n[4]
            if (i == 1) {
                function_at = place
                if (!(place in name)) { name[place] = part[4]; start[place] = file ":" n[1] }
                function_hit[place] += n[5] > 0
            }
            file_of_region[place] = file
            region_hit[place] += n[5] > 0
        }
    }
    END {
        for (place in file_of_region) {
            file = file_of_region[place]
            regions[file]++
            regions_hit[file] += region_hit[place] > 0
            if (!region_hit[place]) print place | ("sort -t: -k1,1 -k2,2n >" unreached)
        }
        for (place in name) {
            file = file_of_region[place]
            functions[file]++
            functions_hit[file] += function_hit[place] > 0
        }
        for (file in functions) {
            split(file, step, "/")
            print row(file)
            crate = "crates/" step[2] " in all"
            lines[crate] += lines[file]; lines_hit[crate] += lines_hit[file]
            regions[crate] += regions[file]; regions_hit[crate] += regions_hit[file]
            functions[crate] += functions[file]; functions_hit[crate] += functions_hit[file]
            crates[crate] = 1
        }
        for (crate in crates) print row(crate)
        for (place in name) {
            if (!function_hit[place]) print "never " start[place] " " plain(name[place])
        }
    }
    function share(hit, of) { return sprintf("%5d of %5d %5.1f %%", hit, of, of ? 100 * hit / of : 100) }
    function row(file) {
        return sprintf("%-48s %s %s %s", file, share(lines_hit[file], lines[file]),
            share(regions_hit[file], regions[file]), share(functions_hit[file], functions[file]))
    }
    # A name without hashes and without type arguments, which are those of some copy.
    function plain(text, before) {
        gsub(/\[[0-9a-f]+\]/, "", text)
        gsub(/\[[^]\[]*\]/, "[]", text)
        gsub(/->/, "=>", text)
        while (match(text, /<[^<>]*>/)) {
            before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
            text = substr(text, 1, RSTART - 1) \
                (before ~ /[A-Za-z0-9_:]/ ? "" : "\001" substr(text, RSTART + 1, RLENGTH - 2) "\002") \
                substr(text, RSTART + RLENGTH)
        }
        gsub(/::::|::$/, "::", text)
        sub(/::$/, "", text)
        gsub("\001", "<", text); gsub("\002", ">", text)
        return text
    }
' "$out/lines.info" "$out/functions.json" | sort >"$out/report.txt"

printf '\n%-48s %22s %22s %22s\n' 'reached of' lines regions functions
grep -v '^never ' "$out/report.txt"
# Other devices, and what is there for other tests, have no place in the lab.
elsewhere='^crates/pmem/src/(dax|dram|delayed|emulated/device/mod|measure/area|spec|crash/(device|history))\.rs'
printf '\nnever reached, but for other devices:\n'
sed -n 's/^never //p' "$out/report.txt" | grep -vE "$elsewhere" | sort -t: -k1,1 -k2,2n
