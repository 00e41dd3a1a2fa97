use super::*;
use arrow::array::{Decimal128Array, Float64Array, Int8Array};
use tributary_types::{DataType, SchemaVersion};

const LIMITS: Limits = Limits { bytes: 1 << 20, batch_bytes: 1 << 20 };

/// Folds in one batch and in batches of one row each.
fn folded(column: ColumnDef, batches: &[(ArrayRef, &[u32])], let_go: bool) -> ArrayRef {
    let whole = folded_within(column.clone(), batches, let_go, LIMITS);
    let small = folded_within(column, batches, let_go, Limits { batch_bytes: 1, ..LIMITS });
    assert_eq!((whole.len(), small.len()), (1, 3));
    let whole = whole.into_iter().next().unwrap();
    let small: Vec<&dyn Array> = small.iter().map(AsRef::as_ref).collect();
    assert_eq!(&arrow::compute::concat(&small).unwrap(), &whole);
    whole
}

fn folded_within(
    column: ColumnDef,
    batches: &[(ArrayRef, &[u32])],
    let_go: bool,
    limits: Limits,
) -> Vec<ArrayRef> {
    let key = ColumnDef::new(1, "k", DataType::TinyInt).key();
    let schema = Arc::new(TableSchema::new(SchemaVersion(1), vec![key, column]));
    let mut folder = Folder::new(&schema, 3, limits);
    for (array, slots) in batches {
        let keys: ArrayRef = Arc::new(slots.iter().map(|slot| Some(*slot as i8)).collect::<Int8Array>());
        let batch = RecordBatch::try_new(schema.arrow(), vec![keys, Arc::clone(array)]).unwrap();
        let rows: Vec<u32> = (0..slots.len() as u32).collect();
        folder.add(&batch, &rows, slots, &[]).unwrap();
        if let_go {
            folder.let_go().unwrap();
        }
    }
    let batches = folder.finish().unwrap().expect("not too large");
    let keys = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int8Type>().values().to_vec());
    assert_eq!(keys.collect::<Vec<_>>(), [0, 1, 2]);
    batches.iter().map(|batch| Arc::clone(batch.column(1))).collect()
}

#[test]
fn rows_that_are_too_large_together_are_not_copied_and_one_row_always_is() {
    let key = ColumnDef::new(1, "k", DataType::TinyInt).key();
    let text = ColumnDef::new(2, "v", DataType::String).aggregated(Aggregation::Replace);
    let schema = Arc::new(TableSchema::new(SchemaVersion(1), vec![key, text]));
    let long = "x".repeat(1000);
    let batch = |rows: usize| {
        let keys: ArrayRef = Arc::new((0..rows).map(|row| Some(row as i8)).collect::<Int8Array>());
        RecordBatch::try_new(schema.arrow(), vec![keys, texts(&vec![Some(long.as_str()); rows])]).unwrap()
    };
    let limits = Limits { bytes: 2500, batch_bytes: 1500 };
    for (slots, batches) in [(1, Some(1)), (2, Some(2)), (3, None)] {
        let mut folder = Folder::new(&schema, slots, Limits { bytes: limits.bytes, ..limits });
        let rows: Vec<u32> = (0..slots as u32).collect();
        folder.add(&batch(slots), &rows, &rows, &[]).unwrap();
        assert_eq!(folder.is_overfull(), slots == 3, "{slots} slots: known as soon as the batch is let go");
        assert_eq!(folder.finish().unwrap().map(|batches| batches.len()), batches, "{slots} slots");
    }
    let mut folder = Folder::new(&schema, 1, Limits { bytes: 10, batch_bytes: 10 });
    folder.add(&batch(1), &[0], &[0], &[]).unwrap();
    assert_eq!(folder.finish().unwrap().map(|batches| batches.len()), Some(1));
}

fn texts(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(values.iter().copied().collect::<StringArray>())
}

#[test]
fn texts_are_compared_and_replaced_with_null_left_out_or_not() {
    let batches = [
        (texts(&[Some("m"), None, Some("x"), Some("b")]), &[0, 1, 2, 0][..]),
        (texts(&[Some("c"), None, Some("z"), None]), &[0, 1, 2, 2][..]),
    ];
    let results = [
        (Aggregation::Min, [Some("b"), None, Some("x")]),
        (Aggregation::Max, [Some("m"), None, Some("z")]),
        (Aggregation::Replace, [Some("c"), None, None]),
        (Aggregation::ReplaceIfNotNull, [Some("c"), None, Some("z")]),
    ];
    for (aggregation, expected) in results {
        let column = ColumnDef::new(2, "v", DataType::String).aggregated(aggregation);
        for let_go in [false, true] {
            let folded = folded(column.clone(), &batches, let_go);
            assert_eq!(&folded, &texts(&expected), "{aggregation:?}");
        }
    }
}

#[test]
fn numbers_are_summed_and_compared_with_null_left_out() {
    let numbers = |values: &[Option<f64>]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    let batches = [
        (numbers(&[Some(1.5), None, Some(-2.0)]), &[0, 1, 2][..]),
        (numbers(&[Some(2.5), None, Some(f64::NEG_INFINITY), Some(7.0)]), &[0, 1, 2, 0][..]),
    ];
    let results = [
        (Aggregation::Sum, [Some(11.0), None, Some(f64::NEG_INFINITY)]),
        (Aggregation::Min, [Some(1.5), None, Some(f64::NEG_INFINITY)]),
        (Aggregation::Max, [Some(7.0), None, Some(-2.0)]),
    ];
    for (aggregation, expected) in results {
        let column = ColumnDef::new(2, "v", DataType::Double).aggregated(aggregation);
        assert_eq!(&folded(column, &batches, true), &numbers(&expected), "{aggregation:?}");
    }
}

#[test]
fn a_sum_wraps_at_the_width_of_its_type() {
    let column = ColumnDef::new(2, "v", DataType::TinyInt).aggregated(Aggregation::Sum);
    let bytes: ArrayRef = Arc::new(Int8Array::from(vec![127, 1, 5]));
    let slots = [0, 1, 2, 0];
    let batches = [(bytes, &slots[..3]), (Arc::new(Int8Array::from(vec![2])) as ArrayRef, &slots[3..])];
    assert_eq!(folded(column, &batches, false).as_primitive::<Int8Type>().values(), &[-127, 1, 5]);
    for (digits, most) in [(9_u8, i128::from(i32::MAX)), (18, i128::from(i64::MAX)), (38, i128::MAX)] {
        let data_type = DataType::Decimal { precision: digits, scale: 1 };
        let decimals = |values: Vec<i128>| -> ArrayRef {
            Arc::new(Decimal128Array::from(values).with_data_type(data_type.to_arrow()))
        };
        let column = ColumnDef::new(2, "v", data_type).aggregated(Aggregation::Sum);
        let batches = [(decimals(vec![most, 1, 5]), &slots[..3]), (decimals(vec![1]), &slots[3..])];
        let sums = folded(column, &batches, false);
        assert_eq!(sums.as_primitive::<Decimal128Type>().value(0), -most - 1, "{digits} digits");
    }
}

#[test]
fn sets_and_estimates_are_merged_whether_rows_are_let_go_or_not() {
    use tributary_types::state::{Bitmap, Hll};
    let bitmap = |values: &[u64]| values.iter().copied().collect::<Bitmap>().bytes();
    let hll = |values: &[&str]| {
        let mut all = Hll::default();
        values.iter().for_each(|value| all.add(value.as_bytes()));
        all.bytes()
    };
    let column = |values: Vec<Vec<u8>>| -> ArrayRef { Arc::new(BinaryArray::from_iter_values(values)) };
    for let_go in [false, true] {
        let sets = [
            (column(vec![bitmap(&[1]), bitmap(&[2, 9]), bitmap(&[])]), &[0, 1, 2][..]),
            (column(vec![bitmap(&[1, 7]), bitmap(&[1 << 40])]), &[0, 0][..]),
        ];
        let definition = ColumnDef::new(2, "v", DataType::Bitmap).aggregated(Aggregation::BitmapUnion);
        let merged = folded(definition, &sets, let_go);
        assert_eq!(&merged, &column(vec![bitmap(&[1, 7, 1 << 40]), bitmap(&[2, 9]), bitmap(&[])]));
        let estimates = [
            (column(vec![hll(&["a"]), hll(&["b"]), hll(&[])]), &[0, 1, 2][..]),
            (column(vec![hll(&["a", "c"]), hll(&["d"])]), &[0, 0][..]),
        ];
        let definition = ColumnDef::new(2, "v", DataType::Hll).aggregated(Aggregation::HllUnion);
        let merged = folded(definition, &estimates, let_go);
        assert_eq!(&merged, &column(vec![hll(&["a", "c", "d"]), hll(&["b"]), hll(&[])]));
    }
}
