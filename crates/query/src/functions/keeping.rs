//! Results that are declared as their arguments are: `MAX(at)` of a DATETIME(3) is one, and so is `a[1]` of an
//! `ARRAY<DATETIME(3)>`.
//!
//! Arrow's types do not say how many digits a second has. Functions and aggregates of DataFusion forget it; those here are
//! DataFusion's with a field that remembers.

use crate::types::metadata::{self, known_type};
use crate::types::shown::table_type;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams, WindowFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Expr, GroupsAccumulator, Operator,
    ReturnFieldArgs, ReversedUDAF, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, SetMonotonicity, Signature,
    StatisticsArgs, Volatility, lit,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use tributary_types::{DataType as Declared, NestedType};

/// The declared type of a result, from the fields of the arguments; `None` if it is not known.
pub type Keeps = fn(&[FieldRef]) -> Option<Declared>;

/// The type, if values of that Arrow type can be declared so.
#[must_use]
pub fn fitting(declared: Option<Declared>, data_type: &DataType) -> Option<Declared> {
    declared.filter(|declared| is_alike(&declared.to_arrow(), data_type))
}

/// Whether two types are the same but for names and nullability of what is within.
fn is_alike(one: &DataType, other: &DataType) -> bool {
    match (one, other) {
        (DataType::List(one), DataType::List(other)) | (DataType::Map(one, _), DataType::Map(other, _)) => {
            is_alike(one.data_type(), other.data_type())
        }
        (DataType::Struct(one), DataType::Struct(other)) => {
            let mut fields = one.iter().zip(other);
            one.len() == other.len()
                && fields.all(|(one, other)| is_alike(one.data_type(), other.data_type()))
        }
        _ => one == other,
    }
}

/// The first argument's.
#[must_use]
pub fn first(fields: &[FieldRef]) -> Option<Declared> {
    known_type(fields.first()?)
}

/// That of an element of the first argument, which is an array, or of a value, if it is a map.
#[must_use]
pub fn element(fields: &[FieldRef]) -> Option<Declared> {
    match first(fields)? {
        Declared::Nested(nested) => match nested.kept() {
            NestedType::Array(element) => Some(*element),
            NestedType::Map(_, value) => Some(*value),
            NestedType::Struct(_) => None,
        },
        _ => None,
    }
}

/// The declared type of a field of a struct, if it says more than Arrow's.
fn member_type(of: &Field, name: &str) -> Option<Declared> {
    let Some(Declared::Nested(nested)) = known_type(of) else { return None };
    let NestedType::Struct(fields) = nested.kept() else { return None };
    let field = fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
    Some(field.data_type).filter(|declared| has_digits(*declared))
}

/// A field of a struct as a value of its declared type.
///
/// A plan begins with [`Member`] for it. DataFusion's scan of Parquet files looks for its own function, so that one takes the place
/// of ours below a call that declares the type.
#[must_use]
pub fn member(of: &Field, name: &str, args: Vec<Expr>) -> Expr {
    let value = datafusion::functions::core::get_field().call(args);
    match member_type(of, name) {
        Some(declared) => ScalarUDF::new_from_impl(Declare::new(declared)).call(vec![value]),
        None => value,
    }
}

/// A field of a struct at the beginning of a plan; see [`member`].
#[must_use]
pub fn field_of(value: Expr, name: &str) -> Expr {
    scalar(datafusion::functions::core::get_field()).call(vec![value, lit(name)])
}

/// DataFusion's function for fields of structs, with a result that is declared as the field is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Member {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Member {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let declared = match (args.arg_fields, args.scalar_arguments) {
            ([of, _], [_, Some(name)]) => name.try_as_str().flatten().and_then(|name| member_type(of, name)),
            _ => None,
        };
        Ok(remembering(self.inner.return_field_from_args(args)?, declared))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }
}

/// Whether values of the type have DATETIMEs in them.
fn has_digits(declared: Declared) -> bool {
    match declared {
        Declared::DateTime { .. } => true,
        Declared::Nested(nested) => nested.parts().any(has_digits),
        _ => false,
    }
}

/// Returns its argument, declared as a type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Declare {
    declared: Declared,
    signature: Signature,
}

impl Declare {
    fn new(declared: Declared) -> Self {
        Self { declared, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Declare {
    fn name(&self) -> &'static str {
        "__declared"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = Field::new(self.name(), args.arg_fields[0].data_type().clone(), true);
        Ok(remembering(Arc::new(field), Some(self.declared)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args.swap_remove(0))
    }
}

/// The array of the first argument's type.
#[must_use]
pub fn list_of_first(fields: &[FieldRef]) -> Option<Declared> {
    first(fields).map(Declared::array)
}

/// The array of the type that all arguments have.
#[must_use]
pub fn list_of_all(fields: &[FieldRef]) -> Option<Declared> {
    all(fields.iter()).map(Declared::array)
}

/// The map of the types that all keys and all values have, which come by turns.
#[must_use]
pub fn map_of_all(fields: &[FieldRef]) -> Option<Declared> {
    let side = |from: usize| all(fields.iter().skip(from).step_by(2));
    Some(Declared::map(side(0)?, side(1)?))
}

/// The array of the keys of the first argument, which is a map.
fn keys(fields: &[FieldRef]) -> Option<Declared> {
    match first(fields)? {
        Declared::Nested(nested) => match nested.kept() {
            NestedType::Map(key, _) => Some(Declared::array(*key)),
            _ => None,
        },
        _ => None,
    }
}

/// The array of the values of the first argument, which is a map.
fn values(fields: &[FieldRef]) -> Option<Declared> {
    element(fields).map(Declared::array)
}

/// The type that all fields have that are not NULL; of DATETIMEs the one with the most digits.
fn all<'a>(fields: impl Iterator<Item = &'a FieldRef>) -> Option<Declared> {
    let of = |field: &FieldRef| match field.data_type() {
        DataType::Timestamp(..) => known_type(field),
        plain => known_type(field).or_else(|| table_type(plain)),
    };
    let mut fields = fields.filter(|field| *field.data_type() != DataType::Null);
    let first = of(fields.next()?)?;
    fields.try_fold(first, |so_far, field| match (so_far, of(field)?) {
        (Declared::DateTime { scale }, Declared::DateTime { scale: other }) => {
            Some(Declared::DateTime { scale: scale.max(other) })
        }
        (so_far, next) => (so_far == next).then_some(so_far),
    })
}

/// The field with what is known of its values.
fn remembering(field: FieldRef, declared: Option<Declared>) -> FieldRef {
    match fitting(declared, field.data_type()) {
        Some(declared) => Arc::new(field.as_ref().clone().with_metadata(metadata::declared(declared))),
        None => field,
    }
}

/// The aggregate, with a result that is declared as its argument is, if it is one of those whose result is one of the values or
/// a list of them.
#[must_use]
pub fn aggregate(inner: Arc<AggregateUDF>) -> Arc<AggregateUDF> {
    let keeps: Keeps = match inner.name() {
        "min" | "max" | "first_value" | "last_value" | "any_value" => first,
        "array_agg" => list_of_first,
        _ => return inner,
    };
    Arc::new(AggregateUDF::new_from_impl(KeepingAggregate { inner, keeps: By(keeps) }))
}

/// The function, with a result that is declared as its argument is, if it is one of those whose result is a part of it.
#[must_use]
pub fn scalar(inner: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    let keeps: Keeps = match inner.name() {
        "array_max" | "array_min" => element,
        "array_distinct" | "array_except" | "array_sort" => first,
        "map_keys" => keys,
        "map_values" => values,
        "get_field" => return Arc::new(ScalarUDF::new_from_impl(Member { inner })),
        _ => return inner,
    };
    Arc::new(ScalarUDF::new_from_impl(KeepingScalar { inner, keeps: By(keeps) }))
}

/// A function that follows from the one that keeps it: all are equal.
#[derive(Clone, Copy, Debug)]
struct By(Keeps);

impl PartialEq for By {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for By {}
impl Hash for By {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KeepingScalar {
    inner: Arc<ScalarUDF>,
    keeps: By,
}

impl ScalarUDFImpl for KeepingScalar {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let declared = (self.keeps.0)(args.arg_fields);
        Ok(remembering(self.inner.return_field_from_args(args)?, declared))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.inner.simplify(args, info)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KeepingAggregate {
    inner: Arc<AggregateUDF>,
    keeps: By,
}

impl AggregateUDFImpl for KeepingAggregate {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.inner().schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.inner().human_display(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.inner().window_function_schema_name(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.inner().display_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.inner().window_function_display_name(params)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        Ok(remembering(self.inner.return_field(fields)?, (self.keeps.0)(fields)))
    }

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        beneficial_ordering: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let inner = Arc::clone(self.inner.inner()).with_beneficial_ordering(beneficial_ordering)?;
        Ok(inner.map(|inner| {
            let inner = Arc::new(AggregateUDF::new_from_shared_impl(inner));
            Arc::new(Self { inner, keeps: self.keeps }) as Arc<dyn AggregateUDFImpl>
        }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner.simplify()
    }

    fn simplify_expr_op_literal(
        &self,
        function: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        literal: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        self.inner.inner().simplify_expr_op_literal(function, arg, op, literal, arg_is_left)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_udf()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner.value_from_stats(args)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}
