#!/usr/bin/env python3
"""Writes scripts equality_*.sql for psql: every type with values that are equal and have other
bytes, in every clause that compares values. golden_sql.sh makes crates/sql/tests/slt/equality_*.slt
of them, with PostgreSQL's answers.

Usage: equality_sql.py FOLDER

Answers say which rows belong together by their ids, never the values: of equal ones any is right. A
set of ids is a number with a bit for each of them.
"""
import os
import sys

# Each type: values of which some are equal. A type of a key also has indexes and foreign keys.
SCALARS = {
    "boolean": ["t", "true", "f", "off"],
    "smallint": ["1", " 1 ", "-1", "32767", "0"],
    "integer": ["1", "+1", "-1", "2147483647", "0", "-0"],
    "bigint": ["1", "01", "-1", "9007199254740993", "9007199254740992"],
    "real": ["0", "-0", "NaN", "nan", "1", "1.0", "Infinity", "-Infinity", "16777217", "16777216"],
    "double precision": ["0", "-0", "NaN", "1", "1e0", "Infinity", "-inf", "0.1", "1e-300"],
    "numeric": ["0", "0.00", "-0", "1", "1.0", "1.00", "-1", "NaN", "Infinity", "1e20",
                "100000000000000000000.0", "12345678901234567.89", "12345678901234567.890"],
    "numeric(10,2)": ["1", "1.00", "1.001", "2.5", "-1"],
    "text": ["a", "a ", "", " ", "A", "ab", "b", "\u00e9"],
    "varchar(5)": ["a", "a ", "", "ab"],
    "char(4)": ["a", "a ", "a   ", "", "  ", "ab", "A", "a\x01", " a"],
    "bytea": ["\\x61", "a", "\\x", "\\x00", "\\x6100"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}",
             "00000000-0000-0000-0000-000000000000"],
    "date": ["2024-01-02", "20240102", "2024-01-03", "infinity", "-infinity"],
    "time": ["12:00", "12:00:00.000", "24:00", "00:00"],
    "timestamp": ["2024-01-02 12:00", "2024-01-02 12:00:00.000000", "2024-01-02", "infinity"],
    "timestamptz": ["2024-01-02 12:00+00", "2024-01-02 13:00+01", "2024-01-02", "-infinity"],
    "interval": ["1 month", "30 days", "720 hours", "31 days", "1 day", "24:00:00", "0", "-1 day",
                 "1 day -24 hours"],
    "mood": ["sad", "ok", "happy"],
}
NO_KEYS = {
    "jsonb": ["1", "1.0", "1.00", "[]", "[[]]", "[1]", "[1.0]", "[null]", "{}", '{"a":1}',
              '{"a": 1.0}', '{"a":2,"a":1}', '{"aa":1}', '{"b":1}', '{"b":1,"a":2}',
              '{"a":2.00,"b":1}', '"a"', "null", "true", "false", "-0", "0", "1e2", "100",
              "12345678901234567.89", "12345678901234567.88", "[1,2]", '[{"a":[1]}]',
              '[{"a":[1.0]}]'],
    "bpchar": ["a", "a ", "a   ", "", " ", "b"],
}
# An array of each of these has some of its values as items.
ARRAYS = ["boolean", "integer", "real", "double precision", "numeric", "text", "char(4)", "bytea",
          "timestamptz", "interval", "mood", "jsonb"]
NO_EXTREMES = ("boolean", "jsonb", "uuid", "bytea")


def quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\x01", "\\x01")
    return f"E'{escaped}'" if escaped != text else f"'{text}'"


def item(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def array_values(items: list[str]) -> list[str]:
    """Arrays of the first three values, of one, two and no items, and of other shapes."""
    first = items[:4] if len(items) > 3 else items
    ones = ["{%s}" % item(text) for text in first]
    pairs = ["{%s,%s}" % (item(first[0]), item(text)) for text in first[:3]]
    a = item(first[0])
    shapes = ["{}", "{NULL}", "{{%s}}" % a, "[2:2]={%s}" % a, "{{%s,%s}}" % (a, a),
              "{%s,NULL}" % a, "{{%s},{%s}}" % (a, a)]
    return ones + pairs + shapes


class Type:
    """Statements about one type; tables are named by a number."""

    def __init__(self, number: int, name: str, values: list[str], is_key: bool) -> None:
        self.name, self.values, self.is_key = name, values, is_key
        self.table, self.keys = f"e{number}", f"k{number}"
        self.unique, self.child = f"u{number}", f"f{number}"
        self.is_array = name.endswith("[]")

    def literal(self, text: str) -> str:
        return f"{quoted(text)}::{self.name}"

    def rows(self) -> str:
        rows = [f"({at}, {quoted(text)})" for at, text in enumerate(self.values, 1)]
        return ", ".join(rows + [f"({len(self.values) + 1}, NULL)"])

    def statements(self) -> list[str]:
        yield from self.compared()
        yield from self.grouped()
        yield from self.ordered()
        yield from self.in_queries()
        yield from self.with_constants()
        if self.is_key:
            yield from self.in_keys()

    def compared(self):
        """Operators and joins, of each pair."""
        e = self.table
        yield f"CREATE TABLE {e} (id int PRIMARY KEY, x {self.name})"
        yield f"INSERT INTO {e} VALUES {self.rows()}"
        tests = ["a.x = b.x", "a.x <> b.x", "a.x < b.x", "a.x <= b.x", "a.x > b.x", "a.x >= b.x",
                 "a.x IS DISTINCT FROM b.x", "a.x BETWEEN b.x AND b.x",
                 "a.x NOT BETWEEN b.x AND b.x", "a.x IN (b.x)", "a.x NOT IN (b.x, b.x)",
                 "CASE a.x WHEN b.x THEN true ELSE false END",
                 "nullif(a.x, b.x) IS NULL", "a.x = greatest(a.x, b.x)", "b.x = least(a.x, b.x)",
                 "(a.x, 1) = (b.x, 1)", "(a.x, 1) < (b.x, 2)", "(a.x, 1) IN ((b.x, 1))"]
        if not self.is_array:
            tests += ["a.x = ANY (ARRAY[b.x])", "a.x <> ALL (ARRAY[b.x, b.x])",
                      "ARRAY[a.x] = ARRAY[b.x]", "ARRAY[a.x] @> ARRAY[b.x]",
                      "ARRAY[a.x] && ARRAY[b.x]", "array_position(ARRAY[a.x], b.x) = 1",
                      "array_remove(ARRAY[a.x], b.x) = ARRAY[b.x]"]
        found = ", ".join(
            f"sum(1<<b.id) FILTER (WHERE {test})" for test in tests)
        yield f"SELECT a.id, {found} FROM {e} a, {e} b GROUP BY a.id ORDER BY 1"
        yield (f"SELECT a.id, sum(1<<b.id) FROM {e} a, {e} b "
               f"WHERE a.x <= b.x AND b.x <= a.x GROUP BY a.id ORDER BY 1")
        pairs = "string_agg(a.id::text || '=' || b.id::text, ' ' ORDER BY a.id, b.id)"
        yield f"SELECT {pairs} FROM {e} a JOIN {e} b ON a.x = b.x"
        yield f"SELECT {pairs} FROM {e} a JOIN {e} b ON b.x = a.x AND a.id < b.id"
        yield f"SELECT count(*) FROM {e} a LEFT JOIN {e} b ON a.x = b.x AND b.id > 2"
        yield f"SELECT count(*) FROM {e} a FULL JOIN {e} b ON a.x = b.x"
        yield f"SELECT count(*) FROM {e} a JOIN {e} b USING (x)"

    def grouped(self):
        """What makes one of equal values."""
        e = self.table
        yield (f"SELECT string_agg(ids, ' ' ORDER BY first) FROM (SELECT min(id) AS first, "
               f"sum(1<<id)::text AS ids FROM {e} GROUP BY x) q")
        yield f"SELECT count(*) FROM (SELECT DISTINCT x FROM {e}) q"
        yield f"SELECT count(*) FROM (SELECT x FROM {e} GROUP BY x HAVING count(*) > 1) q"
        yield f"SELECT count(DISTINCT x), count(x) FROM {e}"
        yield (f"SELECT sum(1<<id) FROM "
               f"(SELECT DISTINCT ON (x) id FROM {e} ORDER BY x, id) q")
        found = []
        low, high = f"SELECT x FROM {e} WHERE id % 2 = 1", f"SELECT x FROM {e} WHERE id % 2 = 0"
        for operator in ("UNION", "INTERSECT", "EXCEPT", "UNION ALL", "INTERSECT ALL",
                         "EXCEPT ALL"):
            found.append(f"(SELECT count(*) FROM ({low} {operator} {high}) q)")
        yield f"SELECT {', '.join(found)}"
        yield (f"WITH RECURSIVE r AS (SELECT x FROM {e} UNION SELECT e.x FROM {e} e JOIN r "
               f"ON e.x = r.x) SELECT count(*) FROM r")

    def ordered(self):
        """ORDER BY, windows, and the extremes."""
        e = self.table
        for direction in ("", " DESC", " NULLS FIRST"):
            yield (f"SELECT string_agg(id::text, ' ' ORDER BY x{direction}, id) FROM {e}")
        yield f"SELECT id FROM {e} ORDER BY x, id LIMIT 3"
        windows = ("count(*) OVER (PARTITION BY x)", "rank() OVER (ORDER BY x)",
                   "dense_rank() OVER (ORDER BY x DESC)",
                   "min(id) OVER (ORDER BY x RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
                   "count(*) OVER (ORDER BY x GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)")
        columns = ", ".join(f"{window} w{at}" for at, window in enumerate(windows))
        found = ", ".join(f"string_agg(w{at}::text, ' ' ORDER BY id)" for at in range(len(windows)))
        yield f"SELECT {found} FROM (SELECT id, {columns} FROM {e}) q"
        if self.name not in NO_EXTREMES:
            for extreme in ("max", "min"):
                yield (f"SELECT sum(1<<id) FROM {e} "
                       f"WHERE x = (SELECT {extreme}(x) FROM {e})")

    def in_queries(self):
        """IN, ANY, ALL and EXISTS of queries."""
        e = self.table
        some = f"SELECT x FROM {e} WHERE id > 1 AND x IS NOT NULL"
        tests = (f"x IN ({some})", f"x NOT IN (SELECT x FROM {e} WHERE id IN (1, 3))",
                 f"x = ANY ({some})", f"x <> ALL (SELECT x FROM {e} WHERE id = 1)",
                 f"x <= ALL ({some})", f"x > ANY ({some})",
                 f"(x, 1) IN (SELECT x, 1 FROM {e} WHERE id IN (1, 4))",
                 f"EXISTS (SELECT 1 FROM {e} b WHERE b.x = a.x AND b.id <> a.id)",
                 f"NOT EXISTS (SELECT 1 FROM {e} b WHERE b.x = a.x AND b.id < a.id)")
        found = ", ".join(
            f"(SELECT sum(1<<id) FROM {e} a WHERE {test})"
            for test in tests)
        yield f"SELECT {found}"

    def with_constants(self):
        """Comparisons with constants, which an index or a hash may answer; then with an index."""
        yield from self.looked_up(self.table)
        if self.is_key:
            yield f"CREATE INDEX ON {self.table} (x)"
            yield from self.looked_up(self.table)
            yield f"CREATE INDEX ON {self.table} (id, x DESC)"

    def looked_up(self, table: str):
        for text in self.values:
            one, first = self.literal(text), self.literal(self.values[0])
            tests = [f"x = {one}", f"x = {quoted(text)}", f"x >= {one}", f"x < {one}",
                     f"x BETWEEN {first} AND {one}", f"x IN ({one}, {first})",
                     f"id IN (1, 2, 3) AND x = {one}"]
            if not self.is_array:
                tests.append(f"x = ANY (ARRAY[{one}])")
            found = ", ".join(
                f"(SELECT sum(1<<id) FROM {table} WHERE {test})"
                for test in tests)
            yield f"SELECT {found}"

    def in_keys(self):
        """Primary keys, unique indexes, ON CONFLICT and foreign keys."""
        e, k, u, f = self.table, self.keys, self.unique, self.child
        distinct = (f"SELECT x, id FROM {e} a WHERE x IS NOT NULL AND NOT EXISTS "
                    f"(SELECT 1 FROM {e} b WHERE b.x = a.x AND b.id < a.id)")
        yield f"CREATE TABLE {k} (x {self.name} PRIMARY KEY, n int)"
        yield f"INSERT INTO {k} {distinct}"
        yield f"CREATE TABLE {u} (n int PRIMARY KEY, x {self.name} UNIQUE)"
        yield f"INSERT INTO {u} (x, n) {distinct}"
        count = len(self.values)
        for at, text in enumerate(self.values, 1):
            one = quoted(text)
            yield f"SELECT (SELECT n FROM {k} WHERE x = {one}), (SELECT n FROM {u} WHERE x = {one})"
            yield f"INSERT INTO {k} VALUES ({one}, 0)"
            yield f"INSERT INTO {u} (x, n) SELECT x, {at + 100} FROM {e} WHERE id = {at}"
            yield (f"INSERT INTO {k} VALUES ({one}, {at}) ON CONFLICT (x) DO UPDATE "
                   f"SET n = {k}.n + 1000 RETURNING n")
            yield f"INSERT INTO {u} VALUES ({at + 200}, {one}) ON CONFLICT DO NOTHING"
        yield f"INSERT INTO {u} VALUES (300, NULL), (301, NULL)"
        yield f"SELECT count(*), count(DISTINCT x), count(x) FROM {u}"
        pairs = "string_agg(e.id::text || '=' || o.n::text, ' ' ORDER BY e.id)"
        yield f"SELECT {pairs} FROM {e} e JOIN {k} o ON o.x = e.x"
        yield f"SELECT {pairs} FROM {e} e JOIN {u} o ON e.x = o.x"
        yield f"CREATE TABLE {f} (id int PRIMARY KEY, x {self.name} REFERENCES {k} ON UPDATE CASCADE)"
        yield f"INSERT INTO {f} SELECT id, x FROM {e}"
        yield f"DELETE FROM {k} WHERE x = {quoted(self.values[0])}"
        yield f"DELETE FROM {f} WHERE x = {quoted(self.values[0])}"
        yield f"DELETE FROM {k} WHERE x = {quoted(self.values[0])}"
        yield f"INSERT INTO {f} VALUES (100, {quoted(self.values[0])})"
        yield f"UPDATE {k} SET x = {quoted(self.values[0])} WHERE x = {quoted(self.values[-1])}"
        yield f"SELECT count(*), count(k.n), count(DISTINCT k.n) FROM {f} f LEFT JOIN {k} k USING (x)"
        yield f"DELETE FROM {e} WHERE x = {quoted(self.values[0])}"
        yield f"UPDATE {e} SET x = NULL WHERE x = {quoted(self.values[-1])}"
        yield f"SELECT count(*), count(x) FROM {e} WHERE id <= {count}"


def scalars():
    for name, values in SCALARS.items():
        yield name, values, True
    for name, values in NO_KEYS.items():
        yield name, values, False


def arrays():
    for name in ARRAYS:
        values = SCALARS.get(name) or NO_KEYS[name]
        yield f"{name}[]", array_values(values), False


MOOD = "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')"

MIXED = {
    "int2": ["1", "2", "-3"],
    "int4": ["1", "2", "100000"],
    "int8": ["1", "2", "9007199254740993"],
    "numeric": ["1.0", "1.5", "2.00", "9007199254740992.5"],
    "float4": ["1", "1.5", "0.1"],
    "float8": ["1", "2.5", "0.1", "9007199254740992"],
}
MOMENTS = {
    "date": ["2024-01-02", "2024-01-03"],
    "timestamp": ["2024-01-02", "2024-01-02 12:00"],
    "timestamptz": ["2024-01-02 00:00+00", "2024-01-02 01:00+01", "2024-01-03 12:00+00"],
}
TEXTS = {
    "text": ["a", "a ", "b", ""],
    "varchar": ["a", "a ", "b"],
    "char(4)": ["a", "a ", "b", ""],
    "char(6)": ["a  ", "b", "abcdef"],
}


def mixed():
    """Two types in one comparison: neither side is rounded to the other's type."""
    number = 0
    for family in (MIXED, MOMENTS, TEXTS):
        names = {}
        for name, values in family.items():
            number += 1
            names[name] = f"m{number}"
            rows = ", ".join(f"({at}, {quoted(text)})" for at, text in enumerate(values, 1))
            yield f"CREATE TABLE m{number} (id int PRIMARY KEY, x {name})"
            yield f"INSERT INTO m{number} VALUES {rows}"
            yield f"CREATE INDEX ON m{number} (x)"
        for left, table in names.items():
            for right, other in names.items():
                yield from of_two(table, left, other, right, family[right])


def of_two(table: str, left: str, other: str, right: str, values: list[str]):
    listed = ", ".join(f"{quoted(text)}::{right}" for text in values)
    array = "{" + ",".join(item(text) for text in values) + "}"
    ids = "sum(1<<id)"
    tests = [f"x = ANY (ARRAY[{listed}])", f"x <> ALL (ARRAY[{listed}])",
             f"x = ANY ('{array}'::{right}[])", f"NOT x <> ALL ('{array}'::{right}[])",
             f"x IN ({listed})", f"x NOT IN ({listed})", f"x IN (SELECT x FROM {other})",
             f"x NOT IN (SELECT x FROM {other})",
             f"EXISTS (SELECT 1 FROM {other} o WHERE o.x = t.x)"]
    found = ", ".join(f"(SELECT {ids} FROM {table} t WHERE {test})" for test in tests)
    yield f"SELECT {found}"
    for sign in ("=", "<", ">="):
        yield (f"SELECT string_agg(a.id::text || ' ' || b.id::text, ',' ORDER BY a.id, b.id) "
               f"FROM {table} a JOIN {other} b ON a.x {sign} b.x")
    found = ", ".join(
        f"(SELECT {ids} FROM {table} WHERE {test})"
        for text in values
        for test in (f"x = {quoted(text)}::{right}", f"x < {quoted(text)}::{right}",
                     f"x BETWEEN {quoted(text)}::{right} AND {quoted(text)}::{right}",
                     f"x IS DISTINCT FROM {quoted(text)}::{right}",
                     f"CASE x WHEN {quoted(text)}::{right} THEN true END",
                     f"nullif(x, {quoted(text)}::{right}) IS NULL"))
    yield f"SELECT {found}"
    yield (f"SELECT count(*) FROM (SELECT x FROM {table} UNION SELECT x FROM {other}) q")
    yield (f"SELECT count(*) FROM (SELECT x FROM {table} INTERSECT SELECT x FROM {other}) q")
    yield f"SELECT count(DISTINCT greatest(a.x, b.x)) FROM {table} a, {other} b"
    yield f"SELECT count(DISTINCT coalesce(nullif(a.x, a.x), b.x)) FROM {table} a, {other} b"
    yield f"SELECT count(*) FROM {table} a JOIN {other} b USING (x)"


def write(folder: str, name: str, statements) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write("-- Made by scripts/equality_sql.py: do not edit.\n")
        file.writelines(f"{statement};\n" for statement in statements)


def main() -> None:
    (folder,) = sys.argv[1:]
    for name, types in (("equality_scalars.sql", scalars()), ("equality_arrays.sql", arrays())):
        statements = [MOOD]
        for number, (own, values, is_key) in enumerate(types, 1):
            statements += Type(number, own, values, is_key).statements()
        write(folder, name, statements)
    write(folder, "equality_mixed.sql", mixed())


if __name__ == "__main__":
    main()
