//! `auto_partition_name('range', 'day', at)` and `auto_partition_name('list', value, …)`: the name that loads give the partition
//! they create for such values.

use crate::functions::conversion::convert;
use crate::functions::dates::zone;
use crate::types::kind::DATETIME;
use crate::types::metadata;
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue, exec_err, plan_datafusion_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use std::sync::Arc;
use tributary_types::partition::{TimeUnit, list_name, range_name};

const NAME: &str = "auto_partition_name";
/// In Doris's words.
const NO_TIME: &str = "The range partition only support DATE|DATETIME";

/// The function; see the module.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct PartitionName {
    signature: Signature,
}

impl PartitionName {
    pub fn new() -> Self {
        let any = vec![TypeSignature::VariadicAny, TypeSignature::Nullary];
        Self { signature: Signature::one_of(any, Volatility::Immutable) }
    }
}

/// The kind of partitions.
#[derive(Clone, Copy)]
enum Kind {
    Range(TimeUnit),
    List,
}

/// The kind according to the constant arguments; one entry for each argument.
fn kind(constants: &[Option<&ScalarValue>]) -> Result<Kind> {
    if constants.len() < 2 {
        return plan_err!("function {NAME} must contains at least two arguments");
    }
    let literal = |place: usize, shown: &str| {
        let text = constants[place].and_then(|value| value.try_as_str().flatten());
        text.ok_or_else(|| plan_datafusion_err!("{NAME} must accept literal for {shown} argument"))
    };
    match literal(0, "1nd")?.to_ascii_lowercase().as_str() {
        "list" => Ok(Kind::List),
        "range" if constants.len() == 3 => {
            let unit = literal(1, "2nd")?;
            let unit = TimeUnit::named(unit).ok_or_else(|| {
                plan_datafusion_err!(
                    "range {NAME} must accept year|month|day|hour|minute|second for 2nd argument, not '{unit}'"
                )
            })?;
            Ok(Kind::Range(unit))
        }
        "range" => plan_err!("range {NAME} must contains three arguments"),
        other => plan_err!("function {NAME} must accept range|list for 1nd argument, not '{other}'"),
    }
}

impl ScalarUDFImpl for PartitionName {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if let Kind::Range(_) = kind(args.scalar_arguments)? {
            let is_time = matches!(
                args.arg_fields[2].data_type(),
                DataType::Date32 | DataType::Timestamp(..) | DataType::Utf8 | DataType::Null
            );
            if !is_time {
                return plan_err!("{NO_TIME}, not {}", args.arg_fields[2].data_type());
            }
        }
        Ok(Arc::new(Field::new(NAME, DataType::Utf8, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constants: Vec<Option<&ScalarValue>> = args
            .args
            .iter()
            .map(|arg| match arg {
                ColumnarValue::Scalar(value) => Some(value),
                ColumnarValue::Array(_) => None,
            })
            .collect();
        let kind = kind(&constants)?;
        let is_constant = constants.iter().all(Option::is_some);
        let rows = if is_constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let zone = zone::of(&args.config_options);
        let names = match kind {
            Kind::Range(unit) => zone::within(zone, || ranges(unit, &arrays[2]))?,
            Kind::List => lists(&arrays[1..], &args.arg_fields[1..], rows)?,
        };
        let names: ArrayRef = Arc::new(names);
        Ok(if is_constant {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&names, 0)?)
        } else {
            ColumnarValue::Array(names)
        })
    }
}

fn ranges(unit: TimeUnit, values: &ArrayRef) -> Result<StringArray> {
    let times = convert::safe_cast(&convert::to_datetime(values)?, &DATETIME)?;
    let nulls = values.logical_nulls();
    let is_given = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    if let Some(row) = (0..values.len()).find(|&row| times.is_null(row) && is_given(row)) {
        let shown = convert::to_text(values)?;
        return exec_err!("{NO_TIME}, and '{}' is none", shown.as_string::<i32>().value(row));
    }
    let times = times.as_primitive::<TimestampMicrosecondType>();
    Ok(times.iter().map(|micros| micros.map(|micros| range_name(unit, micros))).collect())
}

fn lists(values: &[ArrayRef], fields: &[FieldRef], rows: usize) -> Result<StringArray> {
    let texts = values.iter().zip(fields).map(|(array, field)| texts(array, field));
    let texts = texts.collect::<Result<Vec<_>>>()?;
    let has_texts = values.iter().any(|array| *array.data_type() == DataType::Utf8);
    let name = |row: usize| {
        let values = texts.iter().map(|texts| {
            let texts = texts.as_string::<i32>();
            texts.is_valid(row).then(|| texts.value(row))
        });
        Some(list_name(values, has_texts))
    };
    Ok((0..rows).map(name).collect())
}

/// The values as names of partitions have them.
fn texts(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    Ok(match (array.data_type(), metadata::digits(field)) {
        (DataType::Boolean, _) => {
            let shown = |value: bool| if value { "true" } else { "false" };
            let values = array.as_boolean().iter().map(|value| value.map(shown));
            Arc::new(values.collect::<StringArray>())
        }
        (_, Some(digits)) => convert::datetime_text(array, digits)?,
        _ => convert::to_text(array)?,
    })
}
