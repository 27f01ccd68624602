#!/usr/bin/env python3
"""Writes a script for psql: names that could be taken for something else, as those of tables,
views, queries, aliases and columns. golden_sql.sh makes crates/sql/tests/slt/names_taken.slt of it,
with PostgreSQL's answers.

Usage: names_sql.py FOLDER
"""
import os
import sys

# What scopes, catalogs, plans and PostgreSQL call things of their own.
NAMES = ["excluded", "new", "old", "?rows?", "?column?", "expr", "values", "*VALUES*", "column1",
         "unnamed_join", "unnamed_subquery", "*SELECT* 1", "unnest", "generate_series", "0", "$1",
         "ordinality", "oid", "pg_x", "public", "pg_catalog", "a.b", "A", "rows", "count", "isnull",
         "select", "x y", "_text", "_int4", "int4", "row", "lateral", "recursive", "only"]


def quoted(name: str) -> str:
    return '"%s"' % name.replace('"', '""')


def of_tables(name: str):
    n = quoted(name)
    yield f"CREATE TABLE {n} (id int PRIMARY KEY, v text, n int)"
    yield f"INSERT INTO {n} VALUES (1, 'a', 5), (2, 'b', 6), (3, 'c', 7)"
    yield f"SELECT * FROM {n} ORDER BY id"
    yield f"SELECT v, {n}.n, {n}.* FROM {n} WHERE n > 5 ORDER BY id"
    yield f"CREATE TABLE copied AS SELECT * FROM {n}"
    yield "SELECT id, v, n FROM copied ORDER BY id"
    yield "DROP TABLE copied"
    yield "CREATE TABLE w (a int PRIMARY KEY, b text, c int)"
    yield f"INSERT INTO w SELECT * FROM {n} WHERE id < 3"
    yield (f"INSERT INTO w (a, b) SELECT id, v || 'x' FROM {n} ON CONFLICT (a) "
           f"DO UPDATE SET b = excluded.b, c = w.c + 1 RETURNING *")
    yield (f"INSERT INTO w (a, b) SELECT id, v FROM (SELECT * FROM {n}) {n} ON CONFLICT (a) "
           f"DO UPDATE SET b = excluded.b")
    yield f"SELECT * FROM w JOIN {n} ON a = id WHERE v = b ORDER BY 1"
    yield f"SELECT * FROM w AS {n} ORDER BY 1"
    yield f"SELECT * FROM w NATURAL JOIN (VALUES (1, 2), (2, 3)) {n} (a, q) ORDER BY a, b, q"
    yield f"SELECT id, unnest(ARRAY[1, 2]) FROM {n} ORDER BY 1, 2"
    yield f"UPDATE {n} SET v = 'z' WHERE n = 5 RETURNING *"
    yield f"UPDATE w SET b = v FROM {n} WHERE id = a AND n = 5"
    yield f"DELETE FROM {n} WHERE v = 'z' RETURNING id, v"
    yield f"SELECT * FROM w ORDER BY a"
    yield f"INSERT INTO {n} (id, v, n) VALUES (4, 'd', 8) RETURNING *"
    yield (f"INSERT INTO {n} AS o (id, v, n) VALUES (4, 'e', 9) ON CONFLICT (id) "
           f"DO UPDATE SET v = excluded.v, n = o.n RETURNING id, v, o.n")
    yield (f"INSERT INTO {n} (id, v, n) VALUES (4, 'f', 9) ON CONFLICT (id) "
           f"DO UPDATE SET v = excluded.v")
    yield "DROP TABLE w"
    yield f"DROP TABLE {n}"


def of_queries(name: str):
    n = quoted(name)
    yield f"CREATE VIEW {n} AS SELECT 1 AS q, 'x' AS r"
    yield f"SELECT * FROM {n}"
    yield f"SELECT q, {n}.r FROM {n} WHERE q = 1"
    yield f"DROP VIEW {n}"
    yield f"WITH {n} AS (SELECT 1 AS x, 2 AS y) SELECT *, x FROM {n}"
    yield f"SELECT *, column1 FROM (VALUES (1, 2)) {n}"
    yield f"SELECT * FROM (SELECT 1 AS a, 2 AS b) {n} JOIN (SELECT 1 AS a, 3 AS c) o USING (a)"
    yield f"SELECT *, unnest(ARRAY[3]) FROM (SELECT 1 AS a) {n}"
    yield f"SELECT * FROM unnest(ARRAY[1, 2]) {n}"
    yield f"SELECT (SELECT a FROM (SELECT o.x AS a) {n}) FROM (VALUES (1), (2)) o (x)"


def of_columns(name: str):
    n = quoted(name)
    yield f"CREATE TABLE c (id int PRIMARY KEY, {n} int)"
    yield f"INSERT INTO c (id, {n}) VALUES (1, 5), (2, NULL)"
    yield f"CREATE INDEX ON c ({n})"
    yield f"SELECT {n}, c.{n} AS x, {n} + 1 AS y FROM c WHERE {n} = 5"
    yield f"SELECT * FROM (SELECT {n} FROM c) q ORDER BY {n}"
    yield f"SELECT {n}, unnest(ARRAY[1]) FROM c ORDER BY id"
    yield f"SELECT {n} AS x, unnest(ARRAY[1]) FROM c ORDER BY id"
    yield f"SELECT 1 AS {n}, unnest(ARRAY[2]) AS o"
    yield f"SELECT max({n}), count(*) FROM c GROUP BY {n} HAVING {n} > 1"
    yield (f"INSERT INTO c (id, {n}) VALUES (1, 7) ON CONFLICT (id) DO UPDATE "
           f"SET {n} = excluded.{n} RETURNING {n}")
    yield f"SELECT * FROM c JOIN (SELECT 7 AS {n}) o USING ({n})"
    yield "DROP TABLE c"


def write(folder: str, name: str, statements) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write("-- Made by scripts/names_sql.py: do not edit.\n")
        file.writelines(f"{statement};\n" for statement in statements)


def main() -> None:
    folder = sys.argv[1]
    of_names = (of_tables, of_queries, of_columns)
    relations = [one for name in NAMES for of in of_names for one in of(name)]
    write(folder, "names_taken.sql", relations)


if __name__ == "__main__":
    main()
