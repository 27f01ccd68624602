#!/usr/bin/env bash
# Makes the golden answers of crates/server/tests/sql again: what psql prints of each script on a
# PostgreSQL of its own (postgresql.sh), in a temporary directory, that ends with this; and the
# scripts of crates/sql/tests/slt that are made of them, and of those of equality_sql.py,
# casts_sql.py and names_sql.py.
#
# Usage: scripts/golden_sql.sh [NAME ...]      (needs PostgreSQL 15)
#
#   NAME ...   scripts of crates/server/tests/sql without `.sql`; default: all, and what is made of them
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C PGTZ=UTC TZ=UTC

. scripts/postgresql.sh
room=$(mktemp -d)
trap 'postgresql_stop "$room"; rm -rf "$room"' EXIT
postgresql_start "$room" '-c timezone=UTC'
scripts=(crates/server/tests/sql/*.sql)
if [ $# -gt 0 ]; then
    scripts=("${@/%/.sql}")
    scripts=("${scripts[@]/#/crates/server/tests/sql/}")
fi
for script in "${scripts[@]}"; do
    "$postgresql_bin/createdb" -h "$room" -U nvcaracal bank
    # As the tests run it: from the folder of the script, so that places in it have no folder.
    (cd "$(dirname "$script")" && "$postgresql_bin/psql" -X -h "$room" -U nvcaracal -d bank \
        -f "$(basename "$script")" >"$(basename "$script" .sql).out" 2>&1)
    "$postgresql_bin/dropdb" -h "$room" -U nvcaracal bank
    if ! grep -qE '^(\\|BEGIN)' "$script"; then
        # Without commands of psql and blocks it is a script for crate sql, too.
        "$postgresql_bin/createdb" -h "$room" -U nvcaracal bank
        scripts/golden_slt.py "$script" "crates/sql/tests/slt/$(basename "$script" .sql).slt" \
            "$postgresql_bin/psql" -X -h "$room" -U nvcaracal -d bank
        "$postgresql_bin/dropdb" -h "$room" -U nvcaracal bank
    fi
    echo "made ${script%.sql}.out"
done
if [ $# -gt 0 ]; then exit; fi
mkdir "$room/made"
scripts/equality_sql.py "$room/made"
scripts/casts_sql.py "$room/made"
scripts/names_sql.py "$room/made"
for script in "$room"/made/*.sql; do
    "$postgresql_bin/createdb" -h "$room" -U nvcaracal bank
    slt="crates/sql/tests/slt/$(basename "$script" .sql).slt"
    scripts/golden_slt.py "$script" "$slt" "$postgresql_bin/psql" -X -h "$room" -U nvcaracal -d bank
    "$postgresql_bin/dropdb" -h "$room" -U nvcaracal bank
    echo "made $slt"
done
