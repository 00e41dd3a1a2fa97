// mysql2 for Node against a server: mysql2_checks.js CHECK PORT DATABASE
'use strict';

const assert = require('node:assert/strict');
const mysql = require('mysql2/promise');

const [check, port, database] = process.argv.slice(2);
const options = { host: '127.0.0.1', port: Number(port), user: 'root', password: '', database };

const DT = `CREATE TABLE dt (id INT NOT NULL, name VARCHAR(50) NULL, score INT NULL)
    DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1
    PROPERTIES ("replication_num" = "1", "group_commit_interval_ms" = "300")`;

const checks = {
  // Text protocol: placeholders that the client fills in. The driver shows the info text with the byte of its
  // length before it.
  async query(connection) {
    await connection.query(DT);
    const [insert] = await connection.query('INSERT INTO dt VALUES (?, ?, ?)', [1, "it's \\ \"me\"\n", null]);
    assert.equal(insert.affectedRows, 1);
    assert.match(insert.info, /\{'label':'label_[0-9a-f]{16}_[0-9a-f]{16}', 'status':'VISIBLE', 'txnId':'\d+'\}$/);
    const [rows] = await connection.query('SELECT * FROM dt WHERE id = ?', [1]);
    assert.deepEqual([...rows].map((row) => ({ ...row })), [{ id: 1, name: "it's \\ \"me\"\n", score: null }]);
  },

  // Many rows by `VALUES ?`.
  async bulk(connection) {
    await connection.query(DT);
    const rows = Array.from({ length: 3000 }, (_, number) => [number, `name ${number}`, number % 10]);
    const [insert] = await connection.query('INSERT INTO dt (id, name, score) VALUES ?', [rows]);
    assert.equal(insert.affectedRows, 3000);
    const [[sums]] = await connection.query('SELECT count(*) AS n, sum(score) AS s FROM dt');
    assert.equal(Number(sums.n), 3000);
    assert.equal(Number(sums.s), 13500);
  },

  // Server-side prepared statements, used again and with other values.
  async execute(connection) {
    await connection.query(DT);
    const insert = 'INSERT INTO dt (id, name, score) VALUES (?, ?, ?)';
    for (let number = 0; number < 50; number += 1) {
      const [result] = await connection.execute(insert, [number, number % 5 === 0 ? null : `name ${number}`, number]);
      assert.equal(result.affectedRows, 1);
    }
    const [rows] = await connection.execute('SELECT id, name, score FROM dt WHERE id >= ? AND id < ? ORDER BY id', [4, 7]);
    assert.deepEqual([...rows].map((row) => ({ ...row })), [
      { id: 4, name: 'name 4', score: 4 },
      { id: 5, name: null, score: 5 },
      { id: 6, name: 'name 6', score: 6 },
    ]);
    const [[count]] = await connection.execute('SELECT count(*) AS n FROM dt WHERE name IS NULL');
    assert.equal(Number(count.n), 10);
  },

  // Values of all types by both protocols.
  async types(connection) {
    await connection.query(`CREATE TABLE types (
      k INT NOT NULL, b BOOLEAN, t TINYINT, s SMALLINT, l BIGINT, ll LARGEINT, f FLOAT, d DOUBLE, n DECIMAL(27,9),
      day DATE, at DATETIME, at6 DATETIME(6), c CHAR(10), v VARCHAR(100), txt STRING, j JSON
    ) DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES ("replication_num" = "1")`);
    const values = [1, 1, -128, 32767, '9223372036854775807', '12345678901234567890123456789', 1.5, -2.25,
      '123456789012345678.123456789', '2024-02-29', '2024-02-29 23:59:59', '2024-02-29 23:59:59.123456', 'abc',
      'Grüße 😀', 'x'.repeat(70000), '{"a": 1}'];
    const nulls = [2, ...Array(15).fill(null)];
    const places = `(${values.map(() => '?').join(', ')})`;
    await connection.query(`INSERT INTO types VALUES ${places}`, values);
    await connection.execute(`INSERT INTO types VALUES ${places}`, nulls);
    await connection.execute(`INSERT INTO types VALUES ${places}`, [3, ...values.slice(1)]);
    const expected = { k: 1, b: 1, t: -128, s: 32767, l: '9223372036854775807', ll: '12345678901234567890123456789',
      f: 1.5, d: -2.25, n: '123456789012345678.123456789', day: '2024-02-29', at: '2024-02-29 23:59:59',
      at6: '2024-02-29 23:59:59.123456', c: 'abc', v: 'Grüße 😀', txt: 'x'.repeat(70000), j: { a: 1 } };
    for (const method of ['query', 'execute']) {
      const [rows] = await connection[method]('SELECT * FROM types ORDER BY k');
      assert.equal(rows.length, 3, method);
      const plain = [...rows].map((row) => ({ ...row, j: typeof row.j === 'string' ? JSON.parse(row.j) : row.j }));
      assert.deepEqual(plain[0], expected, method);
      assert.deepEqual(Object.values({ ...rows[1] }), nulls, method);
      assert.deepEqual(plain[2], { ...expected, k: 3 }, method);
    }
  },

  async multiple(connection) {
    const [results] = await connection.query('SELECT 1 AS one; SELECT 2 AS two');
    assert.deepEqual(results.map(([row]) => Number(row.one ?? row.two)), [1, 2]);
  },

  // Ten connections at once, in one group.
  async pool() {
    const pool = mysql.createPool({ ...options, connectionLimit: 10 });
    await pool.query(DT);
    await pool.query('ALTER TABLE dt SET ("group_commit_mode" = "async_mode")');
    const inserts = Array.from({ length: 200 }, (_, number) =>
      pool.execute('INSERT INTO dt VALUES (?, ?, ?)', [number, `name ${number}`, 1]));
    for (const [result] of await Promise.all(inserts)) {
      assert.match(result.info, /\{'label':'group_commit_/);
    }
    await pool.query('SYNC');
    const [[sums]] = await pool.query('SELECT count(DISTINCT id) AS n, sum(score) AS s FROM dt');
    assert.deepEqual([Number(sums.n), Number(sums.s)], [200, 200]);
    await pool.end();
  },

  // The compressed protocol, with answers smaller and larger than one compressed packet.
  async compressed() {
    const connection = await mysql.createConnection({ ...options, compress: true });
    await connection.query('CREATE TABLE texts (k INT NOT NULL, v STRING) DUPLICATE KEY(k) '
      + 'DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES ("replication_num" = "1")');
    const rows = Array.from({ length: 2000 }, (_, number) => [number, `value ${number} `.repeat(20)]);
    rows.push([2000, 'x'.repeat(700000)], [2001, '']);
    await connection.query('INSERT INTO texts VALUES ?', [rows]);
    const [found] = await connection.query({ sql: 'SELECT * FROM texts ORDER BY k', rowsAsArray: true });
    assert.deepEqual(found, rows);
    const [large] = await connection.execute('SELECT v FROM texts WHERE k = ?', [2000]);
    assert.equal(large[0].v, rows[2000][1]);
    await connection.end();
  },

  async transactions(connection) {
    await connection.query(DT);
    const reader = await mysql.createConnection(options);
    const count = async () => Number((await reader.query('SELECT count(*) AS n FROM dt'))[0][0].n);
    await connection.beginTransaction();
    await connection.query('INSERT INTO dt VALUES (?, ?, ?)', [1, 'a', 1]);
    await connection.execute('INSERT INTO dt VALUES (?, ?, ?)', [2, 'b', 2]);
    assert.equal(await count(), 0);
    await connection.commit();
    assert.equal(await count(), 2);
    await connection.beginTransaction();
    await connection.query('INSERT INTO dt VALUES (3, "c", 3)');
    await connection.rollback();
    assert.equal(await count(), 2);
    await reader.end();
  },

  async errors(connection) {
    await connection.query(DT);
    const fails = async (promise, errno, sqlState, text) => {
      await assert.rejects(promise, (error) => {
        assert.deepEqual([error.errno, error.sqlState], [errno, sqlState], error.message);
        assert.ok(error.message.includes(text), error.message);
        return true;
      });
    };
    await fails(connection.query('SELECT * FROM nowhere'), 1146, '42S02', 'Table [nowhere] does not exist in database');
    await fails(connection.query('SELECT nickname FROM dt'), 1054, '42S22', "Unknown column 'nickname'");
    await fails(connection.execute('SELEC ?', [1]), 1064, '42000', 'errCode = 2, detailMessage = ');
    await fails(connection.execute('INSERT INTO dt VALUES (?, ?, ?)', ['x', 'a', 1]), 1105, 'HY000',
      'column(id) value is incorrect while strict mode is true, src value is x');
    await fails(mysql.createConnection({ ...options, password: 'wrong' }), 1045, '28000', 'Access denied for user');
    await connection.ping();
  },
};

async function main() {
  const connection = await mysql.createConnection({ ...options, multipleStatements: check === 'multiple',
    supportBigNumbers: true, bigNumberStrings: true, dateStrings: true });
  try {
    await checks[check](connection);
  } finally {
    await connection.end();
  }
  console.log('ok');
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
