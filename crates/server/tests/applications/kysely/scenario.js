// Kysely: its migrator, the schema builder, queries, blocks, introspection.
'use strict';
const assert = require('node:assert');
const {Kysely, PostgresDialect, sql} = require('kysely');
const {Migrator} = require('kysely/migration');
const {jsonArrayFrom, jsonObjectFrom} = require('kysely/helpers/postgres');
const {Pool} = require('pg');
const {pg, step, scenario} = require('steps.js');

const migrations = {
  '1_first': {
    up: async (db) => {
      await db.schema.createType('mood').asEnum(['sad', 'ok']).execute();
      await db.schema.createTable('person')
        .addColumn('id', 'integer', (c) => c.generatedAlwaysAsIdentity().primaryKey())
        .addColumn('name', 'varchar(40)', (c) => c.notNull().defaultTo('x'))
        .addColumn('email', 'text', (c) => c.unique())
        .addColumn('mood', sql`mood`)
        .addColumn('about', 'jsonb')
        .addColumn('at', 'timestamptz', (c) => c.defaultTo(sql`now()`).notNull())
        .execute();
      await db.schema.createTable('visit')
        .addColumn('id', 'bigserial', (c) => c.primaryKey())
        .addColumn('person_id', 'integer', (c) => c.references('person.id').onDelete('cascade').notNull())
        .addColumn('score', 'double precision')
        .addCheckConstraint('score_is_good', sql`score >= 0`)
        .execute();
      await db.schema.createIndex('visit_person').on('visit').columns(['person_id', 'score']).execute();
    },
    down: async (db) => {
      await db.schema.dropTable('visit').execute();
      await db.schema.dropTable('person').execute();
      await db.schema.dropType('mood').execute();
    },
  },
  '2_second': {
    up: async (db) => {
      await db.schema.alterTable('visit').addColumn('place', 'text').execute();
      await db.schema.alterTable('visit').alterColumn('score', (c) => c.setDefault(1)).execute();
      await db.schema.createView('few').as(db.selectFrom('person').select('id')).execute();
    },
    down: async (db) => {
      await db.schema.dropView('few').execute();
      await db.schema.alterTable('visit').dropColumn('place').execute();
    },
  },
};

scenario(async () => {
  const db = new Kysely({dialect: new PostgresDialect({pool: new Pool(pg)})});
  const migrator = new Migrator({db, provider: {getMigrations: async () => migrations}});
  await step('migrate', async () => {
    const {error, results} = await migrator.migrateToLatest();
    if (error) throw error;
    assert.strictEqual(results.length, 2);
  });
  await step('a second run finds nothing', async () => {
    const {error, results} = await migrator.migrateToLatest();
    if (error) throw error;
    assert.deepStrictEqual(results, []);
  });
  await step('insert', async () => {
    const rows = await db.insertInto('person').values([{name: 'Ada', email: 'a@b', mood: 'ok',
      about: JSON.stringify({a: 1})}, {name: 'Bob'}]).returningAll().execute();
    assert.deepStrictEqual(rows.map((row) => row.id), [1, 2]);
    await db.insertInto('visit').values({person_id: 1, place: 'here'}).executeTakeFirstOrThrow();
  });
  await step('relations as JSON', async () => {
    const rows = await db.selectFrom('person').select((e) => ['name',
      jsonArrayFrom(e.selectFrom('visit').select(['visit.id', 'score'])
        .whereRef('visit.person_id', '=', 'person.id')).as('visits')]).orderBy('id').execute();
    assert.deepStrictEqual(rows[0], {name: 'Ada', visits: [{id: 1, score: 1}]});
    await db.selectFrom('visit').select((e) => jsonObjectFrom(e.selectFrom('person').select('name')
      .whereRef('person.id', '=', 'visit.person_id')).as('person')).execute();
  });
  await step('upsert', async () => {
    const row = await db.insertInto('person').values({name: 'Bea', email: 'a@b'})
      .onConflict((c) => c.column('email').doUpdateSet((e) => ({name: e.ref('excluded.name')})))
      .returning('name').executeTakeFirst();
    assert.deepStrictEqual(row, {name: 'Bea'});
  });
  await step('groups, WITH, CASE', async () => {
    const rows = await db.with('n', (w) => w.selectFrom('visit').select(({fn}) =>
      ['person_id', fn.countAll().as('n')]).groupBy('person_id'))
      .selectFrom('person').leftJoin('n', 'n.person_id', 'person.id')
      .select((e) => ['person.id', e.case().when('n', '>', 0).then('some').else('none').end().as('has')])
      .orderBy('person.id').execute();
    assert.deepStrictEqual(rows.map((row) => row.has), ['some', 'none']);
  });
  await step('transactions', async () => {
    await assert.rejects(db.transaction().setIsolationLevel('serializable').execute(async (trx) => {
      await trx.updateTable('person').set({name: 'gone'}).execute();
      throw new Error('no');
    }));
    const trx = await db.startTransaction().execute();
    const saved = await trx.savepoint('one').execute();
    await saved.deleteFrom('visit').execute();
    await (await saved.rollbackToSavepoint('one').execute()).commit().execute();
    assert.strictEqual((await db.selectFrom('visit').selectAll().execute()).length, 1);
  });
  await step('a lock', () => db.transaction().execute((trx) => trx.selectFrom('person').selectAll()
    .where('id', '=', 1).forUpdate().skipLocked().execute()));
  await step('UPDATE FROM, DELETE USING', async () => {
    await db.updateTable('visit').from('person').set((e) => ({place: e.ref('person.name')}))
      .whereRef('person.id', '=', 'visit.person_id').execute();
    const {numDeletedRows} = await db.deleteFrom('visit').using('person')
      .whereRef('person.id', '=', 'visit.person_id').where('person.name', '=', 'Bea').executeTakeFirst();
    assert.strictEqual(numDeletedRows, 1n);
  });
  await step('introspection', async () => {
    const tables = await db.introspection.getTables();
    assert.deepStrictEqual(tables.map((table) => [table.name, table.isView]).sort(),
      [['few', true], ['person', false], ['visit', false]]);
    const person = tables.find((table) => table.name === 'person');
    assert.deepStrictEqual(person.columns.map((column) => [column.dataType, column.isAutoIncrementing]),
      [['int4', true], ['varchar', false], ['text', false], ['mood', false], ['jsonb', false],
        ['timestamptz', false]]);
  });
  await step('schemas', async () => {
    assert.ok((await db.introspection.getSchemas()).some((schema) => schema.name === 'public'));
  });
  await step('back again', async () => {
    for (let n = 0; n < 2; n++) {
      const {error} = await migrator.migrateDown();
      if (error) throw error;
    }
  });
});
