// Logins of mysql2 for Node: login_checks.js PORT CA USER:PASSWORD:WAY ...
//
// WAY is `plain` (no TLS) or `tls` (the server's certificate is checked against CA). Prints a line per login: the cipher, `-` for
// none, or the number of the error.
'use strict';

const fs = require('node:fs');
const mysql = require('mysql2/promise');

const [port, ca, ...cases] = process.argv.slice(2);

async function login(user, password, way) {
  const options = { host: 'localhost', port: Number(port), user, password };
  if (way === 'tls') {
    options.ssl = { ca: fs.readFileSync(ca), rejectUnauthorized: true, verifyIdentity: true };
  }
  let connection;
  try {
    connection = await mysql.createConnection(options);
  } catch (error) {
    return String(error.errno ?? error.message);
  }
  const [rows] = await connection.query("SHOW STATUS LIKE 'Ssl_cipher'");
  await connection.end();
  return rows[0].Value || '-';
}

(async () => {
  for (const text of cases) {
    console.log(await login(...text.split(':')));
  }
})();
