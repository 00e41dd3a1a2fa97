# Answers queries with DuckDB: a line of JSON in (a number and a list of statements), a line of JSON out (with the
# same number). What DuckDB itself prints goes to the standard error, so that it is no answer.
import datetime
import decimal
import json
import os
import sys

import duckdb

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

connection = duckdb.connect(":memory:")
connection.execute("SET default_null_order = 'NULLS_FIRST_ON_ASC_LAST_ON_DESC'")
connection.execute("SET order_by_non_integer_literal = true")
connection.execute("SET threads = 1")

EXACT, DOUBLE, SINGLE, TIME, TEXT = "Exact", "Double", "Single", "Time", "Text"


def content(name):
    name = str(name).upper()
    if name.startswith("DOUBLE"):
        return DOUBLE
    if name.startswith("FLOAT"):
        return SINGLE
    if name.startswith(("DATE", "TIME")):
        return TIME
    if name.startswith(("VARCHAR", "BLOB")):
        return TEXT
    return EXACT


def text(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, float):
        return repr(value)
    return str(value)


for line in sys.stdin:
    try:
        result = None
        number, statements = json.loads(line)
        for statement in statements:
            result = connection.execute(statement)
        if result is None or result.description is None:
            answer = {"contents": [], "rows": []}
        else:
            contents = [content(column[1]) for column in result.description]
            answer = {"contents": contents, "rows": [[text(v) for v in row] for row in result.fetchall()]}
    except Exception as error:
        answer = {"error": str(error)}
    answer["number"] = number
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
