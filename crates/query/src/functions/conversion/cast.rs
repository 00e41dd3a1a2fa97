//! `CAST(x AS type)` for numbers and DATETIME.
//!
//! A function here converts to one type, which is part of its name: `__cast tinyint`, `__cast decimal(10,2)`,
//! `__cast datetime(3)`; with `__try_cast` every value that does not fit is NULL. Invariant: a number is converted or ends the
//! query, it never becomes NULL. Text that is not a number, or not one of that type, is NULL, as in Doris outside of strict mode; it is
//! read as loads read it.

use crate::error::external;
use crate::functions::conversion::{collections, convert};
use crate::functions::dates::{datetime, zone};
use crate::types::kind::DATETIME;
use crate::types::kind::{Kind, kind};
use crate::types::metadata;
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float32Array, TimestampMicrosecondArray};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, DecimalType, Field, FieldRef,
    TimestampMicrosecondType,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;
use tributary_types::number::{self, LARGEINT_LIMIT};
use tributary_types::{ErrorCode, SqlError, decimal};

const CAST: &str = "__cast ";
const TRY_CAST: &str = "__try_cast ";

/// The target type of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Unsigned,
    LargeInt,
    Float,
    Decimal {
        precision: u8,
        scale: u8,
    },
    /// Rounded to that many digits of a second.
    DateTime {
        digits: u8,
    },
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TinyInt => f.write_str("TINYINT"),
            Self::SmallInt => f.write_str("SMALLINT"),
            Self::Int => f.write_str("INT"),
            Self::BigInt => f.write_str("BIGINT"),
            Self::Unsigned => f.write_str("BIGINT UNSIGNED"),
            Self::LargeInt => f.write_str("LARGEINT"),
            Self::Float => f.write_str("FLOAT"),
            Self::Decimal { precision, scale } => write!(f, "DECIMAL({precision},{scale})"),
            Self::DateTime { digits } => write!(f, "DATETIME({digits})"),
        }
    }
}

impl Target {
    /// The type with this display name, in lower case as the planner looks functions up.
    fn named(name: &str) -> Option<Self> {
        let (word, numbers) = name.split_once('(').unwrap_or((name, ""));
        let mut numbers = numbers.trim_end_matches(')').split(',').map(str::parse::<u8>);
        let mut number = || numbers.next().and_then(Result::ok);
        Some(match word {
            "tinyint" => Self::TinyInt,
            "smallint" => Self::SmallInt,
            "int" => Self::Int,
            "bigint" => Self::BigInt,
            "bigint unsigned" => Self::Unsigned,
            "largeint" => Self::LargeInt,
            "float" => Self::Float,
            "decimal" => Self::Decimal { precision: number()?, scale: number()? },
            "datetime" => Self::DateTime { digits: number()? },
            _ => return None,
        })
    }

    /// The name of the function that converts to this; with `lenient` all that does not fit is NULL.
    #[must_use]
    pub fn function(self, lenient: bool) -> String {
        format!("{}{self}", if lenient { TRY_CAST } else { CAST }).to_lowercase()
    }

    /// The conversion of a value in a plan; what does not fit is an error.
    #[must_use]
    pub fn call(self, value: Expr) -> Expr {
        let function = function(&self.function(false)).expect("every target's name is one of a function");
        function.call(vec![value])
    }

    const fn data_type(self) -> DataType {
        match self {
            Self::TinyInt => DataType::Int8,
            Self::SmallInt => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
            Self::LargeInt => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
            Self::Float => DataType::Float32,
            Self::Decimal { precision, scale } => DataType::Decimal128(precision, scale as i8),
            Self::DateTime { .. } => DATETIME,
        }
    }

    /// The smallest and the largest value, for errors.
    fn range(self) -> String {
        let largest_of = |precision, scale| {
            let digits = 10_i128.pow(u32::from(precision)) - 1;
            Decimal128Type::format_decimal(digits, precision, scale as i8)
        };
        match self {
            Self::TinyInt => format!("{} to {}", i8::MIN, i8::MAX),
            Self::SmallInt => format!("{} to {}", i16::MIN, i16::MAX),
            Self::Int => format!("{} to {}", i32::MIN, i32::MAX),
            Self::BigInt => format!("{} to {}", i64::MIN, i64::MAX),
            Self::Unsigned => format!("0 to {}", u64::MAX),
            Self::LargeInt => format!("whole numbers of up to {DECIMAL128_MAX_PRECISION} digits"),
            Self::Float => format!("{:e} to {:e}", f32::MIN, f32::MAX),
            Self::Decimal { precision, scale } => {
                let largest = largest_of(precision, scale);
                format!("-{largest} to {largest}")
            }
            Self::DateTime { .. } => "0000-01-01 to 9999-12-31".to_owned(),
        }
    }
}

/// The function of that name, if it is one of those here.
#[must_use]
pub fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    let (lenient, target) = match name.strip_prefix(CAST) {
        Some(target) => (false, target),
        None => (true, name.strip_prefix(TRY_CAST)?),
    };
    match Target::named(target) {
        Some(target) => Some(Arc::new(ScalarUDF::new_from_impl(CastTo::new(name, target, lenient)))),
        None => collections::function(name, target, lenient),
    }
}

/// The name of the function that converts to an ARRAY, MAP or STRUCT, whose type is written in this text.
#[must_use]
pub fn function_of_nested(to: &str, lenient: bool) -> String {
    format!("{}{to}", if lenient { TRY_CAST } else { CAST }).to_lowercase()
}

/// The values in the target's type.
///
/// # Errors
/// One does not fit, unless `lenient`.
pub(super) fn converted(array: &ArrayRef, target: Target, lenient: bool) -> Result<ArrayRef> {
    CastTo::new("CAST", target, lenient).cast(array)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct CastTo {
    name: String,
    target: Target,
    lenient: bool,
    signature: Signature,
}

impl ScalarUDFImpl for CastTo {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.target.data_type())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = Field::new(&self.name, self.target.data_type(), true);
        Ok(Arc::new(match self.target {
            Target::DateTime { digits } => field.with_metadata(metadata::with_digits(digits)),
            _ => field,
        }))
    }

    /// A cast to the type that a number has already is the number.
    fn simplify(&self, mut args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let is_number = !matches!(self.target, Target::DateTime { .. });
        if is_number && args.len() == 1 && info.get_data_type(&args[0])? == self.target.data_type() {
            return Ok(ExprSimplifyResult::Simplified(args.remove(0)));
        }
        Ok(ExprSimplifyResult::Original(args))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        zone::within(zone::of(&args.config_options), || match args.args.as_slice() {
            [ColumnarValue::Array(array)] => Ok(ColumnarValue::Array(self.cast(array)?)),
            [ColumnarValue::Scalar(scalar)] => {
                let cast = self.cast(&scalar.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&cast, 0)?))
            }
            _ => internal_err!("{} takes one value", self.name),
        })
    }
}

impl CastTo {
    fn new(name: &str, target: Target, lenient: bool) -> Self {
        let signature = Signature::any(1, Volatility::Immutable);
        Self { name: name.to_owned(), target, lenient, signature }
    }

    fn cast(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let cast = self.fitting(array)?;
        let may_be_null = match kind(array.data_type()) {
            _ if self.lenient => true,
            Kind::Text => self.target != Target::LargeInt,
            _ => matches!(self.target, Target::DateTime { .. }),
        };
        if may_be_null || cast.null_count() == array.logical_null_count() {
            return Ok(cast);
        }
        let is_lost = |row: &usize| cast.is_null(*row) && array.is_valid(*row);
        let lost = (0..array.len()).filter(is_lost).find(|row| match kind(array.data_type()) {
            // Text that is not a number is NULL.
            Kind::Text => {
                convert::text_at(array, *row).is_some_and(|text| text.trim().parse::<i128>().is_ok())
            }
            _ => array.data_type() != &DataType::Null,
        });
        lost.map_or(Ok(cast), |row| self.refuse(array, row))
    }

    fn refuse(&self, array: &ArrayRef, row: usize) -> Result<ArrayRef> {
        let value = ArrayFormatter::try_new(array, &FormatOptions::default())?.value(row).to_string();
        let (target, range) = (self.target, self.target.range());
        Err(external(SqlError::detail(
            ErrorCode::Unknown,
            format!("{value} does not fit {target}, which holds {range}; TRY_CAST gives NULL instead"),
        )))
    }

    /// The values in the target's type, NULL where they do not fit.
    fn fitting(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let to = self.target.data_type();
        match self.target {
            Target::TinyInt | Target::SmallInt | Target::Int | Target::BigInt => {
                convert::safe_cast(&convert::to_integer(array)?, &to)
            }
            Target::Float if kind(array.data_type()) == Kind::Text => {
                let values = texts(array).map(|text| number::float(text?.as_bytes(), false));
                Ok(Arc::new(values.collect::<Float32Array>()))
            }
            Target::Float => {
                let values = convert::safe_cast(&convert::to_real(array)?, &to)?;
                let values = values.as_primitive::<arrow::datatypes::Float32Type>();
                let finite = arrow::compute::is_not_null(values)?;
                let given = convert::to_real(array)?;
                let given = given.as_primitive::<arrow::datatypes::Float64Type>();
                let kept = values.iter().zip(given.iter()).zip(finite.values().iter()).map(
                    |((value, given), valid)| {
                        value.filter(|value| {
                            valid && (value.is_finite() || given.is_some_and(|given| !given.is_finite()))
                        })
                    },
                );
                Ok(Arc::new(kept.collect::<arrow::array::Float32Array>()))
            }
            Target::DateTime { digits } => Ok(rounded(&convert::to_datetime(array)?, digits)),
            Target::Unsigned | Target::LargeInt | Target::Decimal { .. } => match kind(array.data_type()) {
                Kind::Boolean | Kind::Date | Kind::DateTime => {
                    convert::safe_cast(&convert::to_integer(array)?, &to)
                }
                Kind::Text => {
                    let (precision, scale) = match self.target {
                        Target::Decimal { precision, scale } => (precision, scale),
                        _ => (DECIMAL128_MAX_PRECISION, 0),
                    };
                    let read = |text: &str| match self.target {
                        Target::Decimal { .. } => decimal::decimal(text.as_bytes(), precision, scale).ok(),
                        _ => number::large_int(text.as_bytes())
                            .filter(|value| value.unsigned_abs() < LARGEINT_LIMIT.unsigned_abs()),
                    };
                    let values: Decimal128Array = texts(array).map(|text| read(text?)).collect();
                    let values: ArrayRef = Arc::new(values.with_precision_and_scale(precision, scale as i8)?);
                    convert::safe_cast(&values, &to)
                }
                _ => convert::safe_cast(array, &to),
            },
        }
    }
}

/// The texts of an array of texts.
fn texts(array: &ArrayRef) -> impl Iterator<Item = Option<&str>> {
    (0..array.len()).map(|row| array.is_valid(row).then(|| convert::text_at(array, row)).flatten())
}

/// DATETIMEs rounded to the given number of digits; half a digit rounds up. NULL past the year 9999.
fn rounded(values: &ArrayRef, digits: u8) -> ArrayRef {
    let step = 10_i64.pow(6 - u32::from(digits.min(6)));
    let values = values.as_primitive::<TimestampMicrosecondType>();
    let rounded = values.iter().map(|value| {
        let rounded = value?.checked_add(step / 2)?.div_euclid(step) * step;
        datetime::from_micros(rounded).map(|_| rounded)
    });
    Arc::new(rounded.collect::<TimestampMicrosecondArray>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_function_says_what_it_converts_to() {
        for target in [
            Target::TinyInt,
            Target::SmallInt,
            Target::Int,
            Target::BigInt,
            Target::Unsigned,
            Target::LargeInt,
            Target::Float,
            Target::Decimal { precision: 10, scale: 2 },
            Target::DateTime { digits: 3 },
        ] {
            assert_eq!(Target::named(&target.to_string().to_lowercase()), Some(target), "{target}");
            for lenient in [false, true] {
                let name = target.function(lenient);
                assert_eq!(function(&name).map(|function| function.name().to_owned()), Some(name));
            }
        }
        assert!(function("__case").is_none());
    }
}
