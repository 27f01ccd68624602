"""Tortoise: tables, CRUD with relations, blocks; aerich: migrations and a second start."""
import os
import shutil
import subprocess
import sys

from tortoise import Tortoise, run_async
from tortoise.exceptions import IntegrityError
from tortoise.expressions import F, Q
from tortoise.functions import Count
from tortoise.transactions import in_transaction

from steps import step_async

ROOM = os.environ["ROOM"]
CONFIG = {
    "connections": {"default": f"asyncpg://nvcaracal@127.0.0.1:{os.environ['PGPORT']}/nvcaracal"},
    "apps": {"models": {"models": ["models", "aerich.models"], "default_connection": "default"}},
}


def same(found, expected):
    assert found == expected, f"{found} instead of {expected}"


async def schemas():
    await Tortoise.generate_schemas(safe=True)


async def crud():
    from models import Group, Person, Visit

    ada = await Person.create(name="Ada", code="a", about={"a": {"b": 1}})
    await Visit.bulk_create([Visit(person=ada, score=n) for n in range(5)])
    await ada.groups.add(await Group.create(label="red"))
    found = await Person.filter(groups__label="red").prefetch_related("visits", "groups").get()
    same((len(found.visits), found.groups[0].label), (5, "red"))
    same(await Person.filter(about__contains={"a": {"b": 1}}).count(), 1)
    same(await Person.filter(Q(name__istartswith="ad") | Q(code="z")).exists(), True)


async def groups():
    from models import Person, Visit

    rows = await Person.annotate(n=Count("visits")).filter(n__gt=1).values("name", "n")
    same(rows, [{"name": "Ada", "n": 5}])
    await Visit.filter(score__gte=3).update(score=F("score") + 10)
    same(await Visit.all().order_by("-score").limit(2).values_list("score", flat=True), [14, 13])


async def upserts():
    from models import Group, Person

    await Person.bulk_create([Person(code="a", name="Bea")], on_conflict=["code"], update_fields=["name"])
    same((await Person.get(code="a")).name, "Bea")
    same((await Group.get_or_create(label="red"))[1], False)
    same((await Person.update_or_create(code="b", defaults={"name": "Cy"}))[1], True)


async def blocks():
    from models import Group, Person

    try:
        async with in_transaction():
            await Group.create(label="gone")
            async with in_transaction():
                await Person.select_for_update(skip_locked=True).get(code="a")
            raise KeyError
    except KeyError:
        pass
    same(await Group.filter(label="gone").count(), 0)
    try:
        await Group.create(label="red")
    except IntegrityError:
        return
    raise AssertionError("no error")


async def deletes():
    from models import Person, Visit

    await Person.filter(code="a").delete()
    same(await Visit.all().count(), 0)


async def drop():
    connection = Tortoise.get_connection("default")
    await connection.execute_script(
        'DROP TABLE IF EXISTS "person_group", "visit", "group", "person", "aerich" CASCADE')


def aerich(*words):
    ended = subprocess.run([os.path.join(os.path.dirname(sys.executable), "aerich"), *words], cwd=ROOM,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                           env={**os.environ, "PYTHONPATH": ROOM}, check=False)
    if ended.returncode != 0:
        sys.stderr.write(ended.stdout)
        raise RuntimeError(ended.stdout.strip().splitlines()[-1])
    return ended.stdout


async def first():
    aerich("init", "-t", "conf.CONFIG", "--location", "./migrations")
    aerich("init-db")


async def second():
    assert "No changes" in aerich("migrate"), "there are changes"
    assert "No upgrade" in aerich("upgrade"), "there are upgrades"


async def changed():
    path = os.path.join(ROOM, "models.py")
    with open(path, encoding="utf8") as file:
        text = file.read()
    more = "    nick = fields.CharField(max_length=9, null=True, db_index=True)\n    is_in ="
    with open(path, "w", encoding="utf8") as file:
        file.write(text.replace("    is_in =", more).replace("max_length=40", "max_length=80"))
    aerich("migrate", "--name", "nick")
    assert "Success" in aerich("upgrade")
    await second()
    aerich("downgrade", "--yes")


async def main():
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "models.py"), ROOM)
    with open(os.path.join(ROOM, "conf.py"), "w", encoding="utf8") as file:
        file.write(f"CONFIG = {CONFIG!r}\n")
    sys.path.insert(0, ROOM)
    await Tortoise.init(config=CONFIG)
    await step_async("make the tables", schemas)
    await step_async("a second start", schemas)
    await step_async("rows", crud)
    await step_async("groups", groups)
    await step_async("upserts", upserts)
    await step_async("blocks", blocks)
    await step_async("deletes", deletes)
    await step_async("drop", drop)
    await step_async("aerich: init-db", first)
    await step_async("aerich: a second run finds nothing", second)
    await step_async("aerich: a column more", changed)
    await Tortoise.close_connections()

run_async(main())
