//! Aggregates that are a function over what one of few aggregates collects, such as a list of values or their counts.

use super::super::ast;
use super::{forms, rename, set_args};
use sqlparser::ast::{BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArguments};
use tributary_types::{ErrorCode, SqlError};

/// The buckets of a histogram by default.
const BUCKETS: i64 = 128;

/// The call in these words; `None` for other names and numbers of arguments.
pub(super) fn collected(
    name: &str,
    mut args: Vec<Expr>,
    function: &Function,
) -> Result<Option<Expr>, SqlError> {
    let call = Call { function };
    let number = |value: Expr| ast::call("__numeric", vec![value]);
    let double = |value: Expr| ast::call("__double", vec![value]);
    let rewritten = match (name, args.len()) {
        ("sum0", 1) => {
            ast::call("__coalesce", vec![call.of("sum", vec![number(args.remove(0))]), ast::number(0)])
        }
        ("sem", 1) => {
            let value = number(args.remove(0));
            let count = call.of("count", vec![value.clone()]);
            let root = ast::call("sqrt", vec![count]);
            ast::binary(call.of("stddev_samp", vec![value]), BinaryOperator::Divide, root)
        }
        ("avg_weighted", 2) => {
            let (weight, value) = (double(args.remove(1)), double(args.remove(0)));
            // A value that is NULL has no weight.
            let is_value = Expr::IsNotNull(Box::new(value.clone()));
            let weights = ast::call("__case", vec![is_value, weight.clone()]);
            let products = ast::binary(value, BinaryOperator::Multiply, weight);
            let (sum, all) = (call.of("sum", vec![products]), call.of("sum", vec![weights]));
            ast::binary(sum, BinaryOperator::Divide, all)
        }
        ("bool_xor", 1) => {
            let met = ast::call("__integer", vec![ast::truth(args.remove(0))]);
            ast::binary(call.of("sum", vec![met]), BinaryOperator::Eq, ast::number(1))
        }
        ("percentile_array" | "percentile_approx_array", 2 | 3) => {
            let shares = args.remove(1);
            ast::call("__percentiles", vec![call.of("array_agg", vec![double(args.remove(0))]), shares])
        }
        ("percentile_approx_weighted", 3 | 4) => {
            let (weight, value) = (double(args.remove(1)), double(args.remove(0)));
            let args = [value, weight].into_iter().chain(args).collect();
            call.of("approx_percentile_cont_with_weight", args)
        }
        ("collect_list" | "collect_set", 1 | 2) => {
            let limit = args.get(1).cloned();
            let value = args.remove(0);
            let list =
                call.distinct(name == "collect_set").where_known(&[&value]).of("array_agg", vec![value]);
            ast::call("__collected", std::iter::once(list).chain(limit).collect())
        }
        ("map_agg", 2) => {
            let (value, key) = (args.remove(1), args.remove(0));
            let pair = ast::call("named_struct", vec![ast::text("key"), key, ast::text("value"), value]);
            ast::call("__map_of_all", vec![call.of("array_agg", vec![pair])])
        }
        ("json_arrayagg", 1) => {
            let value = ast::call("to_json", forms::with_documents(args));
            ast::call("__json_array_of", vec![call.of("array_agg", vec![value])])
        }
        ("json_objectagg", 2) => {
            let value = ast::call("to_json", forms::with_documents(vec![args.remove(1)]));
            let key = ast::call("__text", args);
            let pair = ast::call("named_struct", vec![ast::text("key"), key, ast::text("value"), value]);
            ast::call("__json_object_of", vec![call.of("array_agg", vec![pair])])
        }
        ("group_array_union" | "group_array_intersect", 1) => {
            let to = if name == "group_array_union" { "__lists_union" } else { "__lists_intersect" };
            ast::call(to, vec![call.where_known(&[&args[0]]).of("array_agg", args)])
        }
        ("exponential_moving_average", 3) => {
            let (at, value) = (ast::call("__moment", vec![args.remove(2)]), double(args.remove(1)));
            let pair = ast::call("named_struct", vec![ast::text("at"), at, ast::text("value"), value]);
            ast::call("__moving_average", vec![call.of("array_agg", vec![pair]), args.remove(0)])
        }
        ("bitmap_agg", 1) => call.of("bitmap_union", vec![ast::call("to_bitmap", args)]),
        ("corr_welford", 2) => call.of("corr", args.into_iter().map(double).collect()),
        _ => match counted(name, args, &call) {
            Some(rewritten) => rewritten,
            None => return Ok(None),
        },
    };
    refuse_over(name, function)?;
    Ok(Some(rewritten))
}

/// Calls over events and over the counts of values.
fn counted(name: &str, mut args: Vec<Expr>, call: &Call<'_>) -> Option<Expr> {
    Some(match (name, args.len()) {
        ("retention", 1..) => {
            let known = call.where_known(&args.iter().collect::<Vec<_>>());
            let met = args.into_iter().map(|condition| known.of("bool_or", vec![ast::truth(condition)]));
            ast::call("__retention", met.collect())
        }
        ("sequence_match" | "sequence_count", 3..) => {
            let pattern = args.remove(0);
            let conditions = ast::number(args.len() - 1);
            ast::call(&format!("__{name}"), vec![call.events(args), pattern, conditions])
        }
        ("window_funnel", 4..) => {
            let (window, mode) = (args.remove(0), args.remove(0));
            let conditions = ast::number(args.len() - 1);
            ast::call("__window_funnel", vec![call.events(args), window, mode, conditions])
        }
        ("topn" | "topn_array", 2 | 3) => {
            let count = args.remove(1);
            ast::call(&format!("__{name}"), vec![call.of("__counts", vec![args.remove(0)]), count])
        }
        ("topn_weighted", 3 | 4) => {
            let count = args.remove(2);
            args.truncate(2);
            ast::call("__topn_array", vec![call.of("__counts", args), count])
        }
        ("histogram", 1 | 2) => {
            let buckets = if args.len() == 2 { args.remove(1) } else { ast::number(BUCKETS) };
            ast::call("__histogram", vec![call.of("__counts", args), buckets])
        }
        ("linear_histogram", 2 | 3) => {
            let offset = if args.len() == 3 { args.remove(2) } else { ast::number(0) };
            let width = args.remove(1);
            let counts = call.of("__counts", vec![ast::call("__double", vec![args.remove(0)])]);
            ast::call("__linear_histogram", vec![counts, width, offset])
        }
        ("count_by_enum", 1..) => {
            let counts = args.into_iter().map(|value| call.of("__counts", vec![super::as_text(value)]));
            let all = std::iter::once(call.of("count", vec![ast::number(1)]));
            ast::call("__count_by_enum", all.chain(counts).collect())
        }
        _ => return None,
    })
}

/// Refuses DISTINCT and ORDER BY in the calls for which they would mean nothing.
fn refuse_over(name: &str, function: &Function) -> Result<(), SqlError> {
    let FunctionArguments::List(list) = &function.args else { return Ok(()) };
    let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    let takes_distinct = matches!(name, "sum0" | "collect_list" | "collect_set");
    if (is_distinct && !takes_distinct) || !list.clauses.is_empty() {
        return Err(SqlError::detail(
            ErrorCode::NotSupported,
            format!(
                "{name} takes neither DISTINCT nor ORDER BY; use a subquery with the rows that it should see"
            ),
        ));
    }
    Ok(())
}

/// The written call, in whose place others are made with its FILTER and OVER.
struct Call<'a> {
    function: &'a Function,
}

/// The same with a further condition.
struct Changed {
    function: Function,
}

impl Call<'_> {
    fn changed(&self) -> Changed {
        Changed { function: self.function.clone() }
    }

    fn of(&self, name: &str, args: Vec<Expr>) -> Expr {
        self.changed().of(name, args)
    }

    fn where_known(&self, values: &[&Expr]) -> Changed {
        self.changed().where_known(values)
    }

    fn distinct(&self, is_distinct: bool) -> Changed {
        let mut changed = self.changed();
        if let FunctionArguments::List(list) = &mut changed.function.args
            && is_distinct
        {
            list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
        }
        changed
    }

    /// The list of the events that a time and conditions make.
    fn events(&self, args: Vec<Expr>) -> Expr {
        let event = ast::call("__event", args);
        let is_event = ast::call("__is_event", vec![event.clone()]);
        self.changed().filtered(is_event).of("array_agg", vec![event])
    }
}

impl Changed {
    fn filtered(mut self, condition: Expr) -> Self {
        let condition = match self.function.filter.take() {
            Some(given) => ast::binary(*given, BinaryOperator::And, condition),
            None => condition,
        };
        self.function.filter = Some(Box::new(condition));
        self
    }

    /// Leaves out rows in which one of the values is NULL.
    fn where_known(self, values: &[&Expr]) -> Self {
        values
            .iter()
            .fold(self, |changed, value| changed.filtered(Expr::IsNotNull(Box::new((*value).clone()))))
    }

    fn of(&self, name: &str, args: Vec<Expr>) -> Expr {
        let mut function = self.function.clone();
        set_args(&mut function, args);
        rename(&mut function, name);
        Expr::Function(function)
    }
}
