use super::*;
use arrow::array::{Int64Array, StringArray};
use arrow::datatypes::Field;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, col, lit};
use datafusion::prelude::SessionContext;

/// Two columns of one name are told apart by their positions.
fn batch(rows: i64) -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("t", DataType::Utf8, true),
        Field::new("n", DataType::Int64, true),
        Field::new("m", DataType::Int64, true),
    ]);
    let number = |of: fn(i64) -> i64, null: i64| {
        (0..rows).map(|row| (row % null != 0).then(|| of(row))).collect::<Int64Array>()
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new((0..rows).map(|row| (row % 7 != 3).then(|| format!("text {row}"))).collect::<StringArray>()),
        Arc::new(number(|row| row, 11)),
        Arc::new(number(|row| row * 31 % 100, 13)),
    ];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn physical(filter: &Expr, schema: &SchemaRef) -> Arc<dyn PhysicalExpr> {
    let schema = DFSchema::try_from(Arc::clone(schema)).unwrap();
    SessionContext::new().create_physical_expr(filter.clone(), &schema).unwrap()
}

fn passing(filter: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Vec<bool> {
    let passes = filter.evaluate(batch).unwrap().into_array(batch.num_rows()).unwrap();
    as_boolean_array(&passes).unwrap().iter().map(|passes| passes == Some(true)).collect()
}

#[test]
fn the_same_rows_pass_as_in_datafusion() {
    let conditions = [
        col("t").like(lit("%5%")),
        col("n").gt_eq(lit(50_i64)),
        col("t").not_eq(lit("text 55")),
        col("m").lt(lit(90_i64)),
        col("m").lt(lit(4_i64)),
        col("n").lt(col("m")),
        col("t").is_null(),
        col("n").in_list(vec![lit(1_i64), lit(155_i64), lit(500_i64)], true),
        col("n").is_not_null().or(col("m").is_null()),
        col("n").gt(lit(5000_i64)),
    ];
    for rows in [0, 1, 100, 1000] {
        let batch = batch(rows);
        for one in &conditions {
            for two in &conditions {
                for three in &conditions {
                    let filter = one.clone().and(two.clone()).and(three.clone());
                    let plain = physical(&filter, batch.schema_ref());
                    let Some(all) = AllOf::of(&plain, batch.schema_ref()).unwrap() else { continue };
                    assert_eq!(passing(&all, &batch), passing(&plain, &batch), "{filter} of {rows} rows");
                }
            }
        }
    }
}

#[test]
fn comparisons_of_numbers_come_first_and_others_see_the_rows_that_are_left() {
    let batch = batch(1000);
    let schema = batch.schema_ref();
    // A division by zero in each row but those left.
    let ratio = (lit(10_i64) / (col("m") - col("m") + col("n") - lit(7_i64))).gt(lit(-100_i64));
    let filter = ratio.and(col("n").gt(lit(990_i64)));
    let all = AllOf::of(&physical(&filter, schema), schema).unwrap().unwrap();
    assert_eq!(passing(&all, &batch).into_iter().filter(|passes| *passes).count(), 9);
    assert!(!is_of_numbers(&physical(&col("t").eq(lit("a")), schema), schema));
    assert!(is_of_numbers(&physical(&col("n").eq(lit(1_i64)).or(col("m").is_null()), schema), schema));
}

#[test]
fn a_single_condition_and_one_with_effects_stay() {
    let batch = batch(10);
    let schema = batch.schema_ref();
    let single = physical(&col("n").gt(lit(1_i64)), schema);
    assert!(AllOf::of(&single, schema).unwrap().is_none());
    let random = datafusion::functions::math::expr_fn::random().lt(lit(0.5));
    let random = physical(&col("n").gt(lit(1_i64)).and(random), schema);
    assert!(AllOf::of(&random, schema).unwrap().is_none());
}
