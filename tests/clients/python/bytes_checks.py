"""Columns of bytes by drivers, files and other readers: bytes_checks.py CHECK ..."""

import os
import warnings

import adbc_driver_flightsql.dbapi as adbc
import mysql.connector
import pyarrow
import pyarrow.orc
import pyarrow.parquet
import pymysql
from deltalake import DeltaTable, QueryBuilder

from checking import equal, main

# ADBC says that the server has no transactions of Flight SQL.
warnings.simplefilter("ignore")

# Every byte, bytes that begin a character and do not end one, quotes, zeros, and nothing.
VALUES = [bytes(range(256)), b"\xc3(\xe2\x82", b"'\"\\%_\x00\x1a\n", b"\x00\x00", b"", b"text", None]


def connect(port, database):
    return pymysql.connect(host="127.0.0.1", port=int(port), user="root", password="", database=database, autocommit=True)


def written(port, database):
    """Values are written as literals, as parameters and in batches, and found and changed by their bytes."""
    connection = connect(port, database)
    cursor = connection.cursor()
    cursor.execute("SET mysql_ddl = compat")
    cursor.execute(
        "CREATE TABLE files (id BINARY(16) NOT NULL, way VARCHAR(10) NOT NULL, place INT NOT NULL, body LONGBLOB,"
        " small TINYBLOB, name BLOB, PRIMARY KEY (id))"
    )
    place = "INSERT INTO files (id, way, place, body) VALUES (%s, %s, %s, %s)"
    for number, value in enumerate(VALUES):
        equal(cursor.execute(place, (os.urandom(16), "literal", number, value)), 1)
        hexadecimal = "NULL" if value is None else f"x'{value.hex()}'"
        equal(cursor.execute(place % ("%s", "'hex'", number, hexadecimal), (os.urandom(16),)), 1)
        # An expression among the values takes another way through the server.
        equal(cursor.execute(place.replace("%s, %s)", "%s + 0, %s)"), (os.urandom(16), "general", number, value)), 1)
    rows = [(os.urandom(16), "many", number, value) for number, value in enumerate(VALUES)]
    equal(cursor.executemany(place, rows), len(VALUES))
    other = mysql.connector.connect(
        host="127.0.0.1", port=int(port), user="root", password="", database=database, autocommit=True
    )
    statement = other.cursor(prepared=True)
    for number, value in enumerate(VALUES):
        statement.execute(place.replace("%s", "?"), (os.urandom(16), "prepared", number, value))
        equal(statement.rowcount, 1)
    ways = ("general", "hex", "literal", "many", "prepared")
    values_of(port, database, ways)
    statement.execute("SELECT body, id FROM files WHERE way = ? ORDER BY place", ("many",))
    equal([(None if body is None else bytes(body), bytes(key)) for body, key in statement.fetchall()],
          [(row[3], row[0]) for row in rows])
    # A row is found and changed by bytes, as a literal and as a parameter.
    equal(cursor.execute("UPDATE files SET small = %s, name = _binary 'text' WHERE id = %s", (b"\xff\x00", rows[0][0])), 1)
    equal(cursor.execute("UPDATE files SET small = %s, name = _binary 'text' WHERE id = %s", (b"\xff\x00", rows[0][0])), 0)
    statement.execute("SELECT small, name, HEX(small), LENGTH(body) FROM files WHERE id = ?", (rows[0][0],))
    equal([tuple(statement.fetchall()[0])], [(b"\xff\x00", b"text", "FF00", 256)])
    cursor.execute("SELECT place FROM files WHERE body = %s AND way = 'hex'", (VALUES[1],))
    equal(cursor.fetchall(), ((1,),))
    cursor.execute("SELECT place FROM files WHERE body IN (%s, %s, 'text') AND way = 'hex' ORDER BY place", (VALUES[0], b""))
    equal(cursor.fetchall(), ((0,), (4,), (5,)))
    cursor.execute("SELECT place FROM files WHERE way = 'hex' ORDER BY body")
    order = sorted((value is not None, value or b"", number) for number, value in enumerate(VALUES))
    equal([place for (place,) in cursor.fetchall()], [number for _, _, number in order])
    equal(cursor.execute("INSERT INTO files (id, way, place, body) VALUES (%s, 'again', 0, %s)", (rows[1][0], b"\xfe")), 1)
    cursor.execute("SELECT way, body FROM files WHERE id = %s", (rows[1][0],))
    equal(cursor.fetchall(), (("again", b"\xfe"),))
    equal(cursor.execute("DELETE FROM files WHERE id = %s", (rows[1][0],)), 1)
    equal(cursor.execute(place, (rows[1][0], "many", 1, VALUES[1])), 1)
    refused(cursor, "UPDATE files SET small = REPEAT('a', 256) WHERE place = 0", 1406)


def refused(cursor, sql, number):
    try:
        cursor.execute(sql)
    except pymysql.err.Error as error:
        equal(error.args[0], number, str(error))
    else:
        raise AssertionError(f"not refused: {sql}")


def read(port, database, ways):
    """The values are there, and what was changed of them."""
    values_of(port, database, ways.split(","))
    cursor = connect(port, database).cursor()
    cursor.execute("SELECT id, small FROM files WHERE place = 0 AND way = 'many'")
    ((key, small),) = cursor.fetchall()
    equal((len(key), small), (16, b"\xff\x00"))


def values_of(port, database, ways):
    """The values of each way in are read by text and by binary rows."""
    cursor = connect(port, database).cursor()
    other = mysql.connector.connect(host="127.0.0.1", port=int(port), user="root", password="", database=database)
    statement = other.cursor(prepared=True)
    for way in ways:
        cursor.execute("SELECT body FROM files WHERE way = %s ORDER BY place", (way,))
        equal([body for (body,) in cursor.fetchall()], VALUES, way)
        equal(cursor.description[0][1], pymysql.constants.FIELD_TYPE.BLOB)
        statement.execute("SELECT body FROM files WHERE way = ? ORDER BY place", (way,))
        equal([None if body is None else bytes(body) for (body,) in statement.fetchall()], VALUES, way)


def columns(way, first, key=pyarrow.binary(16)):
    """The values as columns, with ids from a number on."""
    return pyarrow.table({
        "id": pyarrow.array([number.to_bytes(16, "big") for number in range(first, first + len(VALUES))], key),
        "way": pyarrow.array([way] * len(VALUES)),
        "place": pyarrow.array(range(len(VALUES)), pyarrow.int32()),
        "body": pyarrow.array(VALUES, pyarrow.binary()),
    })


def parquet(path):
    """A file with the values."""
    pyarrow.parquet.write_table(columns("parquet", 0), path)


def orc(path):
    """A file with the values; ORC has no bytes of one length."""
    pyarrow.orc.write_table(columns("orc", 100, pyarrow.binary()), path)


def doput(port, database):
    """The values are rows of Arrow Flight."""
    options = {"username": "root", "password": ""}
    with adbc.connect(f"grpc+tcp://127.0.0.1:{port}", db_kwargs=options, autocommit=True) as connection:
        with connection.cursor() as cursor:
            equal(cursor.adbc_ingest("files", columns("doput", 200), mode="append", db_schema_name=database), len(VALUES))


def infile(port, database, path):
    """A file of the client's is sent."""
    lines(path, "infile")
    options = {"user": "root", "password": "", "database": database, "autocommit": True, "local_infile": True}
    cursor = pymysql.connect(host="127.0.0.1", port=int(port), **options).cursor()
    sql = (
        f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE files FIELDS TERMINATED BY '\x01' LINES TERMINATED BY '\x02'"
        " (id, way, place, body)"
    )
    equal(cursor.execute(sql), len(VALUES))


def csv(path):
    """A file of lines."""
    lines(path, "csv")


def lines(path, way):
    """Writes lines that are not text: bytes that are no separators are in no quotes."""
    with open(path, "wb") as file:
        for number, value in enumerate(VALUES):
            body = b"\\N" if value is None else value
            key = f"{way[:1]}{number:015}".encode()
            file.write(b"\x01".join([key, way.encode(), b"%d" % number, body.replace(b"\x01", b"").replace(b"\x02", b"")]))
            file.write(b"\x02")


def delta(directory, ways):
    """Another reader of the Delta table sees the bytes."""
    schema = {field.name: field.type.type for field in DeltaTable(directory).schema().fields if field.name != "way"}
    equal(schema, {"id": "binary", "place": "integer", "body": "binary", "small": "binary", "name": "binary"})
    for way in ways.split(","):
        sql = f"SELECT body FROM t WHERE way = '{way}' ORDER BY place"
        rows = QueryBuilder().register("t", DeltaTable(directory)).execute(sql).read_all()
        values = [None if value is None else bytes(value) for value in rows.column("body").to_pylist()]
        without = [value and value.replace(b"\x01", b"").replace(b"\x02", b"") for value in VALUES]
        equal(values, without if way in ("csv", "infile") else VALUES, way)


main({check.__name__: check for check in (written, read, parquet, orc, doput, infile, csv, delta)})
