#!/usr/bin/env python3
"""Writes a script casts.sql for psql: which types become which, by a cast, in an assignment, and
where both are compared. golden_sql.sh makes crates/sql/tests/slt/casts.slt of it, with PostgreSQL's
answers.

Usage: casts_sql.py FOLDER
"""
import os
import sys

TYPES = ["bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "bpchar",
         "bytea", "uuid", "date", "time", "timestamp", "timestamptz", "interval", "json", "jsonb"]
# Here there are more aggregates of bytea, and fewer of times, which are no intervals.
UNLIKE = ("bytea", "time")


def statements():
    columns = ", ".join(f"c_{name} {name}" for name in TYPES)
    yield f"CREATE TABLE casts (id int PRIMARY KEY, {columns})"
    for source in TYPES:
        for target in (name for name in TYPES if name != source):
            yield f"SELECT c_{source}::{target} FROM casts"
            yield f"UPDATE casts SET c_{target} = c_{source}"
            yield f"SELECT id FROM casts WHERE c_{source} = c_{target}"
        if source != "json":
            yield f"SELECT c_{source} || 'x', 'x' || c_{source} FROM casts"
        yield f"SELECT id FROM casts ORDER BY c_{source}"
        yield f"SELECT c_{source} AND true FROM casts"
        if source not in UNLIKE:
            yield f"SELECT max(c_{source}), min(DISTINCT c_{source}) FROM casts"
            yield f"SELECT sum(c_{source}) FROM casts"
            yield f"SELECT -c_{source} FROM casts"
            yield f"SELECT c_{source} + c_{source} FROM casts"
            yield f"SELECT c_{source} * 2 FROM casts"
    yield "DROP TABLE casts"
    yield from objects()


def objects():
    """Objects by their numbers."""
    yield ("SELECT 1::oid, 1::int2::oid, 1::int8::oid::int8, 1::oid::int4, 5::regclass::oid, "
           "5::oid::regtype::oid, 7::int8::regclass::oid, 1::oid = 1, 1::oid < 2::int8, 1::oid::text, "
           "greatest(1::oid, 2), 5::regclass = 5::oid")
    for value in ("1::oid::int2", "1::oid::numeric", "1::oid::bool", "1.5::oid", "true::oid",
                  "1::float8::oid", "-(1::oid)", "4294967296::oid", "1::oid + 1"):
        yield f"SELECT {value}"


def main() -> None:
    with open(os.path.join(sys.argv[1], "casts.sql"), "w", encoding="ascii") as script:
        script.writelines(f"{statement};\n" for statement in statements())


main()
