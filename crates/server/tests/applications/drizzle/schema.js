// What the application keeps.
'use strict';
const d = require('drizzle-orm/pg-core');
const {sql} = require('drizzle-orm');

exports.mood = d.pgEnum('mood', ['sad', 'ok']);
exports.person = d.pgTable('person', {
  id: d.serial('id').primaryKey(),
  name: d.varchar('name', {length: 40}).notNull().default('x'),
  email: d.text('email').unique(),
  mood: exports.mood('mood').default('ok'),
  credit: d.numeric('credit', {precision: 10, scale: 2}).default('0'),
  about: d.jsonb('about').default({}),
  tags: d.text('tags').array(),
  token: d.uuid('token').defaultRandom(),
  at: d.timestamp('at', {withTimezone: true}).defaultNow(),
}, (t) => [d.index('person_by_name').on(t.name, t.email.desc()),
  d.uniqueIndex('person_lower').on(sql`lower(${t.name})`).where(sql`${t.id} > 5`)]);
exports.visit = d.pgTable('visit', {
  id: d.bigint('id', {mode: 'number'}).primaryKey().generatedAlwaysAsIdentity(),
  personId: d.integer('person_id').notNull().references(() => exports.person.id, {onDelete: 'cascade'}),
  score: d.doublePrecision('score'),
  twice: d.doublePrecision('twice').generatedAlwaysAs(sql`score * 2`),
}, (t) => [d.check('score_is_good', sql`${t.score} >= 0`), d.unique('visit_once').on(t.personId, t.score)]);
