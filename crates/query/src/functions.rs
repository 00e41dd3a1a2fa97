//! MySQL's and Doris's scalar functions that DataFusion lacks or defines otherwise.
//!
//! A function here is a name, the kinds of its parameters, a result type and a body over whole arrays; [`MySqlFunction`] converts
//! the arguments leniently (text that is not a number is NULL) and calls the body. Names with two leading underscores are not for
//! users: the rewrite of a query inserts them. All names that users may call are in [`declared`](declared()).
//!
//! Not here: plans, tables and sessions. A function sees arrays and the fields of its arguments.

pub mod aggregates;
mod cells;
pub mod conversion;
pub mod dates;
mod declared;
pub mod growth;
mod json;
pub mod keeping;
pub mod nested;
mod numbers;
pub mod states;
pub mod system;
mod text;

pub use declared::{ALL, Declared, Family, Means, declared, meant, refused};
pub use json::variant::MEMBER;
pub use numbers::sum::sum;
pub use text::strings::by_backslash;

use crate::types::kind::DATETIME;
use dates::zone;

use crate::types::metadata;
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    AggregateUDF, ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, TypeSignature, Volatility,
};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

/// The conversion of an argument before the body sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    Text,
    /// Bytes as they are, anything else as text.
    Bytes,
    Int,
    Real,
    DateTime,
    /// A text of JSON: a document as it is, other values as JSON writes them.
    Json,
    /// As it is.
    Any,
}

/// The type of a function's result.
#[derive(Clone, Copy, Debug)]
pub enum Returns {
    Fixed(fn() -> DataType),
    /// From the arguments' types.
    Of(fn(&[DataType]) -> DataType),
    /// From the arguments' types and the second argument, a constant number.
    ByDigits(fn(&[DataType], Option<i64>) -> DataType),
    /// From the arguments' fields, which have the fractional digits of a DATETIME.
    ByFields(fn(&[FieldRef]) -> DataType),
}

/// The work of a function: arrays in the kinds of [`MySqlFunction::params`], all of one length.
type Body = fn(&[ArrayRef]) -> Result<ArrayRef>;

/// A scalar function; see the module.
#[derive(Debug)]
pub struct MySqlFunction {
    name: &'static str,
    /// The last one repeats when `variadic`.
    params: &'static [Param],
    required: usize,
    variadic: bool,
    returns: Returns,
    /// The digits of the seconds of the DATETIMEs and TIMEs that it returns.
    digits: Option<fn(&ReturnFieldArgs<'_>) -> Option<u8>>,
    /// The type of its results, if Arrow's type is ambiguous.
    makes: Option<tributary_types::DataType>,
    /// Whether its texts are TIMEs.
    is_clock: bool,
    /// The declared type of its results, if the arguments determine it.
    keeps: Option<keeping::Keeps>,
    body: Body,
    signature: Signature,
}

impl MySqlFunction {
    fn new(name: &'static str, params: &'static [Param], returns: fn() -> DataType, body: Body) -> Self {
        Self {
            name,
            params,
            required: params.len(),
            variadic: false,
            returns: Returns::Fixed(returns),
            digits: None,
            makes: None,
            is_clock: false,
            keeps: None,
            body,
            signature: Signature::one_of(
                vec![TypeSignature::VariadicAny, TypeSignature::Nullary],
                Volatility::Immutable,
            ),
        }
    }

    fn optional(mut self, count: usize) -> Self {
        self.required = self.params.len() - count;
        self
    }

    fn variadic(mut self) -> Self {
        self.variadic = true;
        self
    }

    fn returning(mut self, of: fn(&[DataType]) -> DataType) -> Self {
        self.returns = Returns::Of(of);
        self
    }

    fn returning_digits(mut self, of: fn(&[DataType], Option<i64>) -> DataType) -> Self {
        self.returns = Returns::ByDigits(of);
        self
    }

    fn returning_by_fields(mut self, of: fn(&[FieldRef]) -> DataType) -> Self {
        self.returns = Returns::ByFields(of);
        self
    }

    fn with_digits(mut self, of: fn(&ReturnFieldArgs<'_>) -> Option<u8>) -> Self {
        self.digits = Some(of);
        self
    }

    fn making(mut self, declared: tributary_types::DataType) -> Self {
        self.makes = Some(declared);
        self
    }

    /// Its texts are TIMEs.
    fn clock(mut self) -> Self {
        self.is_clock = true;
        self
    }

    fn keeping(mut self, of: keeping::Keeps) -> Self {
        self.keeps = Some(of);
        self
    }

    fn param(&self, index: usize) -> Param {
        self.params[index.min(self.params.len() - 1)]
    }

    fn check_count(&self, given: usize) -> Result<()> {
        if given < self.required || (given > self.params.len() && !self.variadic) {
            return plan_err!("Incorrect parameter count in the call to function '{}'", self.name);
        }
        Ok(())
    }
}

impl PartialEq for MySqlFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for MySqlFunction {}
impl Hash for MySqlFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for MySqlFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.check_count(arg_types.len())?;
        Ok(match self.returns {
            Returns::Fixed(of) => of(),
            Returns::Of(of) => of(arg_types),
            Returns::ByDigits(of) => of(arg_types, None),
            Returns::ByFields(of) => {
                let field = |data_type: &DataType| Arc::new(Field::new("", data_type.clone(), true));
                of(&arg_types.iter().map(field).collect::<Vec<_>>())
            }
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let mut data_type = self.return_type(&types)?;
        match self.returns {
            Returns::ByDigits(of) => {
                let digits = args.scalar_arguments.get(1).copied().flatten();
                data_type = of(&types, digits.and_then(|digits| digits.to_string().parse().ok()));
            }
            Returns::ByFields(of) => data_type = of(args.arg_fields),
            Returns::Fixed(_) | Returns::Of(_) => {}
        }
        let field = Field::new(self.name, data_type, true);
        if self.is_clock && *field.data_type() == DataType::Utf8 {
            let digits = self.digits.and_then(|of| of(&args));
            return Ok(Arc::new(field.with_metadata(metadata::of_clock(digits))));
        }
        let digits = self.digits.and_then(|of| of(&args));
        Ok(Arc::new(match digits {
            Some(digits) if *field.data_type() == DATETIME => {
                field.with_metadata(metadata::with_digits(digits))
            }
            _ => {
                let kept = self.keeps.and_then(|of| keeping::fitting(of(args.arg_fields), field.data_type()));
                match self.makes.or(kept) {
                    Some(declared) => field.with_metadata(metadata::declared(declared)),
                    None => field,
                }
            }
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        zone::within(zone::of(&args.config_options), || self.compute(args))
    }

    /// A conversion of a value that has the type already is the value.
    fn simplify(&self, mut args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if args.len() == 1 && conversion::convert::NAMES.contains(&self.name) {
            let given = info.get_data_type(&args[0])?;
            if self.return_type(std::slice::from_ref(&given))? == given {
                return Ok(ExprSimplifyResult::Simplified(args.remove(0)));
            }
        }
        Ok(ExprSimplifyResult::Original(args))
    }
}

impl MySqlFunction {
    fn compute(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        growth::check_constants(self.name, &args.args)?;
        let mut arrays = Vec::with_capacity(args.args.len());
        for (index, arg) in args.args.into_iter().enumerate() {
            growth::check_copies(self.name, &arg, rows)?;
            let array = arg.into_array(rows)?;
            // Only these have texts that Arrow's type does not tell.
            let is_told = matches!(array.data_type(), DataType::Timestamp(..))
                || array.data_type().is_nested()
                || self.param(index) == Param::Json;
            let known = is_told.then(|| metadata::known_type(&args.arg_fields[index])).flatten();
            arrays.push(match (self.param(index), known) {
                (Param::Json, known) => json::made::to_documents(&array, known)?,
                (Param::Text | Param::Bytes, Some(known)) => conversion::convert::to_text_of(&array, known)?,
                (param, _) => conversion::convert::to_param(&array, param)?,
            });
        }
        let mut result = (self.body)(&arrays)?;
        if matches!(self.returns, Returns::ByDigits(_) | Returns::ByFields(_)) {
            result = conversion::convert::safe_cast(&result, args.return_field.data_type())?;
        }
        if constant {
            let result = ScalarValue::try_from_array(&result, 0)?;
            growth::check_literal(&result)?;
            let result = ColumnarValue::Scalar(result);
            if result.data_type().is_nested() {
                // A column of arrays has one for each row, such as that of LATERAL VIEW explode_numbers(1000000).
                growth::check_copies(self.name, &result, args.number_rows)?;
            }
            return Ok(result);
        }
        Ok(ColumnarValue::Array(result))
    }
}

/// All functions of this module.
pub fn all() -> &'static [Arc<ScalarUDF>] {
    static ALL: LazyLock<Vec<Arc<ScalarUDF>>> = LazyLock::new(|| {
        let choices = conversion::choice::choices().into_iter().map(ScalarUDF::new_from_impl);
        let operators = numbers::arithmetic::operators().into_iter().map(ScalarUDF::new_from_impl);
        let partition_name = system::partition_name::PartitionName::new();
        [
            aggregates::functions(),
            conversion::functions(),
            dates::functions(),
            json::functions(),
            nested::functions(),
            numbers::functions(),
            states::functions(),
            system::functions(),
            text::functions(),
        ]
        .into_iter()
        .flatten()
        .map(ScalarUDF::new_from_impl)
        .chain(choices)
        .chain(operators)
        .chain([ScalarUDF::new_from_impl(partition_name)])
        .map(Arc::new)
        .collect()
    });
    &ALL
}

/// The function that a query may call by that name.
pub fn get(name: &str) -> Option<Arc<ScalarUDF>> {
    by_name().get(name).map(|function| Arc::clone(function)).or_else(|| conversion::cast::function(name))
}

/// The scalar function that queries mean by that name: one of ours, or one of DataFusion's within our limits.
pub fn scalar(name: &str, stock: &HashMap<String, Arc<ScalarUDF>>) -> Option<Arc<ScalarUDF>> {
    get(name).or_else(|| stock.get(name).cloned().map(keeping::scalar).map(growth::scalar))
}

/// The aggregate that queries mean by that name.
pub fn aggregate(name: &str, stock: &HashMap<String, Arc<AggregateUDF>>) -> Option<Arc<AggregateUDF>> {
    if name == "sum" {
        return Some(sum());
    }
    aggregates::get(name).or_else(|| stock.get(name).cloned().map(keeping::aggregate))
}

/// The functions of this module by their names.
fn by_name() -> &'static HashMap<&'static str, &'static Arc<ScalarUDF>> {
    static BY_NAME: LazyLock<HashMap<&str, &Arc<ScalarUDF>>> =
        LazyLock::new(|| all().iter().map(|function| (function.name(), function)).collect());
    &BY_NAME
}

/// Whether a function of this module has that name.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    by_name().contains_key(name)
}

/// The function with that name, which must be one of ours.
pub fn named(name: &str) -> Arc<ScalarUDF> {
    let found = by_name().get(name).expect("callers name functions that are listed in this module");
    Arc::clone(found)
}

fn utf8() -> DataType {
    DataType::Utf8
}
fn int64() -> DataType {
    DataType::Int64
}
fn float64() -> DataType {
    DataType::Float64
}
fn boolean() -> DataType {
    DataType::Boolean
}
fn date32() -> DataType {
    DataType::Date32
}
fn datetime_type() -> DataType {
    DATETIME
}

#[cfg(test)]
mod tests;
