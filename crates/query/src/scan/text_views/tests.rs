use super::*;
use arrow::datatypes::{Field, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Literal, in_list};
use datafusion::physical_expr::expressions::{binary, like, lit};
use datafusion::physical_plan::Partitioning;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::union::UnionExec;

/// A table of three texts and a number.
fn table() -> SchemaRef {
    let text = |name| Field::new(name, DataType::Utf8, true);
    Arc::new(Schema::new(vec![text("a"), text("b"), text("c"), Field::new("n", DataType::Int32, true)]))
}

/// A scan of the columns b, a and n.
fn scan(predicate: Option<Arc<dyn PhysicalExpr>>) -> Arc<dyn ExecutionPlan> {
    let source = ParquetSource::new(table());
    let source = predicate.map_or_else(|| source.clone(), |predicate| source.with_predicate(predicate));
    let config = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
        .with_file(PartitionedFile::new("file", 1))
        .with_projection_indices(Some(vec![1, 0, 3]))
        .unwrap()
        .build();
    DataSourceExec::from_data_source(config)
}

fn column(plan: &Arc<dyn ExecutionPlan>, name: &str) -> Arc<dyn PhysicalExpr> {
    datafusion::physical_expr::expressions::col(name, &plan.schema()).unwrap()
}

fn equal(plan: &Arc<dyn ExecutionPlan>, name: &str) -> Arc<dyn PhysicalExpr> {
    binary(column(plan, name), Operator::Eq, lit("x"), &plan.schema()).unwrap()
}

/// The types of the filter's input after the rule, if it has changed something.
fn types(
    input: Arc<dyn ExecutionPlan>,
    predicate: Arc<dyn PhysicalExpr>,
    shown: &[usize],
) -> Option<Vec<DataType>> {
    let builder = FilterExecBuilder::new(predicate, input).apply_projection(Some(shown.to_vec())).unwrap();
    let filter: Arc<dyn ExecutionPlan> = Arc::new(builder.build().unwrap());
    let changed = below_filter(Arc::clone(&filter)).unwrap();
    assert_eq!(changed.data.schema(), filter.schema());
    let input = changed.transformed.then(|| Arc::clone(changed.data.children()[0]))?;
    Some(input.schema().fields().iter().map(|field| field.data_type().clone()).collect())
}

#[test]
fn a_text_that_only_the_filter_asks_is_read_as_views() {
    let scan = scan(None);
    let changed = Some(vec![DataType::Utf8View, DataType::Utf8, DataType::Int32]);
    assert_eq!(types(Arc::clone(&scan), equal(&scan, "b"), &[1, 2]), changed);
    let pattern = like(false, false, column(&scan, "b"), lit("%x"), &scan.schema()).unwrap();
    assert_eq!(types(Arc::clone(&scan), pattern, &[1]), changed);
    let listed = in_list(column(&scan, "b"), vec![lit("x"), lit("y")], &true, &scan.schema()).unwrap();
    assert_eq!(types(Arc::clone(&scan), listed, &[]), changed);
}

#[test]
fn a_text_that_is_shown_or_calculated_with_stays() {
    let scan = scan(None);
    assert_eq!(types(Arc::clone(&scan), equal(&scan, "b"), &[0]), None);
    let both = binary(column(&scan, "a"), Operator::Lt, column(&scan, "b"), &scan.schema()).unwrap();
    assert_eq!(types(Arc::clone(&scan), Arc::clone(&both), &[2]), None);
    let also = binary(equal(&scan, "b"), Operator::And, both, &scan.schema()).unwrap();
    assert_eq!(types(Arc::clone(&scan), also, &[2]), None);
    let number = binary(column(&scan, "n"), Operator::Eq, lit(1), &scan.schema()).unwrap();
    assert_eq!(types(Arc::clone(&scan), number, &[1]), None);
}

#[test]
fn what_the_scan_skips_by_is_asked_of_views_too() {
    let below = |name: &str, at| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new(name, at)) };
    let skip = binary(below("b", 1), Operator::Eq, lit("x"), &table()).unwrap();
    let plan = scan(Some(skip));
    let filter = FilterExecBuilder::new(equal(&plan, "b"), Arc::clone(&plan)).apply_projection(Some(vec![1]));
    let changed = below_filter(Arc::new(filter.unwrap().build().unwrap())).unwrap().data;
    let source = changed.children()[0].downcast_ref::<DataSourceExec>().unwrap();
    let (_, source) = source.downcast_to_file_source::<ParquetSource>().unwrap();
    let predicate = source.filter().unwrap();
    let compare = predicate.downcast_ref::<BinaryExpr>().unwrap();
    let constant = compare.right().downcast_ref::<Literal>().unwrap().value();
    assert_eq!(*constant, ScalarValue::Utf8View(Some("x".to_owned())));
    // The scan skips by something that does not take views.
    let skip = binary(below("b", 1), Operator::Lt, below("a", 0), &table()).unwrap();
    let plan = scan(Some(skip));
    assert_eq!(types(Arc::clone(&plan), equal(&plan, "b"), &[1]), None);
}

#[test]
fn rows_in_memory_are_converted_and_names_of_columns_are_no_hindrance() {
    let files = scan(None);
    let exprs =
        ["b", "a", "n"].map(|name| ProjectionExpr { expr: column(&files, name), alias: name.to_uppercase() });
    let renamed: Arc<dyn ExecutionPlan> = Arc::new(ProjectionExec::try_new(exprs, files).unwrap());
    let memory = MemorySourceConfig::try_new_exec(&[vec![]], renamed.schema(), None).unwrap();
    let both = UnionExec::try_new(vec![renamed, memory]).unwrap();
    let changed = Some(vec![DataType::Utf8View, DataType::Utf8, DataType::Int32]);
    assert_eq!(types(Arc::clone(&both), equal(&both, "B"), &[1]), changed);
}

#[test]
fn groups_are_of_views_and_come_out_as_texts() {
    let scan = scan(None);
    let groups = ["b", "a"].map(|name| (column(&scan, name), name.to_owned()));
    let group_by = PhysicalGroupBy::new_single(groups.to_vec());
    let step = |mode, groups: PhysicalGroupBy, input| {
        AggregateExec::try_new(mode, groups, vec![], vec![], input, scan.schema()).unwrap()
    };
    let first: Arc<dyn ExecutionPlan> =
        Arc::new(step(AggregateMode::Partial, group_by.clone(), Arc::clone(&scan)));
    let keys = group_by.as_final().input_exprs();
    let divided = RepartitionExec::try_new(first, Partitioning::Hash(keys.clone(), 2)).unwrap();
    let last: Arc<dyn ExecutionPlan> =
        Arc::new(step(AggregateMode::FinalPartitioned, group_by.as_final(), Arc::new(divided)));
    let changed = TextViews.optimize(Arc::clone(&last), &ConfigOptions::default()).unwrap();
    assert_eq!(changed.schema(), last.schema());
    assert!(changed.downcast_ref::<ProjectionExec>().is_some());
    let of_views = changed.children()[0].schema();
    assert!(of_views.fields().iter().all(|field| *field.data_type() == DataType::Utf8View));
    // Something above relies on how the rows are divided.
    let above = step(AggregateMode::FinalPartitioned, group_by.as_final(), Arc::clone(&last));
    let kept = TextViews.optimize(Arc::new(above), &ConfigOptions::default()).unwrap();
    assert_eq!(*kept.children()[0].schema().field(0).data_type(), DataType::Utf8);
}
