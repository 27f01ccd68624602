// Drizzle: drizzle-kit makes migrations and pushes, the ORM applies them and queries.
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const {execFileSync} = require('node:child_process');
const {drizzle} = require('drizzle-orm/node-postgres');
const {migrate} = require('drizzle-orm/node-postgres/migrator');
const {relations, eq, sql, count, ilike, arrayContains} = require('drizzle-orm');
const {Pool} = require('pg');
const {pg, url, step, scenario} = require('steps.js');
const {person, visit} = require('./schema.js');

const room = process.env.ROOM;

// Runs drizzle-kit and answers what it says.
function kit(...words) {
  const config = path.join(room, 'drizzle.config.js');
  fs.writeFileSync(config, `module.exports = {dialect: 'postgresql', out: './out',
    schema: ${JSON.stringify(path.join(__dirname, 'schema.js'))}, dbCredentials: {url: '${url}'}};`);
  try {
    return execFileSync('drizzle-kit', [...words, '--config=drizzle.config.js'],
      {cwd: room, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: 60000});
  } catch (error) {
    const said = `${error.stderr}\n${error.stdout}`.split('\n');
    throw new Error(said.find((line) => /error/i.test(line)) || error.message);
  }
}

scenario(async () => {
  const pool = new Pool(pg);
  const schema = {person, visit,
    people: relations(person, ({many}) => ({visits: many(visit)})),
    visits: relations(visit, ({one}) => ({person: one(person, {fields: [visit.personId],
      references: [person.id]})}))};
  const db = drizzle(pool, {schema});
  await step('generate', () => kit('generate'));
  await step('migrate', () => migrate(db, {migrationsFolder: path.join(room, 'out')}));
  await step('migrate again', () => migrate(db, {migrationsFolder: path.join(room, 'out')}));
  // It ends with 0 also where the server has refused something.
  await step('push', () => assert.match(kit('push', '--force'), /Changes applied|No changes detected/));
  await step('push finds nothing to change', () => {
    const said = kit('push', '--force');
    assert.ok(/No changes detected/.test(said), said.split('\n').filter((line) => line.trim()).pop());
  });
  await step('introspect', () => kit('introspect'));
  await step('insert', async () => {
    const rows = await db.insert(person).values([{name: 'Ada', email: 'a@b', tags: ['x']}, {name: 'Bob'}])
      .returning();
    assert.deepStrictEqual(rows[0].tags, ['x']);
    await db.insert(visit).values({personId: rows[0].id, score: 2});
  });
  await step('relational query', async () => {
    const found = await db.query.person.findMany({with: {visits: true}, orderBy: person.id});
    assert.deepStrictEqual(found[0].visits, [{id: 1, personId: 1, score: 2, twice: 4}]);
  });
  await step('joins and groups', async () => {
    const rows = await db.select({name: person.name, n: count(visit.id)}).from(person)
      .leftJoin(visit, eq(visit.personId, person.id)).where(ilike(person.name, 'A%')).groupBy(person.name);
    assert.deepStrictEqual(rows, [{name: 'Ada', n: 1}]);
    assert.strictEqual((await db.select().from(person).where(arrayContains(person.tags, ['x']))).length, 1);
  });
  await step('upsert', async () => {
    await db.insert(person).values({email: 'a@b', name: 'Bea'})
      .onConflictDoUpdate({target: person.email, set: {name: sql`excluded.name`}});
    assert.strictEqual(await db.$count(person), 2);
  });
  await step('prepared', async () => {
    const read = db.select().from(person).where(eq(person.id, sql.placeholder('id'))).prepare('read');
    assert.strictEqual((await read.execute({id: 1}))[0].name, 'Bea');
  });
  await step('a transaction', async () => {
    await db.transaction(async (tx) => {
      await tx.update(person).set({credit: '2.5'}).where(eq(person.id, 1));
      await assert.rejects(tx.transaction(async (inner) => {
        await inner.delete(visit);
        inner.rollback();
      }));
    }, {isolationLevel: 'serializable'});
    assert.strictEqual(await db.$count(visit), 1);
  });
  await step('delete', async () => {
    await db.delete(person).where(eq(person.id, 1)).returning({id: person.id});
    assert.strictEqual(await db.$count(visit), 0);
  });
});
