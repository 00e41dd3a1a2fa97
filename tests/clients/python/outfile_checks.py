"""Reads Parquet files that INTO OUTFILE has written as pyarrow sees them: outfile_checks.py nested FILE"""

import datetime
from decimal import Decimal

import pyarrow.parquet as parquet

from checking import equal, main


def nested(file):
    row = sorted(parquet.read_table(file).to_pylist(), key=lambda row: row["id"])[0]
    equal(row["a"], [1, None, -3])
    equal(row["m"], [("k", [Decimal("1.50")]), ("l", None)])
    equal(row["s"], {"f": 7, "at": [datetime.datetime(2024, 2, 29, 1, 2, 3)]})
    equal(row["t"], ["a,b", 'q"x', "b\\s", "two\nlines", "", "null", "[}", None, "it's"])
    equal(row["i6"], "::1")
    equal(row["large"], Decimal("-99999999999999999999999999999999999999"))
    equal(row["times"], [(datetime.date(2024, 1, 1), True)])
    equal(row["x"], [{"k": 'a":"b'}, None])


main({"nested": nested})
