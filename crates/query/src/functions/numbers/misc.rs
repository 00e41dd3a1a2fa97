//! Functions that fit nowhere else.

use crate::functions::conversion::choice::common_digits;
use crate::functions::keeping;
use crate::functions::{MySqlFunction, Param};
use crate::types;
use crate::types::kind::{Kind, kind};
use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, StringArray, StringBuilder};
use arrow::array::{BooleanArray, Datum};
use arrow::compute::kernels::boolean::{and, is_not_null, is_null, or_kleene};
use arrow::compute::kernels::cmp;
use arrow::compute::kernels::zip::zip;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use arrow::error::ArrowError;
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::ReturnFieldArgs;
use regex::Regex;
use std::sync::Arc;

/// A value that does not fit is an error.
const EXACTLY: CastOptions<'static> =
    CastOptions { safe: false, format_options: arrow::util::display::FormatOptions::new() };

type Outcome<T> = std::result::Result<T, ArrowError>;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::{Any, Int, Real, Text};
    vec![
        MySqlFunction::new("sqrt", &[Real], crate::functions::float64, |args| Ok(real(&args[0], f64::sqrt))),
        MySqlFunction::new("exp", &[Real], crate::functions::float64, |args| Ok(real(&args[0], f64::exp))),
        MySqlFunction::new("ln", &[Real], crate::functions::float64, |args| Ok(real(&args[0], f64::ln))),
        MySqlFunction::new("log2", &[Real], crate::functions::float64, |args| Ok(real(&args[0], f64::log2))),
        MySqlFunction::new("log10", &[Real], crate::functions::float64, |args| {
            Ok(real(&args[0], f64::log10))
        }),
        MySqlFunction::new("asin", &[Real], crate::functions::float64, |args| Ok(real(&args[0], f64::asin))),
        MySqlFunction::new("acos", &[Real], crate::functions::float64, |args| Ok(real(&args[0], f64::acos))),
        MySqlFunction::new("log", &[Real, Real], crate::functions::float64, |args| {
            Ok(log(&args[0], &args[1]))
        }),
        MySqlFunction::new("pow", &[Real, Real], crate::functions::float64, |args| {
            Ok(pow(&args[0], &args[1]))
        }),
        MySqlFunction::new("greatest", &[Any], crate::functions::utf8, |args| extreme(args, cmp::gt))
            .variadic()
            .returning(common)
            .with_digits(most_digits),
        MySqlFunction::new("least", &[Any], crate::functions::utf8, |args| extreme(args, cmp::lt))
            .variadic()
            .returning(common)
            .with_digits(most_digits),
        MySqlFunction::new("bin", &[Int], crate::functions::utf8, |args| {
            radix(&args[0], |value| format!("{value:b}"))
        }),
        MySqlFunction::new("__regexp_extract", &[Text, Text, Int], crate::functions::utf8, regexp_extract),
        MySqlFunction::new("__first_bytes", &[Text, Int], crate::functions::utf8, |args| {
            let (texts, bytes) = (args[0].as_string::<i32>(), args[1].as_primitive::<Int64Type>());
            let cut = texts
                .iter()
                .zip(bytes.iter())
                .map(|(text, bytes)| Some(first_bytes(text?, usize::try_from(bytes?).unwrap_or_default())));
            Ok(Arc::new(cut.collect::<StringArray>()))
        }),
        // DataFusion's own `^` is not NULL for every NULL: its simplifier knows `x ^ x`.
        MySqlFunction::new("__bit_xor", &[Int, Int], crate::functions::int64, |args| {
            let (left, right) = (args[0].as_primitive::<Int64Type>(), args[1].as_primitive::<Int64Type>());
            let bits = left.iter().zip(right).map(|(left, right)| Some(left? ^ right?));
            Ok(Arc::new(bits.collect::<Int64Array>()))
        }),
        MySqlFunction::new("__in_set", &[Any, Any], crate::functions::utf8, |args| Ok(Arc::clone(&args[0])))
            .returning(|types| types.first().cloned().unwrap_or(DataType::Null))
            .keeping(keeping::first),
        MySqlFunction::new("__single", &[Any, Int], crate::functions::utf8, single)
            .returning(|types| types.first().cloned().unwrap_or(DataType::Null))
            .keeping(keeping::first),
        MySqlFunction::new("oct", &[Int], crate::functions::utf8, |args| {
            radix(&args[0], |value| format!("{value:o}"))
        }),
        MySqlFunction::new("inet_aton", &[Text], crate::functions::int64, |args| {
            let read =
                |text: &str| text.parse::<std::net::Ipv4Addr>().ok().map(|ip| i64::from(u32::from(ip)));
            let values = args[0].as_string::<i32>().iter().map(|text| text.and_then(read));
            Ok(Arc::new(values.collect::<Int64Array>()))
        }),
        MySqlFunction::new("inet_ntoa", &[Int], crate::functions::utf8, |args| {
            let values = args[0].as_primitive::<Int64Type>().iter().map(|value| {
                u32::try_from(value?).ok().map(|bits| std::net::Ipv4Addr::from(bits).to_string())
            });
            Ok(Arc::new(values.collect::<StringArray>()))
        }),
    ]
}

/// The characters that end before that many bytes.
fn first_bytes(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The values, if each is that of one row at most.
fn single(args: &[ArrayRef]) -> Result<ArrayRef> {
    if args[1].as_primitive::<Int64Type>().iter().flatten().any(|rows| rows > 1) {
        return Err(crate::error::external(crate::error::too_many_rows()));
    }
    Ok(Arc::clone(&args[0]))
}

/// The digits of a second that the arguments have at most.
fn most_digits(args: &ReturnFieldArgs<'_>) -> Option<u8> {
    common_digits(args.arg_fields.iter().map(AsRef::as_ref))
}

/// The type that values of these types are compared in.
fn common(types: &[DataType]) -> DataType {
    match types::comparison(types) {
        Some(DataType::Decimal256(_, scale)) => return DataType::Decimal128(38, scale),
        Some(DataType::Null) | None => {}
        Some(to) => return to,
    }
    let kinds: Vec<Kind> = types.iter().map(kind).filter(|kind| *kind != Kind::Null).collect();
    let all = |wanted: &[Kind]| kinds.iter().all(|kind| wanted.contains(kind));
    if all(&[Kind::Integer, Kind::Boolean]) {
        return DataType::Int64;
    }
    if all(&[Kind::Integer, Kind::Boolean, Kind::Decimal]) {
        return types::common(types).unwrap_or(DataType::Float64);
    }
    if all(&[Kind::Date]) {
        return DataType::Date32;
    }
    if kinds.iter().any(|kind| matches!(kind, Kind::Date | Kind::DateTime)) {
        return crate::types::kind::DATETIME;
    }
    if all(&[Kind::Text]) { DataType::Utf8 } else { DataType::Float64 }
}

/// The largest or smallest of each row's values, by what `wins` says; NULL if one is NULL.
fn extreme(args: &[ArrayRef], wins: fn(&dyn Datum, &dyn Datum) -> Outcome<BooleanArray>) -> Result<ArrayRef> {
    let types: Vec<DataType> = args.iter().map(|arg| arg.data_type().clone()).collect();
    let shown = common(&types);
    let to = types::comparison(&types).filter(|to| *to != DataType::Null).unwrap_or_else(|| shown.clone());
    let convert = |array: &ArrayRef| match &to {
        DataType::Float64 => crate::functions::conversion::convert::to_real(array),
        DataType::Decimal256(..) | DataType::Decimal128(..) => Ok(cast_with_options(array, &to, &EXACTLY)?),
        DataType::Utf8 => crate::functions::conversion::convert::to_text(array),
        to if *to == crate::types::kind::DATETIME => {
            crate::functions::conversion::convert::to_datetime(array)
        }
        to => crate::functions::conversion::convert::safe_cast(array, to),
    };
    let mut best = convert(&args[0])?;
    for arg in &args[1..] {
        let next = convert(arg)?;
        let better = or_kleene(&wins(&best, &next)?, &is_null(&best)?)?;
        // A comparison with NULL is NULL, which picks the second: retain the NULL of either side. (`and_not` of arrow 59 reads
        // slices of arrays at wrong offsets.)
        let better = and(&better, &is_not_null(&next)?)?;
        best = zip(&better, &best, &next)?;
    }
    if to == shown { Ok(best) } else { Ok(cast_with_options(&best, &shown, &EXACTLY)?) }
}

/// A function over the reals; NULL where it is not defined.
fn real(values: &ArrayRef, f: impl Fn(f64) -> f64) -> ArrayRef {
    let values = values.as_primitive::<Float64Type>();
    let computed = values.iter().map(|value| value.map(&f).filter(|value| value.is_finite()));
    Arc::new(computed.collect::<Float64Array>())
}

fn pow(bases: &ArrayRef, exponents: &ArrayRef) -> ArrayRef {
    let (bases, exponents) = (bases.as_primitive::<Float64Type>(), exponents.as_primitive::<Float64Type>());
    let computed = bases.iter().zip(exponents.iter());
    let computed =
        computed.map(|(base, exponent)| Some(base?.powf(exponent?)).filter(|value| value.is_finite()));
    Arc::new(computed.collect::<Float64Array>())
}

/// `LOG(base, x)`; NULL unless both are above 0 and the base is not 1.
fn log(bases: &ArrayRef, values: &ArrayRef) -> ArrayRef {
    let (bases, values) = (bases.as_primitive::<Float64Type>(), values.as_primitive::<Float64Type>());
    let computed = bases.iter().zip(values.iter()).map(|(base, value)| {
        let (base, value) = (base.filter(|base| *base > 0.0)?, value.filter(|value| *value > 0.0)?);
        let result = value.ln() / base.ln();
        result.is_finite().then_some(result)
    });
    Arc::new(computed.collect::<Float64Array>())
}

fn radix(array: &ArrayRef, f: impl Fn(i64) -> String) -> Result<ArrayRef> {
    let values = array.as_primitive::<Int64Type>().iter().map(|value| value.map(&f));
    Ok(Arc::new(values.collect::<StringArray>()))
}

/// The group of that number in the first match; 0 is the whole match. No match is the empty text.
fn regexp_extract(args: &[ArrayRef]) -> Result<ArrayRef> {
    let (text, pattern) = (args[0].as_string::<i32>(), args[1].as_string::<i32>());
    let group = args[2].as_primitive::<Int64Type>();
    let mut compiled: Option<(&str, Regex)> = None;
    let mut out = StringBuilder::new();
    for row in 0..text.len() {
        if text.is_null(row) || pattern.is_null(row) || group.is_null(row) {
            out.append_null();
            continue;
        }
        let source = pattern.value(row);
        if compiled.as_ref().is_none_or(|(of, _)| *of != source) {
            let regex = Regex::new(source)
                .map_err(|error| exec_datafusion_err!("bad pattern '{source}': {error}"))?;
            compiled = Some((source, regex));
        }
        let captures = compiled.as_ref().and_then(|(_, regex)| regex.captures(text.value(row)));
        let index = usize::try_from(group.value(row)).unwrap_or(usize::MAX);
        out.append_value(captures.and_then(|found| found.get(index).map(|part| part.as_str())).unwrap_or(""));
    }
    Ok(Arc::new(out.finish()))
}
