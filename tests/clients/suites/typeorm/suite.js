// Synchronizes entities with TypeORM, and uses repositories, the query builder, relations, transactions and migrations.
'use strict';
require('reflect-metadata');
const { PORT, check, createDatabase, finish, plain } = require('../shared/checks.js');
const { Between, DataSource, EntitySchema, In, Like } = require('typeorm');

const Order = new EntitySchema({
  name: 'Order',
  tableName: 'orders',
  columns: {
    id: { type: 'bigint', primary: true, transformer: { to: (v) => v, from: Number } },
    name: { type: 'varchar', length: 50, nullable: true },
    amount: { type: 'decimal', precision: 10, scale: 2, nullable: true },
    moment: { type: 'datetime', precision: 0, nullable: true },
    done: { type: 'boolean', default: false },
    document: { type: 'json', nullable: true },
  },
});
const Item = new EntitySchema({
  name: 'Item',
  tableName: 'items',
  columns: { id: { type: 'int', primary: true, generated: true }, label: { type: 'varchar', length: 20 } },
  relations: { order: { type: 'many-to-one', target: 'Order', joinColumn: true, nullable: true } },
});
const moment = new Date('2024-01-02T03:04:05Z');

class AddCity1700000000000 {
  async up(runner) { await runner.query('ALTER TABLE orders ADD COLUMN city VARCHAR(20) NULL DEFAULT "here"'); }

  async down(runner) { await runner.query('ALTER TABLE orders DROP COLUMN city'); }
}

async function main() {
  await createDatabase('shop');
  const source = new DataSource({
    type: 'mysql', host: '127.0.0.1', port: PORT, username: 'root', database: 'shop', entities: [Order, Item], timezone: 'Z',
    migrations: [AddCity1700000000000],
  });
  await check('connect', () => source.initialize());
  await check('synchronize', async () => {
    await source.synchronize();
    return plain(await source.query("SHOW TABLES LIKE 'orders'")).length;
  }, 1);
  if (!(await source.query("SHOW TABLES LIKE 'orders'")).length) {
    // The other checks need the table, even if TypeORM's own statement was refused.
    await source.query('CREATE TABLE orders (id BIGINT NOT NULL, name VARCHAR(50), amount DECIMAL(10,2), moment DATETIME, '
      + 'done BOOLEAN NOT NULL DEFAULT "0", document JSON) UNIQUE KEY(id)');
  }
  await check('synchronize again', async () => {
    const log = await source.driver.createSchemaBuilder().log();
    return log.upQueries.map((query) => query.query);
  }, []);
  const orders = source.getRepository('Order');
  await check('save and find', async () => {
    await orders.save({ id: 1, name: 'one', amount: '1.25', moment, done: true, document: { a: [1, 'x'] } });
    const found = await orders.findOneBy({ id: 1 });
    return [found.name, found.amount, found.moment.toISOString(), found.done, found.document];
  }, ['one', '1.25', moment.toISOString(), true, { a: [1, 'x'] }]);
  await check('insert many', async () => {
    await orders.insert(Array.from({ length: 150 }, (_, n) => ({ id: n + 10, name: `Name ${n}`, amount: n })));
    return [await orders.count(), (await orders.sum('amount')).toString()];
  }, [151, '11176.25']);
  await check('find with operators', async () => orders.count({
    where: [{ id: Between(10, 12) }, { id: In([20, 21, 9999]) }, { name: Like('one') }],
  }), 6);
  await check('page', async () => (await orders.find({ order: { id: 'DESC' }, skip: 1, take: 2 })).map((row) => row.id), [158, 157]);
  await check('query builder', async () => plain(await orders.createQueryBuilder('o').select('o.done', 'done')
    .addSelect('COUNT(*)', 'c').groupBy('o.done').orderBy('o.done').getRawMany()).map((row) => Number(row.c)), [150, 1]);
  await check('update', async () => {
    await orders.update({ id: 10 }, { name: 'new' });
    const row = await orders.findOneBy({ id: 10 });
    return [row.name, row.amount];
  }, ['new', '0.00']);
  await check('save a changed row', async () => {
    const row = await orders.findOneBy({ id: 11 });
    row.name = 'changed';
    await orders.save(row);
    return [(await orders.findOneBy({ id: 11 })).name, await orders.count()];
  }, ['changed', 151]);
  await check('upsert', async () => {
    await orders.upsert([{ id: 12, name: 'upserted' }, { id: 500, name: 'added' }], ['id']);
    return (await orders.find({ where: { id: In([12, 500]) }, order: { id: 'ASC' } })).map((row) => row.name);
  }, ['upserted', 'added']);
  await check('remove', async () => {
    await orders.remove(await orders.findOneBy({ id: 13 }));
    await orders.delete({ id: 14 });
    return orders.countBy({ id: In([13, 14]) });
  }, 0);
  await check('relations and generated keys', async () => {
    const items = source.getRepository('Item');
    const order = await orders.findOneBy({ id: 1 });
    const made = [await items.save({ label: 'x', order }), await items.save({ label: 'y', order })];
    const found = await items.find({ relations: { order: true }, order: { label: 'ASC' } });
    return [made[0].id > 0 && made[0].id !== made[1].id, found.map((item) => [item.label, item.order.name])];
  }, [true, [['x', 'one'], ['y', 'one']]]);
  await check('transaction that commits', async () => {
    await source.transaction(async (manager) => {
      await manager.insert('Order', { id: 601, name: 'a' });
      await manager.insert('Order', { id: 602, name: 'b' });
    });
    return orders.countBy({ id: In([601, 602]) });
  }, 2);
  await check('transaction that rolls back', async () => {
    await source.transaction(async (manager) => {
      await manager.insert('Order', { id: 603, name: 'a' });
      throw new Error('stop');
    }).catch(() => {});
    return orders.countBy({ id: 603 });
  }, 0);
  await check('stream', async () => {
    let rows = 0;
    for await (const row of await orders.createQueryBuilder('o').where('o.id < 100').stream()) rows += row ? 1 : 0;
    return rows > 80;
  }, true);
  await check('migrate and revert', async () => {
    await source.runMigrations();
    const [row] = await source.query('SELECT city FROM orders WHERE id = 1');
    await source.undoLastMigration();
    return [row.city, (await source.query("SHOW COLUMNS FROM orders LIKE 'city'")).length];
  }, ['here', 0]);
  await check('drop', async () => {
    await source.dropDatabase();
    return (await source.query("SHOW TABLES LIKE 'orders'")).length;
  }, 0);
  finish();
}

main();
