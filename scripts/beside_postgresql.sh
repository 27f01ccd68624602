#!/usr/bin/env bash
# The server beside PostgreSQL: the same statements by pgbench, in turns, on the same disk, through Unix
# sockets, both durable.
#
# Usage: scripts/beside_postgresql.sh [ROUNDS] [SECONDS] [LOAD ...]     (default 3, 5 and all loads)
#
# For each load: transactions a second of PostgreSQL and of the server, medians of the rounds; the
# median of the rounds' ratios; microseconds of processor time that each takes for a transaction,
# without pgbench's own; for one connection, microseconds that half and 99 % of the transactions take
# at most. A load is a name and connections, as random:64:
#
#   random, hot   an update of a random row, of one row     read        a look-up by key
#   tpcb, tpcb1   pgbench's own block, 16 branches and one  pipelined   256 updates under way
#   beside        a look-up beside 32 connections that update
#   copy          rows of COPY, not transactions: pgbench's own tables, 16 branches
#
# Needs PostgreSQL 15 with pgbench (postgresql.sh), and the program built for release (NVCARACAL names
# another one).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C PGUSER=nvcaracal PGDATABASE=nvcaracal
ROWS=20000 WRITERS=32 UNDER_WAY=256

rounds=${1:-3} seconds=${2:-5}
loads=("${@:3}")
if [ ${#loads[@]} -eq 0 ]; then
    loads=(random:1 random:16 random:64 hot:64 tpcb:16 tpcb1:16 pipelined:1 read:1 read:64 beside:1
        copy:1)
fi
program=${NVCARACAL:-${CARGO_TARGET_DIR:-target}/release/nvcaracal}
. scripts/postgresql.sh
if ! command -v pgbench >/dev/null || [ ! -x "$program" ]; then
    echo "needs pgbench, and $program (cargo build --release)" >&2
    exit 1
fi
pipelined=''
if [[ " ${loads[*]} " == *' pipelined:'* ]]; then
    cargo build --release --quiet --locked -p nvcaracal-server --example pipelined
    pipelined=${CARGO_TARGET_DIR:-target}/release/examples/pipelined
fi

room=$(mktemp -d)
server=''
trap 'postgresql_stop "$room"
    if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" || true; fi
    rm -rf "$room"' EXIT
postgresql_start "$room" '-c shared_buffers=1GB -c max_connections=200 -c synchronous_commit=on'
"$postgresql_bin/createdb" -h "$room" nvcaracal
mkdir "$room/socket"
"$program" serve "$room/store" --listen 127.0.0.1:0 --socket-dir "$room/socket" --json \
    >"$room/said" 2>&1 &
server=$!
until grep -qs '}' "$room/said"; do
    if ! kill -0 "$server" 2>/dev/null; then cat "$room/said" >&2; exit 1; fi
    sleep 0.1
done
port=$(grep -oE '127.0.0.1:[0-9]+' "$room/said" | sed 1q | cut -d: -f2)
postgres=$(sed 1q "$room/data/postmaster.pid")

# Which server: host and port, for psql and pgbench.
reach() {
    if [ "$1" = postgresql ]; then echo "-h $room -p 5432"; else echo "-h $room/socket -p $port"; fi
}

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

# A server's tables for a load, as far as they are not there.
prepare() {
    local scale=16
    case $2 in
        tpcb1) scale=1 ;;
        tpcb) ;;
        copy) return ;;
        *)
            # shellcheck disable=SC2046  # the options are several words
            psql -X -q -v ON_ERROR_STOP=1 $(reach "$1") -c 'DROP TABLE IF EXISTS accounts' \
                -f "$room/load.sql" 2>/dev/null
            return
            ;;
    esac
    # shellcheck disable=SC2046
    pgbench -i -q -s "$scale" $(reach "$1") >"$room/error" 2>&1 || { cat "$room/error" >&2; exit 1; }
}

# Runs pgbench with these options; transactions a second.
bench() {
    local which=$1 clients=$2
    shift 2
    # shellcheck disable=SC2046
    pgbench -n -M prepared $(reach "$which") -c "$clients" -j $((clients < 2 ? 1 : 2)) \
        -T "$seconds" --max-tries=100 "$@" 2>"$room/error" | sed -nE 's/^tps = ([0-9.]+).*/\1/p'
}

# What half and 99 % of the transactions of pgbench's log took at most.
percentiles() {
    cat "$room"/latency.* | awk '{ print $3 }' | sort -g \
        | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)], a[int(NR * 0.99 + 0.5)] }'
    rm -f "$room"/latency.*
}

# Transactions a second, microseconds of processor time a transaction, and percentiles or dashes.
run() {
    local which=$1 load=$2 clients=$3 seconds=$seconds before tps after writers='' times='- -'
    local -a log=()
    if [ "$clients" -eq 1 ]; then log=(-l "--log-prefix=$room/latency"); fi
    before=$(spent "$which")
    case $load in
        pipelined)
            # shellcheck disable=SC2046,SC2086  # -h HOST -p PORT
            set -- $(reach "$which")
            tps=$("$pipelined" "$2" "$4" "$ROWS" "$seconds" "$UNDER_WAY") log=()
            ;;
        tpcb | tpcb1) tps=$(bench "$which" "$clients" "${log[@]}") ;;
        beside)
            bench "$which" "$WRITERS" -f "$room/random" >/dev/null &
            writers=$!
            tps=$(bench "$which" "$clients" "${log[@]}" -f "$room/read")
            wait "$writers"
            ;;
        copy)
            # shellcheck disable=SC2046
            seconds=$(pgbench -i -q -s 16 -I dtg $(reach "$which") 2>&1 | tee "$room/error" \
                | sed -nE 's/.*client-side generate ([0-9.]+) s.*/\1/p') log=()
            tps=$(awk -v seconds="$seconds" 'BEGIN { if (seconds > 0) print 1600000 / seconds }')
            ;;
        *) tps=$(bench "$which" "$clients" "${log[@]}" -f "$room/$load") ;;
    esac
    if [ -z "$tps" ]; then cat "$room/error" >&2; exit 1; fi
    after=$(spent "$which")
    if [ ${#log[@]} -gt 0 ]; then times=$(percentiles); fi
    awk -v spent=$((after - before)) -v tps="$tps" -v seconds="$seconds" -v times="$times" \
        'BEGIN { print tps, spent * 10000 / (tps * seconds), times }'
}

# The median of a column, or of a term of columns, over the rounds.
median() {
    awk "{ print $1 }" "$room/figures" | sort -g \
        | awk '{ a[NR] = $1 } END { print (a[int((NR + 1) / 2)] + a[int(NR / 2) + 1]) / 2 }'
}

# Those of both servers.
both() { printf '%.0f; %.0f' "$(median "$1")" "$(median "$2")"; }

printf '%-10s %11s %11s %11s %7s %14s %16s %16s\n' load connections PostgreSQL nvcaracal ratio \
    'us of CPU' 'p50, us' 'p99, us'
for load in "${loads[@]}"; do
    IFS=: read -r name clients <<<"$load"
    rm -f "$room"/figures
    for which in postgresql nvcaracal; do prepare "$which" "$name"; done
    for ((round = 0; round < rounds; round++)); do
        theirs=$(run postgresql "$name" "$clients")
        ours=$(run nvcaracal "$name" "$clients")
        echo "$theirs $ours" >>"$room/figures"
    done
    p50=- p99=-
    if [[ $ours != *-* ]]; then p50=$(both '$3' '$7') p99=$(both '$4' '$8'); fi
    printf '%-10s %11d %11.0f %11.0f %7.2f %14s %16s %16s\n' "$name" "$clients" "$(median '$1')" \
        "$(median '$5')" "$(median '$5 / $1')" "$(both '$2' '$6')" "$p50" "$p99"
done
