"""Columns of TIMEs by drivers and another reader: time_checks.py CHECK ..."""

import datetime

import mysql.connector
import pymysql
from deltalake import DeltaTable, QueryBuilder

from checking import equal, main

# A cursor alone does not keep its connection.
KEPT = []

VALUES = [
    datetime.timedelta(hours=9, minutes=5),
    datetime.timedelta(hours=23, minutes=59, seconds=59, microseconds=999999),
    datetime.timedelta(0),
    -datetime.timedelta(hours=1, microseconds=500000),
    datetime.timedelta(hours=838, minutes=59, seconds=59),
    None,
]
TEXTS = ["09:05:00.000000", "23:59:59.999999", "00:00:00.000000", "-01:00:00.500000", "838:59:59.000000", None]


def connections(port, database):
    """PyMySQL reads texts, and the other driver's prepared statements the binary form."""
    options = dict(host="127.0.0.1", port=int(port), user="root", password="", database=database, autocommit=True)
    connection = mysql.connector.connect(**options)
    statement = connection.cursor(prepared=True)
    KEPT.append(connection)
    return pymysql.connect(**options).cursor(), statement


def written(port, database):
    cursor, statement = connections(port, database)
    cursor.execute("SET mysql_ddl = compat")
    cursor.execute("CREATE TABLE times (id INT PRIMARY KEY, at TIME(6), plain TIME)")
    # Both drivers write negative times wrong, and get their texts.
    rows = [(number, text, value and datetime.timedelta(hours=number)) for number, (value, text) in enumerate(zip(VALUES, TEXTS))]
    equal(cursor.executemany("INSERT INTO times VALUES (%s, %s, %s)", rows), len(rows))
    rows = [(number, value, value and datetime.timedelta(hours=number)) for number, value in enumerate(VALUES)]
    for number, value, plain in rows:
        at = TEXTS[number] if value and value.days < 0 else value
        statement.execute("INSERT INTO times VALUES (?, ?, ?)", (number + 100, at, plain))
    cursor.execute("SELECT id FROM times WHERE at = %s ORDER BY id", (VALUES[1],))
    equal(cursor.fetchall(), ((1,), (101,)))
    statement.execute("SELECT id FROM times WHERE at = ? ORDER BY id", (VALUES[0],))
    equal(statement.fetchall(), [(0,), (100,)])
    read(port, database)


def read(port, database):
    cursor, statement = connections(port, database)
    sql = "SELECT at, plain FROM times WHERE id {} 50 ORDER BY id"
    expected = [(value, value and datetime.timedelta(hours=number)) for number, value in enumerate(VALUES)]
    for half in ("<", ">"):
        cursor.execute(sql.format(half))
        equal([column[1] for column in cursor.description], [pymysql.constants.FIELD_TYPE.TIME] * 2)
        equal(list(cursor.fetchall()), expected, half)
        statement.execute(sql.format(half))
        # The driver reads no sign in the binary form.
        equal(statement.fetchall(), [(at and abs(at), plain) for at, plain in expected], half)


def delta(directory):
    rows = QueryBuilder().register("t", DeltaTable(directory)).execute("SELECT at FROM t ORDER BY id").read_all()
    equal([value if value is None else str(value) for value in rows.column("at").to_pylist()], TEXTS * 2)


main({check.__name__: check for check in (written, read, delta)})
