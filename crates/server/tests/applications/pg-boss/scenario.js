// pg-boss: start, a second start, queues, jobs that are sent, fetched, completed, failed.
'use strict';
const assert = require('node:assert');
const {url, step, scenario} = require('steps.js');
const made = require('pg-boss');

const PgBoss = made.PgBoss || made.default || made;

scenario(async () => {
  const boss = new PgBoss(url);
  boss.on('error', () => {});
  await step('start', () => boss.start());
  await step('a second start', async () => {
    const other = new PgBoss(url);
    other.on('error', () => {});
    await other.start();
    await other.stop({graceful: false});
  });
  await step('a queue', () => boss.createQueue('mail'));
  await step('send', async () => assert.ok(await boss.send('mail', {to: 'a@b'}, {priority: 1})));
  await step('many', () => boss.insert('mail', Array.from({length: 100}, (_, n) => ({data: {n}}))));
  await step('fetch and complete', async () => {
    const [job] = await boss.fetch('mail');
    assert.deepStrictEqual(job.data, {to: 'a@b'});
    await boss.complete('mail', job.id);
  });
  await step('fetch and fail', async () => {
    const jobs = await boss.fetch('mail', {batchSize: 5});
    assert.strictEqual(jobs.length, 5);
    await boss.fail('mail', jobs.map((job) => job.id));
  });
  await step('work', () => new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error('no job came')), 10000);
    boss.work('mail', {pollingIntervalSeconds: 0.5}, async () => resolve()).catch(reject);
  }));
  await step('a schedule', () => boss.schedule('mail', '* * * * *', {}));
  await step('maintenance', () => boss.supervise());
  await step('stop', () => boss.stop({graceful: false}));
});
