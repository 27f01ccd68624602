"""psycopg 3: values both ways in text and binary, blocks, pipelines, COPY, errors, rows of cursors.

Usage: psycopg_test.py PORT      (scripts/clients.sh starts the server and calls this)
"""
import datetime
import decimal
import sys
import threading
import unittest
import uuid

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

PORT = 0


def connect(**options):
    return psycopg.connect(
        host="127.0.0.1", port=PORT, user="nvcaracal", dbname="nvcaracal", **options
    )


VALUES = {
    "b": ("boolean", True),
    "i2": ("smallint", -2),
    "i4": ("integer", 2**31 - 1),
    "i8": ("bigint", -(2**63)),
    "f4": ("real", 1.5),
    "f8": ("double precision", -0.1),
    "n": ("numeric(20,4)", decimal.Decimal("-12345678901234.5678")),
    "t": ("text", "it's \u20ac\n\\"),
    "v": ("varchar(10)", "short"),
    "y": ("bytea", bytes([0, 255, 7, 92])),
    "u": ("uuid", uuid.UUID("12345678-1234-5678-1234-567812345678")),
    "d": ("date", datetime.date(2024, 2, 29)),
    "ts": ("timestamp", datetime.datetime(1999, 12, 31, 23, 59, 59, 999999)),
    "tz": ("timestamptz", datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)),
    "iv": ("interval", datetime.timedelta(days=-3, seconds=7, microseconds=5)),
    "j": ("jsonb", {"a": [1, None, "x"], "b": {"c": 1.5}}),
}


class Psycopg(unittest.TestCase):
    def setUp(self):
        self.connection = connect(autocommit=True)
        self.addCleanup(self.connection.close)
        self.connection.execute("DROP TABLE IF EXISTS v, a")

    def test_values_come_back_as_they_went(self):
        columns = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
        self.connection.execute(f"CREATE TABLE v (id int PRIMARY KEY, {columns})")
        values = [Jsonb(v) if n == "j" else v for n, (_, v) in VALUES.items()]
        for id, sent in enumerate(("%s", "%b", "%t")):
            places = ", ".join([sent] * len(values))
            insert = f"INSERT INTO v VALUES ({id}, {places})"
            self.connection.execute(insert, values)
        nothing = ", ".join(["%s"] * len(values))
        self.connection.execute(f"INSERT INTO v VALUES (9, {nothing})", [None] * len(values))
        for binary in (False, True):
            with self.connection.cursor(binary=binary, row_factory=dict_row) as cursor:
                rows = cursor.execute("SELECT * FROM v ORDER BY id").fetchall()
            for row in rows[:3]:
                for name, (_, value) in VALUES.items():
                    self.assertEqual(row[name], value, (name, binary, row["id"]))
            self.assertEqual(set(list(rows[3].values())[1:]), {None})

    def test_lists_are_arrays(self):
        self.connection.execute("CREATE TABLE a (id int PRIMARY KEY, t text)")
        with self.connection.cursor() as cursor:
            cursor.executemany("INSERT INTO a VALUES (%s, %s)", [(n, str(n)) for n in range(10)])
            self.assertEqual(cursor.rowcount, 10)
        query = "SELECT id FROM a WHERE id = ANY(%s) ORDER BY id"
        self.assertEqual(self.connection.execute(query, [[3, 5, 99]]).fetchall(), [(3,), (5,)])
        query = "SELECT id FROM a WHERE t = ANY(%s) ORDER BY id"
        self.assertEqual(self.connection.execute(query, [["7", "x"]]).fetchall(), [(7,)])
        row = self.connection.execute("SELECT ARRAY['a', NULL, 'b,\"']").fetchone()
        self.assertEqual(row, (["a", None, 'b,"'],))

    def test_blocks_and_savepoints(self):
        self.connection.execute("CREATE TABLE a (id int PRIMARY KEY)")
        with connect() as own:
            own.execute("INSERT INTO a VALUES (1)")
            with self.assertRaises(psycopg.errors.UniqueViolation) as raised:
                with own.transaction():
                    own.execute("INSERT INTO a VALUES (2), (1)")
            self.assertEqual(raised.exception.diag.constraint_name, "a_pkey")
            with own.transaction():
                own.execute("INSERT INTO a VALUES (3)")
            self.assertEqual(self.count(), 0)
        self.assertEqual(self.count(), 2)
        with self.assertRaises(psycopg.errors.InFailedSqlTransaction):
            with connect() as own:
                with self.assertRaises(psycopg.errors.UndefinedColumn):
                    own.execute("SELECT nothing FROM a")
                own.execute("SELECT 1")

    def count(self):
        return self.connection.execute("SELECT count(*) FROM a").fetchone()[0]

    def test_a_block_that_conflicts_is_run_again(self):
        self.connection.execute("CREATE TABLE a (id int PRIMARY KEY, n int NOT NULL)")
        self.connection.execute("INSERT INTO a VALUES (1, 0)")
        for level in psycopg.IsolationLevel:
            with connect() as own:
                own.isolation_level = level
                with self.assertRaises(psycopg.errors.SerializationFailure):
                    with own.transaction():
                        n = own.execute("SELECT n FROM a").fetchone()[0]
                        self.connection.execute("UPDATE a SET n = n + 1")
                        own.execute("UPDATE a SET n = %s", [n + 10])
                with own.transaction():
                    n = own.execute("SELECT n FROM a").fetchone()[0]
                    own.execute("UPDATE a SET n = %s", [n + 10])
        self.assertEqual(self.connection.execute("SELECT n FROM a").fetchone()[0], 44)
        with connect() as own:
            own.read_only = True
            with self.assertRaises(psycopg.errors.ReadOnlySqlTransaction):
                own.execute("DELETE FROM a")

    def test_pipelines(self):
        self.connection.execute("CREATE TABLE a (id int PRIMARY KEY)")
        with self.connection.pipeline():
            cursors = [self.connection.cursor() for _ in range(100)]
            for n, cursor in enumerate(cursors):
                cursor.execute("INSERT INTO a VALUES (%s) RETURNING id", [n])
            self.assertEqual([cursor.fetchone() for cursor in cursors], [(n,) for n in range(100)])
        with self.assertRaises(psycopg.errors.UniqueViolation):
            with self.connection.pipeline():
                self.connection.execute("INSERT INTO a VALUES (200)")
                self.connection.execute("INSERT INTO a VALUES (7)")
        self.assertEqual(self.count(), 100)

    def test_copy(self):
        self.connection.execute("CREATE TABLE a (id int PRIMARY KEY, t text, d date)")
        rows = [(n, None if n % 3 else "\t\\x", datetime.date(2024, 1, 1)) for n in range(1000)]
        with self.connection.cursor() as cursor:
            with cursor.copy("COPY a FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
            self.assertEqual(cursor.rowcount, 1000)
            with cursor.copy("COPY a TO STDOUT") as copy:
                copy.set_types(["int4", "text", "date"])
                self.assertEqual(list(copy.rows()), rows)
        with self.assertRaises(psycopg.errors.BadCopyFileFormat):
            with self.connection.cursor() as cursor, cursor.copy("COPY a FROM STDIN") as copy:
                copy.write(b"2000\n")
        with self.assertRaises(ZeroDivisionError):
            with self.connection.cursor() as cursor, cursor.copy("COPY a FROM STDIN") as copy:
                copy.write_row((2000, "", None))
                1 / 0
        self.assertEqual(self.count(), 1000)

    def test_a_statement_is_prepared_and_its_table_changes(self):
        self.connection.execute("CREATE TABLE a (id int PRIMARY KEY)")
        self.connection.execute("INSERT INTO a VALUES (1)")
        for _ in range(10):
            row = self.connection.execute("SELECT id FROM a WHERE id = %s", [1]).fetchone()
            self.assertEqual(row, (1,))
        self.connection.execute("ALTER TABLE a ADD COLUMN t text DEFAULT 'x'")
        for _ in range(10):
            self.connection.execute("SELECT id FROM a WHERE id = %s", [1], prepare=True)
        row = self.connection.execute("SELECT * FROM a WHERE id = %s", [1], prepare=True)
        self.assertEqual(row.fetchone(), (1, "x"))

    def test_named_cursors(self):
        for options in ({}, {"withhold": True}):
            for binary in (False, True):
                with connect() as own, own.cursor("rows", binary=binary, **options) as cursor:
                    cursor.itersize = 7
                    cursor.execute("SELECT n, n::text FROM generate_series(1, %s) AS n", [20])
                    self.assertEqual(cursor.description[1].name, "n")
                    self.assertEqual(cursor.fetchone(), (1, "1"))
                    self.assertEqual(len(cursor.fetchmany(2)), 2)
                    if options:
                        own.commit()
                    self.assertEqual([n for n, _ in cursor], list(range(4, 21)))

    def test_a_long_query_is_cancelled(self):
        self.connection.execute("CREATE TABLE a (id int PRIMARY KEY)")
        self.connection.execute("INSERT INTO a SELECT n FROM generate_series(1, 1000) AS n")
        is_over = threading.Event()

        def cancel():
            while not is_over.is_set():
                self.connection.cancel_safe()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        try:
            with self.assertRaises(psycopg.errors.QueryCanceled):
                joined = "a w, a x, a y, a z WHERE w.id + x.id + y.id + z.id < 0"
                self.connection.execute(f"SELECT count(*) FROM {joined}")
        finally:
            is_over.set()
            canceller.join()
        self.assertEqual(self.count(), 1000)

    def test_notifications(self):
        with connect(autocommit=True) as own, connect(autocommit=True) as other:
            own.execute("LISTEN a")
            with other.transaction():
                for number in range(3):
                    other.execute("SELECT pg_notify(%s, %s)", ["a", str(number)])
            told = own.notifies(timeout=30, stop_after=3)
            self.assertEqual([(one.channel, one.payload) for one in told], [("a", "0"), ("a", "1"), ("a", "2")])
            own.execute("UNLISTEN *")
            own.execute("NOTIFY a")
            self.assertEqual(list(own.notifies(timeout=0.01)), [])

    def test_advisory_locks(self):
        with connect(autocommit=True) as own, connect(autocommit=True) as other:
            asked = "SELECT pg_try_advisory_lock(%s)"
            self.assertEqual(own.execute("SELECT pg_advisory_lock(%s)", [7]).fetchone(), ("",))
            self.assertEqual(other.execute(asked, [7]).fetchone(), (False,))
            own.execute("SELECT pg_advisory_unlock(%s)", [7])
            self.assertEqual(other.execute(asked, [7]).fetchone(), (True,))

    def test_the_connection_knows_the_server(self):
        info = self.connection.info
        self.assertEqual(info.server_version // 10000, 15)
        self.assertEqual(info.encoding, "utf-8")
        self.assertEqual(info.parameter_status("integer_datetimes"), "on")
        self.assertEqual(self.connection.execute("SHOW timezone").fetchone(), ("UTC",))


if __name__ == "__main__":
    PORT = int(sys.argv.pop(1))
    unittest.main(verbosity=2)
