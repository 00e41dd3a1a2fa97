"""Writes the same rows as Parquet, ORC and Arrow files of many kinds: pyarrow_files.py DIRECTORY"""

import datetime
import decimal
import sys

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.orc as orc
import pyarrow.parquet as parquet

directory = sys.argv[1]
utc = datetime.timezone.utc

rows = pa.table(
    {
        "ID": pa.array([1, 2, 3], pa.int64()),
        "unused": pa.array([[1], None, [2, 3]], pa.list_(pa.int32())),
        "small": pa.array([-128, None, 127], pa.int8()),
        "name": pa.array(["Amy", None, "é漢"], pa.string()),
        "kind": pa.array(["a", "b", "a"], pa.string()).dictionary_encode(),
        "price": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-99999999.99")], pa.decimal128(10, 2)),
        "ratio": pa.array([0.5, None, -1e300], pa.float64()),
        "day": pa.array([datetime.date(2024, 2, 29), None, datetime.date(1969, 12, 31)], pa.date32()),
        "at": pa.array(
            [datetime.datetime(2024, 2, 29, 23, 59, 59, 123456), None, datetime.datetime(1, 1, 1)], pa.timestamp("us")
        ),
        "seen": pa.array([datetime.datetime(2024, 7, 1, tzinfo=utc), None, datetime.datetime(2024, 1, 1, tzinfo=utc)],
                         pa.timestamp("ms", tz="UTC")),
        "ok": pa.array([True, None, False], pa.bool_()),
        "doc": pa.array(['{"a": 1}', None, "[]"], pa.string()),
    }
)

for compression in ["NONE", "SNAPPY", "GZIP", "ZSTD", "BROTLI", "LZ4"]:
    parquet.write_table(rows, f"{directory}/{compression}.parquet", compression=compression)
parquet.write_table(rows, f"{directory}/v2.parquet", version="2.6", data_page_version="2.0", use_dictionary=False)
# As Spark's older versions write times.
parquet.write_table(rows, f"{directory}/int96.parquet", use_deprecated_int96_timestamps=True)

plain = rows.set_column(4, "kind", rows["kind"].cast(pa.string()))
for compression in ["uncompressed", "zlib", "snappy", "lz4", "zstd"]:
    orc.write_table(plain, f"{directory}/{compression}.orc", compression=compression)
# Numbers in the older form; texts with a dictionary.
orc.write_table(plain, f"{directory}/old.orc", file_version="0.11")
orc.write_table(plain, f"{directory}/dictionary.orc", compression="zlib", dictionary_key_size_threshold=1.0)

for compression in ["uncompressed", "lz4", "zstd"]:
    feather.write_feather(rows, f"{directory}/{compression}.arrow", compression=compression)
    options = pa.ipc.IpcWriteOptions(compression=None if compression == "uncompressed" else compression)
    with pa.ipc.new_stream(f"{directory}/{compression}.arrows", rows.schema, options=options) as writer:
        writer.write_table(rows, max_chunksize=2)
# As the Spark connector sends them: streams, one after another.
with open(f"{directory}/concatenated.arrows", "wb") as file:
    for start in range(3):
        with pa.ipc.new_stream(file, rows.schema) as writer:
            writer.write_table(rows.slice(start, 1))

nested = pa.table(
    {
        "id": pa.array([1, 2], pa.int32()),
        "a": pa.array([[1, None, 3], None], pa.list_(pa.int64())),
        "m": pa.array([[("k", 1.5), ("l", None)], []], pa.map_(pa.string(), pa.float64())),
        "s": pa.array([{"g": ["x"], "f": 7}, None], pa.struct([("g", pa.large_list(pa.string())), ("f", pa.int8())])),
    }
)
parquet.write_table(nested, f"{directory}/of_nested.pq")
with pa.ipc.new_stream(f"{directory}/of_nested.ipc", nested.schema) as writer:
    writer.write_table(nested)

count = 400_000
large = pa.table(
    {
        "id": pa.array(range(count), pa.int64()),
        "name": pa.array([f"name {row * 7919 % count}" for row in range(count)], pa.string()),
        "ratio": pa.array([row * 0.37 for row in range(count)], pa.float64()),
    }
)
parquet.write_table(large, f"{directory}/large.parquet", compression="NONE", row_group_size=100_000)
orc.write_table(large, f"{directory}/large.orc", compression="zstd", stripe_size=2_000_000, compression_block_size=65536)
orc.write_table(large, f"{directory}/large_old.orc", file_version="0.11", stripe_size=2_000_000)
with pa.ipc.new_stream(f"{directory}/large.arrows", large.schema) as writer:
    writer.write_table(large)

count = 300_000
parts = pa.table(
    {
        "id": pa.array([None if row % 50_000 == 49_999 else row % 1000 for row in range(count)], pa.int32()),
        "value": pa.array(range(count), pa.int64()),
        "text": pa.array([None if row % 13 == 0 else f"text {row % 500}" for row in range(count)], pa.string()),
        "list": pa.array([None if row % 7 == 0 else [row, None][: row % 3] for row in range(count)], pa.list_(pa.int64())),
    }
)
parquet.write_table(parts, f"{directory}/one_group.pq", row_group_size=count)
parquet.write_table(parts, f"{directory}/many_groups.pq", row_group_size=17_000, compression="zstd")
print("ok")
