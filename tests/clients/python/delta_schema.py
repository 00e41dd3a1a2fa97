"""Another Delta reader on a table whose columns have changed: delta_schema.py column TABLE_DIRECTORY COLUMN TYPE ROWS"""

from deltalake import DeltaTable

from checking import equal, main, wait_until


def column(directory, name, kind, count):
    """The type of a column, and the number of rows."""
    wait_until(
        f"{count} rows are in the Delta table",
        lambda: DeltaTable(directory).to_pyarrow_table().num_rows >= int(count),
    )
    rows = DeltaTable(directory).to_pyarrow_table()
    equal(rows.num_rows, int(count))
    equal(str(rows.column(name).type), kind)


main({"column": column})
