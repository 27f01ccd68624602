#!/usr/bin/env bash
# Which test or check covers which obligation (O-01 to O-112), as the list of docs/obligation-tests.md; what
# they mean is in docs/obligations.md.
#
# A file covers an obligation if it names it: tests, the crash lab and scripts anywhere (O-26, or
# ranges as in "O-22 to O-25"), other sources in the name of a test (o_26_...). An obligation that
# nothing covers needs a reason in this file.
#
# Usage: scripts/obligations.sh           prints the list
#        scripts/obligations.sh --write   puts it into docs/obligation-tests.md
#        scripts/obligations.sh --check   fails if the one there is another, or an obligation is
#                                         cited that docs/obligations.md does not have
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

# Why there is no test: `number|reason`.
reasons='12|a body that never ends holds its epoch: procedures are plain compiled code, which nothing can interrupt without giving up determinism; the documentation of the library says so
17|the types say it: answers own their bytes, and what a body borrows ends with the body
60|missing: the outcome of an unanswered call cannot be asked for after a crash; procedures that must not run twice need a key of their own
63|there are no dry runs: the serial part runs what is not predicted
64|there are no dry runs'

# Lines `number file` for everything that is named.
named() {
    {
        grep -rnoE --include='*.rs' '\bO-[0-9]{2,3}( to O-[0-9]{2,3})?|\bo_[0-9]{2,3}_' \
            crates/*/tests lab/*/tests lab/sim/src crates/engine/src/models.rs || true
        grep -rnoE --include='*.rs' 'fn [a-z_0-9]*\bo_[0-9]{2,3}_' crates/*/src lab/*/src || true
        grep -nHoE '\bO-[0-9]{2,3}( to O-[0-9]{2,3})?' scripts/crash_and_return.sh || true
    } | awk -F: '{
        file = $1; text = $3
        count = 0
        while (match(text, /[Oo][_-][0-9][0-9][0-9]?/)) {
            numbers[count++] = substr(text, RSTART + 2, RLENGTH - 2) + 0
            text = substr(text, RSTART + RLENGTH)
        }
        last = count == 2 ? numbers[1] : numbers[0]
        for (n = numbers[0]; n <= last; n++) printf "%02d %s\n", n, file
    }' | sort -u
}

table() {
    named | awk -v reasons="$reasons" '
        { files[$1 + 0] = files[$1 + 0] (files[$1 + 0] == "" ? "" : ", ") "`" short($2) "`" }
        function short(file) {
            sub(/^crates\//, "", file); sub(/\/tests\/(all\/)?/, "/", file); sub(/\/src\//, "/", file)
            sub(/\.rs$/, "", file)
            return file
        }
        END {
            count = split(reasons, lines, "\n")
            for (i = 1; i <= count; i++) {
                split(lines[i], parts, "|"); reason[parts[1] + 0] = parts[2]
            }
            for (n = 1; n <= 112; n++) {
                if (n > 100 && n < 109) continue
                text = n in files ? files[n] : (n in reason ? "- (" reason[n] ")" : "NOTHING")
                printf "- O-%02d: %s\n", n, text
            }
        }'
}

document=docs/obligation-tests.md
explanations=docs/obligations.md
begin='<!-- scripts/obligations.sh: begin -->'
end='<!-- scripts/obligations.sh: end -->'

written() {
    awk -v begin="$begin" -v end="$end" '$0 == end { on = 0 } on { print } $0 == begin { on = 1 }' \
        "$document"
}

made=$(table)
if grep 'NOTHING' <<<"$made"; then
    echo 'nothing covers these obligations, and no reason is given' >&2
    exit 1
fi

# Every obligation is explained, and only these are cited.
explained=$(grep -oE '^\| O-[0-9]+' "$explanations" | grep -oE '[0-9]+')
if [ "$explained" != "$(seq -f '%02.0f' 1 112)" ]; then
    echo "$explanations must have a line for each of O-01 to O-112, in order" >&2
    exit 1
fi
unknown=$(git grep --untracked -hoE '\bO-[0-9]+' -- . ":!$explanations" | sort -u | while read -r id; do
    grep -q "^| $id |" "$explanations" || printf '%s ' "$id"
done)
if [ -n "$unknown" ]; then
    echo "cited, but not in $explanations: $unknown" >&2
    exit 1
fi
case ${1:-} in
    '') printf '%s\n' "$made" ;;
    --write)
        room=$(mktemp)
        awk -v begin="$begin" -v end="$end" -v table="$made" '
            $0 == end { on = 0 } !on { print } $0 == begin { on = 1; print table }' \
            "$document" >"$room"
        cat "$room" >"$document"
        rm "$room"
        ;;
    --check)
        if [ "$(written)" != "$made" ]; then
            echo "the list of obligations in $document is old: run scripts/obligations.sh --write" >&2
            exit 1
        fi
        ;;
    *)
        echo "usage: scripts/obligations.sh [--write | --check]" >&2
        exit 2
        ;;
esac
