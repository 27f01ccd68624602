// Prisma's client, on tables as its migrations make them: CRUD with relations, raw SQL, blocks. The
// engine of its migrations is not in the registry, so they are not run.
'use strict';
const assert = require('node:assert');
const fs = require('node:fs');
const path = require('node:path');
const {Client} = require('pg');
const {PrismaClient, Prisma} = require('@prisma/client');
const {PrismaPg} = require('@prisma/adapter-pg');
const {pg, url, step, scenario} = require('steps.js');

scenario(async () => {
  const client = new Client(pg);
  await client.connect();
  const prisma = new PrismaClient({adapter: new PrismaPg({connectionString: url})});
  await step('tables', () => client.query(fs.readFileSync(path.join(__dirname, 'tables.sql'), 'utf8')));
  await step('connect', () => prisma.$connect());
  await step('create with relations', async () => {
    const ada = await prisma.person.create({include: {visits: true, groups: true}, data: {name: 'Ada',
      email: 'a@b', about: {a: {b: 1}}, tags: ['x', 'y'], raw: Uint8Array.from([0, 255]), mood: 'sad',
      visits: {create: [{place: 'here', score: 1}, {place: 'there', score: 7}]},
      groups: {connectOrCreate: {where: {label: 'red'}, create: {label: 'red'}}}}});
    assert.deepStrictEqual([ada.visits.map((visit) => visit.score), ada.groups.length], [[1, 7], 1]);
  });
  await step('find with relations', async () => {
    const [ada] = await prisma.person.findMany({take: 5, orderBy: [{name: 'asc'}, {id: 'desc'}],
      where: {name: {contains: 'AD', mode: 'insensitive'}, visits: {some: {score: {gt: 5}}},
        groups: {every: {label: {in: ['red']}}}},
      include: {visits: {orderBy: {score: 'desc'}, take: 1}, _count: {select: {visits: true}}}});
    assert.deepStrictEqual([ada.visits[0].place, ada._count.visits, ada.tags], ['there', 2, ['x', 'y']]);
  });
  await step('JSON and lists', async () => {
    assert.strictEqual(await prisma.person.count({where: {about: {path: ['a', 'b'], equals: 1}}}), 1);
    assert.strictEqual(await prisma.person.count({where: {tags: {has: 'x'}}}), 1);
    assert.strictEqual(await prisma.person.count({where: {tags: {hasEvery: ['x', 'y']}}}), 1);
  });
  await step('upsert', async () => {
    const bea = await prisma.person.upsert({where: {email: 'a@b'}, create: {email: 'a@b'},
      update: {name: 'Bea', credit: {increment: 2.5}}});
    assert.deepStrictEqual([bea.name, bea.credit.toString()], ['Bea', '2.5']);
  });
  await step('many', async () => {
    const data = Array.from({length: 500}, (_, n) => ({label: `g${n}`}));
    assert.strictEqual((await prisma.group.createMany({data, skipDuplicates: true})).count, 500);
    const made = await prisma.group.createManyAndReturn({data: [{label: 'one'}], select: {label: true}});
    assert.deepStrictEqual(made, [{label: 'one'}]);
    assert.strictEqual((await prisma.group.deleteMany({where: {label: {startsWith: 'g'}}})).count, 500);
    assert.strictEqual((await prisma.visit.updateMany({data: {place: 'x'}})).count, 2);
  });
  await step('groups', async () => {
    const rows = await prisma.visit.groupBy({by: ['personId'], _sum: {score: true}, _count: true,
      having: {score: {_avg: {gt: 1}}}});
    assert.deepStrictEqual(rows, [{personId: 1, _sum: {score: 8}, _count: 2}]);
    const all = await prisma.visit.aggregate({_max: {score: true}, _avg: {score: true}});
    assert.deepStrictEqual(all, {_max: {score: 7}, _avg: {score: 4}});
  });
  await step('pages by a cursor', async () => {
    const rows = await prisma.visit.findMany({cursor: {id: 1n}, skip: 1, take: 1, orderBy: {id: 'asc'}});
    assert.deepStrictEqual(rows.map((row) => row.id), [2n]);
    assert.strictEqual((await prisma.visit.findMany({distinct: ['place']})).length, 1);
  });
  await step('raw SQL', async () => {
    const rows = await prisma.$queryRaw`SELECT id, name FROM "Person" WHERE id = ${1} AND name <> ${'x'}`;
    assert.deepStrictEqual(rows, [{id: 1, name: 'Bea'}]);
    assert.strictEqual(await prisma.$executeRaw`UPDATE "Visit" SET score = score + ${1}`, 2);
    await prisma.$queryRaw`SELECT ${Prisma.join([1, 2])}`;
  });
  await step('a transaction in a row', async () => {
    const [, count] = await prisma.$transaction([prisma.group.create({data: {label: 'two'}}),
      prisma.group.count()], {isolationLevel: 'Serializable'});
    assert.strictEqual(count, 3);
  });
  await step('a transaction that goes back', async () => {
    await assert.rejects(prisma.$transaction(async (tx) => {
      await tx.group.create({data: {label: 'gone'}});
      throw new Error('no');
    }));
    assert.strictEqual(await prisma.group.count({where: {label: 'gone'}}), 0);
  });
  await step('a key that is taken', () => assert.rejects(
    prisma.group.create({data: {label: 'red'}}), {code: 'P2002'}));
  await step('a key that is missing', () => assert.rejects(
    prisma.visit.create({data: {personId: 999, score: 1}}), {code: 'P2003'}));
  await step('delete', async () => {
    await prisma.person.delete({where: {email: 'a@b'}});
    assert.strictEqual(await prisma.visit.count(), 0);
    await assert.rejects(prisma.person.delete({where: {id: 1}}), {code: 'P2025'});
  });
  await prisma.$disconnect();
});
