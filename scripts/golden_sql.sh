#!/usr/bin/env bash
# Makes the golden answers of crates/server/tests/sql again: what psql prints of each script on a
# PostgreSQL of its own (postgresql.sh), in a temporary directory, that ends with this.
#
# Usage: scripts/golden_sql.sh      (needs PostgreSQL 15)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C PGTZ=UTC TZ=UTC

. scripts/postgresql.sh
room=$(mktemp -d)
trap 'postgresql_stop "$room"; rm -rf "$room"' EXIT
postgresql_start "$room" '-c timezone=UTC'
for script in crates/server/tests/sql/*.sql; do
    "$postgresql_bin/createdb" -h "$room" -U nvcaracal bank
    # As the tests run it: from the folder of the script, so that places in it have no folder.
    (cd "$(dirname "$script")" && "$postgresql_bin/psql" -X -h "$room" -U nvcaracal -d bank \
        -f "$(basename "$script")" >"$(basename "$script" .sql).out" 2>&1)
    "$postgresql_bin/dropdb" -h "$room" -U nvcaracal bank
    echo "made ${script%.sql}.out"
done
