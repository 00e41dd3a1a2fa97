use super::*;
use crate::cells::cell::{Cell, push_cell};
use crate::testing::{column, rows, schema};
use crate::{Block, BlockBuilder};
use tributary_types::DataType;

/// The value into which `text` is converted, as Arrow prints it; `None` if there is none.
fn converted(data_type: DataType, text: &str) -> Option<String> {
    converted_if(true, data_type, text)
}

fn converted_if(strict: bool, data_type: DataType, text: &str) -> Option<String> {
    let schema = schema(vec![column(0, "c", data_type)]);
    let mut builder = BlockBuilder::new(&schema);
    push_cell(builder.column_mut(0), data_type, Cell::Text(text.as_bytes()), strict, 8 * 3600).ok()?;
    builder.finish_row();
    let block: Block = builder.finish().unwrap();
    Some(rows(&schema, &[block])[0][0].clone())
}

fn check(data_type: DataType, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(converted(data_type, text).as_deref(), Some(*expected), "'{text}' as {data_type}");
    }
}

fn refuse(data_type: DataType, texts: &[&str]) {
    for text in texts {
        assert_eq!(converted(data_type, text), None, "'{text}' as {data_type}");
    }
}

#[test]
fn booleans_are_words_or_one_and_zero() {
    for text in ["1", "true", "TRUE", "t", "Yes", "on", " 1 "] {
        check(DataType::Boolean, &[(text, "true")]);
    }
    for text in ["0", "false", "F", "no", "OFF"] {
        check(DataType::Boolean, &[(text, "false")]);
    }
    refuse(DataType::Boolean, &["", "2", "-1", "truth", "1.0"]);
}

#[test]
fn integers_have_a_sign_blanks_and_a_fraction_that_is_cut() {
    let cases = [
        ("0", "0"),
        ("-7", "-7"),
        ("+7", "7"),
        (" 12\t", "12"),
        ("123.956", "123"),
        ("5.", "5"),
        (".5", "0"),
        ("\x0b-8\x0b", "-8"),
        ("007", "7"),
    ];
    for data_type in [DataType::SmallInt, DataType::Int, DataType::BigInt, DataType::LargeInt] {
        check(data_type, &cases);
        refuse(data_type, &["", " ", "abc", "1a", "1e3", ".", "--1", "1 2", "0x10", "1.2.3", "-", "+"]);
    }
}

#[test]
fn integers_end_at_their_limits() {
    let limits = [
        (DataType::TinyInt, "-128", "127", "-129", "128"),
        (DataType::SmallInt, "-32768", "32767", "-32769", "32768"),
        (DataType::Int, "-2147483648", "2147483647", "-2147483649", "2147483648"),
        (
            DataType::BigInt,
            "-9223372036854775808",
            "9223372036854775807",
            "-9223372036854775809",
            "9223372036854775808",
        ),
        (
            DataType::LargeInt,
            "-99999999999999999999999999999999999999",
            "99999999999999999999999999999999999999",
            "-100000000000000000000000000000000000000",
            "170141183460469231731687303715884105728",
        ),
    ];
    for (data_type, min, max, below, above) in limits {
        check(data_type, &[(min, min), (max, max)]);
        refuse(data_type, &[below, above]);
    }
}

#[test]
fn floating_point_has_exponents_infinity_and_nan_and_overflows_only_if_not_strict() {
    check(
        DataType::Double,
        &[
            ("1.5", "1.5"),
            ("-2.5e-3", "-0.0025"),
            ("+3", "3.0"),
            (" .5 ", "0.5"),
            ("inf", "inf"),
            ("-Infinity", "-inf"),
            ("NaN", "NaN"),
        ],
    );
    check(DataType::Float, &[("1.5", "1.5"), ("3.4e38", "3.4e38"), ("inf", "inf")]);
    refuse(DataType::Double, &["", "1e400", "-1e400", "abc", "+-1", "1,5", "0x10"]);
    refuse(DataType::Float, &["1e39", "x"]);
    for (data_type, text, expected) in [
        (DataType::Double, "1e400", Some("inf")),
        (DataType::Double, " -1.7e409 ", Some("-inf")),
        (DataType::Float, "1e39", Some("inf")),
        (DataType::Float, "+1e39", Some("inf")),
        (DataType::Float, "-1e400", Some("-inf")),
        (DataType::Double, "1e-400", Some("0.0")),
        (DataType::Double, "abc", None),
        (DataType::Double, "1e400x", None),
    ] {
        assert_eq!(converted_if(false, data_type, text).as_deref(), expected, "'{text}' as {data_type}");
    }
}

#[test]
fn decimals_are_exact_and_rounded_half_up() {
    let data_type = DataType::Decimal { precision: 6, scale: 2 };
    check(
        data_type,
        &[
            ("1", "1.00"),
            ("-1.005", "-1.01"),
            ("1.004999999999999999999999999999999999999999999999", "1.00"),
            ("0.005", "0.01"),
            (".5", "0.50"),
            ("5.", "5.00"),
            ("+1.2e3", "1200.00"),
            ("12345E-2", "123.45"),
            ("1e-9999999999", "0.00"),
            ("0e99999999999999999999", "0.00"),
            ("9999.99", "9999.99"),
            ("-9999.994", "-9999.99"),
            ("000000000000000000000000000000000000000000000000001.5", "1.50"),
        ],
    );
    refuse(
        data_type,
        &["", ".", "10000", "9999.995", "1e4", "abc", "1.2.3", "1e", "--1", "1e40", "inf", "1 2"],
    );
    let many = DataType::Decimal { precision: 24, scale: 4 };
    check(
        many,
        &[
            ("99999999999999.9999", "99999999999999.9999"),
            ("-123456789012345678", "-123456789012345678.0000"),
            ("9999999999999999999", "9999999999999999999.0000"),
            ("99999999999999999999", "99999999999999999999.0000"),
            ("0.00005", "0.0001"),
            ("-0.0", "0.0000"),
        ],
    );
    refuse(many, &["-", "-.", "1..2", "100000000000000000000", "1-2", "1.2-"]);
    let widest = DataType::Decimal { precision: 38, scale: 0 };
    let nines = "9".repeat(38);
    check(
        widest,
        &[(&nines, &nines), (&format!("{nines}.4"), &nines), ("1e37", &format!("1{}", "0".repeat(37)))],
    );
    refuse(widest, &[&format!("{nines}.5"), &format!("1{}", "0".repeat(38)), "1e38"]);
    let fraction = DataType::Decimal { precision: 38, scale: 38 };
    check(fraction, &[(&format!("0.{nines}"), &format!("0.{nines}"))]);
    refuse(fraction, &["1", &format!("0.{nines}5")]);
}

#[test]
fn dates_come_in_many_shapes() {
    let day = "2024-05-01";
    for text in [
        "2024-05-01",
        "20240501",
        "240501",
        "24-5-1",
        "2024/5/01",
        "2024.5.1",
        "2024_05_01",
        " 2024-05-01 ",
        "2024-05-01 23:59:59.999999",
        "2024-05-01T10:11:12",
        "20240501101112",
        "20240501 10",
        "240501101112",
        "2024-05-01:10:11:12",
        "2024 5 1",
    ] {
        check(DataType::Date, &[(text, day)]);
    }
    check(
        DataType::Date,
        &[
            ("0000-01-01", "0000-01-01"),
            ("9999-12-31", "9999-12-31"),
            ("69-1-1", "2069-01-01"),
            ("70-1-1", "1970-01-01"),
            ("2000-02-29", "2000-02-29"),
        ],
    );
    check(DataType::Date, &[("2024-05-01 20:00:00Z", "2024-05-02")]);
    refuse(
        DataType::Date,
        &[
            "",
            "0000-00-00",
            "2024-02-30",
            "1900-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-1-1x",
            "10000-01-01",
            "202-01-01",
            "2024-05-01 24:00:00",
            "2024-05-01 10:60",
            "hello",
            "2024",
            "20240",
            "2024-05",
        ],
    );
}

#[test]
fn datetimes_are_rounded_to_the_columns_scale_and_converted_from_other_zones() {
    let seconds = DataType::DateTime { scale: 0 };
    check(
        seconds,
        &[
            ("2024-05-01 10:11:12", "2024-05-01T10:11:12"),
            ("2024-05-01", "2024-05-01T00:00:00"),
            ("2024-05-01 10:11:12.499999", "2024-05-01T10:11:12"),
            ("2024-12-31 23:59:59.5", "2025-01-01T00:00:00"),
            ("2024-05-01T10:11", "2024-05-01T10:11:00"),
            ("2024-05-01 1:2:3", "2024-05-01T01:02:03"),
            ("2024-05-01 101112", "2024-05-01T10:11:12"),
            ("20240501T101112", "2024-05-01T10:11:12"),
            ("2024-05-01 10:11:12Z", "2024-05-01T18:11:12"),
            ("2024-05-01 10:11:12 UTC", "2024-05-01T18:11:12"),
            ("2024-05-01 10:11:12+08:00", "2024-05-01T10:11:12"),
            ("2024-05-01 10:11:12 CST", "2024-05-01T10:11:12"),
            ("2024-05-01 10:11:12-0330", "2024-05-01T21:41:12"),
            ("2024-05-01 10:11:12+9", "2024-05-01T09:11:12"),
            ("2024-05-01:10:11:12", "2024-05-01T10:11:12"),
            ("2024-5-1:9", "2024-05-01T09:00:00"),
            ("2024/05/01:101112Z", "2024-05-01T18:11:12"),
            ("  2024-5-1T9-5-3.1Z  ", "2024-05-01T17:05:03"),
            ("99.12.31 23.59.59+05:30", "2000-01-01T02:29:59"),
            ("2000/01/01T00/00/00-230", "2000-01-01T10:30:00"),
            ("85 1 1T0 0 0. cst", "1985-01-01T00:00:00"),
            ("2024-05-01T1011 ZULU", "2024-05-01T18:11:00"),
            ("2024-05-01 10:11-05", "2024-05-01T23:11:00"),
            ("2024-05-01 10-05", "2024-05-01T23:00:00"),
        ],
    );
    check(DataType::DateTime { scale: 3 }, &[("2024-05-01 10:11:12.3456", "2024-05-01T10:11:12.346")]);
    check(
        DataType::DateTime { scale: 6 },
        &[
            ("2024-05-01 10:11:12.1234567", "2024-05-01T10:11:12.123457"),
            ("20240501101112.5", "2024-05-01T10:11:12.500"),
        ],
    );
    refuse(
        seconds,
        &[
            "",
            "2024-05-01 24:00:00",
            "2024-05-01 10:11:60",
            "9999-12-31 23:59:59.5",
            "2024-05-01 10:11:12 MARS",
            "2024-05-01 10:11:12+15:00",
            "2024-05-01 10:11:12 +",
            "2024-05-01 x",
            "2024-05-01:",
            "2024-05-01::10:11:12",
            "2024-05-01@10:11:12",
            "2024-05-01 10:11:12:13",
            "2024-05-01 10é11é12",
            "2024-05-01T23-59-60",
            "2024-05-01 101",
        ],
    );
}

#[test]
fn text_is_limited_in_bytes_not_characters() {
    let data_type = DataType::Varchar { bytes: 4 };
    check(data_type, &[("", ""), ("abcd", "abcd"), ("éé", "éé")]);
    refuse(data_type, &["abcde", "ééé"]);
    refuse(DataType::Char { bytes: 1 }, &["ab", "é"]);
}

#[test]
fn json_must_be_one_whole_document() {
    check(
        DataType::Json,
        &[
            ("{\"a\": [1, 2.5e3, null, \"x\"]}", "{\"a\": [1, 2.5e3, null, \"x\"]}"),
            ("1", "1"),
            (" \"s\" ", " \"s\" "),
        ],
    );
    refuse(DataType::Json, &["", "{", "{a:1}", "[1,]", "1 2", "nul"]);
    refuse(DataType::Json, &[&"[".repeat(10_000)]);
}

#[test]
fn every_day_of_the_calendar_survives_the_way_to_a_number_and_back() {
    for days in (temporal::DAYS_MIN..=temporal::DAYS_MAX).step_by(3) {
        let number = temporal::date_number(days.into()) as u32;
        assert_eq!(temporal::days(number / 10_000, number / 100 % 100, number % 100), Some(days));
    }
}
