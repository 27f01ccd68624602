// node-postgres: values, prepared statements, a pool with blocks, errors.
//
// Usage: PGPORT=PORT node node_test.js      (scripts/clients.sh starts the server and calls this)
'use strict';
const assert = require('node:assert');
const {after, beforeEach, test} = require('node:test');
const {Client, Pool} = require('pg');

const options = {host: '127.0.0.1', user: 'nvcaracal', database: 'nvcaracal'};
const pool = new Pool({...options, max: 8});

beforeEach(() => pool.query('DROP TABLE IF EXISTS a, v'));
after(() => pool.end());

async function connected(t) {
  const client = new Client(options);
  await client.connect();
  t.after(() => client.end());
  return client;
}

test('values come back as they went', async () => {
  await pool.query(`CREATE TABLE v (id int PRIMARY KEY, b boolean, i8 bigint, f8 double precision,
      n numeric(20, 4), t text, y bytea, d date, tz timestamptz, u uuid, j jsonb)`);
  const at = new Date('2024-01-02T03:04:05.678Z');
  const values = [1, true, '9223372036854775807', -0.1, '-12345678901234.5678', "it's \u20ac",
    Buffer.from([0, 255, 7]), '2024-02-29', at, '12345678-1234-5678-1234-567812345678',
    {a: [1, null]}];
  const insert = 'INSERT INTO v VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) RETURNING *';
  const check = (row) => {
    assert.deepStrictEqual([row.id, row.b, row.i8, row.f8, row.n, row.t], values.slice(0, 6));
    assert.ok(row.y.equals(values[6]));
    assert.strictEqual(row.d.getFullYear(), 2024);
    assert.strictEqual(row.tz.getTime(), at.getTime());
    assert.deepStrictEqual([row.u, row.j], values.slice(9));
  };
  check((await pool.query(insert, values)).rows[0]);
  check((await pool.query('SELECT * FROM v')).rows[0]);
  const read = await pool.query({name: 'read', text: 'SELECT * FROM v WHERE id = $1', values: [1]});
  check(read.rows[0]);
  const nothing = await pool.query(insert, [2].concat(Array(10).fill(null)));
  assert.strictEqual(nothing.rows[0].j, null);
  assert.deepStrictEqual(nothing.fields.map((field) => field.dataTypeID).slice(0, 4), [23, 16, 20, 701]);
  const any = await pool.query('SELECT id FROM v WHERE id = ANY($1)', [[2, 3]]);
  assert.deepStrictEqual([any.rowCount, any.rows], [1, [{id: 2}]]);
});

test('prepared statements, and several in one text', async (t) => {
  const client = await connected(t);
  await client.query('CREATE TABLE a (id int PRIMARY KEY, n int NOT NULL)');
  for (let id = 0; id < 100; id++) {
    await client.query({name: 'insert', text: 'INSERT INTO a VALUES ($1, $2)', values: [id, id]});
  }
  const add = {name: 'add', text: 'UPDATE a SET n = n + 1 WHERE id = $1'};
  const many = Array.from({length: 100}, (_, id) => pool.query({...add, values: [id]}));
  assert.ok((await Promise.all(many)).every((result) => result.rowCount === 1));
  const results = await client.query('SELECT sum(n) FROM a; DELETE FROM a WHERE id < 3');
  assert.deepStrictEqual(results.map((result) => result.command), ['SELECT', 'DELETE']);
  assert.deepStrictEqual(results[0].rows, [{sum: '5050'}]);
  assert.strictEqual(results[1].rowCount, 3);
  const rows = await client.query({text: 'SELECT id, n FROM a LIMIT 1', rowMode: 'array'});
  assert.deepStrictEqual(rows.rows, [[3, 4]]);
});

test('blocks of a pool are repeated when they conflict', async () => {
  await pool.query('CREATE TABLE a (id int PRIMARY KEY, n int NOT NULL)');
  await pool.query('INSERT INTO a VALUES (1, 0)');
  let conflicts = 0;
  const block = async () => {
    const client = await pool.connect();
    try {
      for (;;) {
        try {
          await client.query('BEGIN');
          const {rows} = await client.query('SELECT n FROM a WHERE id = 1');
          await client.query('UPDATE a SET n = $1 WHERE id = 1', [rows[0].n + 1]);
          await client.query('COMMIT');
          return;
        } catch (error) {
          assert.strictEqual(error.code, '40001');
          conflicts++;
        }
      }
    } finally {
      client.release();
    }
  };
  await Promise.all(Array.from({length: 40}, block));
  assert.deepStrictEqual((await pool.query('SELECT n FROM a')).rows, [{n: 40}]);
  console.log(`${conflicts} conflicts`);
});

test('errors have their fields, and the connection goes on', async (t) => {
  const client = await connected(t);
  await client.query('CREATE TABLE a (id int PRIMARY KEY, n int CHECK (n > 0))');
  await client.query('INSERT INTO a VALUES (1, 1)');
  const refused = async (text, values, expected) => {
    await assert.rejects(client.query(text, values), (error) => {
      for (const [field, value] of Object.entries(expected)) assert.strictEqual(error[field], value);
      return true;
    });
  };
  const twice = {code: '23505', constraint: 'a_pkey', severity: 'ERROR'};
  await refused('INSERT INTO a VALUES ($1, 1)', [1], twice);
  await refused('INSERT INTO a VALUES (2, $1)', [0], {code: '23514', constraint: 'a_n_check'});
  await refused('SELECT nothing FROM a', [], {code: '42703', position: '8'});
  await refused('SELECT $1::int', ['x'], {code: '22P02'});
  await client.query('BEGIN');
  await refused('SELECT 1 / 0', [], {code: '22012'});
  await refused('SELECT 1', [], {code: '25P02'});
  assert.strictEqual((await client.query('COMMIT')).command, 'ROLLBACK');
  assert.strictEqual((await client.query('SELECT count(*) FROM a')).rows[0].count, '1');
});
