"""asyncpg: values in binary, introspection of types, cursors, COPY, a pool, LISTEN, blocks."""
import asyncio
import datetime
import decimal
import os
import uuid

import asyncpg

from steps import step_async

URL = f"postgresql://nvcaracal@127.0.0.1:{os.environ['PGPORT']}/nvcaracal"


async def values(c):
    await c.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    await c.execute(
        "CREATE TABLE v (id serial PRIMARY KEY, b bool, i bigint, n numeric(10,2), t text, y bytea,"
        " d date, at timestamptz, s interval, u uuid, j jsonb, m mood, a int[], ms mood[])")
    at = datetime.datetime(2024, 1, 2, 3, 4, 5, 678, tzinfo=datetime.timezone.utc)
    row = (True, 2**62, decimal.Decimal("1.50"), "it's \u20ac", b"\0\xff", datetime.date(2024, 2, 29),
           at, datetime.timedelta(days=1, seconds=2), uuid.UUID(int=7), '{"a": [1]}', "ok", [1, None],
           ["sad", "ok"])
    places = ", ".join(f"${n}" for n in range(1, 14))
    columns = "b, i, n, t, y, d, at, s, u, j, m, a, ms"
    found = await c.fetchrow(
        f"INSERT INTO v ({columns}) VALUES ({places}) RETURNING {columns}", *row)
    assert tuple(found) == row, tuple(found)


async def codecs(c):
    await c.set_type_codec("jsonb", encoder=lambda v: v, decoder=lambda v: ["decoded", v],
                           schema="pg_catalog")
    assert (await c.fetchval("SELECT '1'::jsonb"))[0] == "decoded"
    await c.reset_type_codec("jsonb", schema="pg_catalog")
    await c.set_builtin_type_codec("mood", schema="public", codec_name="text")


async def records(c):
    found = await c.fetchval("SELECT ROW(1, 'a')")
    assert tuple(found) == (1, "a"), found


async def cursors(c):
    async with c.transaction():
        seen = [row[0] async for row in c.cursor("SELECT generate_series(1, 200)", prefetch=7)]
        assert seen == list(range(1, 201))
        cursor = await c.cursor("SELECT generate_series(1, 9)")
        await cursor.forward(3)
        assert [row[0] for row in await cursor.fetch(2)] == [4, 5]


async def copies(c):
    await c.execute("CREATE TABLE p (id int PRIMARY KEY, t text)")
    await c.copy_records_to_table("p", records=[(n, str(n)) for n in range(1000)])
    assert await c.fetchval("SELECT count(*) FROM p") == 1000
    result = await c.copy_from_query("SELECT * FROM p WHERE id < $1", 10, output=lambda data: asyncio.sleep(0))
    assert result == "COPY 10", result


async def many(c):
    await c.executemany("INSERT INTO p VALUES ($1, $2)", [(n, "x") for n in range(1000, 1100)])
    try:
        await c.executemany("INSERT INTO p VALUES ($1, $2)", [(5000, "x"), (1, "x")])
    except asyncpg.UniqueViolationError as error:
        assert error.constraint_name == "p_pkey" and error.table_name == "p"
    assert await c.fetchval("SELECT max(id) FROM p") == 1099


async def blocks(c):
    async with c.transaction(isolation="serializable"):
        try:
            async with c.transaction():
                await c.execute("INSERT INTO p VALUES (7000, 'x')")
                raise KeyError
        except KeyError:
            pass
        await c.execute("INSERT INTO p VALUES (7001, 'x')")
    rows = await c.fetch("SELECT id FROM p WHERE id >= 7000")
    assert [row["id"] for row in rows] == [7001]
    async with c.transaction(isolation="repeatable_read", readonly=True, deferrable=True):
        await c.fetch("SELECT 1")


async def listens(c, other):
    heard = asyncio.get_running_loop().create_future()
    await c.add_listener("news", lambda *told: heard.done() or heard.set_result(told[3]))
    await other.execute("SELECT pg_notify('news', 'hello')")
    assert await asyncio.wait_for(heard, 5) == "hello"
    await c.reset()


async def prepared(c):
    statement = await c.prepare("SELECT id, t FROM p WHERE id = ANY($1::int[]) ORDER BY id")
    assert [one.type.name for one in statement.get_parameters() and statement.get_attributes()] == [
        "int4", "text"]
    assert len(await statement.fetch([1, 2, 3])) == 3
    assert (await statement.explain([1]))[0]["Plan"]


async def altered(c):
    assert len(await c.fetchrow("SELECT * FROM p")) == 2
    await c.execute("ALTER TABLE p ADD COLUMN extra int DEFAULT 3")
    assert len(await c.fetchrow("SELECT * FROM p")) == 3


async def pool():
    async with asyncpg.create_pool(URL, min_size=4, max_size=4) as pool:
        async def one(n):
            async with pool.acquire() as c:
                return await c.fetchval("SELECT $1::int * 2", n)
        assert await asyncio.gather(*(one(n) for n in range(50))) == [n * 2 for n in range(50)]


async def timeouts(c):
    try:
        await c.fetch("SELECT pg_sleep(10)", timeout=0.3)
    except asyncio.TimeoutError:
        pass
    assert await c.fetchval("SELECT 1") == 1


async def main():
    c = await asyncpg.connect(URL)
    other = await asyncpg.connect(URL)
    for name, run in [("values with enums and arrays", values), ("codecs of types", codecs),
                      ("a record as a value", records), ("cursors", cursors), ("COPY", copies),
                      ("executemany", many), ("blocks", blocks), ("prepared statements", prepared),
                      ("a changed table", altered), ("a cancel after a time", timeouts)]:
        await step_async(name, run, c)
    await step_async("LISTEN", listens, c, other)
    await step_async("a pool", pool)

asyncio.run(main())
