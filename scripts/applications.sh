#!/usr/bin/env bash
# Runs applications, in the versions of crates/server/tests/applications/list.txt, on a PostgreSQL 15
# of its own (postgresql.sh) and on `nvcaracal serve`: the same scenario of that directory (or of
# tests/clients), which tells each of its steps. Prints a line for each: name, version, steps that
# passed there, steps that passed here, and the first one that failed here.
#
# Usage: scripts/applications.sh [--binary PROGRAM] [--markdown] [--check] [--keep DIR] [NAME ...]
#
#   --binary PROGRAM   the program `nvcaracal` (default: target/debug/nvcaracal)
#   --markdown         prints the lines of the table in docs/sql.md
#   --check            differences that this table has are no failures, only steps that passed there
#   --keep DIR         leaves what the scenarios said there, as NAME.postgresql and NAME.nvcaracal
#   NAME               default: all of crates/server/tests/applications/list.txt
#
# Packages are installed below `applications` in the target directory, never elsewhere. Each scenario
# begins with an empty database. Exit codes: 0 every step passed that passes on PostgreSQL, 1 one did
# not, 2 a wrong command line, 3 an application could not be installed (said as SKIPPED) and all else
# is well, 4 a scenario fails on PostgreSQL.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1

tests=$PWD/crates/server/tests
list=$(grep -v '^#' "$tests/applications/list.txt")
mapfile -t names < <(cut -d '|' -f 1 <<<"$list")
# Seconds after which a scenario that does not end has failed.
patience=300

target=${CARGO_TARGET_DIR:-target}
binary=$target/debug/nvcaracal
is_markdown=false is_check=false
keep=''
chosen=()
while [ $# -gt 0 ]; do
    case $1 in
        --binary | --keep)
            [ $# -gt 1 ] || { echo "error: $1 needs a value" >&2 && exit 2; }
            printf -v "${1#--}" %s "$2"
            shift
            ;;
        --markdown) is_markdown=true ;;
        --check) is_check=true ;;
        *)
            if [[ " ${names[*]} " != *" $1 "* ]]; then
                echo "error: no application is called $1; see scripts/applications.sh" >&2 && exit 2
            fi
            chosen+=("$1")
            ;;
    esac
    shift
done
if [ "${#chosen[@]}" -eq 0 ]; then chosen=("${names[@]}"); fi
if [ ! -x "$binary" ]; then echo "error: there is no $binary" >&2 && exit 2; fi

. scripts/installers.sh
. scripts/postgresql.sh
mkdir -p "$target/applications"
installed=$(cd "$target/applications" && pwd)
room=$(mktemp -d)
if [ -z "$keep" ]; then keep=$room; fi
mkdir -p "$keep"
server=''
stop_server() {
    if [ -n "$server" ]; then kill "$server" 2>/dev/null && wait "$server" || true; fi
    server=''
}
end() {
    stop_server
    postgresql_stop "$room/postgresql"
    rm -rf "$room"
}
trap end EXIT

# Looks up what an application is called, its kind, its packages and the version that counts: `title`,
# `kind`, `packages` and `version`.
describe() {
    local of
    IFS='|' read -r _ title kind of < <(grep "^$1|" <<<"$list")
    read -ra packages <<<"$of"
    version=${packages[0]##*[=@:]}
    if [ "$kind" = go ]; then
        version=$(sed -nE "s,^(require)?[[:space:]]*$of v([^ ]+).*,\2,p" "$(scenario_of "$1")/go.mod")
    fi
}

# Where the scenario of an application is.
scenario_of() {
    if [ -d "$tests/applications/$1" ]; then echo "$tests/applications/$1"; else echo "$tests/clients/$1"; fi
}

# Writes Prisma's client of the schema. The program of its migrations, which comes from no registry, is
# not needed for that, but asked for.
generate_prisma() {
    cp "$2/schema.prisma" "$1" && (cd "$1" && PRISMA_SCHEMA_ENGINE_BINARY=/bin/true \
        node_modules/.bin/prisma generate)
}

# Installs an application and builds its scenario.
install_application() {
    local name=$1 at=$installed/$1 from
    from=$(scenario_of "$name")
    case $kind in
        python | client) install_python "$at" "${packages[@]}" ;;
        npm)
            install_npm "$at" "${packages[@]}" || return
            if [ "$name" = prisma ]; then generate_prisma "$at" "$from"; fi
            ;;
        java)
            install_maven "$at" "${packages[@]}" \
                && javac -d "$at/classes" -cp "$at/*" "$tests/applications/Steps.java" "$from"/*.java
            ;;
        go) build_go "$at" "$from" ;;
    esac
}

# Runs the scenario of an application on the server at $port.
run_scenario() {
    local name=$1 at=$installed/$1 from
    from=$(scenario_of "$name")
    export PGHOST=127.0.0.1 PGPORT=$port PGUSER=nvcaracal PGDATABASE=nvcaracal
    export ROOM=$room/scenario
    rm -rf "$ROOM"
    mkdir "$ROOM"
    case $kind in
        python)
            PYTHONPATH=$tests/applications PATH=$at/bin:$PATH timeout "$patience" \
                "$at/bin/python" "$from/scenario.py"
            ;;
        client)
            timeout "$patience" "$at/bin/python" "$tests/applications/unittests.py" \
                "$tests/clients/${name}_test.py" "$port"
            ;;
        npm)
            NODE_PATH=$at/node_modules:$tests/applications PATH=$at/node_modules/.bin:$PATH \
                timeout "$patience" node --disable-warning=ExperimentalWarning "$from/scenario.js"
            ;;
        java) timeout "$patience" java -cp "$at/classes:$at/*:$from" Scenario ;;
        go) timeout "$patience" "$at" "$port" ;;
    esac
}

# Runs the scenario on one of both with an empty database, and leaves what it says in a file.
run_on() {
    local where=$1 name=$2 said=$keep/$2.$1
    if [ "$where" = postgresql ]; then
        port=$postgresql_port
        local -a at=(-h "$room/postgresql" -p "$port" -U nvcaracal)
        PGOPTIONS=--client-min-messages=warning "$postgresql_bin/dropdb" "${at[@]}" --if-exists \
            --force nvcaracal
        "$postgresql_bin/createdb" "${at[@]}" nvcaracal
    else
        serve_start "$binary" "$room/store" "$room/said" 2>"$room/told"
    fi
    # A scenario that ends in the middle has told less steps.
    (run_scenario "$name") >"$said" 2>"$said.err" </dev/null || true
    stop_server
    rm -rf "$room/store"
}

# Counts steps that passed, and all: pgx's program says `ok: NAME`.
passed() { grep -cE '^ok:? ' "$1" || true; }
told() { grep -cE '^(ok:?|failed) ' "$1" || true; }

chmod 711 "$room"
# The first difference as a cell of a table.
words() { tr -cd '\11\12\40-\176' <<<"$1" | tr '|' '/' | cut -c 1-120; }

# How many steps must pass here: as many as there, or with --check those of docs/sql.md, if it has the
# application.
least() {
    local said=''
    if [ "$is_check" = true ]; then
        said=$(awk -F ' *[|] *' -v title="$1" '$2 == title { print $5 }' docs/sql.md)
    fi
    echo "${said:-$2}"
}

mkdir "$room/postgresql"
postgresql_port=$(free_port)
postgresql_start "$room/postgresql" \
    "-c listen_addresses=127.0.0.1 -c port=$postgresql_port -c fsync=off"

failed=() skipped=() broken=()
line='%-22s %-12s %9s %6s  %s\n'
if [ "$is_markdown" = true ]; then
    line='| %s | %s | %s | %s | %s |\n'
    printf '| application | version | PostgreSQL 15 | here | first difference |\n|---|---|---|---|---|\n'
fi
for name in "${chosen[@]}"; do
    describe "$name"
    if ! install_application "$name" >"$keep/$name.installed" 2>&1; then
        # shellcheck disable=SC2059  # one of two lines
        printf "$line" "$title" "$version" - - 'SKIPPED: it cannot be installed'
        skipped+=("$name")
        continue
    fi
    run_on postgresql "$name"
    run_on nvcaracal "$name"
    there=$(passed "$keep/$name.postgresql") all=$(told "$keep/$name.postgresql")
    here=$(passed "$keep/$name.nvcaracal")
    first=$(grep -m 1 '^failed ' "$keep/$name.nvcaracal" | cut -c 8- || true)
    if [ "$here" -lt "$(least "$title" "$there")" ]; then failed+=("$name"); fi
    if [ "$there" -gt "$here" ] && [ -z "$first" ]; then
        first="ended early: $(grep -v '^ *$' "$keep/$name.nvcaracal.err" | tail -n 1)"
    fi
    # shellcheck disable=SC2059  # one of two lines
    printf "$line" "$title" "$version" "$there" "$here" "$(words "$first")"
    if [ "$there" -eq 0 ] || [ "$there" -lt "$all" ]; then
        broken+=("$name")
        echo "error: $name fails on PostgreSQL: $(grep -m 1 '^failed ' "$keep/$name.postgresql" \
            || tail -n 1 "$keep/$name.postgresql.err")" >&2
    fi
done
if [ "${#failed[@]}" -gt 0 ]; then
    echo "FAILED: ${failed[*]}" >&2
    exit 1
fi
if [ "${#broken[@]}" -gt 0 ]; then exit 4; fi
if [ "${#skipped[@]}" -gt 0 ]; then exit 3; fi
