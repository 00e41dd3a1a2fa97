//! Arithmetic that ends with an error where a result does not fit, and the division of decimals.
//!
//! Queries calculate in BIGINT, DECIMAL and DOUBLE; the planner of operators converts to these.

use crate::error::{bigint_out_of_range, decimal_out_of_range, external};
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, Datum, Decimal128Array, Int64Array};
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Decimal128Type, DecimalType, Float64Type, Int64Type, i256};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use datafusion::physical_expr_common::datum::apply;
use std::sync::Arc;
use tributary_types::{ErrorCode, SqlError};

/// How many digits after the point a quotient has more than the dividend.
const DIVISION_DIGITS: u8 = 4;

type Kernel = fn(&dyn Datum, &dyn Datum) -> std::result::Result<ArrayRef, ArrowError>;

/// An operator on two BIGINTs.
#[derive(Debug)]
pub struct Checked {
    name: &'static str,
    kernel: Kernel,
    signature: Signature,
}

impl PartialEq for Checked {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for Checked {}
impl std::hash::Hash for Checked {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

pub fn operators() -> Vec<Checked> {
    let operator = |name, kernel| Checked {
        name,
        kernel,
        signature: Signature::exact(vec![DataType::Int64; 2], Volatility::Immutable),
    };
    vec![
        operator("__add", numeric::add),
        operator("__subtract", numeric::sub),
        operator("__multiply", numeric::mul),
    ]
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = args.args.as_slice() else {
            return exec_err!("{} takes two numbers", self.name);
        };
        apply(left, right, self.kernel).map_err(|error| match error {
            DataFusionError::ArrowError(error, _) => out_of_range(&error),
            other => other,
        })
    }
}

/// The error of an overflow, which names the two numbers.
fn out_of_range(error: &ArrowError) -> DataFusionError {
    let text = error.to_string();
    let (_, calculation) = text.rsplit_once(": ").unwrap_or(("", &text));
    external(bigint_out_of_range(calculation))
}

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Any;
    vec![
        MySqlFunction::new("__negate", &[Any], crate::functions::float64, |args| {
            unary(&args[0], "-", i64::checked_neg, |array| Ok(numeric::neg(array)?))
        })
        .returning(|types| calculated(&types[0])),
        MySqlFunction::new("abs", &[Any], crate::functions::float64, |args| {
            unary(&args[0], "ABS", i64::checked_abs, absolute)
        })
        .returning(|types| calculated(&types[0])),
        MySqlFunction::new("__fitting", &[Any], crate::functions::float64, |args| fitting(&args[0]))
            .returning(|types| types[0].clone()),
        MySqlFunction::new("__divide", &[Any, Any], crate::functions::float64, |args| {
            let (precision, scale) = quotient_type(args[0].data_type(), args[1].data_type());
            let quotients = divided(&args[0], &args[1], scale, true)?;
            Ok(Arc::new(quotients.with_precision_and_scale(precision, scale as i8)?))
        })
        .returning(|types| {
            let (precision, scale) = quotient_type(&types[0], &types[1]);
            DataType::Decimal128(precision, scale as i8)
        }),
        MySqlFunction::new("__quotient", &[Any, Any], crate::functions::int64, |args| {
            let whole = divided(&args[0], &args[1], 0, false)?;
            let mut out = Int64Array::builder(whole.len());
            for value in &whole {
                match value.map(i64::try_from).transpose() {
                    Ok(value) => out.append_option(value),
                    Err(_) => {
                        return Err(external(bigint_out_of_range(&format!(
                            "… DIV … = {}",
                            value.unwrap_or(0)
                        ))));
                    }
                }
            }
            Ok(Arc::new(out.finish()))
        }),
    ]
}

/// One more than the largest absolute value of a DECIMAL without a point.
const DECIMAL_END: u128 = 10_u128.pow(Decimal128Type::MAX_PRECISION as u32);

/// Decimals that are an error where they have more digits than a DECIMAL.
fn fitting(array: &ArrayRef) -> Result<ArrayRef> {
    if let Some(values) = array.as_primitive_opt::<Decimal128Type>()
        && values.values().iter().any(|value| value.unsigned_abs() >= DECIMAL_END)
        && values.iter().flatten().any(|value| value.unsigned_abs() >= DECIMAL_END)
    {
        return Err(external(decimal_out_of_range()));
    }
    Ok(Arc::clone(array))
}

/// Whether a DECIMAL may have these digits.
pub const fn is_decimal(digits: i128) -> bool {
    digits.unsigned_abs() < DECIMAL_END
}

/// The type in which a value is calculated with: BIGINT, DECIMAL or DOUBLE.
fn calculated(data_type: &DataType) -> DataType {
    match data_type {
        DataType::UInt64 => DataType::Decimal128(20, 0),
        data_type if data_type.is_integer() => DataType::Int64,
        DataType::Decimal128(..) => data_type.clone(),
        DataType::Boolean | DataType::Date32 | DataType::Timestamp(..) => DataType::Int64,
        _ => DataType::Float64,
    }
}

fn unary(
    array: &ArrayRef,
    name: &str,
    whole: fn(i64) -> Option<i64>,
    other: fn(&dyn Array) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    match calculated(array.data_type()) {
        DataType::Int64 => {
            let values = crate::functions::conversion::convert::to_integer(array)?;
            let computed = values.as_primitive::<Int64Type>().try_unary(|value| {
                whole(value).ok_or_else(|| external(bigint_out_of_range(&format!("{name}({value})"))))
            });
            Ok(Arc::new(computed.map(|values: Int64Array| values)?))
        }
        DataType::Float64 => other(&crate::functions::conversion::convert::to_real(array)?),
        to => other(&arrow::compute::cast(array, &to)?),
    }
}

fn absolute(array: &dyn Array) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Decimal128(precision, scale) => {
            let values = array.as_primitive::<Decimal128Type>().unary::<_, Decimal128Type>(i128::abs);
            Ok(Arc::new(values.with_precision_and_scale(*precision, *scale)?))
        }
        _ => {
            let values = array.as_primitive::<Float64Type>();
            Ok(Arc::new(values.unary::<_, Float64Type>(f64::abs)))
        }
    }
}

fn parts(data_type: &DataType) -> (u8, u8) {
    match data_type {
        DataType::Decimal128(precision, scale) => (*precision, u8::try_from(*scale).unwrap_or(0)),
        _ => (0, 0),
    }
}

/// Precision and scale of `left / right`.
fn quotient_type(left: &DataType, right: &DataType) -> (u8, u8) {
    let ((precision, scale), (_, right_scale)) = (parts(left), parts(right));
    let most = Decimal128Type::MAX_PRECISION;
    let scale = (scale + DIVISION_DIGITS).min(most);
    ((precision + right_scale + DIVISION_DIGITS).clamp(scale, most), scale)
}

/// Quotients with `scale` digits after the point, rounded half away from zero or cut. NULL where
/// the divisor is 0.
fn divided(left: &ArrayRef, right: &ArrayRef, scale: u8, round: bool) -> Result<Decimal128Array> {
    let ((_, left_scale), (_, right_scale)) = (parts(left.data_type()), parts(right.data_type()));
    let types = (left.as_primitive_opt::<Decimal128Type>(), right.as_primitive_opt::<Decimal128Type>());
    // The optimizer evaluates a condition with all columns NULL, without their types.
    let (Some(left), Some(right)) = types else { return Ok(Decimal128Array::new_null(left.len())) };
    // value = left / 10^left_scale / (right / 10^right_scale) · 10^scale
    let shift = i32::from(right_scale) + i32::from(scale) - i32::from(left_scale);
    let ten = |digits: i32| i256::from_i128(10).wrapping_pow(digits.unsigned_abs());
    let (dividend_factor, divisor_factor) =
        if shift >= 0 { (ten(shift), i256::ONE) } else { (i256::ONE, ten(shift)) };
    let small_factors = dividend_factor.to_i128().zip(divisor_factor.to_i128());
    let mut out = Decimal128Array::builder(left.len());
    for (dividend, divisor) in left.iter().zip(right.iter()) {
        let (Some(dividend), Some(divisor)) = (dividend, divisor.filter(|divisor| *divisor != 0)) else {
            out.append_null();
            continue;
        };
        // Most quotients are small enough for 128 bits, which are many times faster.
        let narrow = small_factors.and_then(|(up, down)| {
            let (dividend, divisor) = (dividend.checked_mul(up)?, divisor.checked_mul(down)?);
            let (quotient, rest) = (dividend.checked_div(divisor)?, dividend.checked_rem(divisor)?);
            let up = round && rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
            quotient.checked_add(if up { dividend.signum() * divisor.signum() } else { 0 })
        });
        let quotient = narrow.or_else(|| {
            let wide = i256::from_i128(dividend).checked_mul(dividend_factor)?;
            let divisor = i256::from_i128(divisor).checked_mul(divisor_factor)?;
            let (quotient, rest) = (wide.checked_div(divisor)?, wide.checked_rem(divisor)?);
            let up = round && rest.wrapping_abs() >= divisor.wrapping_abs().wrapping_sub(rest.wrapping_abs());
            let away = if wide.is_negative() == divisor.is_negative() { i256::ONE } else { i256::MINUS_ONE };
            let quotient = if up { quotient.wrapping_add(away) } else { quotient };
            quotient.to_i128()
        });
        match quotient.filter(|quotient| is_decimal(*quotient)) {
            Some(quotient) => out.append_value(quotient),
            None => {
                let text = |value, scale| {
                    Decimal128Type::format_decimal(value, Decimal128Type::MAX_PRECISION, scale as i8)
                };
                return Err(external(SqlError::detail(
                    ErrorCode::Unknown,
                    format!(
                        "DECIMAL value is out of range in '{} / {}': with {scale} digits after the point it has more than {} \
                         digits; calculate with CAST(… AS DOUBLE)",
                        text(dividend, left_scale),
                        text(divisor, right_scale),
                        Decimal128Type::MAX_PRECISION
                    ),
                )));
            }
        }
    }
    Ok(out.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimals(values: &[Option<i128>], precision: u8, scale: i8) -> ArrayRef {
        let array: Decimal128Array = values.iter().copied().collect();
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
    }

    #[test]
    fn quotients_are_rounded_half_away_from_zero() {
        let left = decimals(&[Some(20), Some(-20), Some(10), Some(5), None, Some(5)], 3, 1);
        let right = decimals(&[Some(3), Some(3), Some(3), Some(0), Some(1), Some(-16)], 2, 0);
        let values: Vec<Option<i128>> = divided(&left, &right, 5, true).unwrap().iter().collect();
        assert_eq!(values, [Some(66667), Some(-66667), Some(33333), None, None, Some(-3125)]);
    }

    #[test]
    fn quotients_of_38_digits_need_256_bits_in_between() {
        let most = 10_i128.pow(38) - 1;
        let values: Vec<Option<i128>> =
            divided(&decimals(&[Some(most)], 38, 0), &decimals(&[Some(most)], 38, 0), 4, true)
                .unwrap()
                .iter()
                .collect();
        assert_eq!(values, [Some(10_000)]);
        let one = decimals(&[Some(1)], 38, 30);
        assert!(divided(&decimals(&[Some(most)], 38, 0), &one, 4, true).is_err());
    }

    #[test]
    fn cut_quotients_have_no_fraction() {
        let left = decimals(&[Some(75), Some(-75), Some(200_000)], 6, 1);
        let right = decimals(&[Some(200_000), Some(200_000), Some(200_001)], 6, 5);
        let values: Vec<Option<i128>> = divided(&left, &right, 0, false).unwrap().iter().collect();
        assert_eq!(values, [Some(3), Some(-3), Some(9_999)]);
    }
}
