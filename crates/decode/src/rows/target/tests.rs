use super::*;
use crate::testing::{column, table};
use crate::{Decoded, InsertOptions, LoadClock, ValuesOutcome, decode_values};

fn people() -> Arc<TableDef> {
    table(vec![
        column(0, "Id", DataType::Int).not_null(),
        column(1, "name", DataType::Varchar { bytes: 8 }),
        column(2, "score", DataType::Int).with_default(DefaultValue::Literal("10".into())).not_null(),
        column(3, "at", DataType::DateTime { scale: 3 })
            .with_default(DefaultValue::CurrentTimestamp { scale: 6 }),
    ])
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn decode(values: &str, columns: Option<&[&str]>, strict: bool) -> Decoded {
    let table = people();
    let columns = columns.map(names);
    let target = Target::new(&table, columns.as_deref()).unwrap();
    let clock = LoadClock { now_micros: 1_714_566_896_123_456, utc_offset_seconds: 0 };
    let options = InsertOptions { strict, max_filter_ratio: 1.0, clock };
    let mut builder = crate::BlockBuilder::new(&table.schema);
    match decode_values(values.as_bytes(), &target, &options, &mut builder).unwrap() {
        ValuesOutcome::Rows(decoded) => decoded,
        ValuesOutcome::General => panic!("general"),
    }
}

fn lines(decoded: &Decoded) -> Vec<String> {
    crate::testing::lines(&people(), decoded)
}

#[test]
fn an_unknown_column_is_1054() {
    let error = Target::new(&people(), Some(&names(&["id", "nope"]))).unwrap_err();
    assert_eq!(error.code.number(), 1054);
    assert_eq!(error.detail_text(), "Unknown column 'nope' in target table.");
}

#[test]
fn a_column_twice_is_refused_whatever_its_case() {
    let error = Target::new(&people(), Some(&names(&["id", "ID"]))).unwrap_err();
    assert_eq!(error.detail_text(), "Column 'Id' specified twice");
}

#[test]
fn an_omitted_not_null_column_without_default_is_refused() {
    let error = Target::new(&people(), Some(&names(&["name"]))).unwrap_err();
    assert_eq!(error.code, ErrorCode::Unknown);
    assert_eq!(error.message, "errCode = 2, detailMessage = Column has no default value, column=Id");
}

#[test]
fn omitted_columns_get_default_time_or_null() {
    let decoded = decode("(1)", Some(&["id"]), true);
    assert_eq!(lines(&decoded), ["1|NULL|10|2024-05-01T12:34:56.123"]);
}

#[test]
fn columns_may_come_in_any_order() {
    let decoded = decode("('2024-01-01', 'x', 7, 1)", Some(&["at", "NAME", "score", "id"]), true);
    assert_eq!(lines(&decoded), ["1|x|7|2024-01-01T00:00:00"]);
}

#[test]
fn a_default_that_is_no_value_of_its_type_is_refused_when_it_is_needed() {
    let refused = |default: DefaultValue| {
        let n = column(0, "n", DataType::Int).with_default(default);
        let table = table(vec![n, column(1, "m", DataType::Int)]);
        assert!(Target::new(&table, None).is_ok());
        Target::new(&table, Some(&names(&["m"]))).unwrap_err().detail_text().to_owned()
    };
    let literal = refused(DefaultValue::Literal("x".into()));
    assert_eq!(literal, "default of column 'n': 'x' is not a value of type int");
    assert!(refused(DefaultValue::CurrentDate).contains("CURRENT_DATE is not a value of type int"));
}

#[test]
fn a_string_beyond_its_limit_is_rejected_even_if_not_strict() {
    let table = table(vec![column(0, "s", DataType::String)]);
    let target = Target::new(&table, None).unwrap();
    let sql = format!("('{}')", "x".repeat(1024 * 1024 + 1));
    let options = InsertOptions { strict: false, ..InsertOptions::default() };
    let mut builder = crate::BlockBuilder::new(&table.schema);
    let ValuesOutcome::Rows(decoded) =
        decode_values(sql.as_bytes(), &target, &options, &mut builder).unwrap()
    else {
        panic!("general")
    };
    let reason = format!(
        "column_name[s], the length of input string is too long than vec schema. first 32 bytes of input str: \
         [{}] schema length: 2147483643; limit length: 1048576; actual length: 1048577; ",
        "x".repeat(32)
    );
    assert_eq!(decoded.first_reason(), Some(reason.as_str()));
}

#[test]
fn a_largeint_of_39_digits_is_rejected_by_name_however_it_comes_and_is_never_null() {
    let table = table(vec![column(0, "big", DataType::LargeInt)]);
    let max = "170141183460469231731687303715884105727";
    let kept = "9".repeat(38);
    let reason = format!(
        "column_name[big], a largeint of this table keeps 38 digits, value={max}, min=-{kept}, max={kept}; \
         use a column of STRING for longer numbers"
    );
    for strict in [false, true] {
        let options = InsertOptions { strict, ..InsertOptions::default() };
        let target = || Target::new(&table, None).unwrap();
        let mut builder = crate::BlockBuilder::new(&table.schema);
        for values in [format!("({max}), (-{kept})"), format!("('{max}'), ('-{kept}')")] {
            let outcome = decode_values(values.as_bytes(), &target(), &options, &mut builder).unwrap();
            let ValuesOutcome::Rows(decoded) = outcome else { panic!("general") };
            assert_eq!(crate::testing::lines(&table, &decoded), [format!("-{kept}")], "{values}");
            assert_eq!(decoded.first_reason(), Some(reason.as_str()), "{values}");
        }
        let rules = crate::LoadRules { strict, ..Default::default() };
        let mut decoder = crate::CsvDecoder::new(target(), crate::CsvFormat::default(), rules).unwrap();
        decoder.push(format!("{max}\n{kept}\n").as_bytes()).unwrap();
        decoder.finish().unwrap();
        assert_eq!(decoder.rejects()[0].to_string(), format!("Reason: {reason}. src line [{max}]; "));
        assert_eq!(decoder.counts().loaded, 1);
        let texts: arrow::array::ArrayRef = Arc::new(arrow::array::StringArray::from(vec![max, &kept]));
        let batch = arrow::array::RecordBatch::try_from_iter([("a", texts)]).unwrap();
        let decoded = crate::decode_batch(&batch, &target(), &options, &mut builder).unwrap();
        assert_eq!(decoded.first_reason(), Some(reason.as_str()));
        assert_eq!(decoded.counts.loaded, 1);
    }
}

#[test]
fn fields_that_the_table_does_not_know_can_be_dropped() {
    let target = Target::with_ignored_fields(&people(), &names(&["junk", "id"])).unwrap();
    assert_eq!(target.field_count(), 2);
    assert!(Target::with_ignored_fields(&people(), &names(&["junk"])).is_err());
}

#[test]
fn a_strict_insert_rejects_what_does_not_fit_with_doriss_reasons() {
    let cases = [
        ("(NULL, 'a', 1, NULL)", "column_name[Id], null value for not null column, type=INT"),
        ("('x', 'a', 1, NULL)", "column(Id) value is incorrect while strict mode is true, src value is x"),
        (
            "(3000000000, 'a', 1, NULL)",
            "column(Id) value is incorrect while strict mode is true, src value is 3000000000",
        ),
        (
            "(1, 'a', 1, '2024-02-30')",
            "column(at) value is incorrect while strict mode is true, src value is 2024-02-30",
        ),
        (
            "(1, 'much too long', 1, NULL)",
            "column_name[name], the length of input is too long than schema. first 32 bytes of input str: \
             [much too long] schema length: 8; actual length: 13; ",
        ),
        (
            "(1, 'ééééééééééééééééééééééé', 1, NULL)",
            "column_name[name], the length of input is too long than schema. first 32 bytes of input str: \
             [éééééééééééééééé] schema length: 8; actual length: 46; ",
        ),
    ];
    for (values, reason) in cases {
        let decoded = decode(values, None, true);
        assert_eq!(decoded.first_reason(), Some(reason), "{values}");
        assert_eq!(decoded.rejects[0].source_line, "");
        assert!(decoded.blocks.is_empty());
        assert!(InsertOptions::default().refuses(decoded.counts));
    }
}

#[test]
fn a_lenient_insert_cuts_text_and_makes_null_of_bad_values_where_it_may() {
    let decoded = decode("(1, 'ééééé', 2, 'bad'), ('x', 'a', 1, NULL), (2, 'b', 'y', NULL)", None, false);
    assert_eq!(lines(&decoded), ["1|éééé|2|NULL"]);
    assert_eq!(decoded.counts, crate::Counts { total: 3, loaded: 1, filtered: 2, unselected: 0 });
    assert_eq!(decoded.first_reason(), Some("column_name[Id], null value for not null column, type=INT"));
    let lenient = InsertOptions { strict: false, max_filter_ratio: 0.5, clock: LoadClock::default() };
    assert!(lenient.refuses(decoded.counts));
}

#[test]
fn a_decimal_out_of_range_names_the_range() {
    let table = table(vec![column(0, "d", DataType::Decimal { precision: 4, scale: 1 })]);
    let target = Target::new(&table, None).unwrap();
    let mut builder = crate::BlockBuilder::new(&table.schema);
    let outcome = decode_values(b"(12345.6)", &target, &InsertOptions::default(), &mut builder).unwrap();
    let ValuesOutcome::Rows(decoded) = outcome else { panic!("general") };
    let reason = "column_name[d], decimal value is not valid for definition, value=12345.6, precision=4, \
                  scale=1, min=-999.9, max=999.9; ";
    assert_eq!(decoded.first_reason(), Some(reason));
}
