// Makes the tables that Prisma's migrations make, and uses them with Prisma's client: reads, writes, relations and transactions.
'use strict';
const fs = require('node:fs');
const { PORT, check, createDatabase, finish, plain } = require('../shared/checks.js');
const { PrismaMariaDb } = require('@prisma/adapter-mariadb');
const { Prisma, PrismaClient } = require('@prisma/client');

const code = (body) =>
  body().then(
    () => 'no error',
    (problem) => problem.code,
  );

async function tables() {
  const connection = await require('mysql2/promise').createConnection({
    host: '127.0.0.1',
    port: PORT,
    user: 'root',
    database: 'shop',
  });
  const statements = fs
    .readFileSync(`${__dirname}/tables.sql`, 'utf8')
    .split(/;\n/)
    .filter((text) => text.trim());
  for (const statement of statements) {
    const name = statement.match(/(CREATE TABLE|ADD CONSTRAINT) `(\w+)`/);
    await check(`${name[1].toLowerCase()} ${name[2]}`, async () => {
      await connection.query(statement);
    });
  }
  await connection.end();
}

async function writes(db) {
  const lamp = { code: 'p1', name: 'lamp', price: '12.50' };
  await check('create with a given key', async () => plain(await db.product.create({ data: lamp })), {
    code: 'p1',
    name: 'lamp',
    stock: 0,
    price: '12.5',
  });
  await check(
    'create with a generated key',
    async () => {
      const user = await db.user.create({ data: { email: 'ann@example.org', name: 'Ann' } });
      return [user.id > 0, user.email, user.age, Math.abs(user.made - Date.now()) < 60000];
    },
    [true, 'ann@example.org', 18, true],
  );
  await check(
    'create many',
    async () => {
      const data = Array.from({ length: 100 }, (_, n) => ({
        code: `c${String(n).padStart(3, '0')}`,
        name: `name ${n % 10}`,
        stock: n,
        price: n / 4,
      }));
      return [await db.product.createMany({ data }), await db.product.count()];
    },
    [{ count: 100 }, 101],
  );
  await check(
    'create many and skip duplicates',
    async () => {
      const data = [
        { code: 'c000', name: 'again', price: 1 },
        { code: 'p2', name: 'desk', price: 100 },
      ];
      const made = await db.product.createMany({ data, skipDuplicates: true });
      return [made, (await db.product.findUnique({ where: { code: 'c000' } })).name];
    },
    [{ count: 1 }, 'name 0'],
  );
  const kinds = {
    whole: -2147483648,
    small: -32768,
    big: -9223372036854775808n,
    float: 0.1,
    single: 0.25,
    decimal: '123456789012345678.123456789',
    flag: true,
    text: 'ünï 🙂 \' " \\ \n',
    document: { a: [1, 'x', null], b: { c: 1.5 } },
    moment: new Date('2024-02-29T12:30:45.123Z'),
    day: new Date('2024-02-29'),
    colour: 'green',
  };
  await check(
    'each kind of column',
    async () => {
      const { id } = await db.kinds.create({ data: kinds });
      const found = await db.kinds.findUniqueOrThrow({ where: { id } });
      return [...Object.keys(kinds).filter((name) => String(found[name]) !== String(kinds[name])), plain(found.document)];
    },
    [kinds.document],
  );
  await check(
    'bytes that are text',
    async () => {
      const { id } = await db.kinds.create({ data: { ...kinds, bytes: Buffer.from('text') } });
      return Buffer.from((await db.kinds.findUniqueOrThrow({ where: { id } })).bytes).toString();
    },
    'text',
  );
  await check(
    'bytes that are no text',
    async () => {
      const { id } = await db.kinds.create({ data: { ...kinds, bytes: Buffer.from([0, 255, 254]) } });
      return [...(await db.kinds.findUniqueOrThrow({ where: { id } })).bytes];
    },
    [0, 255, 254],
  );
  await check(
    'update',
    async () => plain(await db.product.update({ where: { code: 'c001' }, data: { stock: { increment: 5 }, name: 'new' } })),
    { code: 'c001', name: 'new', stock: 6, price: '0.25' },
  );
  await check(
    'update many',
    async () => [
      await db.product.updateMany({ where: { stock: { gte: 90 } }, data: { price: { multiply: 2 } } }),
      plain(await db.product.findUnique({ where: { code: 'c099' } })).price,
    ],
    [{ count: 10 }, '49.5'],
  );
  await check(
    'upsert',
    async () => {
      const upsert = (key, name) =>
        db.product.upsert({ where: { code: key }, update: { name }, create: { code: key, name: `made ${name}`, price: 1 } });
      return [
        (await upsert('c002', 'a')).name,
        (await upsert('p3', 'b')).name,
        (await upsert('p3', 'c')).name,
        await db.product.count(),
      ];
    },
    ['a', 'made b', 'c', 103],
  );
  await check('delete', async () => [(await db.product.delete({ where: { code: 'p3' } })).name, await db.product.count()], [
    'c',
    102,
  ]);
  await check('delete many', async () => db.product.deleteMany({ where: { code: { in: ['c050', 'c051', 'nothing'] } } }), {
    count: 2,
  });
  await check(
    'a key of two columns',
    async () => {
      await db.place.createMany({
        data: [
          { shelf: 1, level: 1, goods: 'a' },
          { shelf: 1, level: 2, goods: 'b' },
        ],
      });
      await db.place.update({ where: { shelf_level: { shelf: 1, level: 2 } }, data: { goods: 'new' } });
      return db.place.findMany({ orderBy: [{ shelf: 'asc' }, { level: 'desc' }] });
    },
    [
      { shelf: 1, level: 2, goods: 'new' },
      { shelf: 1, level: 1, goods: 'a' },
    ],
  );
  await check('a key that exists is an error', async () => code(() => db.product.create({ data: lamp })), 'P2002');
  await check(
    'an update of a row that is missing is an error',
    async () => code(() => db.product.update({ where: { code: 'no' }, data: { stock: 1 } })),
    'P2025',
  );
}

async function reads(db) {
  const codes = (rows) => rows.map((row) => row.code);
  const one = (key) => db.product.findUnique({ where: { code: key } });
  await check('find one', async () => [(await one('c010')).stock, await one('x')], [10, null]);
  await check(
    'find first or throw',
    async () => code(() => db.product.findFirstOrThrow({ where: { name: 'nothing' } })),
    'P2025',
  );
  await check(
    'conditions',
    async () =>
      codes(
        await db.product.findMany({
          where: {
            OR: [{ stock: { lt: 2 } }, { stock: { in: [20, 30] } }],
            NOT: { code: 'c000' },
            name: { not: 'desk' },
            price: { gt: 0 },
          },
          orderBy: { stock: 'desc' },
        }),
      ),
    ['c030', 'c020', 'p1'],
  );
  await check(
    'texts',
    async () => [
      await db.product.count({ where: { name: { startsWith: 'name' } } }),
      await db.product.count({ where: { name: { endsWith: ' 3' } } }),
      await db.product.count({ where: { name: { contains: 'AM' } } }),
      await db.product.count({ where: { name: { contains: '_' } } }),
    ],
    [96, 10, 97, 100],
  );
  await check('pages', async () => codes(await db.product.findMany({ orderBy: { code: 'asc' }, skip: 10, take: 2 })), [
    'c010',
    'c011',
  ]);
  await check(
    'pages by a cursor',
    async () => codes(await db.product.findMany({ orderBy: { code: 'asc' }, cursor: { code: 'c020' }, skip: 1, take: 2 })),
    ['c021', 'c022'],
  );
  await check('the last rows', async () => codes(await db.product.findMany({ orderBy: { code: 'asc' }, take: -2 })), [
    'p1',
    'p2',
  ]);
  await check(
    'chosen columns',
    async () => db.product.findMany({ select: { code: true, stock: true }, orderBy: { stock: 'desc' }, take: 1 }),
    [{ code: 'c099', stock: 99 }],
  );
  await check(
    'distinct',
    async () => (await db.product.findMany({ distinct: ['name'], where: { name: { startsWith: 'name' } } })).length,
    10,
  );
  await check(
    'aggregates',
    async () => {
      const found = await db.product.aggregate({
        _count: { _all: true },
        _sum: { stock: true },
        _avg: { stock: true },
        _max: { price: true },
        where: { stock: { lt: 10 } },
      });
      return [found._count._all, found._sum.stock, Math.round(found._avg.stock * 100), String(found._max.price)];
    },
    [12, 50, 417, '100'],
  );
  await check(
    'groups',
    async () =>
      (
        await db.product.groupBy({
          by: ['name'],
          _count: true,
          having: { stock: { _max: { gt: 95 } } },
          orderBy: { name: 'asc' },
        })
      ).map((row) => [row.name, row._count]),
    [
      ['name 6', 10],
      ['name 7', 10],
      ['name 8', 10],
      ['name 9', 10],
    ],
  );
  await check(
    'values in JSON',
    async () => db.kinds.count({ where: { bytes: null, document: { path: '$.b.c', equals: 1.5 } } }),
    1,
  );
  await check(
    'moments',
    async () =>
      db.kinds.count({
        where: { bytes: null, moment: { gte: new Date('2024-02-29T12:30:45.123Z'), lt: new Date('2024-03-01') } },
      }),
    1,
  );
  await check('raw', async () => db.$queryRaw`SELECT code, stock FROM products WHERE code = ${'c011'}`, [
    { code: 'c011', stock: 11 },
  ]);
  await check(
    'a raw list',
    async () => db.$queryRaw`
    SELECT code FROM products WHERE code IN (${Prisma.join(['c012', 'c013'])}) AND stock > ${12}`,
    [{ code: 'c013' }],
  );
  await check('raw change', async () => db.$executeRaw`UPDATE products SET stock = 1011 WHERE code = ${'c011'}`, 1);
}

async function relations(db) {
  const id = async (email) => (await db.user.findFirstOrThrow({ where: { email } })).id;
  await check(
    'create with what belongs to it',
    async () => {
      const user = await db.user.create({
        data: {
          email: 'bob@example.org',
          profile: { create: { city: 'Oslo' } },
          posts: { create: [{ title: 'one' }, { title: 'two' }] },
        },
        include: { profile: true, posts: { orderBy: { title: 'asc' } } },
      });
      return [user.profile.city, user.posts.map((post) => post.title)];
    },
    ['Oslo', ['one', 'two']],
  );
  if (!(await db.user.count({ where: { email: 'bob@example.org' } }))) {
    // The other checks need the rows, even if the transaction of all of them was refused.
    await db.user.createMany({ data: [{ email: 'bob@example.org' }] });
    await db.profile.createMany({ data: [{ city: 'Oslo', userId: await id('bob@example.org') }] });
    const authorId = await id('bob@example.org');
    await db.post.createMany({
      data: [
        { title: 'one', authorId },
        { title: 'two', authorId },
      ],
    });
  }
  await check(
    'include',
    async () => {
      const user = await db.user.findFirst({
        where: { email: 'bob@example.org' },
        include: { profile: true, posts: { orderBy: { title: 'desc' }, take: 1 } },
      });
      return [user.profile.city, user.posts.map((post) => post.title)];
    },
    ['Oslo', ['two']],
  );
  await check(
    'conditions of related rows',
    async () => [
      await db.user.count({ where: { posts: { some: { title: 'one' } } } }),
      await db.user.count({ where: { posts: { none: {} } } }),
      await db.post.count({ where: { author: { profile: { city: 'Oslo' } } } }),
      await db.user.count({ where: { posts: { every: { views: 0 } } } }),
    ],
    [1, 1, 2, 2],
  );
  await check(
    'counts of related rows',
    async () =>
      (await db.user.findMany({ select: { email: true, _count: { select: { posts: true } } }, orderBy: { email: 'asc' } })).map(
        (user) => [user.email, user._count.posts],
      ),
    [
      ['ann@example.org', 0],
      ['bob@example.org', 2],
    ],
  );
  await check(
    'order by related rows',
    async () => (await db.user.findMany({ orderBy: { posts: { _count: 'desc' } } })).map((user) => user.email),
    ['bob@example.org', 'ann@example.org'],
  );
  await check(
    'connect a related row',
    async () => {
      const post = await db.post.create({
        data: { title: 'three', author: { connect: { email: 'ann@example.org' } } },
        include: { author: true },
      });
      return post.author.name;
    },
    'Ann',
  );
  await check(
    'connect many to many',
    async () => {
      const post = await db.post.findFirst({ where: { title: 'one' } });
      await db.tag.createMany({ data: [{ name: 'red' }, { name: 'blue' }] });
      const found = await db.post.update({
        where: { id: post.id },
        data: { tags: { connect: [{ name: 'red' }, { name: 'blue' }] } },
        include: { tags: { orderBy: { name: 'asc' } } },
      });
      return found.tags.map((tag) => tag.name);
    },
    ['blue', 'red'],
  );
  await check(
    'disconnect related rows',
    async () => {
      const post = await db.post.findFirst({ where: { title: 'one' } });
      const found = await db.post.update({
        where: { id: post.id },
        data: { tags: { disconnect: { name: 'red' } } },
        include: { tags: true },
      });
      return found.tags.map((tag) => tag.name);
    },
    ['blue'],
  );
}

async function transactions(db) {
  const has = (key) => db.product.count({ where: { code: key } });
  await check(
    'several writes in one transaction',
    async () => {
      const made = (key) => db.product.createMany({ data: [{ code: key, name: 'a', price: 1 }] });
      await db.$transaction([made('t1'), made('t2')]);
      return [await has('t1'), await has('t2')];
    },
    [1, 1],
  );
  await check(
    'a transaction that rolls back',
    async () => {
      await db
        .$transaction(async (tx) => {
          await tx.product.createMany({ data: [{ code: 't3', name: 'a', price: 1 }] });
          throw new Error('stop');
        })
        .catch(() => {});
      return has('t3');
    },
    0,
  );
  await check(
    'a transaction with an isolation level',
    async () => {
      await db.$transaction(
        async (tx) => {
          await tx.product.createMany({ data: [{ code: 't4', name: 'a', price: 1 }] });
        },
        { isolationLevel: 'ReadCommitted' },
      );
      return has('t4');
    },
    1,
  );
  await check(
    'a transaction reads its own rows',
    async () =>
      db.$transaction(async (tx) => {
        await tx.product.createMany({ data: [{ code: 't5', name: 'a', price: 1 }] });
        return tx.product.count({ where: { code: 't5' } });
      }),
    1,
  );
  await check(
    'a transaction of two tables',
    async () => {
      await db.$transaction([
        db.product.createMany({ data: [{ code: 't6', name: 'a', price: 1 }] }),
        db.tag.createMany({ data: [{ name: 't6' }] }),
      ]);
      return [await has('t6'), await db.tag.count({ where: { name: 't6' } })];
    },
    [1, 1],
  );
}

async function main() {
  await createDatabase('shop');
  await tables();
  const adapter = new PrismaMariaDb({ host: '127.0.0.1', port: PORT, user: 'root', database: 'shop', connectionLimit: 5 });
  const db = new PrismaClient({ adapter });
  await check('connect to the server', () => db.$connect());
  await writes(db);
  await reads(db);
  await relations(db);
  await transactions(db);
  await db.$disconnect();
  finish();
}

main();
