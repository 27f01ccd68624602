// MikroORM: the schema generator, migrations, CRUD with relations, blocks.
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const {EntitySchema, MikroORM, ReferenceKind, sql, LockMode} = require('@mikro-orm/core');
const {PostgreSqlDriver} = require('@mikro-orm/postgresql');
const {Migrator} = require('@mikro-orm/migrations');
const {pg, step, scenario} = require('steps.js');

const Person = new EntitySchema({
  name: 'Person', comment: 'people',
  properties: {
    id: {type: 'number', primary: true},
    name: {type: 'string', length: 40, default: 'x', comment: 'a name'},
    email: {type: 'string', columnType: 'text', unique: true, nullable: true},
    mood: {enum: true, items: ['sad', 'ok'], nativeEnumName: 'mood', default: 'ok', type: 'string'},
    size: {enum: true, items: ['s', 'l'], nullable: true, type: 'string'},
    credit: {type: 'decimal', precision: 10, scale: 2, default: 0},
    about: {type: 'json', nullable: true},
    tags: {type: 'string[]', nullable: true},
    token: {type: 'uuid', defaultRaw: 'gen_random_uuid()'},
    at: {type: 'Date', columnType: 'timestamptz(3)', defaultRaw: 'now()'},
    version: {type: 'number', version: true, default: 1},
    visits: {kind: ReferenceKind.ONE_TO_MANY, entity: 'Visit', mappedBy: 'person', orphanRemoval: true},
    groups: {kind: ReferenceKind.MANY_TO_MANY, entity: 'Group', owner: true},
  },
  indexes: [{properties: ['name', 'email'], name: 'person_by_name'}],
  checks: [{name: 'few', expression: 'credit < 1000'}],
});
const Visit = new EntitySchema({
  name: 'Visit',
  properties: {
    id: {type: 'bigint', primary: true},
    place: {type: 'string'},
    score: {type: 'double', nullable: true},
    twice: {type: 'double', generated: '(score + score) stored', nullable: true},
    person: {kind: ReferenceKind.MANY_TO_ONE, entity: 'Person', deleteRule: 'cascade'},
  },
  uniques: [{properties: ['person', 'place']}],
});
const Group = new EntitySchema({
  name: 'Group', properties: {id: {type: 'uuid', primary: true, defaultRaw: 'gen_random_uuid()'},
    label: {type: 'string', unique: true}},
});

scenario(async () => {
  const orm = await MikroORM.init({driver: PostgreSqlDriver, host: pg.host, port: pg.port, user: pg.user,
    password: 'none', dbName: pg.database, entities: [Person, Visit, Group], extensions: [Migrator],
    metadataCache: {enabled: false}, allowGlobalContext: true, connect: false,
    migrations: {path: path.join(process.env.ROOM, 'migrations'), emit: 'cjs', snapshot: false}});
  const schema = orm.schema;
  await step('connect', async () => assert.ok(await orm.connect() && await orm.isConnected()));
  await step('the database is there', () => schema.ensureDatabase());
  await step('create the schema', () => schema.createSchema());
  await step('a second start finds nothing to change', async () =>
    assert.strictEqual((await schema.getUpdateSchemaSQL({wrap: false})).trim(), ''));
  await step('drop the schema', () => schema.dropSchema());
  await step('make a migration', async () => {
    const made = await orm.migrator.createMigration();
    assert.ok(made.fileName && made.diff.up.length > 3);
  });
  await step('migrate', async () => assert.strictEqual((await orm.migrator.up()).length, 1));
  await step('migrate again', async () => {
    assert.strictEqual((await orm.migrator.up()).length, 0);
    assert.strictEqual(await orm.migrator.checkMigrationNeeded(), false);
  });
  await step('persist with relations', async () => {
    const em = orm.em.fork();
    const ada = em.create('Person', {name: 'Ada', email: 'a@b', about: {a: [1], b: 5}, tags: ['x', 'y'],
      visits: [{place: 'here', score: 1}, {place: 'there', score: 7}], groups: [{label: 'red'}]});
    await em.persistAndFlush(ada);
    assert.ok(ada.id > 0 && ada.token.length === 36 && ada.groups[0].id.length === 36);
  });
  for (const strategy of ['joined', 'select-in']) {
    await step(`find with relations, ${strategy}`, async () => {
      const [ada] = await orm.em.fork().find('Person', {name: {$ilike: 'ad%'}, visits: {score: {$gt: 0}}},
        {populate: ['visits', 'groups'], strategy, orderBy: {visits: {id: 'asc'}}});
      assert.deepStrictEqual(ada.visits.getItems().map((visit) => visit.twice), [2, 14]);
      assert.deepStrictEqual(ada.tags, ['x', 'y']);
    });
  }
  await step('pages with a count', async () => {
    const [rows, count] = await orm.em.fork().findAndCount('Person', {visits: {place: 'here'}},
      {limit: 1, offset: 0, populate: ['visits']});
    assert.deepStrictEqual([rows.length, count], [1, 1]);
  });
  await step('JSON and arrays', async () => {
    assert.strictEqual(await orm.em.fork().count('Person', {tags: {$contains: ['x']}}), 1);
    await orm.em.fork().find('Person', {about: {b: 5}});
  });
  await step('change', async () => {
    const em = orm.em.fork();
    const ada = await em.findOneOrFail('Person', {email: 'a@b'}, {populate: ['visits']});
    ada.mood = 'sad';
    ada.credit = '12.50';
    ada.visits.remove(ada.visits[0]);
    await em.flush();
    assert.deepStrictEqual([ada.version, await em.count('Visit')], [2, 1]);
  });
  await step('upsert', async () => {
    const em = orm.em.fork();
    await em.upsert('Person', {email: 'a@b', name: 'Bea'});
    await em.upsertMany('Person', [{email: 'c@d', name: 'Cy'}, {email: 'e@f', name: 'Di'}]);
    assert.strictEqual(await em.count('Person'), 3);
  });
  await step('many changes in one flush', async () => {
    const em = orm.em.fork();
    const all = await em.find('Person', {});
    all.forEach((person, n) => { person.about = {n}; person.credit = `${n}.25`; });
    for (let n = 0; n < 200; n++) em.create('Group', {label: `g${n}`});
    await em.flush();
    assert.strictEqual(await em.fork().count('Group'), 201);
  });
  await step('a version that is old', async () => {
    const [one, two] = [orm.em.fork(), orm.em.fork()];
    const [a, b] = [await one.findOneOrFail('Person', {email: 'c@d'}),
      await two.findOneOrFail('Person', {email: 'c@d'})];
    a.name = 'a';
    await one.flush();
    b.name = 'b';
    await assert.rejects(two.flush(), {name: 'OptimisticLockError'});
  });
  await step('a transaction with a lock', () => orm.em.fork().transactional(async (em) => {
    const cy = await em.findOneOrFail('Person', {email: 'c@d'}, {lockMode: LockMode.PESSIMISTIC_WRITE});
    cy.name = 'Cyd';
    await em.transactional(async (inner) => {
      inner.create('Group', {label: 'inner'});
    });
  }, {isolationLevel: 'serializable'}));
  await step('the query builder', async () => {
    const rows = await orm.em.fork().createQueryBuilder('Person', 'p').leftJoin('p.visits', 'v')
      .select(['p.name', sql`count(v.id) as n`]).groupBy('p.name').orderBy({'p.name': 'asc'}).execute();
    assert.deepStrictEqual(rows.map((row) => Number(row.n)), [1, 0, 0]);
  });
  await step('a key that is taken', async () => {
    const em = orm.em.fork();
    em.create('Group', {label: 'red'});
    await assert.rejects(em.flush(), {name: 'UniqueConstraintViolationException'});
  });
  await step('remove', async () => {
    const em = orm.em.fork();
    await em.removeAndFlush(await em.findOneOrFail('Person', {email: 'a@b'}));
    assert.strictEqual(await em.count('Visit'), 0);
  });
  await step('migrate back', () => orm.migrator.down({to: 0}));
});
