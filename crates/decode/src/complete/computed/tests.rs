use super::*;
use crate::formats::values::{ValuesOutcome, decode_values};
use crate::rows::loader::{InsertOptions, LoadRules};
use crate::rows::target::Wording;
use crate::testing::{column, table};
use arrow::array::{AsArray, Int32Array, Int64Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::Int32Type;
use arrow::util::display::array_value_to_string;
use std::cell::Cell;
use tributary_types::{ColumnDef, ColumnId, Generated, TableDef};

fn generated(column: ColumnDef, of: &[u32]) -> ColumnDef {
    let columns = of.iter().map(|id| ColumnId(*id)).collect();
    ColumnDef { generated: Some(Box::new(Generated { expr: "unused".into(), columns })), ..column }
}

/// `a`, `twice` computed from it, `text`, and `next` computed from `twice`.
fn doubled() -> Arc<TableDef> {
    table(vec![
        column(0, "a", tributary_types::DataType::Int),
        generated(column(1, "twice", tributary_types::DataType::TinyInt).not_null(), &[0]),
        column(2, "text", tributary_types::DataType::String),
        generated(column(3, "next", tributary_types::DataType::Varchar { bytes: 3 }), &[1]),
    ])
}

/// `a * 2`, which fails where `a` is -1, and `twice + 1`.
fn compute(place: usize, batch: &RecordBatch) -> Result<ArrayRef, SqlError> {
    if place == 3 {
        let twice = cast(batch.column(1), &DataType::Int64).expect("a wider type");
        let next: Int64Array = twice.as_primitive::<arrow::datatypes::Int64Type>().unary(|twice| twice + 1);
        return Ok(Arc::new(next));
    }
    let values = batch.column(0).as_primitive::<Int32Type>();
    if values.iter().flatten().any(|value| value == -1) {
        return Err(SqlError::detail(ErrorCode::Unknown, "no half numbers"));
    }
    Ok(Arc::new(values.iter().map(|value| value.map(|value| value * 2)).collect::<Int32Array>()))
}

fn rules(strict: bool) -> Strictness {
    LoadRules { strict, ..LoadRules::default() }.worded(Wording::File)
}

fn run(target: &Target, values: &str, strict: bool) -> (Decoded, Vec<String>) {
    let mut builder = BlockBuilder::new(target.schema());
    let decoded = decode_values(values.as_bytes(), target, &InsertOptions::default(), &mut builder);
    let Ok(ValuesOutcome::Rows(mut decoded)) = decoded else { panic!("{values}: {decoded:?}") };
    let computed = target.computed().expect("there are such columns");
    let complete =
        complete(&decoded.blocks, computed, rules(strict), 0, &compute).expect("they can be computed");
    decoded.become_complete(complete);
    let batches = blocks_to_batches(target.schema(), &decoded.blocks).expect("whole rows");
    let row = |batch: &RecordBatch, row: usize| {
        let cells = batch.columns().iter().map(|column| match column.is_null(row) {
            true => "NULL".to_owned(),
            false => array_value_to_string(column, row).expect("it has a text"),
        });
        cells.collect::<Vec<_>>().join("|")
    };
    let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|at| row(batch, at)));
    let rows = rows.collect();
    (decoded, rows)
}

fn target(columns: &[&str]) -> Target {
    let names: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    Target::new(&doubled(), Some(&names)).expect("good columns")
}

#[test]
fn each_value_is_computed_from_those_before_as_they_are_stored() {
    let (decoded, rows) = run(&target(&["text", "a"]), "('x',1),('y',60),(NULL,-30)", true);
    assert_eq!(rows, ["1|2|x|3", "60|120|y|121", "-30|-60|NULL|-59"]);
    assert_eq!((decoded.counts.total, decoded.counts.loaded, decoded.counts.filtered), (3, 3, 0));
}

#[test]
fn a_row_whose_value_is_none_of_its_column_is_rejected_with_what_it_gave() {
    let values = "(1,'a'),(64,'too large'),(NULL,'no value'),(-1,'not computed'),(5,'e'),(-51,'too long')";
    let (decoded, rows) = run(&target(&["a", "text"]), values, true);
    assert_eq!(rows, ["1|2|a|3", "5|10|e|11"]);
    assert_eq!((decoded.counts.total, decoded.counts.loaded, decoded.counts.filtered), (6, 2, 4));
    let rejects: Vec<(&str, &str)> =
        decoded.rejects.iter().map(|reject| (reject.reason.as_str(), reject.source_line.as_str())).collect();
    assert_eq!(
        rejects,
        [
            ("column(twice) value is incorrect while strict mode is true, src value is 128", "64 too large"),
            ("column(twice) values is null while columns is not nullable", "NULL no value"),
            ("column_name[twice], the value can't be computed: no half numbers", "-1 not computed"),
            (
                "column_name[next], the length of input is too long than schema. first 32 bytes of input str: [-101] schema \
                 length: 3; actual length: 4; ",
                "-51 too long"
            ),
        ]
    );
    // Without strictness what does not fit is NULL, where the column can be.
    let (decoded, rows) = run(&target(&["a", "text"]), values, false);
    assert_eq!(rows, ["1|2|a|3", "5|10|e|11", "-51|-102|too long|-10"]);
    assert_eq!(decoded.counts.filtered, 3);
}

#[test]
fn failing_rows_are_found_among_many_without_computing_each() {
    let values: Vec<String> =
        (0..5000).map(|row| format!("({},'r')", if row % 2500 == 1 { -1 } else { row % 60 })).collect();
    let (decoded, rows) = run(&target(&["a", "text"]), &values.join(","), true);
    assert_eq!((rows.len(), decoded.counts.filtered), (4998, 2));
    assert!(rows.iter().all(|row| !row.starts_with("-1|")));
    let calls = Cell::new(0);
    let counted = |place: usize, batch: &RecordBatch| {
        calls.set(calls.get() + 1);
        compute(place, batch)
    };
    let target = target(&["a", "text"]);
    let mut builder = BlockBuilder::new(target.schema());
    let values = values.join(",");
    let Ok(ValuesOutcome::Rows(decoded)) =
        decode_values(values.as_bytes(), &target, &InsertOptions::default(), &mut builder)
    else {
        panic!("literals");
    };
    let computed = target.computed().expect("there are such columns");
    complete(&decoded.blocks, computed, rules(true), 0, &counted).expect("computed");
    assert!(calls.get() < 80, "{} calls", calls.get());
}

#[test]
fn fields_of_computed_columns_are_left_out_and_named() {
    let target = Target::new(&doubled(), None).expect("all columns");
    assert_eq!(
        (target.field_count(), target.computed_field().map(|column| column.name.as_str())),
        (4, Some("twice"))
    );
    let (_, rows) = run(&target, "(1,99,'a',99)", true);
    assert_eq!(rows, ["1|2|a|3"]);
    let read = Target::of_read_rows(&doubled(), &["a".to_owned(), "twice".to_owned()]).expect("good columns");
    assert!(read.computed().is_none() && read.computed_field().is_none());
    let missing = Target::of_read_rows(&doubled(), &["a".to_owned()]).map(|target| target.filled().len());
    assert_eq!(missing.expect("they have places"), 3);
    let twice = ["twice".to_owned(), "Twice".to_owned()];
    assert_eq!(Target::new(&doubled(), Some(&twice)).unwrap_err().code, ErrorCode::DuplicateColumn);
}

#[test]
fn values_of_no_type_of_the_column_fail_the_load() {
    let target = target(&["a", "text"]);
    let mut builder = BlockBuilder::new(target.schema());
    let Ok(ValuesOutcome::Rows(decoded)) =
        decode_values(b"(1,'a')", &target, &InsertOptions::default(), &mut builder)
    else {
        panic!("literals");
    };
    let interval = |_: usize, batch: &RecordBatch| {
        Ok(new_null_array(&DataType::Interval(arrow::datatypes::IntervalUnit::YearMonth), batch.num_rows()))
    };
    let computed = target.computed().expect("there are such columns");
    // Nothing but NULL: each row is rejected.
    let all = complete(&decoded.blocks, computed, rules(true), 0, &interval);
    assert!(all.is_err() || all.is_ok_and(|all| all.counts.filtered == 1));
    let texts = |_: usize, batch: &RecordBatch| {
        Ok(Arc::new(StringArray::from(vec!["seven"; batch.num_rows()])) as ArrayRef)
    };
    let all = complete(&decoded.blocks, computed, rules(true), 0, &texts).expect("texts are fields");
    assert_eq!(all.counts.filtered, 1);
    assert!(all.rejects[0].reason.contains("src value is seven"), "{:?}", all.rejects);
}
