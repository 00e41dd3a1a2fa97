"""Uses tables through SQLAlchemy's core and ORM, writes and reads frames of pandas, and reflects with the dialect for Doris."""

import datetime
import decimal

import pandas
import sqlalchemy as sa
from sqlalchemy import func, select, text
from sqlalchemy.dialects import mysql
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from checks import PORT, check, equal, finish

COUNT = 200
MOMENT = datetime.datetime(2024, 1, 2, 3, 4, 5)
URL = f"mysql+pymysql://root@127.0.0.1:{PORT}/"

with sa.create_engine(URL).begin() as connection:
    connection.execute(text("CREATE DATABASE shop"))
engine = sa.create_engine(URL + "shop")
metadata = sa.MetaData()
orders = sa.Table(
    "orders", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False), sa.Column("name", sa.String(50)),
    sa.Column("amount", sa.Numeric(10, 2)), sa.Column("moment", sa.DateTime), sa.Column("day", sa.Date),
    sa.Column("done", sa.Boolean), sa.Column("part", sa.Float), sa.Column("note", sa.Text), sa.Column("big", sa.BigInteger),
    mysql_comment="the orders",
)
items = sa.Table(
    "items", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("name", sa.String(50), unique=True),
    sa.Column("order_id", sa.Integer, sa.ForeignKey("orders.id")),
)
kinds = sa.Table(
    "kinds", metadata, sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False), sa.Column("document", sa.JSON),
    sa.Column("long", mysql.LONGTEXT), sa.Column("double", sa.Double), sa.Column("stamp", sa.TIMESTAMP),
    sa.Column("uuid", sa.Uuid), sa.Column("small", sa.SmallInteger), sa.Column("unsigned", mysql.INTEGER(unsigned=True)),
    sa.Column("tiny", mysql.TINYINT(1)), sa.Column("micro", mysql.DATETIME(fsp=6)), sa.Column("float53", sa.Float(53)),
    sa.Column("fixed", sa.CHAR(5)),
)
blobs = sa.Table("blobs", metadata, sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
                 sa.Column("bytes", sa.LargeBinary))
indexed = sa.Table("indexed", metadata, sa.Column("a", sa.Integer), sa.Column("b", sa.Integer), sa.Index("by_b", "b"))


class Base(DeclarativeBase):
    pass


class Parent(Base):
    __tablename__ = "parents"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(20))
    children: Mapped[list["Child"]] = relationship(back_populates="parent", order_by="Child.id")


class Child(Base):
    __tablename__ = "children"
    id: Mapped[int] = mapped_column(primary_key=True)
    parent_id: Mapped[int] = mapped_column(sa.ForeignKey("parents.id"))
    parent: Mapped[Parent] = relationship(back_populates="children")


def run(statement, parameters=None, on=engine):
    """Runs a statement in a transaction of its own and returns its rows, or how many it changed."""
    with on.begin() as connection:
        result = connection.execute(statement, parameters) if parameters else connection.execute(statement)
        return [tuple(row) for row in result] if result.returns_rows else result.rowcount


def create(table):
    table.create(engine)
    return sa.inspect(engine).has_table(table.name)


def order(n):
    return dict(id=n, name=f"Name{n}", amount=decimal.Decimal("1.25") * n, moment=MOMENT + datetime.timedelta(hours=n),
                day=MOMENT.date(), done=n % 2 == 0, part=n / 4, note="x" * n, big=2**40 + n)


def count(table, *where):
    return run(select(func.count()).select_from(table).where(*where))[0][0]


def insert_and_count():
    run(sa.insert(orders), [order(n) for n in range(1, COUNT + 1)])
    return count(orders), run(select(func.sum(orders.c.amount), func.sum(orders.c.big)))[0]


def all_kinds():
    row = dict(id=1, document={"a": [1, "x"]}, long="long", double=0.1, stamp=MOMENT, uuid=__import__("uuid").UUID(int=7), small=-3,
               unsigned=4_000_000_000, tiny=1, micro=MOMENT.replace(microsecond=123456), float53=0.1, fixed="abc")
    run(sa.insert(kinds), [row])
    equal(dict(zip(row, run(select(kinds))[0])), row)


def blob():
    run(sa.insert(blobs), [dict(id=1, bytes=b"\x00\xff\x80abc")])
    return run(select(blobs.c.bytes))[0][0]


def generated_keys():
    with engine.begin() as connection:
        first = connection.execute(sa.insert(items).values(name="a")).inserted_primary_key[0]
        second = connection.execute(sa.insert(items).values(name="b")).inserted_primary_key[0]
    rows = dict(run(select(items.c.name, items.c.id)))
    equal({"a": first, "b": second}, rows)
    equal(0 < first < second, True)


def changed(statement, *columns, where):
    run(statement)
    return run(select(*columns).where(where))


def upsert():
    statement = mysql.insert(orders).values(id=5, name="inserted")
    run(statement.on_duplicate_key_update(name="updated"))
    return run(select(orders.c.name, orders.c.big).where(orders.c.id == 5)), count(orders)


def roll_back():
    with engine.connect() as connection:
        connection.execute(sa.insert(orders).values(id=9001))
        connection.rollback()
    return count(orders, orders.c.id == 9001)


def roll_back_to_savepoint():
    with engine.begin() as connection:
        connection.execute(sa.insert(orders).values(id=9100))
        inner = connection.begin_nested()
        connection.execute(sa.insert(orders).values(id=9101))
        inner.rollback()
    return run(select(orders.c.id).where(orders.c.id >= 9100))


def use_orm():
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        parent = Parent(name="one", children=[Child(), Child()])
        session.add(parent)
        session.commit()
        key = parent.id
        parent = session.get(Parent, key)
        equal([child.parent_id for child in parent.children], [key, key])
        parent.name = "two"
        session.commit()
        equal(session.scalars(select(Parent.name)).all(), ["two"])
        for child in parent.children:
            session.delete(child)
        session.delete(parent)
        session.commit()
        return session.scalar(select(func.count()).select_from(Parent)), session.scalar(select(func.count()).select_from(Child))


def look(method, *arguments, on=engine):
    return getattr(sa.inspect(on), method)(*arguments)


def reflected(table, on=engine):
    return {column.name: str(column.type) for column in sa.Table(table, sa.MetaData(), autoload_with=on).columns}


FRAME = pandas.DataFrame({
    "i": [1, 2, 3], "s": ["a", "b", None], "f": [1.5, None, -2.25], "b": [True, False, True],
    "t": [MOMENT, MOMENT + datetime.timedelta(days=1), None],
})


def write_frame(table, on=engine, **options):
    FRAME.to_sql(table, on, index=False, **options)
    frame = pandas.read_sql(f"SELECT * FROM {table} ORDER BY i", on)
    return len(frame), list(frame["f"].fillna(0)), [value if isinstance(value, str) else None for value in frame["s"]], frame["t"][0]


def write_many():
    pandas.concat([FRAME[["i", "s"]]] * 1000).to_sql("many", engine, index=False, method="multi", chunksize=700)
    return pandas.read_sql("SELECT count(*) c, sum(i) s FROM many", engine).iloc[0].tolist()


def read_in_pieces():
    return [len(piece) for piece in pandas.read_sql("SELECT * FROM many", engine, chunksize=1200)]


for table in (orders, items, kinds, blobs, indexed):
    check(f"create table {table.name}", lambda: create(table), True)
# Later checks read the orders, so they are there even if the first form was refused.
if not sa.inspect(engine).has_table("orders"):
    run(text("CREATE TABLE orders (id INT NOT NULL, name VARCHAR(50), amount DECIMAL(10,2), moment DATETIME, day DATE, done BOOLEAN,"
             " part FLOAT, note STRING, big BIGINT) UNIQUE KEY(id) COMMENT 'the orders'"))
check("insert many", insert_and_count, (COUNT, (decimal.Decimal("25125.00"), COUNT * 2**40 + 20100)))
check("read a row with its types", lambda: run(select(orders).where(orders.c.id == 6)), [tuple(order(6).values())])
check("insert each type", all_kinds)
check("insert bytes", blob, b"\x00\xff\x80abc")
check("generated keys", generated_keys)
check("update", lambda: changed(sa.update(orders).where(orders.c.id == 7).values(name="new"), orders.c.name, orders.c.big,
                                where=orders.c.id == 7), [("new", 2**40 + 7)])
check("delete", lambda: (run(sa.delete(orders).where(orders.c.id == 8)), count(orders)), (1, COUNT - 1))
check("upsert", upsert, ([("updated", 2**40 + 5)], COUNT - 1))
check("limit and offset", lambda: run(select(orders.c.id).order_by(orders.c.id).limit(2).offset(10)), [(12,), (13,)])
check("group", lambda: run(select(orders.c.done, func.count()).group_by(orders.c.done).order_by(orders.c.done)),
      [(False, 100), (True, 99)])
check("window", lambda: run(select(orders.c.id, func.row_number().over(order_by=orders.c.id.desc())).order_by(orders.c.id.desc())
                            .limit(2)), [(200, 1), (199, 2)])
check("common table expression", lambda: run(select(func.count()).select_from(select(orders.c.id).where(orders.c.id < 5).cte())),
      [(4,)])
check("join and subquery", lambda: run(select(func.count()).select_from(
    orders.join(other := orders.alias(), orders.c.id == other.c.id)).where(orders.c.id.in_(select(orders.c.id)
                                                                            .where(orders.c.id < 4)))), [(3,)])
check("ilike", lambda: count(orders, orders.c.name.ilike("nAME20")), 1)
check("regular expression", lambda: count(orders, orders.c.name.regexp_match("^Name1[0-2]$")), 3)
check("extract", lambda: run(select(sa.extract("year", orders.c.moment)).limit(1)), [(2024,)])
check("union", lambda: run(sa.union_all(select(sa.literal(1)), select(sa.literal(2))).order_by(text("1"))), [(1,), (2,)])
check("rollback", roll_back, 0)
check("savepoint", roll_back_to_savepoint, [(9100,)])
check("stream rows", lambda: sum(1 for _ in engine.connect().execution_options(yield_per=20).execute(
    select(orders.c.id).where(orders.c.id < 100))), 98)
check("isolation levels", lambda: [engine.connect().execution_options(isolation_level=level).get_isolation_level()
                                   for level in ("READ COMMITTED", "SERIALIZABLE")], ["READ COMMITTED", "SERIALIZABLE"])
check("autocommit level", lambda: engine.connect().execution_options(isolation_level="AUTOCOMMIT").execute(
    text("SELECT @@autocommit")).scalar(), 1)
check("objects and their keys", use_orm, (0, 0))
check("schema names", lambda: "shop" in look("get_schema_names"), True)
check("primary key is reflected", lambda: look("get_pk_constraint", "orders")["constrained_columns"], ["id"])
check("nullable is reflected", lambda: [c["nullable"] for c in look("get_columns", "orders")][:2], [False, True])
check("comment is reflected", lambda: look("get_table_comment", "orders"), {"text": "the orders"})
check("types are reflected", lambda: [reflected("orders")[name] for name in ("id", "name", "amount", "moment", "day")],
      ["INTEGER", "VARCHAR(50)", "DECIMAL(10, 2)", "DATETIME", "DATE"])
check("a view is reflected", lambda: (run(text("CREATE VIEW names AS SELECT id, name FROM orders")),
                                      look("get_view_names"), list(reflected("names")))[1:], (["names"], ["id", "name"]))
check("missing table", lambda: look("has_table", "nothing"), False)
for name, options in (("new", {}), ("replaced", {"if_exists": "replace"})):
    check(f"frame to a {name} table", lambda: write_frame("frame", **options),
          (3, [1.5, 0.0, -2.25], ["a", "b", None], pandas.Timestamp(MOMENT)))
check("frame appended", lambda: write_frame("frame", if_exists="append")[0], 6)
check("frame with an index", lambda: (FRAME.to_sql("with_index", engine),
                                      list(pandas.read_sql_table("with_index", engine).columns))[1], ["index", *FRAME.columns])
check("frame in statements of many rows", write_many, [3000, 6000])
check("frame read in pieces", read_in_pieces, [1200, 1200, 600])

doris = sa.create_engine(f"pydoris://root@127.0.0.1:{PORT}/shop")
run(text("CREATE TABLE types (a INT NOT NULL, l LARGEINT, j JSON, v VARIANT, r ARRAY<INT>, m MAP<STRING,INT>, s STRUCT<x:INT>,"
         " d DATETIME(3), c DECIMAL(27,9), t TINYINT, i IPV4) DUPLICATE KEY(a) COMMENT 'of Doris'"))
check("pydoris reflects Doris's types", lambda: reflected("types", doris), {
    "a": "INTEGER", "l": "LARGEINT", "j": "JSON", "v": "VARIANT", "r": "ARRAY", "m": "MAP", "s": "STRUCT", "d": "DATETIME",
    "c": "DECIMAL(27, 9)", "t": "TINYINT", "i": "IPV4"})
check("pydoris reflects nullable", lambda: [c["nullable"] for c in look("get_columns", "types", on=doris)][:2], [False, True])
check("pydoris reflects the comment", lambda: look("get_table_comment", "types", on=doris), {"text": "of Doris"})
check("pydoris writes and reads", lambda: (run(text("INSERT INTO types (a, l) VALUES (1, 99999999999999999999999999999999999999)"),
                                               on=doris), run(text("SELECT a, l FROM types"), on=doris))[1],
      [(1, "99999999999999999999999999999999999999")])
check("pydoris frame to a new table", lambda: write_frame("doris_frame", doris)[0], 3)
check("drop all", lambda: (metadata.drop_all(engine), sa.inspect(engine).has_table("orders"))[1], False)
finish()
