"""Another Delta reader on the tables of a server: delta_checks.py CHECK TABLE_DIRECTORY"""

import datetime
import decimal

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

from checking import equal, main, wait_until


def open_with_rows(directory, count):
    """The table once it has so many rows."""
    found = {}

    def is_there():
        try:
            found["rows"] = DeltaTable(directory).to_pyarrow_table()
        except Exception as error:  # the first flush has not made the table yet
            found["error"] = error
            return False
        return found["rows"].num_rows >= count

    try:
        wait_until(f"{count} rows are in the Delta table", is_there)
    except AssertionError as error:
        raise AssertionError(f"{error}; last: {found}") from error
    equal(found["rows"].num_rows, count)
    return found["rows"]


def types(directory):
    """Names, types and values of a table with all types."""
    rows = open_with_rows(directory, 2).sort_by("k")
    expected = [
        ("k", pa.int32(), [1, 2]),
        ("b", pa.bool_(), [True, None]),
        ("t", pa.int8(), [127, None]),
        ("s", pa.int16(), [-32768, None]),
        ("i", pa.int32(), [2147483647, None]),
        ("l", pa.int64(), [-9223372036854775808, None]),
        ("ll", pa.decimal128(38, 0), [decimal.Decimal("12345678901234567890123456789"), None]),
        ("f", pa.float32(), [1.5, None]),
        ("d", pa.float64(), [-2.25, None]),
        ("n", pa.decimal128(27, 9), [decimal.Decimal("123456789012345678.123456789"), None]),
        ("day", pa.date32(), [datetime.date(2024, 2, 29), None]),
        ("at", None, [datetime.datetime(2024, 2, 29, 23, 59, 59), None]),
        ("at6", None, [datetime.datetime(2024, 2, 29, 23, 59, 59, 123456), None]),
        ("c", pa.string(), ["abc", None]),
        ("v", pa.string(), ["Grüße", None]),
        ("txt", pa.string(), ["", None]),
        ("j", pa.string(), ['{"a": 1}', None]),
    ]
    equal(rows.column_names, [name for name, _, _ in expected])
    for name, kind, values in expected:
        column = rows.column(name)
        if kind is not None and column.type != kind:
            raise AssertionError(f"column {name} is {column.type}, not {kind}")
        if kind is None and not pa.types.is_timestamp(column.type):
            raise AssertionError(f"column {name} is {column.type}, not a timestamp")
        found = column.to_pylist()
        if kind is None:  # with or without a zone, the wall clock's time is the same
            found = [value and value.replace(tzinfo=None) for value in found]
        equal(found, values, f"column {name}")


def nested(directory):
    """Arrays, maps and structs of a table."""
    rows = open_with_rows(directory, 2).sort_by("id")
    equal(rows.column("a").to_pylist(), [[1, None, 3], None])
    equal(rows.column("m").to_pylist(), [[("k", [decimal.Decimal("1.50")]), ("l", None)], None])
    equal(rows.column("s").to_pylist(), [{"f": 7, "at": [datetime.datetime(2024, 2, 29, 1, 2, 3)]}, None])
    schema = DeltaTable(directory).schema().to_json()
    for part in ['"type":"array"', '"type":"map"', '"type":"struct"']:
        if part not in schema.replace(" ", ""):
            raise AssertionError(f"{part} is not in {schema}")
    answer = QueryBuilder().register("t", DeltaTable(directory)).execute(
        "SELECT a[3] x, s['f'] y FROM t WHERE a IS NOT NULL"
    )
    equal(pa.table(answer.read_all()).to_pylist(), [{"x": 3, "y": 7}])


def grown(directory):
    """Structs that got fields: rows of before have NULL there, wherever the structs are."""

    def has_fields():
        try:
            return '"late"' in DeltaTable(directory).schema().to_json()
        except Exception:  # the first flush has not made the table yet
            return False

    wait_until("the Delta table has the new fields", has_fields)
    open_with_rows(directory, 3)
    answer = QueryBuilder().register("t", DeltaTable(directory)).execute("SELECT id, s, a FROM t ORDER BY id")
    old = lambda number: {"f": number, "late": None}
    new = lambda number: {"f": number, "late": ["x"]}
    equal(pa.table(answer.read_all()).to_pylist(), [
        {"id": 1, "s": {"in": old(1), "more": None}, "a": [old(1), None]},
        {"id": 2, "s": {"in": old(2), "more": None}, "a": [old(2), None]},
        {"id": 3, "s": {"in": new(3), "more": 3}, "a": [new(3)]},
    ])
    rows = DeltaTable(directory).to_pyarrow_table().sort_by("id")
    equal(rows.column("s").to_pylist()[0], {"in": old(1), "more": None})
    equal(rows.column("m").to_pylist(), [[("k", old(1))], [("k", old(2))], [("k", new(3))]])


def addresses(directory):
    """Addresses as numbers and as bytes, documents as texts."""
    rows = open_with_rows(directory, 6)
    answer = QueryBuilder().register("t", DeltaTable(directory)).execute("SELECT a, b, v FROM t WHERE a < 200000000 ORDER BY a, b")
    found = pa.table(answer.read_all()).to_pylist()
    equal([row["a"] for row in found], [0, 151587081, 167772169, 167772170, 167772170])
    equal(found[1]["b"].hex(), "20010db8000000000000000000000001")
    equal(found[2]["v"], '"new"')
    equal((str(rows.column("a").type), "binary" in str(rows.column("b").type)), ("int64", True))


def sums(directory, count, total):
    """Number of rows, their sum, and that no id is there twice."""
    rows = open_with_rows(directory, int(count))
    equal(pc.sum(rows.column("score")).as_py(), int(total))
    equal(len(set(rows.column("id").to_pylist())), int(count))


def deleted(directory, ids):
    """The ids that are left in a table with deletion vectors, by this reader's own query engine."""
    wanted = [int(id) for id in ids.split(",")]
    found = []

    def are_left():
        # The reader of pyarrow tables knows no deletion vectors.
        rows = QueryBuilder().register("t", DeltaTable(directory)).execute("SELECT id FROM t ORDER BY id")
        found[:] = rows.read_all().column("id").to_pylist()
        return found == wanted

    wait_until(f"the rows {wanted} are left of {found}", are_left)


def copied(directory, ids):
    """The ids of a table without deletion vectors, by the reader that knows none."""
    wanted = [int(id) for id in ids.split(",")]
    found = []

    def are_there():
        table = DeltaTable(directory)
        equal(table.protocol().min_reader_version, 1)
        found[:] = sorted(table.to_pyarrow_table().column("id").to_pylist())
        return found == wanted

    wait_until(f"the rows {wanted} are those of {found}", are_there)


def states(directory, days):
    """The keys of a table with BITMAP and HLL columns, which are bytes."""
    rows = QueryBuilder().register("t", DeltaTable(directory)).execute("SELECT day, users, pages FROM t ORDER BY day").read_all()
    equal(rows.column("day").to_pylist(), [int(day) for day in days.split(",")])
    equal(bytes(rows.column("users").to_pylist()[0])[:8], b"\x01" + bytes(7), "one half of 64 bits")
    equal(bytes(rows.column("pages").to_pylist()[2]), b"\x01")


main({check.__name__: check for check in (types, nested, grown, addresses, sums, deleted, copied, states)})
