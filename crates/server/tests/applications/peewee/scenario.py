"""Peewee: tables, a second start, migrations, CRUD with relations, blocks, introspection."""
import datetime
import decimal
import os
import uuid

import peewee as p
from playhouse import migrate as m
from playhouse.postgres_ext import ArrayField, BinaryJSONField, PostgresqlExtDatabase
from playhouse.reflection import Introspector

from steps import step

db = PostgresqlExtDatabase("nvcaracal", user="nvcaracal", host="127.0.0.1", port=os.environ["PGPORT"])


class Base(p.Model):
    class Meta:
        database = db


class Person(Base):
    name = p.CharField(max_length=40, default="x", index=True)
    email = p.TextField(unique=True, null=True)
    credit = p.DecimalField(max_digits=10, decimal_places=2, default=0,
                            constraints=[p.Check("credit < 1000")])
    about = BinaryJSONField(default=dict, index=False)
    tags = ArrayField(p.TextField, default=list, index=False)
    token = p.UUIDField(default=uuid.uuid4)
    at = p.DateTimeField(default=datetime.datetime.now)
    is_in = p.BooleanField(default=True)
    picture = p.BlobField(null=True)


class Visit(Base):
    id = p.BigAutoField()
    person = p.ForeignKeyField(Person, backref="visits", on_delete="CASCADE")
    score = p.DoubleField()

    class Meta:
        indexes = ((("person", "score"), True),)


TABLES = [Person, Visit]


def same(found, expected):
    assert found == expected, f"{found} instead of {expected}"


def crud():
    ada = Person.create(name="Ada", email="a@b", about={"a": {"b": 1}}, tags=["x"], picture=b"\0\xff")
    Visit.insert_many([{"person": ada, "score": n} for n in range(5)]).execute()
    same([visit.score for visit in ada.visits.order_by(Visit.id)], [0, 1, 2, 3, 4])
    rows = (Person.select(Person.name, p.fn.COUNT(Visit.id).alias("n")).join(Visit, p.JOIN.LEFT_OUTER)
            .group_by(Person.name).having(p.fn.COUNT(Visit.id) > 1))
    same([(row.name, row.n) for row in rows], [("Ada", 5)])
    same(p.prefetch(Person.select(), Visit.select())[0].visits[0].score, 0)


def operators():
    same(Person.select().where(Person.about.contains({"a": {"b": 1}})).count(), 1)
    same(Person.select().where(Person.tags.contains("x")).count(), 1)
    same(Person.select().where(Person.name.regexp("^A") & Person.email.contains("@")).count(), 1)
    same(Person.select().where(Person.at.year == datetime.date.today().year).count(), 1)


def upserts():
    new = Person.insert(name="Bea", email="a@b").on_conflict(
        conflict_target=[Person.email], preserve=[Person.name]).returning(Person.name).execute()
    same([row.name for row in new], ["Bea"])
    same(Person.get_or_create(email="a@b")[1], False)
    Person.update(credit=Person.credit + decimal.Decimal("1.5")).where(Person.email == "a@b").execute()
    same(Person.get(Person.email == "a@b").credit, decimal.Decimal("1.50"))


def windows():
    query = Visit.select(Visit.score, p.fn.RANK().over(order_by=[Visit.score.desc()]).alias("place"))
    same([row.place for row in query.order_by(Visit.score)], [5, 4, 3, 2, 1])
    tops = Visit.select(p.fn.MAX(Visit.score).alias("top")).cte("tops", columns=("top",))
    same(Visit.select(Visit.score).join(tops, on=(Visit.score == tops.c.top)).with_cte(tops).count(), 1)


def blocks():
    with db.atomic():
        Person.create(email="kept")
        with db.atomic() as inner:
            Person.create(email="gone")
            inner.rollback()
    same([row.email for row in Person.select().where(Person.email << ["kept", "gone"])], ["kept"])
    with db.atomic():
        Person.select().where(Person.email == "kept").for_update("FOR UPDATE SKIP LOCKED").get()


def stream():
    with db.atomic():
        query = Visit.select().dicts()
        from playhouse.postgres_ext import ServerSide
        same(sum(1 for _ in ServerSide(query, array_size=2)), 5)


def errors():
    try:
        with db.atomic():
            Person.create(email="a@b")
    except p.IntegrityError:
        return
    raise AssertionError("no error")


def altered():
    migrator = m.PostgresqlMigrator(db)
    with db.atomic():
        m.migrate(
            migrator.add_column("visit", "place", p.TextField(default="here")),
            migrator.rename_column("person", "at", "made"),
            migrator.drop_not_null("person", "made"),
            migrator.add_index("visit", ("place",), False),
            migrator.alter_column_type("person", "name", p.CharField(max_length=80)),
            migrator.drop_column("person", "is_in"),
        )


def introspection():
    models = Introspector.from_database(db).generate_models()
    same(sorted(models), ["person", "visit"])
    same(sorted(models["visit"]._meta.fields), ["id", "person", "place", "score"])
    same(models["person"].email.unique, True)
    same([key.dest_table for key in db.get_foreign_keys("visit")], ["person"])


db.connect()
step("create", db.create_tables, TABLES)
step("a second start", db.create_tables, TABLES)
for name, run in [("rows", crud), ("operators", operators), ("upserts", upserts), ("windows", windows),
                  ("blocks", blocks), ("a cursor of the server", stream), ("errors", errors),
                  ("columns changed", altered), ("introspection", introspection)]:
    if not step(name, run):
        db.rollback()
step("drop", db.drop_tables, TABLES, cascade=True)
