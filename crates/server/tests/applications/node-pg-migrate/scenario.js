// node-pg-migrate: migrations up, again, and down.
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const {Client} = require('pg');
const {runner} = require('node-pg-migrate');
const {pg, url, step, scenario} = require('steps.js');

const dir = path.join(__dirname, 'migrations');
const run = (direction, more) => runner({databaseUrl: url, dir, direction, migrationsTable: 'pgmigrations',
  log: () => {}, count: Infinity, ...more});
const done = async (direction, more) => (await run(direction, more)).map((one) => one.name);

scenario(async () => {
  const client = new Client(pg);
  await client.connect();
  await step('up one', async () => assert.deepStrictEqual(await done('up', {count: 1}), ['1_first']));
  await step('up', async () => assert.deepStrictEqual(await done('up'), ['2_second']));
  await step('a second run finds nothing', async () => assert.deepStrictEqual(await done('up'), []));
  await step('a run without a lock finds nothing', async () =>
    assert.deepStrictEqual(await done('up', {noLock: true}), []));
  await step('rows', async () => {
    await client.query("INSERT INTO person (name, mood) VALUES ('Ada', 'glad')");
    const {rows} = await client.query('INSERT INTO visit (person_id) VALUES (1) RETURNING score, place');
    assert.deepStrictEqual(rows, [{score: 3, place: 'here'}]);
    assert.strictEqual((await client.query('SELECT * FROM few')).rowCount, 1);
  });
  await step('down', async () => assert.deepStrictEqual(await done('down'), ['2_second', '1_first']));
  await step('nothing is left', async () => {
    const {rows} = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
    assert.deepStrictEqual(rows, [{tablename: 'pgmigrations'}]);
  });
  await client.end();
});
