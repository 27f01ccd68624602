"""Alembic: what its autogenerate finds after the tables were made is nothing, and what SQLAlchemy
reflects is what PostgreSQL 15 shows of the same tables.

Usage: alembic_test.py PORT      (scripts/clients.sh starts the server and calls this)
"""
import sys
import unittest

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy.dialects import postgresql as pg

PORT = 0

METADATA = sa.MetaData()
PERSON = sa.Table(
    "person", METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(40), nullable=False, server_default="x", comment="a name"),
    sa.Column("email", sa.Text, unique=True),
    sa.Column("credit", sa.Numeric(10, 2), server_default="0"),
    sa.Column("at", sa.DateTime(timezone=True), server_default=sa.func.now()),
    sa.Column("stamp", sa.DateTime, server_default=sa.text("CURRENT_TIMESTAMP")),
    sa.Column("day", sa.Date, server_default=sa.text("CURRENT_DATE")),
    sa.Column("flag", sa.Boolean, server_default=sa.true(), nullable=False),
    sa.Column("note", pg.JSONB, server_default="{}"),
    sa.Column("tags", pg.ARRAY(sa.Text), server_default="{}"),
    sa.Column("key", pg.UUID, server_default=sa.text("gen_random_uuid()")),
    sa.Column("mood", sa.Enum("sad", "ok", name="mood"), server_default="ok"),
    sa.Column("level", sa.Integer, server_default="-1"),
    sa.Column("span", pg.INTERVAL, server_default="1 day"),
    sa.CheckConstraint("level < 5", name="few"),
    comment="a table",
)
VISIT = sa.Table(
    "visit", METADATA,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True),
    sa.Column("person", sa.Integer, sa.ForeignKey(
        "person.id", ondelete="CASCADE", deferrable=True, initially="DEFERRED"), nullable=False),
    sa.Column("x", sa.Integer),
    sa.Column("y", sa.Integer, sa.Computed("x * 2", persisted=True)),
    sa.Column("other", sa.Integer, sa.ForeignKey("person.id")),
    sa.UniqueConstraint("x", "person", name="visit_once"),
)
sa.Index("visit_x", VISIT.c.x.desc(), VISIT.c.y)
sa.Index("visit_part", VISIT.c.x, postgresql_where=sa.text("x > 3"))
sa.Index("visit_person", VISIT.c.person)
sa.Index("person_lower", sa.func.lower(PERSON.c.name), unique=True)


class Autogenerate(unittest.TestCase):
    def setUp(self):
        self.engine = sa.create_engine(f"postgresql+psycopg://nvcaracal@127.0.0.1:{PORT}/nvcaracal")
        with self.engine.begin() as connection:
            METADATA.drop_all(connection)
            METADATA.create_all(connection)

    def tearDown(self):
        with self.engine.begin() as connection:
            METADATA.drop_all(connection)
        self.engine.dispose()

    def test_a_second_run_finds_nothing(self):
        # Other clients leave tables in the store.
        is_ours = lambda name, kind, _: kind != "table" or name in METADATA.tables
        options = {"compare_type": True, "compare_server_default": True, "include_name": is_ours}
        with self.engine.connect() as connection:
            context = MigrationContext.configure(connection, opts=options)
            self.assertEqual(compare_metadata(context, METADATA), [])

    def test_what_is_reflected(self):
        inspector = sa.inspect(self.engine)
        names = lambda all_of_them: sorted(one["name"] for one in all_of_them)
        self.assertEqual(names(inspector.get_indexes("visit")),
                         ["visit_once", "visit_part", "visit_person", "visit_x"])
        self.assertEqual(names(inspector.get_indexes("person")), ["person_email_key", "person_lower"])
        self.assertEqual(names(inspector.get_unique_constraints("person")), ["person_email_key"])
        self.assertEqual(inspector.get_table_comment("person"), {"text": "a table"})
        checks = inspector.get_check_constraints("person")
        self.assertEqual([check["sqltext"] for check in checks], ["level < 5"])
        columns = {column["name"]: column for column in inspector.get_columns("person")}
        self.assertEqual(columns["name"]["comment"], "a name")
        defaults = {name: column["default"] for name, column in columns.items()}
        self.assertEqual(defaults, {
            "id": "nextval('person_id_seq'::regclass)", "name": "'x'::character varying",
            "email": None, "credit": "'0'::numeric", "at": "now()", "stamp": "CURRENT_TIMESTAMP",
            "day": "CURRENT_DATE", "flag": "true", "note": "'{}'::jsonb", "tags": "'{}'::text[]",
            "key": "gen_random_uuid()", "mood": "'ok'::mood", "level": "'-1'::integer",
            "span": "'1 day'::interval",
        })
        computed = {column["name"]: column for column in inspector.get_columns("visit")}["y"]
        self.assertEqual(computed["computed"], {"sqltext": "(x * 2)", "persisted": True})
        keys = {key["name"]: key["options"] for key in inspector.get_foreign_keys("visit")}
        self.assertEqual(keys["visit_person_fkey"],
                         {"ondelete": "CASCADE", "initially": "DEFERRED", "deferrable": True})


if __name__ == "__main__":
    PORT = int(sys.argv.pop(1))
    unittest.main()
