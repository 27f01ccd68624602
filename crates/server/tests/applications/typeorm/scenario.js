// TypeORM: synchronize, migrations that it generates, CRUD with relations, blocks.
'use strict';
require('reflect-metadata');
const assert = require('node:assert');
const {DataSource, EntitySchema, In, ILike, MoreThan} = require('typeorm');
const {pg, step, scenario} = require('steps.js');

const Person = new EntitySchema({
  name: 'Person', tableName: 'person',
  columns: {
    id: {type: 'int', primary: true, generated: true},
    name: {type: 'varchar', length: 40, default: 'x', comment: 'a name'},
    email: {type: 'text', unique: true, nullable: true},
    mood: {type: 'enum', enum: ['sad', 'ok'], default: 'ok'},
    credit: {type: 'numeric', precision: 10, scale: 2, default: 0},
    about: {type: 'jsonb', default: {}},
    tags: {type: 'text', array: true, default: '{}'},
    at: {type: 'timestamptz', createDate: true},
    changed: {type: 'timestamp', updateDate: true},
    gone: {type: 'timestamptz', deleteDate: true, nullable: true},
    version: {type: 'int', version: true},
    isIn: {type: 'boolean', default: true},
  },
  relations: {
    visits: {type: 'one-to-many', target: 'Visit', inverseSide: 'person', cascade: true},
    groups: {type: 'many-to-many', target: 'Group', joinTable: true, cascade: true},
  },
  checks: [{name: 'few', expression: '"credit" < 1000'}],
});
const Visit = new EntitySchema({
  name: 'Visit', tableName: 'visit',
  columns: {
    id: {type: 'bigint', primary: true, generated: 'identity', generatedIdentity: 'ALWAYS'},
    place: {type: 'varchar'},
    score: {type: 'double precision', nullable: true},
    twice: {type: 'int', asExpression: '1 + 1', generatedType: 'STORED'},
  },
  relations: {
    person: {type: 'many-to-one', target: 'Person', inverseSide: 'visits', onDelete: 'CASCADE',
      joinColumn: {name: 'personId'}},
  },
  indices: [{columns: ['place', 'score']},
    {name: 'visit_part', columns: ['place'], unique: true, where: '"score" > 5'}],
});
const Group = new EntitySchema({
  name: 'Group', tableName: 'group',
  columns: {id: {type: 'uuid', primary: true, generated: 'uuid'}, label: {type: 'varchar', unique: true}},
});
const options = {type: 'postgres', host: pg.host, port: pg.port, username: pg.user,
  database: pg.database, entities: [Person, Visit, Group]};

class First1700000000000 {
  name = 'First1700000000000';

  async up(runner) {
    await runner.query('CREATE TABLE "old" ("id" SERIAL NOT NULL, CONSTRAINT "old_key" PRIMARY KEY ("id"))');
    await runner.addColumn('old', new (require('typeorm').TableColumn)({name: 'n', type: 'int', isNullable: true}));
  }

  async down(runner) {
    await runner.dropTable('old');
  }
}

scenario(async () => {
  let db = new DataSource({...options, uuidExtension: 'pgcrypto', installExtensions: false});
  await step('initialize', () => db.initialize());
  await step('synchronize', () => db.synchronize());
  await step('a second start finds nothing to change', async () => {
    const {upQueries} = await db.driver.createSchemaBuilder().log();
    assert.deepStrictEqual(upQueries.map((query) => query.query), []);
  });
  const people = () => db.getRepository('Person');
  await step('save with relations', async () => {
    const ada = await people().save({name: 'Ada', email: 'a@b', about: {a: [1]}, tags: ['x'],
      visits: [{place: 'here', score: 1}, {place: 'there', score: 7}], groups: [{label: 'red'}]});
    assert.ok(ada.id > 0 && ada.groups[0].id.length === 36 && ada.version === 1);
  });
  await step('find with relations', async () => {
    const found = await people().find({where: {name: ILike('ad%')}, relations: {visits: true, groups: true},
      order: {visits: {id: 'ASC'}}, take: 1});
    assert.deepStrictEqual(found[0].visits.map((visit) => visit.place), ['here', 'there']);
  });
  await step('change', async () => {
    const ada = await people().findOneByOrFail({email: 'a@b'});
    ada.credit = '12.50';
    ada.mood = 'sad';
    assert.strictEqual((await people().save(ada)).version, 2);
  });
  await step('upsert', async () => {
    await people().upsert([{email: 'a@b', name: 'Bea'}, {email: 'c@d', name: 'Cy'}], ['email']);
    assert.strictEqual(await people().count(), 2);
  });
  await step('query builder with groups', async () => {
    const rows = await db.getRepository('Visit').createQueryBuilder('v')
      .innerJoin('v.person', 'p').select('p.name', 'name').addSelect('COUNT(*)', 'n')
      .groupBy('p.name').having('COUNT(*) > :n', {n: 1}).getRawMany();
    assert.deepStrictEqual(rows, [{name: 'Bea', n: '2'}]);
  });
  await step('getManyAndCount', async () => {
    const [rows, count] = await people().createQueryBuilder('p').leftJoinAndSelect('p.visits', 'v')
      .orderBy('p.id').skip(0).take(1).getManyAndCount();
    assert.deepStrictEqual([rows.length, count], [1, 2]);
  });
  await step('many rows', async () => {
    await people().insert(Array.from({length: 500}, (_, n) => ({email: `e${n}`})));
    assert.strictEqual(await people().countBy({email: In(['e1', 'e2']), id: MoreThan(0)}), 2);
  });
  await step('a transaction that goes back', async () => {
    await assert.rejects(db.transaction('SERIALIZABLE', async (manager) => {
      await manager.save('Group', {label: 'gone'});
      throw new Error('no');
    }));
    assert.strictEqual(await db.getRepository('Group').countBy({label: 'gone'}), 0);
  });
  await step('a lock', () => db.transaction((manager) => manager.findOne('Person',
    {where: {email: 'a@b'}, lock: {mode: 'pessimistic_write'}})));
  await step('soft removal', async () => {
    await people().softDelete({email: 'c@d'});
    assert.strictEqual(await people().countBy({email: 'c@d'}), 0);
    await people().restore({email: 'c@d'});
  });
  await step('a key that is taken', () => assert.rejects(
    people().insert({email: 'a@b'}), {name: 'QueryFailedError', code: '23505'}));
  await step('remove', async () => {
    const ada = await people().findOneByOrFail({email: 'a@b'});
    await people().remove(ada);
    assert.strictEqual(await db.getRepository('Visit').count(), 0);
  });
  await step('a changed entity', async () => {
    await db.getRepository('Group').createQueryBuilder().delete().execute();
    const wider = new EntitySchema({...Group.options, columns: {...Group.options.columns,
      label: {type: 'varchar', length: 80, unique: true}, note: {type: 'text', nullable: true}}});
    const other = new DataSource({...options, entities: [Person, Visit, wider]});
    await other.initialize();
    await other.synchronize();
    const {upQueries} = await other.driver.createSchemaBuilder().log();
    assert.deepStrictEqual(upQueries.map((query) => query.query), []);
    await other.destroy();
  });
  await step('migrations', async () => {
    const other = new DataSource({...options, migrations: [First1700000000000]});
    await other.initialize();
    assert.strictEqual((await other.runMigrations()).length, 1);
    assert.strictEqual((await other.runMigrations()).length, 0);
    await other.undoLastMigration();
    await other.destroy();
  });
  await step('drop', async () => {
    await db.dropDatabase();
    await db.destroy();
  });
});
