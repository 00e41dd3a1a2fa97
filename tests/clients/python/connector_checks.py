"""MySQL's own Python driver against a server: connector_checks.py CHECK PORT DATABASE

The pure Python implementation is used, because it is the one that every platform has.
"""

import datetime
import decimal

# It brings OpenSSL, which must be loaded before that of Python.
import _mysql_connector  # noqa: F401
import mysql.connector

from checking import equal, main


def connect(port, database, use_pure=True, **options):
    return mysql.connector.connect(
        host="127.0.0.1", port=int(port), user="root", password="", database=database, use_pure=use_pure, **options
    )


def prepared(port, database):
    """Server-side prepared statements with parameters of all kinds."""
    connection = connect(port, database, autocommit=True)
    cursor = connection.cursor()
    cursor.execute(
        """CREATE TABLE mixed (k INT NOT NULL, l BIGINT, d DOUBLE, n DECIMAL(20,4), day DATE, at DATETIME(6), v VARCHAR(100))
        DUPLICATE KEY(k) DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES ("replication_num" = "1")"""
    )
    rows = [
        (1, 1 << 62, 2.5, decimal.Decimal("12345.6789"), datetime.date(2024, 2, 29),
         datetime.datetime(2024, 2, 29, 12, 30, 15, 250000), "Grüße"),
        (2, -5, -0.125, decimal.Decimal("-0.0001"), datetime.date(1999, 12, 31), datetime.datetime(1999, 12, 31), ""),
        (3, None, None, None, None, None, None),
    ]
    statement = connection.cursor(prepared=True)
    for row in rows:
        statement.execute("INSERT INTO mixed VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        equal(statement.rowcount, 1)
    for row in rows:
        statement.execute("SELECT * FROM mixed WHERE k = ?", (row[0],))
        equal(statement.fetchall(), [row])
    statement.execute("SELECT count(*) FROM mixed WHERE k > ? AND v = ?", (0, "Grüße"))
    equal(statement.fetchall(), [(1,)])


def nested(port, database):
    """Arrays, maps and structs in the binary and in the text protocol."""
    connection = connect(port, database, autocommit=True)
    expected = ("[1, null, 3]", '{"k":[1.50], "l":null}', '{"f":7, "at":["2024-02-29 01:02:03"]}', 3)
    statement = connection.cursor(prepared=True)
    statement.execute("SELECT a, m, s, a[3] FROM n WHERE array_contains(a, ?) AND id = ?", (3, 7))
    equal(statement.fetchall(), [expected])
    cursor = connection.cursor()
    cursor.execute("SELECT a, m, s, a[3] FROM n WHERE id = 7")
    equal(cursor.fetchall(), [expected])


def plain(port, database):
    """Plain statements, the client's own escaping, and several rows at once."""
    connection = connect(port, database)
    cursor = connection.cursor()
    cursor.execute(
        """CREATE TABLE dt (id INT NOT NULL, name VARCHAR(50) NULL) DUPLICATE KEY(id)
        DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES ("replication_num" = "1")"""
    )
    cursor.executemany("INSERT INTO dt VALUES (%s, %s)", [(number, f"it's {number}") for number in range(100)])
    equal(cursor.rowcount, 100)
    connection.commit()
    cursor.execute("SELECT name FROM dt WHERE id = %s", (42,))
    equal(cursor.fetchall(), [("it's 42",)])
    try:
        cursor.execute("SELECT * FROM nowhere")
        cursor.fetchall()
    except mysql.connector.Error as error:
        equal((error.errno, error.sqlstate), (1146, "42S02"))
    else:
        raise AssertionError("no error")
    connection.cmd_reset_connection()
    cursor = connection.cursor()
    cursor.execute("SELECT count(*) FROM dt")
    equal(cursor.fetchall(), [(100,)])


def compressed(port, database):
    """The compressed protocol, by the pure implementation and by the one in C."""
    large = "".join(chr(97 + number * number % 23) for number in range(700_000))
    rows = [(number, f"value {number} " * 20) for number in range(2000)] + [(2000, large), (2001, "")]
    connection = connect(port, database)
    connection.cursor().execute(
        """CREATE TABLE texts (k INT NOT NULL, v STRING) DUPLICATE KEY(k)
        DISTRIBUTED BY HASH(k) BUCKETS 1 PROPERTIES ("replication_num" = "1")"""
    )
    for use_pure in (True, False):
        connection = connect(port, database, use_pure=use_pure, compress=True, connection_timeout=60)
        cursor = connection.cursor()
        cursor.execute("TRUNCATE TABLE texts")
        cursor.executemany("INSERT INTO texts VALUES (%s, %s)", rows)
        connection.commit()
        cursor.execute("SELECT * FROM texts ORDER BY k")
        equal(cursor.fetchall(), rows, f"use_pure={use_pure}")
        statement = connection.cursor(prepared=True)
        statement.execute("SELECT v FROM texts WHERE k = ?", (2000,))
        equal(statement.fetchall(), [(large,)])
        statement.close()
        try:
            cursor.execute("SELECT * FROM nowhere")
            cursor.fetchall()
        except mysql.connector.Error as error:
            equal((error.errno, error.sqlstate), (1146, "42S02"))
        else:
            raise AssertionError("no error")
        if not use_pure:
            connection.cmd_change_user(username="root", password="", database=database)
        connection.cmd_reset_connection()
        cursor = connection.cursor()
        cursor.execute("SELECT count(*) FROM texts")
        equal(cursor.fetchall(), [(len(rows),)])
        connection.close()


main({check.__name__: check for check in (prepared, nested, plain, compressed)})
