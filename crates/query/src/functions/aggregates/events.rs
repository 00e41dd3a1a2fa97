//! Events of a sequence: a time, and which of up to 32 conditions the row meets. `WINDOW_FUNNEL` and `SEQUENCE_MATCH` read them.

use crate::functions::conversion::convert::{to_datetime, to_integer, to_truth};
use crate::functions::nested::arrays::Lists;
use crate::functions::{MySqlFunction, Param};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Int64Type, TimestampMicrosecondType};
use datafusion::common::{Result, exec_err};
use std::sync::Arc;

/// The most conditions of a call.
const CONDITIONS_MAX: usize = 32;

pub(super) fn functions() -> Vec<MySqlFunction> {
    use Param::Any;
    vec![
        MySqlFunction::new("__event", &[Any, Any], || DataType::Struct(fields()), event).variadic(),
        MySqlFunction::new("__is_event", &[Any], crate::functions::boolean, |args| {
            Ok(Arc::new(arrow::compute::is_not_null(&args[0])?))
        }),
    ]
}

fn fields() -> Fields {
    Fields::from(vec![
        Field::new("at", DataType::Int64, true),
        Field::new("conditions", DataType::Int64, true),
    ])
}

/// The time and the conditions of each row; NULL where an argument is NULL and where no condition is met.
fn event(args: &[ArrayRef]) -> Result<ArrayRef> {
    if args.len() > CONDITIONS_MAX + 1 {
        return exec_err!(
            "a sequence of events has at most {CONDITIONS_MAX} conditions and not {}",
            args.len() - 1
        );
    }
    let times = to_datetime(&args[0])?;
    let times = times.as_primitive::<TimestampMicrosecondType>();
    let conditions = args[1..].iter().map(to_truth).collect::<Result<Vec<_>>>()?;
    let mut met = Vec::with_capacity(times.len());
    for row in 0..times.len() {
        let is_known = times.is_valid(row) && conditions.iter().all(|condition| condition.is_valid(row));
        let bits = conditions.iter().enumerate().map(|(number, condition)| {
            if is_known && condition.as_boolean().value(row) { 1_i64 << number } else { 0 }
        });
        met.push(bits.fold(0, |all, bit| all | bit));
    }
    let nulls: NullBuffer = met.iter().map(|bits| *bits != 0).collect::<Vec<bool>>().into();
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::new(times.values().clone(), None)), Arc::new(Int64Array::from(met))];
    Ok(Arc::new(StructArray::try_new(fields(), columns, Some(nulls))?))
}

/// An event of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Microseconds since 1970.
    pub at: i64,
    /// A bit for each condition, the first one lowest.
    pub conditions: i64,
}

impl Event {
    /// Whether it meets the condition of that number, from 0.
    pub const fn meets(self, condition: usize) -> bool {
        self.conditions >> condition & 1 == 1
    }
}

/// The events of each row's list, in the order of their times.
pub fn sequences(array: &ArrayRef, function: &str) -> Result<Vec<Vec<Event>>> {
    let lists = Lists::of(array, function)?;
    let Some(events) = lists.values.as_struct_opt().filter(|events| events.num_columns() == 2) else {
        return Ok(vec![Vec::new(); lists.len]);
    };
    let (times, conditions) = (to_integer(events.column(0))?, to_integer(events.column(1))?);
    let (times, conditions) = (times.as_primitive::<Int64Type>(), conditions.as_primitive::<Int64Type>());
    let sorted = |row: usize| {
        let range = lists.row(row).into_iter().flatten().filter(|at| events.is_valid(*at));
        let event = |at: usize| Event { at: times.value(at), conditions: conditions.value(at) };
        let mut events: Vec<Event> = range.map(event).collect();
        events.sort_by_key(|event| event.at);
        events
    };
    Ok((0..lists.len).map(sorted).collect())
}
