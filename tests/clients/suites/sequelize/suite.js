// Synchronizes models with Sequelize, and uses them: reads, writes, associations, transactions and changes of tables.
'use strict';
const { PORT, check, createDatabase, finish, plain } = require('../shared/checks.js');
const { DataTypes, Op, Sequelize } = require('sequelize');

async function main() {
  await createDatabase('shop');
  const db = new Sequelize('shop', 'root', '', { host: '127.0.0.1', port: PORT, dialect: 'mysql', logging: false, timezone: '+00:00' });
  const Order = db.define('order', {
    id: { type: DataTypes.BIGINT, primaryKey: true },
    name: DataTypes.STRING(50),
    amount: DataTypes.DECIMAL(10, 2),
    moment: DataTypes.DATE,
    day: DataTypes.DATEONLY,
    done: { type: DataTypes.BOOLEAN, defaultValue: false },
    part: DataTypes.DOUBLE,
    note: DataTypes.TEXT('long'),
    document: DataTypes.JSON,
  }, { timestamps: false });
  const Item = db.define('item', { label: { type: DataTypes.STRING, unique: true } });
  Order.hasMany(Item);
  Item.belongsTo(Order);
  const moment = new Date('2024-01-02T03:04:05Z');

  await check('authenticate', () => db.authenticate());
  await check('version', async () => /^\d+\.\d+\.\d+/.test(await db.databaseVersion()), true);
  await check('sync', async () => {
    await db.sync();
    const tables = await db.getQueryInterface().showAllTables();
    return ['orders', 'items'].every((name) => tables.includes(name));
  }, true);
  if (!(await db.getQueryInterface().tableExists('orders'))) {
    // The other checks need the table, even if Sequelize's own statement was refused.
    await db.query('CREATE TABLE orders (id BIGINT NOT NULL, name VARCHAR(50), amount DECIMAL(10,2), moment DATETIME, day DATE, '
      + 'done BOOLEAN, part DOUBLE, note STRING, document JSON) UNIQUE KEY(id)');
  }
  await check('sync again', async () => { await db.sync({ alter: false }); });
  await check('create and find', async () => {
    await Order.create({ id: 1, name: 'one', amount: '1.25', moment, day: '2024-02-29', part: 0.5, note: 'n', document: { a: [1, 'x'] } });
    const found = await Order.findByPk(1);
    return [found.name, found.amount, found.moment.toISOString(), found.day, found.done, found.part, found.document];
  }, ['one', '1.25', moment.toISOString(), '2024-02-29', false, 0.5, { a: [1, 'x'] }]);
  await check('insert many', async () => {
    await Order.bulkCreate(Array.from({ length: 200 }, (_, n) => ({ id: n + 10, name: `Name ${n}`, amount: n, done: n % 2 === 0 })));
    return [await Order.count(), await Order.sum('amount')];
  }, [201, 19901.25]);
  await check('find with operators', async () => (await Order.findAll({
    where: { id: { [Op.between]: [10, 20] }, name: { [Op.like]: 'Name%' }, [Op.or]: [{ done: true }, { amount: { [Op.gt]: 8 } }] },
  })).length, 7);
  await check('find in any case', async () => Order.count({ where: { name: { [Op.like]: 'NAME 19%' } } }), 11);
  await check('order and page', async () => (await Order.findAndCountAll({ order: [['id', 'DESC']], limit: 2, offset: 1 })).rows
    .map((row) => Number(row.id)), [208, 207]);
  await check('group', async () => plain(await Order.findAll({
    attributes: ['done', [db.fn('COUNT', db.col('id')), 'c']], group: 'done', order: ['done'],
  })), [{ done: false, c: 101 }, { done: true, c: 100 }]);
  await check('update', async () => [(await Order.update({ name: 'new' }, { where: { id: 10 } }))[0], (await Order.findByPk(10)).name],
    [1, 'new']);
  await check('save', async () => {
    const order = await Order.findByPk(11);
    order.name = 'saved';
    await order.save();
    return [(await Order.findByPk(11)).name, (await Order.findByPk(11)).amount];
  }, ['saved', '1.00']);
  await check('increment', async () => {
    await Order.increment('amount', { by: 5, where: { id: 12 } });
    return (await Order.findByPk(12)).amount;
  }, '7.00');
  await check('upsert', async () => {
    await Order.upsert({ id: 13, name: 'upserted' });
    await Order.upsert({ id: 900, name: 'added' });
    return [(await Order.findByPk(13)).name, (await Order.findByPk(13)).amount, (await Order.findByPk(900)).name];
  }, ['upserted', '3.00', 'added']);
  await check('find or create', async () => {
    const made = [];
    for (const name of ['a', 'b']) made.push((await Order.findOrCreate({ where: { id: 901 }, defaults: { name } }))[1]);
    return [...made, (await Order.findByPk(901)).name];
  }, [true, false, 'a']);
  await check('destroy', async () => [await Order.destroy({ where: { id: { [Op.between]: [200, 209] } } }), await Order.count({ where: { id: { [Op.lt]: 500 } } })],
    [10, 191]);
  await check('associations and generated keys', async () => {
    const order = await Order.findByPk(1);
    const items = [await order.createItem({ label: 'x' }), await order.createItem({ label: 'y' })];
    const found = await Order.findByPk(1, { include: Item });
    return [items.every((item) => item.id > 0) && items[0].id !== items[1].id, found.items.map((item) => item.label).sort()];
  }, [true, ['x', 'y']]);
  await check('transaction that commits', async () => {
    await db.transaction(async (transaction) => {
      await Order.create({ id: 1001, name: 'a' }, { transaction });
      await Order.create({ id: 1002, name: 'b' }, { transaction });
    });
    return Order.count({ where: { id: [1001, 1002] } });
  }, 2);
  await check('transaction that rolls back', async () => {
    await db.transaction(async (transaction) => {
      await Order.create({ id: 1003, name: 'a' }, { transaction });
      throw new Error('stop');
    }).catch(() => {});
    return Order.count({ where: { id: 1003 } });
  }, 0);
  await check('delete in a transaction', async () => {
    await db.transaction((transaction) => Order.destroy({ where: { id: 1001 }, transaction }));
    return Order.count({ where: { id: 1001 } });
  }, 0);
  const tables = db.getQueryInterface();
  await check('describe', async () => {
    const columns = await tables.describeTable('orders');
    return [Object.keys(columns).length, columns.id.allowNull, columns.id.primaryKey, columns.name.type];
  }, [9, false, true, 'VARCHAR(50)']);
  await check('add and remove a column', async () => {
    await tables.addColumn('orders', 'city', { type: DataTypes.STRING(20), defaultValue: 'here' });
    const [[row]] = await db.query('SELECT city FROM orders WHERE id = 1');
    await tables.removeColumn('orders', 'city');
    return [row.city, 'city' in await tables.describeTable('orders')];
  }, ['here', false]);
  await check('change and rename a column', async () => {
    await tables.changeColumn('orders', 'name', { type: DataTypes.STRING(80) });
    await tables.renameColumn('orders', 'name', 'title');
    return (await tables.describeTable('orders')).title.type;
  }, 'VARCHAR(80)');
  await check('indexes', async () => {
    await tables.addIndex('orders', ['amount'], { name: 'by_amount' });
    return (await tables.showIndex('orders')).some((index) => index.name === 'by_amount');
  }, true);
  await check('drop', async () => {
    await db.drop();
    return tables.tableExists('orders');
  }, false);
  finish();
}

main();
