// What the JavaScript programs of the suites share: running checks and comparing.
'use strict';
const assert = require('node:assert');

const PORT = Number(process.env.SUITE_PORT);
let misses = 0;

// Runs a check and prints how it went; the body must return what is expected, if anything is.
async function check(name, body, ...expected) {
  try {
    const found = await body();
    if (expected.length) assert.deepStrictEqual(found, expected[0]);
    console.log(`ok ${name}`);
  } catch (problem) {
    misses += 1;
    const reason = `${problem.name}: ${problem.message}`.replace(/\s+/g, ' ');
    console.log(`MISS ${name}: ${reason.slice(0, 700)}`);
  }
}

// Ends the program with a code that tells whether all checks passed.
function finish() {
  process.exit(misses ? 1 : 0);
}

// Returns the row or rows as plain objects, for comparing.
const plain = (value) => JSON.parse(JSON.stringify(value));

async function createDatabase(name) {
  const connection = await require('mysql2/promise').createConnection({ host: '127.0.0.1', port: PORT, user: 'root' });
  await connection.query(`CREATE DATABASE ${name}`);
  await connection.end();
}

module.exports = { PORT, check, createDatabase, finish, plain };
