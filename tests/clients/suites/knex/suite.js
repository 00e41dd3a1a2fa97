// Builds and changes tables with knex's schema builder and migrations, and reads and writes with its query builder.
'use strict';
const { PORT, check, createDatabase, finish, plain } = require('../shared/checks.js');
const knex = require('knex');

async function main() {
  await createDatabase('shop');
  const db = knex({
    client: 'mysql2',
    connection: { host: '127.0.0.1', port: PORT, user: 'root', database: 'shop', dateStrings: true },
    pool: { min: 0, max: 3 },
  });
  const names = () => db('orders').orderBy('id').limit(3).pluck('name');

  await check('create table', async () => {
    await db.schema.createTable('orders', (table) => {
      table.integer('id').notNullable().primary();
      table.string('name', 50);
      table.decimal('amount', 10, 2);
      table.dateTime('moment');
      table.boolean('done').defaultTo(false);
      table.double('part');
    });
    return db.schema.hasTable('orders');
  }, true);
  if (!(await db.schema.hasTable('orders'))) {
    // The other checks need the table, even if knex's own statement was refused.
    await db.raw('CREATE TABLE orders (id INT NOT NULL, name VARCHAR(50), amount DECIMAL(10,2), moment DATETIME, '
      + 'done BOOLEAN DEFAULT "0", part DOUBLE) UNIQUE KEY(id)');
  }
  await check('create a table of all types', async () => {
    await db.schema.createTable('kinds', (table) => {
      table.increments('id');
      table.text('text');
      table.text('long', 'longtext');
      table.json('document');
      table.timestamp('stamp').defaultTo(db.fn.now());
      table.float('part');
      table.bigInteger('big').unsigned();
      table.date('day');
      table.uuid('uuid');
      table.enu('kind', ['a', 'b']);
      table.string('unique').unique();
      table.timestamps(true, true);
      table.index(['day'], 'by_day');
    });
    const [id] = await db('kinds').insert({ text: 't', long: 'l', document: '{"a":1}', big: 5, day: '2024-02-29', kind: 'a' });
    const row = await db('kinds').where({ id }).first('text', 'long', 'big', 'day', 'kind');
    return plain(row);
  }, { text: 't', long: 'l', big: 5, day: '2024-02-29', kind: 'a' });
  await check('generated keys', async () => {
    const [first] = await db('kinds').insert({ text: 'x', unique: 'x' });
    const [second] = await db('kinds').insert({ text: 'y', unique: 'y' });
    return [first > 0, second > first, (await db('kinds').where({ id: second }).first()).text];
  }, [true, true, 'y']);
  await check('insert many', async () => {
    const rows = [];
    for (let id = 1; id <= 300; id += 1) {
      rows.push({ id, name: `name ${id}`, amount: id * 1.25, moment: '2024-01-02 03:04:05', done: id % 2 === 0, part: id / 4 });
    }
    await db.batchInsert('orders', rows, 100);
    return plain(await db('orders').count('* as c').sum('amount as s'));
  }, [{ c: 300, s: '56437.50' }]);
  await check('first row', async () => plain(await db('orders').where({ id: 6 }).first()),
    { id: 6, name: 'name 6', amount: '7.50', moment: '2024-01-02 03:04:05', done: 1, part: 1.5 });
  await check('where in, between, null', async () => (await db('orders').whereIn('id', [1, 2, 900]).orWhereBetween('id', [10, 12])
    .orWhereNull('name')).length, 5);
  await check('like in any case', async () => (await db('orders').whereILike('name', 'NAME 30%')).length, 2);
  await check('join', async () => (await db('orders as a').join('orders as b', 'a.id', 'b.id').where('a.id', '<', 4)
    .select('b.name')).length, 3);
  await check('group and having', async () => plain(await db('orders').select('done').count('* as c').groupBy('done')
    .having('c', '>', 1).orderBy('done')), [{ done: 0, c: 150 }, { done: 1, c: 150 }]);
  await check('limit and offset', async () => db('orders').orderBy('id').limit(2).offset(5).pluck('id'), [6, 7]);
  await check('with', async () => (await db.with('few', db('orders').where('id', '<', 5)).from('few').count('* as c'))[0].c, 4);
  await check('window', async () => plain(await db('orders').select('id').rowNumber('r', 'id').orderBy('id').limit(2)),
    [{ id: 1, r: 1 }, { id: 2, r: 2 }]);
  await check('union', async () => (await db('orders').where('id', 1).union([db('orders').where('id', 2)])).length, 2);
  await check('update', async () => [await db('orders').where({ id: 1 }).update({ name: 'new' }), await names()],
    [1, ['new', 'name 2', 'name 3']]);
  await check('increment', async () => {
    await db('orders').where({ id: 2 }).increment('part', 10);
    return (await db('orders').where({ id: 2 }).first()).part;
  }, 10.5);
  await check('delete', async () => [await db('orders').where('id', '>', 290).del(), (await db('orders').count('* as c'))[0].c],
    [10, 290]);
  await check('insert or merge', async () => {
    await db('orders').insert([{ id: 3, name: 'merged' }]).onConflict('id').merge(['name']);
    const row = await db('orders').where({ id: 3 }).first();
    return [row.name, row.amount];
  }, ['merged', '3.75']);
  await check('insert or ignore', async () => {
    await db('orders').insert([{ id: 3, name: 'ignored' }, { id: 400, name: 'added' }]).onConflict('id').ignore();
    return db('orders').whereIn('id', [3, 400]).whereNot('name', 'ignored').orderBy('id').pluck('id');
  }, [3, 400]);
  await check('transaction that commits', async () => {
    await db.transaction(async (transaction) => {
      await transaction('orders').insert([{ id: 501, name: 'a' }]);
      await transaction('orders').insert([{ id: 502, name: 'b' }]);
    });
    return (await db('orders').whereIn('id', [501, 502])).length;
  }, 2);
  await check('transaction that rolls back', async () => {
    await db.transaction(async (transaction) => {
      await transaction('orders').insert([{ id: 601, name: 'a' }]);
      throw new Error('stop');
    }).catch(() => {});
    return (await db('orders').where('id', 601)).length;
  }, 0);
  await check('nested transaction', async () => {
    await db.transaction(async (outer) => {
      await outer('orders').insert([{ id: 701, name: 'a' }]);
      await outer.transaction(async (inner) => {
        await inner('orders').insert([{ id: 702, name: 'b' }]);
        throw new Error('stop');
      }).catch(() => {});
    });
    return db('orders').whereIn('id', [701, 702]).pluck('id');
  }, [701]);
  await check('delete in a transaction', async () => {
    await db.transaction((transaction) => transaction('orders').where({ id: 501 }).del());
    return (await db('orders').where('id', 501)).length;
  }, 0);
  await check('stream', async () => {
    let rows = 0;
    for await (const row of db('orders').where('id', '<=', 100).stream()) rows += row.id > 0 ? 1 : 0;
    return rows;
  }, 100);
  await check('columns', async () => Object.keys(await db('orders').columnInfo()), ['id', 'name', 'amount', 'moment', 'done', 'part']);
  await check('add a column', async () => {
    await db.schema.alterTable('orders', (table) => { table.string('city', 20).defaultTo('here'); });
    return (await db('orders').where({ id: 4 }).first()).city;
  }, 'here');
  await check('rename a column', async () => {
    await db.schema.alterTable('orders', (table) => { table.renameColumn('city', 'town'); });
    return (await db('orders').where({ id: 4 }).first()).town;
  }, 'here');
  await check('drop a column', async () => {
    await db.schema.alterTable('orders', (table) => { table.dropColumn('part'); });
    return db.schema.hasColumn('orders', 'part');
  }, false);
  await check('migrate and roll back', async () => {
    const migrations = {
      getMigrations: async () => ['one'],
      getMigrationName: (name) => name,
      getMigration: async () => ({
        up: (k) => k.schema.createTable('migrated', (table) => { table.integer('a'); }),
        down: (k) => k.schema.dropTable('migrated'),
      }),
    };
    await db.migrate.latest({ migrationSource: migrations });
    const there = await db.schema.hasTable('migrated');
    await db.migrate.rollback({ migrationSource: migrations });
    return [there, await db.schema.hasTable('migrated')];
  }, [true, false]);
  await check('rename and drop a table', async () => {
    await db.schema.renameTable('orders', 'renamed');
    const found = [await db.schema.hasTable('renamed'), await db.schema.hasTable('orders')];
    await db.schema.dropTableIfExists('renamed');
    return [...found, await db.schema.hasTable('renamed')];
  }, [true, false, false]);
  finish();
}

main();
