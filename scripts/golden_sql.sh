#!/usr/bin/env bash
# Makes the golden answers of crates/server/tests/sql again: what psql prints of each script on a
# PostgreSQL of its own, in a temporary directory, that ends with this. Where the programs of
# PostgreSQL are is asked from pg_config or looked for where Debian has them.
#
# Usage: scripts/golden_sql.sh      (needs PostgreSQL 15; as root it runs as user nobody)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C PGTZ=UTC TZ=UTC

for bin in /usr/lib/postgresql/15/bin "$(pg_config --bindir 2>/dev/null || true)"; do
    if [ -x "$bin/initdb" ]; then break; fi
done
if [ ! -x "$bin/initdb" ]; then
    echo 'no PostgreSQL 15 is installed (Debian: postgresql-15)' >&2
    exit 1
fi
case $("$bin/postgres" --version) in
    *' 15.'*) ;;
    *) echo 'the answers are those of PostgreSQL 15' >&2; exit 1 ;;
esac

room=$(mktemp -d)
as=()
if [ "$(id -u)" -eq 0 ]; then
    chown nobody "$room"
    as=(setpriv --reuid=nobody --clear-groups)
fi
control() { (cd "$room" && "${as[@]}" "$bin/pg_ctl" -D "$room/data" -s -w "$@"); }
trap 'control stop -m immediate 2>/dev/null || true; rm -rf "$room"' EXIT
(cd "$room" && "${as[@]}" "$bin/initdb" -D "$room/data" -U nvcaracal -E UTF8 --locale=C -N >/dev/null)
control start -l "$room/log" -o "-k $room -c listen_addresses='' -c timezone=UTC"
for script in crates/server/tests/sql/*.sql; do
    "$bin/createdb" -h "$room" -U nvcaracal bank
    # As the tests run it: from the folder of the script, so that places in it have no folder.
    (cd "$(dirname "$script")" && "$bin/psql" -X -h "$room" -U nvcaracal -d bank \
        -f "$(basename "$script")" >"$(basename "$script" .sql).out" 2>&1)
    "$bin/dropdb" -h "$room" -U nvcaracal bank
    echo "made ${script%.sql}.out"
done
