#!/usr/bin/env bash
# Runs what other programs do with `nvcaracal serve`: drivers and frameworks, each in the version that
# is written here, from the registries of their languages, with the scripts of
# crates/server/tests/clients.
#
# Usage: scripts/clients.sh [--binary PROGRAM] [--rounds N] [--postgresql] [NAME ...]
#
#   --binary PROGRAM   the program `nvcaracal` (default: target/debug/nvcaracal)
#   --rounds N         how often each runs (default 1), on one store
#   --postgresql       runs them on a PostgreSQL 15 of its own instead (postgresql.sh); jdbc writes its
#                      golden file then. What docs/sql.md says is different fails: conflicts and numbers of
#                      sequences, in psycopg and node
#   NAME               psycopg, sqlalchemy, alembic, django, node, jdbc, pgx; default: all
#
# Packages are installed below `clients` in the target directory, never elsewhere; the server listens
# at a free port of this machine on a store in a temporary directory. Exit codes: 0 all is well, 1
# something failed, 2 a wrong command line, 3 a client could not be installed (said as SKIPPED) and no
# other one failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

python_packages=('psycopg[binary]==3.3.9' sqlalchemy==2.1.9 alembic==1.20.1 django==5.2.19)
node_package=pg@8.23.1
jdbc_version=42.7.8
# Seconds after which a client that does not end has failed.
patience=120

target=${CARGO_TARGET_DIR:-target}
binary=$target/debug/nvcaracal
rounds=1
is_postgresql=false
names=()
while [ $# -gt 0 ]; do
    case $1 in
        --binary | --rounds)
            [ $# -gt 1 ] || { echo "error: $1 needs a value" >&2 && exit 2; }
            printf -v "${1#--}" %s "$2"
            shift
            ;;
        --postgresql) is_postgresql=true ;;
        psycopg | sqlalchemy | alembic | django | node | jdbc | pgx) names+=("$1") ;;
        *) echo "error: no client is called $1; see the head of scripts/clients.sh" >&2 && exit 2 ;;
    esac
    shift
done
if ! [[ $rounds =~ ^[1-9][0-9]*$ ]]; then echo "error: $rounds is no number" >&2 && exit 2; fi
if [ "${#names[@]}" -eq 0 ]; then names=(psycopg sqlalchemy alembic django node jdbc pgx); fi
if [ "$is_postgresql" = false ] && [ ! -x "$binary" ]; then echo "error: there is no $binary" >&2 && exit 2; fi

. scripts/installers.sh
mkdir -p "$target/clients"
installed=$(cd "$target/clients" && pwd)
tests=$PWD/crates/server/tests/clients
room=$(mktemp -d)
server=''
end() {
    if [ -n "$server" ]; then kill "$server" && wait "$server"; fi
    if [ "$is_postgresql" = true ]; then postgresql_stop "$room"; fi
    rm -rf "$room"
}
trap end EXIT

if [ "$is_postgresql" = true ]; then
    . scripts/postgresql.sh
    port=$(free_port)
    postgresql_start "$room" "-c listen_addresses=127.0.0.1 -c port=$port"
    "$postgresql_bin/createdb" -h "$room" -p "$port" -U nvcaracal nvcaracal
else
    serve_start "$binary" "$room/store" "$room/said" || exit 1
fi

# Installs what one client needs: a name.
install_client() {
    case $1 in
        node) install_npm "$installed/node" "$node_package" ;;
        jdbc) install_maven "$installed/jdbc" "org.postgresql:postgresql:$jdbc_version" ;;
        pgx) build_go "$installed/pgx" "$tests/pgx" ;;
        *) install_python "$installed/python" "${python_packages[@]}" ;;
    esac
}

# Runs one client: a name.
client() {
    case $1 in
        node)
            NODE_PATH=$installed/node/node_modules PGPORT=$port timeout "$patience" \
                node "$tests/node_test.js"
            ;;
        jdbc)
            timeout "$patience" java -cp "$installed/jdbc/postgresql-$jdbc_version.jar" \
                "$tests/JdbcTest.java" "$port" "$tests/jdbc_catalog.out" "${golden[@]}"
            ;;
        pgx) timeout "$patience" "$installed/pgx" "$port" ;;
        *)
            PYTHONDONTWRITEBYTECODE=1 timeout "$patience" \
                "$installed/python/bin/python" "$tests/$1_test.py" "$port"
            ;;
    esac
}

golden=()
if [ "$is_postgresql" = true ]; then golden=(write); fi
failed=() skipped=()
for name in "${names[@]}"; do
    if ! install_client "$name" >"$room/installed" 2>&1; then
        cat "$room/installed"
        echo "SKIPPED: $name could not be installed"
        skipped+=("$name")
        continue
    fi
    for _ in $(seq "$rounds"); do
        printf '\n--- %s\n' "$name"
        if ! client "$name"; then failed+=("$name"); fi
    done
done
if [ "${#failed[@]}" -gt 0 ]; then
    echo "FAILED: ${failed[*]}"
    exit 1
fi
if [ "${#skipped[@]}" -gt 0 ]; then exit 3; fi
