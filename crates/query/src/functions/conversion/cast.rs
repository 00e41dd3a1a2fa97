//! `CAST(x AS type)` for numbers and DATETIME.
//!
//! A function here converts to one type, which is part of its name: `__cast tinyint`, `__cast decimal(10,2)`,
//! `__cast datetime(3)`; with `__try_cast` every value that does not fit is NULL. Invariant: a number is converted or ends the
//! query, it never becomes NULL. Text that is not a number, or not one of that type, is NULL, as in Doris outside of strict mode.

use crate::error::external;
use crate::functions::conversion::convert;
use crate::functions::dates::{datetime, zone};
use crate::types::kind::DATETIME;
use crate::types::kind::{Kind, kind};
use crate::types::metadata;
use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, TimestampMicrosecondArray};
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
use tributary_types::{ErrorCode, SqlError};

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
    let function = CastTo {
        name: name.to_owned(),
        target: Target::named(target)?,
        lenient,
        signature: Signature::any(1, Volatility::Immutable),
    };
    Some(Arc::new(ScalarUDF::new_from_impl(function)))
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
                    let (precision, scale, rounds) = match self.target {
                        Target::Decimal { precision, scale } => (precision, scale, true),
                        _ => (DECIMAL128_MAX_PRECISION, 0, false),
                    };
                    let read = |row| {
                        let text = array.is_valid(row).then(|| convert::text_at(array, row)).flatten()?;
                        decimal_of(text, precision, scale, rounds)
                    };
                    let values: Decimal128Array = (0..array.len()).map(read).collect();
                    let values: ArrayRef = Arc::new(values.with_precision_and_scale(precision, scale as i8)?);
                    convert::safe_cast(&values, &to)
                }
                _ => convert::safe_cast(array, &to),
            },
        }
    }
}

/// The digits of the DECIMAL that a text is: `12`, `-1.5`, `.5`, `1.5e3`, with blanks around. Digits
/// after the last one are rounded half up or cut. `None` for other texts and too large numbers.
fn decimal_of(text: &str, precision: u8, scale: u8, rounds: bool) -> Option<i128> {
    let text = text.trim();
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok()?;
    let unsigned = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all = format!("{whole}{fraction}");
    if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = all.trim_start_matches('0');
    let zeros = all.len() - digits.len();
    // How many of the digits are in the result: those before the point and `scale` after it.
    let point = i64::try_from(whole.len()).ok()? - i64::try_from(zeros).ok()? + i64::from(exponent);
    let kept = point + i64::from(scale);
    let value = match usize::try_from(kept) {
        Err(_) => 0,
        Ok(_) if digits.is_empty() => 0,
        Ok(kept) if kept > usize::from(DECIMAL128_MAX_PRECISION) => return None,
        Ok(kept) => {
            let shown: i128 = format!("0{digits:0<kept$}").get(..=kept)?.parse().ok()?;
            let next = digits.as_bytes().get(kept).copied().unwrap_or(b'0');
            shown + i128::from(rounds && next >= b'5')
        }
    };
    let value = if mantissa.starts_with('-') { -value } else { value };
    (value.unsigned_abs() < 10_u128.pow(u32::from(precision))).then_some(value)
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
    fn decimals_are_read_from_every_form_of_a_number() {
        for (text, precision, scale, expected) in [
            ("12", 5, 2, Some(1200)),
            (" -1.5 ", 5, 2, Some(-150)),
            (".5", 5, 2, Some(50)),
            ("5.", 5, 2, Some(500)),
            ("+1.005", 5, 2, Some(101)),
            ("0.0049", 5, 2, Some(0)),
            ("0.005", 5, 2, Some(1)),
            ("1.2e3", 8, 2, Some(120_000)),
            ("125e-3", 5, 2, Some(13)),
            ("1e-40", 5, 2, Some(0)),
            ("0e999", 5, 2, Some(0)),
            ("000012.50", 5, 2, Some(1250)),
            ("999.99", 5, 2, Some(99_999)),
            ("999.995", 5, 2, None),
            ("1e400", 38, 0, None),
            ("1e2147483648", 38, 0, None),
            ("99999999999999999999999999999999999999", 38, 0, Some(10_i128.pow(38) - 1)),
            ("100000000000000000000000000000000000000", 38, 0, None),
            ("", 5, 2, None),
            (".", 5, 2, None),
            ("1.2.3", 5, 2, None),
            ("--1", 5, 2, None),
            ("12a", 5, 2, None),
            ("1e", 5, 2, None),
        ] {
            assert_eq!(decimal_of(text, precision, scale, true), expected, "'{text}'");
        }
        assert_eq!(decimal_of("1.9", 38, 0, false), Some(1));
    }

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
