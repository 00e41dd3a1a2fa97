//! Rows that are elements of arrays: LATERAL VIEW, and table functions in FROM.
//!
//! The rewrite of a query turns each such call into one whose name says what it is ([`call_of`]) and whose arguments are arrays,
//! and joins it to the table whose columns they name. Here both are planned together: the table with the arrays as further columns,
//! and a row for each element.

use crate::functions::keeping;
use crate::types::metadata;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{
    Column, DFSchema, ExprSchema, NullHandling, Result, ScalarValue, TableReference, UnnestOptions, plan_err,
};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};
use sqlparser::ast::{FunctionArg, FunctionArgExpr, TableAlias, TableFactor, TableWithJoins};
use std::sync::Arc;
use tributary_types::{DataType as Declared, NestedType};

/// The beginnings of the names of such calls: without and with a row where there is no element.
const ROWS: &str = "__rows ";
const ROWS_OUTER: &str = "__rows_outer ";

/// A table function whose rows are elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    /// In lower case, without `_outer`.
    pub function: String,
    /// Whether a row without elements stays, with NULLs.
    pub is_outer: bool,
}

/// The name of the call that stands for a table function.
#[must_use]
pub fn call_of(rows: &Rows) -> String {
    format!("{}{}", if rows.is_outer { ROWS_OUTER } else { ROWS }, rows.function)
}

/// The table function that a call stands for.
fn rows_of(factor: &TableFactor) -> Option<Rows> {
    let TableFactor::Table { name, args: Some(_), .. } = factor else { return None };
    let name = &name.0.first()?.as_ident()?.value;
    match (name.strip_prefix(ROWS), name.strip_prefix(ROWS_OUTER)) {
        (Some(function), _) => Some(Rows { function: function.to_owned(), is_outer: false }),
        (None, Some(function)) => Some(Rows { function: function.to_owned(), is_outer: true }),
        (None, None) => None,
    }
}

/// Plans lateral views; see the module.
#[derive(Debug)]
pub struct LateralViews;

impl RelationPlanner for LateralViews {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        if let Some(rows) = rows_of(&relation) {
            let nothing = LogicalPlanBuilder::empty(true).build()?;
            return planned(applied(nothing, &rows, relation, context)?);
        }
        match relation {
            TableFactor::NestedJoin { mut table_with_joins, alias: None } if is_apply(&table_with_joins) => {
                let TableWithJoins { relation, joins } = table_with_joins.as_mut();
                let Some(join) = joins.pop() else { return plan_err!("a lateral view joins a function") };
                let Some(mut rows) = rows_of(&join.relation) else {
                    return plan_err!("a lateral view joins a function");
                };
                rows.is_outer |= matches!(join.join_operator, sqlparser::ast::JoinOperator::OuterApply);
                let left = context.plan(relation.clone())?;
                planned(applied(left, &rows, join.relation, context)?)
            }
            other => Ok(RelationPlanning::Original(Box::new(other))),
        }
    }
}

fn planned(plan: LogicalPlan) -> Result<RelationPlanning> {
    Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
}

fn is_apply(table: &TableWithJoins) -> bool {
    matches!(table.joins.as_slice(), [join] if rows_of(&join.relation).is_some())
}

/// An array of a call: its value, and the declared type of its elements, if that is known.
struct Array {
    value: Expr,
    declared: Option<Declared>,
}

/// The rows of `left`, each as often as the call has elements for it.
fn applied(
    left: LogicalPlan,
    rows: &Rows,
    call: TableFactor,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let TableFactor::Table { args: Some(args), alias: Some(alias), .. } = call else {
        return plan_err!("{} takes arrays", rows.function);
    };
    let schema = Arc::clone(left.schema());
    let mut arrays = Vec::with_capacity(args.args.len());
    for (index, arg) in args.args.into_iter().enumerate() {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)) = arg else {
            return plan_err!("{} takes arrays", rows.function);
        };
        let value = context.sql_to_expr(arg, &schema)?;
        let (_, field) = value.to_field(&schema)?;
        arrays.extend(arrays_of(value, &field, rows, index + 1)?);
    }
    let names = names(rows, arrays.len(), &alias)?;
    let before: Vec<Expr> = schema.columns().into_iter().map(Expr::Column).collect();
    let places: Vec<String> = (0..arrays.len()).map(|at| format!("__element {at}")).collect();
    let values = arrays.iter().zip(&places).map(|(array, place)| array.value.clone().alias(place));
    let with_arrays = LogicalPlanBuilder::from(left).project(before.iter().cloned().chain(values))?;
    let nulls = if rows.is_outer { NullHandling::PreserveAndExpandEmpty } else { NullHandling::Drop };
    let elements = places.iter().map(Column::from_name).collect();
    let options = UnnestOptions::new().with_null_handling(nulls);
    let exploded = with_arrays.unnest_columns_with_options(elements, options)?;
    let shown = shown(&arrays, &places, &names, &alias, exploded.schema())?;
    exploded.project(before.into_iter().chain(shown))?.build()
}

/// The columns of the call under their names: one for each array, or one struct of all.
fn shown(
    arrays: &[Array],
    places: &[String],
    names: &Names,
    alias: &TableAlias,
    exploded: &DFSchema,
) -> Result<Vec<Expr>> {
    let relation = || Some(TableReference::bare(alias.name.value.as_str()));
    if let Names::OfStruct { name, fields } = names {
        let parts = fields.iter().zip(places).flat_map(|(field, place)| {
            [lit(field.as_str()), Expr::Column(Column::from_name(place.as_str()))]
        });
        let value = datafusion::functions::core::named_struct().call(parts.collect());
        return Ok(vec![value.alias_qualified(relation(), name)]);
    }
    let Names::OfColumns(names) = names else { return Ok(Vec::new()) };
    let columns = arrays.iter().zip(places).zip(names).map(|((array, place), name)| {
        let column = Column::from_name(place.as_str());
        let data_type = exploded.field_from_column(&column)?.data_type().clone();
        let declared = keeping::fitting(array.declared, &data_type).map(metadata::declared);
        let metadata = declared.map(Into::into);
        Ok(Expr::Column(column).alias_qualified_with_metadata(relation(), name, metadata))
    });
    columns.collect()
}

/// The arrays of an argument: two of a map.
fn arrays_of(value: Expr, field: &FieldRef, rows: &Rows, place: usize) -> Result<Vec<Array>> {
    let known = match metadata::known_type(field) {
        Some(Declared::Nested(nested)) => Some(nested.kept()),
        _ => None,
    };
    let of_list = |value: Expr| {
        let declared = match known {
            Some(NestedType::Array(element)) => Some(*element),
            _ => None,
        };
        vec![Array { value, declared }]
    };
    Ok(match field.data_type() {
        DataType::List(_) => of_list(value),
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) | DataType::ListView(item) => {
            of_list(cast(value, DataType::List(Arc::clone(item))))
        }
        DataType::Null => {
            let none = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
            vec![Array { value: lit(ScalarValue::try_from(&none)?), declared: None }]
        }
        DataType::Map(..) if rows.function == "explode" => {
            let (key, of_key) = (functions_of_map("map_keys"), known.and_then(key_of));
            let (entry, of_value) = (functions_of_map("map_values"), known.and_then(value_of));
            vec![
                Array { value: key.call(vec![value.clone()]), declared: of_key },
                Array { value: entry.call(vec![value]), declared: of_value },
            ]
        }
        other => {
            return plan_err!(
                "{} takes arrays, and its argument {place} is {}",
                rows.function,
                crate::types::shown::type_text(&Field::new("", other.clone(), true))
            );
        }
    })
}

fn functions_of_map(name: &str) -> Arc<datafusion::logical_expr::ScalarUDF> {
    match name {
        "map_keys" => datafusion::functions_nested::map_keys::map_keys_udf(),
        _ => datafusion::functions_nested::map_values::map_values_udf(),
    }
}

fn key_of(nested: &NestedType) -> Option<Declared> {
    if let NestedType::Map(key, _) = nested { Some(*key) } else { None }
}

fn value_of(nested: &NestedType) -> Option<Declared> {
    if let NestedType::Map(_, value) = nested { Some(*value) } else { None }
}

/// The names of a call's columns.
enum Names {
    OfColumns(Vec<String>),
    /// One name for several columns: those of a struct.
    OfStruct {
        name: String,
        fields: Vec<String>,
    },
}

fn names(rows: &Rows, count: usize, alias: &TableAlias) -> Result<Names> {
    let given: Vec<String> = alias.columns.iter().map(|column| column.name.value.clone()).collect();
    let own = || -> Vec<String> {
        let fixed: &[&str] = match rows.function.as_str() {
            "explode" if count == 2 => &["key", "value"],
            "explode_map" | "explode_json_object" | "json_each" | "json_each_text" => &["key", "value"],
            "posexplode" if count == 2 => &["pos", "col"],
            "unnest" if count == 1 => &["unnest"],
            _ if count == 1 => &["col"],
            _ => &[],
        };
        match fixed {
            [] => (1..=count).map(|number| format!("col{number}")).collect(),
            fixed => fixed.iter().map(ToString::to_string).collect(),
        }
    };
    Ok(match given.len() {
        0 => Names::OfColumns(own()),
        given_count if given_count == count => Names::OfColumns(given),
        1 => Names::OfStruct { name: given.into_iter().next().unwrap_or_default(), fields: own() },
        other => {
            return plan_err!(
                "{} has {count} columns here, and {} names {other}: name each of them, or one for a struct of all",
                rows.function,
                alias.name.value
            );
        }
    })
}
