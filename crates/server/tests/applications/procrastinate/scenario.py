"""procrastinate: its schema, jobs that are deferred, run, fail, and are found again."""
import asyncio
import os

import procrastinate
from procrastinate import jobs

from steps import step_async

URL = f"postgresql://nvcaracal@127.0.0.1:{os.environ['PGPORT']}/nvcaracal"
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=URL))
done = []


@app.task(queue="mail", name="mail")
async def mail(to):
    if to == "nobody":
        raise ValueError(to)
    done.append(to)


async def schema():
    await app.schema_manager.apply_schema_async()


async def second():
    assert await app.check_connection_async()


async def defer():
    await mail.defer_async(to="a@b")
    await mail.configure(priority=5, lock="one").defer_async(to="c@d")
    await mail.batch_defer_async({"to": "e@f"}, {"to": "nobody"})


async def once():
    await mail.configure(queueing_lock="once").defer_async(to="g@h")
    try:
        await mail.configure(queueing_lock="once").defer_async(to="g@h")
    except procrastinate.exceptions.AlreadyEnqueued:
        return
    raise AssertionError("it is there twice")


async def work():
    await app.run_worker_async(wait=False, install_signal_handlers=False, listen_notify=False)
    assert sorted(done) == ["a@b", "c@d", "e@f", "g@h"], done


async def found():
    failed = await app.job_manager.list_jobs_async(status=jobs.Status.FAILED.value)
    assert [job.task_kwargs for job in failed] == [{"to": "nobody"}], failed
    assert list(await app.job_manager.list_queues_async())[0]["name"] == "mail"


async def main():
    async with app.open_async():
        await step_async("apply the schema", schema)
        await step_async("a second start finds it", second)
        await step_async("defer", defer)
        await step_async("a lock of the queue", once)
        await step_async("work", work)
        await step_async("what has failed", found)

asyncio.run(main())
