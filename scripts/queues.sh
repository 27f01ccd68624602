#!/usr/bin/env bash
# Job queues and a hot row in blocks: the server beside PostgreSQL, by pgbench, in turns, both durable.
#
# Usage: scripts/queues.sh [SECONDS] [JOBS ...]     (default 6, and 20000 200000)
#
# For each number of waiting jobs, 8 clients take jobs in three ways: one UPDATE of what a query with
# SKIP LOCKED finds; the same by WITH; and a block of SELECT, UPDATE and COMMIT. Then 8 and 64 clients
# change a hot row in blocks: BEGIN, SELECT ... FOR UPDATE, UPDATE, COMMIT. Prints transactions a
# second, and blocks that were run again for each one that committed.
#
# Needs PostgreSQL 15 with pgbench (postgresql.sh), or one that runs: POSTGRESQL='-h DIR -p PORT -U USER';
# and the program (NVCARACAL names another one than that of target/release).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C

seconds=${1:-6}
sizes=("${@:2}")
if [ ${#sizes[@]} -eq 0 ]; then sizes=(20000 200000); fi
program=${NVCARACAL:-${CARGO_TARGET_DIR:-target}/release/nvcaracal}
if ! command -v pgbench >/dev/null || [ ! -x "$program" ]; then
    echo "needs pgbench, and $program (cargo build --release)" >&2
    exit 1
fi

room=$(mktemp -d)
server='' own=''
trap 'if [ -n "$own" ]; then postgresql_stop "$room"; fi
    if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" || true; fi
    rm -rf "$room"' EXIT
if [ -z "${POSTGRESQL:-}" ]; then
    . scripts/postgresql.sh
    own=1
    postgresql_start "$room" '-c max_connections=200 -c synchronous_commit=on'
    POSTGRESQL="-h $room -p 5432 -U nvcaracal"
fi
# shellcheck disable=SC2086
psql -X -q $POSTGRESQL -d postgres -c 'DROP DATABASE IF EXISTS queues' -c 'CREATE DATABASE queues' 2>/dev/null
"$program" serve "$room/store" --listen 127.0.0.1:0 --json >"$room/said" 2>&1 &
server=$!
until grep -qs '}' "$room/said"; do
    if ! kill -0 "$server" 2>/dev/null; then cat "$room/said" >&2; exit 1; fi
    sleep 0.1
done
port=$(grep -oE '127.0.0.1:[0-9]+' "$room/said" | sed 1q | cut -d: -f2)

# How a server is reached: options of psql and pgbench, and the database.
reach() {
    if [ "$1" = postgresql ]; then echo "$POSTGRESQL -d queues"; else
        echo "-h 127.0.0.1 -p $port -U nvcaracal -d nvcaracal"
    fi
}

find="SELECT id FROM job WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
cat >"$room/statement" <<SQL
UPDATE job SET state = 'done' WHERE id = ($find) RETURNING id;
SQL
cat >"$room/with" <<SQL
WITH c AS ($find) UPDATE job SET state = 'done' FROM c WHERE job.id = c.id RETURNING job.id;
SQL
cat >"$room/block" <<SQL
BEGIN;
SELECT COALESCE((SELECT id FROM ($find) c), 0) AS job \\gset
UPDATE job SET state = 'done' WHERE id = :job;
COMMIT;
SQL
cat >"$room/hot" <<'SQL'
BEGIN;
SELECT balance FROM account WHERE id = 1 FOR UPDATE \gset
UPDATE account SET balance = :balance + 1 WHERE id = 1;
COMMIT;
SQL

# Rows in parts: a statement does so many steps.
fill() {
    local at
    {
        cat <<SQL
SET client_min_messages = error;
DROP TABLE IF EXISTS job;
CREATE TABLE job (id int PRIMARY KEY, state text NOT NULL, payload text);
CREATE INDEX job_new ON job (id) WHERE state = 'new';
DROP TABLE IF EXISTS account;
CREATE TABLE account (id int PRIMARY KEY, balance bigint NOT NULL);
INSERT INTO account VALUES (1, 0);
SQL
        for ((at = 1; at <= $2; at += 20000)); do
            echo "INSERT INTO job SELECT id, 'new', 'payload'" \
                "FROM generate_series($at, least($at + 19999, $2)) id;"
        done
    } | # shellcheck disable=SC2046
        psql -X -q $(reach "$1") -v ON_ERROR_STOP=1 >/dev/null
}

# Transactions a second, and blocks run again for each that committed.
measure() {
    local which=$1 script=$2 clients=$3 said
    # shellcheck disable=SC2046
    said=$(pgbench -n -M prepared -c "$clients" -j 2 -T "$seconds" --max-tries=1000 \
        -f "$room/$script" $(reach "$which" | sed 's/ -d / /') 2>&1) || true
    awk -v which="$which" '
        /number of transactions actually processed/ { done = $NF; sub(/\/.*/, "", done) }
        /total number of retries/ { again = $NF }
        /number of failed/ { failed = $5 }
        /^tps/ { tps = $3 }
        /error|ERROR/ && !why { why = $0 }
        END {
            printf "  %-10s %10.1f/s  %.3f again", which, tps, done ? again / done : 0
            if (failed) printf "  %d failed", failed
            if (!tps) printf "  %s", why
            print ""
        }' <<<"$said"
}

for size in "${sizes[@]}"; do
    for script in statement with block; do
        echo "$size jobs waiting, 8 clients, $script:"
        for which in postgresql nvcaracal; do
            fill "$which" "$size"
            measure "$which" "$script" 8
        done
    done
done
for clients in 8 64; do
    echo "a hot row, $clients clients:"
    for which in postgresql nvcaracal; do
        fill "$which" 1
        measure "$which" hot "$clients"
    done
done
