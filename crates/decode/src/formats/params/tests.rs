use super::*;
use crate::testing::{all_types_table, column, lines, table};
use std::sync::Arc;
use tributary_types::{DataType, TableDef};

const TINY: u8 = 1;
const SHORT: u8 = 2;
const LONG: u8 = 3;
const FLOAT: u8 = 4;
const DOUBLE: u8 = 5;
const LONGLONG: u8 = 8;
const DATE: u8 = 10;
const TIME: u8 = 11;
const DATETIME: u8 = 12;
const NEWDATE: u8 = 14;
const NEWDECIMAL: u8 = 246;
const VAR_STRING: u8 = 253;

/// A parameter: type, unsigned, bytes; `None` for NULL.
type Param = (u8, bool, Option<Vec<u8>>);

fn text(value: &str) -> Param {
    let mut bytes = vec![value.len() as u8];
    bytes.extend_from_slice(value.as_bytes());
    (VAR_STRING, false, Some(bytes))
}

fn execute_on(
    table: &Arc<TableDef>,
    template: &str,
    params: &[Param],
    long_data: &BTreeMap<u16, Vec<u8>>,
) -> Result<Decoded, SqlError> {
    let target = Target::new(table, None)?;
    let prepared = prepare_values(template.as_bytes(), &target).expect("a template");
    let types: Vec<ParamType> =
        params.iter().map(|&(column_type, unsigned, _)| ParamType { column_type, unsigned }).collect();
    let mut null_bitmap = vec![0u8; params.len().div_ceil(8)];
    let mut values = Vec::new();
    for (index, (_, _, bytes)) in params.iter().enumerate() {
        match bytes {
            Some(bytes) => values.extend_from_slice(bytes),
            None => null_bitmap[index / 8] |= 1 << (index % 8),
        }
    }
    let bound = BoundParams { types: &types, null_bitmap: &null_bitmap, values: &values, long_data };
    prepared.decode(bound, &target, &InsertOptions::default(), &mut BlockBuilder::new(&table.schema))
}

/// One parameter into one column.
fn one(data_type: DataType, param: Param) -> Result<String, String> {
    let table = table(vec![column(0, "c", data_type)]);
    let decoded = execute_on(&table, "(?)", &[param], &BTreeMap::new()).map_err(|error| error.message)?;
    match decoded.first_reason() {
        Some(reason) => Err(reason.to_owned()),
        None => Ok(lines(&table, &decoded)[0].clone()),
    }
}

#[test]
fn every_binary_type_goes_into_every_column_that_fits() {
    let date = vec![4, 0xe8, 7, 5, 1];
    let datetime = vec![7, 0xe8, 7, 5, 1, 10, 11, 12];
    let micros = vec![11, 0xe8, 7, 5, 1, 10, 11, 12, 0x40, 0xe2, 1, 0];
    let varchar = DataType::Varchar { bytes: 30 };
    let decimal = DataType::Decimal { precision: 8, scale: 2 };
    let cases: Vec<(DataType, Param, &str)> = vec![
        (DataType::Int, (TINY, false, Some(vec![0xff])), "-1"),
        (DataType::Int, (TINY, true, Some(vec![0xff])), "255"),
        (DataType::Boolean, (TINY, false, Some(vec![1])), "true"),
        (DataType::Int, (SHORT, false, Some(vec![0xfe, 0xff])), "-2"),
        (DataType::Int, (SHORT, true, Some(vec![0xfe, 0xff])), "65534"),
        (DataType::BigInt, (LONG, false, Some(vec![0xff; 4])), "-1"),
        (DataType::BigInt, (LONG, true, Some(vec![0xff; 4])), "4294967295"),
        (DataType::BigInt, (LONGLONG, false, Some(vec![0xff; 8])), "-1"),
        (DataType::LargeInt, (LONGLONG, true, Some(vec![0xff; 8])), "18446744073709551615"),
        (varchar, (LONG, false, Some(vec![7, 0, 0, 0])), "7"),
        (decimal, (LONG, false, Some(vec![7, 0, 0, 0])), "7.00"),
        (DataType::Float, (FLOAT, false, Some(1.5f32.to_le_bytes().to_vec())), "1.5"),
        (DataType::Double, (DOUBLE, false, Some(2.25f64.to_le_bytes().to_vec())), "2.25"),
        (decimal, (DOUBLE, false, Some(2.345f64.to_le_bytes().to_vec())), "2.35"),
        (DataType::Date, (DATE, false, Some(date.clone())), "2024-05-01"),
        (varchar, (DATE, false, Some(date)), "2024-05-01"),
        (DataType::DateTime { scale: 0 }, (DATETIME, false, Some(datetime)), "2024-05-01T10:11:12"),
        (
            DataType::DateTime { scale: 6 },
            (DATETIME, false, Some(micros.clone())),
            "2024-05-01T10:11:12.123456",
        ),
        (DataType::Date, (DATETIME, false, Some(micros)), "2024-05-01"),
        (DataType::Date, (NEWDATE, false, Some(vec![4, 0xe8, 7, 5, 1])), "2024-05-01"),
        (varchar, (TIME, false, Some(vec![8, 1, 1, 0, 0, 0, 2, 3, 4])), "-26:03:04"),
        (varchar, (TIME, false, Some(vec![0])), "00:00:00"),
        (decimal, (NEWDECIMAL, false, Some(vec![4, b'1', b'.', b'2', b'5'])), "1.25"),
        (DataType::Int, text("42"), "42"),
        (DataType::Date, text("2024-05-01"), "2024-05-01"),
        (varchar, text("é"), "é"),
        (DataType::Json, text("[1]"), "[1]"),
        (DataType::Int, (VAR_STRING, false, None), "NULL"),
        (DataType::Int, (6, false, Some(vec![])), "NULL"),
    ];
    for (data_type, param, expected) in cases {
        assert_eq!(one(data_type, param.clone()).as_deref(), Ok(expected), "{param:?} as {data_type}");
    }
}

#[test]
fn a_parameter_that_does_not_fit_rejects_the_row_with_its_value() {
    let bad =
        |value: &str| format!("column(c) value is incorrect while strict mode is true, src value is {value}");
    assert_eq!(one(DataType::TinyInt, (SHORT, false, Some(vec![0, 1]))), Err(bad("256")));
    assert_eq!(one(DataType::Date, (DATE, false, Some(vec![0]))), Err(bad("0000-00-00 00:00:00")));
    assert_eq!(
        one(DataType::Date, (DATE, false, Some(vec![4, 0xe8, 7, 2, 30]))),
        Err(bad("2024-02-30 00:00:00"))
    );
    assert_eq!(one(DataType::Int, text("x")), Err(bad("x")));
    assert!(one(DataType::String, (VAR_STRING, false, Some(vec![1, 0xff]))).is_err());
}

#[test]
fn lengths_of_all_sizes_are_read() {
    for length in [0usize, 250, 251, 65_535, 65_536, 100_000] {
        let value = "v".repeat(length);
        let mut bytes = match length {
            0..=250 => vec![length as u8],
            251..=65_535 => [&[0xfc][..], &(length as u16).to_le_bytes()].concat(),
            _ => [&[0xfd][..], &(length as u32).to_le_bytes()[..3]].concat(),
        };
        bytes.extend_from_slice(value.as_bytes());
        assert_eq!(one(DataType::String, (VAR_STRING, false, Some(bytes))), Ok(value));
    }
}

#[test]
fn literals_and_parameters_mix_in_many_rows() {
    let table = table(vec![column(0, "a", DataType::Int), column(1, "b", DataType::String)]);
    let template = "VALUES (?, 'x\\'y'), (7, ?), (NULL, ?), (), (?, ?);";
    let params = [(TINY, false, Some(vec![1])), text("p"), text("q"), (LONG, false, None), text("r")];
    let target = Target::new(&table, None).unwrap();
    let prepared = prepare_values(template.as_bytes(), &target).unwrap();
    assert_eq!((prepared.param_count(), prepared.row_count()), (5, 5));
    let decoded = execute_on(&table, template, &params, &BTreeMap::new()).unwrap();
    assert_eq!(lines(&table, &decoded), ["1|x'y", "7|p", "NULL|q", "NULL|NULL", "NULL|r"]);
}

#[test]
fn long_data_takes_the_place_of_a_value() {
    let table = table(vec![column(0, "a", DataType::Int), column(1, "b", DataType::String)]);
    let long_data = BTreeMap::from([(0u16, b"12".to_vec())]);
    let params = [(VAR_STRING, false, Some(Vec::new())), text("after")];
    let decoded = execute_on(&table, "(?,?)", &params, &long_data).unwrap();
    assert_eq!(lines(&table, &decoded), ["12|after"]);
}

#[test]
fn long_data_counts_even_if_the_parameter_is_marked_as_null() {
    let table = table(vec![column(0, "a", DataType::String)]);
    let long_data = BTreeMap::from([(0u16, b"ahead".to_vec())]);
    let decoded = execute_on(&table, "(?)", &[(VAR_STRING, false, None)], &long_data).unwrap();
    assert_eq!(lines(&table, &decoded), ["ahead"]);
}

#[test]
fn a_statement_with_an_expression_or_a_wrong_count_is_not_prepared_here() {
    let table = table(vec![column(0, "a", DataType::Int), column(1, "b", DataType::String)]);
    let target = Target::new(&table, None).unwrap();
    for template in ["(?, upper(?))", "(?, DEFAULT)", "(?)", "(?,?,?)", "(?,?) SELECT", "(?, ?+1)", "(??, 1)"]
    {
        assert!(prepare_values(template.as_bytes(), &target).is_none(), "{template}");
    }
}

#[test]
fn a_packet_that_is_too_short_or_of_unknown_types_is_malformed() {
    let malformed = |params: &[Param]| {
        let table = all_types_table();
        let count = DataType::EXAMPLES.len();
        let template = format!("({})", vec!["?"; count].join(","));
        let mut all = params.to_vec();
        all.resize(count, (LONG, false, None));
        let error = execute_on(&table, &template, &all, &BTreeMap::new()).unwrap_err();
        assert_eq!(error.code, ErrorCode::MalformedPacket, "{error}");
    };
    malformed(&[(LONG, false, Some(vec![1, 2, 3]))]);
    malformed(&[(LONGLONG, false, Some(vec![]))]);
    malformed(&[(VAR_STRING, false, Some(vec![5, b'a']))]);
    malformed(&[(VAR_STRING, false, Some(vec![0xfb]))]);
    malformed(&[(VAR_STRING, false, Some([&[0xfe][..], &[0xff; 8]].concat()))]);
    malformed(&[(DATE, false, Some(vec![5, 1, 1, 1, 1, 1]))]);
    malformed(&[(TIME, false, Some(vec![1, 1]))]);
    malformed(&[(200, false, Some(vec![1]))]);
}

#[test]
fn bytes_after_the_last_value_are_passed_over_as_mysql_does() {
    let table = table(vec![column(0, "a", DataType::Int)]);
    let decoded = execute_on(&table, "(?)", &[(LONG, false, Some(vec![7, 0, 0, 0, 0, 0]))], &BTreeMap::new());
    assert_eq!(decoded.unwrap().counts.loaded, 1);
}

#[test]
fn binding_another_number_of_parameters_is_malformed() {
    let table = table(vec![column(0, "a", DataType::Int)]);
    let error = execute_on(&table, "(?)", &[], &BTreeMap::new()).unwrap_err();
    assert_eq!(error.message, "Malformed communication packet: the statement has 1 parameters, 0 are bound");
}

#[test]
fn a_table_that_gained_a_column_asks_to_prepare_again() {
    let narrow = table(vec![column(0, "a", DataType::Int)]);
    let wide = table(vec![column(0, "a", DataType::Int), column(1, "b", DataType::Int)]);
    let prepared = prepare_values(b"(1)", &Target::new(&narrow, None).unwrap()).unwrap();
    let bound = BoundParams { types: &[], null_bitmap: &[], values: &[], long_data: &BTreeMap::new() };
    let target = Target::new(&wide, None).unwrap();
    let mut builder = BlockBuilder::new(&wide.schema);
    let error = prepared.decode(bound, &target, &InsertOptions::default(), &mut builder).unwrap_err();
    assert!(error.message.contains("Column size: 1 does not match with target column size: 2"), "{error}");
}
