//! Texts of nested values, their bytes in blocks and their arrays.

use super::*;
use crate::blocks::columns::blocks_to_batches;
use crate::testing::{batch_rows, column, lines, schema, table};
use crate::{
    BlockBuilder, BodyDecoder, CsvDecoder, CsvFormat, JsonDecoder, JsonFormat, LoadRules, Target,
    batch_to_block, decode_batch,
};
use std::sync::Arc;
use tributary_types::{DataType, Nested, NestedType, StructField, TableDef};

fn named(fields: &[(&str, DataType)]) -> DataType {
    let field = |(name, data_type): &(&str, DataType)| StructField {
        name: (*name).to_owned(),
        data_type: *data_type,
    };
    DataType::Nested(Nested::new(NestedType::Struct(fields.iter().map(field).collect())))
}

fn text() -> DataType {
    DataType::Varchar { bytes: 5 }
}

/// The text of a value of `data_type` that `source` is, as Arrow prints it.
fn read(data_type: DataType, source: &str, strict: bool) -> Result<String, Fault> {
    let schema = schema(vec![column(0, "v", data_type)]);
    let mut builder = BlockBuilder::new(&schema);
    let cell = Cell::Text(source.as_bytes());
    push_cell(builder.column_mut(0), data_type, cell, strict, 0)?;
    builder.finish_row();
    let batches = blocks_to_batches(&schema, &[builder.finish().unwrap()]).unwrap();
    Ok(batch_rows(&batches[0]).remove(0).remove(0))
}

#[test]
fn an_array_is_read_as_doris_writes_it() {
    let ints = DataType::array(DataType::Int);
    let texts = DataType::array(text());
    for (data_type, source, expected) in [
        (ints, "[]", "[]"),
        (ints, "[1,2,-3]", "[1, 2, -3]"),
        (ints, "[ 1 , '2' ,\"3\"]", "[1, 2, 3]"),
        (ints, "[1,null,NULL]", "[1, , ]"),
        (ints, "[,,]", "[, , ]"),
        (ints, r"[1,\N,3]", "[1, , 3]"),
        (ints, "[ ]", "[]"),
        (texts, "[a, b c ,'d','it''s']", "[a, b c, d, ]"),
        (texts, r#"["a,b",'[c]',"q\"x","\u00e9\n"]"#, "[a,b, [c], q\"x, é\n]"),
        (texts, r#"["null",null,it's]"#, "[null, , it's]"),
        (DataType::array(ints), "[[1,2],[],null,[3]]", "[[1, 2], [], , [3]]"),
        (DataType::array(DataType::Boolean), "[true,0,1]", "[true, false, true]"),
        (DataType::array(DataType::Date), "['2024-02-29', 2024-03-01]", "[2024-02-29, 2024-03-01]"),
        (DataType::array(DataType::Json), r#"[{"a":[1,2]},"b"]"#, r#"[{"a":[1,2]}, "b"]"#),
        (DataType::array(DataType::Decimal { precision: 5, scale: 2 }), "[1.005,2]", "[1.01, 2.00]"),
    ] {
        let strict = !source.contains("''");
        let found = read(data_type, source, strict).unwrap_or_else(|fault| panic!("{source}: {fault:?}"));
        // Arrow prints NULL as nothing.
        assert_eq!(found, expected, "{source}");
    }
}

#[test]
fn what_is_no_array_is_a_fault_and_a_bad_element_is_null_unless_loads_are_strict() {
    let ints = DataType::array(DataType::Int);
    for source in ["", " [1]", "[1", "1]", "[1]]", "[[1]", "{1}", "1", "['1]", "[1]x"] {
        for strict in [true, false] {
            assert_eq!(read(ints, source, strict), Err(Fault::Bad), "{source}");
        }
    }
    assert_eq!(read(ints, "null", true), Err(Fault::Null));
    assert_eq!(read(ints, "[1,x,3]", true), Err(Fault::Bad));
    assert_eq!(read(ints, "[1,x,3]", false).unwrap(), "[1, , 3]");
    assert_eq!(read(DataType::array(ints), "[[1],2,[x]]", false).unwrap(), "[[1], , []]");
    assert!(matches!(read(DataType::array(text()), "[abcdef]", true), Err(Fault::TooLong { .. })));
    assert_eq!(read(DataType::array(text()), "[abcdef]", false).unwrap(), "[abcde]");
    let large = "[1,100000000000000000000000000000000000000]";
    assert_eq!(read(DataType::array(DataType::LargeInt), large, false), Err(Fault::LargeIntRange));
}

#[test]
fn a_map_has_each_key_once_and_none_that_is_null() {
    let map = DataType::map(text(), DataType::Int);
    for (source, expected) in [
        ("{}", "{}"),
        (r#"{"k":1,"l":2}"#, "{k: 1, l: 2}"),
        ("{k:1, 'l' : null}", "{k: 1, l: }"),
        ("{a:1,b:2,a:3}", "{b: 2, a: 3}"),
        ("{'a:b':1,'c,d':2}", "{a:b: 1, c,d: 2}"),
    ] {
        assert_eq!(read(map, source, true).as_deref(), Ok(expected), "{source}");
    }
    let numbers = DataType::map(DataType::Int, DataType::array(DataType::Int));
    assert_eq!(read(numbers, "{1:[1,2],01:[3]}", true).as_deref(), Ok("{1: [3]}"));
    for source in ["{null:1}", "{a}", "{a:1", "[a:1]", "{:1}"] {
        assert_eq!(read(map, source, false), Err(Fault::Bad), "{source}");
    }
    assert_eq!(read(map, "{a:x}", false).as_deref(), Ok("{a: }"));
    assert_eq!(read(map, "{a:x}", true), Err(Fault::Bad));
    assert_eq!(read(numbers, "{x:[]}", false), Err(Fault::Bad), "a key can't be NULL instead");
}

#[test]
fn a_struct_has_all_names_or_none() {
    let value = named(&[("f", DataType::Int), ("g", DataType::DateTime { scale: 0 }), ("S", text())]);
    for (source, expected) in [
        ("{10, '2024-01-01 00:00:00', \"x\"}", "{f: 10, g: 2024-01-01T00:00:00, S: x}"),
        ("{10, 2024-01-01 01:02:03, x}", "{f: 10, g: 2024-01-01T01:02:03, S: x}"),
        (r#"{"f":10,"g":"2024-01-01","s":null}"#, "{f: 10, g: 2024-01-01T00:00:00, S: }"),
        ("{f:1, G:null, S:a}", "{f: 1, g: , S: a}"),
        (r#"{"S":"a","g":null,"f":"1"}"#, "{f: 1, g: , S: a}"),
        ("{}", "{f: , g: , S: }"),
    ] {
        assert_eq!(read(value, source, true).as_deref(), Ok(expected), "{source}");
    }
    for source in
        ["{1}", "{1,null,a,2}", "{f:1,null,a}", "{g:null,f:1,a}", "{f:1,f:2,S:a}", "{f:1,h:2,s:3}", "[1,2,3]"]
    {
        assert_eq!(read(value, source, true), Err(Fault::Bad), "{source}");
    }
    assert_eq!(read(value, "{x,null,abcdefg}", false).as_deref(), Ok("{f: , g: , S: abcde}"));
}

fn nested_table() -> Arc<TableDef> {
    let inner = named(&[("n", DataType::BigInt), ("tags", DataType::array(DataType::String))]);
    table(vec![
        column(0, "id", DataType::Int),
        column(1, "a", DataType::array(DataType::Double)),
        column(2, "m", DataType::map(DataType::Int, inner)),
        column(3, "s", inner),
    ])
}

const CSV: &str = "1|[1.5,null]|{1:{2,[a,b]},2:null}|{7,[]}\n\
                   2|null|\\N|null\n\
                   3|[]|{}|{\"n\":null,\"tags\":[\"x\",null]}\n";
const ROWS: [&str; 3] = [
    "1|[1.5, ]|{1: {n: 2, tags: [a, b]}, 2: }|{n: 7, tags: []}",
    "2|NULL|NULL|NULL",
    "3|[]|{}|{n: , tags: [x, ]}",
];

fn csv(text: &str) -> crate::Decoded {
    let target = Target::new(&nested_table(), None).unwrap();
    let format = CsvFormat { column_separator: b"|".to_vec(), ..CsvFormat::default() };
    let mut decoder = CsvDecoder::new(target, format, LoadRules::default()).unwrap();
    decoder.push(text.as_bytes()).unwrap();
    decoder.finish().unwrap();
    decoder.into_decoded()
}

#[test]
fn nested_values_of_few_and_many_rows_are_blocks_arrays_and_blocks_again() {
    let table = nested_table();
    for copies in [1, 600] {
        let decoded = csv(&CSV.repeat(copies));
        assert_eq!(decoded.counts.loaded, 3 * copies as u64, "{:?}", decoded.first_reason());
        let all = lines(&table, &decoded);
        assert!(all.chunks(3).all(|rows| rows == ROWS), "{:?}", &all[..3]);
        for batch in blocks_to_batches(&table.schema, &decoded.blocks).unwrap() {
            let block = batch_to_block(&batch, &table.schema).unwrap();
            let kept = crate::Block::from_bytes(block.bytes().clone()).unwrap();
            assert_eq!(blocks_to_batches(&table.schema, &[kept]).unwrap(), std::slice::from_ref(&batch));
            let part = batch.slice(1, 2);
            let block = batch_to_block(&part, &table.schema).unwrap();
            assert_eq!(
                batch_rows(&blocks_to_batches(&table.schema, &[block]).unwrap()[0]),
                batch_rows(&part)
            );
        }
    }
}

#[test]
fn a_rejected_row_leaves_nothing_of_its_nested_values() {
    let target = Target::new(&nested_table(), None).unwrap();
    let format = CsvFormat { column_separator: b"|".to_vec(), ..CsvFormat::default() };
    let rules = LoadRules { strict: true, ..LoadRules::default() };
    let mut decoder = CsvDecoder::new(target, format, rules).unwrap();
    decoder.push(format!("8|[1]|{{x:{{1,[]}}}}|{{1,[]}}\n{CSV}9|[1]|{{}}|{{1,2,3}}\n").as_bytes()).unwrap();
    decoder.finish().unwrap();
    let decoded = decoder.into_decoded();
    assert_eq!((decoded.counts.loaded, decoded.counts.filtered), (3, 2));
    assert_eq!(lines(&nested_table(), &decoded), ROWS);
}

#[test]
fn json_documents_are_nested_values_whose_fields_are_found_by_name() {
    let target = Target::new(&nested_table(), None).unwrap();
    let mut decoder = JsonDecoder::new(target, &JsonFormat::default(), LoadRules::default()).unwrap();
    let body = r#"{"id":1,"a":[1.5,null],"m":{"1":{"tags":["a","b"],"n":2,"x":0},"2":null},"s":{"tags":[],"n":7}}
{"id":2,"a":null}
{"id":3,"a":"[]","m":{},"s":{"tags":["x",null]}}
"#;
    decoder.push(body.as_bytes()).unwrap();
    decoder.finish().unwrap();
    let decoded = decoder.into_decoded();
    assert_eq!(lines(&nested_table(), &decoded), ROWS, "{:?}", decoded.rejects);
}

#[test]
fn arrays_of_other_types_are_converted_part_by_part() {
    let source = csv(CSV);
    let batch = blocks_to_batches(&nested_table().schema, &source.blocks).unwrap().remove(0);
    let inner = named(&[("tags", DataType::array(text())), ("N", DataType::TinyInt)]);
    let to = table(vec![
        column(0, "id", DataType::BigInt),
        column(1, "a", DataType::array(DataType::Decimal { precision: 4, scale: 2 })),
        column(2, "m", DataType::map(text(), inner)),
        column(3, "s", DataType::String),
    ]);
    let target = Target::new(&to, None).unwrap();
    let mut builder = BlockBuilder::new(&to.schema);
    let decoded = decode_batch(&batch, &target, &crate::InsertOptions::default(), &mut builder).unwrap();
    let expected = [
        r#"1|[1.50, ]|{1: {tags: [a, b], N: 2}, 2: }|{"n":7, "tags":[]}"#,
        "2|NULL|NULL|NULL",
        r#"3|[]|{}|{"n":null, "tags":["x", null]}"#,
    ];
    assert_eq!(lines(&to, &decoded), expected);
}

#[test]
fn damaged_bytes_are_an_error_and_no_panic() {
    let table = nested_table();
    let block = csv(CSV).blocks.remove(0);
    for at in 0..block.len_bytes() {
        for change in [1, 0x80, 0xff] {
            let mut bytes = block.bytes().to_vec();
            bytes[at] ^= change;
            if let Ok(damaged) = crate::Block::from_bytes(bytes.into()) {
                let _ = blocks_to_batches(&table.schema, &[damaged]);
            }
        }
    }
}
