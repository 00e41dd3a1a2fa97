"""Writes the same rows in ORC's forms, and as Parquet to compare them with: write.py DIRECTORY   (pyarrow 21)"""

import datetime
import decimal
import sys

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as parquet

directory = sys.argv[1]
rows = range(600)


def column(of_row, data_type, null_every=0):
    return pa.array([None if null_every and row % null_every == 0 else of_row(row) for row in rows], data_type)


begin = datetime.datetime(1969, 12, 31, 23, 50)
table = pa.table(
    {
        "id": column(lambda row: row, pa.int64()),
        "same": column(lambda row: -7, pa.int32()),
        "steps": column(lambda row: row * row - 500_000, pa.int64(), 11),
        "down": column(lambda row: 32_000 - row * 3, pa.int16()),
        "random": column(lambda row: row * 2_654_435_761 % 1_000_003 - 500_000, pa.int32(), 7),
        "outliers": column(lambda row: 10**15 + row if row % 90 == 0 else row * 7919 % 256, pa.int64()),
        "wide": column(lambda row: (row * 0x9E3779B97F4A7C15) % 2**64 - 2**63, pa.int64()),
        "byte": column(lambda row: row % 256 - 128 if row % 300 < 200 else 5, pa.int8(), 13),
        "yes": column(lambda row: row * row % 3 == 0, pa.bool_(), 5),
        "float": column(lambda row: row * 0.25, pa.float32(), 17),
        "double": column(lambda row: row / 3, pa.float64()),
        "few": column(lambda row: f"value {row % 7}", pa.string(), 10),
        "many": column(lambda row: f"é {row * 7919 % 1300}" * (row % 3), pa.string(), 19),
        "bytes": column(lambda row: f"é{row}".encode(), pa.binary(), 23),
        "price": column(lambda row: decimal.Decimal(row * 7919 - 4_000_000).scaleb(-2), pa.decimal128(12, 2), 29),
        "large": column(lambda row: decimal.Decimal((row - 600) * 10**34), pa.decimal128(38, 0)),
        "day": column(lambda row: datetime.date(1960, 1, 1) + datetime.timedelta(days=row * 20), pa.date32(), 31),
        "at": column(lambda row: begin + datetime.timedelta(seconds=row, milliseconds=row % 2), pa.timestamp("us"), 37),
        "seen": column(lambda row: begin + datetime.timedelta(days=row * 30), pa.timestamp("us", tz="UTC")),
        "list": column(lambda row: [row, None, 3][: row % 4], pa.list_(pa.int32()), 9),
        "map": column(lambda row: [(f"k{at}", row + at) for at in range(row % 3)], pa.map_(pa.string(), pa.int64()), 8),
        "pair": column(
            lambda row: {"a": row, "b": None if row % 2 else f"b{row % 5}"},
            pa.struct([("a", pa.int32()), ("b", pa.string())]),
            6,
        ),
        "nothing": column(lambda row: None, pa.int32()),
    }
)
parquet.write_table(table, f"{directory}/wide.parquet", compression="zstd")
orc.write_table(table, f"{directory}/wide.orc", compression="zlib", dictionary_key_size_threshold=0.5, batch_size=500)
orc.write_table(table, f"{directory}/old.orc", compression="zstd", file_version="0.11", compression_block_size=1024)
small = table.slice(0, 40)
for compression in ["uncompressed", "snappy", "lz4"]:
    orc.write_table(small, f"{directory}/{compression}.orc", compression=compression)
