use super::*;
use crate::BlockBuilder;
use crate::testing::{column, rows, schema};

fn converted(data_type: DataType, cell: Cell<'_>) -> Result<String, Fault> {
    let schema = schema(vec![column(0, "c", data_type)]);
    let mut builder = BlockBuilder::new(&schema);
    push_cell(builder.column_mut(0), data_type, cell, true, 0)?;
    builder.finish_row();
    Ok(rows(&schema, &[builder.finish().unwrap()])[0][0].clone())
}

const VARCHAR: DataType = DataType::Varchar { bytes: 40 };
const DECIMAL: DataType = DataType::Decimal { precision: 6, scale: 2 };
const SECONDS: DataType = DataType::DateTime { scale: 0 };

#[test]
fn any_cell_goes_into_any_column_that_has_a_value_for_it() {
    let day = Cell::Date(19_844);
    let moment = Cell::DateTime(19_844 * 86_400_000_000 + 36_672_600_000);
    let cases: &[(Cell<'_>, DataType, &str)] = &[
        (Cell::Int(2), DataType::Boolean, "true"),
        (Cell::Number(b"0"), DataType::Boolean, "false"),
        (Cell::Bool(true), DataType::Int, "1"),
        (Cell::Bool(true), VARCHAR, "1"),
        (Cell::Bool(true), DataType::Json, "true"),
        (Cell::Int(-5), VARCHAR, "-5"),
        (Cell::Int(-5), DECIMAL, "-5.00"),
        (Cell::Int(-5), DataType::Double, "-5.0"),
        (Cell::Int(20_240_501), DataType::Date, "2024-05-01"),
        (Cell::Int(20_240_501_101_112), SECONDS, "2024-05-01T10:11:12"),
        (Cell::UInt(u64::MAX), DataType::LargeInt, "18446744073709551615"),
        (Cell::UInt(7), DataType::TinyInt, "7"),
        (Cell::Double(1.99), DataType::Int, "1"),
        (Cell::Double(1.005), DECIMAL, "1.01"),
        (Cell::Double(2.5), VARCHAR, "2.5"),
        (Cell::Double(1e3), VARCHAR, "1000"),
        (Cell::Float(0.1), DECIMAL, "0.10"),
        (Cell::Float(0.5), DataType::Double, "0.5"),
        (Cell::Decimal { value: 12_345, scale: 3 }, DECIMAL, "12.35"),
        (Cell::Decimal { value: 12_345, scale: 3 }, DataType::Int, "12"),
        (Cell::Decimal { value: -5, scale: 3 }, VARCHAR, "-0.005"),
        (Cell::Decimal { value: 25, scale: 1 }, DataType::Double, "2.5"),
        (Cell::Decimal { value: 25, scale: -1 }, DataType::Int, "250"),
        (day, DataType::Date, "2024-05-01"),
        (day, SECONDS, "2024-05-01T00:00:00"),
        (day, VARCHAR, "2024-05-01"),
        (day, DataType::Int, "20240501"),
        (moment, DataType::Date, "2024-05-01"),
        (moment, SECONDS, "2024-05-01T10:11:13"),
        (moment, VARCHAR, "2024-05-01 10:11:12.600000"),
        (moment, DataType::BigInt, "20240501101112"),
        (Cell::Double(20_240_501.0), DataType::Date, "2024-05-01"),
        (Cell::Number(b"2.0240501e7"), DataType::Date, "2024-05-01"),
        (Cell::Double(20_240_501_101_112.5), DataType::DateTime { scale: 3 }, "2024-05-01T10:11:12.500"),
        (Cell::Number(b"20240501101112.5"), DataType::DateTime { scale: 3 }, "2024-05-01T10:11:12.500"),
        (Cell::Number(b"1e3"), DataType::Int, "1000"),
        (Cell::Number(b".5"), DataType::Int, "0"),
        (Cell::Number(b"-12.75"), DataType::SmallInt, "-12"),
        (Cell::Number(b"1.50"), VARCHAR, "1.50"),
        (Cell::Number(b"+007"), VARCHAR, "7"),
        (Cell::Number(b"-.5"), VARCHAR, "-0.5"),
        (Cell::Number(b"5."), VARCHAR, "5"),
        (Cell::Number(b"-0"), VARCHAR, "0"),
        (Cell::Number(b"1e3"), VARCHAR, "1000"),
        (Cell::Number(b"20240501"), DataType::Date, "2024-05-01"),
        (Cell::Hex(b"\x01\x00"), DataType::Int, "256"),
        (Cell::Hex(b"abc"), VARCHAR, "abc"),
    ];
    for (cell, data_type, expected) in cases {
        assert_eq!(converted(*data_type, *cell).as_deref(), Ok(*expected), "{cell:?} as {data_type}");
    }
}

#[test]
fn a_cell_without_a_value_in_the_column_is_a_fault() {
    let cases: &[(Cell<'_>, DataType, Fault)] = &[
        (Cell::Null, DataType::Int, Fault::Null),
        (Cell::Int(128), DataType::TinyInt, Fault::IntRange),
        (Cell::UInt(u64::MAX), DataType::BigInt, Fault::IntRange),
        (Cell::Double(f64::NAN), DataType::Int, Fault::Bad),
        (Cell::Double(1e300), DataType::LargeInt, Fault::IntRange),
        (Cell::Double(1.7014118346046923e38), DataType::LargeInt, Fault::LargeIntRange),
        (Cell::Decimal { value: i128::MAX, scale: 0 }, DataType::LargeInt, Fault::LargeIntRange),
        (Cell::Text(b" -170141183460469231731687303715884105728"), DataType::LargeInt, Fault::LargeIntRange),
        (Cell::Number(b"100000000000000000000000000000000000000"), DataType::LargeInt, Fault::LargeIntRange),
        (Cell::Number(b"1.5e38"), DataType::LargeInt, Fault::LargeIntRange),
        (Cell::Number(b"170141183460469231731687303715884105728"), DataType::LargeInt, Fault::IntRange),
        (Cell::Text(b"170141183460469231731687303715884105727"), DataType::BigInt, Fault::IntRange),
        (Cell::Number(b"-9999999999999999999999999999999999999999"), DataType::Int, Fault::IntRange),
        (Cell::Text(b"1e60"), DataType::Int, Fault::Bad),
        (Cell::Text(b"-"), DataType::Int, Fault::Bad),
        (Cell::Double(1e300), DataType::Float, Fault::Bad),
        (Cell::Double(f64::INFINITY), DECIMAL, Fault::Bad),
        (Cell::Double(1e300), DECIMAL, Fault::DecimalRange),
        (Cell::Number(b"10000"), DECIMAL, Fault::DecimalRange),
        (Cell::Bool(true), DataType::Date, Fault::Bad),
        (Cell::Int(20_241_301), DataType::Date, Fault::Bad),
        (Cell::Double(131_007.998), DataType::Date, Fault::Bad),
        (Cell::Number(b"131007.998"), DataType::Date, Fault::Bad),
        (Cell::Number(b"1.31007998e5"), DataType::Date, Fault::Bad),
        (Cell::Date(i32::MAX), DataType::Date, Fault::Bad),
        (Cell::Date(i32::MAX), SECONDS, Fault::Bad),
        (Cell::DateTime(i64::MAX), SECONDS, Fault::Bad),
        (Cell::Date(0), DataType::Boolean, Fault::Bad),
        (Cell::Hex(b"\xff"), VARCHAR, Fault::Bad),
        (Cell::Hex(b"123456789"), DataType::BigInt, Fault::Bad),
        (Cell::Text(b"too long"), DataType::Char { bytes: 3 }, Fault::TooLong { limit: 3, actual: 8 }),
        (Cell::Int(12_345), DataType::Char { bytes: 3 }, Fault::TooLong { limit: 3, actual: 5 }),
    ];
    for (cell, data_type, expected) in cases {
        assert_eq!(converted(*data_type, *cell), Err(*expected), "{cell:?} as {data_type}");
    }
}

#[test]
fn a_number_beyond_its_type_is_infinite_if_not_strict() {
    let cases: [(Cell<'_>, DataType); 3] = [
        (Cell::Double(1e300), DataType::Float),
        (Cell::Number(b"1e400"), DataType::Double),
        (Cell::Decimal { value: 1, scale: -39 }, DataType::Float),
    ];
    for (cell, data_type) in cases {
        let mut strict = ColumnBuffer::of_type(data_type);
        assert_eq!(push_cell(&mut strict, data_type, cell, true, 0), Err(Fault::Bad), "{cell:?}");
        let mut lenient = ColumnBuffer::of_type(data_type);
        push_cell(&mut lenient, data_type, cell, false, 0).unwrap();
        let stored = lenient.into_stored();
        let infinity: &[u8] = if data_type == DataType::Float {
            &f32::INFINITY.to_le_bytes()
        } else {
            &f64::INFINITY.to_le_bytes()
        };
        assert_eq!(stored, infinity, "{cell:?}");
    }
}

#[test]
fn a_string_ends_at_a_megabyte() {
    let long = vec![b'x'; STRING_BYTES_MAX + 1];
    assert!(converted(DataType::String, Cell::Text(&long[1..])).is_ok());
    let fault = Fault::TooLongString { limit: STRING_BYTES_MAX, actual: STRING_BYTES_MAX + 1 };
    assert_eq!(converted(DataType::String, Cell::Text(&long)), Err(fault));
}

#[test]
fn a_cut_keeps_whole_characters() {
    assert_eq!(cut("aéé".as_bytes(), 4), "aé".as_bytes());
    assert_eq!(cut("aéé".as_bytes(), 3), "aé".as_bytes());
    assert_eq!(cut(b"abc", 3), b"abc");
    assert_eq!(cut("é".as_bytes(), 1), b"");
}
