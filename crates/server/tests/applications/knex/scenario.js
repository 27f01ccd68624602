// Knex: the schema builder, migrations and seeds of its own table of them, queries, blocks.
'use strict';
const assert = require('node:assert');
const {knex} = require('knex');
const {url, step, scenario} = require('steps.js');

const migrations = {
  '1_first': {
    up: (k) => k.schema
      .createTable('person', (t) => {
        t.increments('id');
        t.string('name', 40).notNullable().defaultTo('x').comment('a name');
        t.text('email').unique();
        t.enu('mood', ['sad', 'ok'], {useNative: true, enumName: 'mood'}).defaultTo('ok');
        t.enu('size', ['s', 'l']);
        t.decimal('credit', 10, 2).defaultTo(0);
        t.jsonb('about').defaultTo('{}');
        t.uuid('token').defaultTo(k.fn.uuid());
        t.specificType('tags', 'text[]');
        t.timestamps(true, true);
        t.index(['name', 'email'], 'person_by_name');
        t.comment('people');
      })
      .createTable('visit', (t) => {
        t.bigIncrements('id');
        t.integer('person_id').unsigned().notNullable().references('id').inTable('person')
          .onDelete('CASCADE').index();
        t.double('score');
        t.check('?? >= 0', ['score'], 'score_is_good');
      }),
    down: (k) => k.schema.dropTable('visit').dropTable('person').raw('DROP TYPE mood'),
  },
  '2_second': {
    up: async (k) => {
      await k.schema.alterTable('visit', (t) => {
        t.string('place').nullable();
        t.integer('score').notNullable().defaultTo(1).alter();
        t.unique(['place', 'person_id'], {indexName: 'visit_once'});
      });
      await k.schema.alterTable('person', (t) => t.renameColumn('name', 'called'));
      await k.schema.createView('few', (v) => {
        v.columns(['id']);
        v.as(k('person').select('id'));
      });
    },
    down: async (k) => {
      await k.schema.dropView('few');
      await k.schema.alterTable('person', (t) => t.renameColumn('called', 'name'));
      await k.schema.alterTable('visit', (t) => {
        t.dropUnique(['place', 'person_id'], 'visit_once');
        t.dropColumn('place');
      });
    },
  },
};
const migrationSource = {getMigrations: async () => Object.keys(migrations),
  getMigrationName: (name) => name, getMigration: async (name) => migrations[name]};

scenario(async () => {
  const k = knex({client: 'pg', connection: url, migrations: {migrationSource}});
  await step('migrate', async () => {
    const [, done] = await k.migrate.latest();
    assert.deepStrictEqual(done, ['1_first', '2_second']);
  });
  await step('a second run finds nothing', async () => {
    const [, done] = await k.migrate.latest();
    assert.deepStrictEqual([done, (await k.migrate.list())[1].length], [[], 0]);
  });
  await step('insert with returning', async () => {
    const rows = await k('person').insert([{called: 'Ada', email: 'a@b', tags: ['x']}, {called: 'Bob'}])
      .returning(['id', 'mood', 'credit']);
    assert.deepStrictEqual(rows.map((row) => row.credit), ['0.00', '0.00']);
    await k('visit').insert({person_id: rows[0].id, place: 'here'});
  });
  await step('joins and groups', async () => {
    const rows = await k('person as p').leftJoin('visit as v', 'v.person_id', 'p.id')
      .select('p.called').count('v.id as n').groupBy('p.called').orderBy('p.called');
    assert.deepStrictEqual(rows, [{called: 'Ada', n: '1'}, {called: 'Bob', n: '0'}]);
  });
  await step('JSON', async () => {
    await k('person').where({called: 'Bob'}).update({about: {a: {b: 7}}});
    assert.strictEqual((await k('person').whereJsonPath('about', '$.a.b', '=', 7)).length, 1);
  });
  await step('JSON that contains', async () => {
    assert.strictEqual((await k('person').whereJsonSupersetOf('about', {a: {b: 7}})).length, 1);
  });
  await step('on conflict', async () => {
    const [row] = await k('person').insert({email: 'a@b', called: 'Bea'}).onConflict('email').merge()
      .returning('called');
    assert.deepStrictEqual(row, {called: 'Bea'});
    await k('person').insert({email: 'a@b'}).onConflict('email').ignore();
  });
  await step('batchInsert', async () => {
    await k.batchInsert('person', Array.from({length: 500}, (_, n) => ({email: `e${n}`})), 100);
    assert.deepStrictEqual(await k('person').count(), [{count: '502'}]);
  });
  await step('WITH and windows', async () => {
    const rows = await k.with('few_of', k('person').where('id', '<', 4)).from('few_of')
      .select('id').rank('place', (r) => r.orderBy('id', 'desc')).orderBy('id');
    assert.deepStrictEqual(rows.map((row) => row.place), ['2', '1']);
  });
  await step('a transaction with a savepoint', async () => {
    await k.transaction(async (trx) => {
      await trx('person').insert({email: 'kept'});
      await assert.rejects(trx.transaction(async (inner) => {
        await inner('person').insert({email: 'gone'});
        throw new Error('no');
      }));
    }, {isolationLevel: 'serializable'});
    assert.deepStrictEqual(await k('person').whereIn('email', ['kept', 'gone']).pluck('email'), ['kept']);
  });
  await step('a lock that is skipped', () => k.transaction((trx) =>
    trx('person').where('id', 1).forUpdate().skipLocked()));
  await step('what columns there are', async () => {
    const columns = await k('person').columnInfo();
    assert.deepStrictEqual([columns.called.type, columns.called.maxLength, columns.email.nullable],
      ['character varying', 40, true]);
    assert.ok(await k.schema.hasTable('person') && await k.schema.hasColumn('visit', 'place'));
  });
  await step('truncate and delete', async () => {
    await k('visit').truncate();
    assert.ok(await k('person').where('id', '>', 2).del() > 0);
  });
  await step('back again', async () => {
    await k.migrate.rollback({}, true);
    assert.strictEqual(await k.schema.hasTable('person'), false);
  });
});
