#!/usr/bin/env bash
# The SQL server beside PostgreSQL 15: random schemas, rows, queries, changes, blocks and messages for
# both, and their answers compared (lab/differential). What docs/sql.md lists may differ.
#
# Usage: scripts/differential.sh [SECONDS] [FIRST_SEED] [OPTION ...]    (default 60 and a random seed)
#
#   OPTION ...   options of nvcaracal-differential: --topic keys, --scenarios 1, --out DIR, --help
#
# Needs PostgreSQL 15 (postgresql.sh). NVCARACAL and NVCARACAL_DIFFERENTIAL name the programs; they are
# built for development if they are not set. Each difference is printed as a script for psql with both
# answers and the seed. Exit codes: 0 no difference, 1 some, or more than a third of the statements are
# refused, 2 the servers cannot be run, 3 there is no PostgreSQL 15.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C CARGO_TERM_COLOR=never PGTZ=UTC TZ=UTC

seconds=${1:-60}
seed=${2:-$(date +%s)}
if ! [[ $seconds =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ ]]; then
    echo "error: $* is no time and no seed; see the head of scripts/differential.sh" >&2
    exit 2
fi
shift $(($# < 2 ? $# : 2))
if ! (. scripts/postgresql.sh); then exit 3; fi
. scripts/postgresql.sh
target=${CARGO_TARGET_DIR:-target}
if [ -z "${NVCARACAL:-}" ]; then
    cargo build --locked --quiet -p nvcaracal-cli
fi
if [ -z "${NVCARACAL_DIFFERENTIAL:-}" ]; then
    cargo build --locked --quiet -p nvcaracal-differential
fi

room=$(mktemp -d)
trap 'postgresql_stop "$room"; rm -rf "$room"' EXIT
chmod 755 "$room"
postgresql_start "$room" '-c timezone=UTC -c fsync=off -c max_connections=20'
"$postgresql_bin/createdb" -h "$room" -U nvcaracal nvcaracal
echo "seeds from $seed, $seconds s"
"${NVCARACAL_DIFFERENTIAL:-$target/debug/nvcaracal-differential}" \
    --postgresql "$room/.s.PGSQL.5432" --program "${NVCARACAL:-$target/debug/nvcaracal}" \
    --seconds "$seconds" --seed "$seed" "$@"
