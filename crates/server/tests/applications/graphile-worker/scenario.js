// graphile-worker: its migrations, jobs that are added and run.
'use strict';
const assert = require('node:assert');
const {Pool} = require('pg');
const {Logger, makeWorkerUtils, runOnce} = require('graphile-worker');
const {pg, step, scenario} = require('steps.js');

scenario(async () => {
  const pgPool = new Pool(pg);
  const options = {pgPool, logger: new Logger(() => () => {})};
  let utils;
  await step('migrate', async () => {
    utils = await makeWorkerUtils(options);
    await utils.migrate();
  });
  await step('migrate again', async () => {
    const other = await makeWorkerUtils(options);
    await other.migrate();
  });
  const seen = [];
  const taskList = {mail: async (payload) => seen.push(payload)};
  await step('add a job', async () => {
    const job = await utils.addJob('mail', {to: 'a@b'}, {maxAttempts: 3, priority: 1});
    assert.ok(job.id);
  });
  await step('add a job by SQL', () =>
    pgPool.query("SELECT graphile_worker.add_job('mail', json_build_object('to', 'c@d'))"));
  await step('run them', async () => {
    await runOnce({...options, taskList});
    assert.deepStrictEqual(seen.map((job) => job.to).sort(), ['a@b', 'c@d']);
  });
  await step('a job that fails is kept', async () => {
    await utils.addJob('mail', {});
    await runOnce({...options, taskList: {mail: async () => { throw new Error('no'); }}});
    const {rows} = await pgPool.query('SELECT attempts, last_error FROM graphile_worker.jobs');
    assert.deepStrictEqual(rows, [{attempts: 1, last_error: 'no'}]);
  });
});
