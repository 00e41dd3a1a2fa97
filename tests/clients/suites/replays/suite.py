"""Sends what monitors, IDEs and frameworks send that cannot be installed here, each statement as a check.

A file of statements is one client's, in the order in which it sends them, over one connection. Blank lines separate statements. A
line `-- reads A, B` in front of one names columns that the client looks for in the answer, and `-- rows A, B` says that there
must be a row as well. `-- types TIME` says of which types of the protocol the first columns are. `-- error 1381` says with which
number MySQL refuses the statement, which the client takes. Names of columns are compared with case, because clients do.
"""

import collections
import pathlib
import re

import pymysql
from checks import PORT, check, finish
from pymysql.constants import FIELD_TYPE

STATEMENTS = pathlib.Path(__file__).parent / "statements"
LENGTH_OF_NAMES = 64
TABLES = """
CREATE DATABASE shop;
CREATE TABLE shop.orders (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50) NOT NULL DEFAULT 'none',
  amount DECIMAL(10, 2), moment DATETIME, note TEXT COMMENT 'of the customer');
CREATE TABLE shop.items (order_id INT NOT NULL, line INT NOT NULL, article VARCHAR(20), PRIMARY KEY (order_id, line));
CREATE VIEW shop.dear AS SELECT id, name FROM shop.orders WHERE amount > 100;
INSERT INTO shop.orders (id, name, amount, moment) VALUES
  (1, 'one', 1.5, '2024-01-02 03:04:05'), (2, 'two', 200, '2024-02-29 12:00:00');
INSERT INTO shop.items VALUES (1, 1, 'lamp'), (1, 2, 'desk')
"""


def connect(database=None):
    return pymysql.connect(host="127.0.0.1", port=PORT, user="root", database=database, autocommit=True)


def statements(text):
    """Returns the statements of a file, each with the columns and types it needs, whether it needs a row, and the error."""
    for block in re.split(r"\n\s*\n", text.strip()):
        columns, types, row, error, lines = [], [], False, None, []
        for line in block.splitlines():
            if not line.startswith("-- "):
                lines.append(line)
            elif line.startswith(("-- rows ", "-- reads ")):
                columns, row = line.split(" ", 2)[2].split(", "), line.startswith("-- rows ")
            elif line.startswith("-- types "):
                types = line.split(" ")[2:]
            elif line.startswith("-- error "):
                error = int(line.split(" ")[2])
        if lines:
            yield "\n".join(lines), columns, types, row, error


def ask(connection, statement, columns, types, row):
    with connection.cursor() as cursor:
        cursor.execute(statement)
        rows = cursor.fetchall()
        described = cursor.description or ()
    found = [column[0] for column in described]
    missing = [column for column in columns if column not in found]
    if missing:
        raise AssertionError(f"of the columns {', '.join(found) or 'none'}, {', '.join(missing)} are missing")
    for column, kind in zip(described, types):
        if column[1] != getattr(FIELD_TYPE, kind):
            raise AssertionError(f"the column {column[0]} has type {column[1]} of the protocol, not {kind}")
    if row and not rows:
        raise AssertionError("no row")


def be_refused(connection, statement, number):
    try:
        connection.cursor().execute(statement)
    except pymysql.MySQLError as error:
        if error.args[0] != number:
            raise AssertionError(f"it was refused with {error.args}, not with {number}") from error
    else:
        raise AssertionError(f"it was not refused with {number}")


def replay(file):
    connection, names = connect("shop"), collections.Counter()
    for statement, columns, types, row, error in statements(file.read_text()):
        name = f"{file.stem} {' '.join(statement.split()).replace(': ', ':')[:LENGTH_OF_NAMES]}".rstrip()
        names[name] += 1
        name = name if names[name] == 1 else f"{name} ({names[name]})"
        if error is None:
            check(name, lambda: ask(connection, statement, columns, types, row))
        else:
            check(name, lambda: be_refused(connection, statement, error))
        if not connection.open:
            connection = connect("shop")
    connection.close()


def main():
    with connect() as connection:
        for statement in TABLES.split(";\n"):
            connection.cursor().execute(statement)
    for file in sorted(STATEMENTS.glob("*.sql")):
        replay(file)
    finish()


main()
