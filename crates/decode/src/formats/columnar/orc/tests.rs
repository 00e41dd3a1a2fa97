use crate::blocks::builder::BlockBuilder;
use crate::formats::body::FieldNames;
use crate::formats::columnar::ColumnarFormat;
use crate::formats::format::BodyFormat;
use crate::formats::host::{LoadHost, PlainHost};
use crate::rows::loader::{Decoded, LoadRules};
use crate::rows::target::Target;
use crate::testing::{batch_rows, column, lines, table};
use std::sync::Arc;
use tributary_types::{DataType, SqlError, TableDef};

const WIDE: &[u8] = include_bytes!("samples/wide.orc");
const WIDE_PARQUET: &[u8] = include_bytes!("samples/wide.parquet");
const OLD: &[u8] = include_bytes!("samples/old.orc");
const SMALL: [&[u8]; 3] = [
    include_bytes!("samples/uncompressed.orc"),
    include_bytes!("samples/snappy.orc"),
    include_bytes!("samples/lz4.orc"),
];

fn host() -> Arc<dyn LoadHost> {
    Arc::new(PlainHost::default())
}

/// All columns of a file, as a query reads them.
fn rows(format: ColumnarFormat, body: &[u8]) -> Result<Vec<Vec<String>>, SqlError> {
    let mut fields = BodyFormat::Columnar(format).fields(FieldNames::OfBody, &[], &host())?;
    fields.push(body)?;
    fields.finish()?;
    while fields.resume()? {}
    Ok(fields.take_batches().iter().flat_map(batch_rows).collect())
}

/// Loads a file into a table.
fn load(table: &Arc<TableDef>, body: &[u8]) -> Result<Decoded, SqlError> {
    let target = Target::new(table, None)?;
    let builder = BlockBuilder::new(target.schema());
    let format = BodyFormat::Columnar(ColumnarFormat::Orc);
    let mut decoder = format.decoder(target, LoadRules::default(), builder, &host())?;
    decoder.push(body)?;
    decoder.finish()?;
    let mut blocks = decoder.take_blocks();
    while decoder.resume()? {
        blocks.extend(decoder.take_blocks());
    }
    Ok(Decoded { blocks, counts: decoder.counts(), rejects: decoder.rejects().into_owned() })
}

fn error(table: &Arc<TableDef>, body: &[u8]) -> String {
    load(table, body).expect_err("it is damaged").detail_text().to_owned()
}

#[test]
fn all_types_in_all_forms_are_what_parquet_has() {
    let parquet = rows(ColumnarFormat::Parquet, WIDE_PARQUET).unwrap();
    assert_eq!(parquet.len(), 600);
    for (body, name) in [(WIDE, "wide"), (OLD, "old")].into_iter().chain(SMALL.map(|body| (body, "small"))) {
        let orc = rows(ColumnarFormat::Orc, body).unwrap();
        assert_eq!(orc.len(), if name == "small" { 40 } else { 600 }, "{name}");
        for (number, (orc, parquet)) in orc.iter().zip(&parquet).enumerate() {
            assert_eq!(orc, parquet, "row {number} of {name}");
        }
    }
}

#[test]
fn columns_are_found_by_name_and_nested_ones_refused() {
    let columns = |names: &[&str]| {
        let columns = names.iter().zip(0..).map(|(name, id)| column(id, name, DataType::String));
        table(columns.collect())
    };
    let texts = columns(&["PRICE", "few", "nothing"]);
    let decoded = load(&texts, WIDE).unwrap();
    assert_eq!(lines(&texts, &decoded)[1..3], ["-39920.81|value 1|NULL", "-39841.62|value 2|NULL"]);
    let nested = error(&columns(&["id", "pair"]), WIDE);
    assert!(nested.starts_with("Parquet/orc doesn't support complex types"), "{nested}");
    let none = error(&columns(&["x"]), WIDE);
    assert!(none.contains("none of the table's columns (x) is in the file, which has id, same"), "{none}");
}

#[test]
fn a_file_that_is_cut_off_or_something_else_is_refused() {
    let ids = table(vec![column(0, "id", DataType::BigInt)]);
    assert_eq!(load(&ids, b"").unwrap().counts.total, 0);
    for body in SMALL {
        for length in 1..body.len() {
            let text = error(&ids, &body[..length]);
            assert!(text.starts_with("the orc body can't be read: "), "{length}: {text}");
        }
    }
    for text in ["1,2,3\n4,5,6\n", "{\"id\":1}\n", "ORC"] {
        assert!(error(&ids, text.as_bytes()).contains("no ORC file"), "{text}");
    }
}

#[test]
fn damage_is_an_error_or_other_rows_and_nothing_worse() {
    for body in SMALL {
        for at in (0..body.len()).step_by(3) {
            let mut bad = body.to_vec();
            bad[at] ^= 1 << (at % 8);
            drop(rows(ColumnarFormat::Orc, &bad));
        }
    }
}

/// Writes files by hand: what no writer would write.
mod by_hand {
    /// A field of a number.
    pub fn number(field: u64, value: u64) -> Vec<u8> {
        [varint(field << 3), varint(value)].concat()
    }

    /// A field of bytes.
    pub fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
        [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
    }

    pub fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    pub struct Stream<'a> {
        pub kind: u64,
        pub column: u64,
        pub bytes: &'a [u8],
    }

    /// A file without packing of one stripe with one column 'c'.
    pub fn file(
        column: &[u8],
        encodings: &[Vec<u8>],
        streams: &[Stream<'_>],
        rows: u64,
        zone: &str,
    ) -> Vec<u8> {
        let root = [number(1, 12), number(2, 1), bytes(3, b"c")].concat();
        of_types(&[root, column.to_vec()], encodings, streams, rows, zone)
    }

    pub fn of_types(
        types: &[Vec<u8>],
        encodings: &[Vec<u8>],
        streams: &[Stream<'_>],
        rows: u64,
        zone: &str,
    ) -> Vec<u8> {
        let mut file = b"ORC".to_vec();
        let data: Vec<u8> = streams.iter().flat_map(|stream| stream.bytes.iter().copied()).collect();
        let mut footer = Vec::new();
        for stream in streams {
            let stream =
                [number(1, stream.kind), number(2, stream.column), number(3, stream.bytes.len() as u64)];
            footer.extend(bytes(1, &stream.concat()));
        }
        footer.extend(bytes(2, &number(1, 0)));
        encodings.iter().for_each(|encoding| footer.extend(bytes(2, encoding)));
        footer.extend(bytes(3, zone.as_bytes()));
        let stripe =
            [number(1, 3), number(3, data.len() as u64), number(4, footer.len() as u64), number(5, rows)];
        file.extend(data);
        file.extend(footer);
        let mut tail = bytes(3, &stripe.concat());
        types.iter().for_each(|one| tail.extend(bytes(4, one)));
        let postscript = [number(1, tail.len() as u64), number(2, 0), bytes(8000, b"ORC")].concat();
        file.extend(tail);
        file.extend(&postscript);
        file.push(postscript.len() as u8);
        file
    }
}

use by_hand::{Stream, bytes, file, number};

fn stream(kind: u64, bytes: &[u8]) -> Stream<'_> {
    Stream { kind, column: 1, bytes }
}

fn one(data_type: DataType) -> Arc<TableDef> {
    table(vec![column(0, "c", data_type)])
}

#[test]
fn times_are_what_the_writers_clock_showed() {
    // 13 hours less a second after 2015 began, and a second more.
    let at = DataType::DateTime { scale: 0 };
    let seconds = [0xfe, 0x9e, 0xdb, 0x05, 0xa0, 0xdb, 0x05];
    // 0.12 s, and zero.
    let nanos = [0xfe, 0x66, 0x00];
    let streams = [stream(1, &seconds), stream(5, &nanos)];
    let write = |zone| file(&number(1, 9), &[number(1, 0)], &streams, 2, zone);
    let shown = |zone| lines(&one(at), &load(&one(at), &write(zone)).unwrap());
    assert_eq!(shown("GMT"), ["2015-01-01T12:59:59", "2015-01-01T13:00:00"]);
    // That clock is an hour ahead, and another hour from noon, UTC.
    assert_eq!(shown("Test/Half_Days"), ["2015-01-01T12:59:59", "2015-01-01T14:00:00"]);
    let unknown = error(&one(at), &write("Middle/Earth"));
    assert!(unknown.contains("the zone 'Middle/Earth', which is unknown"), "{unknown}");
}

#[test]
fn decimals_of_another_scale_are_moved_and_too_large_ones_refused() {
    let amount = DataType::Decimal { precision: 5, scale: 2 };
    let decimal = [number(1, 14), number(5, 5), number(6, 2)].concat();
    let write = |digits: &[u8], scales: &[u8]| {
        file(&decimal, &[number(1, 0)], &[stream(1, digits), stream(5, scales)], 1, "")
    };
    let shown = |digits: &[u8], scales: &[u8]| {
        lines(&one(amount), &load(&one(amount), &write(digits, scales)).unwrap())
    };
    // 7 with no place, -75 with one, 12345 with three.
    assert_eq!(shown(&[14], &[0xff, 0]), ["7.00"]);
    assert_eq!(shown(&[149, 1], &[0xff, 2]), ["-7.50"]);
    assert_eq!(shown(&[0xf2, 0xc0, 0x01], &[0xff, 6]), ["12.34"]);
    let large = error(&one(amount), &write(&[0xf2, 0xc0, 0x01], &[0xff, 0]));
    assert!(large.contains("the orc body can't be read"), "{large}");
    let endless = error(&one(amount), &write(&[0xff; 30], &[0xff, 0]));
    assert!(endless.contains("a number has no end"), "{endless}");
}

#[test]
fn what_a_file_claims_is_bounded_before_memory_is_taken() {
    let text = number(1, 7);
    // A dictionary of 2^40 values, whose lengths are one run.
    let dictionary = [number(1, 3), number(2, 1 << 40)].concat();
    let run = [0xc1, 0xff, 0x00, 0x00];
    let streams = [stream(1, &run), stream(2, &run), stream(3, b"")];
    let many = error(&one(DataType::String), &file(&text, &[dictionary], &streams, 1, ""));
    assert!(many.contains("the limit is 536870912"), "{many}");
    // A value of 2^31 - 1 bytes, and one of 2^30.
    for (bytes, why) in
        [(i32::MAX as u64 + 1, "a value has a length of"), (1 << 30, "the limit is 536870912")]
    {
        let length = [&[0xff][..], &by_hand::varint(bytes)].concat();
        let streams = [stream(1, b"abc"), stream(2, &length)];
        let long = error(&one(DataType::String), &file(&text, &[number(1, 0)], &streams, 1, ""));
        assert!(long.contains(why), "{long}");
    }
    // More rows than there is anything of.
    let missing = error(&one(DataType::BigInt), &file(&number(1, 4), &[number(1, 0)], &[], u64::MAX, ""));
    assert!(missing.contains("a stream ends too early"), "{missing}");
}

#[test]
fn types_that_are_no_tree_or_not_read_are_named() {
    let root = [number(1, 12), number(2, 1), bytes(3, b"c")].concat();
    let list = |child| [number(1, 10), number(2, child)].concat();
    let of = |types: &[Vec<u8>]| {
        let encodings = vec![number(1, 0); types.len()];
        by_hand::of_types(types, &encodings, &[], 1, "")
    };
    let ids = one(DataType::BigInt);
    for types in [vec![root.clone(), list(1)], vec![root.clone(), list(7)], vec![root.clone(), list(0)]] {
        assert!(error(&ids, &of(&types)).contains("has the type"), "{types:?}");
    }
    let twice = [number(1, 12), number(2, 1), number(2, 1), bytes(3, b"c"), bytes(3, b"d")].concat();
    assert!(error(&ids, &of(&[twice, number(1, 4)])).contains("has the type 1 in it"));
    let deep: Vec<Vec<u8>> =
        std::iter::once(root.clone()).chain((2..60).map(list)).chain([number(1, 4)]).collect();
    assert!(error(&ids, &of(&deep)).contains("nested more than 32 deep"));
    assert!(error(&ids, &of(&[list(1), number(1, 4)])).contains("its rows are no struct"));
    assert!(error(&ids, &of(&[root.clone(), number(1, 77)])).contains("there is no type 77"));
    let union = of(&[root, [number(1, 13), number(2, 2)].concat(), number(1, 4)]);
    assert!(error(&ids, &union).contains("doesn't support complex types"));
    let read = rows(ColumnarFormat::Orc, &union).unwrap_err();
    assert!(read.detail_text().contains("columns of UNION are not read"), "{read}");
}
