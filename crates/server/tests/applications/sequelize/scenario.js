// Sequelize: sync, alter, CRUD with relations, blocks, introspection by its query interface.
'use strict';
const assert = require('node:assert');
const {Sequelize, DataTypes, Op} = require('sequelize');
const {url, step, scenario} = require('steps.js');

const statements = [];
const db = new Sequelize(url, {logging: (text) => statements.push(text)});

const Person = db.define('Person', {
  name: {type: DataTypes.STRING(40), allowNull: false, defaultValue: 'x', comment: 'a name'},
  email: {type: DataTypes.TEXT, unique: true},
  mood: {type: DataTypes.ENUM('sad', 'ok'), defaultValue: 'ok'},
  credit: {type: DataTypes.DECIMAL(10, 2), defaultValue: 0},
  about: {type: DataTypes.JSONB, defaultValue: {}},
  tags: {type: DataTypes.ARRAY(DataTypes.STRING), defaultValue: []},
  token: {type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4},
  isIn: {type: DataTypes.BOOLEAN, defaultValue: true},
  day: DataTypes.DATEONLY,
  picture: DataTypes.BLOB,
}, {comment: 'people', paranoid: true});
const Visit = db.define('Visit', {
  id: {type: DataTypes.BIGINT, autoIncrement: true, primaryKey: true},
  place: {type: DataTypes.STRING, allowNull: false},
  score: {type: DataTypes.DOUBLE, validate: {min: 0}},
}, {indexes: [{fields: ['place', {name: 'score', order: 'DESC'}]},
  {unique: true, fields: ['place'], where: {score: {[Op.gt]: 5}}, name: 'visit_part'}]});
const Tag = db.define('Tag', {label: {type: DataTypes.STRING, primaryKey: true}}, {timestamps: false});
Person.hasMany(Visit, {foreignKey: {name: 'personId', allowNull: false}, onDelete: 'CASCADE'});
Visit.belongsTo(Person, {foreignKey: 'personId'});
Visit.belongsToMany(Tag, {through: 'VisitTags'});
Tag.belongsToMany(Visit, {through: 'VisitTags'});

scenario(async () => {
  await step('authenticate', () => db.authenticate());
  await step('sync', () => db.sync());
  await step('a second sync changes nothing', async () => {
    statements.length = 0;
    await db.sync();
    const made = statements.filter((text) => /CREATE (UNIQUE )?INDEX|CREATE TYPE|ALTER/.test(text)
      && !/DO |IF NOT EXISTS/.test(text));
    assert.deepStrictEqual(made, []);
  });
  await step('sync with alter', () => db.sync({alter: true}));
  await step('sync with alter again', () => db.sync({alter: true}));
  await step('sync with alter has a new column and an enum value', async () => {
    Person.rawAttributes.nick = {type: DataTypes.STRING};
    Person.rawAttributes.mood = {type: DataTypes.ENUM('sad', 'ok', 'glad'), defaultValue: 'ok'};
    Person.refreshAttributes();
    await Person.sync({alter: true});
  });
  await step('create with relations', async () => {
    const made = await Person.create({name: 'Ada', email: 'a@b', tags: ['x', 'y'], day: '1815-12-10',
      picture: Buffer.from([0, 255]), about: {a: {b: [1], c: 5}},
      Visits: [{place: 'here', score: 1}, {place: 'there', score: 7}]}, {include: Visit});
    assert.ok(made.id > 0);
    await made.Visits[0].addTag(await Tag.create({label: 'red'}));
  });
  await step('find with include', async () => {
    const found = await Person.findOne({where: {name: {[Op.iLike]: 'ad%'}},
      include: {model: Visit, include: Tag}, order: [[Visit, 'place', 'ASC']]});
    assert.deepStrictEqual(found.Visits.map((visit) => visit.Tags.length), [1, 0]);
    assert.deepStrictEqual(found.tags, ['x', 'y']);
  });
  await step('JSON and array conditions', async () => {
    assert.strictEqual(await Person.count({where: {'about.a.c': 5}}), 1);
    assert.strictEqual(await Person.count({where: {tags: {[Op.contains]: ['x']}}}), 1);
    assert.strictEqual(await Person.count({where: {about: {[Op.contains]: {a: {b: [1]}}}}}), 1);
  });
  await step('findAndCountAll with limit', async () => {
    const {count, rows} = await Person.findAndCountAll({include: Visit, limit: 1, distinct: true});
    assert.deepStrictEqual([count, rows.length], [1, 1]);
  });
  await step('groups', async () => {
    const rows = await Visit.findAll({attributes: ['place', [db.fn('COUNT', db.col('id')), 'n']],
      group: ['place'], having: db.where(db.fn('COUNT', db.col('id')), '>', 0), raw: true});
    assert.strictEqual(rows.length, 2);
  });
  await step('upsert', async () => {
    const [made] = await Person.upsert({email: 'a@b', name: 'Bea'});
    assert.strictEqual(made.name, 'Bea');
  });
  await step('findOrCreate', async () => {
    const [, isNew] = await Person.findOrCreate({where: {email: 'c@d'}, defaults: {name: 'Cy'}});
    const [, again] = await Person.findOrCreate({where: {email: 'c@d'}, defaults: {name: 'Cy'}});
    assert.deepStrictEqual([isNew, again], [true, false]);
  });
  await step('bulkCreate and update on duplicates', async () => {
    const rows = Array.from({length: 500}, (_, n) => ({email: `e${n}`, name: `n${n}`}));
    await Person.bulkCreate(rows, {updateOnDuplicate: ['name']});
    await Person.bulkCreate(rows, {ignoreDuplicates: true});
    assert.strictEqual(await Person.count({where: {email: {[Op.startsWith]: 'e'}}}), 500);
  });
  await step('increment', async () => {
    const person = await Person.findOne({where: {email: 'c@d'}});
    await person.increment('credit', {by: 2.5});
    assert.strictEqual((await person.reload()).credit, '2.50');
  });
  await step('a transaction that goes back', async () => {
    await assert.rejects(db.transaction(async (transaction) => {
      await Tag.create({label: 'gone'}, {transaction});
      throw new Error('no');
    }));
    assert.strictEqual(await Tag.count({where: {label: 'gone'}}), 0);
  });
  await step('a transaction with a lock', () => db.transaction(
    {isolationLevel: 'SERIALIZABLE'}, async (transaction) => {
      const person = await Person.findOne({where: {email: 'c@d'}, lock: true, transaction});
      await person.update({name: 'Cyd'}, {transaction});
    }));
  await step('errors of keys', async () => {
    await assert.rejects(Tag.create({label: 'red'}), {name: 'SequelizeUniqueConstraintError'});
    await assert.rejects(Visit.create({place: 'x', personId: 99999}),
      {name: 'SequelizeForeignKeyConstraintError'});
  });
  await step('destroy', async () => {
    await Person.destroy({where: {email: 'c@d'}});
    assert.strictEqual(await Person.count({where: {email: 'c@d'}}), 0);
    assert.strictEqual(await Person.count({where: {email: 'c@d'}, paranoid: false}), 1);
    await Person.destroy({where: {email: 'a@b'}, force: true});
    assert.strictEqual(await Visit.count(), 0);
  });
  const at = db.getQueryInterface();
  await step('describeTable', async () => {
    const columns = await at.describeTable('People');
    assert.deepStrictEqual([columns.id.primaryKey, columns.name.type, columns.name.comment],
      [true, 'CHARACTER VARYING(40)', 'a name']);
    assert.deepStrictEqual(columns.mood.special, ['sad', 'ok', 'glad']);
  });
  await step('showIndex', async () => {
    const indexes = await at.showIndex('Visits');
    assert.deepStrictEqual(indexes.map((index) => index.name).sort(),
      ['Visits_pkey', 'visit_part', 'visits_place_score']);
  });
  await step('keys of a table', async () => {
    const keys = await at.getForeignKeyReferencesForTable('Visits');
    assert.deepStrictEqual(keys.map((key) => key.referencedTableName), ['People']);
  });
  await step('columns added, renamed, changed, removed', async () => {
    await at.addColumn('Tags', 'n', {type: DataTypes.INTEGER, defaultValue: 1});
    await at.renameColumn('Tags', 'n', 'm');
    await at.changeColumn('Tags', 'm', {type: DataTypes.BIGINT, allowNull: false, defaultValue: 2});
    await at.addIndex('Tags', ['m']);
    await at.addConstraint('Tags', {type: 'check', fields: ['m'], where: {m: {[Op.gt]: 0}}});
    await at.removeColumn('Tags', 'm');
  });
  await step('drop', () => db.drop({cascade: true}));
});
