#!/usr/bin/env bash
# The server beside PostgreSQL: the same statements by pgbench, in turns, on the same disk, both durable.
#
# Usage: scripts/beside_postgresql.sh [ROUNDS] [SECONDS]     (default 3 and 5)
#
# For each load: statements a second of PostgreSQL and of the server, medians of the rounds; the median
# of the rounds' ratios; microseconds of processor time that each takes for a statement, without
# pgbench's own. Needs PostgreSQL 15 with pgbench (postgresql.sh), and the program built for release
# (NVCARACAL names another one).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C PGUSER=nvcaracal PGDATABASE=nvcaracal
ROWS=20000

rounds=${1:-3} seconds=${2:-5}
program=${NVCARACAL:-${CARGO_TARGET_DIR:-target}/release/nvcaracal}
. scripts/postgresql.sh
if ! command -v pgbench >/dev/null || [ ! -x "$program" ]; then
    echo "needs pgbench, and $program (cargo build --release)" >&2
    exit 1
fi

room=$(mktemp -d)
server=''
trap 'postgresql_stop "$room"
    if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" || true; fi
    rm -rf "$room"' EXIT
postgresql_start "$room" '-c shared_buffers=1GB -c max_connections=200 -c synchronous_commit=on'
"$postgresql_bin/createdb" -h "$room" nvcaracal
"$program" serve "$room/store" --listen 127.0.0.1:0 --json >"$room/said" 2>&1 &
server=$!
until grep -q '}' "$room/said"; do
    if ! kill -0 "$server" 2>/dev/null; then cat "$room/said" >&2; exit 1; fi
    sleep 0.1
done
port=$(grep -oE '127.0.0.1:[0-9]+' "$room/said" | sed 1q | cut -d: -f2)
postgres=$(sed 1q "$room/data/postmaster.pid")

# Which server: host and port, for psql and pgbench.
reach() { if [ "$1" = postgresql ]; then echo "-h $room -p 5432"; else echo "-h 127.0.0.1 -p $port"; fi; }

# Processor time of a server until now, in hundredths of a second, ended children included.
spent() {
    local -a all=("$server")
    if [ "$1" = postgresql ]; then
        mapfile -t all < <(echo "$postgres"; ps -o pid= --ppid "$postgres" | tr -d ' ')
    fi
    for pid in "${all[@]}"; do sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null || true; done \
        | awk '{ s += $12 + $13 + $14 + $15 } END { print s + 0 }'
}

# As long as pgbench's.
filler=$(printf '%084d' 0)
{
    echo 'CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL, filler text);'
    for ((at = 1; at <= ROWS; at += 1000)); do
        seq "$at" $((at + 999)) | awk -v filler="'$filler'" 'BEGIN { printf "INSERT INTO accounts VALUES " }
            { printf "%s(%d, 0, %s)", (NR > 1 ? "," : ""), $1, filler } END { print ";" }'
    done
} >"$room/load.sql"
random="\\set id random(1, $ROWS)"
printf '%s\nUPDATE accounts SET balance = balance + 1 WHERE id = :id;\n' "$random" >"$room/random"
echo 'UPDATE accounts SET balance = balance + 1 WHERE id = 1;' >"$room/hot"
printf '%s\nSELECT balance FROM accounts WHERE id = :id;\n' "$random" >"$room/read"
for which in postgresql nvcaracal; do
    # shellcheck disable=SC2046  # the options are several words
    psql -X -q -v ON_ERROR_STOP=1 $(reach "$which") -f "$room/load.sql"
done

# Statements a second, and microseconds of processor time a statement.
run() {
    local which=$1 load=$2 clients=$3 before tps after
    before=$(spent "$which")
    # shellcheck disable=SC2046
    tps=$(pgbench -n -M prepared $(reach "$which") -f "$room/$load" -c "$clients" -j 2 -T "$seconds" \
        2>"$room/error" | sed -nE 's/^tps = ([0-9.]+).*/\1/p')
    if [ -z "$tps" ]; then cat "$room/error" >&2; exit 1; fi
    after=$(spent "$which")
    echo "$tps $(echo "$before $after $tps $seconds" | awk '{ print ($2 - $1) * 10000 / ($3 * $4) }')"
}

median() { sort -g | awk '{ a[NR] = $1 } END { print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2 }'; }

printf '%-8s %11s %12s %12s %7s %14s %14s\n' load connections PostgreSQL nvcaracal ratio \
    'us, PostgreSQL' 'us, nvcaracal'
for load in 'random 1' 'random 16' 'random 64' 'hot 64' 'read 1' 'read 64'; do
    read -r name clients <<<"$load"
    rm -f "$room"/figures
    for ((round = 0; round < rounds; round++)); do
        theirs=$(run postgresql "$name" "$clients")
        ours=$(run nvcaracal "$name" "$clients")
        echo "$theirs $ours" >>"$room/figures"
    done
    column() { awk "{ print $1 }" "$room/figures" | median; }
    printf '%-8s %11d %12.0f %12.0f %7.2f %14.0f %14.0f\n' "$name" "$clients" "$(column '$1')" \
        "$(column '$3')" "$(column '$3 / $1')" "$(column '$2')" "$(column '$4')"
done
